"""Reading a task directory that nobody vouches for: bounded, contained, printable."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import yaml

from depthkit.errors import DepthkitError

MAX_TEXT_BYTES = 900_000
"""Largest text file that is read as a whole.

Twice the longest reference solution of Terminal-Bench 2, and below the million blanks in a row
at which the tokenizer gives up.
"""


def printable(text: str) -> str:
    """The text with control and other unprintable characters as escapes, safe for a terminal."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def read_text(path: Path, shown: str, *, latin_1: bool = False) -> str:
    r"""A text file as it is, in UTF-8.

    With ``latin_1`` any other encoding is read too, each byte as one character: a shell runs
    such a script. Line ends are left alone (``\r\n`` stays), a byte order mark is dropped.
    ``shown`` names the file in the :class:`DepthkitError` for a file that is missing, no regular
    file, too large (:data:`MAX_TEXT_BYTES`), no text (it holds a NUL byte) or not in UTF-8.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise DepthkitError(f"{shown}: not a regular file; put a text file there.")
        with path.open("rb") as file:
            data = file.read(MAX_TEXT_BYTES + 1)
    except OSError as error:
        raise DepthkitError(f"{shown}: cannot be read ({error.strerror}).") from error
    if len(data) > MAX_TEXT_BYTES:
        size = path.stat().st_size
        raise DepthkitError(
            f"{shown}: is {size:,} bytes; a text file may have at most "
            f"{MAX_TEXT_BYTES:,}, so move bulk data into files of its own."
        )
    if b"\0" in data:
        raise DepthkitError(f"{shown}: holds NUL bytes; it must be a text file.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if latin_1:
            return data.decode("latin-1")
        line = data.count(b"\n", 0, error.start) + 1
        raise DepthkitError(
            f"{shown}: line {line} is not UTF-8; save the file in that encoding."
        ) from error


def parsed(form: Literal["TOML", "YAML", "JSON"], text: str, shown: str) -> Any:
    """What a text that somebody wrote says.

    Raises:
        DepthkitError: It is not of this form, or too deep to read; ``shown`` names the file.
    """
    try:
        if form == "TOML":
            return tomllib.loads(text)
        return json.loads(text) if form == "JSON" else yaml.safe_load(text)
    except RecursionError as error:
        raise DepthkitError(f"{shown}: is nested too deeply; make it flatter.") from error
    # Of a tagged value, such as `!!bool x`, PyYAML lets any of the last three through.
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError) as error:
        said = printable(" ".join(str(error).split()))
        raise DepthkitError(f"{shown}: is not valid {form}: {said}; correct it there.") from error


def encoding_of(path: Path) -> str:
    """How :func:`read_text` with ``latin_1`` read a file, to write what was made of it alike."""
    try:
        path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def walk(root: Path) -> Iterator[tuple[str, os.stat_result, Path]]:
    """Every entry below ``root`` as (relative name, its own status, path), sorted by name.

    Links are reported, not followed.

    Raises:
        DepthkitError: a directory cannot be read, or an entry is neither file, directory nor
            link (a pipe or a device, which could hang or flood a reader).
    """
    waiting = [root]
    found: list[tuple[bytes, str, os.stat_result, Path]] = []
    while waiting:
        directory = waiting.pop()
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    path = Path(entry.path)
                    status = entry.stat(follow_symlinks=False)
                    name = path.relative_to(root).as_posix()
                    mode = status.st_mode
                    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
                        raise DepthkitError(
                            f"{printable(entry.path)}: is no file, directory or link; remove it."
                        )
                    found.append((os.fsencode(name), name, status, path))
                    if stat.S_ISDIR(mode):
                        waiting.append(path)
        except OSError as error:
            raise DepthkitError(
                f"{printable(str(directory))}: cannot be read ({error.strerror})."
            ) from error
    for _, name, status, path in sorted(found, key=lambda item: item[0]):
        yield name, status, path


def directory_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 (64 hex digits) of what a directory holds.

    Names, contents, whether a file may be executed, and the text of links count; times, owners
    and the other mode bits do not. Links are never followed, so nothing outside is read.

    Raises:
        DepthkitError: no such directory, or something in it cannot be read.
    """
    root = Path(path)
    if not root.is_dir():
        raise DepthkitError(f"{printable(str(root))}: no such directory.")
    digest = hashlib.sha256()
    for name, status, entry in walk(root):
        if stat.S_ISDIR(status.st_mode):
            kind, content = b"directory", b""
        elif stat.S_ISLNK(status.st_mode):
            kind, content = b"link", os.fsencode(entry.readlink())
        else:
            kind = b"program" if status.st_mode & 0o111 else b"file"
            try:
                with entry.open("rb") as file:
                    content = hashlib.file_digest(file, "sha256").digest()
            except OSError as error:
                raise DepthkitError(
                    f"{printable(str(entry))}: cannot be read ({error.strerror})."
                ) from error
        for part in (os.fsencode(name), kind, content):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    return digest.hexdigest()
