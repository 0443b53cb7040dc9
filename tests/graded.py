"""Small corpora for tests of difficulty: tasks with ratings, labels and pass rates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from depthkit.corpus import Corpus
from depthkit.model import Group, Run, Segment, Task, Work
from depthkit.protocol import next_runs

MODELS = ("deepseek-v4.1-flash", "glm-5.3-flash")


@dataclass(frozen=True)
class Graded:
    """A task, how its runs go, and what others say of its difficulty.

    ``first`` and ``second`` are the smallest caps under which the two models pass; ``passes`` of
    the two free runs pass; ``evaluations`` are the outcomes of each model's evaluation runs, None
    for one without a result. A task that is not ``sampled`` has no runs.
    """

    dataset: str
    task_id: str
    group: Group | None = "human-curated"
    first: int = 1
    second: int | None = None
    turns: int = 10
    work: int | None = 20
    passes: int = 2
    sampled: bool = True
    rate: float | None = None
    source: str | None = "made up"
    rating: str | None = None
    label: str | None = None
    sampling_group: str | None = None
    parent: str | None = None
    evaluations: Mapping[str, tuple[bool | None, ...]] = field(default_factory=dict)


def graded_corpus(
    directory: Path, tasks: Iterable[Graded], *, models: tuple[str, ...] = MODELS
) -> Corpus:
    """Measure each task as its numbers say."""
    corpus = Corpus.open_or_create(directory, name="graded", models=models)
    tasks = list(tasks)
    corpus.append_tasks([_task(each) for each in tasks])
    runs = [run for each in tasks for run in _runs(each, models)]
    corpus.append_runs(runs)
    return corpus


def _task(each: Graded) -> Task:
    work = None if each.work is None else Work(lines=each.work, tokens=9, chars=40)
    return Task(
        dataset=each.dataset,
        task_id=each.task_id,
        group=each.group,
        segments=(Segment(index=1, name="all", work=work),),
        author_rating=each.rating,
        generated_label=each.label,
        sampling_group=each.sampling_group,
        parent=each.parent,
        public_pass_rate=each.rate,
        public_pass_rate_source=None if each.rate is None else each.source,
        provenance="scripted",
    )


def _runs(each: Graded, models: tuple[str, ...]) -> list[Run]:
    history: list[Run] = []
    lowest = dict(zip(models, (each.first, each.second or each.first), strict=False))

    def add(model: str, cap: int | None, attempt: int, purpose: str, passed: bool | None) -> None:
        verdict = {True: "passed", False: "failed", None: "none"}[passed]
        history.append(
            Run.model_validate(
                {
                    "run_id": f"{each.dataset}-{each.task_id}-{len(history)}",
                    "dataset": each.dataset,
                    "task_id": each.task_id,
                    "model": model,
                    "cap": cap,
                    "attempt": attempt,
                    "purpose": purpose,
                    "verdict": verdict,
                    "stop": "refused" if passed is None else "submitted",
                    "turns": cap or each.turns,
                    "provenance": "scripted",
                }
            )
        )

    while each.sampled and (planned := next_runs(history, models)):
        for plan in planned:
            if plan.cap is None:
                passed = plan.attempt <= each.passes
            else:
                passed = plan.cap >= lowest[plan.model]
            add(plan.model, plan.cap, plan.attempt, plan.purpose, passed)
    for model, outcomes in each.evaluations.items():
        for attempt, outcome in enumerate(outcomes, start=1):
            add(model, None, attempt, "evaluation", outcome)
    return history
