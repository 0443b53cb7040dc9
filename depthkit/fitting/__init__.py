"""The ``paper`` corpus: per-task data made so that the aggregates the paper prints hold at once.

Nothing in it is data. What is printed becomes quotas and pinned quantiles, met by construction;
rank correlations are searched for by exchanging what tasks have; runs are then derived as the
protocol would have made them, so that every artifact computes its numbers from runs. What the paper
leaves open is drawn from a seeded generator.
"""

from __future__ import annotations

from depthkit.fitting.fit import NAME, SEED, fit_published, fit_records
from depthkit.fitting.reasons import REASONS

__all__ = ["NAME", "REASONS", "SEED", "fit_published", "fit_records"]
