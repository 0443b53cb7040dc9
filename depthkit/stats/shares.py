"""Shares reweighted to other proportions, and shares conditional on earlier ones."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from depthkit.stats.sample import SampleError, column, labels


@dataclass(frozen=True)
class ReweightedShare:
    """A share over ``n`` tasks with each label at its original proportion.

    ``unweighted`` is the share as sampled; ``covered`` the part of the original tasks whose labels
    the sample has, and ``absent`` the original labels that it lacks.
    """

    value: float
    unweighted: float
    n: int
    covered: float
    absent: tuple[Hashable, ...]
    method: str


def reweighted_share(
    hits: ArrayLike, label: ArrayLike, original: Mapping[Hashable, float]
) -> ReweightedShare:
    """The share of hits if each label had its original proportion of the tasks (Table 5).

    The mean over labels of each label's own share, weighted by the original proportions. Original
    labels that no given task has are left out, and the proportions of the others scaled to sum to
    1: with solved tasks given, that is any label without a solved task. The paper does not say
    more, so this is its sentence at its word ("share of solved tasks with D >= 5 when each label
    takes its original proportion"): the solved tasks take the proportions, not the sampled ones,
    so that different rates of solving do not enter.

    Args:
        hits: True or 1 for each task that has the property, False or 0 for one that has not.
        label: The label of each task.
        original: Number or proportion of the original tasks that carry each label.

    Raises:
        SampleError: no tasks, something is missing or of another length, a hit that is neither, a
            label that the original lacks, or a proportion that is not positive and finite.
    """
    yes = column(hits, "hits")
    if not len(yes):
        raise SampleError("hits is empty: there is no task to take a share of.")
    if not np.isin(yes, (0, 1)).all():
        raise SampleError("hits must be true or false (1 or 0) for each task.")
    codes, present = labels(label, "label", len(yes))
    for name, proportion in original.items():
        if not 0 < proportion < np.inf:
            raise SampleError(f"original[{name!r}] is {proportion!r}; it must be more than 0.")
    if unknown := [name for name in present if name not in original]:
        raise SampleError(f"original has no proportion for the label {unknown[0]!r}.")
    weights = np.array([original[name] for name in present], dtype=float)
    shares = np.bincount(codes, weights=yes) / np.bincount(codes)
    return ReweightedShare(
        value=float(shares @ weights / weights.sum()),
        unweighted=float(yes.mean()),
        n=len(yes),
        covered=float(weights.sum() / sum(original.values())),
        absent=tuple(name for name in original if name not in present),
        method="shares of labels, weighted by original proportions over the labels present",
    )


@dataclass(frozen=True)
class SegmentRates:
    """How ``n`` runs fare, segment by segment (Figure 6); tuples have one entry a segment.

    Attributes:
        value: Geometric mean of the conditional rates; ``None`` where one is undefined although
            no earlier one is 0.
        n: Runs.
        passing: Share that passes segment i, of the runs on tasks with at least i segments.
        conditional: Share that passes segment i, of the runs that reach it; ``None`` if none does.
        reached: Runs that reach segment i: they passed all earlier ones and their task has it.
        passed: Runs that pass segment i.
        method: How ``value`` was computed.
    """

    value: float | None
    n: int
    passing: tuple[float, ...]
    conditional: tuple[float | None, ...]
    reached: tuple[int, ...]
    passed: tuple[int, ...]
    method: str


def segment_rates(segments_passed: ArrayLike, segments: ArrayLike) -> SegmentRates:
    """Conditional pass rates of the segments, pooled over runs, and their geometric mean.

    The product of the conditional rates is the Kaplan-Meier estimate of passing all k segments, the
    runs on shorter tasks being censored where their task ends. Where all runs are on tasks of k
    segments, it is the share of runs that pass all k, so that the geometric mean is that share to
    the power 1 / k. With shorter tasks among them, the two are equal only if at the end of each
    shorter task its runs pass on as often as the runs on longer ones have by then; in general the
    product uses the shorter tasks for the early segments and the share of ``passing`` does not.

    A rate of 0 makes the mean 0, whatever the segments after it that no run reached.

    Args:
        segments_passed: For each run, how many segments it passed before it ended.
        segments: For each run, how many segments its task has.

    Raises:
        SampleError: no runs, something is missing or of another length, not whole numbers, or more
            segments passed than there are.
    """
    done = column(segments_passed, "segments_passed")
    length = column(segments, "segments", len(done))
    if not len(done):
        raise SampleError("segments_passed is empty: there are no runs.")
    for name, values, least in (("segments_passed", done, 0), ("segments", length, 1)):
        whole = np.isfinite(values) & (values == np.floor(values))
        if not (whole & (values >= least)).all():
            raise SampleError(f"{name} must hold whole numbers of at least {least}.")
    if (done > length).any():
        raise SampleError("segments_passed is more than segments in some runs.")
    numbers = np.arange(1, int(length.max()) + 1)[:, None]
    has, passes = length >= numbers, done >= numbers
    reached = (has & (done >= numbers - 1)).sum(axis=1)
    passed = passes.sum(axis=1)
    conditional = tuple(
        int(p) / int(r) if r else None for p, r in zip(passed, reached, strict=True)
    )
    return SegmentRates(
        value=_geometric_mean(conditional),
        n=len(done),
        passing=tuple((passed / has.sum(axis=1)).tolist()),
        conditional=conditional,
        reached=tuple(reached.tolist()),
        passed=tuple(passed.tolist()),
        method="geometric mean of the conditional pass rates, pooled over runs",
    )


def _geometric_mean(rates: tuple[float | None, ...]) -> float | None:
    if 0 in rates:
        return 0.0
    known = [rate for rate in rates if rate is not None]
    return float(np.exp(np.log(known).mean())) if len(known) == len(rates) else None
