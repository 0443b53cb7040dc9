"""What a report depends on: notebook, parameters, corpus, and the package code that it uses."""

from __future__ import annotations

import ast
import functools
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import depthkit
from depthkit.corpus import Corpus
from depthkit.generation.bundled import find_log
from depthkit.reports.listing import Report

_PACKAGE = Path(depthkit.__file__).parent


def report_digests(reports: Iterable[Report]) -> list[str]:
    """One a report; it changes whenever the report would come out differently."""
    imports: dict[Path, tuple[Path, ...]] = {}
    corpora: dict[str, str] = {}
    digests = []
    for report in reports:
        text = report.notebook.read_text("utf-8")
        corpus = report.parameters.get("corpus")
        if isinstance(corpus, str) and corpus not in corpora:
            corpora[corpus] = Corpus.open(corpus).digest()
        parts = [
            report.title,
            text,
            json.dumps(dict(report.parameters), sort_keys=True),
            corpora[corpus] if isinstance(corpus, str) else "",
            *_log_digest(report.parameters.get("log")),
            _code_digest(text, imports),
        ]
        digests.append(hashlib.sha256(json.dumps(parts).encode()).hexdigest())
    return digests


def _log_digest(log: object) -> list[str]:
    """Of a generation log; none for a report without one."""
    if not isinstance(log, str):
        return []
    path = find_log(log)
    return [hashlib.sha256(path.read_bytes() if path.is_file() else b"").hexdigest()]


def _code_digest(notebook: str, imports: dict[Path, tuple[Path, ...]]) -> str:
    """Of the modules that a notebook and this layer import, and of the data files beside them.

    Args:
        notebook: Its JSON.
        imports: What modules import, as far as it was read before; is added to.
    """
    cells = json.loads(notebook)["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    used: set[Path] = set()
    todo = [path for source in code for path in _imported(source)]
    todo += (_PACKAGE / "reports").glob("*.py")
    while todo:
        path = todo.pop()
        if path not in used:
            used.add(path)
            if path not in imports:
                imports[path] = tuple(_imported(path.read_text("utf-8")))
            todo += imports[path]
    folders = {path.parent for path in used} - {_PACKAGE}
    used |= {
        path
        for folder in folders
        for path in folder.iterdir()
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    total = hashlib.sha256()
    for path in sorted(used):
        total.update(f"{path.relative_to(_PACKAGE)}\0".encode() + path.read_bytes())
    return total.hexdigest()


def _imported(source: str) -> Iterator[Path]:
    """Files of this package that a module or cell imports, anywhere in it."""
    for name in _imported_names(source):
        place = _PACKAGE.joinpath(*name)
        candidates = (place.with_suffix(".py"), place / "__init__.py")
        yield from (path for path in candidates if path.is_file())


@functools.lru_cache(maxsize=1024)  # parsing the package takes longer than all else here
def _imported_names(source: str) -> frozenset[tuple[str, ...]]:
    """What of this package a module or cell imports: modules, or names in them, without dots."""
    found: set[tuple[str, ...]] = set()
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            first, *rest = name.split(".")
            if first == "depthkit":
                # importing a.b.c runs a and a.b as well
                found |= {tuple(rest[:depth]) for depth in range(len(rest) + 1)}
    return frozenset(found)
