"""Generation logs that come with the package: found by name, as bundled corpora are."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

_DATA = Path(str(files("depthkit"))) / "data"

LOGS = {"demo": _DATA / "generation" / "demo.jsonl", "ours": _DATA / "tasks" / "generation.jsonl"}
"""``demo`` was written by a script in place of a model, ``ours`` is that of the tasks that ship."""


def find_log(log: str | Path) -> Path:
    """A log by the name of a bundled one, or its path."""
    return LOGS.get(str(log), Path(log))
