from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from graded import Graded, graded_corpus

from depthkit.artifacts import (
    build,
    figures,
    labels_figure,
    reweighting_table,
    sampling_table,
)
from depthkit.artifacts.levels import level, level_name
from depthkit.errors import DepthkitError


def test_labels_are_ordered_by_their_words_or_their_number():
    assert level("easy") < level("Medium") < level("evolve hard") < level("very  HARD")
    assert level("very easy") < level("synth easy")
    assert level("level 2") < level("Level 10")
    assert np.isnan(level("frontier"))
    assert np.isnan(level("uneasy"))
    assert level_name("synth very hard") == "very hard"


# --- Figure 8 ---


def rated(dataset: str, *pairs: tuple[str | None, float | None], **fields: str) -> list[Graded]:
    return [
        Graded(dataset, f"t{i}", label=label, rate=rate, sampled=False, **fields)  # type: ignore[arg-type]
        for i, (label, rate) in enumerate(pairs)
    ]


def test_pass_rates_are_averaged_at_each_level_over_tasks_measured_or_not(tmp_path: Path):
    tasks = rated(
        "SETA", ("synth hard", 0.25), ("evolve easy", 1.0), ("evolve hard", 0.75), ("synth easy", 0)
    )
    figure = labels_figure(graded_corpus(tmp_path / "c", tasks), resamples=100)
    assert figure.frame["level"].tolist() == ["easy", "hard"]
    assert figure.frame["pass_rate"].tolist() == [0.5, 0.5]
    assert figure.frame["tasks"].tolist() == [2, 2]
    # ranks: level 3.5 1.5 3.5 1.5, rate 2 4 3 1
    rho = np.corrcoef([3.5, 1.5, 3.5, 1.5], [2, 4, 3, 1])[0, 1]
    assert figure.parts["rho"]["rho"].tolist() == pytest.approx([rho], abs=1e-9)
    assert figure.provenance.startswith("4 scripted tasks with a released pass rate")


def test_author_ratings_come_before_labels_from_generation(tmp_path: Path):
    tasks = [
        Graded("TB2", f"t{i}", rating=rating, label="hard", rate=rate, sampled=False)
        for i, (rating, rate) in enumerate((("easy", 1.0), ("medium", 0.5), ("hard", 0.0)))
    ]
    figure = labels_figure(graded_corpus(tmp_path / "c", tasks), resamples=0)
    assert figure.parts["rho"]["rho"].tolist() == [-1.0]


def test_a_rate_released_for_a_lineage_counts_once(tmp_path: Path):
    def derived(task_id: str, parent: str, rate: float) -> Graded:
        return Graded(
            "RST", task_id, "synthetic", label="medium", rate=rate, sampled=False, parent=parent
        )

    tasks = [
        derived("a1", "seed-a", 0.2),
        derived("a2", "a1", 0.2),  # a later round of the same lineage
        derived("a3", "a2", 0.2),
        derived("b1", "seed-b", 0.8),
        derived("c1", "seed-c", 0.5),  # tasks with rates of their own
        derived("c2", "seed-c", 0.6),
    ]
    figure = labels_figure(graded_corpus(tmp_path / "c", tasks), resamples=0)
    assert figure.frame[["tasks", "pass_rate"]].to_numpy().tolist() == [
        [4, pytest.approx((0.2 + 0.8 + 0.5 + 0.6) / 4)]
    ]
    assert "RST: 2 tasks share the pass rate of their lineage" in " ".join(figure.notes)


def test_tasks_without_a_known_label_are_left_out_and_said_so(tmp_path: Path):
    tasks = rated("TW", ("easy", 1.0), ("spicy", 0.5), (None, 0.5), ("hard", 0.0), ("hard", None))
    tasks += rated("FACET", ("medium", None))
    figure = labels_figure(graded_corpus(tmp_path / "c", tasks), resamples=0)
    assert figure.frame["tasks"].tolist() == [1, 1]
    notes = " ".join(figure.notes)
    assert "TW: 1 tasks with a released pass rate have no label." in notes
    assert "the order of these labels is not known: spicy" in notes
    assert "FACET: no task has a released pass rate." in notes
    assert "Public pass rates of TW: made up." in notes


def test_the_paper_corpus_shows_every_data_set_of_the_printed_figure():
    figure = labels_figure("paper", resamples=0)
    rho = figure.parts["rho"].set_index("dataset")["rho"]
    assert list(rho.index) == ["TMax", "SETA", "RST", "TB2", "TW"]
    assert abs(rho["TW"]) < 0.01  # "not at all" (Section 4.3)
    assert figure.frame.loc[figure.frame["dataset"] == "TW", "tasks"].sum() == 150


@pytest.mark.parametrize("backend", ["bokeh", "matplotlib"])
def test_bars_are_as_high_as_the_mean_pass_rates(tmp_path: Path, backend: figures.Backend):
    tasks = rated("TMax", ("level 1", 0.75), ("level 2", 0.25), ("level 2", 0.5))
    figure = labels_figure(graded_corpus(tmp_path / "c", tasks), resamples=0)
    figures.load_backends()
    (panel,) = figure.draw(backend)
    bars = next(part for part in panel if type(part).__name__ == "Rectangles").dframe()
    assert bars.iloc[:, 3].tolist() == figure.frame["pass_rate"].tolist() == [0.75, 0.375]


