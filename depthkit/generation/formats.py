"""``reports.toml`` of a segment, and the exact formats that the pipeline writes from it.

The author declares the reports, their fields or columns and a word on each; checks read them by
these names only (Appendix F, "Rules for writing checks").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from depthkit.errors import DepthkitError
from depthkit.tasks.reading import READERS, CheckScript
from depthkit.tasks.review_checks import report_access
from depthkit.tasks.text import parsed, printable, read_text
from depthkit.tasks.words import Command, read_script

HEADING = "## Report formats"
"""Begins what the pipeline writes at the end of an instruction."""

type Kind = Literal["fields", "table", "json"]

_INTRO = {
    "fields": "has one line for each of these fields, written as `name: value`",
    "table": "is a table. Its first line holds the names of these columns, in this order and "
    "divided by single tabs; every other line is a row, divided likewise",
    "json": "is a JSON object with these keys",
}


@dataclass(frozen=True)
class Report:
    """One report file: its path, what it is, and a word on each field or column."""

    path: str
    kind: Kind
    names: dict[str, str]
    about: str = ""

    def rendered(self) -> str:
        """Its exact format, for people."""
        about = f" ({self.about.strip().rstrip('.')})" if self.about.strip() else ""
        lines = [f"`{self.path}`{about} {_INTRO[self.kind]}:", ""]
        for name, word in self.names.items():
            lines.append(f"- {self._shown(name)}: {word.strip().rstrip('.')}")
        return "\n".join(lines)

    def _shown(self, name: str) -> str:
        if self.kind != "json" or "." not in name:
            return f"`{name}`"
        *outer, last = name.split(".")
        within = ", in the object ".join(f"`{each}`" for each in reversed(outer))
        return f"`{last}` in the object {within}"


def read_reports(path: Path, shown: str) -> tuple[Report, ...]:
    """The reports that a segment declares; none where there is no such file.

    Raises:
        DepthkitError: It is no list of reports as docs/generation.md describes them.
    """
    if not path.is_file():
        return ()
    raw = parsed("TOML", read_text(path, shown), shown)
    listed = raw.get("reports", [])
    if set(raw) - {"reports"} or not isinstance(listed, list):
        raise DepthkitError(f"{shown}: may hold [[reports]] tables only.")
    reports = tuple(_report(table, f"{shown}: report {n}") for n, table in enumerate(listed, 1))
    paths = [report.path for report in reports]
    twice = sorted({path for path in paths if paths.count(path) > 1})
    if twice:
        raise DepthkitError(f"{shown}: {printable(twice[0])} is declared twice.")
    return reports


def _report(table: Any, where: str) -> Report:
    if not isinstance(table, dict):
        raise DepthkitError(f"{where} must be a table, [[reports]].")
    kind: Any = table.get("kind")
    if kind not in get_args(Kind.__value__):
        raise DepthkitError(f'{where}: kind must be "fields", "table" or "json".')
    part = "columns" if kind == "table" else "fields"
    unknown = sorted(set(table) - {"path", "kind", "about", part})
    if unknown:
        raise DepthkitError(
            f"{where}: has {printable(unknown[0])}; of kind {kind} it has path, kind, about and "
            f"{part}."
        )
    path, about, names = table.get("path"), table.get("about", ""), table.get(part)
    if not isinstance(path, str) or not path.startswith("/") or path != path.strip():
        raise DepthkitError(f"{where}: path must be an absolute path.")
    if not isinstance(about, str):
        raise DepthkitError(f"{where}: about must be a text.")
    if not isinstance(names, dict) or not names:
        raise DepthkitError(f'{where}: needs [reports.{part}] with lines such as items = "…".')
    for name, word in names.items():
        if not name.strip() or "`" in name or "\n" in name:
            raise DepthkitError(f"{where}: {name!r} is no name for a field or column.")
        if not isinstance(word, str) or not word.strip():
            raise DepthkitError(f"{where}: {printable(name)} needs a word on what it is.")
    return Report(path, kind, dict(names), about)


def without_formats(instruction: str) -> str:
    """An instruction as its author wrote it."""
    head, _, _ = f"\n{instruction}".partition(f"\n{HEADING}")
    return head[1:].rstrip() + "\n"


def with_formats(instruction: str, reports: Sequence[Report]) -> str:
    """An instruction with the exact formats of its reports at its end."""
    own = without_formats(instruction)
    if not reports:
        return own
    return f"{own}\n{HEADING}\n\n" + "\n\n".join(r.rendered() for r in reports) + "\n"


def undeclared(file: str, script: str, reports: Iterable[Report]) -> list[str]:
    """Where a check script reads what is not declared, or a declared report without a reader.

    What a reader's file is called is not always certain; those readers are passed over.

    Args:
        file: Shown in what is found.
        script: The check script.
        reports: Those of the segment and of the ones before it.
    """
    by_path: dict[str, list[Report]] = {}
    for report in reports:
        by_path.setdefault(report.path, []).append(report)
    checks = CheckScript(file, read_script(script), "")
    found = []
    # What the static review cannot know for a report where no reader reads it.
    checks.reports = set(by_path) - checks.reports
    for command in checks.all:
        report_access(checks, command)
        if command.name not in READERS or not command.arguments:
            continue
        path = checks.resolve(command.arguments[0])
        if path is None or "$" in path:
            continue
        if path not in by_path:
            found.append(f"{file}:{command.line}: {path} is read, but no reports.toml declares it")
            continue
        known = {_folded(name) for report in by_path[path] for name in report.names}
        found += [
            f"{file}:{command.line}: {path} has no field or column {name!r} in reports.toml"
            for name in _names_read(checks, command)
            if _folded(name) not in known
        ]
    return [*map(str, checks.findings), *found]


def _names_read(checks: CheckScript, command: Command) -> list[str]:
    if command.name == "field":
        names = [checks.resolve(word) for word in command.arguments[1:2]]
    else:
        specs = [checks.resolve(word) for word in command.arguments[1::2]]
        names = [spec.rpartition(":")[0] if spec else None for spec in specs]
    return [name for name in names if name and "$" not in name]


def _folded(name: str) -> str:
    """As the library compares names of fields and columns."""
    return " ".join(name.casefold().replace("-", " ").replace("_", " ").split())
