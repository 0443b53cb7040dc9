from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import papermill
import pytest
import yaml
from corpora import Spec, seven_sets, write_corpus
from typer.testing import CliRunner

from depthkit.artifacts import page
from depthkit.cli import app
from depthkit.errors import DepthkitError
from depthkit.reports import (
    Outcome,
    check_parameters,
    find_project,
    load_reports,
    make_reports,
    read_value,
)

ROOT = Path(__file__).parents[2]
PARAMETERS = "seed: int = 0\nname: str | None = None\nsome: list[str] | None = None"


def cell(source: str, *tags: str) -> dict[str, Any]:
    number = str(abs(hash(source)))[:8]
    return {
        "cell_type": "code",
        "id": number,
        "metadata": {"tags": list(tags)} if tags else {},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def write_notebook(path: Path, *sources: str, parameters: str = PARAMETERS) -> None:
    cells = [cell(parameters, "parameters"), *(cell(source) for source in sources)]
    metadata = {"kernelspec": {"name": "python3", "display_name": "", "language": "python"}}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}
    path.write_text(json.dumps(notebook))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout with one small notebook and the report ``small`` made from it."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "reports").mkdir()
    entry = {"title": "A small one", "notebook": "small.ipynb", "parameters": {"seed": 3}}
    (tmp_path / "reports/reports.yaml").write_text(yaml.safe_dump({"small": entry}))
    write_notebook(tmp_path / "notebooks/small.ipynb", "print('seed is', seed, name)")
    return tmp_path


def make(project: Path, **changed: Any) -> tuple[str, str]:
    """State of the one report, and its page."""
    build = project / "reports/build"
    (outcome,) = make_reports(load_reports(project, **changed), build)
    path = build / "small/index.html"
    return outcome.state, path.read_text() if path.exists() else ""


# --- before anything runs ---


def test_the_checkout_is_found_from_below_and_missed_elsewhere(project: Path):
    assert find_project(project / "notebooks") == project
    with pytest.raises(DepthkitError, match="in a checkout of depthkit"):
        find_project(Path("/"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sead": 1}, "has no parameter sead; its parameters are seed: int"),
        ({"seed": "1"}, "seed is '1', which is not int"),
        ({"seed": 1.5}, "seed is 1.5, which is not int"),
        ({"seed": True}, "seed is True, which is not int"),
        ({"some": "TB2"}, "some is 'TB2', which is not"),
        ({"seed": None}, "seed is None"),
    ],
)
def test_a_wrong_parameter_is_an_error_that_lists_the_valid_ones(
    project: Path, given: dict[str, Any], message: str
):
    with pytest.raises(DepthkitError, match=message) as error:
        check_parameters(project / "notebooks/small.ipynb", given)
    assert "seed: int, name: str | None, some: list[str] | None" in str(error.value)


def test_a_wrong_parameter_stops_the_command_before_a_kernel_starts(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(project)
    failed = CliRunner().invoke(app, ["report", "-p", "sead=1"])
    assert failed.exit_code == 2
    assert not (project / "reports/build").exists()


def test_defaults_fill_in_what_is_not_given(project: Path):
    (report,) = load_reports(project, overrides={"some": ["a"]})
    assert report.parameters == {"seed": 3, "name": None, "some": ["a"]}


@pytest.mark.parametrize("cells", [0, 2])
def test_a_notebook_has_exactly_one_parameters_cell(project: Path, cells: int):
    notebook = project / "notebooks/small.ipynb"
    content = json.loads(notebook.read_text())
    content["cells"] = [cell(f"seed: int = {n}", "parameters") for n in range(cells)]
    notebook.write_text(json.dumps(content))
    with pytest.raises(DepthkitError, match=f"{cells} cells are tagged parameters"):
        load_reports(project)


@pytest.mark.parametrize("line", ["seed = 0", "seed: int", "seed: int = len('a')", "import os"])
def test_a_parameters_cell_holds_annotated_constants_only(project: Path, line: str):
    write_notebook(project / "notebooks/small.ipynb", parameters=line)
    with pytest.raises(DepthkitError, match="only lines such as seed: int = 0"):
        load_reports(project)


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        ("int", "12", 12),
        ("str", "12", "12"),
        ("str", "yes", "yes"),
        ("str", "2026-11-03", "2026-11-03"),
        ("str | None", "null", None),
        ("str", "a: b: c", "a: b: c"),
        ("list[str] | None", "[TB2, TW]", ["TB2", "TW"]),
        ("list[int] | None", "[1, 5]", [1, 5]),
        ("int", "1.5", 1.5),  # of another type, which is refused later
    ],
)
def test_a_value_from_the_command_line_takes_the_declared_type(
    annotation: str, text: str, value: Any
):
    assert read_value(annotation, text) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"small: caf\xe9", r"reports\.yaml: line 1 is not UTF-8"),
        (b"[" * 3000, r"reports\.yaml: is nested too deeply"),
        (b"small: {", r"reports\.yaml: is not valid YAML"),
    ],
)
def test_a_list_of_reports_that_cannot_be_read_is_told(project: Path, text: bytes, said: str):
    (project / "reports/reports.yaml").write_bytes(text)
    with pytest.raises(DepthkitError, match=said):
        load_reports(project)


