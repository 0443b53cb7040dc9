"""Is a task that was written fit to be one (Section 3.3): replayed clean, reviewed, noticed.

The replays of Table 8 are reported; required they are with ``strict`` only, as in the paper, whose
author never sees them.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from depthkit.errors import DepthkitError
from depthkit.experiments.check import check_tasks
from depthkit.experiments.replay import replay_tasks
from depthkit.experiments.replay_plan import table_rows
from depthkit.generation.draft import Draft
from depthkit.model import Replay
from depthkit.tasks.review import review
from depthkit.tasks.text import printable


@dataclass
class Verdict:
    """What acceptance says.

    Attributes:
        faults: Why the task is not accepted; empty where it is.
        replays: All replays of Table 8; none where the task failed before.
        segments: The record of each segment, its number of checks, what it asks for, its key step.
    """

    strict: bool
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    replays: list[Replay] = field(default_factory=list)
    segments: list[dict[str, Any]] = field(default_factory=list)

    @property
    def accepted(self) -> bool:
        """Whether there is no fault."""
        return not self.faults

    def report(self, *, with_replays: bool = True) -> dict[str, Any]:
        """As the log keeps it and an author is told."""
        row: dict[str, Any] = {
            "strict": self.strict,
            "faults": self.faults,
            "notes": self.notes,
            "segments": self.segments,
        }
        if with_replays:
            row["table8"] = table_rows(self.replays)
            row["not_noticed"] = [not_noticed(each) for each in self.replays if not each.holds]
        return row


def not_noticed(replay: Replay) -> str:
    """A replay that does not hold, in words."""
    event = f", event {replay.event}" if replay.event else ""
    why = "does not hold" if replay.holds is False else f"gave no result: {replay.reason}"
    return f"{replay.change.replace('_', ' ')}, segment {replay.segment}{event}: {why}"


def accept(draft: Draft, *, strict: bool, workers: int = 2) -> Verdict:
    """Judge a draft of which every segment is finished.

    To be called outside an event loop, and with no container of the author's left: what this
    process made in the engine is removed.

    Raises:
        DepthkitError: If no engine answers.
    """
    found = Verdict(strict)
    # The whole is judged again, each segment beside all others.
    for number in range(1, draft.k + 1):
        found.faults += [f for f in draft.format_faults(number) if f not in found.faults]
    plan = draft.plan
    task = draft.load(draft.k)
    for index, counts in enumerate(review(task.path).segments):
        told = plan and {"asks": plan.segments[index], "key_step": plan.key_steps[index]}
        record = task.record.segments[index].model_dump(mode="json")
        found.segments.append({**record, "checks": counts.checks, **(told or {})})
    if found.faults:
        return found
    [checked] = check_tasks([task.path], workers=workers, strict=strict)
    found.faults += [fault.replace(f"{task.path}/", "") for fault in checked.faults]
    found.notes += checked.notes
    if found.faults:
        return found
    with tempfile.TemporaryDirectory(prefix="depthkit-accept-") as folder:
        try:
            [replayed] = replay_tasks([task.path], Path(folder) / "corpus", workers=workers)
        except DepthkitError as error:
            found.faults.append(printable(str(error)))
            return found
    found.replays = sorted(replayed.replays, key=lambda r: (r.segment, r.change, r.event or 0))
    if strict:
        found.faults += [not_noticed(each) for each in found.replays if not each.holds]
    return found
