"""Statistics as the papers use them: arrays in, numbers out."""

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
