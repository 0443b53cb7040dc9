"""Tasks whose segments were merged into one instruction: measured downward (Appendix H)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from depthkit.model import Run
from depthkit.protocol import (
    ABOVE,
    CAPS,
    RUNS_PER_CAP,
    Planned,
    first_of_attempts,
    missing_attempts,
    refusing,
)


def merged_depth(
    history: Iterable[Run], model: str, *, original: int, caps: Sequence[int] = CAPS
) -> int | None:
    """D of a task whose segments were merged into one instruction (Appendix H).

    Caps up to the original D are tried from the largest downward, with :data:`RUNS_PER_CAP` runs
    each and no free runs, until all runs of a cap fail; D is the smallest cap passed, :data:`ABOVE`
    if the largest of these fails, and ``None`` while runs are missing.

    Args:
        history: Runs of the merged task; only those with purpose ``merged`` count.
        model: The one that is measured with.
        original: D before, by the same model; all caps are tried if it is :data:`ABOVE`.
        caps: Turn caps in increasing order.
    """
    lowest = ABOVE
    for cap, runs in _downward(history, model, original, caps):
        if any(run.passed for run in runs):
            lowest = cap
        else:
            return lowest if len(runs) == RUNS_PER_CAP else None
    return lowest


def merged_runs(
    history: Iterable[Run], model: str, *, original: int, caps: Sequence[int] = CAPS
) -> list[Planned]:
    """Runs of a merged task that may start now: those still missing of the next cap downward.

    Both runs of a cap are made, whatever the first gives. The arguments are those of
    :func:`merged_depth`, which is known once this is empty, unless the model refuses the task.
    """
    history = list(history)
    if refusing((run for run in history if run.purpose == "merged"), [model]):
        return []
    for cap, runs in _downward(history, model, original, caps):
        if missing := missing_attempts(runs, RUNS_PER_CAP):
            return [Planned(model, cap, attempt, "merged") for attempt in missing]
        if not any(run.passed for run in runs):
            break
    return []


def _downward(
    history: Iterable[Run], model: str, original: int, caps: Sequence[int]
) -> Iterator[tuple[int, list[Run]]]:
    """Caps up to the original D from the largest down, each with its runs of a merged task."""
    counting = first_of_attempts(r for r in history if r.purpose == "merged" and r.model == model)
    for cap in reversed([cap for cap in caps if cap <= original]):
        yield cap, [run for run in counting if run.cap == cap][:RUNS_PER_CAP]
