"""Percentiles within groups, and the quadrants of depth and work."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from depthkit.stats import (
    ArgumentError,
    QuadrantTest,
    SampleError,
    quadrant_test,
    within_group_percentiles,
)
from depthkit.stats.ranks import resampled

samples = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(["TB2", "TW"])), min_size=1, max_size=30
)


def test_percentiles_by_hand_with_ties():
    found = within_group_percentiles([5, 1, 1, 9, 0.5], ["a", "a", "a", "a", "b"])
    assert found.tolist() == [0.625, 0.25, 0.25, 0.875, 0.5]


@settings(deadline=None)
@given(samples)
def test_percentiles_are_those_of_scipy_in_each_group(sample: list[tuple[int, str]]):
    values, groups = map(list, zip(*sample, strict=True))
    found = within_group_percentiles(values, groups)
    for value, group, percentile in zip(values, groups, found, strict=True):
        peers = [other for other, name in sample if name == group]
        theirs = scipy.stats.percentileofscore(peers, value, kind="mean") / 100
        assert percentile == pytest.approx(theirs)


@given(samples)
def test_the_mean_percentile_of_a_group_is_a_half_and_reversing_mirrors_it(
    sample: list[tuple[int, str]],
):
    values, groups = map(list, zip(*sample, strict=True))
    found = within_group_percentiles(values, groups)
    for name in set(groups):
        assert found[[group == name for group in groups]].mean() == pytest.approx(0.5)
    mirrored = within_group_percentiles([-value for value in values], groups)
    assert found + mirrored == pytest.approx(np.ones(len(values)))


def test_no_tasks_have_no_percentiles():
    assert within_group_percentiles([], []).tolist() == []


@pytest.mark.parametrize(
    ("values", "groups", "says"),
    [
        ([1, math.nan], ["a", "a"], "values is missing"),
        ([1, 2], ["a"], "groups has 1 rows"),
        ([1, 2], ["a", None], "groups has no label in 1 of 2 rows"),
    ],
)
def test_tasks_without_a_value_or_group_are_an_error(
    values: list[float], groups: list[Any], says: str
):
    with pytest.raises(SampleError, match=says):
        within_group_percentiles(values, groups)


DEPTH = [1, 1, 2, 3, 1, 1, 99, 2]
WORK = [1, 30, 1, 17, 5, 40, 20, 2]
RATES = [0.9, 0.8, 0.7, 0.1, 0.5, 0.6, 0.0, 0.4]
GROUPS = ["TB2"] * 4 + ["TW"] * 4


def test_tasks_at_a_depth_of_two_are_deep_and_those_at_the_median_work_are_large():
    found = quadrant_test(DEPTH, WORK, RATES, GROUPS, work_split=17, resamples=0, permutations=0)
    assert [q.n for q in (found.both, found.deep_only, found.large_only, found.neither)] == [2] * 4
    # Percentiles in TB2: 7/8 5/8 3/8 1/8, in TW: 5/8 7/8 1/8 3/8
    assert found.both.value == 1 / 8
    assert found.deep_only.value == 3 / 8
    assert found.large_only.value == 6 / 8
    assert found.neither.value == 6 / 8
    assert found.value == pytest.approx(1 / 8 - 5 / 8)
    assert found.p_value is None
    assert found.both.interval is None


def test_the_median_is_that_of_all_tasks_together_and_belongs_to_the_large():
    found = quadrant_test(DEPTH[:7], WORK[:7], RATES[:7], GROUPS[:7], resamples=0, permutations=0)
    assert found.work_split == 17
    assert found.both.n == 2
    above = quadrant_test(
        DEPTH[:7],
        WORK[:7],
        RATES[:7],
        GROUPS[:7],
        work_split=np.nextafter(17, math.inf),
        resamples=0,
        permutations=0,
    )
    assert above.both.n == 1


def test_the_p_value_is_near_the_one_over_all_orders_within_groups():
    m = 40_000
    found = quadrant_test(DEPTH, WORK, RATES, GROUPS, work_split=17, resamples=0, permutations=m)
    percentiles = within_group_percentiles(RATES, GROUPS)
    both = np.array([False, False, False, True, False, False, True, False])
    contrasts = [
        np.mean(order[both]) - np.mean(order[~both])
        for first in itertools.permutations(percentiles[:4])
        for second in itertools.permutations(percentiles[4:])
        for order in [np.array(first + second)]
    ]
    exact = np.mean(np.abs(contrasts) >= abs(found.value or 0) - 1e-9)
    assert found.p_value == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / m))


def test_intervals_are_those_of_a_loop_that_takes_percentiles_anew():
    seed, resamples = 4, 300
    found = quadrant_test(
        DEPTH, WORK, RATES, GROUPS, work_split=17, resamples=resamples, permutations=0, seed=seed
    )
    rng = np.random.default_rng(seed)
    counts = np.vstack([resampled(4, resamples, rng), resampled(4, resamples, rng)]).astype(int)
    both = np.array([False, False, False, True, False, False, True, False])
    means = []
    for times in counts.T:
        rows = np.repeat(np.arange(8), times)
        if both[rows].any():
            peers = [[RATES[j] for j in rows if GROUPS[j] == GROUPS[i]] for i in rows]
            places = np.array(
                [
                    scipy.stats.percentileofscore(others, RATES[i], kind="mean") / 100
                    for i, others in zip(rows, peers, strict=True)
                ]
            )
            means.append(places[both[rows]].mean())
    assert found.both.degenerate == resamples - len(means) > 0
    assert found.both.interval is not None
    expected = np.quantile(means, [0.025, 0.975])
    assert [found.both.interval.low, found.both.interval.high] == pytest.approx(expected.tolist())


def test_a_quadrant_without_tasks_has_no_mean_and_there_is_no_test_without_deep_large_ones():
    found = quadrant_test([1, 1, 1], [1, 2, 3], [0.1, 0.2, 0.3], ["a"] * 3, resamples=10)
    assert (found.both.n, found.both.value, found.both.interval) == (0, None, None)
    assert found.both.degenerate == 10
    assert (found.value, found.p_value) == (None, None)
    assert found.large_only.value == pytest.approx(2 / 3)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others():
    def judged(seed: int) -> QuadrantTest:
        return quadrant_test(
            DEPTH * 4, WORK * 4, RATES * 4, GROUPS * 4, resamples=300, permutations=300, seed=seed
        )

    assert repr(judged(1)) == repr(judged(1))
    assert judged(1).neither.interval != judged(2).neither.interval


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"depth": [], "work": [], "rates": [], "groups": []}, "rates is empty"),
        ({"depth": [1.0]}, "depth has 1 rows"),
        ({"work": [math.nan] * 8}, "work is missing"),
        ({"groups": [None] * 8}, "groups has no label in 8 of 8 rows"),
        ({"seed": -1}, "seed is -1"),
        ({"confidence": 1}, "confidence is 1"),
    ],
)
def test_tasks_that_cannot_be_split_are_an_error(changed: dict[str, Any], says: str):
    given_ = {"depth": DEPTH, "work": WORK, "rates": RATES, "groups": GROUPS, "resamples": 10}
    with pytest.raises((ArgumentError, SampleError), match=says):
        quadrant_test(**{**given_, **changed})
