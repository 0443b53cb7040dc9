"""Intervals from bootstrap replicates (Efron & Tibshirani 1993, chapters 13 and 14)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from depthkit.stats.sample import Floats, SampleError, column, fraction


@dataclass(frozen=True)
class Interval:
    """A confidence interval; ``method`` is ``percentile``, ``BCa`` or ``Fisher``."""

    low: float
    high: float
    confidence: float
    method: str

    def __str__(self) -> str:
        return f"{self.low:+.2f} to {self.high:+.2f}"

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def percentile_interval(replicates: ArrayLike, confidence: float = 0.95) -> Interval:
    """From the quantiles of the replicates, interpolated linearly.

    Raises:
        SampleError: there are no replicates, or some are ``nan``: leave degenerate ones out, and
            count them.
    """
    tail = (1 - fraction(confidence, "confidence")) / 2
    low, high = np.quantile(_replicates(replicates), [tail, 1 - tail])
    return Interval(float(low), float(high), confidence, "percentile")


def bca_interval(
    value: float, replicates: ArrayLike, left_out: ArrayLike, confidence: float = 0.95
) -> Interval:
    """Bias-corrected and accelerated: quantiles moved by the bias and skewness of the statistic.

    Replicates equal to the value count half as below it, as in ``scipy.stats.bootstrap``.

    Args:
        value: The statistic of the sample.
        replicates: The statistic of each resample.
        left_out: The statistic of the sample without each of its rows (the jackknife).
        confidence: Between 0 and 1.

    Raises:
        SampleError: there is no such interval: no replicates, all on one side of the value, or a
            jackknife that is undefined or constant. The message says which.
    """
    found = _replicates(replicates)
    tail = (1 - fraction(confidence, "confidence")) / 2
    without = np.asarray(left_out, dtype=float)
    if undefined := int(np.isnan(without).sum()):
        raise SampleError(
            f"left_out is undefined for {undefined} rows: without it there is no statistic."
        )
    pulls = without.mean() - without
    spread = (pulls**2).sum()
    if not spread > 0:
        raise SampleError("left_out is the same whichever row is left out.")
    below = ((found < value).mean() + (found <= value).mean()) / 2
    if not 0 < below < 1:
        raise SampleError("replicates all lie on one side of the value.")
    bias, acceleration = ndtri(below), (pulls**3).sum() / (6 * spread**1.5)
    moved = bias + ndtri(np.array([tail, 1 - tail]))
    stretch = 1 - acceleration * moved
    if not (stretch > 0).all():
        raise SampleError("left_out is too skewed for this confidence.")
    low, high = np.quantile(found, ndtr(bias + moved / stretch))
    return Interval(float(low), float(high), confidence, "BCa")


def _replicates(replicates: ArrayLike) -> Floats:
    found = column(replicates, "replicates")
    if not len(found):
        raise SampleError("replicates is empty.")
    return found
