"""Colours as style sheets: those of data sets, as in the figures, and those of terminals."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from depthkit.artifacts.datasets import styles
from depthkit.artifacts.run_ends import OUTCOMES
from depthkit.dashboard.text import palette_css


def sheet(datasets: Sequence[str]) -> str:
    """Rules for the data sets of a corpus, by their number among its names."""
    found = styles(datasets)
    return "\n".join(
        f".ds-{number}{{--mark:{found[name].colour}}}" for number, name in enumerate(datasets)
    )


@functools.cache
def palette() -> str:
    """Rules that are the same for all corpora: colours of terminals and of endings."""
    names = {"passed", "early", "submitted", "unclear", "unknown", "terminal", "limit"}
    ends = "\n".join(
        f".end-{name}{{--mark:{colour}}}" for name, (_, colour) in OUTCOMES.items() if name in names
    )
    return f"\n{ends}\n{palette_css()}\n"