def test_a_parameter_goes_to_the_reports_that_have_it(project: Path):
    write_notebook(project / "notebooks/other.ipynb", parameters="corpus: str = 'demo'")
    listed = project / "reports/reports.yaml"
    entries = yaml.safe_load(listed.read_text())
    entries["other"] = {"title": "Another", "notebook": "other.ipynb"}
    listed.write_text(yaml.safe_dump(entries))
    reports = {report.name: report for report in load_reports(project, texts={"seed": "5"})}
    assert reports["small"].parameters["seed"] == 5
    assert reports["other"].parameters == {"corpus": "demo"}
    with pytest.raises(DepthkitError, match="has no parameter sead"):
        load_reports(project, texts={"sead": "5"})
    with pytest.raises(DepthkitError, match=r"other\.ipynb has no parameter seed"):
        load_reports(project, ["other"], texts={"seed": "5"})


@pytest.mark.parametrize("pair", ["seed", "=1"])
def test_a_parameter_without_key_and_value_says_how_to_write_one(
    project: Path, monkeypatch: pytest.MonkeyPatch, pair: str
):
    monkeypatch.chdir(project)
    failed = CliRunner().invoke(app, ["report", "-p", pair])
    assert failed.exit_code == 2
    assert "key=value" in failed.output


def test_an_unknown_report_is_an_error_that_lists_those_there(project: Path):
    with pytest.raises(DepthkitError, match=r"no report big; reports\.yaml has small"):
        load_reports(project, ["big"])


def test_a_corpus_that_is_not_there_is_an_error_before_anything_runs(project: Path):
    write_notebook(project / "notebooks/small.ipynb", parameters="corpus: str = 'x'\nseed: int = 0")
    with pytest.raises(DepthkitError, match="nowhere"):
        make(project, corpus="nowhere")
    assert not (project / "reports/build").exists()


# --- running ---


def test_a_report_runs_again_only_when_something_it_depends_on_changed(project: Path):
    state, first = make(project)
    assert state == "built"
    assert "seed is 3 None" in first
    assert make(project)[0] == "fresh"
    state, second = make(project, overrides={"name": "{x}"})
    assert state == "built"
    assert "seed is 3 {x}" in second
    write_notebook(project / "notebooks/small.ipynb", "print('another')")
    state, third = make(project)
    assert state == "built"
    assert "another" in third


def test_a_changed_corpus_makes_its_report_stale(project: Path):
    corpus = write_corpus(project / "corpus", [Spec("a", 1)])
    source = "from depthkit.corpus import Corpus\nprint(len(Corpus.open(corpus).tasks()), 'tasks')"
    parameters = "corpus: str = ''\nseed: int = 0"
    write_notebook(project / "notebooks/small.ipynb", source, parameters=parameters)
    where = str(corpus.path)
    assert "1 tasks" in make(project, corpus=where)[1]
    assert make(project, corpus=where)[0] == "fresh"
    task = corpus.task_records()[0].model_copy(update={"task_id": "another"})
    corpus.append_task(task)
    assert "2 tasks" in make(project, corpus=where)[1]


def test_the_same_notebook_gives_the_same_page(project: Path):
    first = make(project)[1]
    (project / "reports/build/small/report.json").unlink()
    state, second = make(project)
    assert (state, second) == ("built", first)


