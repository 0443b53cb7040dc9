"""What is left of a measurement: which runs may start, how many at most, what to expect.

Pure: finished runs go in. The most is a bound, as if every run came out the way that leaves most
to do; what is expected is what finished tasks took on average, less what a task has had already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from depthkit.model import Run
from depthkit.protocol import (
    ABOVE,
    CAPS,
    CEILING,
    Planned,
    evaluation_runs,
    next_runs,
    refusing,
)
from depthkit.protocol.merged import merged_runs

TRIES = 3
"""Times a run without a verdict is started within one schedule."""

type Key = tuple[str, str]
"""Data set and task."""

type Scope = Literal["free", "ladder", "both", "evaluation", "merged"]
"""Free runs only, capped runs only, or either; or runs that evaluate models instead, or runs of
merged tasks by the first model, from the largest of the caps downward."""


def pending(
    history: Sequence[Run], models: Sequence[str], scope: Scope, *, caps: Sequence[int] = CAPS
) -> list[Planned]:
    """Runs of one task that may start now, within a scope; ``caps`` are those of its corpus."""
    if scope == "evaluation":
        return evaluation_runs(history, models)
    if scope == "merged":
        return merged_runs(history, models[0], original=ABOVE, caps=caps)
    found = next_runs(history, models, caps=caps, with_free=scope != "ladder")
    return [planned for planned in found if scope != "free" or planned.purpose == "free"]


def refused(
    histories: Mapping[Key, Sequence[Run]],
    models: Sequence[str],
    scope: Scope,
    new: Sequence[Run],
) -> list[str]:
    """Why tasks without a result got no run: the model they need refused them for good before.

    ``new`` are the runs made just now, which speak for themselves.
    """
    purposes = (scope,) if scope in ("evaluation", "merged") else ("free", "ladder")
    asked = models if scope == "evaluation" else models[:1]  # D stays final without a later one
    made = {(run.dataset, run.task_id, run.model) for run in new}
    return [
        f"{'/'.join(key)}: {model} has refused it several times and is not asked again; take it "
        "out, or measure it with other models into another corpus (--corpus)."
        for key, history in histories.items()
        for model in refusing([run for run in history if run.purpose in purposes], asked)
        if (*key, model) not in made
    ]


@dataclass(frozen=True)
class Most:
    """A bound of what a task may still need."""

    runs: int = 0
    turns: int = 0

    def __add__(self, other: Most) -> Most:
        return Most(self.runs + other.runs, self.turns + other.turns)


def most(
    key: Key,
    history: Sequence[Run],
    models: Sequence[str],
    scope: Scope,
    *,
    caps: Sequence[int] = CAPS,
) -> Most:
    """What a task may still need at most, of :func:`most_runs`."""
    runs = most_runs(key, history, models, scope, caps=caps)
    return Most(len(runs), sum(each.cap or CEILING for each in runs))


def most_runs(
    key: Key,
    history: Sequence[Run],
    models: Sequence[str],
    scope: Scope,
    *,
    caps: Sequence[int] = CAPS,
) -> list[Planned]:
    """Runs a task may still need at most: as if free runs passed late and every other failed.

    A merged task, which is measured downward, needs most if all of its runs pass.
    """
    imagined = list(history)
    runs: list[Planned] = []
    while planned := pending(imagined, models, scope, caps=caps):
        runs += planned
        imagined += [_worst(key, each, len(runs)) for each in planned]
    return runs


def _worst(key: Key, planned: Planned, number: int) -> Run:
    passes = planned.cap is None or planned.purpose == "merged"
    return Run(
        run_id=f"imagined-{number}-{planned.attempt}",
        dataset=key[0],
        task_id=key[1],
        model=planned.model,
        cap=planned.cap,
        attempt=planned.attempt,
        purpose=planned.purpose,
        verdict="passed" if passes else "failed",
        stop="submitted",
        turns=planned.cap or CEILING,
        provenance="scripted",
    )


@dataclass(frozen=True)
class Expected:
    """What some tasks may be expected to take still; ``None`` where no finished task tells.

    Attributes:
        runs: Runs.
        turns: Turns.
        usd: Dollars.
        minutes: Minutes of agents, to be divided by the trials at a time.
    """

    runs: float | None = None
    turns: float | None = None
    usd: float | None = None
    minutes: float | None = None


def expected_words(expected: Expected) -> str:
    """What to expect, in words."""
    if expected.runs is None:
        return "unknown, no task is finished yet"
    parts = [f"{expected.runs:.0f} runs"]
    if expected.turns is not None:
        parts.append(f"{expected.turns:.0f} turns")
    parts.append("cost unknown" if expected.usd is None else f"${expected.usd:.2f}")
    if expected.minutes is not None:
        parts.append(f"{clock(expected.minutes * 60)} of agents' time")
    return ", ".join(parts)


def clock(seconds: float) -> str:
    """Hours, minutes and seconds, such as 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


type _Sums = tuple[float | None, ...]


def expected(
    histories: Mapping[Key, Sequence[Run]],
    models: Sequence[str],
    scope: Scope,
    *,
    caps: Callable[[Key], Sequence[int]] = lambda _: CAPS,
) -> Expected:
    """What is left of these tasks, from those among them that are finished.

    A task is compared with the finished ones of its own data set, or where there is none with all.
    ``caps`` gives those of each task.
    """
    finished: dict[Key, _Sums] = {}
    left: dict[Key, _Sums] = {}
    for key, history in histories.items():
        counted = [run for run in history if _in_scope(run, scope)]
        if pending(history, models, scope, caps=caps(key)):
            left[key] = _sums(counted)
        elif any(run.valid for run in counted):
            finished[key] = _sums(counted)
    if not left:
        return Expected(0, 0, 0, 0)
    totals = [
        _total(column, left, finished) for column in range(len(Expected.__dataclass_fields__))
    ]
    return Expected(*totals)


def _total(column: int, left: Mapping[Key, _Sums], finished: Mapping[Key, _Sums]) -> float | None:
    total = 0.0
    for key, done in left.items():
        alike = {k: v for k, v in finished.items() if k[0] == key[0]} or finished
        known = [value for sums in alike.values() if (value := sums[column]) is not None]
        if not known:
            return None
        # One run more at the least, however much a task has had already.
        one = fmean(known) / fmean(sums[0] or 1 for sums in alike.values())
        total += max(fmean(known) - (done[column] or 0), one)
    return total


def _in_scope(run: Run, scope: Scope) -> bool:
    return run.purpose in (("free", "ladder") if scope == "both" else (scope,))


def _sums(runs: Sequence[Run]) -> _Sums:
    return (
        float(len(runs)),
        _sum([run.turns for run in runs if run.valid]),
        _sum([run.cost_usd for run in runs if run.valid]),
        _sum([run.agent_minutes for run in runs if run.valid]),
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(sum(known)) if known and len(known) == len(values) else None
