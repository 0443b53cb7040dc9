"""Shares at other proportions, and segment by segment."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from depthkit.stats import SampleError, reweighted_share, segment_rates

tasks = st.lists(st.tuples(st.booleans(), st.sampled_from("abc")), min_size=1, max_size=40)


def test_each_label_counts_with_its_original_proportion():
    # Of 3 easy tasks 1 is deep, of 1 hard task 1: 3/4 of the original tasks are hard.
    found = reweighted_share([1, 0, 0, 1], ["easy", "easy", "easy", "hard"], {"easy": 1, "hard": 3})
    assert found.value == pytest.approx((1 / 3 + 3 * 1) / 4)
    assert (found.unweighted, found.n, found.covered, found.absent) == (0.5, 4, 1, ())


def test_labels_that_the_sample_lacks_are_left_out_and_named():
    original = {"medium": 57, "hard": 14, "evolve": 28}
    found = reweighted_share([True, False, False], ["hard", "hard", "evolve"], original)
    assert found.value == pytest.approx(14 * 0.5 / (14 + 28))
    assert found.covered == pytest.approx(42 / 99)
    assert found.absent == ("medium",)


@given(tasks)
def test_the_proportions_of_the_sample_change_nothing(sample: list[tuple[bool, str]]):
    hits, label = zip(*sample, strict=True)
    found = reweighted_share(hits, label, Counter(label))
    assert found.value == pytest.approx(found.unweighted)


@given(tasks, st.tuples(*[st.integers(1, 50)] * 3))
def test_the_share_is_the_mean_of_tasks_weighted_by_how_rare_their_label_is(
    sample: list[tuple[bool, str]], original: tuple[int, int, int]
):
    hits, label = zip(*sample, strict=True)
    proportions = dict(zip("abc", original, strict=True))
    weights = [proportions[each] / label.count(each) for each in label]
    found = reweighted_share(hits, label, proportions)
    assert found.value == pytest.approx(np.average(hits, weights=weights))
    halved = {name: number / 2 for name, number in proportions.items()}
    assert reweighted_share(hits, label, halved).value == pytest.approx(found.value)


@pytest.mark.parametrize(
    ("hits", "label", "original", "says"),
    [
        ([], [], {"a": 1}, "hits is empty"),
        ([1, 0], ["a"], {"a": 1}, "label has 1 rows where the other arguments have 2"),
        ([1, 2], ["a", "a"], {"a": 1}, "hits must be true or false"),
        ([1, math.nan], ["a", "a"], {"a": 1}, "hits is missing"),
        ([1, 0], ["a", None], {"a": 1}, "label has no label in 1 of 2 rows"),
        ([1, 0], ["a", "b"], {"a": 1}, "original has no proportion for the label 'b'"),
        ([1, 0], ["a", "a"], {"a": 1, "b": -1}, r"original\['b'\] is -1; it must be more than 0"),
        ([1, 0], ["a", "a"], {"a": math.nan}, r"original\['a'\] is nan"),
    ],
)
def test_a_share_that_cannot_be_reweighted_is_an_error(
    hits: list[Any], label: list[Any], original: dict[Any, Any], says: str
):
    with pytest.raises(SampleError, match=says):
        reweighted_share(hits, label, original)


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    segments = draw(st.lists(st.integers(1, 6), min_size=1, max_size=40))
    return [draw(st.integers(0, most)) for most in segments], segments


def test_segment_rates_by_hand():
    # Ten runs on tasks of three segments: 8 pass the first, 6 the second, 3 the third.
    found = segment_rates([0, 0, 1, 1, 2, 2, 2, 3, 3, 3], [3] * 10)
    assert found.passing == (0.8, 0.6, 0.3)
    assert found.conditional == (0.8, 0.75, 0.5)
    assert (found.reached, found.passed) == ((10, 8, 6), (8, 6, 3))
    assert found.value == pytest.approx(0.3 ** (1 / 3))


@given(st.lists(st.integers(0, 6), min_size=1, max_size=60))
def test_where_all_tasks_have_k_segments_it_is_the_kth_root_of_the_share_passing_all(
    passed: list[int],
):
    found = segment_rates(passed, [6] * len(passed))
    assert found.value == pytest.approx(passed.count(6) ** (1 / 6) / len(passed) ** (1 / 6))


def test_with_shorter_tasks_it_is_in_general_not_that_root():
    # Two runs on tasks of one segment, one passing; two on tasks of two, which both pass whole.
    found = segment_rates([0, 1, 2, 2], [1, 1, 2, 2])
    assert found.passing == (0.75, 1)
    assert found.conditional == (0.75, 1)
    assert found.value == pytest.approx(0.75**0.5)


def test_with_shorter_tasks_it_is_that_root_if_their_runs_fare_alike_until_then():
    # Half of the runs pass the first segment, on tasks of one segment as on tasks of two.
    found = segment_rates([0, 1, 0, 0, 2, 1], [1, 1, 2, 2, 2, 2])
    assert found.passing == (0.5, 0.25)
    assert found.value == pytest.approx(0.25**0.5)


@given(runs())
def test_the_product_of_conditional_rates_is_the_kaplan_meier_estimate(
    sample: tuple[list[int], list[int]],
):
    passed, segments = sample
    found = segment_rates(passed, segments)
    pairs = list(zip(passed, segments, strict=True))
    observed = scipy.stats.CensoredData(
        uncensored=[done + 1 for done, most in pairs if done < most],
        right=[most for done, most in pairs if done == most],
    )
    theirs = scipy.stats.ecdf(observed).sf
    product = 1.0
    for number, rate in enumerate(found.conditional, start=1):
        if rate is None:
            break
        product *= rate
        assert product == pytest.approx(theirs.evaluate(number), abs=1e-12)


def test_a_segment_that_no_run_passes_makes_the_mean_zero():
    found = segment_rates([1, 1, 0], [3, 3, 3])
    assert found.conditional == (pytest.approx(2 / 3), 0, None)
    assert found.value == 0


def test_a_segment_that_no_run_reaches_for_want_of_longer_tasks_leaves_no_mean():
    found = segment_rates([1, 0], [1, 2])
    assert found.conditional == (0.5, None)
    assert found.value is None


@pytest.mark.parametrize(
    ("passed", "segments", "says"),
    [
        ([], [], "segments_passed is empty"),
        ([1], [1, 2], "segments has 2 rows"),
        ([2], [1], "segments_passed is more than segments"),
        ([0.5], [1], "segments_passed must hold whole numbers"),
        ([-1], [1], "segments_passed must hold whole numbers of at least 0"),
        ([0], [0], "segments must hold whole numbers of at least 1"),
        ([math.inf], [math.inf], "segments_passed must hold whole numbers"),
        ([math.nan], [1], "segments_passed is missing"),
    ],
)
def test_runs_that_cannot_be_are_an_error(passed: list[float], segments: list[float], says: str):
    with pytest.raises(SampleError, match=says):
        segment_rates(passed, segments)
