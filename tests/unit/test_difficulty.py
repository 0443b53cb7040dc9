from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from graded import MODELS, Graded, graded_corpus
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from depthkit.artifacts import (
    difficulty_figure,
    difficulty_text,
    failed_runs_figure,
    model_set_figure,
    second_model_figure,
)
from depthkit.artifacts.samples import EVALUATED
from depthkit.corpus import Corpus

CAPS = (1, 2, 3, 5, 10)
QUICK = {"resamples": 200}


def five(dataset: str = "TB2", **fields: object) -> list[Graded]:
    """Ranks of D 1 to 5, of W 4 1 3 5 2, of the pass rate 5 4 3 1 2.

    Spearman's rho is 0 of D and W (1 - 6 * 20 / 120), -0.9 of D and the rate (1 - 6 * 38 / 120)
    and -0.3 of W and the rate (1 - 6 * 26 / 120).
    """
    work, rates = (40, 10, 30, 50, 20), (0.9, 0.8, 0.6, 0.1, 0.2)
    numbers = zip(CAPS, work, rates, strict=True)
    return [
        Graded(dataset, f"t{i}", first=D, turns=20 + i, work=W, rate=rate, **fields)  # type: ignore[arg-type]
        for i, (D, W, rate) in enumerate(numbers)
    ]


GIVEN_W = -0.9 / (1 - 0.3**2) ** 0.5
"""The partial correlation of D and the pass rate in ``five``, by its formula."""


def cell(frame: pd.DataFrame, column: str, **where: object) -> float:
    for name, value in where.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1, (where, len(frame))
    return float(frame[column].iloc[0])


# --- Figure 4 ---


def test_a_pass_rate_and_depth_are_correlated_with_work_held(tmp_path: Path):
    figure = difficulty_figure(graded_corpus(tmp_path / "c", five()), **QUICK)
    where = {"sample": "TB2", "x": "D", "given": "W"}
    assert cell(figure.frame, "rho", **where) == pytest.approx(GIVEN_W)
    assert cell(figure.frame, "n", **where) == 5
    # Fisher's interval: atanh(rho) -/+ 1.96 / sqrt(5 - 1 - 3)
    assert cell(figure.frame, "fisher_low", **where) == pytest.approx(
        np.tanh(np.arctanh(GIVEN_W) - 1.959964), abs=1e-6
    )
    assert cell(figure.frame, "low", **where) < GIVEN_W < cell(figure.frame, "high", **where)
    assert set(figure.frame["sample"]) == {"TB2", "human-curated"}


def evaluated(outcomes: Sequence[tuple[bool | None, ...]]) -> dict[str, tuple[bool | None, ...]]:
    return dict(zip(EVALUATED, outcomes, strict=True))


def ours() -> list[Graded]:
    """As ``five``, but the rates come from evaluation runs: 4/4, 3/4, 5/8, 1/8 and 1/4 of 1."""
    yes, no, half = (True, True), (False, False), (True, False)
    rates = (
        (yes, yes, yes, yes),
        (yes, yes, yes, no),
        (yes, yes, half, no),
        (half, no, no, no),
        (yes, no, no, no),
    )
    work = (40, 10, 30, 50, 20)
    return [
        Graded("Ours", f"t{i}", "ours", first=D, turns=99, work=W, evaluations=evaluated(each))
        for i, (D, W, each) in enumerate(zip(CAPS, work, rates, strict=True))
    ]


def test_the_pass_rate_of_ours_is_the_mean_of_the_evaluated_models(tmp_path: Path):
    figure = difficulty_figure(graded_corpus(tmp_path / "c", ours()), **QUICK)
    where = {"sample": "ours", "x": "D"}
    assert cell(figure.frame, "rho", **where) == pytest.approx(GIVEN_W)
    assert "40 scripted evaluation runs" in figure.provenance


def test_the_depth_of_ours_is_the_first_models_and_of_others_the_smallest(tmp_path: Path):
    def lowered(tasks: list[Graded]) -> list[Graded]:
        """The second model passes the deepest task in one turn."""
        return [*tasks[:-1], Graded(**{**vars(tasks[-1]), "second": 1})]

    own = difficulty_figure(graded_corpus(tmp_path / "a", lowered(ours())), **QUICK)
    assert cell(own.frame, "rho", sample="ours", x="D") == pytest.approx(GIVEN_W)
    public = difficulty_figure(graded_corpus(tmp_path / "b", lowered(five())), **QUICK)
    assert cell(public.frame, "rho", sample="TB2", x="D") != pytest.approx(GIVEN_W)


