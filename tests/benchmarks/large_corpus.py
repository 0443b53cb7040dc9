"""Make a corpus of any size, with the shape of a measured one: for benchmarks of the dashboard."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from depthkit.corpus import Corpus
from depthkit.protocol import CAPS

DATASETS = ("TMax", "FACET", "SETA", "RST", "TB2", "TW", "Ours")
MODELS = ("first-model", "second-model", "third-model")
RUNS_A_TASK = 20


def write_large_corpus(directory: Path, runs: int, *, seed: int = 0) -> Corpus:
    """A corpus of so many runs, written as text: through records it would take minutes.

    Args:
        directory: A new one.
        runs: At least 20; a task has 20 runs.
        seed: Of everything that is drawn.
    """
    draw = random.Random(seed)
    corpus = Corpus.open_or_create(directory, name="large", models=MODELS[:2])
    with (
        (directory / "tasks.jsonl").open("w") as tasks,
        (directory / "runs.jsonl").open("w") as out,
        (directory / "labels.jsonl").open("w") as marks,
    ):
        for number in range(runs // RUNS_A_TASK):
            dataset = DATASETS[number % len(DATASETS)]
            task_id = f"{dataset.lower()}-task-{number:05}"
            tasks.write(json.dumps(_task(dataset, task_id, draw)) + "\n")
            for attempt in range(RUNS_A_TASK):
                out.write(json.dumps(_run(dataset, task_id, attempt, draw)) + "\n")
                if attempt == 0 and number % 25 == 0:
                    marks.write(json.dumps(_mark(dataset, task_id, draw)) + "\n")
    return corpus


def _mark(dataset: str, task_id: str, draw: random.Random) -> dict[str, object]:
    """A label or a note, on a task or on its first run."""
    kind = draw.choice(("label", "note"))
    return {
        "action": "add",
        "dataset": dataset,
        "task_id": task_id,
        "run_id": draw.choice((None, f"{task_id}__00")),
        "kind": kind,
        "text": "odd" if kind == "label" else "worth a look",
        "at": "2026-11-30T09:00:00+00:00",
    }


def _task(dataset: str, task_id: str, draw: random.Random) -> dict[str, object]:
    lines = int(draw.lognormvariate(3.5, 0.8)) + 1
    work = {"lines": lines, "tokens": lines * 11, "chars": lines * 37}
    return {
        "dataset": dataset,
        "task_id": task_id,
        "group": "ours" if dataset == "Ours" else "synthetic",
        "segments": [{"index": 1, "name": "all", "work": work, "instruction_words": 120}],
        "category": draw.choice(("system", "data", "software", "security")),
        "provenance": "scripted",
    }


def _run(dataset: str, task_id: str, attempt: int, draw: random.Random) -> dict[str, object]:
    free = attempt < 2
    cap = None if free else CAPS[(attempt - 2) // 2 % len(CAPS)]
    passed = draw.random() < (0.6 if free else 0.1 + 0.1 * CAPS.index(cap or 1))
    turns = draw.randint(4, 120) if free else min(cap or 1, draw.randint(1, 80))
    stop = "submitted" if passed or turns != cap else "turn_cap"
    tokens = turns * draw.randint(400, 1500)
    return {
        "run_id": f"{task_id}__{attempt:02}",
        "dataset": dataset,
        "task_id": task_id,
        "model": MODELS[0] if free or attempt % 3 else draw.choice(MODELS),
        "cap": cap,
        "attempt": attempt % 2 + 1,
        "purpose": "free" if free else "ladder",
        "verdict": "passed" if passed else "failed",
        "stop": stop,
        "stop_segment": 1,
        "segments_passed": int(passed),
        "reward": float(passed),
        "suspect": False,
        "turns": turns,
        "first_claim_turn": turns if stop == "submitted" else None,
        "agent_minutes": round(turns * 0.21, 3),
        "context_tokens": tokens,
        "input_tokens": tokens * turns // 2,
        "cached_tokens": tokens * turns // 3,
        "output_tokens": turns * 160,
        "command_lines": turns * 3,
        "cost_usd": round(tokens * 4e-7, 5),
        "started": f"2026-11-{draw.randint(1, 28):02}T{draw.randint(0, 23):02}:00:00Z",
        "provenance": "scripted",
    }


def write_long_trial(corpus: Corpus, *, turns: int = 150, size: int = 5_000_000) -> str:
    """Give the corpus' last run a trajectory of so many turns and bytes; returns its id."""
    run_id = json.loads((corpus.path / "runs.jsonl").read_text().splitlines()[-1])["run_id"]
    line = "\x1b[32m-rw-r--r--\x1b[0m 1 root root  4096 Nov 30 09:31 file <name> & more\n"
    output = line * (size // turns // len(line))
    steps: list[dict[str, object]] = [
        {"step_id": 1, "source": "user", "message": "Task Description:\nDo it."}
    ]
    steps += [
        {
            "step_id": turn + 1,
            "source": "agent",
            "timestamp": f"2026-11-30T{turn // 60:02}:{turn % 60:02}:00+00:00",
            "message": f"Analysis: This is turn {turn}.\nPlan: List it again.",
            "tool_calls": [
                {
                    "function_name": "bash_command",
                    "arguments": {"keystrokes": "ls -la\n", "duration": 0.5},
                }
            ],
            "observation": {"results": [{"content": output}]},
            "metrics": {"prompt_tokens": 400 * turn, "completion_tokens": 90},
        }
        for turn in range(1, turns + 1)
    ]
    folder = corpus.trial_dir(run_id) / "agent"
    folder.mkdir(parents=True)
    document = {
        "schema_version": "ATIF-v1.8",
        "session_id": "long",
        "agent": {"name": "terminus-2", "version": "2.0.0"},
        "steps": steps,
    }
    (folder / "trajectory.json").write_text(json.dumps(document))
    return str(run_id)


if __name__ == "__main__":
    write_large_corpus(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100_000)
