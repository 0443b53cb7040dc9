"""Samples that hit printed quantiles and means exactly, by construction.

A sample is numbers on a grid, each between bounds of its own. To pin a quantile is to move the
numbers nearest to it there and to bound the others, so that whatever moves later keeps it. A mean
is then reached within these bounds.
"""

from __future__ import annotations

from math import ceil, floor

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from depthkit.errors import DepthkitError

type Floats = NDArray[np.float64]
type Mask = NDArray[np.bool_]


def spread_out(rng: np.random.Generator, n: int, median: float, sigma: float) -> Floats:
    """``n`` log-normal numbers in random order: the quantiles themselves, not draws of them."""
    return rng.permutation(median * np.exp(sigma * ndtri((np.arange(n) + 0.5) / n)))


class Pins:
    """A sample under construction.

    Args:
        values: To begin with; they are put on the grid and within the bounds.
        low: The least that each may become; one number or one for each.
        high: The most.
        step: Of the grid.
    """

    def __init__(
        self, values: ArrayLike, low: ArrayLike, high: ArrayLike, step: float = 1.0
    ) -> None:
        start = np.asarray(values, dtype=float)
        self.step = step
        self.low = np.broadcast_to(np.asarray(low, dtype=float), start.shape).copy()
        self.high = np.broadcast_to(np.asarray(high, dtype=float), start.shape).copy()
        if (self.low > self.high).any():
            raise DepthkitError("a sample has a lower bound above its upper bound.")
        self.values = np.clip(self._grid(start), self.low, self.high)

    def _grid(self, values: Floats) -> Floats:
        return np.round(np.round(values / self.step) * self.step, 9)

    def pin(self, q: float, value: float, of: Mask | None = None) -> None:
        """Make the ``q``-quantile (linear) of the members exactly ``value``, now and later on.

        Args:
            q: From 0 to 1.
            value: On the grid.
            of: The members; all by default.

        Raises:
            DepthkitError: The bounds leave no way.
        """
        members = self._members(of)
        place = q * (len(members) - 1)
        below, above = floor(round(place, 9)), ceil(round(place, 9))
        forced_down = members[self.high[members] < value]
        forced_up = members[self.low[members] > value]
        free = np.setdiff1d(members, np.concatenate([forced_down, forced_up]))
        free = free[np.argsort(self.values[free], kind="stable")]
        first, last = below - len(forced_down), above - len(forced_down)
        if first < 0 or last >= len(free):
            raise DepthkitError(f"a {q:.0%} quantile of {value:g} contradicts earlier pins.")
        self.high[free[:first]] = np.minimum(self.high[free[:first]], value)
        self.low[free[last + 1 :]] = np.maximum(self.low[free[last + 1 :]], value)
        self.low[free[first : last + 1]] = self.high[free[first : last + 1]] = value
        self.values = np.clip(self.values, self.low, self.high)

    def count(self, low: float, high: float, wanted: int, of: Mask | None = None) -> None:
        """Make exactly so many members lie from ``low`` to ``high``, now and later on.

        Raises:
            DepthkitError: The bounds leave no way.
        """
        members = self._members(of)
        inside = (self.values[members] >= low) & (self.values[members] <= high)
        nearest = np.minimum(
            np.abs(self.values[members] - low), np.abs(self.values[members] - high)
        )
        for i in np.argsort(nearest, kind="stable"):
            if inside.sum() == wanted:
                break
            task = members[i]
            if inside.sum() < wanted and not inside[i]:
                goal = low if self.values[task] < low else high
                if self.low[task] <= goal <= self.high[task]:
                    self.values[task], inside[i] = goal, True
            elif inside.sum() > wanted and inside[i]:
                for goal in (low - self.step, high + self.step):
                    if self.low[task] <= goal <= self.high[task]:
                        self.values[task], inside[i] = goal, False
                        break
        if inside.sum() != wanted:
            raise DepthkitError(f"{wanted} values from {low:g} to {high:g} contradict the pins.")
        for i, task in enumerate(members):
            if inside[i]:
                self.low[task], self.high[task] = (
                    max(self.low[task], low),
                    min(self.high[task], high),
                )
            elif self.values[task] < low:
                self.high[task] = min(self.high[task], low - self.step)
            else:
                self.low[task] = max(self.low[task], high + self.step)

    def mean(self, target: float, of: Mask | None = None) -> None:
        """Move the members, in proportion to the room they have, until their mean is ``target``.

        It is then off by less than half a step over the number of members.

        Raises:
            DepthkitError: The bounds leave no way.
        """
        members = self._members(of)
        values, low, high = self.values[members], self.low[members], self.high[members]
        total = round(target * len(members) / self.step) * self.step
        if not low.sum() - self.step / 2 <= total <= high.sum() + self.step / 2:
            raise DepthkitError(f"a mean of {target:g} contradicts earlier pins.")
        bound = high if values.sum() < total else low
        room = (bound - values).sum()
        share = (total - values.sum()) / room if room else 0.0
        values = np.clip(self._grid(values + share * (bound - values)), low, high)
        # What rounding leaves is spread over the members, one step each
        while abs(gap := total - values.sum()) > self.step / 2:
            move = np.sign(gap) * self.step
            able = np.flatnonzero((values + move <= high + 1e-9) & (values + move >= low - 1e-9))
            able = able[: max(1, round(abs(gap) / self.step))]
            values[able] = self._grid(values[able] + move)
        self.values[members] = values

    def _members(self, of: Mask | None) -> NDArray[np.intp]:
        return np.arange(len(self.values)) if of is None else np.flatnonzero(of)


def share_out(parts: Floats, low: Floats, high: Floats, total: float) -> Floats:
    """Whole numbers between their bounds that add up to ``total``, near ``parts``.

    Raises:
        DepthkitError: The bounds leave no way.
    """
    pins = Pins(parts, low, high)
    pins.mean(total / len(parts))
    return pins.values
