"""Percentiles within groups, and the quadrants of depth and work of Section 4.3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from depthkit.stats.bootstrap import Interval, percentile_interval
from depthkit.stats.correlation import PERMUTATIONS, RESAMPLES
from depthkit.stats.permutation import SAME
from depthkit.stats.ranks import Ranks, blocks, resampled
from depthkit.stats.sample import Codes, Floats, SampleError, column, count, fraction, labels


def within_group_percentiles(values: ArrayLike, groups: ArrayLike) -> Floats:
    """Where each value stands among those of its group, strictly between 0 and 1.

    The share of the group below the value plus half the share equal to it, the value itself
    included (``scipy.stats.percentileofscore`` with ``kind="mean"``). So the mean over a group is
    1/2 whatever its size and ties, and a group of one has 1/2. The paper names no definition.

    Args:
        values: One number a task.
        groups: The group (data set) of each task.

    Raises:
        SampleError: something is missing or of another length.
    """
    numbers = column(values, "values")
    codes, _ = labels(groups, "groups", len(numbers))
    found = np.empty(len(numbers))
    for code in range(codes.max(initial=-1) + 1):
        members = codes == code
        ranks = Ranks([numbers[members]])
        found[members] = _percentiles(ranks, ranks.whole())[:, 0]
    return found


def _percentiles(ranks: Ranks, counts: Floats) -> Floats:
    """Of each row of a group (first axis) in each of its resamples (second axis)."""
    size = len(counts)
    return (ranks.doubled(counts)[0] + size) / (2 * size)


@dataclass(frozen=True)
class Quadrant:
    """Tasks that are or are not deep and large, with the mean of their percentiles.

    ``value`` is ``None`` where there are none; ``interval`` is the percentile bootstrap's, from
    the resamples that have some: ``degenerate`` have not.
    """

    deep: bool
    large: bool
    value: float | None
    n: int
    interval: Interval | None
    degenerate: int


@dataclass(frozen=True)
class QuadrantTest:
    """Are tasks that are both deep and large harder than the rest?

    ``value`` is the mean percentile of the tasks that are both, less that of all others (lower is
    harder); it and its p-value are ``None`` where there are no tasks of either kind.
    """

    value: float | None
    n: int
    method: str
    both: Quadrant
    deep_only: Quadrant
    large_only: Quadrant
    neither: Quadrant
    depth_split: float
    work_split: float
    p_value: float | None
    resamples: int
    permutations: int
    seed: int


def quadrant_test(
    depth: ArrayLike,
    work: ArrayLike,
    rates: ArrayLike,
    groups: ArrayLike,
    *,
    depth_split: float = 2,
    work_split: float | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> QuadrantTest:
    """Mean within-group percentile of the pass rate in the four quadrants of depth and work.

    Section 4.3 splits "at D = 2 and at the median W". What it leaves open is read thus:

    - Deep is D >= 2 and large is W >= its median: the paragraph before it counts the tasks with
      D >= 2, and half of the human-curated tasks have D = 1. For W > the median, give
      ``work_split=numpy.nextafter(median, numpy.inf)``.
    - The median is that over all given tasks together, not one for each group: "the median W".
    - A percentile is a task's place among the given tasks of its group; to place it among more
      (all tasks with a public rate), there is ``within_group_percentiles``.

    The paper states no interval and no test. The intervals are from a bootstrap over the tasks of
    each group, with percentiles taken anew and both splits held. The p-value is two-sided; its null
    hypothesis is that within a group the pass rates are exchangeable, so it permutes them there,
    and counts as ``freedman_lane`` does.

    Args:
        depth: D of each task; 99 for above the largest cap.
        work: W of each task.
        rates: Pass rate of each task; equal ones must be exactly equal.
        groups: The group (data set) of each task.
        depth_split: The least D of a deep task.
        work_split: The least W of a large task; ``None`` for the median.
        confidence: Of the intervals.
        resamples: 0 for no intervals.
        permutations: 0 for no p-value.
        seed: Of resamples and permutations.

    Raises:
        ArgumentError: confidence, resamples, permutations or seed is none.
        SampleError: no tasks, or something is missing or of another length.
    """
    resamples, permutations = count(resamples, "resamples"), count(permutations, "permutations")
    fraction(confidence, "confidence")
    seed = count(seed, "seed")
    passed = column(rates, "rates")
    if not len(passed):
        raise SampleError("rates is empty: there are no tasks.")
    depths, lines = column(depth, "depth", len(passed)), column(work, "work", len(passed))
    codes, _ = labels(groups, "groups", len(passed))
    least = float(np.median(lines)) if work_split is None else float(work_split)
    deep, large = depths >= depth_split, lines >= least
    kinds = 2 * deep.astype(np.intp) + large
    percentiles = within_group_percentiles(passed, codes)
    means = _resampled_means(passed, codes, kinds, resamples, seed)
    quadrants = [_quadrant(kind, kinds, percentiles, means[kind], confidence) for kind in range(4)]
    both = kinds == 3
    value = p_value = None
    if 0 < both.sum() < len(both):
        contrast = both / both.sum() - ~both / (~both).sum()
        value = float(contrast @ percentiles)
        if permutations:
            p_value = _permuted(percentiles, codes, contrast, permutations, seed)
    return QuadrantTest(
        value=value,
        n=len(passed),
        method="mean within-group percentile (mid-rank), deep and large less all others",
        both=quadrants[3],
        deep_only=quadrants[2],
        large_only=quadrants[1],
        neither=quadrants[0],
        depth_split=float(depth_split),
        work_split=least,
        p_value=p_value,
        resamples=resamples,
        permutations=permutations,
        seed=seed,
    )


def _quadrant(
    kind: int, kinds: Codes, percentiles: Floats, means: Floats, confidence: float
) -> Quadrant:
    members = kinds == kind
    defined = means[~np.isnan(means)]
    return Quadrant(
        deep=kind >= 2,
        large=bool(kind % 2),
        value=float(percentiles[members].mean()) if members.any() else None,
        n=int(members.sum()),
        interval=percentile_interval(defined, confidence) if len(defined) else None,
        degenerate=len(means) - len(defined),
    )


def _resampled_means(
    values: Floats, codes: Codes, kinds: Codes, resamples: int, seed: int
) -> Floats:
    """Mean percentile of each kind in each resample, (4, resamples); ``nan`` where it has none."""
    rng = np.random.default_rng(seed)
    groups = [np.flatnonzero(codes == code) for code in range(codes.max() + 1)]
    ranked = [Ranks([values[members]]) for members in groups]
    belongs = (kinds == np.arange(4)[:, None]).astype(float)
    found = np.empty((4, resamples))
    for start, size in blocks(len(values), resamples):
        sums, drawn = np.zeros((4, size)), np.zeros((4, size))
        for members, ranks in zip(groups, ranked, strict=True):
            counts = resampled(len(members), size, rng)
            sums += belongs[:, members] @ (counts * _percentiles(ranks, counts))
            drawn += belongs[:, members] @ counts
        found[:, start : start + size] = np.where(drawn > 0, sums, np.nan) / np.maximum(drawn, 1)
    return found


def _permuted(
    percentiles: Floats, codes: Codes, contrast: Floats, permutations: int, seed: int
) -> float:
    """Two-sided p-value of the contrast of percentiles, permuted within groups."""
    reached = abs(contrast @ percentiles) - SAME
    rng = np.random.default_rng([seed, 1])
    groups = [np.flatnonzero(codes == code) for code in range(codes.max() + 1)]
    extreme = 0
    for _, size in blocks(len(codes), permutations):
        found = np.zeros(size)
        for members in groups:
            mixed = rng.permuted(np.tile(percentiles[members], (size, 1)), axis=1)
            found += mixed @ contrast[members]
        extreme += int((np.abs(found) >= reached).sum())
    return (extreme + 1) / (permutations + 1)
