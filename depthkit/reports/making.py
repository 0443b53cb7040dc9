"""Run notebooks and put finished reports in place."""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, Literal

from depthkit.artifacts import page
from depthkit.artifacts.artifact import REPORT_DIR
from depthkit.errors import DepthkitError
from depthkit.reports.digest import report_digests
from depthkit.reports.files import now, read_json, write
from depthkit.reports.imports import without_grammars
from depthkit.reports.index import index_page
from depthkit.reports.listing import Report
from depthkit.reports.printing import PDF, find_browser, print_page

_NOT_STARTED = "Kernel died before replying"
_Told = Callable[[int, int], object]
CELL_TIMEOUT = 600
"""Seconds after which a cell that does not end fails its report."""


@dataclass(frozen=True)
class Outcome:
    """What became of a report; ``error`` is the traceback of a failed one."""

    name: str
    state: Literal["built", "fresh", "failed"]
    seconds: float
    error: str | None = None


def make_reports(
    reports: Sequence[Report],
    build: Path,
    *,
    progress: Callable[[Outcome], None] = lambda _: None,
    cells: Callable[[str, int, int], object] = lambda *_: None,
    workers: int | None = None,
    pdf: bool = False,
    fork: bool = False,
) -> list[Outcome]:
    """Make those that are stale, then the index page.

    A report is stale when its notebook, a parameter, the corpus, or package code that it uses
    changed since it was made.

    Args:
        reports: From :func:`load_reports`.
        build: Directory for ``index.html`` and a directory for each report.
        progress: Called after each report, in the order in which they end.
        cells: Called after each cell with the report's name, how many cells have run, and of how
            many; from the thread that runs it.
        workers: How many run at once; one more than there are cores by default, since each waits at
            its start and end.
        pdf: Print each page to ``report.pdf`` as well, with a browser.
        fork: Fork kernels from one process that has imported the libraries, which takes a third
            less time. Only for a process that ends with these reports: it would not see changes
            of the code.

    Returns:
        One outcome a report, in the order given; a failed one left its last good version.

    Raises:
        DepthkitError: a corpus or the browser is not there, or ``workers`` is below 1; nothing has
            run.
    """
    if workers is not None and workers < 1:
        raise DepthkitError(f"workers is {workers}; it must be at least 1.")
    if pdf:
        find_browser()
    keys = report_digests(reports)  # a missing corpus stops us here
    build.mkdir(parents=True, exist_ok=True)
    outcomes: dict[str, Outcome] = {}

    def ended(outcome: Outcome) -> None:
        outcomes[outcome.name] = outcome
        progress(outcome)

    stale = []
    for report, key in zip(reports, keys, strict=True):
        target = build / report.name
        fresh = read_json(target / "report.json").get("key") == key
        if fresh and (not pdf or (target / PDF).is_file()):
            (target / "failure.json").unlink(missing_ok=True)
            ended(Outcome(report.name, "fresh", 0.0))
        else:
            stale.append((report, key, target, fresh, pdf, partial(cells, report.name)))
    most = min(len(stale), workers or (os.cpu_count() or 1) + 1)
    if fork and len(stale) > 1:
        from depthkit.reports.kernel import prepare_to_fork

        fork = prepare_to_fork()
    else:
        fork = False
    with ThreadPoolExecutor(max(most, 1)) as pool:
        jobs = [pool.submit(_attempt, *job, fork=fork) for job in stale]
        try:
            for done in as_completed(jobs):
                ended(done.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)  # what runs is finished, no other begun
            raise
    write(build / "index.html", index_page(build))
    return [outcomes[report.name] for report in reports]


def _attempt(
    report: Report, key: str, target: Path, fresh: bool, pdf: bool, told: _Told, *, fork: bool
) -> Outcome:
    """Make one report, or only its PDF where the page is fresh."""
    start = time.monotonic()
    state: Literal["built", "failed"] = "built"
    error = None
    try:
        if not fresh:
            _make(report, key, target, told, fork)
        if pdf:
            print_page(target / "index.html", target / PDF)
        (target / "failure.json").unlink(missing_ok=True)
    except Exception as failure:  # whatever a notebook raises is its report's outcome
        state, error = "failed", _readable(failure)
        target.mkdir(exist_ok=True)
        write(target / "failure.json", json.dumps({"error": error, "when": now()}))
    return Outcome(report.name, state, time.monotonic() - start, error)


def _make(report: Report, key: str, target: Path, told: _Told, fork: bool) -> None:
    """Run the notebook and put the finished report in place of the old one."""
    with tempfile.TemporaryDirectory(prefix=f".{report.name}-", dir=target.parent) as scratch:
        made = Path(scratch, "report")
        made.mkdir()
        html = _page(report, _body(_run(report, made, Path(scratch), told, fork)))
        if outside := page.outside_addresses(html):
            raise DepthkitError(
                f"{report.notebook.name}: its page reaches out to {outside[0]}; pages must open "
                "offline."
            )
        write(made / "index.html", html)
        about = {
            "key": key,
            "title": report.title,
            "notebook": report.notebook.name,
            "parameters": dict(report.parameters),
            "when": now(),
        }
        write(made / "report.json", json.dumps(about))
        if target.exists():
            target.rename(Path(scratch, "old"))
        made.rename(target)


def _run(report: Report, made: Path, scratch: Path, told: _Told, fork: bool) -> Any:
    """Run the notebook; figures are exported to ``made``."""
    without_grammars()
    import nbformat
    import papermill

    from depthkit.reports import cells
    from depthkit.reports.kernel import NAME, kernel_manager

    # Parameters are checked already; papermill cannot read annotations such as `list[int] | None`.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    manager = kernel_manager(scratch, {REPORT_DIR: str(made.resolve())}, fork=fork)
    notebook = nbformat.read(report.notebook, as_version=4)  # type: ignore[no-untyped-call]
    for last in (False, False, True):
        try:
            return papermill.execute_notebook(
                notebook,
                None,
                parameters=dict(report.parameters),
                kernel_name=NAME,
                kernel_manager_class=manager,
                progress_bar=False,
                engine_name=cells.NAME,
                told=told,
                execution_timeout=CELL_TIMEOUT,
            )
        except RuntimeError as error:
            # A kernel is told ports that were free a moment ago; another program may have
            # taken one since. Nothing of the notebook has run yet.
            if last or _NOT_STARTED not in str(error):
                raise
    raise AssertionError("unreachable")


def _body(notebook: Any) -> str:
    """Text and outputs of a notebook that has run, as HTML without frame, code or addresses."""
    from nbconvert import HTMLExporter

    # Code is not shown, so a cell without outputs would be an empty box.
    notebook.cells = [cell for cell in notebook.cells if cell.get("outputs", True)]
    exporter = HTMLExporter(  # type: ignore[no-untyped-call]
        template_name="basic",
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
    )
    body, _ = exporter.from_notebook_node(notebook)
    return page.only_first_library(body)


def _page(report: Report, body: str) -> str:
    chosen = " · ".join(
        f"{name} = {json.dumps(value)}" for name, value in report.parameters.items()
    )
    return page.document(
        report.title,
        f'<p class="about"><a href="../index.html">All reports</a> · made from '
        f"{escape(report.notebook.name)} with {escape(chosen)}</p>\n{body}",
    )


def _readable(failure: Exception) -> str:
    """A traceback as plain text, without the colours of a terminal."""
    lines = getattr(failure, "traceback", None)  # papermill's: that of the cell
    text = "\n".join(lines) if lines else "".join(traceback.format_exception(failure))
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
