"""Measure the bundled demo corpus again: calibration tasks, two scripted policies (`make demo`).

The three families are the data sets. The policy that takes a step a turn comes first, so that the
corpus shows both what its habit costs and how the second model corrects it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from rich.console import Console

from depthkit.corpus import Corpus
from depthkit.experiments.measure import measure
from depthkit.tasks.calibration import write_family

MODELS = ("scripted-step", "scripted-merge")

SIZES: dict[str, tuple[int, ...]] = {
    "parallel": (4, 10, 20),
    "static-chain": (4, 10, 20),
    "control": (2, 3, 4, 6, 8, 10),
}
"""Steps of the tasks of each family, all with seed 1."""

DEMO = Path(__file__).parent.parent / "data" / "demo"


def measure_demo(target: Path, *, workers: int, console: Console | None = None) -> Corpus:
    """Measure the demo corpus into a temporary folder and put it in the place of ``target``.

    Raises:
        RuntimeError: If a run gave no result; ``target`` is then left as it was.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tasks = [
            write_family(folder / "tasks" / family, family, steps, 1)
            for family, sizes in SIZES.items()
            for steps in sizes
        ]
        made = folder / "demo"
        outcome = measure(
            tasks, made, models=MODELS, scope="both", workers=workers, console=console
        )
        if outcome.given_up or outcome.stopped:
            raise RuntimeError(f"the demo corpus is incomplete: {outcome.given_up}")
        for path in (made / "cache", made / ".measuring.lock", *made.glob(".*.lock")):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        for log in made.glob("trials/*/trial.log"):
            log.unlink()
        if target.exists():
            shutil.rmtree(target)
        shutil.move(made, target)
    return Corpus.open(target)


if __name__ == "__main__":
    corpus = measure_demo(
        DEMO, workers=int(os.environ.get("DEPTH_WORKERS", "3")), console=Console(stderr=True)
    )
    print(corpus.provenance_line())
