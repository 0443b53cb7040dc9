"""Notebooks to HTML pages that open offline; only what is stale runs.

``reports/reports.yaml`` says which notebook with which parameters makes which report. Each report
is a directory ``build/NAME/`` that is replaced as a whole once its notebook has run through, so
that a failing notebook leaves the last good report.
"""

from __future__ import annotations

import ast
import hashlib
import json
import logging
import os
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from depthkit.artifacts import page
from depthkit.artifacts.artifact import REPORT_DIR
from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError

CELL_TIMEOUT = 600
"""Seconds after which a cell that does not end fails its report."""


# --- what there is to report ---


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


@dataclass(frozen=True)
class Outcome:
    """What became of a report; ``error`` is the traceback of a failed one."""

    name: str
    state: Literal["built", "fresh", "failed"]
    seconds: float
    error: str | None = None


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
) -> list[Report]:
    """Reports to make, with their parameters checked; nothing has run yet.

    Args:
        project: As :func:`find_project` gives it.
        names: Only these; all if empty.
        corpus: Replaces the parameter ``corpus`` of each.
        overrides: Replace parameters of each.

    Raises:
        DepthkitError: names the report, the parameter and the valid ones.
    """
    source = project / "reports/reports.yaml"
    try:
        raw = yaml.safe_load(source.read_text("utf-8"))
        entries = TypeAdapter(dict[str, _Entry]).validate_python(raw)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise DepthkitError(f"{source.name}: {place}: {first['msg']}.") from error
    except yaml.YAMLError as error:
        raise DepthkitError(f"{source.name}: is not YAML ({error}).") from error
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
    reports = []
    for name in names or entries:
        entry = entries[name]
        notebook = project / "notebooks" / entry.notebook
        parameters = check_parameters(notebook, dict(entry.parameters) | changed)
        reports.append(Report(name, entry.title, notebook, parameters))
    return reports


def notebook_parameters(notebook: Path) -> dict[str, tuple[str, Any]]:
    """Parameters of a notebook, by name: the annotation and the default.

    Raises:
        DepthkitError: it has not exactly one cell tagged ``parameters``, or that cell holds
            something other than annotated constants.
    """
    try:
        cells = json.loads(notebook.read_text("utf-8"))["cells"]
    except (OSError, ValueError, KeyError) as error:
        raise DepthkitError(f"{notebook.name}: cannot be read as a notebook ({error}).") from error
    tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    if len(tagged) != 1:
        raise DepthkitError(
            f"{notebook.name}: {len(tagged)} cells are tagged parameters; tag exactly one."
        )
    found: dict[str, tuple[str, Any]] = {}
    for line in ast.parse("".join(tagged[0]["source"])).body:
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


