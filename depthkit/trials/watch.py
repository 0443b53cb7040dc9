"""What was seen around a verification, kept in the trial's folder.

Written by :mod:`depthkit.trials.verifier`. Nothing of Harbor is imported here, so that reading it
is cheap.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

VERIFIER = "depthkit.trials.verifier:WatchedVerifier"
"""Import path of the verifier that writes these."""

TIMEOUT_MULTIPLIER = 4.0
"""Harbor's time limit for it in multiples of the task's: one verification live, at most two more
on the snapshot, each held to the task's own limit by the verifier itself, and something over."""

VERDICTS_FILE = "verdicts.jsonl"
"""In the trial's folder, which no container has mounted: one :class:`Watch` a line."""


@dataclass
class Watch:
    """What was seen around one verification.

    Attributes:
        step: Name of the segment; ``None`` in a single-instruction task.
        rewards: The verdict as it was read; ``None`` if there was none.
        suspect: What speaks for a forged verdict.
        note: Why the snapshot could not be compared.
        confirmed: Whether the snapshot passed as well; ``None`` where the two were not compared.
    """

    step: str | None
    rewards: Mapping[str, float] | None = None
    suspect: list[str] = field(default_factory=list)
    note: str | None = None
    confirmed: bool | None = None

    def append_to(self, trial_dir: Path) -> None:
        """Write this as the next line of a trial's file."""
        with (trial_dir / VERDICTS_FILE).open("a", encoding="utf-8") as out:
            out.write(json.dumps(asdict(self)) + "\n")


def suspicion(trial_dir: Path) -> str | None:
    """Why the verdict of a trial may be forged; ``None`` if nothing speaks for it."""
    return _said(trial_dir, lambda watch: watch["suspect"])


def doubt(trial_dir: Path) -> str | None:
    """What could not be compared in a trial whose verdict is not suspect; ``None`` if nothing."""
    return _said(trial_dir, lambda watch: [watch["note"]] if watch["note"] else [])


def confirmed(trial_dir: Path) -> bool | None:
    """Whether the verdicts of a trial that passed were confirmed, each of them.

    ``None`` where one was not compared, and none failed to be confirmed.
    """
    found = [watch["confirmed"] for watch in _watches(trial_dir)] or [None]
    return False if False in found else None if None in found else True


def _watches(trial_dir: Path) -> list[dict[str, Any]]:
    path = trial_dir / VERDICTS_FILE
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [json.loads(line) for line in lines]


def _said(trial_dir: Path, pick: Callable[[dict[str, Any]], list[str]]) -> str | None:
    found = [
        f"segment {watch['step']}: {text}" if watch["step"] else text
        for watch in _watches(trial_dir)
        for text in pick(watch)
    ]
    return "; ".join(found) or None
