"""Depth against difficulty on the human-curated data sets (Sections 4.3, E.1 and E.2).

What a solved task of TB2 or TW has (pass rate, W, N, R, author rating) is exchanged with other
tasks of its data set until the printed correlations hold. What was printed of each column alone
stays as it is.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pandas as pd

from depthkit.fitting.audit import least_turns
from depthkit.fitting.labels import label_plan, place
from depthkit.fitting.pins import Floats
from depthkit.fitting.search import (
    Goal,
    Undo,
    correlation_of,
    goal,
    met,
    off,
    partial_of,
    search,
    swap,
    together,
    whole_ranks,
)
from depthkit.fitting.targets import Targets
from depthkit.stats import percentile_interval, within_group_percentiles
from depthkit.stats.correlation import RESAMPLES, replicates
from depthkit.stats.ranks import Ranks

CURATED = ("TB2", "TW")

log = logging.getLogger(__name__)

STEPS, ENDS, ATTEMPTS = 40_000, 3_000, 8
RUNS = {"TB2": 75, "TW": 8}
"""Runs behind a public pass rate: 15 submissions of 5 runs each, or 8 models."""


def public_rates(tasks: pd.DataFrame, rng: np.random.Generator) -> Floats:
    """Public pass rates of the sampled tasks, in no order yet; the paper prints none."""
    rates = np.full(len(tasks), np.nan)
    for name in CURATED:
        members = (tasks["dataset"] == name).to_numpy()
        chance = rng.beta(2.2, 1.2, int(members.sum()))
        runs = RUNS[name]
        rates[members] = np.maximum(rng.binomial(runs, chance), 1) / runs
    return rates


def fit_difficulty(targets: Targets, tasks: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Exchange what solved TB2 and TW tasks have until the printed correlations hold.

    Args:
        targets: The printed numbers.
        tasks: Sampled tasks with ``public_pass_rate`` and ``author_rating``.
        rng: Of the search.

    Where the search does not reach all of them, what comes closest is kept.
    """
    chosen = tasks[tasks["solved"] & tasks["dataset"].isin(CURATED)]
    tried: list[tuple[float, int, Curated]] = []
    for number in range(ATTEMPTS):
        curated = Curated(targets, chosen, rng)
        left = search(curated.goals(), curated.propose, rng, steps=STEPS, heat=5.0)
        log.info("TB2 and TW: %.3g left; %s", left, off(curated.goals()))
        tried.append((left, number, curated))
        if met(curated.goals()):
            break
    curated = min(tried)[2]
    goals = curated.goals()
    left = search(goals, curated.propose, rng, steps=STEPS, heat=0.5)
    if met(goals):
        goals += curated.interval_goals()
        left = search(goals, curated.propose, rng, steps=ENDS, heat=0.0)
    log.info("TB2 and TW: %.3g left; %s", left, off(goals))
    changed = tasks.copy()
    for column in ("public_pass_rate", "W", "N", "R", "author_rating"):
        changed.loc[chosen.index, column] = curated.columns[column]
    return changed


