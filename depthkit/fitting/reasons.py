"""Why a printed number does not come out of the fitted corpus, each to be checked in the paper."""

from __future__ import annotations

REASONS = {
    "figure-7/TBLite-base": (
        "TBLite's 3.4% cannot come from three runs of 100 tasks: 10 of 300 is 3.3%, 11 is 3.7%."
    ),
    "figure-7/TBLite-tuned": (
        "TBLite's 9.1% cannot come from three runs of 100 tasks: 27 of 300 is 9.0%, 28 is 9.3%."
    ),
}
"""By the claim's id."""