def test_a_task_without_a_result_of_one_model_is_left_out_and_a_half_failed_one_is_not(
    tmp_path: Path,
):
    refused = Graded("Ours", "x", "ours", evaluations=evaluated([(True,)] * 3 + [(None, None)]))
    once = Graded("Ours", "y", "ours", evaluations=evaluated([(True,)] * 3 + [(None, True)]))
    figure = difficulty_figure(graded_corpus(tmp_path / "c", [*ours(), refused, once]), **QUICK)
    assert cell(figure.frame, "n", sample="ours", x="D") == 6
    assert "1 of 7 solved tasks of ours lack a result of one of them." in figure.notes


def test_equal_pass_rates_are_tied_whatever_their_fractions(tmp_path: Path):
    """0.1 + 0.2 is not 0.3 in floats: a third of three models and of one task must be equal."""
    thirds = [(True, False, False)] * 2 + [(False, False, False), (True, True, True)]
    other = [(True, True, False), (True, True, False), (False,) * 3, (True, False, False)]
    tasks = [
        Graded("Ours", name, "ours", first=D, turns=50, work=W, evaluations=evaluated(outcomes))
        for name, D, W, outcomes in (
            ("a", 1, 10, thirds),
            ("b", 2, 30, other),
            ("c", 3, 20, [(True,)] * 4),
            ("d", 5, 5, [(False,)] * 4),
        )
    ]
    figure = difficulty_figure(graded_corpus(tmp_path / "c", tasks), resamples=0)
    # ranks: D 1 2 3 4, W 2 4 3 1, rate 2.5 2.5 4 1
    r = np.corrcoef([[1, 2, 3, 4], [2, 4, 3, 1], [2.5, 2.5, 4, 1]])
    expected = (r[0, 2] - r[0, 1] * r[1, 2]) / ((1 - r[0, 1] ** 2) * (1 - r[1, 2] ** 2)) ** 0.5
    assert cell(figure.frame, "rho", sample="ours", x="D") == pytest.approx(expected)


def test_a_corpus_without_evaluation_runs_says_which_models_it_lacks(tmp_path: Path):
    tasks = [Graded("Ours", f"t{i}", "ours", first=2, work=i) for i in range(4)]
    figure = difficulty_figure(graded_corpus(tmp_path / "c", tasks), **QUICK)
    assert figure.frame["rho"].isna().all()
    assert "has no evaluation runs of glm-5.3-flash, gpt-6-luna" in " ".join(figure.notes)


def test_a_sample_that_determines_no_correlation_gives_none_and_the_reason(tmp_path: Path):
    tasks = [Graded("TB2", f"t{i}", first=1, work=i + 1, rate=i / 5) for i in range(5)]
    figure = difficulty_figure(graded_corpus(tmp_path / "c", tasks), **QUICK)
    assert figure.frame["rho"].isna().all()
    assert cell(figure.frame, "n", sample="TB2", x="D") == 5
    assert any("TB2, D given W" in note and "constant" in note for note in figure.notes)


def test_hard_and_easier_tasks_are_counted_by_depth_unsolved_ones_too(tmp_path: Path):
    tasks = [
        Graded("TB2", "a", first=2, rating="hard"),
        Graded("TB2", "b", first=1, rating="hard"),
        Graded("TB2", "c", first=5, rating="hard", passes=0),
        Graded("TB2", "d", first=3, rating="medium"),
        Graded("TB2", "e", first=1, rating="easy"),
        Graded("TB2", "f", first=3, rating="hard", sampled=False),
    ]
    figure = difficulty_figure(graded_corpus(tmp_path / "c", tasks), **QUICK)
    ratings = figure.parts["ratings"].set_index("rating")
    assert ratings.loc["hard", ["sampled", "D_ge_2"]].tolist() == [3, 1]
    assert ratings.loc["easy or medium", ["sampled", "D_ge_2"]].tolist() == [2, 1]
    depths = figure.parts["rating_depths"]
    unsolved = depths[(depths["rating"] == "hard") & depths["D"].isna()]
    assert unsolved["tasks"].tolist() == [1]
    assert depths["tasks"].sum() == 5


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.permutations(range(7)),
    st.lists(st.integers(1, 40), min_size=7, max_size=7),
    st.lists(st.integers(0, 8), min_size=7, max_size=7),
)
def test_only_the_order_of_work_and_pass_rates_matters(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], work: list[int], passed: list[int]
):
    depths = (1, 1, 2, 2, 3, 5, 10)

    def tasks(stretch: bool) -> list[Graded]:
        made = [
            Graded(
                "TB2",
                f"t{i}",
                first=depths[i],
                turns=20,
                work=work[i] ** 2 if stretch else work[i],
                rate=(passed[i] / 8) ** 2 if stretch else passed[i] / 8,
            )
            for i in range(7)
        ]
        return [made[i] for i in order] if stretch else made

    found = [
        difficulty_figure(
            graded_corpus(tmp_path_factory.mktemp("c") / "c", tasks(stretch)), resamples=0
        ).frame["rho"]
        for stretch in (False, True)
    ]
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)


