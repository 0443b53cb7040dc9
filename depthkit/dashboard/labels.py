"""Labels and notes of tasks and runs: one small file of lines in the corpus, ``labels.jsonl``.

A line adds or takes back one label or note; none is ever rewritten, so that two people who label
at once, or a copy that is put beside another, lose nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from depthkit.corpus.config import refuse_bundled
from depthkit.corpus.files import one_line
from depthkit.errors import DepthkitError

FILE = "labels.jsonl"
MOST_LABEL = 60
MOST_NOTE = 4000

Kind = Literal["label", "note"]


@dataclass(frozen=True)
class Target:
    """What a label is about: a task, or a run if ``run_id`` is named."""

    dataset: str
    task_id: str
    run_id: str | None = None


class Labels:
    """The labels and notes of a corpus.

    Args:
        corpus: Its directory; the file need not exist.
    """

    def __init__(self, corpus: Path) -> None:
        self.path = corpus / FILE
        self.problems: tuple[str, ...] = ()

    def stamp(self) -> str:
        """Changes when the file does."""
        try:
            info = self.path.stat()
        except OSError:
            return "none"
        return f"{info.st_ino}-{info.st_size}-{info.st_mtime_ns}"

    def add(self, target: Target, kind: Kind, text: str) -> None:
        """Add a label or a note.

        Raises:
            DepthkitError: It is empty or too long, or the file cannot be written.
        """
        self._append(target, kind, text, "add")

    def remove(self, target: Target, kind: Kind, text: str) -> None:
        """Take a label or a note back; as :meth:`add`."""
        self._append(target, kind, text, "remove")

    def table(self) -> pa.Table:
        """One row a label or note that stands: dataset, task_id, run_id, kind, text, at.

        What cannot be read is named in ``problems`` and left out.
        """
        standing: dict[tuple[Any, ...], dict[str, Any]] = {}
        problems = []
        for number, line in enumerate(self._read().split(b"\n"), start=1):
            if not line.strip():
                continue
            row = _parse(line)
            if row is None:
                problems.append(f"{FILE} line {number}: not a label; correct or delete this line.")
                continue
            action = row.pop("action")
            key = tuple(row[name] for name in ("dataset", "task_id", "run_id", "kind", "text"))
            if action == "add":
                standing.setdefault(key, row)
            else:
                standing.pop(key, None)
        self.problems = tuple(problems[:5])
        return pa.Table.from_pylist(list(standing.values()), schema=self.schema())

    @staticmethod
    def schema() -> pa.Schema:
        """Columns of :meth:`table`; ``run_id`` is null for a task's."""
        names = ("dataset", "task_id", "run_id", "kind", "text", "at")
        return pa.schema([(name, pa.string()) for name in names])

    def _read(self) -> bytes:
        try:
            if self.path.is_symlink():
                return b""
            return self.path.read_bytes()
        except OSError:
            return b""

    def _append(self, target: Target, kind: Kind, text: str, action: str) -> None:
        refuse_bundled(self.path)
        text = one_line(text, MOST_LABEL + 1) if kind == "label" else _lines(text).strip()
        text = text.encode("utf-8", "replace").decode()
        most = MOST_LABEL if kind == "label" else MOST_NOTE
        if not text:
            raise DepthkitError(f"A {kind} must say something.")
        if len(text) > most:
            raise DepthkitError(f"This {kind} has {len(text):,} characters; at most {most:,}.")
        line = {
            "action": action,
            "dataset": target.dataset,
            "task_id": target.task_id,
            "run_id": target.run_id,
            "kind": kind,
            "text": text,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        data = json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
            descriptor = os.open(self.path, flags, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                os.write(descriptor, data)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise DepthkitError(f"{self.path}: cannot be written ({error.strerror}).") from error


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or row.get("action") not in ("add", "remove"):
        return None
    if row.get("kind") not in ("label", "note"):
        return None
    names = ("dataset", "task_id", "text")
    if not all(isinstance(row.get(name), str) for name in names):
        return None
    if not isinstance(row.get("run_id"), str | None) or not isinstance(row.get("at"), str | None):
        return None
    row["text"] = _lines(row["text"])
    kept = ("action", "dataset", "task_id", "run_id", "kind", "text", "at")
    return {name: row.get(name) for name in kept}


def _lines(text: str) -> str:
    """With line ends as files have them; a browser's form sends CR LF."""
    return text.replace("\r\n", "\n")
