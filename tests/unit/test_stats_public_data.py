"""Author ratings against pass rates on the public leaderboard of Terminal-Bench 2."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

from depthkit.stats import Correlation, spearman

DATA = Path(__file__).parents[3] / "shared" / "data"
TRIALS = DATA / "tb2_leaderboard_trials.parquet"
RATINGS = {"easy": 0, "medium": 1, "hard": 2}

pytestmark = pytest.mark.skipif(
    not TRIALS.is_file(), reason="real public trials are not beside the checkout (shared/data)"
)


@pytest.fixture(scope="module")
def trials() -> pd.DataFrame:
    """One row a trial; a missing reward is a failure."""
    frame = pd.read_parquet(TRIALS, columns=["submission", "task", "reward", "started_at"])
    return frame.assign(
        task=frame["task"].str.removeprefix("terminal-bench/"),
        reward=frame["reward"].fillna(0).map(Fraction),
        started_at=pd.to_datetime(frame["started_at"], utc=True, format="ISO8601"),
    )


def complete(trials: pd.DataFrame) -> list[str]:
    """Submissions with at least five trials of every task, by first start."""
    counts = pd.crosstab(trials["submission"], trials["task"])
    whole = counts.index[(counts >= 5).all(axis=1)]
    return trials.groupby("submission")["started_at"].min()[whole].sort_values().index.tolist()


def rating_and_pass_rate(trials: pd.DataFrame, submissions: list[str]) -> Correlation:
    chosen = trials[trials["submission"].isin(submissions)]
    sums = chosen.groupby(["task", "submission"])["reward"].agg(["sum", "count"])
    rates = (sums["sum"] / sums["count"]).groupby("task").agg(lambda each: sum(each) / len(each))
    ratings = pd.read_csv(DATA / "tb2_tasks.csv", index_col="task")["difficulty"].map(RATINGS)
    # Equal fractions make equal floats, so that ties stay ties
    return spearman(ratings[rates.index], rates.map(float), resamples=1000, permutations=999)


@pytest.mark.parametrize(("earliest", "rho"), [(15, -0.458), (72, -0.446)])
def test_author_ratings_follow_pass_rates_as_published(
    trials: pd.DataFrame, earliest: int, rho: float
):
    submissions = complete(trials)
    assert len(submissions) == 72
    found = rating_and_pass_rate(trials, submissions[:earliest])
    assert found.n == 89
    assert round(found.value, 3) == rho
    assert found.percentile is not None
    assert found.percentile.high < 0
    assert found.p_value is not None
    assert found.p_value <= 0.002
