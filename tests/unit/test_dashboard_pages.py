"""Pages as text, and the corpus in a notebook's cell."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from corpora import Spec, write_corpus
from typer.testing import CliRunner

from depthkit.artifacts.audit import audit_table
from depthkit.artifacts.run_ends import run_ends_figure
from depthkit.artifacts.tables import MISSING
from depthkit.cli import app as cli
from depthkit.corpus import Corpus
from depthkit.dashboard import app
from depthkit.dashboard.html import Context, Site
from depthkit.dashboard.pages import PAGES
from depthkit.dashboard.pages.solution import solution
from depthkit.dashboard.plots import plot_models
from depthkit.dashboard.source import Source
from depthkit.experiments.status import status
from depthkit.stats import DepthQuantile
from depthkit.tasks.calibration import write_family


@pytest.fixture(scope="module")
def paper() -> Context:
    source = Source("paper")
    return Context(Site({"paper": "paper"}), "paper", source, source.load())


@pytest.mark.parametrize("name", ["demo", "paper", "attempts"])
def test_dashboard_and_artifacts_say_the_same_of_a_corpus(name: str):
    source = Source(name)
    context = Context(Site({name: name}), name, source, source.load())
    page = PAGES["overview"](context, {})
    assert page is not None and source.corpus is not None
    rows = [
        [
            re.sub("<.*?>", "", cell).replace(",", "")
            for cell in re.findall("<td.*?>(.*?)</td>", row)
        ]
        for row in re.findall("<tr>(<td.*?)</tr>", page)
    ]
    shown = {row[0]: row[3:7] for row in rows}
    printed = audit_table(source.corpus).frame.set_index("dataset")
    assert set(shown) == set(printed.index)
    for dataset, table in printed.iterrows():
        solved = f"{table['solved']} of {table['sampled']}" if table["sampled"] else MISSING
        numbers = [str(DepthQuantile(table["D"], table["D_above"]))]
        numbers += [MISSING if pd.isna(table[x]) else f"{table[x]:g}" for x in "NW"]
        assert shown[dataset] == [solved, *numbers]
    ends = context.snapshot.rows(
        "SELECT model, ending AS outcome, count(*) AS n FROM runs WHERE verdict <> 'none' "
        "AND cap IS NULL AND purpose IN ('free', 'evaluation') AND (dataset, task_id) IN "
        "(SELECT (dataset, task_id) FROM tasks WHERE family = 'ours') GROUP BY ALL"
    )
    counted = {(row["model"], row["outcome"]): row["n"] for row in ends}
    for row in run_ends_figure(source.corpus).frame.to_dict("records") if counted else ():
        assert counted.get((row["model"], row["outcome"]), 0) == row["runs"]


@pytest.mark.parametrize("name", ["demo", "paper"])
def test_status_and_estimates_say_the_same_of_each_task(name: str):
    corpus = Corpus.open(name)
    rows = corpus.estimates().astype(object).where(corpus.estimates().notna(), None)
    estimated = {
        (r["dataset"], r["task_id"]): (r["D"], r["final"]) for r in rows.to_dict("records")
    }
    for task in status(corpus).tasks:
        key = task.dataset, task.task_id
        assert (task.D, task.state == "final") == estimated[key], key


@pytest.mark.parametrize(("cost", "whole"), [(None, None), (0.25, 0.75)])
def test_a_task_with_a_run_of_unknown_cost_shows_none(
    tmp_path: Path, cost: float | None, whole: float | None
):
    one, other, *_ = write_corpus(tmp_path / "a", [Spec("a", 1)]).run_records()
    corpus = write_corpus(tmp_path / "c", [])
    corpus.append_run(one.model_copy(update={"cost_usd": 0.5}))
    corpus.append_run(other.model_copy(update={"cost_usd": cost}))
    task = Source(corpus).load().task("a", "task-0")
    assert task is not None and task["cost_usd"] == whole


def test_a_task_shows_its_replays_and_what_was_merged_from_it(paper: Context):
    replays = paper.source.corpus.replays()  # type: ignore[union-attr]
    first = replays.iloc[0]
    page = PAGES["task"](paper, {"dataset": [first["dataset"]], "task": [first["task_id"]]})
    assert page is not None
    assert "Replays" in page
    assert str(first["change"]).replace("_", " ") in page
    (merged,) = paper.snapshot.rows(
        "SELECT t.parent, p.dataset FROM tasks t JOIN tasks p ON p.task_id = t.parent "
        "WHERE t.parent IS NOT NULL LIMIT 1"
    )
    page = PAGES["task"](paper, {"dataset": [merged["dataset"]], "task": [merged["parent"]]})
    assert page is not None
    assert "Merged or derived from it" in page


def test_a_task_whose_directory_is_named_shows_solution_and_checks(tmp_path: Path):
    written = write_family(tmp_path / "parallel", "parallel", 4, 1)
    source = Source("demo", (tmp_path,))
    context = Context(Site({"demo": "demo"}), "demo", source, source.load())
    page = PAGES["task"](context, {"dataset": ["parallel"], "task": [Path(written).name]})
    assert page is not None
    assert "solution/solve.sh" in page
    assert "tests/" in page
    assert 'class="c-' in page


def test_marks_are_text_and_what_is_wrong_with_them_is_said():
    script = "#!/bin/bash\n# event: begin <b>now</b>\ntrue\n# event: end\n# key-step: begin\nls\n"
    shown = solution("Solution", "solve.sh", script, 1)
    assert "<b>" not in shown
    assert "event 1: &lt;b&gt;now&lt;/b&gt;" in shown
    assert "line 5: the key-step does not end" in shown


def test_a_script_without_marks_stays_folded():
    assert "<details class=code>" in solution("Solution", "solve.sh", "true\n", 1)


def test_plots_hold_no_code(paper: Context):
    from bokeh.model import Model

    for figure in plot_models(paper).figures.values():
        for model in figure.select({"type": Model}):
            assert "CustomJS" not in type(model).__name__


def test_a_brush_in_a_cell_chooses_in_all_plots():
    view = app("demo")
    column = view.select(lambda each: type(each).__name__ == "Bokeh")
    figures = {pane.object.name: pane.object for pane in column}
    bins = figures["bars-D"].select_one({"name": "bins-D"})
    assert bins is not None
    total = sum(bins.data["chosen"])
    assert total == 12
    bins.selected.indices = [3, 4]  # caps 5 and 10
    assert sum(bins.data["chosen"]) == 4
    tables = [pane for pane in view.select() if "tasks chosen" in str(getattr(pane, "object", ""))]
    assert "4 of 12 tasks chosen" in tables[0].object


def test_above_the_largest_cap_is_written_with_the_caps_of_the_corpus(tmp_path: Path):
    corpus = write_corpus(tmp_path / "c", [Spec("a", 99, turns=12)])
    settings = corpus.path / "corpus.toml"
    settings.write_text(settings.read_text().replace("[1, 2, 3, 5, 10, 20, 40, 80]", "[1, 2, 3]"))
    for command in (["estimates"], ["status", "--tasks"]):
        said = CliRunner().invoke(cli, [*command, str(corpus.path)]).stdout
        assert ">3" in said and ">80" not in said
    source = Source(corpus.path)
    overview = PAGES["overview"](Context(Site({"c": "c"}), "c", source, source.load()), {})
    assert overview is not None and "&gt;3<" in overview
