"""What the exploring notebook shows, and that printed numbers are held against each other."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpora import Spec, write_corpus
from scipy import stats

from depthkit.artifacts.cross_checks import cross_check_table
from depthkit.artifacts.explore import explore, relate
from depthkit.artifacts.samples import Study, study
from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.published import cross_checks

DEPTHS = (1, 2, 3, 5, 10, 1, 2, 20)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    works = np.random.default_rng(3).permutation(range(10, 90, 10))
    specs = [
        Spec("a" if number % 2 else "NAME", depth, turns=depth + 3 + number, work=int(work))
        for number, (depth, work) in enumerate(zip(DEPTHS, works, strict=True))
    ]
    made = write_corpus(tmp_path / "c", specs)
    for file in ("tasks.jsonl", "runs.jsonl"):  # somebody else's corpus, edited by hand
        text = (made.path / file).read_text().replace("NAME", "<b>$x$")
        (made.path / file).write_text(text)
    return Corpus.open(made.path)


@pytest.fixture
def tasks(corpus: Corpus) -> Study:
    return study(corpus, None, None, ())


def test_without_covariates_it_is_spearmans_correlation(tasks: Study):
    relation = relate(tasks, "D", "N", ())
    assert relation.found is not None
    expected = stats.spearmanr(relation.tasks["D"], relation.tasks["N"]).statistic
    assert relation.found.value == pytest.approx(expected)
    assert "D and N, 8 tasks: rho = +" in relation.summary
    assert str(relation.found.percentile) in relation.summary


def test_the_chosen_interval_data_sets_and_covariates_count(tasks: Study):
    given = relate(tasks, "D", "N", ("W",), method="BCa")
    assert given.found is not None
    assert str(given.found.bca) in given.summary
    assert "D and N given W" in given.summary
    fisher = relate(tasks, "D", "N", ("W",), method="Fisher")
    assert fisher.found is not None
    assert fisher.found.percentile is None
    assert str(fisher.found.fisher) in fisher.summary
    assert set(relate(tasks, "D", "N", (), datasets=["a"]).tasks["dataset"]) == {"a"}


def test_what_the_tasks_do_not_determine_is_said_and_drawn_empty(tasks: Study):
    relation = relate(tasks, "D", "pass rate", ("W",))
    assert relation.found is None
    assert "0 tasks: no correlation, as x has 0 rows" in relation.summary
    ET.fromstring(relation.svg())


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"x": "Q"}, "no column Q; choose from D"),
        ({"covariates": ("D",)}, "name each column once"),
        ({"method": "guess"}, "method is guess; choose from percentile"),
        ({"datasets": ["zzz"]}, "no data set zzz; choose from"),
    ],
)
def test_a_choice_that_cannot_be_is_an_error(tasks: Study, choice: dict[str, Any], message: str):
    with pytest.raises(DepthkitError, match=message):
        relate(tasks, **choice)


def test_widgets_are_followed_at_once_and_names_are_text(corpus: Corpus):
    box = explore(corpus)
    controls, shown, scatter = box.children
    datasets, left, covariates = controls.children
    x, outcome, _, _ = left.children
    outcome.value = "N"
    assert "D and N given W, 8 tasks: rho" in shown.value
    assert scatter.value.startswith("<svg")
    ET.fromstring(scatter.value)
    assert "&lt;b&gt;$x$" in scatter.value
    before = shown.value
    covariates.value = ()
    assert "D and N, 8 tasks" in shown.value != before
    datasets.value = ("a",)
    assert "D and N, 4 tasks" in shown.value
    x.value = "N"
    assert "name each column once" in shown.value
    assert scatter.value == ""


def test_every_relation_is_in_the_table_and_those_that_fail_come_first(tmp_path: Path):
    table = cross_check_table()
    checked = cross_checks("depth")
    assert sorted(table.frame["id"]) == sorted(each.check.id for each in checked)
    broken = sum(not each.holds for each in checked)
    assert 0 < broken < len(checked)
    assert table.frame["holds"].tolist() == [False] * broken + [True] * (len(checked) - broken)
    assert f"{broken} cannot hold as printed" in table.title
    row = table.frame.set_index("id").loc["count-TB2"]
    assert (row["counts"], row["right"]) == ("4", "4 of 37")  # 10.8% of 37
    assert table.export(tmp_path)
    assert "no corpus" in table.show()
