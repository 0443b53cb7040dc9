"""Local search: swap what tasks have until statistics of the whole agree with printed ones.

Whether a change stays hangs on comparing two sums, often equal ones. So these are exact up to the
last rounding: else the order in which a processor adds numbers up would decide where a search goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthkit.fitting.targets import Targets

type Floats = NDArray[np.float64]
type Undo = Callable[[], None]

CLOSE = 0.85
"""How much of its tolerance a statistic may be off before it counts."""


@dataclass(frozen=True)
class Goal:
    """Statistics, computed together, that should come within ``tolerances`` of ``targets``."""

    names: tuple[str, ...]
    statistics: Callable[[], Any]
    targets: Floats
    tolerances: Floats

    def misses(self) -> Floats:
        """How far each is off in tolerances, 0 if close enough."""
        off = np.abs(np.asarray(self.statistics(), float) - self.targets) / self.tolerances
        return np.where(np.isfinite(off), np.maximum(0.0, off - CLOSE), 1e3)


def goal(
    targets: Targets,
    names: str | Sequence[str],
    statistics: Callable[[], Any],
    tolerance: float | None = None,
) -> Goal:
    """A goal for printed numbers, within half a unit of the last digit if not said otherwise."""
    ids = (names,) if isinstance(names, str) else tuple(names)
    halves = [tolerance or targets(name).half for name in ids]
    return Goal(ids, statistics, np.array([targets.number(n) for n in ids]), np.array(halves))


def search(
    goals: Sequence[Goal],
    propose: Callable[[], Undo | None],
    rng: np.random.Generator,
    *,
    steps: int,
    heat: float = 2.0,
) -> float:
    """Simulated annealing.

    Args:
        goals: What to reach.
        propose: Makes one random change and returns what takes it back; ``None`` if it made none.
        rng: Decides whether a change for the worse stays.
        steps: Most changes to try.
        heat: Temperature to begin with; it falls to nothing.

    Returns:
        The sum of misses that is left; 0 once every goal is reached.
    """
    loss = _loss(goals)
    for step in range(steps):
        if loss == 0:
            break
        undo = propose()
        if undo is None:
            continue
        # Without heat nothing worse is kept, so goals that cost more need not be worked out for it
        found = _loss(goals, np.inf if heat else loss)
        temperature = heat * (1 - step / steps) ** 3
        if found <= loss or rng.random() < math.exp((loss - found) / max(temperature, 1e-9)):
            loss = found
        else:
            undo()
    return loss


def _loss(goals: Sequence[Goal], limit: float = np.inf) -> float:
    """The sum of misses, or a part of it that exceeds ``limit``."""
    total = 0.0
    for each in goals:
        miss = each.misses()
        # Far misses count in proportion, near ones also by their square, so that none is given up
        total += math.fsum(miss + np.minimum(miss, miss**2))
        if total > limit:
            break
    return total


def met(goals: Sequence[Goal]) -> bool:
    """Whether everything printed agrees, if not by the margin searched for."""
    return all((each.misses() <= 1 - CLOSE).all() for each in goals)


def off(goals: Sequence[Goal]) -> str:
    """What is not reached, with its value and target."""
    said = []
    for each in goals:
        values = np.atleast_1d(np.asarray(each.statistics(), float))
        said += [
            f"{each.names[i]} {values[i]:.4g} for {each.targets[i]:.4g}"
            for i in np.flatnonzero(each.misses())
        ]
    return ", ".join(said)


def swap(column: NDArray[Any], i: int, j: int) -> Undo:
    """Exchange two entries."""
    column[i], column[j] = column[j], column[i]

    def undo() -> None:
        column[i], column[j] = column[j], column[i]

    return undo


def together(*undos: Undo) -> Undo:
    """Take several changes back."""

    def undo() -> None:
        for each in undos:
            each()

    return undo


def whole_ranks(values: Any) -> Floats:
    """Twice the average ranks, less their mean: whole numbers, whose products add up exactly."""
    column = np.asarray(values, float)
    ordered = np.sort(column)
    # Several times faster than scipy's rankdata on columns so short
    doubled = ordered.searchsorted(column) + ordered.searchsorted(column, "right")
    return np.asarray(doubled - len(column), dtype=float)


def correlation_of(x: Floats, y: Floats) -> float:
    """Correlation of two columns of whole ranks; ``nan`` where there is none."""
    rest = _product(x, x) * _product(y, y)
    return _product(x, y) / math.sqrt(rest) if rest else math.nan


def partial_of(x: Floats, y: Floats, given: Floats) -> float:
    """Partial correlation of columns of whole ranks; ``nan`` where there is none."""
    xg, yg, gg = _product(x, given), _product(y, given), _product(given, given)
    rest = (_product(x, x) * gg - xg * xg) * (_product(y, y) * gg - yg * yg)
    return (_product(x, y) * gg - xg * yg) / math.sqrt(rest) if rest else math.nan


def _product(x: Floats, y: Floats) -> int:
    # Floats add up whole numbers of this size exactly, in whatever order a processor adds them
    return int(x @ y)


def partial(x: Any, y: Any, given: Any) -> float:
    """Rank partial correlation of x and y given the third; ``nan`` where there is none."""
    return partial_of(whole_ranks(x), whole_ranks(y), whole_ranks(given))


def rank_correlation(x: Any, y: Any) -> float:
    """Spearman's; ``nan`` where there is none."""
    return correlation_of(whole_ranks(x), whole_ranks(y))