def test_a_failing_notebook_leaves_the_last_good_report_and_a_traceback_in_the_index(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    good = make(project)[1]
    write_notebook(project / "notebooks/small.ipynb", "raise ValueError('<b>no</b>')")
    monkeypatch.chdir(project)
    failed = CliRunner().invoke(app, ["report"])
    assert failed.exit_code == 1
    assert "small: FAILED" in failed.stdout
    build = project / "reports/build"
    assert (build / "small/index.html").read_text() == good
    index = (build / "index.html").read_text()
    assert "this is the last good report" in index
    assert "ValueError" in index
    assert "&lt;b&gt;no&lt;/b&gt;" in index
    assert "<b>no" not in index
    write_notebook(project / "notebooks/small.ipynb", "print('mended')")
    assert make(project)[0] == "built"
    assert "ValueError" not in (build / "index.html").read_text()


def test_a_notebook_that_never_worked_is_in_the_index_too(project: Path):
    write_notebook(project / "notebooks/small.ipynb", "import nothing_of_this_name")
    assert make(project) == ("failed", "")
    assert "there is no good report yet" in (project / "reports/build/index.html").read_text()


def test_a_page_that_reaches_out_is_refused(project: Path):
    source = (
        "from IPython.display import HTML\n"
        'HTML(\'<img src="https://example.org/x.png" onerror="this.remove()">\')'
    )
    write_notebook(project / "notebooks/small.ipynb", source)
    assert make(project)[0] == "failed"
    assert "pages must open offline" in (project / "reports/build/index.html").read_text()


def test_notebooks_run_in_this_very_interpreter_whatever_kernels_are_registered(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    kernel = project / "other/kernels/python3"
    kernel.mkdir(parents=True)
    spec = {"argv": ["/bin/false"], "display_name": "other", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(project / "other"))
    write_notebook(project / "notebooks/small.ipynb", "import sys\nprint(sys.executable)")
    assert sys.executable in make(project)[1]


@pytest.mark.parametrize("fork", [False, True])
def test_several_reports_run_at_once_and_one_that_fails_stops_no_other(project: Path, fork: bool):
    entries = {}
    for name, source in {
        "first": "from pathlib import Path\nimport time\nhere = Path('WHERE')\n"
        "(here / 'first').touch()\n"
        "deadline = time.time() + 60\n"
        "while not (here / 'second').exists() and time.time() < deadline: time.sleep(0.05)\n"
        "print('met' if (here / 'second').exists() else 'alone')",
        "second": "from pathlib import Path\nimport time\nhere = Path('WHERE')\n"
        "(here / 'second').touch()\n"
        "deadline = time.time() + 60\n"
        "while not (here / 'first').exists() and time.time() < deadline: time.sleep(0.05)\n"
        "print('met' if (here / 'first').exists() else 'alone')",
        "broken": "raise ValueError('no')",
    }.items():
        source = source.replace("WHERE", str(project))
        write_notebook(project / f"notebooks/{name}.ipynb", source)
        entries[name] = {"title": name, "notebook": f"{name}.ipynb"}
    (project / "reports/reports.yaml").write_text(yaml.safe_dump(entries, sort_keys=False))
    build, seen = project / "reports/build", list[Outcome]()
    outcomes = make_reports(
        load_reports(project), build, workers=2, progress=seen.append, fork=fork
    )
    assert [(each.name, each.state) for each in outcomes] == [
        ("first", "built"),
        ("second", "built"),
        ("broken", "failed"),
    ]
    assert sorted(each.name for each in seen) == ["broken", "first", "second"]
    for name in ("first", "second"):
        assert "<pre>met" in (build / name / "index.html").read_text()
    assert "ValueError" in (build / "index.html").read_text()
    again = make_reports(load_reports(project), build, workers=2)
    assert [each.state for each in again] == ["fresh", "fresh", "failed"]


def test_fewer_than_one_worker_is_an_error(project: Path):
    with pytest.raises(DepthkitError, match="workers is 0; it must be at least 1"):
        make_reports(load_reports(project), project / "build", workers=0)


def test_a_pdf_without_a_browser_is_an_error_before_anything_runs(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(project))
    monkeypatch.delenv("CHROMIUM", raising=False)
    with pytest.raises(DepthkitError, match="A PDF is printed by Chromium or Chrome"):
        make_reports(load_reports(project), project / "build", pdf=True)
    assert not (project / "build").exists()


def test_a_browser_that_fails_leaves_the_page_and_says_so(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    browser = project / "browser"
    browser.write_text("#!/bin/sh\necho cannot >&2\nexit 3\n")
    browser.chmod(0o755)
    monkeypatch.setenv("CHROMIUM", str(browser))
    build = project / "build"
    (outcome,) = make_reports(load_reports(project), build, pdf=True)
    assert outcome.state == "failed"
    assert "the browser did not print it (cannot)" in (outcome.error or "")
    assert "seed is 3" in (build / "small/index.html").read_text()
    assert not (build / "small/report.pdf").exists()


# --- the audit report ---


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build directory of the real audit report, on a corpus of the paper's seven data sets."""
    folder = tmp_path_factory.mktemp("audit")
    corpus = seven_sets(folder / "seven")
    reports = load_reports(ROOT, ["audit"], corpus=str(corpus.path))
    (outcome,) = make_reports(reports, folder / "build")
    assert outcome.state == "built", outcome.error
    return folder / "build"


def test_the_audit_page_shows_table_and_figure_with_what_they_rest_on(audit: Path):
    html = (audit / "audit/index.html").read_text()
    for artifact in ("depth-table-1", "depth-figure-3", "depth-section-4-2"):
        assert f'<figure class="depthkit" id="{artifact}">' in html
    assert html.count("scripted · 33 tasks") == 4  # one for each of the three, one for the claims
    assert '<html lang="en">' in html
    assert 'name="viewport"' in html


def test_no_page_has_an_outside_address(audit: Path):
    pages = list(audit.rglob("*.html"))
    assert len(pages) >= 4
    for path in pages:
        html = path.read_text()
        assert not re.findall(r"https?://(?!www\.w3\.org/)[^\s\"'<]+", html), path
        assert not page.outside_addresses(html)
        assert "default-src 'none'" in html


def test_each_page_is_below_five_megabytes(audit: Path):
    assert all(path.stat().st_size < 5_000_000 for path in audit.rglob("*.html"))


def test_the_page_carries_its_plotting_library_once(audit: Path):
    assert (audit / "audit/index.html").read_text().count('data-library="bokeh"') == 1


def test_the_index_links_pages_figures_and_tables_that_are_there(audit: Path):
    index = (audit / "index.html").read_text()
    links = re.findall(r'href="(?!data:|#)([^"]+)"', index)
    for name in ("index.html", "depth-figure-3.svg", "depth-figure-3.pdf", "depth-table-1.csv"):
        assert f"audit/{name}" in links
    assert all((audit / link).is_file() for link in links)
    assert "computed numbers agree" in index
    assert re.search(r"Made \d{4}-\d\d-\d\d \d\d:\d\d UTC", index)


def test_a_kernel_whose_port_was_taken_is_started_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    execute, tries = papermill.execute_notebook, []

    def dies_first(*args: Any, **kwargs: Any) -> Any:
        tries.append(args)
        if len(tries) == 1:
            raise RuntimeError("Kernel died before replying to kernel_info")
        return execute(*args, **kwargs)

    monkeypatch.setattr("papermill.execute_notebook", dies_first)
    state, page = make(project)
    assert (state, len(tries)) == ("built", 2)
    assert "seed is 3" in page


@pytest.mark.slow
def test_every_report_is_made_from_the_demo_corpus_which_lacks_much(tmp_path: Path):
    reports = load_reports(ROOT, corpus="demo")
    for outcome in make_reports(reports, tmp_path, fork=True):
        assert outcome.state == "built", outcome.error
        path = tmp_path / outcome.name / "index.html"
        assert path.stat().st_size < 5_000_000
        assert not page.outside_addresses(path.read_text())
    assert (tmp_path / "index.html").stat().st_size < 5_000_000


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://cdn.example.org/x.js">',
        "<link href='//example.org/x.css'>",
        "<style>@import 'https://example.org/x.css'</style>",
        "<p style='background: url(http://example.org/x.png)'>",
        "<script>import('https://example.org/x.js')</script>",
    ],
)
def test_outside_addresses_are_seen(html: str):
    assert page.outside_addresses(html)


def test_namespaces_and_data_are_no_outside_addresses():
    inside = '<svg xmlns="http://www.w3.org/2000/svg"><a href="data:,"></a><a href="x.html"></a>'
    assert not page.outside_addresses(inside)
