"""The files of one trial: which there are, and their contents, never from outside the corpus."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from depthkit.corpus import Corpus
from depthkit.corpus.files import UnreadableError, is_plain_name, parse_json, read_inside
from depthkit.errors import DepthkitError

_MOST_FILES = 1000
_MOST_EVENT = 1 << 20
_STRINGS = re.compile(r"\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x90\x9d\x98\x9e\x9f]")
"""Strings to the terminal (links, titles, clipboard), which no player needs."""


@dataclass(frozen=True)
class TrialFile:
    """A file of a trial: its path within it, with slashes, and its bytes."""

    name: str
    size: int


@dataclass(frozen=True)
class Checked:
    """What the verifier left of one segment.

    Attributes:
        segment: Its name; empty in a task of one.
        texts: Name of each file and its text, in order.
    """

    segment: str
    texts: tuple[tuple[str, str], ...]


class Trial:
    """The trial directory of a run.

    Args:
        corpus: Where it is.
        run_id: The run; of a name that is no plain one there are no files.

    Attributes:
        problem: Why there are no files; ``None`` if there may be some.
    """

    def __init__(self, corpus: Corpus, run_id: str) -> None:
        self.root = corpus.path
        self.run_id = run_id
        self.problem: str | None = None
        self.path: Path | None = None
        try:
            directory = corpus.trial_dir(run_id)
        except DepthkitError as error:
            self.problem = str(error)
            return
        if not directory.is_dir():
            self.problem = "This corpus has no files of this run, only its record."
            return
        self.path = directory

    def files(self) -> tuple[list[TrialFile], list[str]]:
        """All files, by name, and what was left out and why."""
        found: list[TrialFile] = []
        notes: list[str] = []
        if self.path is None:
            return found, notes
        for directory, folders, names in os.walk(self.path):
            where = directory[len(str(self.path)) + 1 :]
            folders[:] = sorted(name for name in folders if is_plain_name(name))
            for name in sorted(names):
                whole = f"{where}/{name}" if where else name
                if len(found) == _MOST_FILES:
                    notes.append(f"There are more than {_MOST_FILES} files; these are the first.")
                    return found, notes
                if not is_plain_name(name):
                    notes.append(f"{whole}: left out, its name is no plain one.")
                    continue
                path = Path(directory, name)
                try:
                    found.append(TrialFile(whole, path.stat().st_size))
                except OSError as error:
                    notes.append(f"{whole}: {error.strerror}.")
        return found, notes

    def read(self, name: str) -> bytes:
        """One file.

        Args:
            name: Its path within the trial, with slashes.

        Raises:
            FileNotFoundError: There is none of this name, or the name is no plain path.
            UnreadableError: It leads out of the corpus, is no regular file or too large.
        """
        parts = name.split("/")
        if self.path is None or not all(is_plain_name(part) for part in parts):
            raise FileNotFoundError(name)
        try:
            return read_inside(self.path.joinpath(*parts), self.root)
        except IsADirectoryError as error:
            raise FileNotFoundError(name) from error

    def text(self, name: str) -> str:
        """One file as text; as :meth:`read`."""
        return self.read(name).decode("utf-8", "replace")

    def result(self) -> dict[str, Any]:
        """``result.json``; empty if there is none that can be read."""
        try:
            found = parse_json(self.read("result.json"), "result.json")
        except (FileNotFoundError, UnreadableError):
            return {}
        return found if isinstance(found, dict) else {}

    def checked(self) -> list[Checked]:
        """What the verifier left, a segment each."""
        found, _ = self.files()
        groups: dict[str, list[str]] = {}
        for file in found:
            parts = file.name.split("/")
            if parts[0] == "steps" and len(parts) > 3 and parts[2] == "verifier":
                groups.setdefault(parts[1], []).append(file.name)
            elif parts[0] == "verifier" or file.name in _AT_ROOT:
                groups.setdefault("", []).append(file.name)
        return [
            Checked(segment, tuple((name, self._said(name)) for name in names))
            for segment, names in groups.items()
        ]

    def _said(self, name: str) -> str:
        try:
            return self.text(name)
        except (FileNotFoundError, UnreadableError) as error:
            return f"({error})"

    def recordings(self) -> list[str]:
        """Names of the terminal recordings, a segment each where each has its own."""
        found, _ = self.files()
        return [file.name for file in found if file.name.split("/")[-1] == "recording.cast"]


_AT_ROOT = ("test-stdout.txt", "test-stderr.txt", "test_output.txt", "reward.txt", "exception.txt")


@dataclass(frozen=True)
class Recording:
    """A terminal recording, as far as it can be played.

    Attributes:
        header: Version, width, height and timestamp, nothing else.
        events: Seconds, kind (``o`` or ``r``) and text each.
        problems: Lines that were left out, and why.
    """

    header: dict[str, Any]
    events: list[tuple[float, str, str]]
    problems: list[str]

    def cast(self) -> bytes:
        """As an asciicast of version 2."""
        lines = [self.header, *self.events]
        return "\n".join(json.dumps(line) for line in lines).encode() + b"\n"


def read_recording(data: bytes) -> Recording:
    """A recording as it came out of a trial, with only what a player may be given.

    Links, titles and other strings to the terminal are taken out; what was typed is left out, as
    it would be played twice; times run forwards. A line that is no event, or holds more than a
    megabyte, is named in ``problems``.
    """
    problems: list[str] = []
    header: dict[str, Any] = {"version": 2, "width": 80, "height": 24}
    events: list[tuple[float, str, str]] = []
    bad = 0
    at = 0.0
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        if len(line) > 6 * _MOST_EVENT:
            problems.append(
                f"line {number} of {len(line):,} bytes is not played; it is in the file"
            )
            continue
        try:
            event = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            bad += 1
            continue
        if number == 1 and isinstance(event, dict):
            header |= _header(event)
        elif _is_event(event):
            at = max(at, min(float(event[0]), 1e7))
            kind, text = event[1], event[2]
            if kind == "r" and not re.fullmatch(r"\d{1,3}x\d{1,3}", text):
                bad += 1
            elif kind == "o" and len(text) > _MOST_EVENT:
                problems.append(
                    f"line {number} of {len(text):,} characters is not played; it is in the file"
                )
            elif kind in ("o", "r"):
                text = _STRINGS.sub("", text).encode("utf-8", "replace").decode()
                events.append((round(at, 4), kind, text))
        else:
            bad += 1
    if bad:
        problems.append(f"{bad} lines are no events of a recording and are left out")
    return Recording(header, events, problems)


def _header(given: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name, most in (("width", 500), ("height", 200)):
        value = given.get(name)
        if type(value) is int and 1 <= value <= most:
            found[name] = value
    stamp = given.get("timestamp")
    if isinstance(stamp, int | float) and 0 < stamp < 1e11:
        found["timestamp"] = int(stamp)
    return found


def _is_event(event: Any) -> bool:
    return (
        isinstance(event, list)
        and len(event) == 3
        and isinstance(event[0], int | float)
        and event[0] == event[0]
        and event[0] >= 0
        and isinstance(event[1], str)
        and isinstance(event[2], str)
    )


def summarization_steps(trial: Trial, name: str) -> Iterator[tuple[str, str]]:
    """Source and message of each step of a summarization's own trajectory.

    Raises:
        FileNotFoundError: There is none of this name.
        UnreadableError: It is no trajectory.
    """
    document = parse_json(trial.read(name), name)
    steps = document.get("steps") if isinstance(document, dict) else None
    if not isinstance(steps, list):
        raise UnreadableError(f"{name} is no trajectory: it has no list of steps")
    for step in steps:
        if isinstance(step, dict):
            message = step.get("message")
            text = message if isinstance(message, str) else json.dumps(message, indent=1)
            yield str(step.get("source", "")), text