# --- Section 4.3 ---


def test_author_ratings_are_correlated_with_depth(tmp_path: Path):
    ratings = ("easy", "medium", "easy", "hard", "medium")
    tasks = [
        Graded(**{**vars(task), "rating": rating})
        for task, rating in zip(five(), ratings, strict=True)
    ]
    table = difficulty_text(graded_corpus(tmp_path / "c", tasks), **QUICK)
    r = np.corrcoef([[1, 2, 3, 4, 5], [4, 1, 3, 5, 2], [1.5, 3.5, 1.5, 5, 3.5]])
    given_work = (r[0, 2] - r[0, 1] * r[1, 2]) / ((1 - r[0, 1] ** 2) * (1 - r[1, 2] ** 2)) ** 0.5
    assert cell(table.frame, "rho", x="D", given="W") == pytest.approx(given_work)
    assert list(table.frame["x"]) == ["D", "W", "N"]
    assert f"{given_work:+.2f}" in table.html()


def test_tasks_are_split_at_depth_2_and_at_the_median_work(tmp_path: Path):
    """Ranks of the rate among the four of a data set: percentiles 1/8, 3/8, 5/8 and 7/8."""
    tasks = [
        Graded(name, f"t{i}", first=D, turns=20, work=W, rate=rate)
        for name, low in (("TB2", 0.0), ("TW", 0.5))
        for i, (D, W, rate) in enumerate(
            ((5, 90, low), (2, 10, low + 0.1), (1, 80, low + 0.2), (1, 20, low + 0.3))
        )
    ]
    table = difficulty_text(graded_corpus(tmp_path / "c", tasks), **QUICK)
    quadrants = table.parts["quadrants"].set_index("large")
    assert quadrants["percentile"].to_dict() == pytest.approx(
        {"both": 1 / 8, "D": 3 / 8, "W": 5 / 8, "neither": 7 / 8}
    )
    assert quadrants["n"].tolist() == [2, 2, 2, 2]
    assert quadrants["W_split"].unique().tolist() == [50]  # between 20 and 80
    assert quadrants["both"].tolist() == ["yes", "no", "no", "no"]


# --- Figures 10 and 11 ---


def two_models(tmp_path: Path, models: tuple[str, ...] = MODELS) -> Corpus:
    """Three of five tasks have a first estimate above 1; the second model lowers two of those."""
    tasks = [
        Graded("TB2", "a", first=1),
        Graded("TB2", "b", first=1),
        Graded("TB2", "c", first=5, second=3, turns=30),
        Graded("TB2", "d", first=10, second=2, turns=30),
        Graded("TB2", "e", first=3, second=5, turns=30),
        Graded("TB2", "f", first=20, turns=30, passes=0),
        Graded("Ours", "g", "ours", first=40, second=20, turns=50),
    ]
    return graded_corpus(tmp_path / f"c{len(models)}", tasks, models=models)


def test_the_second_model_is_counted_where_it_ran_and_where_it_lowers(tmp_path: Path):
    figure = second_model_figure(two_models(tmp_path))
    row = figure.frame.set_index("dataset").loc["TB2"]
    assert (row["D_ge_5_first"], row["D_ge_5"]) == (2 / 5, 0)
    assert (row["solved"], row["run_on"], row["lowered"]) == (5, 3, 2)
    # first 1 1 5 10 3, both 1 1 3 2 3: ranks 1.5 1.5 4 5 3 and 1.5 1.5 4.5 3 4.5
    expected = np.corrcoef([1.5, 1.5, 4, 5, 3], [1.5, 1.5, 4.5, 3, 4.5])[0, 1]
    assert row["rho"] == pytest.approx(expected)
    pooled = figure.parts["pooled"].set_index("group")
    existing, own = pooled.loc["existing"], pooled.loc["ours"]
    # 5 to 3 is one cap, 10 to 2 three
    assert (existing["lowered_by_1"], existing["deep_first"], existing["deep_lost"]) == (1, 2, 2)
    assert (existing["lowest_lowered"], existing["falls"]) == (2, 1)
    assert (own["lowered"], own["lowered_by_1"], own["lowest_lowered"]) == (1, 1, 20)
    assert own["falls"] == 0
    assert "Ours" not in set(figure.frame["dataset"])


def test_one_cap_down_from_above_the_largest_is_the_largest(tmp_path: Path):
    tasks = [Graded("a", "x", first=99, second=80, turns=120), Graded("a", "y", first=1)]
    figure = second_model_figure(graded_corpus(tmp_path / "c", tasks))
    assert figure.frame[["lowered", "lowered_by_1"]].iloc[0].tolist() == [1, 1]


