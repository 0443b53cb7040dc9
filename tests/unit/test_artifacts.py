from __future__ import annotations

import ast
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpora import Spec, seven_sets, write_corpus
from typer.testing import CliRunner

import depthkit.artifacts
from depthkit.artifacts import audit_table, audit_text, build, depth_work_figure, figures, ids
from depthkit.artifacts.datasets import styles
from depthkit.cli import app
from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError

HOSTILE = '<img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def seven(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return seven_sets(tmp_path_factory.mktemp("corpora") / "seven")


def row(corpus: Corpus, dataset: str, **params: Any) -> dict[str, Any]:
    frame = audit_table(corpus, **params).frame.set_index("dataset")
    return frame.loc[dataset].to_dict()


def test_table_1_counts_shares_and_medians_of_solved_tasks(tmp_path: Path):
    corpus = write_corpus(
        tmp_path / "c",
        [
            Spec("a", 1, turns=4, work=10, minutes=1.0, tokens=1000),
            Spec("a", 3, turns=6, work=30, minutes=3.0, tokens=3000),
            Spec("a", 5, turns=11, work=50, minutes=8.0, tokens=8000),
            Spec("a", 0, work=900),
        ],
    )
    found = row(corpus, "a")
    assert (found["sampled"], found["solved"]) == (4, 3)
    assert found["D_le_3"] == pytest.approx(2 / 3)
    assert found["D_ge_5"] == pytest.approx(1 / 3)
    assert (found["D"], found["N"], found["W"], found["N_mean"]) == (3, 6, 30, 7)
    assert (found["minutes"], found["tokens_k"]) == (3, 4)


def test_table_1_stands_in_the_papers_order_and_unknown_sets_follow_by_name(tmp_path: Path):
    names = [("zeta", None), ("TW", "human-curated"), ("RST", "synthetic"), ("Ours", "ours")]
    names += [("beta", "synthetic"), ("TMax", "synthetic"), ("TB2", "human-curated")]
    corpus = write_corpus(tmp_path / "c", [Spec(name, 1, group=group) for name, group in names])
    shown = list(audit_table(corpus).frame["dataset"])
    assert shown == ["TMax", "RST", "beta", "TB2", "TW", "Ours", "zeta"]


def test_tasks_without_two_free_runs_are_not_counted_as_sampled(tmp_path: Path):
    corpus = write_corpus(
        tmp_path / "c", [Spec("a", 1), Spec("a", 1, runs=1), Spec("a", 2, runs=0)]
    )
    table = audit_table(corpus)
    assert table.frame.loc[0, ["sampled", "unmeasured"]].tolist() == [1, 2]
    assert "a: 2 more tasks lack two valid runs" in " ".join(table.notes)


def test_a_depth_that_could_still_fall_is_left_out_and_said_so(tmp_path: Path):
    corpus = write_corpus(tmp_path / "c", [Spec("a", 2, turns=20), Spec("a", 10, turns=20, runs=4)])
    table = audit_table(corpus)
    assert table.frame.loc[0, ["solved", "unfinished", "D"]].tolist() == [2, 1, 2]
    assert "1 solved tasks have no final D" in " ".join(table.notes)


def test_work_is_over_the_tasks_that_have_a_reference_solution(tmp_path: Path):
    corpus = write_corpus(tmp_path / "c", [Spec("a", 1, work=8), Spec("a", 1, work=None)])
    table = audit_table(corpus)
    assert table.frame.loc[0, "W"] == 8
    assert "W is over the 1 of 2 solved tasks" in " ".join(table.notes)
    without = write_corpus(tmp_path / "d", [Spec("a", 1, work=None)])
    assert np.isnan(audit_table(without).frame.loc[0, "W"])


def test_a_median_depth_above_the_largest_cap_reads_as_such(tmp_path: Path):
    corpus = write_corpus(tmp_path / "c", [Spec("a", 99, turns=120)])
    table = audit_table(corpus)
    assert table.frame.loc[0, "D_above"]
    assert "&gt;80</td>" in table.show()


def test_data_sets_can_be_chosen_in_any_letter_case(seven: Corpus):
    assert list(audit_table(seven, datasets=["tb2", "TMAX"]).frame["dataset"]) == ["TMax", "TB2"]


