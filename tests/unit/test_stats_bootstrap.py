"""Bootstrap over tasks: replicates of a plain loop, intervals of scipy, coverage as promised."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pingouin
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from depthkit.stats import (
    Correlation,
    Interval,
    SampleError,
    bca_interval,
    percentile_interval,
    rank_partial_correlation,
    spearman,
)
from depthkit.stats.correlation import replicates
from depthkit.stats.ranks import Ranks, resampled

CAPS = np.array([1, 2, 3, 5, 10, 20, 40])


def audit(n: int, seed: int = 0) -> pd.DataFrame:
    """D, pass rate and W of n tasks, with ties as in an audit."""
    rng = np.random.default_rng(seed)
    work = rng.integers(2, 300, n)
    depth = CAPS[np.clip(rng.geometric(0.5, n) - 1 + (work > 200), 0, 6)]
    rate = np.round(np.clip(rng.normal(0.7 - 0.01 * depth, 0.2), 0, 1) * 15) / 15
    return pd.DataFrame({"D": depth, "rate": rate, "W": work}).astype(float)


@settings(deadline=None, max_examples=40)
@given(st.integers(5, 40), st.integers(0, 1000))
def test_ranks_of_a_resample_are_those_of_its_rows(n: int, seed: int):
    values = audit(n, seed)["D"].to_numpy()
    counts = resampled(n, 20, np.random.default_rng(seed))
    assert (counts.sum(axis=0) == n).all()
    (ranks,) = Ranks([values]).doubled(counts)
    for column in range(20):
        times = counts[:, column].astype(int)
        theirs = 2 * scipy.stats.rankdata(np.repeat(values, times)) - (n + 1)
        assert (np.repeat(ranks[:, column], times) == theirs).all()


def test_replicates_are_those_of_a_loop_over_pingouin_on_the_same_resamples():
    frame, seed, resamples = audit(60), 11, 200
    ours = replicates(Ranks([frame[name].to_numpy() for name in frame]), 60, resamples, seed)
    counts = resampled(60, resamples, np.random.default_rng(seed)).astype(int)
    theirs = [
        pingouin.partial_corr(
            frame.loc[frame.index.repeat(counts[:, number])], "D", "rate", "W", method="spearman"
        )["r"].iloc[0]
        for number in range(resamples)
    ]
    assert ours == pytest.approx(np.array(theirs), abs=1e-9)


numbers = arrays.arrays(float, st.integers(4, 40), elements=st.floats(-100, 100, width=16))


@settings(deadline=None)
@given(numbers, st.sampled_from([0.8, 0.9, 0.95]), st.integers(0, 9))
def test_intervals_of_a_mean_are_those_of_scipy(data: np.ndarray, confidence: float, seed: int):
    settings_ = {"confidence_level": confidence, "n_resamples": 300, "rng": seed}
    assume(np.ptp(data) > 1)
    plain = scipy.stats.bootstrap((data,), np.mean, method="percentile", **settings_)
    moved = scipy.stats.bootstrap((data,), np.mean, method="BCa", **settings_)
    ours = percentile_interval(plain.bootstrap_distribution, confidence)
    assert [ours.low, ours.high] == pytest.approx(list(plain.confidence_interval), abs=1e-9)
    without = [np.delete(data, row).mean() for row in range(len(data))]
    ours = bca_interval(data.mean(), moved.bootstrap_distribution, without, confidence)
    assert [ours.low, ours.high] == pytest.approx(list(moved.confidence_interval), abs=1e-9)


def test_the_bca_interval_of_a_rank_partial_correlation_is_scipys_on_the_same_resamples():
    frame, seed = audit(50), 2
    columns = [frame[name].to_numpy() for name in frame]
    found = rank_partial_correlation(columns[0], columns[1], columns[2:], seed=seed, permutations=0)

    def statistic(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> float:
        ranks = [scipy.stats.rankdata(values) for values in (x, y, z)]
        (xy, xz), yz = np.corrcoef(ranks)[0, 1:], np.corrcoef(ranks)[1, 2]
        return float((xy - xz * yz) / math.sqrt((1 - xz**2) * (1 - yz**2)))

    before = SimpleNamespace(bootstrap_distribution=replicates(Ranks(columns), 50, 10_000, seed))
    theirs = scipy.stats.bootstrap(
        columns,
        statistic,
        paired=True,
        vectorized=False,
        n_resamples=0,
        bootstrap_result=before,
        method="BCa",
    ).confidence_interval
    assert found.bca is not None
    # A handful of replicates equal the value but for the rounding of `statistic`
    assert [found.bca.low, found.bca.high] == pytest.approx([theirs.low, theirs.high], abs=2e-4)


def test_degenerate_resamples_are_counted_left_out_and_reported():
    """One task of 37 with another D: 36% of the resamples miss it, and D is constant in them."""
    frame = audit(37)
    frame["D"] = [5.0] + [1.0] * 36
    found = rank_partial_correlation(frame["D"], frame["rate"], [frame["W"]], resamples=4000)
    expected = (36 / 37) ** 37
    assert found.degenerate / found.resamples == pytest.approx(expected, abs=0.03)
    assert found.percentile is not None
    assert -1 <= found.percentile.low <= found.percentile.high <= 1
    assert found.p_value is not None
    assert f"{found.degenerate} of 4000 resamples" in found.notes[0]


def test_without_a_jackknife_there_is_no_bca_interval_and_a_note_says_why():
    frame = audit(37)
    frame["D"] = [5.0] + [1.0] * 36
    found = rank_partial_correlation(frame["D"], frame["rate"], [frame["W"]], resamples=400)
    assert found.bca is None
    assert "No BCa interval: left_out is undefined for 1 rows" in found.notes[-1]


def test_where_every_resample_is_degenerate_there_is_no_interval_and_a_note_says_so():
    x, y = [0, 0, 0, 0, 0, 0, 0, 1], [1, 2, 3, 4, 5, 6, 7, 8]
    seed = next(  # One whose only resample misses the last row
        seed for seed in range(99) if not resampled(8, 1, np.random.default_rng(seed))[7, 0]
    )
    found = spearman(x, y, resamples=1, seed=seed)
    assert (found.degenerate, found.percentile, found.bca) == (1, None, None)
    assert "No bootstrap interval: every resample is degenerate." in found.notes


def test_a_sound_sample_has_no_degenerate_resamples_and_no_notes():
    frame = audit(100)
    found = rank_partial_correlation(frame["D"], frame["rate"], [frame["W"]], resamples=1000)
    assert (found.degenerate, found.notes) == (0, ())
    assert None not in (found.percentile, found.bca, found.fisher, found.p_value)


def test_a_lower_confidence_gives_a_narrower_interval_of_each_kind():
    frame = audit(80)

    def intervals(confidence: float) -> list[Interval]:
        found: Correlation = rank_partial_correlation(
            frame["D"], frame["rate"], [frame["W"]], resamples=2000, confidence=confidence
        )
        assert found.percentile and found.bca and found.fisher
        return [found.percentile, found.bca, found.fisher]

    for narrow, wide in zip(intervals(0.8), intervals(0.95), strict=True):
        assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(
    ("value", "resampled_values", "left_out", "says"),
    [
        (1.0, [], [1.0, 2.0], "replicates is empty"),
        (1.0, [1.0, math.nan], [1.0, 2.0], r"replicates is missing \(NaN\) in 1 of 2"),
        (9.0, [1.0, 2.0], [1.0, 2.0], "replicates all lie on one side"),
        (1.5, [1.0, 2.0], [1.0, math.nan], "left_out is undefined for 1 rows"),
        (1.5, [1.0, 2.0], [1.0, 1.0], "left_out is the same whichever row"),
    ],
)
def test_a_bca_interval_that_there_is_not_is_an_error_and_not_nan(
    value: float, resampled_values: list[float], left_out: list[float], says: str
):
    with pytest.raises(SampleError, match=says):
        bca_interval(value, resampled_values, left_out)


def grade(correlation: float) -> float:
    """Spearman's correlation of two normal variables with this correlation (Pearson, 1907)."""
    return 6 / math.pi * math.asin(correlation / 2)


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [-0.5, 0.3])
def test_intervals_of_a_bivariate_normal_cover_in_93_to_97_of_100(correlation: float):
    rng = np.random.default_rng(2026)
    covered = {"percentile": 0, "bca": 0, "fisher": 0}
    shape = [[1, correlation], [correlation, 1]]
    for seed in range(400):
        x, y = rng.multivariate_normal([0, 0], shape, 50).T
        found = spearman(x, y, resamples=2000, permutations=0, seed=seed)
        for kind in covered:
            covered[kind] += grade(correlation) in getattr(found, kind)
    assert all(0.93 <= times / 400 <= 0.97 for times in covered.values()), covered


@pytest.mark.slow
def test_intervals_with_a_covariate_cover_in_93_to_97_of_100():
    rng = np.random.default_rng(2026)
    covered = {"percentile": 0, "bca": 0, "fisher": 0}
    shape = np.array([[1, -0.2, 0.4], [-0.2, 1, 0.3], [0.4, 0.3, 1]])
    xy, xz, yz = grade(-0.2), grade(0.4), grade(0.3)
    true = (xy - xz * yz) / math.sqrt((1 - xz**2) * (1 - yz**2))
    for seed in range(400):
        x, y, z = rng.multivariate_normal([0, 0, 0], shape, 50).T
        found = rank_partial_correlation(x, y, [z], resamples=2000, permutations=0, seed=seed)
        for kind in covered:
            covered[kind] += true in getattr(found, kind)
    assert all(0.93 <= times / 400 <= 0.97 for times in covered.values()), covered