class Curated:
    """The solved tasks of TB2 and TW as columns that a search may change.

    As exchanges within a data set leave the values of each column as they are, ranks over both data
    sets, and over TB2, are exchanged along with the values and never taken anew.
    """

    def __init__(self, targets: Targets, tasks: pd.DataFrame, rng: np.random.Generator) -> None:
        self._targets, self._rng = targets, rng
        self.dataset = tasks["dataset"].to_numpy(dtype=object)
        self.columns: dict[str, Any] = {
            name: tasks[name].to_numpy().copy()
            for name in ("public_pass_rate", "W", "N", "R", "author_rating")
        }
        both, first = tasks["D"].to_numpy(float), tasks["D_first"].to_numpy(float)
        self._tb2 = self.dataset == "TB2"
        rated = self.columns["author_rating"]
        rating = np.array([place(r) if isinstance(r, str) else np.nan for r in rated])
        values = {
            "both": both,
            "first": first,
            "W": self.columns["W"],
            "N": self.columns["N"],
            "rate": self.columns["public_pass_rate"],
        }
        self.values: dict[str, Floats] = {k: np.array(v, dtype=float) for k, v in values.items()}
        self.values["rating"] = rating
        self._ranks = {name: whole_ranks(column) for name, column in values.items()}
        # Of TB2 alone; 0 for tasks of TW, so that they add nothing to a product
        self._own = {name: np.zeros(len(both)) for name in self.values}
        for name, column in self.values.items():
            self._own[name][self._tb2] = whole_ranks(column[self._tb2])
        self._percentile = within_group_percentiles(self.values["rate"], self.dataset)
        self._deep = {"both": both >= 2, "first": first >= 2}
        self._kind = np.searchsorted((2, 5), both, side="right")
        self._least = np.array([least_turns(d) for d in first])
        self._neighbours = {name: np.flatnonzero(self.dataset == name) for name in CURATED}
        plan = label_plan(targets)["TB2"]
        self._weights = {
            label: count / sum(plan.original)
            for label, count in zip(plan.labels, plan.original, strict=True)
        }
        self._work_split = float(np.median(self.values["W"]))

    def propose(self) -> Undo | None:
        """Exchange one column of two tasks of a data set, where nothing printed forbids it."""
        rng = self._rng
        i = int(rng.integers(len(self.dataset)))
        neighbours = self._neighbours[self.dataset[i]]
        j = int(neighbours[rng.integers(len(neighbours))])
        what = ("rate", "rate", "W", "N", "R", "rating")[rng.integers(6)]
        if what == "R":
            both_pass = self.columns["R"]
            return swap(both_pass, i, j) if both_pass[i] != both_pass[j] else None
        values = self.values[what]
        if values[i] == values[j] or np.isnan(values[i]):
            return None
        if what == "rating" and not self._may_exchange_ratings(i, j):
            return None
        if what == "N" and not self._may_exchange_turns(i, j):
            return None
        column = {"rate": "public_pass_rate", "rating": "author_rating"}.get(what, what)
        undos = [swap(values, i, j), swap(self._own[what], i, j), swap(self.columns[column], i, j)]
        if what in self._ranks:
            undos.append(swap(self._ranks[what], i, j))
        if what == "rate":
            undos.append(swap(self._percentile, i, j))
        return together(*undos)

    def _may_exchange_ratings(self, i: int, j: int) -> bool:
        """Whether as many tasks rated hard have D = 1."""
        hard = [self.columns["author_rating"][each] == "hard" for each in (i, j)]
        return bool(hard[0] == hard[1] or (self._kind[i] == 0) == (self._kind[j] == 0))

    def _reweighted(self) -> float:
        """Share of TB2 tasks with D of at least 5, each rating at its original proportion."""
        value = 0.0
        for label, weight in self._weights.items():
            members = self.columns["author_rating"] == label
            value += weight * float((self._kind[members] == 2).mean())
        return value

    def _may_exchange_turns(self, i: int, j: int) -> bool:
        """Whether the estimates still fit N, and as many tasks have N from 6 to 10 and D = 1."""
        turns = self.values["N"]
        middle = [6 <= turns[each] <= 10 for each in (i, j)]
        same = middle[0] == middle[1] or (self._kind[i] == 0) == (self._kind[j] == 0)
        return bool(same and turns[i] >= self._least[j] and turns[j] >= self._least[i])

    def _correlations(self) -> tuple[float, ...]:
        all_, own = self._ranks, self._own
        robust = self.columns["R"] == 1
        return (
            *(partial_of(all_[d], all_["rate"], all_["W"]) for d in ("both", "first")),
            *(partial_of(own[d], own["rate"], own["W"]) for d in ("both", "first")),
            *(partial_of(all_["N"], all_["rate"], all_[d]) for d in ("both", "first")),
            *(partial_of(own[d], own["rating"], own["W"]) for d in ("both", "first")),
            *(partial_of(own[x], own["rating"], own["both"]) for x in ("W", "N")),
            partial_of(*(whole_ranks(self.values[x][robust]) for x in ("both", "rate", "W"))),
        )

    def _quadrants(self) -> list[float]:
        """Mean percentile of tasks large in both, and the ends of the other three, for either D."""
        large = self.values["W"] >= self._work_split
        found = []
        for deep in self._deep.values():
            kinds = 2 * deep + large
            sums = np.bincount(kinds, self._percentile, 4)
            means = sums / np.maximum(np.bincount(kinds, minlength=4), 1)
            found += [means[3], means[:3].min(), means[:3].max()]
        return found

    def goals(self) -> list[Goal]:
        """Everything printed but the ends of intervals."""
        correlations = (
            "figure-4/curated-D", "figure-11/curated-D-first",
            "figure-4/TB2-D", "figure-11/TB2-D-first",
            "figure-4/curated-N", "figure-11/curated-N-first",
            "section-4.3/rating-D", "figure-11/rating-first",
            "section-4.3/rating-W", "section-4.3/rating-N",
            "figure-12/curated",
        )  # fmt: skip
        quadrants = (
            "section-4.3/large-both", "section-4.3/other-min", "section-4.3/other-max",
            "figure-11/large-both-first", "figure-11/other-min-first", "figure-11/other-max-first",
        )  # fmt: skip
        return [
            goal(self._targets, correlations, self._correlations),
            goal(self._targets, quadrants, self._quadrants),
            goal(self._targets, "table-5/TB2/reweighted", self._reweighted),
            # Printed over all TB2 tasks; the others make up for what these are off
            goal(
                self._targets,
                "section-4.3/labels-TB2",
                lambda: correlation_of(self._own["rating"], self._own["rate"]),
                0.12,
            ),
        ]

    def interval_goals(self) -> list[Goal]:
        """Ends of the printed intervals, from the bootstrap that artifacts use."""
        tb2, values = self._tb2, self.values
        return [
            goal(
                self._targets,
                ("figure-4/curated-N-low", "figure-4/curated-N-high"),
                lambda: interval_ends([values["N"], values["rate"], values["both"]]),
                0.03,
            ),
            goal(
                self._targets,
                ("section-4.3/rating-D-low", "section-4.3/rating-D-high"),
                lambda: interval_ends([values[x][tb2] for x in ("both", "rating", "W")]),
                0.03,
            ),
            # Printed only as holding zero
            goal(
                self._targets,
                "section-4.3/rating-N-high",
                lambda: min(
                    0.0, interval_ends([values[x][tb2] for x in ("N", "rating", "both")])[1]
                ),
                0.001,
            ),
        ]


def interval_ends(columns: list[Floats]) -> tuple[float, float]:
    """The ends of the 95% interval, with the resamples of ``rank_partial_correlation``."""
    found = replicates(Ranks(columns), len(columns[0]), RESAMPLES, 0)
    interval = percentile_interval(found[~np.isnan(found)])
    return interval.low, interval.high
