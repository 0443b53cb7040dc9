"""The sign test."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from statsmodels.stats.descriptivestats import sign_test as statsmodels_sign_test

from depthkit.stats import SampleError, sign_test


def test_35_of_35_prints_the_p_value_of_the_paper():
    found = sign_test([20] * 35, [1] * 35)
    assert str(found) == "35 of 35, p = 5.8e-11"
    assert found.p_value == pytest.approx(2 / 2**35)
    assert found.value == 1


def test_pairs_that_are_equal_are_left_out_and_counted():
    found = sign_test([5, 5, 99, 10, 1], [1, 5, 99, 20, 0])
    assert (found.greater, found.n, found.ties) == (2, 3, 2)
    assert found.p_value == 1


def test_the_interval_is_the_exact_one():
    # With 35 of 35, the lower end is where 35 successes have a chance of 2.5%
    found = sign_test(range(1, 36), [0] * 35)
    assert found.interval.low == pytest.approx(0.025 ** (1 / 35))
    assert found.interval.high == 1


@settings(deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=60))
def test_the_p_value_is_that_of_statsmodels(differences: list[int]):
    assume(any(differences))
    _, theirs = statsmodels_sign_test(differences)
    assert sign_test(differences, [0] * len(differences)).p_value == pytest.approx(theirs)


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        ([1, 2], [1, 2], "a and b are equal in all 2 pairs"),
        ([], [], "a and b are equal in all 0 pairs"),
        ([1, 2], [1], "b has 1 rows"),
        ([1, math.nan], [1, 2], "a is missing"),
    ],
)
def test_pairs_that_say_nothing_are_an_error(a: list[float], b: list[float], says: str):
    with pytest.raises(SampleError, match=says):
        sign_test(a, b)
