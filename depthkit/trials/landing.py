"""How a finished trial enters the corpus, and who may measure into it.

A trial is made in ``trials/.running/`` and moved to its place before its line is appended, so a
run in ``runs.jsonl`` always has its files, and one that was killed in between is found again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from depthkit.corpus import Corpus
from depthkit.corpus.keep import RUN_FILE
from depthkit.corpus.lines import open_alone
from depthkit.errors import DepthkitError
from depthkit.model import Run
from depthkit.trials.budget import Budget

RUNNING = ".running"
"""Folder in ``trials/`` of runs in flight; what a killed schedule leaves there is no result."""

_LOCK = ".measuring.lock"
_LOCK_SECONDS = 2.0
_ROOM = 64 * 2**20
"""Bytes that are left on a disk which is not full."""

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class Measuring:
    """A process that measures into a corpus.

    Attributes:
        pid: Its number on ``host``.
        since: When it started.
        notice: What it waits for, if it does.
        max_usd: Its ``--max-cost``, if there is one.
        spent_usd: Dollars it has spent so far, as of the run that finished last.
    """

    pid: int
    host: str
    since: datetime
    notice: str = ""
    max_usd: float | None = None
    spent_usd: float = 0.0


class Hold:
    """The right to measure into a corpus, held by one process at a time (a context manager).

    Args:
        corpus: The corpus.
        budget: What may be spent meanwhile, for whoever looks from outside.
    """

    def __init__(self, corpus: Corpus, budget: Budget | None = None) -> None:
        self._budget = budget or Budget()
        self._path = corpus.path / _LOCK
        self._since = datetime.now(UTC)

    def __enter__(self) -> Hold:
        # For a moment only: someone who looks whether it is held (`measuring`) takes it too.
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                self._file = open_alone(self._path, "a+", wait=False)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise DepthkitError(
                        f"{self._path.parent}: another depthkit process is measuring into this "
                        "corpus; wait for it, or name another one with --corpus."
                    ) from error
                time.sleep(0.05)
        self.say("")
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._file.truncate(0)
        self._file.close()

    def say(self, notice: str) -> None:
        """Leave word of what is waited for, and of the money, for whoever looks from outside."""
        who = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": self._since.isoformat(),
            "notice": notice,
            "max_usd": self._budget.limit,
            "spent_usd": self._budget.spent,
        }
        with contextlib.suppress(OSError):  # a full disk is reported where it matters
            self._file.truncate(0)
            self._file.write(json.dumps(who) + "\n")
            self._file.flush()


def measuring(corpus: Corpus) -> Measuring | None:
    """Who measures into a corpus now, on this machine; ``None`` if nobody does."""
    try:
        handle = (corpus.path / _LOCK).open()
    except OSError:
        return None
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
        except BlockingIOError:
            text = handle.read()
        except OSError:  # there are no locks here, so nobody measures
            return None
    try:
        who = json.loads(text)
        return Measuring(
            who["pid"],
            who["host"],
            datetime.fromisoformat(who["since"]),
            str(who["notice"]),
            who.get("max_usd"),
            who.get("spent_usd", 0.0),
        )
    except (ValueError, KeyError, TypeError):
        return Measuring(0, "", datetime.now(UTC))  # it is just starting


def disk_full(corpus: Corpus, error: object) -> DepthkitError:
    """The one line about a full disk, and which it is: TMPDIR or the engine may have others."""
    folders = (corpus.path, Path(tempfile.gettempdir()))
    free = {folder: shutil.disk_usage(folder).free for folder in folders}
    fullest = min(folders, key=lambda folder: free[folder])
    where = f"{fullest}{' (TMPDIR)' if fullest != corpus.path else ''}: the disk"
    if free[fullest] > _ROOM:
        where = "A quota, or the disk of the Docker engine (docker system df),"
    return DepthkitError(
        f"{where} is full ({error}); make room and run the same command again, what was measured "
        "is kept."
    )


@contextlib.contextmanager
def disk_errors(corpus: Corpus) -> Iterator[None]:
    """Turn an error of a full disk into the one line about it."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        raise disk_full(corpus, error.strerror) from error


def running_folder(corpus: Corpus) -> Path:
    """Where trials are made."""
    return corpus.path / "trials" / RUNNING


def land(corpus: Corpus, run: Run) -> None:
    """Move a finished trial to its place, then append its record."""
    source = running_folder(corpus) / run.run_id
    if source.is_dir():
        source.rename(corpus.trial_dir(run.run_id))
    corpus.append_run(run)


def recover(corpus: Corpus) -> list[str]:
    """Append runs whose files are in place but whose line is missing; drop half-done trials.

    Only a process that holds the corpus may call it.

    Returns:
        list[str]: Names of the runs that were appended.
    """
    known = {run.run_id for run in corpus.run_records()}
    found = []
    trials = corpus.path / "trials"
    for folder in (trials, trials / RUNNING):
        for path in sorted(folder.glob(f"*/{RUN_FILE}")):
            run = _whole(path)
            if run is not None and run.run_id not in known and run.run_id == path.parent.name:
                land(corpus, run)
                found.append(run.run_id)
    shutil.rmtree(trials / RUNNING, ignore_errors=True)
    return found


def _whole(path: Path) -> Run | None:
    """The run of a file; ``None`` where a full disk or a killed process cut it off."""
    try:
        return Run.model_validate_json(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
