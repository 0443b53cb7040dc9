"""Throughput of many trials at once: our container environment beside Harbor's with compose.

Whole trials, eight at a time: terminus-2 with a scripted model and a cap of five, as most runs of
a ladder are. Harbor's environment gets an init process and no network. Rounds of either side take
turns; prints and writes trials a minute and their ratio.

    python tests/benchmarks/bench_throughput.py [--rounds 3] [--trials 16] [--at-once 8]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration"))

from bench_trials import agent, environments, one  # noqa: E402
from harbor.models.trial.config import EnvironmentConfig  # noqa: E402
from toys import reply  # noqa: E402

from depthkit.trials import engine  # noqa: E402
from depthkit.trials.scripted.policies import fixed_replies  # noqa: E402
from depthkit.trials.scripted.server import ScriptedServer  # noqa: E402

TURNS = 5
BOUND = 1.5


async def batch(
    task: Path, environment: EnvironmentConfig, base_url: str, out: Path, trials: int, at_once: int
) -> float:
    """Trials a minute; all of them must pass."""
    free = asyncio.Semaphore(at_once)

    async def each() -> None:
        async with free:
            chosen = agent("terminus", base_url)
            chosen.kwargs["cap"] = TURNS
            await one(task, environment, chosen, out)

    started = time.perf_counter()
    ends = await asyncio.gather(*(each() for _ in range(trials)), return_exceptions=True)
    seconds = time.perf_counter() - started
    for error in filter(None, ends):
        raise RuntimeError("a trial did not come out as it should") from error
    return 60 * trials / seconds


async def measure(rounds: int, trials: int, at_once: int) -> dict[str, Any]:
    replies = [reply("ls /app", wait=0.1)] * (TURNS - 1) + [reply("echo done > /app/out", wait=0.1)]
    paces: dict[str, list[float]] = {}
    with (
        tempfile.TemporaryDirectory() as name,
        ScriptedServer({"played": fixed_replies(replies)}) as server,
    ):
        sides = environments(Path(name))
        for side, (task, environment) in sides.items():  # builds the images
            await batch(task, environment, server.base_url, Path(name) / "trials", 1, 1)
            paces[side] = []
        for _ in range(rounds):
            for side, (task, environment) in sides.items():
                out = Path(name) / "trials"
                pace = await batch(task, environment, server.base_url, out, trials, at_once)
                paces[side].append(pace)
                print(f"{side:9} {pace:6.1f} trials a minute", file=sys.stderr)
    engine.release()
    medians = {side: statistics.median(found) for side, found in paces.items()}
    return {
        "rounds": rounds,
        "trials": trials,
        "at_once": at_once,
        "turns": TURNS,
        "cores": len(os.sched_getaffinity(0)),
        "trials_a_minute": {side: round(pace, 1) for side, pace in medians.items()},
        "ratio": round(medians["depthkit"] / medians["harbor"], 2),
        "bound": BOUND,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--at-once", type=int, default=8)
    options = parser.parse_args()
    logging.disable(logging.ERROR)
    # One event loop for all: Harbor's environment keeps locks that belong to the first one.
    report = asyncio.run(measure(options.rounds, options.trials, options.at_once))
    text = json.dumps(report, indent=2)
    print(text)
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "throughput.json").write_text(text + "\n")
    return 0 if report["ratio"] >= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
