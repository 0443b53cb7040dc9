"""A file of one JSON record a line that several processes append to at once.

An append is whole or not there: it happens under a file lock and is fsynced before it returns. A
last line cut off by a killed process or a full disk is left out on reading, and set aside in
``NAME.torn`` by the next append, so nothing that was written is lost and nothing is in the way.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from depthkit.errors import DepthkitError
from depthkit.model import Record

log = logging.getLogger(__name__)


class Lines:
    """One record file of a corpus.

    Args:
        path: The file; it need not exist yet.
        unique: Field that no two records may share, if any.
    """

    def __init__(self, path: Path, unique: str | None = None) -> None:
        self.path = path
        self._unique = unique
        self._keys: set[str] = set()
        self._keys_until = 0

    def read(self) -> bytes:
        """All whole lines, each ending in a newline; empty without a file."""
        try:
            with self.path.open("rb") as handle:
                _share(handle)
                data = handle.read()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise DepthkitError(f"{self.path}: cannot be read ({error.strerror}).") from error
        whole, torn = _split_torn(data)
        if torn:
            log.warning(
                "%s: the last line is cut off (%d bytes) and left out; the next append sets it "
                "aside in %s.torn.",
                self.path,
                len(torn),
                self.path.name,
            )
        return whole

    def keys(self) -> frozenset[str]:
        """Values of the unique field in the file now."""
        if self.path.exists():
            with self.path.open("rb") as handle:
                _share(handle)
                self._learn_keys(handle.fileno(), os.fstat(handle.fileno()).st_size)
        return frozenset(self._keys)

    def append(self, records: Sequence[Record]) -> None:
        """Append records, all or none of them.

        Raises:
            DepthkitError: A record has the key of one that is there, or the disk does not take it.
        """
        data = b"".join(record.model_dump_json().encode() + b"\n" for record in records)
        with self._locked() as descriptor:
            self._set_torn_aside(descriptor)
            size = os.fstat(descriptor).st_size
            if self._unique is not None:
                self._learn_keys(descriptor, size)
                self._refuse_known(records)
            try:
                _write_all(descriptor, data)
                os.fsync(descriptor)
            except OSError as error:
                os.ftruncate(descriptor, size)
                raise DepthkitError(
                    f"{self.path}: could not append ({error.strerror}); make room and run the same "
                    "command again, what is in the file is whole."
                ) from error
            if size == 0:
                sync_directory(self.path.parent)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise DepthkitError(f"{self.path}: cannot be written ({error.strerror}).") from error
        try:
            _lock(descriptor, self.path)
            yield descriptor
        finally:
            os.close(descriptor)  # Releases the lock.

    def _set_torn_aside(self, descriptor: int) -> None:
        """Mend the end of the file, so that an append starts on a new line."""
        size = os.fstat(descriptor).st_size
        if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
            return
        tail = _last_line(descriptor, size)
        if _is_record(tail):
            _write_all(descriptor, b"\n")
            return
        aside = self.path.with_name(self.path.name + ".torn")
        with aside.open("ab") as handle:
            handle.write(tail + b"\n")
            handle.flush()
            os.fsync(handle.fileno())
        sync_directory(self.path.parent)
        os.ftruncate(descriptor, size - len(tail))
        os.fsync(descriptor)
        log.warning(
            "%s: the last line was cut off; its %d bytes are now in %s.",
            self.path,
            len(tail),
            aside.name,
        )

    def _learn_keys(self, descriptor: int, size: int) -> None:
        """Take in the keys of lines that other writers appended since last time."""
        if self._unique is None:
            return
        if size < self._keys_until:
            self._keys, self._keys_until = set(), 0
        data = _read_range(descriptor, self._keys_until, size)
        data = data[: data.rfind(b"\n") + 1]
        for line in data.splitlines():
            try:
                key = json.loads(line)[self._unique]
            except (ValueError, KeyError, TypeError):
                continue  # Reading the corpus names this line; it must not block an append.
            self._keys.add(str(key))
        self._keys_until += len(data)

    def _refuse_known(self, records: Sequence[Record]) -> None:
        assert self._unique is not None
        seen: set[str] = set()
        for record in records:
            key = str(getattr(record, self._unique))
            if key in self._keys or key in seen:
                raise DepthkitError(
                    f"{self.path}: {self._unique} {key!r} is already there; a record is written "
                    f"once, so give this one another {self._unique}."
                )
            seen.add(key)


def open_alone(path: Path, mode: str, *, wait: bool = True) -> IO[str]:
    """Open a text file that nobody else then opens so, until it is closed.

    Raises:
        BlockingIOError: Another process has it open, and one is not to ``wait``.
        DepthkitError: Its file system has no locks.
        OSError: It cannot be opened.
    """
    file = path.open(mode, encoding="utf-8")
    try:
        _lock(file.fileno(), path, wait=wait)
    except BaseException:
        file.close()
        raise
    return file


def _lock(descriptor: int, path: Path, *, wait: bool = True) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError as error:
        raise DepthkitError(
            f"{path.parent}: its file system has no locks ({error.strerror}), so two processes "
            "could write there at once; use a directory on another one, such as a local disk."
        ) from error


def _share(file: IO[Any]) -> None:
    """Wait for who writes; without locks a line may be cut off, which is seen anyway."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_SH)


def sync_directory(directory: Path) -> None:
    """Make new and renamed entries of a directory survive a crash."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _split_torn(data: bytes) -> tuple[bytes, bytes]:
    """Whole lines, and the last line if it is cut off; a whole one may lack its newline."""
    if not data or data.endswith(b"\n"):
        return data, b""
    end = data.rfind(b"\n") + 1
    return (data + b"\n", b"") if _is_record(data[end:]) else (data[:end], data[end:])


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _last_line(descriptor: int, size: int) -> bytes:
    start, tail = size, b""
    while start > 0 and b"\n" not in tail:
        step = min(start, 65536)
        start -= step
        tail = os.pread(descriptor, step, start) + tail
    return tail[tail.rfind(b"\n") + 1 :]


def _read_range(descriptor: int, start: int, end: int) -> bytes:
    parts = []
    while start < end and (part := os.pread(descriptor, min(end - start, 1 << 24), start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
