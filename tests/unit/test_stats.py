from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from depthkit.protocol import CAPS
from depthkit.stats import depth_quantile, quantile, spread


@given(st.lists(st.sampled_from(CAPS), min_size=1), st.floats(0, 1))
def test_quantiles_of_depth_are_those_of_its_numbers_where_no_task_is_above_the_largest_cap(
    depths: list[int], q: float
):
    found = depth_quantile(depths, q, caps=CAPS)
    assert found.value == np.quantile(depths, q)
    assert not found.above


def test_a_median_beyond_the_largest_cap_is_not_a_number_of_turns():
    assert str(depth_quantile([40, 99, 99], 0.5, caps=CAPS)) == ">80"


def test_a_median_between_a_cap_and_beyond_the_largest_is_a_lower_bound():
    assert str(depth_quantile([40, 99], 0.5, caps=CAPS)) == ">60"


def test_tasks_beyond_the_largest_cap_leave_lower_quantiles_exact():
    assert str(depth_quantile([5, 10, 10, 99], 0.5, caps=CAPS)) == "10"


def test_quantiles_leave_out_what_is_not_known():
    assert quantile([1, math.nan, 3], 0.5) == 2
    assert math.isnan(quantile([math.nan], 0.5))
    assert math.isnan(quantile([], 0.5))


def test_a_median_is_printed_between_its_percentiles_as_in_table_9():
    found = spread([*range(1000, 2100, 100), math.nan])
    assert str(found) == "1,500 [1,100, 1,900]"
    assert found.n == 11


def test_other_percentiles_can_be_asked_for():
    found = spread(range(101), low=0.25, high=0.75)
    assert (found.low, found.value, found.high) == (25, 50, 75)
    assert found.method == "median, 25% and 75% quantiles, interpolated linearly"


def test_a_median_of_nothing_is_a_dash():
    assert str(spread([math.nan])) == "\N{EN DASH}"
