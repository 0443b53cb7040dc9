"""D of the solved tasks of the audited data sets, from both models and from the first alone.

The paper prints how many tasks are shallow and deep in each data set, and how the second model
changes D over all of them (Appendix E.1). How many tasks have which D in between is chosen here,
near the printed medians; which data sets the lowered tasks belong to is searched for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from depthkit.errors import DepthkitError
from depthkit.fitting.search import Goal, Undo, goal, off, rank_correlation, search, swap
from depthkit.fitting.targets import Targets

type Ints = NDArray[np.int64]

EXISTING = ("TMax", "FACET", "SETA", "RST", "TB2", "TW")
SYNTHETIC = EXISTING[:4]

# Of the shallow tasks, the shares with D = 1 and 2; of the deep ones, those with D = 5 and 10. The
# paper prints only medians, "nearly nine in ten" for two of them, and how many TB2 tasks exceed 1.
_SHAPE = {
    "TMax": (0.883, 0.085, 0.6, 0.3),
    "FACET": (0.449, 0.367, 0.6, 0.3),
    "SETA": (0.910, 0.068, 0.5, 0.5),
    "RST": (0.478, 0.348, 0.6, 0.3),
    "TB2": (None, 0.273, 0.5, 0.25),
    "TW": (None, 0.230, 0.5, 0.3),
}


@dataclass(frozen=True)
class Depths:
    """One entry a solved task, by data set in the order of :data:`EXISTING`."""

    dataset: NDArray[np.str_]
    both: Ints
    first: Ints

    def of(self, dataset: str) -> NDArray[np.bool_]:
        """Which tasks are of a data set."""
        return np.asarray(self.dataset == dataset)


def existing_depths(targets: Targets, rng: np.random.Generator) -> Depths:
    """D of all solved tasks of the six data sets.

    Raises:
        DepthkitError: The printed numbers leave no way, or the search did not find one.
    """
    moves = _moves(targets)
    single = targets.number("figure-10/solved") - targets.number("figure-10/run-on")
    lowered_to_1 = sum(after == 1 for _, after in moves)
    names = np.concatenate(
        [np.repeat(name, int(targets(f"table-1/{name}/solved"))) for name in EXISTING]
    )
    both = _both(targets, round(single) + lowered_to_1)
    owner = np.array([EXISTING[i % 6] for i in range(len(moves))])
    first = both.copy()

    def place() -> bool:
        """Give each move a task of its data set with the D it leads to."""
        first[:] = both
        taken = np.zeros(len(both), bool)
        for name, (before, after) in zip(owner, moves, strict=True):
            free = np.flatnonzero((names == name) & (both == after) & ~taken)
            if not len(free):
                return False
            taken[free[0]] = True
            first[free[0]] = before
        return True

    def shares() -> tuple[float, float, float]:
        """Data sets whose share falls, tasks of SETA that it loses, shallow synthetic tasks."""
        lost = (first >= 5) & (both < 5)
        fallen = {name: bool((lost & (names == name)).any()) for name in EXISTING}
        return (
            float(sum(fallen.values())),
            fallen["SETA"],
            (first[np.isin(names, SYNTHETIC)] <= 3).mean(),
        )

    def correlations() -> tuple[float, float, float]:
        found = [
            rank_correlation(first[names == name], both[names == name])
            if (first != both)[names == name].any()
            else 1.0
            for name in EXISTING
        ]
        return min(found), max(found), rank_correlation(first, both)

    share = targets("figure-11/shallow-first")
    goals = [
        Goal(
            ("figure-10/falls", "SETA", "figure-11/shallow-first"),
            shares,
            np.array([targets.number("figure-10/falls"), 0, share.value]),
            np.array([0.5, 0.5, share.half]),
        ),
        goal(targets, ("figure-10/rho-least", "figure-10/rho-most", "figure-10/rho"), correlations),
    ]

    def propose() -> Undo | None:
        i, j = rng.integers(0, len(moves), 2)
        if rng.random() < 0.5:
            undo = swap(owner, i, j)
        else:
            old = owner[i]
            owner[i] = EXISTING[rng.integers(6)]

            def undo() -> None:
                owner[i] = old

        if place():
            return undo
        undo()
        place()
        return None

    while not place():
        rng.shuffle(owner)
    # place() follows every change, so taking one back is followed by it as well
    left = search(goals, lambda: _then(propose(), place), rng, steps=6000)
    if left:
        raise DepthkitError(f"E.1: no tasks found for the second model to lower: {off(goals)}.")
    return Depths(names, both, first)


def _then(undo: Undo | None, place: object) -> Undo | None:
    if undo is None:
        return None
    assert callable(place)

    def both() -> None:
        undo()
        place()

    return both


def _moves(targets: Targets) -> list[tuple[int, int]]:
    """(D from the first model, D from both) of each task that the second model lowers."""
    lowered = int(targets("figure-10/lowered"))
    by_1 = int(targets("figure-10/lowered-by-1"))
    lost = int(targets("figure-10/deep-lost"))
    far = lowered - by_1
    # How the moves divide is chosen so that the two estimates order tasks as printed
    lost_far, below_1, deeper = 3, 4, 2
    return (
        [(5, 3)] * (lost - lost_far)
        + [(5, 2)] * lost_far
        + [(3, 1)] * (far - lost_far)
        + [(3, 2)] * below_1
        + [(10, 5)] * deeper
        + [(2, 1)] * (by_1 - (lost - lost_far) - below_1 - deeper)
    )


def _both(targets: Targets, single: int) -> Ints:
    """D from both models; ``single`` tasks in all have D = 1."""
    columns: list[Ints] = []
    for name in EXISTING:
        solved = int(targets(f"table-1/{name}/solved"))
        deep = targets(f"table-5/{name}/D_ge_5" if name != "TMax" else "table-1/TMax/D_ge_5")
        deep_count = deep.count(solved)
        shallow = solved - deep_count
        one_share, two_share, five_share, ten_share = _SHAPE[name]
        if name == "TB2":
            above = targets("figure-4/hard-deep"), targets("figure-4/easier-deep")
            ones = solved - int(above[0]) - int(above[1])
        elif one_share is None:
            ones = single - sum(int((each == 1).sum()) for each in columns)
        else:
            ones = round(one_share * shallow)
        twos = round(two_share * shallow)
        fives, tens = round(five_share * deep_count), round(ten_share * deep_count)
        counts = (ones, twos, shallow - ones - twos, fives, tens, deep_count - fives - tens)
        if min(counts) < 0 or sum(counts[:3]) != shallow:
            raise DepthkitError(f"{name}: the printed shares of D leave no counts ({counts}).")
        columns.append(np.repeat((1, 2, 3, 5, 10, 20), counts))
    return np.concatenate(columns).astype(np.int64)
