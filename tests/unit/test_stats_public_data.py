"""Author ratings against pass rates on the public leaderboard of Terminal-Bench 2."""

from __future__ import annotations

import pandas as pd
import pytest
from public_rates import TASKS, public_rates

from depthkit.stats import spearman

RATINGS = {"easy": 0, "medium": 1, "hard": 2}


@pytest.mark.parametrize(("earliest", "rho"), [(15, -0.458), (72, -0.446)])
def test_author_ratings_follow_pass_rates_as_published(earliest: int, rho: float):
    ratings = pd.read_csv(TASKS, index_col="task")["difficulty"].map(RATINGS)
    rates = pd.Series(public_rates(earliest)).map(float)
    found = spearman(ratings[rates.index], rates, resamples=1000, permutations=999)
    assert found.n == 89
    assert round(found.value, 3) == rho
    assert found.percentile is not None
    assert found.percentile.high < 0
    assert found.p_value is not None
    assert found.p_value <= 0.002
