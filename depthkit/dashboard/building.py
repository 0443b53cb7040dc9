"""Reports of the checkout: what there are, when each was made, and making one again."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from tokenize import COMMENT, generate_tokens
from typing import Any

import yaml

from depthkit.errors import DepthkitError
from depthkit.reports import find_project, load_reports
from depthkit.reports.files import read_json
from depthkit.reports.listing import notebook_parameters, parameters_cell

_MOST_LINES = 400
_CELL = re.compile(r"^\S+: cell (\d+) of (\d+)$")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a notebook.

    Attributes:
        annotation: Its type, as the notebook declares it.
        text: Its value as it would be typed.
        about: The notebook's own comment on it; may be empty.
    """

    name: str
    annotation: str
    text: str
    about: str = ""


@dataclass(frozen=True)
class BuiltReport:
    """A report of ``reports.yaml`` and what is there of it.

    Attributes:
        made: When it was made last; empty if never.
        with_: What the made one had in place of these parameters, as it would be typed.
        score: Its published numbers in one line; empty if it compares none.
        failure: Of the last attempt; empty if it went well.
        files: Names of its files.
    """

    name: str
    title: str
    notebook: str
    parameters: tuple[Parameter, ...]
    made: str = ""
    with_: Mapping[str, str] = field(default_factory=dict)
    score: str = ""
    failure: str = ""
    files: tuple[str, ...] = ()


def built_reports() -> list[BuiltReport]:
    """All reports of the checkout.

    Raises:
        DepthkitError: This is no checkout, or ``reports.yaml`` is malformed.
    """
    project = find_project()
    found = []
    for report in load_reports(project):
        folder = project / "reports/build" / report.name
        about, failure = (read_json(folder / f"{what}.json") for what in ("report", "failure"))
        declared = notebook_parameters(report.notebook)
        comments = _comments(parameters_cell(report.notebook))
        score = folder / "claims.txt"
        found.append(
            BuiltReport(
                report.name,
                report.title,
                report.notebook.name,
                tuple(
                    Parameter(name, declared[name][0], _text(value), comments.get(name, ""))
                    for name, value in report.parameters.items()
                ),
                made=str(about.get("when", "")),
                with_={
                    name: _text(value)
                    for name, value in (about.get("parameters") or {}).items()
                    if value != report.parameters.get(name)
                },
                score=score.read_text("utf-8") if score.is_file() else "",
                failure=str(failure.get("error", "")),
                files=tuple(sorted(path.name for path in folder.glob("*") if path.is_file())),
            )
        )
    return found


def _comments(source: str) -> dict[str, str]:
    """Comments at the end of lines such as ``seed: int = 0  # of the jitter``."""
    lines = source.splitlines()
    found: dict[str, str] = {}
    for token in generate_tokens(StringIO(source).readline):
        if token.type == COMMENT:
            name, colon, _ = lines[token.start[0] - 1].partition(":")
            if colon:
                found[name.strip()] = token.string.lstrip("# ")
    return found


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000).strip()
    return text.removesuffix("\n...").removesuffix("...").strip()


@dataclass
class Job:
    """A report being made.

    Attributes:
        lines: What the command has said so far.
        cells: How many cells have run, and of how many; ``None`` before the first.
        status: Its exit status; ``None`` while it runs.
    """

    name: str
    lines: list[str] = field(default_factory=list)
    cells: tuple[int, int] | None = None
    status: int | None = None


class Builder:
    """Makes one report at a time, by the command that a person would use."""

    def __init__(self) -> None:
        self.job: Job | None = None
        self._lock = threading.Lock()

    def start(self, name: str, parameters: Mapping[str, str]) -> None:
        """Make a report with these parameters, as typed; returns at once.

        Raises:
            DepthkitError: One is being made, there is none of this name, or a parameter is wrong.
        """
        project = find_project()
        load_reports(project, [name], texts=parameters)  # raises: before anything runs
        with self._lock:
            if self.job is not None and self.job.status is None:
                raise DepthkitError(f"The report {self.job.name} is being made; wait for it.")
            self.job = job = Job(name)
        command = [sys.executable, "-m", "depthkit", "report", name, "--cells"]
        for key, text in parameters.items():
            command += ["-p", f"{key}={text}"]
        threading.Thread(target=_run, args=(job, command, project), daemon=True).start()


def _run(job: Job, command: list[str], project: Path) -> None:
    try:
        with subprocess.Popen(
            command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if cell := _CELL.search(line):
                    job.cells = int(cell[1]), int(cell[2])
                else:
                    job.lines = [*job.lines, line.rstrip("\n")][-_MOST_LINES:]
        job.status = process.returncode
    except OSError as error:
        job.lines = [*job.lines, str(error)]
        job.status = 1
