"""Which replays a task needs for Table 8, and in how few containers. Pure.

One container is the *clean* replay: before each segment its checks run, after it they must pass.
Every other replay starts from a state on that way, after so many whole segments, and is a branch.
The next segment after a removed key step is run in the container of the removal itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from depthkit.model import Change, Replay
from depthkit.tasks.markers import Marks, without


@dataclass(frozen=True)
class Part:
    """One replay of Table 8; segments and events count from 1."""

    change: Change
    segment: int
    checked: int
    event: int | None = None


@dataclass(frozen=True)
class Branch:
    """What one container does beside the clean replay.

    Attributes:
        start: How many whole segments come before.
        steps: Segment to run, in place of its own solution this script (``None``: its own), and
            the replay that its checks then decide.
    """

    start: int
    steps: tuple[tuple[int, str | None, Part], ...]

    @property
    def parts(self) -> list[Part]:
        """The replays it decides, in order."""
        return [part for _, _, part in self.steps]


@dataclass(frozen=True)
class Plan:
    """What to do for one task.

    Attributes:
        before: Segments whose checks are run before their work, in the clean replay.
        branches: The other containers.
        impossible: Replays that cannot be made, with the reason.
    """

    before: frozenset[int]
    branches: tuple[Branch, ...]
    impossible: tuple[tuple[Part, str], ...]

    @property
    def parts(self) -> list[Part]:
        """All replays."""
        first = [Part("checks_before_work", s, s) for s in sorted(self.before)]
        rest = [part for branch in self.branches for part in branch.parts]
        return [*first, *rest, *(part for part, _ in self.impossible)]

    @property
    def containers(self) -> int:
        """Containers that are started."""
        return len(self.branches) + bool(self.before or self.branches)


def plan_replays(scripts: Sequence[str], marks: Sequence[Marks], done: Iterable[Part] = ()) -> Plan:
    """What is missing of Table 8 for one task.

    Args:
        scripts: Reference solution of each segment.
        marks: Their marks.
        done: Replays whose outcome is known.
    """
    known = set(done)
    k = len(scripts)
    branches: list[Branch] = []
    impossible: list[tuple[Part, str]] = []
    before = {s for s in range(1, k + 1) if Part("checks_before_work", s, s) not in known}
    for s in range(1, k + 1):
        script, own = scripts[s - 1], marks[s - 1]
        skipped = Part("previous_segment_skipped", s, s)
        if s > 1 and skipped not in known:
            branches.append(Branch(s - 2, ((s, None, skipped),)))
        for number, event in enumerate(own.events, 1):
            part = Part("event_removed", s, s, number)
            if part not in known:
                branches.append(Branch(s - 1, ((s, without(script, [event]), part),)))
        removed = Part("key_step_removed", s, s)
        after = Part("key_step_removed_next_run", s, s + 1)
        wanted = {removed} | ({after} if s < k else set())
        if wanted <= known:
            continue
        if not own.key_steps:
            reason = "no key step is marked in the solution"
            impossible += [(part, reason) for part in (removed, after) if part in wanted - known]
            continue
        steps: list[tuple[int, str | None, Part]] = [(s, without(script, own.key_steps), removed)]
        if after in wanted - known:
            steps.append((s + 1, None, after))
        branches.append(Branch(s - 1, tuple(steps)))
    return Plan(frozenset(before), tuple(branches), tuple(impossible))


def table_rows(replays: Iterable[Replay]) -> list[dict[str, Any]]:
    """Rows of Table 8: of how many replays with a result the checks report a failure.

    Of a replay that was repeated the last result counts.
    """
    last: dict[tuple[Any, ...], Replay] = {}
    for each in replays:
        key = (each.dataset, each.task_id, each.change, each.segment, each.event)
        if key not in last or each.holds is not None:
            last[key] = each
    rows = []
    counts = Counter((each.change, each.holds) for each in last.values())
    for change in get_args(Change):
        holds, fails, none = (counts[change, value] for value in (True, False, None))
        if holds + fails + none:
            share = holds / (holds + fails) if holds + fails else None
            rows.append(
                {"change": change, "holds": holds, "results": holds + fails}
                | {"share": share, "left_out": none}
            )
    return rows
