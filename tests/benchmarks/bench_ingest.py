"""Ingest in trials a second, beside the loop a user would otherwise write.

The loop loads each ``result.json`` and ``trajectory.json`` with the standard library and makes
pandas frames of runs and turns, in memory only. ``depthkit ingest`` judges each trial, copies its
files and appends it to a corpus on disk; with the second number it also has the turns as a frame.
Prints and writes the ratios of medians.

    python tests/benchmarks/bench_ingest.py [--trials 500] [--turns 20] [--pairs 5]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import pandas as pd  # noqa: E402
from fake_trials import atif, finished, result, write_trial  # noqa: E402

from depthkit.corpus import Corpus  # noqa: E402
from depthkit.corpus.ingest import ingest  # noqa: E402

SCREEN = (
    "New Terminal Output:\n\n" + "drwxr-xr-x 2 root root 4096 May  1 12:00 some-file.txt\n" * 40
)


def write_trials(folder: Path, trials: int, turns: int) -> None:
    """Finished trials whose turns show a screen of output each."""
    steps = finished(turns)
    for step in steps[1:-2]:
        step["observation"]["results"][0]["content"] = SCREEN
    for number in range(trials):
        name = f"task-{number % 50}__{number:07}"
        document = atif(steps)
        write_trial(folder / name, result(name, requests=turns), trajectory__json=document)


def plain_loop(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Runs and turns as frames, the short way."""
    runs: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*/result.json")):
        trial = json.loads(path.read_text())
        steps = json.loads((path.parent / "agent" / "trajectory.json").read_text())["steps"]
        replies = [step for step in steps if step["source"] == "agent"]
        runs.append(
            {
                "trial": trial["trial_name"],
                "task": trial["task_name"],
                "model": trial["agent_info"]["model_info"]["name"],
                "reward": trial["verifier_result"]["rewards"]["reward"],
                "turns": len(replies),
            }
        )
        turns += [
            {
                "trial": trial["trial_name"],
                "turn": number,
                "commands": len(step.get("tool_calls", [])),
                "input_tokens": step["metrics"]["prompt_tokens"],
            }
            for number, step in enumerate(replies, start=1)
        ]
    return pd.DataFrame(runs), pd.DataFrame(turns)


def measure(trials: int, turns: int, pairs: int) -> dict[str, Any]:
    """Time both in turn, so that a noisy machine is noisy for both."""
    seconds: dict[str, list[float]] = {"plain loop": [], "ingest": [], "ingest and turns": []}
    with tempfile.TemporaryDirectory() as temporary:
        source = Path(temporary) / "job"
        write_trials(source, trials, turns)
        size = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
        plain_loop(source)  # Warms the page cache for both.
        for pair in range(pairs):
            start = time.perf_counter()
            runs, _ = plain_loop(source)
            seconds["plain loop"].append(time.perf_counter() - start)
            target = Path(temporary) / f"corpus-{pair}"
            start = time.perf_counter()
            report = ingest([source], target)
            seconds["ingest"].append(time.perf_counter() - start)
            frame = Corpus.open(target).turns()
            seconds["ingest and turns"].append(time.perf_counter() - start)
            assert len(report.added) == len(runs) == trials
            assert len(frame) == trials * turns
    median = {name: statistics.median(values) for name, values in seconds.items()}
    loop = median["plain loop"]
    return {
        "benchmark": "ingest",
        "trials": trials,
        "turns": turns,
        "megabytes": round(size / 1e6, 1),
        "pairs": pairs,
        "cores": os.cpu_count(),
        "trials_per_second": {name: round(trials / value, 1) for name, value in median.items()},
        "ratio": {name: round(v / loop, 2) for name, v in median.items() if name != "plain loop"},
        "seconds": {name: [round(v, 3) for v in values] for name, values in seconds.items()},
    }


def main() -> None:
    """Measure, print and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    text = json.dumps(measure(options.trials, options.turns, options.pairs), indent=2)
    (HERE / "results" / "ingest.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