def test_a_corpus_of_one_model_has_nothing_to_compare(tmp_path: Path):
    figure = second_model_figure(two_models(tmp_path, MODELS[:1]))
    assert figure.frame[["run_on", "lowered", "rho", "D_ge_5"]].isna().all(axis=None)
    assert cell(figure.frame, "D_ge_5_first", dataset="TB2") == 2 / 5
    assert "one model" in " ".join(figure.notes)


def test_tests_of_depth_are_repeated_with_the_first_model_alone(tmp_path: Path):
    tasks = five()
    tasks[-1] = Graded(**{**vars(tasks[-1]), "second": 1})
    figure = model_set_figure(graded_corpus(tmp_path / "c", tasks), **QUICK)
    where = {"sample": "TB2", "outcome": "pass rate", "x": "D", "given": "W"}
    first = cell(figure.frame, "rho", **where, D_from="first")
    assert first == pytest.approx(GIVEN_W)
    # D 1 2 3 5 1 from both: ranks 1.5 3 4 5 1.5
    r = np.corrcoef([[1.5, 3, 4, 5, 1.5], [4, 1, 3, 5, 2], [5, 4, 3, 1, 2]])
    both = (r[0, 2] - r[0, 1] * r[1, 2]) / ((1 - r[0, 1] ** 2) * (1 - r[1, 2] ** 2)) ** 0.5
    assert cell(figure.frame, "rho", **where, D_from="both") == pytest.approx(both)
    assert set(figure.parts["quadrants"]["D_from"]) == {"both", "first"}


def test_pass_rates_of_ours_leave_out_models_that_measure_depth(tmp_path: Path):
    """Without the outcomes of glm-5.3-flash the order of the last two tasks is reversed."""
    figure = model_set_figure(graded_corpus(tmp_path / "c", ours()), **QUICK)
    # mean of the other three: 1, 2/3, 1/2, 0, 0
    r = np.corrcoef([[1, 2, 3, 4, 5], [4, 1, 3, 5, 2], [5, 4, 3, 1.5, 1.5]])
    expected = (r[0, 2] - r[0, 1] * r[1, 2]) / ((1 - r[0, 1] ** 2) * (1 - r[1, 2] ** 2)) ** 0.5
    where = {"sample": "ours", "outcome": "pass rate", "x": "D", "D_from": "first"}
    assert cell(figure.frame, "rho", **where) == pytest.approx(expected)
    assert "means of gpt-6-luna, mimo-v2.6-flash, gpt-6.1-sol." in " ".join(figure.notes)


def test_the_share_of_shallow_synthetic_tasks_by_either_estimate(tmp_path: Path):
    tasks = [
        Graded("RST", "a", "synthetic", first=1),
        Graded("RST", "b", "synthetic", first=5, second=3, turns=30),
    ]
    shallow = model_set_figure(graded_corpus(tmp_path / "c", tasks)).parts["shallow"]
    assert shallow.set_index("D_from")["D_le_3"].to_dict() == {"both": 1.0, "first": 0.5}


# --- Figure 12 ---


def test_tasks_whose_two_free_runs_pass_are_looked_at_alone(tmp_path: Path):
    flaky = Graded("TB2", "z", first=10, turns=30, work=1, passes=1, rate=1.0)
    figure = failed_runs_figure(graded_corpus(tmp_path / "c", [*five(), flaky]), **QUICK)
    where = {"sample": "human-curated"}
    assert cell(figure.frame, "n", **where, runs="all") == 6
    assert cell(figure.frame, "n", **where, runs="R = 1") == 5
    assert cell(figure.frame, "rho", **where, runs="R = 1") == pytest.approx(GIVEN_W)
    depths = figure.parts["depths"].set_index("runs")
    assert depths.loc["all", ["D_le_3", "D_ge_5", "D_ge_40", "n"]].tolist() == [0.5, 0.5, 0, 6]
    assert depths.loc["R = 1", ["D_le_3", "D_ge_5"]].tolist() == [0.6, 0.4]
    counts = figure.parts["distribution"].query("runs == 'all' and D == 10")["tasks"]
    assert counts.tolist() == [2]


def test_human_curated_tasks_and_ours_are_pooled_with_their_own_pass_rates(tmp_path: Path):
    figure = failed_runs_figure(graded_corpus(tmp_path / "c", [*five(), *ours()]), **QUICK)
    names = ["human-curated", "ours", "human-curated + ours"]
    assert figure.frame.query("runs == 'all'")["sample"].tolist() == names
    assert figure.frame.query("runs == 'all'")["n"].tolist() == [5, 5, 10]
