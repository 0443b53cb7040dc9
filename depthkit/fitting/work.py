"""Tokens and characters of reference solutions beside their lines (Appendix D, Figure 9)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from depthkit.fitting.pins import Floats, Pins
from depthkit.fitting.search import rank_correlation
from depthkit.fitting.targets import Targets

TOKENS_PER_LINE, CHARS_PER_LINE = 12.0, 42.0
"""Of FACET, about; the paper prints only how ours compare with it."""


def other_measures(
    targets: Targets, tasks: pd.DataFrame, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Tokens and characters of each task, in order; tasks without a solution have ``nan``.

    Args:
        targets: The printed numbers.
        tasks: All sampled tasks and ours, with dataset and W.
        rng: Of what is free.
    """
    return (
        _measure(targets, tasks, "tokens", TOKENS_PER_LINE, rng),
        _measure(targets, tasks, "chars", CHARS_PER_LINE, rng),
    )


def _measure(
    targets: Targets, tasks: pd.DataFrame, measure: str, per_line: float, rng: np.random.Generator
) -> Floats:
    dataset = tasks["dataset"].to_numpy(dtype=object)
    lines = tasks["W"].to_numpy(float)
    known = (dataset != "TMax") & ~np.isnan(lines)
    # By how much more ours exceed FACET in this measure than in lines
    margin = 1 + targets.number(f"figure-9/above-{measure}")
    extra = margin / (1 + targets.number("figure-9/above-lines"))
    facet, ours = known & (dataset == "FACET"), known & (dataset == "Ours")
    rate = np.where(facet, per_line, per_line * min(1.0, extra))
    rate[ours] = per_line * extra
    noise = rng.normal(size=len(lines))

    def with_noise(sigma: float) -> Floats:
        values = np.round(np.maximum(lines * rate * np.exp(sigma * noise), 3))
        pins = Pins(np.where(known, values, 3), 3, 1e6)
        median = round(float(np.median(lines[facet])) * per_line / 100) * 100
        pins.pin(0.5, median, facet)
        pins.pin(0.5, round(median * margin), ours)
        return pins.values

    low, high = 0.0, 1.0
    goal = targets.number(f"figure-9/{measure}")
    for _ in range(30):
        middle = (low + high) / 2
        rho = rank_correlation(lines[known], with_noise(middle)[known])
        low, high = (middle, high) if rho > goal else (low, middle)
    return np.where(known, with_noise(low), np.nan)
