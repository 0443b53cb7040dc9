"""Whole trials in our container environment beside Harbor's compose environment.

Two kinds, run in turn in one process: a trial of the oracle that is over at once, and one of 20
turns by terminus-2 with a scripted model. Harbor's environment gets an init process and no
network by an overlay, as a user in a hurry would give it. Prints and writes the ratio of medians.

    python tests/benchmarks/bench_trials.py [--pairs 7]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration"))

from harbor.models.environment_type import EnvironmentType  # noqa: E402
from harbor.models.trial.config import (  # noqa: E402
    AgentConfig,
    EnvironmentConfig,
    TaskConfig,
    TrialConfig,
)
from harbor.trial.trial import Trial  # noqa: E402
from toys import reply, write_toy  # noqa: E402

import depthkit.trials.run  # noqa: E402 - sets what Harbor reads when it is imported
from depthkit.trials import engine  # noqa: E402
from depthkit.trials.scripted.policies import fixed_replies  # noqa: E402
from depthkit.trials.scripted.server import ScriptedServer  # noqa: E402

OVERLAY = "services:\n  main:\n    init: true\n    network_mode: none\n"
TURNS = 20
BOUNDS = {"oracle": 0.6, "terminus_20_turns": 0.75}


def environments(folder: Path) -> dict[str, tuple[Path, EnvironmentConfig]]:
    """A task and an environment for either side; the tasks differ in their network setting only."""
    overlay = folder / "overlay.yaml"
    overlay.write_text(OVERLAY)
    ours, harbors = write_toy(folder / "ours" / "toy"), write_toy(folder / "harbor" / "toy")
    settings = harbors / "task.toml"
    settings.write_text(settings.read_text().replace('network_mode = "no-network"\n', ""))
    return {
        "depthkit": (ours, EnvironmentConfig(import_path=depthkit.trials.run.ENVIRONMENT)),
        "harbor": (
            harbors,
            EnvironmentConfig(type=EnvironmentType.DOCKER, extra_docker_compose=[overlay]),
        ),
    }


def agent(kind: str, base_url: str) -> AgentConfig:
    if kind == "oracle":
        return AgentConfig(name="oracle")
    return AgentConfig(
        import_path=depthkit.trials.run.AGENT,
        model_name="openai/played",
        kwargs={
            "api_base": base_url,
            "llm_kwargs": {"api_key": "scripted"},
            "model_info": {"max_input_tokens": 200_000, "max_output_tokens": 4_000},
            "cap": TURNS,
        },
    )


async def one(task: Path, environment: EnvironmentConfig, chosen: AgentConfig, out: Path) -> float:
    started = time.perf_counter()
    trial = await Trial.create(
        TrialConfig(
            task=TaskConfig(path=task), trials_dir=out, agent=chosen, environment=environment
        )
    )
    result = await trial.run()
    seconds = time.perf_counter() - started
    if result.exception_info or not result.verifier_result:
        raise RuntimeError(f"the trial failed: {result.exception_info}")
    if result.verifier_result.rewards != {"reward": 1.0}:
        raise RuntimeError(f"the trial did not pass: {result.verifier_result}")
    return seconds


def measure(pairs: int, say: Callable[[str], None]) -> dict[str, Any]:
    replies = [reply("ls /app", wait=0.1)] * (TURNS - 1) + [reply("echo done > /app/out", wait=0.1)]
    report: dict[str, Any] = {"pairs": pairs, "seconds": {}, "ratio": {}, "bound": BOUNDS}
    with (
        tempfile.TemporaryDirectory() as name,
        ScriptedServer({"played": fixed_replies(replies)}) as server,
    ):
        folder = Path(name)
        sides = environments(folder)
        for kind in BOUNDS:
            seconds: dict[str, list[float]] = {side: [] for side in sides}
            for number in range(pairs + 1):
                for side, (task, environment) in sides.items():
                    took = asyncio.run(
                        one(task, environment, agent(kind, server.base_url), folder / "trials")
                    )
                    if number:  # The first of each builds its image.
                        seconds[side].append(took)
                        say(f"{kind:18} {side:9} {took:6.2f} s")
            medians = {side: statistics.median(took) for side, took in seconds.items()}
            report["seconds"][kind] = {side: round(took, 3) for side, took in medians.items()}
            report["ratio"][kind] = round(medians["depthkit"] / medians["harbor"], 3)
    engine.release()
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=7)
    pairs = parser.parse_args().pairs
    logging.disable(logging.ERROR)
    report = measure(pairs, lambda line: print(line, file=sys.stderr))
    text = json.dumps(report, indent=2)
    print(text)
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "trials.json").write_text(text + "\n")
    over = [kind for kind, bound in BOUNDS.items() if report["ratio"][kind] > bound]
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
