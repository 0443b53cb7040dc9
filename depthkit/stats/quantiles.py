"""Medians and percentiles as the papers use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from depthkit.protocol import ABOVE


def quantile(values: ArrayLike, q: float) -> float:
    """The ``q``-quantile of the values that are known, ``nan`` where none is.

    Between two values it interpolates linearly (numpy's default); the papers name no method, and
    with this one their printed medians and percentiles hold.

    Args:
        values: One number a task; ``nan`` where it is not known.
        q: Between 0 and 1.
    """
    known = np.asarray(values, dtype=float)
    known = known[~np.isnan(known)]
    return float(np.quantile(known, q)) if known.size else float("nan")


@dataclass(frozen=True)
class Spread:
    """A median between two percentiles, over ``n`` known values, as in Table 9."""

    value: float
    low: float
    high: float
    n: int
    method: str

    def __str__(self) -> str:
        if not self.n:
            return "\N{EN DASH}"
        value, low, high = (f"{each:,.0f}" for each in (self.value, self.low, self.high))
        return f"{value} [{low}, {high}]"


def spread(values: ArrayLike, low: float = 0.1, high: float = 0.9) -> Spread:
    """Median with the ``low`` and ``high`` quantiles of the known values, ``nan`` without any."""
    known = int((~np.isnan(np.asarray(values, dtype=float))).sum())
    return Spread(
        value=quantile(values, 0.5),
        low=quantile(values, low),
        high=quantile(values, high),
        n=known,
        method=f"median, {low:.0%} and {high:.0%} quantiles, interpolated linearly",
    )


@dataclass(frozen=True)
class DepthQuantile:
    """A quantile of D. ``above``: the true one is only known to be greater than ``value``."""

    value: float
    above: bool

    def __str__(self) -> str:
        if np.isnan(self.value):
            return "\N{EN DASH}"
        return f"{'>' if self.above else ''}{self.value:g}"


def depth_quantile(values: ArrayLike, q: float, *, caps: Sequence[int]) -> DepthQuantile:
    """The ``q``-quantile of D, where 99 stands for "above the largest cap".

    99 is no number of turns, so it is never averaged: a quantile that rests on such a task is
    given as a lower bound, with the largest cap in its place.

    Args:
        values: D of each task, 99 for above the largest cap; ``nan`` where there is none.
        q: Between 0 and 1.
        caps: The scale on which D was read.
    """
    depths = np.asarray(values, dtype=float)
    value = quantile(np.where(depths >= ABOVE, max(caps), depths), q)
    exact = quantile(depths, q)
    return DepthQuantile(value, above=bool(exact > value))