def test_an_unknown_data_set_is_an_error_that_names_those_there(seven: Corpus):
    with pytest.raises(DepthkitError, match=r"TB3.*corpus seven holds \['FACET', 'Ours'"):
        audit_table(seven, datasets=["TB3"])


def test_a_coarser_scale_takes_each_depth_to_the_next_cap(tmp_path: Path):
    corpus = write_corpus(tmp_path / "c", [Spec("a", d, turns=60) for d in (2, 3, 40)])
    assert depth_work_figure(corpus, caps=[1, 5, 20]).frame["D"].tolist() == [5, 5, 99]
    with pytest.raises(DepthkitError, match="caps has 4"):
        audit_table(corpus, caps=[4])


def test_pooled_numbers_take_the_data_sets_of_a_group_together(tmp_path: Path):
    corpus = write_corpus(
        tmp_path / "c",
        [
            Spec("a", 1, turns=6, work=10),
            Spec("b", 2, turns=10, work=20),
            Spec("b", 10, turns=12, work=60),
            Spec("c", 1, turns=5, work=4, group="human-curated"),
            Spec("mine", 40, turns=50, group="ours"),
        ],
    )
    frame = audit_text(corpus).frame.set_index("group")
    columns = ["solved", "D_le_3", "D_ge_5", "W", "N_6_10", "N_6_10_D_1"]
    assert frame.loc["synthetic", columns].tolist() == [3, 2, 1, 20, 2, 1]
    assert frame.loc["existing", columns].tolist() == [4, 3, 1, 15, 2, 1]
    assert frame.loc["ours", "solved"] == 1


def test_figure_3_marks_each_solved_task_and_keeps_its_numbers(seven: Corpus):
    figure = depth_work_figure(seven)
    assert len(figure.frame) == 6 * 4 + 3
    percentiles = figure.parts["percentiles"].set_index(["dataset", "measure"])
    work = figure.frame.query("dataset == 'RST'")["W"]
    columns = ["p10", "p25", "p50", "p75", "p90"]
    assert percentiles.loc[("RST", "W"), columns].tolist() == pytest.approx(
        np.percentile(work, [10, 25, 50, 75, 90])
    )


def test_dashed_lines_are_90th_percentiles_over_synthetic_sets_only(seven: Corpus, tmp_path: Path):
    figure = depth_work_figure(seven)
    lines = figure.parts["percentiles"].set_index(["dataset", "measure"])["p90"]
    synthetic = figure.frame.query("group == 'synthetic'")
    assert lines["all synthetic", "W"] == pytest.approx(np.percentile(synthetic["W"], 90))
    assert lines["all synthetic", "D"] == pytest.approx(np.percentile(synthetic["D"], 90))
    curated = write_corpus(tmp_path / "c", [Spec("TB2", 1, group="human-curated")])
    assert "all synthetic" not in set(depth_work_figure(curated).parts["percentiles"]["dataset"])


@pytest.mark.parametrize("backend", ["bokeh", "matplotlib"])
def test_boxes_and_whiskers_are_drawn_at_the_computed_percentiles(
    seven: Corpus, backend: figures.Backend
):
    figure = depth_work_figure(seven, datasets=["RST"])
    figures.load_backends()
    work = list(figure.draw(backend))[1]
    numbers = figure.parts["percentiles"].query("dataset == 'RST' and measure == 'W'").iloc[0]
    whiskers, box, median = (part.dframe() for part in list(work)[:3])
    assert box.iloc[0, [0, 2]].tolist() == [numbers["p25"], numbers["p75"]]
    assert whiskers.iloc[:, 0].min() == numbers["p10"]
    assert whiskers.iloc[:, 2].max() == numbers["p90"]
    assert median.iloc[0, 0] == numbers["p50"]


def test_a_task_above_the_largest_cap_is_drawn_beyond_it():
    places = figures.cap_position([1, 2.5, 80, 99], (1, 2, 3, 5, 10, 20, 40, 80))
    assert places.tolist() == [0, 1.5, 7, 8]
    assert figures.cap_ticks((1, 80))[-1] == (2.0, ">80")


def test_equal_tasks_are_drawn_apart_and_the_same_for_the_same_seed(tmp_path: Path):
    corpus = write_corpus(tmp_path / "c", [Spec("a", 2, work=7)] * 3)

    def heights(seed: int) -> list[float]:
        figures.load_backends()
        plane = next(iter(depth_work_figure(corpus, seed=seed).draw("bokeh")))
        return next(part.dframe() for part in plane if type(part).__name__ == "Points")[
            "y"
        ].tolist()

    assert len(set(heights(1))) == 3
    assert heights(1) == heights(1) != heights(2)


