"""All of Table 8 for a task of six segments beside one container run a change from scratch.

Either side decides the same replays with the same number of containers at a time; the other one
starts a container for each replay and plays every segment before it, as a loop over Table 8 would.
Prints and writes the ratio of medians over pairs of runs, one of each side in turn; a pair takes
about a minute on two cores.

    python tests/benchmarks/bench_replay.py [--pairs 3]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from checked_task import write_checked_task  # noqa: E402

from depthkit.experiments.replay import replay_tasks  # noqa: E402
from depthkit.experiments.replay_plan import Part, plan_replays  # noqa: E402
from depthkit.tasks import LoadedTask, load_task  # noqa: E402
from depthkit.tasks.markers import read_marks  # noqa: E402
from depthkit.trials import engine  # noqa: E402
from depthkit.trials.play import (  # noqa: E402
    offline_container,
    play_solution,
    run_check_script,
)

SEGMENTS = 6
WORKERS = 2
BOUND = 0.5


def write_task(folder: Path, seconds: float) -> Path:
    """Each segment takes this long and works on the file of the one before it."""
    segments = []
    for n in range(1, SEGMENTS + 1):
        before = f"$(cat /app/out-{n - 1})" if n > 1 else "start"
        segments.append(
            {
                "instruction": f"Continue the text of the part before in /app/out-{n}.\n",
                "solve": (
                    "#!/bin/bash\nset -e\n"
                    f"sleep {seconds}\n"
                    f'text="{before}"\n'
                    "# key-step: begin\n"
                    f'text="$text {n}"\n'
                    "# key-step: end\n"
                    f'echo "$text" >/app/out-{n}\n'
                    "# event: begin\n"
                    f"echo done >/app/event-{n}\n"
                    "# event: end\n"
                ),
                "check": (
                    f'expect_eq text "$(cat /app/out-{n})" '
                    f'"start $(seq -s " " 1 {n})"\n'
                    f"expect_file event /app/event-{n}\n"
                ),
            }
        )
    dockerfile = "FROM depthkit/base:1\nWORKDIR /app\n"
    return write_checked_task(folder, segments, dockerfile=dockerfile)


def ours(task: Path, folder: Path) -> tuple[float, dict[Part, bool | None]]:
    began = time.perf_counter()
    (found,) = replay_tasks([task], folder / "corpus", workers=WORKERS)
    seconds = time.perf_counter() - began
    return seconds, {
        Part(r.change, r.segment, r.checked_segment, r.event): r.holds for r in found.replays
    }


def from_scratch(task: LoadedTask) -> tuple[float, dict[Part, bool | None]]:
    """A container for each replay, and one for each segment's unchanged solution."""
    scripts = [path.read_text() for path in task.solutions if path]
    plan = plan_replays(scripts, [read_marks(script) for script in scripts])
    jobs: list[tuple[Part | None, list[tuple[int, str | None]], int]] = []
    for segment in range(1, SEGMENTS + 1):
        whole: list[tuple[int, str | None]] = [(n, None) for n in range(1, segment)]
        jobs.append((Part("checks_before_work", segment, segment), whole, segment))
        jobs.append((None, [*whole, (segment, None)], segment))
    for branch in plan.branches:
        whole = [(n, None) for n in range(1, branch.start + 1)]
        for place, (_, _, part) in enumerate(branch.steps, 1):
            own = [(number, script) for number, script, _ in branch.steps[:place]]
            jobs.append((part, [*whole, *own], part.checked))
    outcomes: dict[Part, bool | None] = {}

    async def run() -> None:
        free = asyncio.Semaphore(WORKERS)

        async def one(
            part: Part | None, solutions: list[tuple[int, str | None]], checked: int
        ) -> None:
            async with free, offline_container(task, name="scratch") as environment:
                for number, script in solutions:
                    await play_solution(environment, task, number - 1, script=script)
                outcome = await run_check_script(environment, task, checked - 1)
                if part is not None:
                    outcomes[part] = not outcome.passed if outcome.finished else None

        async with asyncio.TaskGroup() as group:
            for part, solutions, checked in jobs:
                group.create_task(one(part, solutions, checked))

    began = time.perf_counter()
    try:
        asyncio.run(run())
    finally:
        engine.release()
    return time.perf_counter() - began, outcomes


def main() -> None:
    """Run both sides in turn and write what they took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each segment's solution")
    arguments = parser.parse_args()
    times: dict[str, list[float]] = {"depthkit": [], "from_scratch": []}
    with tempfile.TemporaryDirectory() as name:
        path = write_task(Path(name) / "bench" / "six", arguments.seconds)
        task = load_task(path)
        for pair in range(arguments.pairs):
            mine, table = ours(path, Path(name) / str(pair))
            other, same = from_scratch(task)
            assert table == same, "the two ways give different tables"
            times["depthkit"].append(round(mine, 2))
            times["from_scratch"].append(round(other, 2))
            print(f"pair {pair + 1}: depthkit {mine:.1f} s, from scratch {other:.1f} s")
    medians = {side: statistics.median(values) for side, values in times.items()}
    ratio = medians["depthkit"] / medians["from_scratch"]
    result: dict[str, Any] = {
        "segments": SEGMENTS,
        "solution_seconds": arguments.seconds,
        "workers": WORKERS,
        "replays": len(table),
        "seconds": times,
        "medians": medians,
        "ratio": round(ratio, 3),
        "bound": BOUND,
        "holds": ratio <= BOUND,
    }
    out = HERE / "results" / "replay.json"
    out.write_text(json.dumps(result, indent=2) + "\n")
    print(f"ratio {ratio:.2f} (at most {BOUND}); written to {out}")


if __name__ == "__main__":
    main()
