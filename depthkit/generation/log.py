"""The generation log: one event a line, appended and synced before work goes on.

What a task cost and what became of it is summed up from its events alone, over all the processes
that worked on it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from depthkit.corpus.lines import Lines
from depthkit.errors import DepthkitError
from depthkit.model import Record

type Kind = Literal[
    "started", "planned", "turn", "format_error", "replay", "finished", "accepted", "refused",
    "rejected", "stopped",
]  # fmt: skip


class Event(Record):
    """One event.

    Attributes:
        at: When, in UTC.
        task: The directory of the task, by its name.
        seed: Its seed environment.
        author: Name of the model, or ``stdio``.
        provenance: ``scripted`` where a policy stood in for the model.
        event: What happened. ``turn`` is a reply of a model, ``finished`` a segment, ``accepted``
            and ``rejected`` end a task, ``refused`` is an acceptance that did not hold and may
            still be mended, ``stopped`` is a process that ended before the task did.
        segment: Which segment, from 1; ``None`` where it is about the whole task.
        seconds: How long it took; of a turn the model's time.
        cost_usd: ``None`` when unknown.
        details: What else is known: reasons, what was wrong, outcomes of checks, Table 8.
    """

    at: str
    task: str
    seed: str
    author: str
    provenance: Literal["measured", "scripted"] = "measured"
    event: Kind
    segment: int | None = None
    seconds: float | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    details: dict[str, Any] = Field(default_factory=dict)


class GenerationLog:
    """A log of one task's events, in a file that other tasks may share.

    Args:
        path: The file.
        task: As in :class:`Event`, like the three that follow.
        seed: See there.
        author: See there.
        provenance: See there.
        on_event: Is told each event once it is on disk.
    """

    def __init__(
        self,
        path: Path,
        *,
        task: str,
        seed: str,
        author: str,
        provenance: str = "measured",
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        self._on_event = on_event
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lines = Lines(path)
        self._known = {"task": task, "seed": seed, "author": author, "provenance": provenance}

    def add(self, event: Kind, segment: int | None = None, **values: Any) -> None:
        """Append an event; it is on disk when this returns.

        Raises:
            DepthkitError: The disk does not take it.
        """
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        made = Event(at=at, event=event, segment=segment, **self._known, **values)
        self._lines.append([made])
        if self._on_event is not None:
            self._on_event(made)


def read_log(path: Path) -> list[Event]:
    """The events of a log, in order.

    Raises:
        DepthkitError: There is no such file, or a line of it is no event.
    """
    if not path.is_file():
        raise DepthkitError(f"{path}: no such file; give a generation log.")
    events = []
    for number, line in enumerate(Lines(path).read().splitlines(), 1):
        try:
            events.append(Event.model_validate_json(line))
        except ValidationError as error:
            raise DepthkitError(
                f"{path}: line {number} is no event of a generation log."
            ) from error
    return events


def told(event: Event) -> str:
    """An event as a line for people who watch."""
    where = f"segment {event.segment}: " if event.segment else ""
    details = event.details
    match event.event:
        case "turn":
            cost = "" if event.cost_usd is None else f", ${event.cost_usd:.4f}"
            return f"{where}turn, {event.seconds or 0:.0f} s{cost}"
        case "format_error":
            return f"{where}error of form: {details['faults'][0]}"
        case "replay":
            return (
                f"{where}replay {'passes' if details['passed'] else 'fails: ' + details['reason']}"
            )
        case "refused":
            return f"not accepted: {details['faults'][0]}"
        case "rejected" | "stopped":
            return f"{event.event}: {details['reason']}"
        case kind:
            return f"{where}{kind}"


@dataclass
class Spent:
    """What a segment or a task took.

    Attributes:
        seconds: From one event to the next, without the time in which nobody worked on it.
    """

    turns: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    format_errors: int = 0
    replays: int = 0
    replays_failed: int = 0
    _costs: list[float | None] = field(default_factory=list)

    @property
    def cost_usd(self) -> float | None:
        """Dollars; ``None`` where that of any turn is unknown, or no model had a turn."""
        known = [cost for cost in self._costs if cost is not None]
        return sum(known) if known and len(known) == len(self._costs) else None

    @property
    def tokens(self) -> int | None:
        """Tokens in and out; ``None`` where no model had a turn."""
        return self.input_tokens + self.output_tokens if self.turns else None

    def take(self, event: Event) -> None:
        """Count an event."""
        if event.event == "turn":
            self.turns += 1
            self.input_tokens += event.input_tokens or 0
            self.cached_tokens += event.cached_tokens or 0
            self.output_tokens += event.output_tokens or 0
            self._costs.append(event.cost_usd)
        elif event.event == "format_error":
            self.format_errors += 1
        elif event.event == "replay":
            self.replays += 1
            self.replays_failed += not event.details.get("passed")

    def row(self) -> dict[str, Any]:
        """For scripts."""
        keys = ("turns", "input_tokens", "cached_tokens", "output_tokens")
        more = ("format_errors", "replays", "replays_failed")
        return (
            {key: getattr(self, key) for key in keys}
            | {"minutes": round(self.seconds / 60, 3), "cost_usd": self.cost_usd}
            | {key: getattr(self, key) for key in more}
        )


@dataclass
class TaskLog:
    """What a log says of one task.

    Attributes:
        outcome: ``accepted``, ``rejected`` or ``unfinished``.
        reason: Of a rejection.
        segments: What each segment took; what was done before the first was begun or after the
            last was finished is in ``whole`` only.
        replays: Table 8, as acceptance reported it.
    """

    task: str
    seed: str
    author: str
    provenance: Literal["measured", "scripted"]
    k: int | None = None
    outcome: Literal["accepted", "rejected", "unfinished"] = "unfinished"
    reason: str | None = None
    goal: str | None = None
    finished: int = 0
    resumed: int = 0
    whole: Spent = field(default_factory=Spent)
    segments: dict[int, Spent] = field(default_factory=lambda: defaultdict(Spent))
    strict: bool = False
    table8: list[dict[str, Any]] = field(default_factory=list)
    statistics: list[dict[str, Any]] = field(default_factory=list)
    original_lines: int | None = None

    def row(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "task": self.task, "seed": self.seed, "author": self.author,
            "provenance": self.provenance, "k": self.k, "outcome": self.outcome,
            "reason": self.reason, "finished": self.finished, "resumed": self.resumed,
            **self.whole.row(),
            "segments": [{"segment": n, **s.row()} for n, s in sorted(self.segments.items())],
            "strict": self.strict, "table8": self.table8,
        }  # fmt: skip


def task_logs(events: Iterable[Event]) -> list[TaskLog]:
    """The tasks of a log, in the order in which they were started.

    A task that is started again after it was accepted or rejected is another one.
    """
    found: list[TaskLog] = []
    open_: dict[str, TaskLog] = {}
    last: dict[str, datetime] = {}
    for event in events:
        task = open_.get(event.task)
        if task is None:
            task = TaskLog(event.task, event.seed, event.author, event.provenance)
            open_[event.task] = task
            found.append(task)
        _take(task, event)
        at = datetime.fromisoformat(event.at)
        if event.event != "started" and event.task in last:
            passed = (at - last[event.task]).total_seconds()
            for spent in _spent(task, event):
                spent.seconds += passed
        last[event.task] = at
        if event.event in ("accepted", "rejected"):
            del open_[event.task]
    return found


def _spent(task: TaskLog, event: Event) -> list[Spent]:
    return [task.whole, *([task.segments[event.segment]] if event.segment else [])]


def _take(task: TaskLog, event: Event) -> None:
    details: Mapping[str, Any] = event.details
    for spent in _spent(task, event):
        spent.take(event)
    if event.event == "started":
        task.k = details.get("k", task.k)
        task.original_lines = details.get("original_lines")
        task.resumed += bool(details.get("resumed"))
    elif event.event == "planned":
        task.goal = details.get("goal")
    elif event.event == "finished":
        task.finished = max(task.finished, event.segment or 0)
    elif event.event in ("accepted", "rejected"):
        task.outcome = "accepted" if event.event == "accepted" else "rejected"
        task.reason = details.get("reason")
    if event.event in ("accepted", "refused", "rejected") and "report" in details:
        report = details["report"]
        task.strict = bool(report.get("strict"))
        task.table8 = report.get("table8", [])
        task.statistics = report.get("segments", [])