def test_labels_groups_and_sources_are_text_and_never_markup(tmp_path: Path):
    hostile = '<img src=x onerror="alert()"> $\\frac{$ 3'
    tasks = [
        Graded(
            name,
            f"t{i}",
            group,
            rate=i / 4,
            rating=hostile if name == "TB2" else None,
            label=hostile,
            sampling_group=hostile,
            source=hostile,
            sampled=i < 2,
        )
        for name, group in (("TB2", "human-curated"), ("TMax", "synthetic"))
        for i in range(4)
    ]
    corpus = graded_corpus(tmp_path / "c", tasks)
    for artifact_id in ("figure-4", "figure-8", "table-4", "table-5"):
        made = build(f"depth/{artifact_id}", corpus)
        assert "<img src=x" not in made.show()
        assert made.export(tmp_path / "out")
    assert "&lt;img" in reweighting_table(corpus).show()


# --- Tables 4 and 5 ---


def test_sampled_tasks_are_counted_by_their_group(tmp_path: Path):
    tasks = [
        Graded("TB2", "a", sampling_group="5", rate=0.5),
        Graded("TB2", "b", sampling_group="5", rate=0.0, passes=0),
        Graded("TB2", "c", sampling_group="1-2"),
        Graded("TB2", "d", sampling_group="never", sampled=False),
        Graded("TW", "e"),
        Graded("Ours", "f", "ours", sampling_group="x"),
    ]
    table = sampling_table(graded_corpus(tmp_path / "c", tasks))
    frame = table.frame.set_index("dataset")
    assert frame.loc["TB2", ["groups", "sampled"]].tolist() == [2, 3]
    assert frame.loc["TB2", ["released", "released_passed"]].tolist() == [2, 1]
    assert np.isnan(frame.loc["TW", "groups"])
    assert list(frame.index) == ["TB2", "TW"]
    groups = table.parts["groups"].set_index("sampling_group")
    assert groups.loc["5", ["sampled", "solved"]].tolist() == [2, 1]
    assert "TW: 1 sampled tasks name no group." in table.notes
    assert frame.loc["TB2", "evidence"] == "DeepSeek-V3.2 passes one of its 5 leaderboard runs"
    assert "DeepSeek-V3.2 passes one of its 5 leaderboard runs" in table.show()


def skewed() -> list[Graded]:
    """Sampled: 2 easy, one deep, and 2 hard, both deep. Originally 8 easy, 2 hard and 2 odd."""
    sample = [
        Graded("TB2", "a", rating="easy", first=1),
        Graded("TB2", "b", rating="easy", first=5, turns=20),
        Graded("TB2", "c", rating="hard", first=5, turns=20),
        Graded("TB2", "d", rating="hard", first=10, turns=20),
    ]
    rest = [Graded("TB2", f"e{i}", rating="easy", sampled=False) for i in range(6)]
    return [*sample, *rest, *(Graded("TB2", f"o{i}", rating="odd", sampled=False) for i in (1, 2))]


def test_each_label_takes_its_original_proportion(tmp_path: Path):
    table = reweighting_table(graded_corpus(tmp_path / "c", skewed()))
    row = table.frame.set_index("dataset").loc["TB2"]
    assert row["D_ge_5"] == 3 / 4
    assert row["reweighted"] == pytest.approx((8 * 1 / 2 + 2 * 1) / 10)
    assert row["coverage"] == pytest.approx(10 / 12)
    labels = table.parts["labels"].set_index("label")
    assert labels.loc["easy", ["share", "solved", "D_le_3"]].tolist() == [0.5, 2, 1]
    assert labels.loc["odd", ["share", "sampled", "original"]].tolist() == [0, 0, 2]
    assert "without any: odd" in " ".join(table.notes)


def test_without_the_rest_of_a_data_set_nothing_is_reweighted(tmp_path: Path):
    sample = [task for task in skewed() if task.sampled]
    table = reweighting_table(graded_corpus(tmp_path / "c", sample))
    assert table.frame[["reweighted", "coverage"]].isna().all(axis=None)
    assert table.parts["labels"]["original_share"].isna().all()
    assert "original proportions are not known" in " ".join(table.notes)


def test_a_single_label_leaves_nothing_to_reweight(tmp_path: Path):
    tasks = [Graded("FACET", f"t{i}", "synthetic", label="medium", sampled=i < 2) for i in range(4)]
    table = reweighting_table(graded_corpus(tmp_path / "c", tasks))
    assert np.isnan(table.frame.loc[0, "reweighted"])
    assert "FACET: all tasks have one label, so nothing is reweighted." in table.notes


def test_terminalworlds_label_is_the_difficulty_it_was_sampled_by(tmp_path: Path):
    tasks = [
        Graded("TW", "a", label="easy", sampling_group="hard", first=5, turns=20),
        Graded("TW", "b", label="easy", sampling_group="easy"),
        Graded("TW", "c", label="easy", sampling_group="very hard", sampled=False),
    ]
    corpus = graded_corpus(tmp_path / "c", tasks)
    table = reweighting_table(corpus)
    assert table.frame.loc[0, "labels"] == "sampling_group"
    assert table.frame.loc[0, "reweighted"] == 0.5
    assert table.frame.loc[0, "coverage"] == pytest.approx(2 / 3)
    other = reweighting_table(corpus, labels={})
    assert other.frame.loc[0, "labels"] == "generated_label"
    with pytest.raises(DepthkitError, match="names the field 'colour'; choose from author_rating"):
        reweighting_table(corpus, labels={"tw": "colour"})