OF_THE_CODE = ("depth/table-3", "depth/table-7")


@pytest.mark.parametrize(
    "specs",
    [[], [Spec("a", 0)], [Spec("a", 1, work=None)], [Spec("a", 1, work=0)], [Spec("a", 1, runs=0)]],
    ids=["no tasks", "none solved", "no work known", "no lines", "no runs"],
)
def test_a_corpus_with_little_in_it_still_gives_table_and_figure(specs: list[Spec], tmp_path: Path):
    corpus = write_corpus(tmp_path / "c", specs)
    for artifact_id in ids():
        made = build(artifact_id, corpus)
        assert ("corpus small" if artifact_id not in OF_THE_CODE else "own code") in made.show()
        if not specs or specs[0].depth == 0:  # drawing all for print takes ten seconds
            assert made.export(tmp_path / "out")


def test_any_number_of_data_sets_can_be_drawn(tmp_path: Path):
    corpus = write_corpus(tmp_path / "c", [Spec(f"set-{n:02}", 1) for n in range(23)])
    figure = depth_work_figure(corpus)
    assert "set-22" in figure.show()
    assert figure.export(tmp_path)


def test_a_data_set_looks_the_same_whichever_others_are_there():
    few, many = styles(["TB2", "beta", "alpha"]), styles(["TMax", "TB2", "Ours", "beta", "alpha"])
    assert all(few[name] == many[name] for name in few)
    assert styles(["tb2"])["tb2"] == few["TB2"]
    assert len({(style.colour, style.bokeh) for style in many.values()}) == len(many)


def test_names_from_tasks_are_text_and_never_markup(tmp_path: Path):
    corpus = write_corpus(
        tmp_path / "c", [Spec("NAME", 1, task_id="TASK"), Spec("NAME", 1, runs=0)]
    )
    for file in ("tasks.jsonl", "runs.jsonl"):  # somebody else's corpus, edited by hand
        text = (corpus.path / file).read_text()
        hostile = {"NAME": json.dumps(HOSTILE)[1:-1], "TASK": "</script><script>alert(1)</script>"}
        for plain, markup in hostile.items():
            text = text.replace(plain, markup)
        (corpus.path / file).write_text(text)
    corpus = Corpus.open(corpus.path)
    assert HOSTILE in set(corpus.tasks()["dataset"])
    for artifact_id in ids():
        shown = build(artifact_id, corpus).show()
        assert "<img src=x" not in shown
        assert "<script>alert" not in shown


def test_table_3_is_what_the_command_prints_and_table_7_has_every_function(seven: Corpus):
    table = build("depth/table-3", seven)
    printed = CliRunner().invoke(app, ["settings", "--json"])
    listed = json.loads(printed.stdout)
    assert table.frame["turns"].tolist() == [row["turns"] for row in listed] == [150, 150]
    assert all(cell in table.html() for row in listed for cell in row["printed"])
    library = files("depthkit.tasks").joinpath("checks.sh").read_text("utf-8")
    functions = set(re.findall(r"^([a-z]\w*)\(\) \{ _ck", library, re.MULTILINE))
    assert len(functions) == 16
    assert set(build("depth/table-7", seven).frame["function"]) == functions - {"fail"}


def test_an_artifact_has_one_id_in_notebook_and_registry(seven: Corpus):
    by_id = build("depth/table-1", seven)
    by_function = audit_table(str(seven.path))
    assert by_id.id == by_function.id == "depth/table-1"
    assert by_id.frame.equals(by_function.frame)
    assert by_id.provenance == f"scripted · 33 tasks, {len(seven.runs())} runs · corpus seven"


def test_an_unknown_id_is_an_error_that_names_close_ones(seven: Corpus):
    with pytest.raises(DepthkitError, match="depth/table-1"):
        build("depth/tabel-1", seven)


def test_only_claims_read_what_was_published():
    folder = Path(depthkit.artifacts.__file__).parent
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            if any("published" in name for name in names):
                # The last marks fitted cells in views, and computes nothing from it.
                assert path.name in ("claims.py", "cross_checks.py", "artifact.py")
