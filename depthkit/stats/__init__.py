"""Statistics as the papers use them: arrays in, numbers out.

Rank correlations are ours because none of the libraries gives them whole: pingouin's is slow to
bootstrap and gives a number where there is none (see ``correlation``). scipy, pingouin and
statsmodels check them in the tests.
"""

from __future__ import annotations

from depthkit.stats.bootstrap import Interval, bca_interval, percentile_interval
from depthkit.stats.correlation import Correlation, rank_partial_correlation, spearman
from depthkit.stats.groups import Quadrant, QuadrantTest, quadrant_test, within_group_percentiles
from depthkit.stats.quantiles import DepthQuantile, Spread, depth_quantile, quantile, spread
from depthkit.stats.sample import ArgumentError, SampleError
from depthkit.stats.shares import ReweightedShare, SegmentRates, reweighted_share, segment_rates
from depthkit.stats.signs import SignTest, sign_test

__all__ = [
    "ArgumentError",
    "Correlation",
    "DepthQuantile",
    "Interval",
    "Quadrant",
    "QuadrantTest",
    "ReweightedShare",
    "SampleError",
    "SegmentRates",
    "SignTest",
    "Spread",
    "bca_interval",
    "depth_quantile",
    "percentile_interval",
    "quadrant_test",
    "quantile",
    "rank_partial_correlation",
    "reweighted_share",
    "segment_rates",
    "sign_test",
    "spearman",
    "spread",
    "within_group_percentiles",
]
