"""Facts of the public leaderboard of Terminal-Bench 2, derived from its trials.

``tb2_pass_rates.csv`` has its 89 tasks with the author's rating, and the pass rate over the 15
earliest and over all 72 complete submissions (at least five trials of every task; by first start):
the mean over submissions of the share of trials that pass, a missing reward being a failure. Exact
fractions, since float noise would break ties.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pandas as pd

TASKS = Path(__file__).with_name("tb2_pass_rates.csv")


def public_rates(earliest: int) -> dict[str, Fraction]:
    """Pass rate by task over so many submissions, 15 or 72."""
    column = pd.read_csv(TASKS, index_col="task")[f"earliest_{earliest}"]
    return {str(task): Fraction(rate) for task, rate in column.items()}
