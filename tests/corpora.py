"""Small corpora for tests: tasks of known depth, and the runs that the protocol then asks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from depthkit.corpus import Corpus
from depthkit.model import Group, Run, Segment, Task, Work
from depthkit.protocol import next_runs


@dataclass(frozen=True)
class Spec:
    """A task to measure.

    ``depth`` is the smallest cap under which it passes; 0 for a task that never passes. ``runs``
    cuts the measurement short after so many runs.
    """

    dataset: str
    depth: int
    turns: int = 10
    work: int | None = 20
    group: Group | None = "synthetic"
    minutes: float | None = 1.0
    tokens: int | None = 5000
    runs: int | None = None
    task_id: str | None = None


def write_corpus(directory: Path, specs: Iterable[Spec], *, name: str = "small") -> Corpus:
    """Measure each task as a perfectly steady model would."""
    corpus = Corpus.open_or_create(directory, name=name, models=["first", "second"])
    tasks, runs = [], []
    for number, spec in enumerate(specs):
        task_id = spec.task_id or f"task-{number}"
        work = None if spec.work is None else Work(lines=spec.work, tokens=9, chars=40)
        segment = Segment(index=1, name="all", work=work)
        tasks.append(
            Task(
                dataset=spec.dataset,
                task_id=task_id,
                group=spec.group,
                segments=(segment,),
                provenance="scripted",
            )
        )
        runs += _measure(spec, task_id, f"r{number}")
    corpus.append_tasks(tasks)
    corpus.append_runs(runs)
    return corpus


def _measure(spec: Spec, task_id: str, prefix: str) -> list[Run]:
    history: list[Run] = []
    while spec.runs is None or len(history) < spec.runs:
        planned = next_runs(history, ["first", "second"])
        if not planned:
            break
        for plan in planned:
            passed = spec.depth > 0 and (plan.cap is None or plan.cap >= spec.depth)
            run = Run(
                run_id=f"{prefix}-{len(history)}",
                dataset=spec.dataset,
                task_id=task_id,
                model=plan.model,
                cap=plan.cap,
                attempt=plan.attempt,
                purpose=plan.purpose,
                verdict="passed" if passed else "failed",
                confirmed=True if passed else None,
                stop="submitted",
                turns=plan.cap or spec.turns,
                agent_minutes=spec.minutes,
                context_tokens=spec.tokens,
                provenance="scripted",
            )
            history.append(run)
    return history[: spec.runs]


def seven_sets(directory: Path) -> Corpus:
    """A few tasks of each data set of the Depth paper."""
    groups: dict[str, Group] = {
        **dict.fromkeys(("TMax", "FACET", "SETA", "RST"), "synthetic"),
        **dict.fromkeys(("TB2", "TW"), "human-curated"),
        "Ours": "ours",
    }
    return write_corpus(
        directory,
        [
            Spec(name, depth, turns=depth + 5, work=10 * depth + number, group=group)
            for number, (name, group) in enumerate(groups.items())
            for depth in ((40, 80, 20) if group == "ours" else (1, 1, 2, 5, 0))
        ],
        name="seven",
    )
