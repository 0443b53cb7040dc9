"""Pages as text, and the corpus in a notebook's cell."""

from __future__ import annotations

from pathlib import Path

import pytest

from depthkit.dashboard import app
from depthkit.dashboard.html import Context, Site
from depthkit.dashboard.pages import PAGES
from depthkit.dashboard.pages.solution import solution
from depthkit.dashboard.plots import plot_models
from depthkit.dashboard.source import Source
from depthkit.tasks.calibration import write_family


@pytest.fixture(scope="module")
def paper() -> Context:
    source = Source("paper")
    return Context(Site({"paper": "paper"}), "paper", source, source.load())


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
