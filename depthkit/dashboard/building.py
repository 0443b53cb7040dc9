"""Reports of the checkout: what there are, when each was made, and making one again."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from depthkit.errors import DepthkitError
from depthkit.reports import find_project, load_reports
from depthkit.reports.files import read_json
from depthkit.reports.listing import notebook_parameters

_MOST_LINES = 400


@dataclass(frozen=True)
class Parameter:
    """A parameter of a notebook: its annotation, and its value as it would be typed."""

    name: str
    annotation: str
    text: str


@dataclass(frozen=True)
class BuiltReport:
    """A report of ``reports.yaml`` and what is there of it.

    Attributes:
        made: When it was made last; empty if never.
        with_: Parameters that the made one had.
        score: Its published numbers in one line; empty if it compares none.
        failure: Of the last attempt; empty if it went well.
        files: Names of its files.
    """

    name: str
    title: str
    notebook: str
    parameters: tuple[Parameter, ...]
    made: str = ""
    with_: Mapping[str, Any] = field(default_factory=dict)
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
        score = folder / "claims.txt"
        found.append(
            BuiltReport(
                report.name,
                report.title,
                report.notebook.name,
                tuple(
                    Parameter(name, declared[name][0], _text(value))
                    for name, value in report.parameters.items()
                ),
                made=str(about.get("when", "")),
                with_=about.get("parameters") or {},
                score=score.read_text("utf-8") if score.is_file() else "",
                failure=str(failure.get("error", "")),
                files=tuple(sorted(path.name for path in folder.glob("*") if path.is_file())),
            )
        )
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
        status: Its exit status; ``None`` while it runs.
    """

    name: str
    lines: list[str] = field(default_factory=list)
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
        command = [sys.executable, "-m", "depthkit", "report", name]
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
                job.lines = [*job.lines, line.rstrip("\n")][-_MOST_LINES:]
        job.status = process.returncode
    except OSError as error:
        job.lines = [*job.lines, str(error)]
        job.status = 1
