"""Rank correlations: values, p-values, what is no sample; checked against other libraries."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pingouin
import pytest
import scipy.stats
import statsmodels.api as sm
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from depthkit.errors import DepthkitError
from depthkit.stats import (
    ArgumentError,
    Correlation,
    SampleError,
    rank_partial_correlation,
    spearman,
)
from depthkit.stats.correlation import fisher_interval

X, Y, Z = [1, 1, 2, 3, 3], [2, 1, 3, 3, 5], [1, 3, 2, 5, 4]


def value_of(x: Sequence[float], y: Sequence[float], *covariates: Sequence[float]) -> float:
    return rank_partial_correlation(x, y, covariates, resamples=0, permutations=0).value


@st.composite
def tied_columns(draw: st.DrawFn, columns: int) -> list[list[int]]:
    """Columns of few distinct numbers, as D and pass rates are: with many ties."""
    n = draw(st.integers(columns + 3, 30))
    levels = draw(st.integers(2, 12))
    number = st.integers(0, levels)
    return [draw(st.lists(number, min_size=n, max_size=n)) for _ in range(columns)]


def sound(x: Sequence[float], y: Sequence[float], *covariates: Sequence[float]) -> float:
    """The value, for samples that have one."""
    try:
        return value_of(x, y, *covariates)
    except SampleError:
        assume(False)
        raise


def test_spearman_by_hand_with_ties():
    # Ranks 1 2.5 2.5 4 and 1 3 2 4; about their means the sums of products are 4.5, 4.5 and 5.
    assert spearman([1, 2, 2, 3], [1, 3, 2, 4]).value == pytest.approx(4.5 / math.sqrt(22.5))


def test_rank_partial_correlation_by_hand_with_ties():
    # Ranks of X 1.5 1.5 3 4.5 4.5, of Y 2 1 3.5 3.5 5. About their means, the sums of products are
    # xx 9, yy 9.5, zz 10, xy 8.25, xz 7.5, yz 4.5; what Z leaves is xy 4.875, xx 3.375, yy 7.475.
    assert value_of(X, Y, Z) == pytest.approx(4.875 / math.sqrt(3.375 * 7.475))


@given(tied_columns(2))
def test_spearman_is_that_of_scipy(columns: list[list[int]]):
    x, y = columns
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    found = spearman(x, y, resamples=0, permutations=0).value
    assert found == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-12)


@settings(deadline=None)
@given(tied_columns(3))
def test_one_covariate_gives_the_value_of_pingouin_where_that_is_sound(columns: list[list[int]]):
    x, y, z = columns
    found = sound(x, y, z)
    frame = pd.DataFrame({"x": x, "y": y, "z": z})
    theirs = pingouin.partial_corr(frame, "x", "y", "z", method="spearman")
    assert found == pytest.approx(theirs["r"].iloc[0], abs=1e-8)


@settings(deadline=None)
@given(tied_columns(5))
def test_three_covariates_give_the_value_of_pingouin_where_that_is_sound(columns: list[list[int]]):
    found = sound(*columns)
    frame = pd.DataFrame(dict(zip("xyuvw", columns, strict=True)))
    theirs = pingouin.partial_corr(frame, "x", "y", ["u", "v", "w"], method="spearman")
    assert found == pytest.approx(theirs["r"].iloc[0], abs=1e-8)


@settings(deadline=None)
@given(tied_columns(4))
def test_the_value_is_the_correlation_of_what_a_regression_of_ranks_leaves(
    columns: list[list[int]],
):
    found = sound(*columns)
    x, y, *covariates = (scipy.stats.rankdata(values) for values in columns)
    known = sm.add_constant(np.column_stack(covariates))
    left = [sm.OLS(values, known).fit().resid for values in (x, y)]
    assert found == pytest.approx(np.corrcoef(*left)[0, 1], abs=1e-8)


@given(tied_columns(4))
def test_only_ranks_count_and_x_and_y_may_change_places(columns: list[list[int]]):
    x, y, u, v = columns
    found = sound(*columns)
    cubed = [float(number) ** 3 for number in x]
    assert value_of(cubed, y, u, v) == found
    assert value_of(y, x, v, u) == pytest.approx(found, abs=1e-9)
    assert value_of([-number for number in x], y, u, v) == pytest.approx(-found, abs=1e-12)


def test_fishers_interval_is_the_one_pingouin_rounds():
    x, y, u, v = np.random.default_rng(1).normal(size=(4, 12))
    frame = pd.DataFrame({"x": x, "y": y, "u": u, "v": v})
    theirs = pingouin.partial_corr(frame, "x", "y", ["u", "v"], method="spearman")["CI95"].iloc[0]
    ours = rank_partial_correlation(x, y, [u, v], resamples=0, permutations=0).fisher
    assert ours is not None
    assert [ours.low, ours.high] == pytest.approx(list(theirs), abs=0.005 + 1e-9)


def test_fishers_interval_by_hand():
    # tanh(atanh(0.5) +- 1.959964 / sqrt(49)), with 53 tasks and one covariate
    interval = fisher_interval(0.5, 53, 1)
    assert interval.low == pytest.approx(math.tanh(math.atanh(0.5) - 1.959964 / 7), abs=1e-6)
    assert interval.high == pytest.approx(math.tanh(math.atanh(0.5) + 1.959964 / 7), abs=1e-6)


def test_two_orders_that_differ_by_one_exchange_are_not_taken_for_the_same():
    n = 400
    order = list(range(n))
    swapped = [1, 0, *order[2:]]
    y = np.random.default_rng(0).normal(size=n)
    left = np.array(order, dtype=float) - swapped  # What is left of x is nearly this
    found = value_of(order, list(y), swapped)
    assert found == pytest.approx(np.corrcoef(left, scipy.stats.rankdata(y))[0, 1], abs=0.01)


def with_gap(values: Sequence[float]) -> list[float]:
    return [math.nan, *values[1:]]


@pytest.mark.parametrize(
    ("x", "y", "covariates", "says"),
    [
        (with_gap(X), Y, [Z], "x is missing (NaN) in 1 of 5 rows"),
        (X, with_gap(Y), [Z], "y is missing (NaN) in 1 of 5 rows"),
        (X, Y, [Z, with_gap(Z)], "covariates[1] is missing (NaN)"),
        ([1, 2, 2, 3, None], Y, [Z], "x is missing"),
        (pd.array([1, 2, 2, 3, None], dtype="Int64"), Y, [Z], "x is missing"),
        (X, [1, 2], [Z], "y has 2 rows where the other arguments have 5"),
        (X, Y, [[1, 2]], "covariates[0] has 2 rows"),
        (X, Y, [], "covariates is empty"),
        (X, Y, Z, "covariates[0] must hold one number a task"),
        (X, Y, pd.DataFrame({"W": Z}), "covariates[0] must hold one number a task"),
        ([X], Y, [Z], "x must hold one number a task"),
        (["easy", "hard", "easy", "hard", "hard"], Y, [Z], "x must hold one number a task"),
        (X[:3], Y[:3], [Z[:3]], "x has 3 rows; with 1 covariates there must be 4"),
        ([1, 1, 1, 1, 1], Y, [Z], "x is constant (1)"),
        (X, [2, 2, 2, 2, 2], [Z], "y is constant (2)"),
        (X, Y, [[0, 0, 0, 0, 0]], "covariates[0] is constant (0)"),
        (X, X, [Z], "x is determined by y"),
        (X, [-9 * number for number in X], [Z], "x is determined by y"),
        (X, Y, [[2**number for number in X]], "x is determined by covariates[0]"),
        (X, Y, [[-number for number in Y]], "y is determined by covariates[0]"),
        (X, Y, [Z, [2 * number for number in Z]], "covariates[1] is determined by covariates[0]"),
    ],
)
def test_a_sample_without_a_correlation_is_an_error_that_names_the_argument(
    x: list[float], y: list[float], covariates: list[list[float]], says: str
):
    with pytest.raises(SampleError) as caught:
        rank_partial_correlation(x, y, covariates, resamples=10, permutations=10)
    assert says in str(caught.value)
    assert isinstance(caught.value, DepthkitError)
    assert isinstance(caught.value, ValueError)


# Two halves of a design and their sum, whose ranks are three quarters of the sum of theirs.
A, B, BOTH = [0, 0, 1, 1] * 2, [0, 1, 0, 1] * 2, [0, 1, 1, 2] * 2
ANY, OTHER = [1, 5, 2, 4, 3, 3, 8, 7], [2, 2, 1, 4, 5, 3, 3, 9]


@pytest.mark.parametrize(
    ("x", "y", "covariates", "says"),
    [
        (
            ANY,
            OTHER,
            [A, B, BOTH],
            "covariates[2] is determined by covariates[0] and covariates[1]",
        ),
        (BOTH, OTHER, [A, B], "x is determined by covariates[0] and covariates[1]"),
        (ANY, BOTH, [A, B], "y is determined by covariates[0] and covariates[1]"),
        (BOTH, A, [B], "x is determined by y and covariates[0]"),
    ],
)
def test_what_others_determine_only_together_is_an_error_too(
    x: list[int], y: list[int], covariates: list[list[int]], says: str
):
    with pytest.raises(SampleError) as caught:
        value_of(x, y, *covariates)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"confidence": 95}, "confidence is 95; it must lie between 0 and 1"),
        ({"resamples": -1}, "resamples is -1; it must be at least 0"),
        ({"permutations": 0.5}, "permutations is 0.5; it must be a whole number"),
        ({"seed": -3}, "seed is -3; it must be at least 0"),
    ],
)
def test_a_setting_that_makes_no_sense_is_an_error(setting: dict[str, float], says: str):
    with pytest.raises(ArgumentError, match=says):
        rank_partial_correlation(X, Y, [Z], **setting)  # type: ignore[arg-type]


def test_infinite_values_are_ranked_like_any():
    assert value_of([1, 1, 2, 3, math.inf], Y, Z) == value_of([1, 1, 2, 3, 99], Y, Z)


def test_spearman_of_the_same_order_is_one_without_the_intervals_there_are_not():
    found = spearman([1, 2, 3, 4, 5, 6], [1, 4, 9, 16, 25, 36])
    assert found.value == 1
    assert (found.fisher, found.bca) == (None, None)
    assert any(note.startswith("No Fisher interval: value is +1") for note in found.notes)
    assert spearman([1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]).value == -1


# ---- the p-value


def correlated(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    return z + rng.normal(size=n), z + rng.normal(size=n), z


def test_no_p_value_is_smaller_than_one_in_one_more_than_the_permutations():
    n = range(30)
    assert spearman(n, n, resamples=0, permutations=199).p_value == 1 / 200


def test_permutations_as_extreme_as_the_sample_count_as_extreme():
    assert spearman([0, 0, 1, 1], [0, 1, 0, 1], resamples=0, permutations=99).p_value == 1


def test_the_p_value_of_spearman_is_near_the_one_over_all_permutations():
    x, y, m = [1, 2, 3, 4, 5, 6], [2, 1, 4, 3, 5, 5], 40_000
    exact = scipy.stats.permutation_test(
        (x,), lambda x: scipy.stats.spearmanr(x, y).statistic, permutation_type="pairings"
    ).pvalue
    found = spearman(x, y, resamples=0, permutations=m).p_value
    assert found == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / m))


def test_the_p_value_is_that_of_a_loop_which_permutes_residuals_and_fits_again():
    x, y, z = correlated(25, seed=5)
    m, seed = 199, 7
    found = rank_partial_correlation(x, y, [z], resamples=0, permutations=m, seed=seed)
    x, y, z = (scipy.stats.rankdata(values) for values in (x, y, z))
    known = sm.add_constant(z)
    fit = sm.OLS(y, known).fit()
    orders = np.random.default_rng([seed, 1]).permuted(np.tile(np.arange(25), (m, 1)), axis=1)
    t = [
        abs(
            sm.OLS(fit.fittedvalues + fit.resid[order], np.column_stack([known, x]))
            .fit()
            .tvalues[2]
        )
        for order in [np.arange(25), *orders]
    ]
    assert found.p_value == sum(each >= t[0] - 1e-9 for each in t) / (m + 1)


def test_permutations_that_leave_no_correlation_count_as_extreme():
    """Two of the 70 orders of y are those of the covariate or its reverse."""
    x, y, z, m = [1, 2, 7, 8, 3, 6, 4, 5], [0, 0, 1, 1] * 2, [0] * 4 + [1] * 4, 40_000

    def correlation(order: np.ndarray) -> float:
        columns = [scipy.stats.rankdata(values) - 4.5 for values in (x, order)]
        left = [values - values.reshape(2, 4).mean(axis=1).repeat(4) for values in columns]
        scale = math.sqrt((left[0] ** 2).sum() * (left[1] ** 2).sum())
        return abs(left[0] @ left[1]) / scale if scale else math.inf

    orders = [np.isin(range(8), ones) for ones in itertools.combinations(range(8), 4)]
    found = [correlation(order) for order in orders]
    assert found.count(math.inf) == 2
    exact = np.mean(np.array(found) >= correlation(np.array(y)) - 1e-9)
    p_value = rank_partial_correlation(x, y, [z], resamples=0, permutations=m).p_value
    assert p_value == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / m))


def test_the_p_value_holds_its_level_where_both_follow_the_covariate():
    """With x and y unrelated but for z, 5% are below 0.05; without z, nearly all would be."""
    found, plain = [], []
    for seed in range(400):
        x, y, z = correlated(40, seed)
        found.append(rank_partial_correlation(x, y, [z], resamples=0, permutations=199).p_value)
        plain.append(spearman(x, y, resamples=0, permutations=199).p_value)
    assert 0.025 < np.mean(np.array(found, dtype=float) <= 0.05) < 0.08
    assert np.mean(np.array(plain, dtype=float) <= 0.05) > 0.8


# ---- the seed


def judged(seed: int) -> Correlation:
    x, y, z = correlated(40)
    return rank_partial_correlation(x, y, [z], resamples=500, permutations=500, seed=seed)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others():
    first, again, other = judged(3), judged(3), judged(4)
    assert repr(first) == repr(again)
    assert first.value == other.value
    assert first.percentile != other.percentile
    assert first.bca != other.bca
    assert first.p_value != other.p_value


def test_intervals_do_not_depend_on_whether_a_p_value_is_asked_for():
    x, y, z = correlated(40)
    both = judged(3)
    one = rank_partial_correlation(x, y, [z], resamples=500, permutations=0, seed=3)
    other = rank_partial_correlation(x, y, [z], resamples=0, permutations=500, seed=3)
    assert (one.percentile, one.bca, one.p_value) == (both.percentile, both.bca, None)
    assert (other.percentile, other.bca, other.p_value) == (None, None, both.p_value)


def test_pingouin_still_needs_the_guard():
    """Why this package has its own: remove it once pingouin raises here."""
    frame = pd.DataFrame({"x": X, "y": X, "z": Z})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pingouin.partial_corr(frame, "x", "y", "z", method="spearman")["r"].iloc[0]
    assert found != pytest.approx(1)
