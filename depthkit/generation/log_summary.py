"""A generation log summed up: what was accepted and why the rest was not, what it took and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from depthkit.corpus.files import counted
from depthkit.generation.log import Spent, TaskLog, read_log, task_logs
from depthkit.stats import quantile


@dataclass
class LogSummary:
    """A whole log.

    Attributes:
        tasks: Its tasks, in the order in which they were started.
    """

    tasks: list[TaskLog]

    @property
    def outcomes(self) -> Counter[str]:
        """How many tasks were accepted, rejected, or are unfinished."""
        return Counter(task.outcome for task in self.tasks)

    @property
    def accepted_share(self) -> float | None:
        """Of the tasks that came to an end; ``None`` where none did."""
        ended = self.outcomes["accepted"] + self.outcomes["rejected"]
        return self.outcomes["accepted"] / ended if ended else None

    @property
    def cost_usd(self) -> float | None:
        """Dollars of all tasks; ``None`` where a cost is unknown or no model had a turn."""
        paid = [task.whole for task in self.tasks if task.whole.turns]
        costs = [spent.cost_usd for spent in paid]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known and len(known) == len(costs) else None

    @property
    def tasks_per_usd(self) -> float | None:
        """Accepted tasks by the cost of all, ended or not; ``None`` where nothing was paid."""
        cost = self.cost_usd
        return self.outcomes["accepted"] / cost if cost else None

    def row(self) -> dict[str, Any]:
        """For scripts; a segment counts in ``a_segment`` whether or not its task was accepted."""
        whole = [task.whole for task in self.tasks]
        return {
            "tasks": len(self.tasks),
            "accepted": self.outcomes["accepted"],
            "rejected": self.outcomes["rejected"],
            "unfinished": self.outcomes["unfinished"],
            "accepted_share": self.accepted_share,
            "reasons": dict(Counter(t.reason for t in self.tasks if t.outcome == "rejected")),
            "cost_usd": self.cost_usd,
            "tasks_per_usd": self.tasks_per_usd,
            "turns": sum(each.turns for each in whole),
            "tokens": sum(each.tokens or 0 for each in whole),
            "minutes": round(sum(each.seconds for each in whole) / 60, 3),
            "a_task": _medians(whole),
            "a_segment": _medians(spent for task in self.tasks for spent in task.segments.values()),
            "format_errors": sum(each.format_errors for each in whole),
            "replays": sum(each.replays for each in whole),
            "replays_failed": sum(each.replays_failed for each in whole),
        }

    def lines(self) -> list[str]:
        """For people."""
        row = self.row()
        share, rate = row["accepted_share"], row["tasks_per_usd"]
        said = [
            f"{row['tasks']} tasks: {row['accepted']} accepted, {row['rejected']} rejected, "
            f"{row['unfinished']} unfinished"
            + ("" if share is None else f" ({share:.0%} of those that ended)"),
            f"cost {_usd(row['cost_usd'])} · {row['turns']:,} turns · {row['tokens']:,} tokens · "
            f"{row['minutes']:.1f} min · "
            + ("tasks per dollar unknown" if rate is None else f"{rate:.2f} tasks per dollar"),
            f"{row['format_errors']} format errors · {row['replays']} replays, "
            f"{row['replays_failed']} failed",
        ]
        for task in self.tasks:
            said.append(
                f"{task.task} ({task.seed}, {task.author}): {task.outcome}, "
                f"{task.finished} of {task.k or '?'} segments, {_took(task.whole)}"
                + (f": {task.reason}" if task.reason else "")
            )
            for number, spent in sorted(task.segments.items()):
                said.append(
                    f"  segment {number}: {_took(spent)}, "
                    f"{counted(spent.format_errors, 'format error')}, "
                    f"{spent.replays_failed} of {counted(spent.replays, 'replay')} failed"
                )
        return said


def _medians(spent: Iterable[Spent]) -> dict[str, float | None]:
    """Medians over those that models wrote; of minutes over all."""
    each = list(spent)
    models = [one for one in each if one.turns]
    costs = [one.cost_usd for one in models]
    known = [cost for cost in costs if cost is not None]
    return {
        "turns": _median([one.turns for one in models]),
        "tokens": _median([one.tokens or 0 for one in models]),
        "minutes": _median([one.seconds / 60 for one in each]),
        "cost_usd": _median(known) if len(known) == len(costs) else None,
    }


def _median(values: list[float]) -> float | None:
    return round(quantile(values, 0.5), 6) if values else None


def _took(spent: Spent) -> str:
    minutes = f"{spent.seconds / 60:.1f} min"
    if spent.tokens is None:  # A person or another program: only the time is known.
        return minutes
    turns = counted(spent.turns, "turn")
    return f"{turns}, {spent.tokens:,} tokens, {minutes}, {_usd(spent.cost_usd)}"


def _usd(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:.4f}"


def summary(path: Path) -> LogSummary:
    """What a log says.

    Raises:
        DepthkitError: There is no such log.
    """
    return LogSummary(task_logs(read_log(path)))


def shown_json(path: Path) -> dict[str, Any]:
    """The summary and its tasks, for scripts."""
    found = summary(path)
    return found.row() | {"each": [task.row() for task in found.tasks]}
