"""Rank correlations, plain and partial, with intervals by bootstrap over tasks.

``pingouin.partial_corr(method="spearman")`` gives the same value where the sample determines one.
Where it does not, pingouin gives a number with at most a warning: the wrong sign for x and y of the
same ranks, the plain correlation for a covariate in the order of x. Here that is an error, and in a
resample a counted degenerate one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from depthkit.stats.bootstrap import Interval, bca_interval, percentile_interval
from depthkit.stats.permutation import freedman_lane
from depthkit.stats.ranks import COLLINEAR, Ranks, blocks, resampled
from depthkit.stats.sample import Floats, SampleError, column, count, fraction

RESAMPLES = 10_000
PERMUTATIONS = 9_999
"""With the sample itself 10,000, so that p-values have four decimals."""


@dataclass(frozen=True)
class Correlation:
    """A rank correlation over ``n`` tasks and how far it is to be trusted.

    An interval or p-value that there is not is ``None``; where the sample is the reason and not
    the caller, ``notes`` says why. ``degenerate`` of ``resamples`` resamples had no correlation
    and are left out of the bootstrap intervals.
    """

    value: float
    n: int
    method: str
    percentile: Interval | None
    bca: Interval | None
    fisher: Interval | None
    p_value: float | None
    resamples: int
    degenerate: int
    permutations: int
    seed: int
    notes: tuple[str, ...] = ()


def rank_partial_correlation(
    x: ArrayLike,
    y: ArrayLike,
    covariates: Sequence[ArrayLike],
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> Correlation:
    """Correlation of the ranks of x and y with the linear effect of the covariates' ranks removed.

    Conover & Iman (1981), as in Section 4.3. Equal values share the average of their ranks, so
    give means as exact fractions or rounded: floats that differ by rounding break ties.

    Args:
        x: One number a task. D = 99 (above the largest cap) takes part as the largest.
        y: One number a task; the one that the p-value takes for the outcome.
        covariates: One or more, each of one number a task.
        confidence: Of all intervals.
        resamples: Of the bootstrap over tasks, each ranked anew; 0 for no bootstrap intervals.
        permutations: For the p-value, see ``freedman_lane``; 0 for none.
        seed: Of resamples and permutations, each independent of whether the other is asked for.

    Raises:
        ArgumentError: confidence, resamples, permutations or seed is none.
        SampleError: something is missing or of another length, there are fewer than 3 more tasks
            than covariates, a column is constant, or the ranks are collinear: x or y or a
            covariate is determined by (other) covariates, or x by y and the covariates.
    """
    asked = _asked(confidence, resamples, permutations, seed)
    if not len(covariates):
        raise SampleError("covariates is empty; use spearman for a correlation without any.")
    columns = _columns(x, y, covariates)
    ranks = Ranks(list(columns.values()))
    value = float(ranks.correlations(ranks.whole())[0])
    if np.isnan(value) or _perfect(value):
        raise SampleError(_collinear(columns, ranks))
    many = f"{len(covariates)} covariate{'s' if len(covariates) > 1 else ''}"
    method = f"rank partial correlation, {many} (Conover & Iman 1981)"
    return _judged(columns, ranks, value, method, *asked)


def spearman(
    x: ArrayLike,
    y: ArrayLike,
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> Correlation:
    """Spearman's rank correlation; arguments, ties and errors as in ``rank_partial_correlation``.

    Ranks that are the same or reversed are no error here: the correlation is then 1 or -1.
    """
    asked = _asked(confidence, resamples, permutations, seed)
    columns = _columns(x, y, ())
    ranks = Ranks(list(columns.values()))
    value = float(ranks.correlations(ranks.whole())[0])
    method = "Spearman's rank correlation"
    return _judged(columns, ranks, value, method, *asked)


def fisher_interval(value: float, n: int, covariates: int, confidence: float = 0.95) -> Interval:
    """By Fisher's transformation, with standard error 1 / sqrt(n - covariates - 3).

    It takes the ranks for normal variables; where they are not, it tends to be too narrow.

    Raises:
        SampleError: too few tasks for a standard error, or a correlation of 1 or -1.
    """
    if n - covariates <= 3:
        raise SampleError(f"n is {n}, too few for {covariates} covariates: no standard error.")
    if _perfect(value):
        raise SampleError(f"value is {value:+.0f}, for which it is not defined.")
    half = -ndtri((1 - fraction(confidence, "confidence")) / 2) / np.sqrt(n - covariates - 3)
    low, high = np.tanh(np.arctanh(value) + np.array([-half, half]))
    return Interval(float(low), float(high), confidence, "Fisher")


def _perfect(value: float) -> bool:
    return 1 - value**2 < COLLINEAR


def _columns(x: ArrayLike, y: ArrayLike, covariates: Sequence[ArrayLike]) -> dict[str, Floats]:
    """The arguments by name, each checked by itself."""
    first = column(x, "x")
    columns = {"x": first, "y": column(y, "y", len(first))}
    for number, values in enumerate(covariates):
        name = f"covariates[{number}]"
        columns[name] = column(values, name, len(first))
    if len(first) < (least := len(covariates) + 3):
        raise SampleError(
            f"x has {len(first)} rows; with {len(covariates)} covariates there must be {least}."
        )
    for name, values in columns.items():
        if (values == values[0]).all():
            raise SampleError(f"{name} is constant ({values[0]:g}): it has no ranks to correlate.")
    return columns


def _collinear(columns: dict[str, Floats], ranks: Ranks) -> str:
    """Which argument is determined by which others."""
    doubled = dict(zip(columns, (each[:, 0] for each in ranks.doubled(ranks.whole())), strict=True))
    covariates = [name for name in columns if name.startswith("covariates")]
    for name in [*covariates[1:], "x", "y"]:
        others = covariates[: covariates.index(name)] if name in covariates else covariates
        if culprits := _determined(doubled, name, others):
            return f"{name} is determined by {culprits}: their ranks are collinear."
    culprits = _determined(doubled, "x", ["y"]) or _determined(doubled, "x", ["y", *covariates])
    return f"x is determined by {culprits}: their ranks are collinear."


def _determined(ranks: dict[str, Floats], name: str, others: Sequence[str]) -> str:
    """The others that alone or together determine the ranks of ``name``; empty if they do not."""
    for each in [[other] for other in others] + [list(others)]:
        basis = np.column_stack([ranks[other] for other in each])
        rest = ranks[name] - basis @ np.linalg.lstsq(basis, ranks[name])[0]
        if rest @ rest < COLLINEAR * (ranks[name] @ ranks[name]):
            return " and ".join(each)
    return ""


def _asked(
    confidence: float, resamples: int, permutations: int, seed: int
) -> tuple[float, int, int, int]:
    """What the caller asks for, checked before the sample, so that no sample hides a mistake."""
    return (
        fraction(confidence, "confidence"),
        count(resamples, "resamples"),
        count(permutations, "permutations"),
        count(seed, "seed"),
    )


def _judged(
    columns: dict[str, Floats],
    ranks: Ranks,
    value: float,
    method: str,
    confidence: float,
    resamples: int,
    permutations: int,
    seed: int,
) -> Correlation:
    """The correlation with its intervals and p-value."""
    n, notes = len(columns["x"]), list[str]()
    fisher = percentile = bca = None
    try:
        fisher = fisher_interval(value, n, len(columns) - 2, confidence)
    except SampleError as reason:
        notes.append(f"No Fisher interval: {reason}")
    found = replicates(ranks, n, resamples, seed)
    defined = found[~np.isnan(found)]
    if degenerate := len(found) - len(defined):
        notes.append(
            f"{degenerate} of {resamples} resamples have a constant or collinear column and are "
            "left out."
        )
    if resamples and not len(defined):
        notes.append("No bootstrap interval: every resample is degenerate.")
    elif resamples:
        percentile = percentile_interval(defined, confidence)
        without = np.concatenate([ranks.correlations(counts) for counts in ranks.left_out()])
        try:
            bca = bca_interval(value, defined, without, confidence)
        except SampleError as reason:
            notes.append(f"No BCa interval: {reason}")
    p_value = None
    if permutations:
        x, y, *covariates = (each[:, 0] for each in ranks.doubled(ranks.whole()))
        p_value = freedman_lane(x, y, covariates, permutations, seed)
    return Correlation(
        value=value,
        n=n,
        method=method,
        percentile=percentile,
        bca=bca,
        fisher=fisher,
        p_value=p_value,
        resamples=resamples,
        degenerate=degenerate,
        permutations=permutations,
        seed=seed,
        notes=tuple(notes),
    )


def replicates(ranks: Ranks, n: int, resamples: int, seed: int) -> Floats:
    """The correlation of each resample of n tasks, ``nan`` where it is degenerate."""
    rng = np.random.default_rng(seed)
    found = [ranks.correlations(resampled(n, size, rng)) for _, size in blocks(n, resamples)]
    return np.concatenate(found) if found else np.empty(0)
