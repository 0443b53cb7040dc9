"""Copy of a trial's files into a corpus: the files it keeps, without links and without keys."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from depthkit.corpus.files import (
    UnreadableError,
    is_plain_name,
    mask_text,
    one_line,
    read_regular,
    redact,
    redact_json_text,
)
from depthkit.corpus.replies import REPLIES_FILE
from depthkit.corpus.turns import TURNS_FILE

RUN_FILE = "run.json"
"""The record of a run of this harness, written beside what Harbor wrote."""

_MOST_FILES = 500
_AGENT_FILE = re.compile(
    r"(?:.+\.)?trajectory(?:\.[A-Za-z0-9.-]+)?\.json|recording\.cast"
    rf"|{re.escape(TURNS_FILE)}|{re.escape(REPLIES_FILE)}"
)
_ROOT_FILE = re.compile(
    r"exception\.txt|reward\.(?:txt|json)|ctrf\.json|test-std(?:out|err)\.txt|test_output\.txt"
)
_SECRET_HINTS = (b'key"', b'keys"', b'token"', b"secret", b"passw", b"credential", b"authorization")


def copy_trial(trial: Path, target: Path, result: dict[str, Any]) -> list[str]:
    """Copy the files a corpus keeps.

    Args:
        trial: The trial directory.
        target: Directory to make.
        result: Its parsed ``result.json``, written without keys (:func:`files.redact`).

    Returns:
        What was left out, and why.

    Raises:
        OSError: The copy cannot be written.
    """
    notes: list[str] = []
    target.mkdir(parents=True)
    (target / "result.json").write_text(json.dumps(redact(result)))
    made = {""}
    for copied, (folder, name) in enumerate(_kept_files(trial, notes)):
        if copied == _MOST_FILES:
            notes.append(f"left out: all but the first {_MOST_FILES} files")
            break
        try:
            data = read_regular(trial / folder / name)
        except (UnreadableError, FileNotFoundError) as error:
            notes.append(f"left out: {error}")
            continue
        if name == "exception.txt":
            data = mask_text(data.decode("utf-8", "replace")).encode()
        elif "trajectory" in name:
            data = _redact_trajectory(data)
        if folder not in made:
            (target / folder).mkdir(parents=True, exist_ok=True)
            made.add(folder)
        (target / folder / name).write_bytes(data)
    return notes


def _kept_files(trial: Path, notes: list[str]) -> Iterator[tuple[str, str]]:
    """Folder and name of each file to keep: trajectories, recording, what the verifier wrote."""
    for directory, folders, names in os.walk(trial):
        folder = directory[len(str(trial)) + 1 :]
        where = tuple(folder.split("/")) if folder else ()
        segment = where[2:] if len(where) >= 2 and where[0] == "steps" else where
        verifier = segment[:1] == ("verifier",)
        agent = segment in ((), ("agent",))
        folders[:] = sorted(
            name
            for name in folders
            if verifier or name in ("agent", "verifier", "steps") or where == ("steps",)
        )
        for name in sorted(names):
            if not (
                verifier
                or (agent and _AGENT_FILE.fullmatch(name))
                or (not where and _ROOT_FILE.fullmatch(name))
            ):
                continue
            if all(is_plain_name(part) for part in (*where, name)):
                yield folder, name
            else:
                notes.append(f"left out: {one_line(name, 80)} is not a plain name")


def _redact_trajectory(data: bytes) -> bytes:
    """A trajectory without keys in its description of the agent; otherwise byte for byte."""
    lowered = data.lower()
    if not any(hint in lowered for hint in _SECRET_HINTS):
        return data
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return redact_json_text(data.decode("utf-8", "replace")).encode()
    if not isinstance(document, dict):
        return data
    clean = document | {
        name: redact(document[name]) for name in ("agent", "extra") if name in document
    }
    return data if clean == document else json.dumps(clean).encode()
