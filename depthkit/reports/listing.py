"""Which reports there are, and whether their parameters are right, before anything runs."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from depthkit.errors import DepthkitError
from depthkit.tasks.text import parsed, read_text


class _Entry(BaseModel):
    """One report in ``reports.yaml``."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    title: str
    notebook: str
    parameters: dict[str, Any] = {}


@dataclass(frozen=True)
class Report:
    """A report: a notebook and its parameters, checked against what the notebook takes."""

    name: str
    title: str
    notebook: Path
    parameters: Mapping[str, Any]


def find_project(start: Path | None = None) -> Path:
    """The checkout with notebooks and reports: the working directory or one above it.

    Raises:
        DepthkitError: there is none.
    """
    here = (start or Path.cwd()).resolve()
    for directory in (here, *here.parents):
        if (directory / "reports/reports.yaml").is_file() and (directory / "notebooks").is_dir():
            return directory
    raise DepthkitError(
        f"{here}: neither this directory nor one above it holds notebooks/ and "
        "reports/reports.yaml; reports are made in a checkout of depthkit."
    )


def load_reports(
    project: Path,
    names: Sequence[str] = (),
    *,
    corpus: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    texts: Mapping[str, str] | None = None,
) -> list[Report]:
    """Reports to make, with their parameters checked; nothing has run yet.

    Args:
        project: As :func:`find_project` gives it.
        names: Only these; all if empty.
        corpus: Replaces the parameter ``corpus`` of each that has it.
        overrides: Replace parameters of each report that has them.
        texts: The same, as typed on a command line (see :func:`read_value`).

    Raises:
        DepthkitError: a parameter is of another type, or none of the reports has it; names the
            report, the parameter and the valid ones.
    """
    source = project / "reports/reports.yaml"
    try:
        raw = parsed("YAML", read_text(source, source.name), source.name)
        entries = TypeAdapter(dict[str, _Entry]).validate_python(raw)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise DepthkitError(f"{source.name}: {place}: {first['msg']}.") from error
    if unknown := [name for name in names if name not in entries]:
        raise DepthkitError(
            f"There is no report {unknown[0]}; {source.name} has {', '.join(entries)}."
        )
    if bad := [name for name in entries if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name)]:
        raise DepthkitError(
            f"{source.name}: {bad[0]!r} is no name of a report; use lower-case letters, digits, - "
            "and _."
        )
    changed = dict(overrides or {}) | ({"corpus": corpus} if corpus is not None else {})
    texts = dict(texts or {})
    reports, taken = [], set[str]()
    chosen = list(dict.fromkeys(names or entries))
    for name in chosen:
        entry = entries[name]
        notebook = project / "notebooks" / entry.notebook
        known = notebook_parameters(notebook)
        given = {key: value for key, value in changed.items() if key in known}
        given |= {key: read_value(known[key][0], texts[key]) for key in texts if key in known}
        taken |= set(given)
        parameters = check_parameters(notebook, dict(entry.parameters) | given)
        reports.append(Report(name, entry.title, notebook, parameters))
    for key in [*changed, *texts]:
        if key not in taken:
            check_parameters(reports[0].notebook, {key: None})  # raises: it is unknown there too
    return reports


def parameters_cell(notebook: Path) -> str:
    """Source of the one cell of a notebook that is tagged ``parameters``.

    Raises:
        DepthkitError: it cannot be read, or has not exactly one.
    """
    try:
        cells = json.loads(notebook.read_text("utf-8"))["cells"]
        tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    except (OSError, ValueError, LookupError, TypeError, RecursionError, AttributeError) as error:
        raise DepthkitError(f"{notebook.name}: cannot be read as a notebook ({error}).") from error
    if len(tagged) != 1:
        raise DepthkitError(
            f"{notebook.name}: {len(tagged)} cells are tagged parameters; tag exactly one."
        )
    return "".join(tagged[0]["source"])


def notebook_parameters(notebook: Path) -> dict[str, tuple[str, Any]]:
    """Parameters of a notebook, by name: the annotation and the default.

    Raises:
        DepthkitError: as :func:`parameters_cell`, or that cell holds something other than
            annotated constants.
    """
    found: dict[str, tuple[str, Any]] = {}
    for line in ast.parse(parameters_cell(notebook)).body:
        try:
            if not isinstance(line, ast.AnnAssign) or line.value is None:
                raise ValueError
            found[ast.unparse(line.target)] = (
                ast.unparse(line.annotation),
                ast.literal_eval(line.value),
            )
        except ValueError as error:
            raise DepthkitError(
                f"{notebook.name}: the parameters cell has {ast.unparse(line)!r}; it may hold "
                "only lines such as seed: int = 0."
            ) from error
    return found


_TYPES: dict[str, Any] = {t.__name__: t for t in (bool, int, float, str, list, dict, tuple)}


def read_value(annotation: str, text: str) -> Any:
    """A parameter as typed on a command line: YAML if that fits its type, else the text itself.

    Args:
        annotation: As the notebook declares it, such as ``list[str] | None``.
        text: Such as ``[TB2, TW]``, ``null`` or ``12``.

    Returns:
        A value that may still be of another type.
    """
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return text if not _fits(annotation, value) and _fits(annotation, text) else value


def _fits(annotation: str, value: Any) -> bool:
    kind = eval(annotation, {"__builtins__": {}}, _TYPES)  # noqa: S307 - our notebook's types
    config = ConfigDict(allow_inf_nan=False, strict=True)
    try:
        TypeAdapter(kind, config=config).validate_python(value)
    except ValidationError:
        return False
    return True


def check_parameters(notebook: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a notebook, with the given values in place of defaults.

    Raises:
        DepthkitError: one is unknown or of another type; says which are valid.
    """
    known = notebook_parameters(notebook)
    valid = ", ".join(f"{name}: {annotation}" for name, (annotation, _) in known.items())
    if unknown := [name for name in given if name not in known]:
        raise DepthkitError(
            f"{notebook.name} has no parameter {unknown[0]}; its parameters are {valid}."
        )
    values = {name: default for name, (_, default) in known.items()} | dict(given)
    for name, value in values.items():
        annotation = known[name][0]
        if not _fits(annotation, value):
            raise DepthkitError(
                f"{notebook.name}: {name} is {value!r}, which is not {annotation}; its parameters "
                f"are {valid}."
            )
    return values
