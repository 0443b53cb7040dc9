"""Why a printed number does not come out of the fitted corpus, each to be checked in the paper."""

from __future__ import annotations

REASONS = {
    "figure-7/TBLite-base": (
        "This corpus has 100 tasks of TBLite, a number that the paper does not print: 10 of their "
        "300 runs are 3.3%, 11 are 3.7%. With 99 tasks, 10 of 297 are 3.4%."
    ),
    "figure-7/TBLite-tuned": (
        "This corpus has 100 tasks of TBLite, a number that the paper does not print: 27 of their "
        "300 runs are 9.0%, 28 are 9.3%. With 99 tasks, 27 of 297 are 9.1%."
    ),
}
"""By the claim's id."""