def check_parameters(notebook: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a notebook, with the given values in place of defaults.

    Raises:
        DepthkitError: one is unknown or of another type, or the corpus is not there; says which
            are valid.
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
        kind = eval(annotation, {"__builtins__": {}}, _TYPES)  # noqa: S307 - our notebook's types
        config = ConfigDict(allow_inf_nan=False, strict=True)
        try:
            TypeAdapter(kind, config=config).validate_python(value)
        except ValidationError as error:
            raise DepthkitError(
                f"{notebook.name}: {name} is {value!r}, which is not {annotation}; its parameters "
                f"are {valid}."
            ) from error
    return values


# --- making them ---


def make_reports(
    reports: Sequence[Report],
    build: Path,
    *,
    progress: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Make those that are stale, then the index page.

    A report is stale when its notebook, a parameter, the corpus, or the package changed since it
    was made.

    Args:
        reports: From :func:`load_reports`.
        build: Directory for ``index.html`` and a directory for each report.
        progress: Called after each report.

    Returns:
        One outcome a report; a failed one left its last good version.
    """
    build.mkdir(parents=True, exist_ok=True)
    package = _package_digest()
    outcomes = []
    for report in reports:
        start = time.monotonic()
        target = build / report.name
        key = _key(report, package)
        error = None
        state: Literal["built", "fresh", "failed"] = "fresh"
        if _read_json(target / "report.json").get("key") == key:
            (target / "failure.json").unlink(missing_ok=True)
        else:
            try:
                _make(report, key, target)
                state = "built"
            except Exception as failure:  # whatever a notebook raises is its report's outcome
                state, error = "failed", _readable(failure)
                target.mkdir(exist_ok=True)
                _write(target / "failure.json", json.dumps({"error": error, "when": _now()}))
        outcomes.append(Outcome(report.name, state, time.monotonic() - start, error))
        progress(outcomes[-1])
    _write(build / "index.html", _index(build))
    return outcomes


def _package_digest() -> str:
    """Of everything in the package that can change a report: code, style, published numbers."""
    root = Path(__file__).parent
    total = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.suffix in (".py", ".css", ".yaml") and "data" not in path.relative_to(root).parts:
            total.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return total.hexdigest()


def _key(report: Report, package: str) -> str:
    corpus = report.parameters.get("corpus")
    parts = [
        report.title,
        report.notebook.read_text("utf-8"),
        json.dumps(report.parameters, sort_keys=True),
        Corpus.open(corpus).digest() if isinstance(corpus, str) else "",
        package,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _make(report: Report, key: str, target: Path) -> None:
    """Run the notebook and put the finished report in place of the old one."""
    with tempfile.TemporaryDirectory(prefix=f".{report.name}-", dir=target.parent) as scratch:
        made = Path(scratch, "report")
        made.mkdir()
        html = _page(report, _body(_run(report, made, Path(scratch))))
        if outside := page.outside_addresses(html):
            raise DepthkitError(
                f"{report.notebook.name}: its page reaches out to {outside[0]}; pages must open "
                "offline."
            )
        _write(made / "index.html", html)
        about = {
            "key": key,
            "title": report.title,
            "notebook": report.notebook.name,
            "parameters": dict(report.parameters),
            "when": _now(),
        }
        _write(made / "report.json", json.dumps(about))
        if target.exists():
            target.rename(Path(scratch, "old"))
        made.rename(target)


def _run(report: Report, made: Path, scratch: Path) -> Any:
    """Run the notebook in a kernel of this very interpreter; figures are exported to ``made``."""
    import nbformat
    import papermill

    # Parameters are checked already; papermill cannot read annotations such as `list[int] | None`.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    kernel = scratch / "jupyter/kernels/depthkit"
    kernel.mkdir(parents=True)
    spec = {
        "argv": [
            sys.executable,
            "-m",
            "ipykernel_launcher",
            "--log-level=ERROR",
            "-f",
            "{connection_file}",
        ],
        "display_name": "depthkit",
        "language": "python",
        "env": {
            REPORT_DIR: str(made.resolve()),
            "IPYTHONDIR": str(scratch.resolve() / "ipython"),  # nobody's own start-up files
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        },
    }
    (kernel / "kernel.json").write_text(json.dumps(spec))
    notebook = nbformat.read(report.notebook, as_version=4)  # type: ignore[no-untyped-call]
    with _environment(
        JUPYTER_PATH=str(scratch.resolve() / "jupyter"),
        JUPYTER_RUNTIME_DIR=str(scratch.resolve() / "runtime"),
    ):
        return papermill.execute_notebook(
            notebook,
            None,
            parameters=dict(report.parameters),
            kernel_name="depthkit",
            progress_bar=False,
            execution_timeout=CELL_TIMEOUT,
        )


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    old = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in old.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _body(notebook: Any) -> str:
    """Text and outputs of a notebook that has run, as HTML without frame, code or addresses."""
    from nbconvert import HTMLExporter

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


# --- the index page ---


def _index(build: Path) -> str:
    entries = []
    for directory in sorted(path for path in build.iterdir() if path.is_dir()):
        about = _read_json(directory / "report.json")
        failure = _read_json(directory / "failure.json")
        if not directory.name.startswith(".") and (about or failure):
            entries.append(_index_entry(directory, about, failure))
    return page.document(
        "depthkit reports",
        "<h1>Reports</h1>\n<p>How deep terminal tasks are. Each report says what its numbers rest "
        f'on.</p>\n<ul class="reports">{"".join(entries)}</ul>',
    )


def _index_entry(directory: Path, about: dict[str, Any], failure: dict[str, Any]) -> str:
    name = directory.name
    parts = [f"<h2>{escape(name)}</h2>"]
    if about:
        title = escape(about["title"])
        shown = [_read_json(path) for path in sorted(directory.glob("*-*.json"))]
        provenance = sorted({artifact["provenance"] for artifact in shown})
        score = directory / "claims.txt"
        parts = [f'<h2><a href="{name}/index.html">{title}</a></h2>']
        parts += [f'<p class="provenance">{escape(line)}</p>' for line in provenance]
        if score.is_file():
            parts.append(f"<p>Published numbers: {escape(score.read_text('utf-8'))}</p>")
        rows = []
        for artifact in shown:
            links = " ".join(
                f'<a href="{name}/{escape(file)}">{escape(_file_label(file))}</a>'
                for file in artifact["files"]
            )
            rows.append(f"<tr><td>{escape(artifact['section'])}</td><td>{links}</td></tr>")
        parts.append(f'<div class="scroll"><table class="files">{"".join(rows)}</table></div>')
        parts.append(f"<p><time>Made {escape(about['when'])}</time></p>")
    if failure:
        what = "this is the last good report" if about else "there is no good report yet"
        parts.append(
            f'<p class="failed">The last attempt ({escape(failure["when"])}) failed; {what}.</p>'
            f"<details><summary>Traceback</summary><pre>{escape(failure['error'])}</pre></details>"
        )
    return f"<li>{''.join(parts)}</li>"


def _file_label(file: str) -> str:
    stem, _, suffix = file.rpartition(".")
    part = re.sub(r".*-(?=[a-z]+$)", "", stem)
    return f"{suffix.upper()}{f' ({part})' if part.isalpha() else ''}"


def _read_json(path: Path) -> dict[str, Any]:
    """Empty where there is no such file, or one cut short."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, "utf-8")
    temporary.replace(path)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
