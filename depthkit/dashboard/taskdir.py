"""What a task asks: from its directory where that is known, else from what a run was told."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from depthkit.corpus.files import UnreadableError, read_inside
from depthkit.dashboard.source import Snapshot, Source
from depthkit.dashboard.text import block
from depthkit.dashboard.turns import course

_MOST = 400_000
_MOST_DIRECTORIES = 20_000


@dataclass(frozen=True)
class SegmentFiles:
    """What a segment consists of; each file as its path and its text."""

    name: str
    instruction: str
    solution: tuple[tuple[str, str], ...]
    checks: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TaskFiles:
    """A task directory as it is shown."""

    segments: tuple[SegmentFiles, ...]
    environment: tuple[tuple[str, str], ...]
    problems: tuple[str, ...] = ()


def find(source: Source, dataset: str, task_id: str) -> TaskFiles | None:
    """The files of a task, if its directory is in one of those that were named."""
    for root in source.task_dirs:
        for directory in _task_dirs(root):
            # A directory that was named itself may stand anywhere; else its parent is the data set.
            named = directory.parent.name == dataset or directory == root
            if directory.name == task_id and named:
                return _read(directory)
    return None


def _task_dirs(root: Path) -> Iterator[Path]:
    for seen, (folder, names, files) in enumerate(os.walk(root)):
        if seen > _MOST_DIRECTORIES:
            return
        if "task.toml" in files:
            names.clear()
            yield Path(folder)
        names[:] = sorted(name for name in names if not name.startswith("."))


def _read(directory: Path) -> TaskFiles:
    problems: list[str] = []

    def files(folder: Path) -> tuple[tuple[str, str], ...]:
        found = []
        for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
            if path.is_dir():
                continue
            name = path.relative_to(directory).as_posix()
            try:
                data = read_inside(path, directory)
            except (FileNotFoundError, UnreadableError) as error:
                problems.append(f"{name}: {error}.")
                continue
            if b"\0" in data[:4096] or len(data) > _MOST:
                problems.append(f"{name}: {len(data):,} bytes, not shown as text.")
                continue
            found.append((name, data.decode("utf-8", "replace")))
        return tuple(found)

    def instruction(path: Path) -> str:
        try:
            return read_inside(path, directory).decode("utf-8", "replace")
        except (FileNotFoundError, UnreadableError) as error:
            problems.append(f"{path.relative_to(directory)}: {error}.")
            return ""

    steps = directory / "steps"
    order = _step_order(directory)
    parts = sorted(path for path in steps.iterdir() if path.is_dir()) if steps.is_dir() else []
    parts.sort(key=lambda path: order.index(path.name) if path.name in order else len(order))
    segments = [
        SegmentFiles(
            part.name,
            instruction(part / "instruction.md"),
            files(part / "solution"),
            files(part / "tests"),
        )
        for part in parts
    ]
    whole = (files(directory / "solution"), files(directory / "tests"))
    if not segments:
        segments = [SegmentFiles("", instruction(directory / "instruction.md"), *whole)]
    environment = files(directory / "environment")
    return TaskFiles(tuple(segments), environment, tuple(problems))


def _step_order(directory: Path) -> list[str]:
    """Names of the steps as the task's settings list them."""
    try:
        steps = tomllib.loads((directory / "task.toml").read_text("utf-8")).get("steps", [])
    except (OSError, ValueError, RecursionError):
        return []
    listed = steps if isinstance(steps, list) else []
    return [str(step.get("name")) for step in listed if isinstance(step, dict)]


def told(source: Source, snapshot: Snapshot, dataset: str, task_id: str) -> tuple[str, str] | None:
    """The run, preferably without a cap, whose first message is there, and that message's task."""
    rows = snapshot.rows(
        "SELECT run_id FROM runs WHERE dataset = ? AND task_id = ? "
        "ORDER BY cap IS NOT NULL, place LIMIT 3",
        [dataset, task_id],
    )
    for row in rows if source.corpus else []:
        assert source.corpus is not None
        between = course(source.corpus, row["run_id"], playback=False).between
        if message := next((b.text for b in between if b.kind == "message"), ""):
            start = message.find("Task Description:\n")
            end = message.find("\n\nCurrent terminal state:")
            text = message[start + 18 if start >= 0 else 0 : end if end > start else len(message)]
            return row["run_id"], text.strip()
    return None


_TOKENS = re.compile(
    r"(?P<comment>(?:(?<=\s)|(?<![\s\S]))#[^\n]*)"
    r"|(?P<string>\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*')"
    r"|(?P<keyword>\b(?:if|then|else|elif|fi|for|while|do|done|case|esac|in|function|return|exit|"
    r"def|class|import|from|assert|with|as|try|except|raise|not|and|or|None|True|False|"
    r"FROM|RUN|COPY|WORKDIR|ENV|CMD|ENTRYPOINT|USER)\b)"
)


def highlight(text: str) -> str:
    """Shell, Python or a Dockerfile with comments, strings and keywords marked; escaped."""
    out, at = [], 0
    for match in _TOKENS.finditer(text[:_MOST]):
        out += [block(text[at : match.start()])]
        out.append(f'<span class="c-{escape(match.lastgroup or "")}">{block(match[0])}</span>')
        at = match.end()
    return "".join([*out, block(text[at:])])
