"""The measurement protocol: caps, what the agent is told, which runs come next, and estimates.

Pure: no I/O, no clock. This is the only module that knows how depth follows from runs (Section
3.1 and Appendix B of the Depth paper, and the reference README's "Measurement Protocol");
scheduler, corpus, artifacts and tests call it.

What counts as evidence, for one task:

* only runs of terminus-2, since turns of other agents are something else;
* of these only runs with purpose ``free`` and no cap, of the first model, and runs with purpose
  ``ladder`` and a cap of the protocol, of any model of the set; evaluation and other runs never
  count;
* only valid runs (verdict not ``none``): the same attempt may start again after a ``none``;
* of one attempt that was run more than once, the valid run that started first (``run_id`` breaks
  ties), and of several attempts the first two by number. So the estimate depends on which runs
  are there, not on the order in which they finished or are listed;
* a suspect run is a result, but not a pass; an estimate that would be another if it were one is
  not final;
* a model that refuses a task for good (:func:`refusing`) is passed over: a later one has no
  estimate of its own and holds up nobody's, without the first there is none at all.

A passing free run of unknown length leaves N unknown, and with it which caps count as passed: the
task is then solved with R known, but N and D stay null and no ladder run starts. N is never taken
from the other free run alone, which would only bound it from above.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

from depthkit.errors import DepthkitError
from depthkit.model import Estimate, Run
from depthkit.protocol.wording import cap_statement, next_part, opening

__all__ = [
    "ABOVE",
    "CAPS",
    "CEILING",
    "EARLY",
    "FREE_RUNS",
    "REFUSALS",
    "RUNS_PER_CAP",
    "Planned",
    "cap_statement",
    "counted_runs",
    "depth_text",
    "estimate",
    "evaluation_runs",
    "first_of_attempts",
    "missing_attempts",
    "next_part",
    "next_runs",
    "opening",
    "refusing",
    "run_of_d",
    "run_of_n",
]

CAPS: tuple[int, ...] = (1, 2, 3, 5, 10, 20, 40, 80)
"""The turn caps of Section 3.1, in increasing order."""

ABOVE = 99
"""D of a task that passes only above the largest cap (drawn as ``>80``)."""

CEILING = 150
"""Turns after which a run without a stated cap is stopped (Appendix B)."""

FREE_RUNS = 2
"""Runs of the first model without a stated cap."""

EARLY = 3
"""A failed run that first claims completion in this turn or before was submitted early."""

RUNS_PER_CAP = 2
"""Most runs of one model under one cap; the second is skipped once the first passes."""


def depth_text(depth: float | None, caps: Sequence[int]) -> str:
    """D as people read it: ``>80`` above the largest cap, nothing if unknown."""
    if depth is None or depth != depth:
        return ""
    return f">{caps[-1] if caps else ''}" if depth >= ABOVE else f"{depth:g}"


REFUSALS = 3
"""Refusals since its last result after which a model is asked no more about a task."""


@dataclass(frozen=True)
class Planned:
    """A run that may start: of which model, under which stated cap, for which purpose."""

    model: str
    cap: int | None
    attempt: int
    purpose: Literal["free", "ladder", "evaluation", "merged"]


def next_runs(
    history: Iterable[Run],
    models: Sequence[str],
    *,
    caps: Sequence[int] = CAPS,
    with_free: bool = True,
) -> list[Planned]:
    """Runs of one task that may start now, given the runs that have finished.

    All of them may run at once, because none depends on another's outcome: both free runs, or one
    ladder run. Runs in flight are not known here; the caller leaves out what it has already
    started.

    Args:
        history: Finished runs of one task, in any order; runs of other models or purposes and
            runs without a verdict may be among them.
        models: The model set; the first makes the free runs, each later one only tries caps
            below the smallest estimate so far.
        caps: Turn caps in increasing order.
        with_free: Whether missing free runs may start. Without two valid free runs no ladder run
            starts either.

    Returns:
        Empty once no further run could change the estimate (or free runs are missing and
        ``with_free`` is off).

    Raises:
        DepthkitError: ``models`` or ``caps`` is unusable.
        ValueError: ``history`` mixes several tasks.
    """
    ladder = _climb(history, models, caps)
    if not with_free and any(planned.purpose == "free" for planned in ladder.pending):
        return []
    return ladder.pending


def evaluation_runs(history: Iterable[Run], models: Sequence[str]) -> list[Planned]:
    """Missing evaluation runs of one task: :data:`FREE_RUNS` a model, none with a stated cap.

    They are separate from the runs that measure depth, the first model's too (Appendix I). A model
    that refuses them is passed over.

    Args:
        history: Finished runs of the task, of any purpose.
        models: The models to evaluate.
    """
    runs = [run for run in history if run.purpose == "evaluation"]
    done = {(run.model, run.attempt) for run in runs if run.valid}
    refused = refusing(runs, models)
    return [
        Planned(model, None, attempt, "evaluation")
        for model in models
        for attempt in range(1, FREE_RUNS + 1)
        if (model, attempt) not in done and model not in refused
    ]


def refusing(runs: Iterable[Run], models: Sequence[str]) -> list[str]:
    """Models that have refused a task for good: :data:`REFUSALS` times since their last result.

    Args:
        runs: Finished runs of one task and of the purposes that are asked about, in any order.
        models: The models to tell of.
    """
    refusals = dict.fromkeys(models, 0)
    for run in sorted(runs, key=_age):
        if run.model in refusals:
            if run.valid:
                refusals[run.model] = 0
            elif run.stop == "refused":
                refusals[run.model] += 1
    return [model for model, count in refusals.items() if count >= REFUSALS]


def estimate(
    history: Iterable[Run],
    models: Sequence[str],
    *,
    caps: Sequence[int] = CAPS,
    dataset: str,
    task_id: str,
) -> Estimate:
    """What the finished runs of one task say about its depth.

    ``D`` is the smallest estimate so far, so it can still fall while ``final`` is false.
    ``D_by_model`` names every model of the set, in order; a later model without an estimate below
    the earlier ones has ``None``. An unsolved task has ``R`` 0 and neither ``N`` nor ``D``.

    Args:
        history: As for :func:`next_runs`.
        models: The model set, in order.
        caps: Turn caps in increasing order.
        dataset: Data set of the task.
        task_id: The task.

    Raises:
        DepthkitError: ``models`` or ``caps`` is unusable.
        ValueError: ``history`` holds a run of another task.
    """
    history = list(history)
    ladder = _climb(history, models, caps, task=(dataset, task_id))
    free = ladder.free
    known = len(free) == FREE_RUNS
    estimates = [d for d in ladder.d_by_model.values() if d is not None]
    return Estimate(
        dataset=dataset,
        task_id=task_id,
        solved=any(run.passed for run in free) if known else None,
        N=ladder.n,
        R=sum(run.passed for run in free) / FREE_RUNS if known else None,
        D=min(estimates, default=None),
        D_by_model=ladder.d_by_model,
        lowest_passing_cap=ladder.lowest_passing_cap,
        final=ladder.settled and not _hangs_on_a_suspect(ladder, history, models, caps),
    )


def _hangs_on_a_suspect(
    ladder: _Ladder, history: Sequence[Run], models: Sequence[str], caps: Sequence[int]
) -> bool:
    """Whether the estimate would be another if the passes that may be forged were passes."""
    if not any(run.suspect for run in history):
        return False
    believed = [run.model_copy(update={"suspect": False}) for run in history]
    other = _climb(believed, models, caps)
    passed, others = ([run.passed for run in each.free] for each in (ladder, other))
    same = (passed, ladder.n, ladder.d_by_model) == (others, other.n, other.d_by_model)
    return not same or not other.settled


def run_of_n(history: Iterable[Run], models: Sequence[str]) -> Run | None:
    """The free run that gives N, of which Table 1 reports minutes and tokens.

    Of two passing free runs of equal length, the first attempt. ``None`` where N is null.
    """
    ladder = _climb(history, models, CAPS)
    if ladder.n is None:
        return None
    return next(run for run in ladder.free if run.passed and run.turns == ladder.n)


def first_of_attempts(runs: Iterable[Run]) -> list[Run]:
    """Of each attempt on a task, the valid run that started first; by task, purpose, model, cap."""
    attempts: dict[tuple[str, str, str, str, int, int], Run] = {}
    for run in runs:
        if run.valid:
            key = (run.dataset, run.task_id, run.purpose, run.model, run.cap or 0, run.attempt)
            attempts[key] = min(attempts.get(key, run), run, key=_age)
    return [attempts[key] for key in sorted(attempts)]


def run_of_d(
    history: Iterable[Run], models: Sequence[str], *, caps: Sequence[int] = CAPS
) -> Run | None:
    """The first model's passing run at the smallest cap it passes.

    Where that cap counts as passed without being run, the free run that gives N. ``None`` where
    the model has no estimate.
    """
    history = list(history)
    ladder = _climb(history, models, caps)
    lowest = ladder.d_by_model[models[0]]
    runs = counted_runs(history, models[:1], caps=caps)
    at_cap = (run for run in runs if run.passed and run.cap == lowest)
    return None if lowest is None else next(at_cap, None) or run_of_n(history, models)


def counted_runs(
    history: Iterable[Run], models: Sequence[str], *, caps: Sequence[int] = CAPS
) -> list[Run]:
    """The runs of one task that count as evidence: valid, at most two of a kind, in order.

    Args:
        history: As for :func:`next_runs`.
        models: The model set, in order.
        caps: Turn caps in increasing order.
    """
    slots = _counted(history, models, caps, None)
    return [run for runs in slots.values() for run in runs[:RUNS_PER_CAP]]


@dataclass
class _Ladder:
    """How far the runs of one task have come."""

    free: list[Run]
    """Valid free runs of the first model that count, by attempt; at most two."""
    d_by_model: dict[str, int | None]
    pending: list[Planned] = field(default_factory=list)
    settled: bool = True
    """Whether all that the first model was to tell is known, and nothing is pending."""
    n: int | None = None
    lowest_passing_cap: int | None = None


def _climb(
    history: Iterable[Run],
    models: Sequence[str],
    caps: Sequence[int],
    task: tuple[str, str] | None = None,
) -> _Ladder:
    """Follow the protocol through the finished runs, up to the first run that is missing."""
    if not models or len(set(models)) != len(models):
        raise DepthkitError(
            f"models is {list(models)}; name at least one model, and each only once."
        )
    if not caps or list(caps) != sorted(set(caps)) or caps[0] < 1 or caps[-1] >= ABOVE:
        raise DepthkitError(
            f"caps is {list(caps)}; give increasing whole numbers from 1 to {ABOVE - 1}."
        )
    history = list(history)
    slots = _counted(history, models, caps, task)
    refused = refusing((run for run in history if run.purpose in ("free", "ladder")), models)
    first = models[0]
    ladder = _Ladder(
        free=slots.get((first, None), [])[:FREE_RUNS],
        d_by_model=dict.fromkeys(models),
        lowest_passing_cap=min(
            (
                cap
                for (_, cap), runs in slots.items()
                if cap is not None and any(run.passed for run in runs)
            ),
            default=None,
        ),
    )
    missing = [
        Planned(first, None, attempt, "free")
        for attempt in missing_attempts(ladder.free, FREE_RUNS)
    ]
    if missing:
        return replace(ladder, settled=False, pending=[] if first in refused else missing)
    passing = [run.turns for run in ladder.free if run.passed]
    known = [turns for turns in passing if turns is not None]
    if not passing or len(known) < len(passing):
        return ladder  # unsolved, or solved in an unknown number of turns
    ladder.n = min(known)
    # Caps at or above N count as passed without being run.
    bound = next((cap for cap in caps if cap >= ladder.n), ABOVE)
    for model in models:
        lowest, planned = _first_passing_cap(slots, model, [cap for cap in caps if cap < bound])
        if planned is not None:
            if model not in refused:
                return replace(ladder, settled=False, pending=[planned])
            if model == first:
                return replace(ladder, settled=False)
        if lowest is None and model == first:
            lowest = bound
        if lowest is not None:
            ladder.d_by_model[model] = bound = lowest
    return ladder


def _first_passing_cap(
    slots: dict[tuple[str, int | None], list[Run]], model: str, caps: Sequence[int]
) -> tuple[int | None, Planned | None]:
    """Lowest of these caps that the model passes, or else the run that is missing to tell."""
    for cap in caps:
        runs = slots.get((model, cap), [])[:RUNS_PER_CAP]
        if any(run.passed for run in runs):
            return cap, None
        missing = missing_attempts(runs, RUNS_PER_CAP)
        if missing:
            return None, Planned(model, cap, missing[0], "ladder")
    return None, None


def missing_attempts(runs: Sequence[Run], wanted: int) -> list[int]:
    """Attempt numbers still to be run until there are ``wanted`` valid runs."""
    done = {run.attempt for run in runs}
    free_numbers = [attempt for attempt in range(1, wanted + 1) if attempt not in done]
    return free_numbers[: wanted - len(runs)]


def _counted(
    history: Iterable[Run],
    models: Sequence[str],
    caps: Sequence[int],
    task: tuple[str, str] | None,
) -> dict[tuple[str, int | None], list[Run]]:
    """Valid runs that may count, by model and cap (``None``: free), one an attempt, in order."""
    counting = []
    for run in history:
        if task is None:
            task = (run.dataset, run.task_id)
        if (run.dataset, run.task_id) != task:
            raise ValueError(f"run {run.run_id} is of {run.dataset}/{run.task_id}, not {task}")
        free = run.purpose == "free" and run.cap is None and run.model == models[0]
        ladder = run.purpose == "ladder" and run.cap in caps and run.model in models
        if (free or ladder) and run.agent is None:
            counting.append(run)
    slots: dict[tuple[str, int | None], list[Run]] = {}
    for run in first_of_attempts(counting):
        slots.setdefault((run.model, run.cap), []).append(run)
    return slots


def _age(run: Run) -> tuple[bool, datetime, str]:
    """Sorts the runs of one attempt by start; one without a start time comes last."""
    started = run.started or datetime.max
    aware = started if started.tzinfo else started.replace(tzinfo=UTC)
    return run.started is None, aware, run.run_id
