"""Permutation p-values.

Each is (b + 1) / (m + 1): of m random permutations, b were at least as extreme as the sample, which
counts itself, so that the p-value is never 0 and never too small (Phipson & Smyth, 2010).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from depthkit.stats.ranks import COLLINEAR, blocks
from depthkit.stats.sample import Floats

SAME = 1e-12
"""Statistics closer than this are equal but for rounding; equal ones count as as extreme."""


def freedman_lane(x: Floats, y: Floats, covariates: Sequence[Floats], m: int, seed: int) -> float:
    """Two-sided p-value of the partial correlation of x and y, by permuted residuals of y.

    The null hypothesis is that y depends on the covariates alone: what their linear effect leaves
    of y is exchangeable. So the residuals of y are permuted and added to the fitted values
    (Freedman & Lane, 1983). Permuting x or y itself would also break their relation with the
    covariates and so test that x is unrelated to y and to the covariates at once. With no
    covariates it is the plain permutation test, which is exact.

    A permutation whose residuals the covariates determine has no correlation; it counts as extreme.

    Args:
        x: One number a row.
        y: One number a row.
        covariates: None or more, each of one number a row.
        m: Permutations, at least 1.
        seed: Of the permutations.
    """
    known, _ = np.linalg.qr(np.column_stack([np.ones(len(x)), *covariates]))
    of_x, of_y = (values - known @ (known.T @ values) for values in (x, y))
    of_x, of_y = of_x / np.linalg.norm(of_x), of_y / np.linalg.norm(of_y)
    reached = abs(of_x @ of_y) - SAME
    rng = np.random.default_rng([seed, 1])  # Not the stream of the resamples
    extreme = 0
    for _, size in blocks(len(y), m):
        mixed = rng.permuted(np.tile(of_y, (size, 1)), axis=1)
        # Adding the fitted values changes nothing here: the covariates remove them again
        left = 1 - ((mixed @ known) ** 2).sum(axis=1)
        defined = left > COLLINEAR
        found = np.abs(mixed @ of_x) / np.sqrt(np.where(defined, left, 1))
        extreme += int(((found >= reached) | ~defined).sum())
    return (extreme + 1) / (m + 1)
