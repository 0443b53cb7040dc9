"""Appendix F, Table 8: whether checks see that a part of the reference solution is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import pandas as pd

from depthkit.artifacts.artifact import Table, artifact
from depthkit.artifacts.own_tasks import own_tasks, resting_on
from depthkit.artifacts.tables import formatted, plain_table
from depthkit.corpus import Corpus
from depthkit.corpus.files import counted
from depthkit.model import Change, Replay

CHANGES: dict[Change, str] = {
    "checks_before_work": "Checks of segment s run before its work",
    "previous_segment_skipped": "Previous segment skipped",
    "event_removed": "One event of segment s removed",
    "key_step_removed": "Key step of segment s removed",
    "key_step_removed_next_run": "Key step of segment s removed, then segment s + 1 run",
}
"""The rows of Table 8, in its order."""
assert tuple(CHANGES) == get_args(Change)


@artifact("depth/table-8", section="F, Table 8")
def checks_table(corpus: Corpus, *, datasets: Sequence[str] | None = None) -> Table:
    """Replays of the reference solutions with one part changed.

    One row a change that was replayed: ``holds``, the replays in which the checks report a failure,
    of ``results`` replays that ran to a result, with their ``share``; ``left_out`` gave none. One
    replay is one segment, or one event where an event is removed. Of a replay that was repeated the
    last result counts.

    Args:
        corpus: What was measured.
        datasets: Only tasks of these; ``None`` for those of group ``ours``.
    """
    own = own_tasks(corpus, datasets)
    keys = set(own.keys)
    replays: dict[tuple[Any, ...], Replay] = {}
    for replay in corpus.replay_records():
        if (replay.dataset, replay.task_id) not in keys:
            continue
        part = (replay.dataset, replay.task_id, replay.change, replay.segment, replay.event)
        if part not in replays or replay.holds is not None:
            replays[part] = replay
    frame = pd.DataFrame(
        [row for change in CHANGES if (row := _row(change, list(replays.values())))],
        columns=["change", "holds", "results", "share", "left_out"],
    )
    tasks = {(replay.dataset, replay.task_id) for replay in replays.values()}
    notes = list(own.notes)
    if not replays:
        notes.append("The corpus has no replays of these tasks.")
    return Table(
        title=(
            "Replays of reference solutions with one part changed. Holds: the checks report a "
            "failure, of the replays with a result. Counts are over segments, except for removed "
            "events. Left out: replays without a result."
        ),
        frame=frame,
        provenance=resting_on(
            corpus,
            [replay.provenance for replay in replays.values()],
            f"{counted(len(tasks), 'task')}, {counted(len(replays), 'replay')}",
        ),
        draw=lambda: _table(frame),
        cells=("change", "holds", "share", "left_out"),
        notes=tuple(notes),
    )


def _row(change: Change, replays: list[Replay]) -> dict[str, Any] | None:
    of_change = [replay for replay in replays if replay.change == change]
    if not of_change:
        return None
    outcomes = [replay.holds for replay in of_change if replay.holds is not None]
    return {
        "change": change,
        "holds": sum(outcomes),
        "results": len(outcomes),
        "share": sum(outcomes) / len(outcomes) if outcomes else float("nan"),
        "left_out": len(of_change) - len(outcomes),
    }


def _table(frame: pd.DataFrame) -> Any:
    shown = pd.DataFrame(
        {
            "Change": [CHANGES[change] for change in frame["change"]],
            "Holds": [
                f"{holds:,} / {results:,}"
                for holds, results in zip(frame["holds"], frame["results"], strict=True)
            ],
            "Share": formatted(frame["share"], "{:.1%}"),
            "Left out": [f"{count:,}" for count in frame["left_out"]],
        }
    )
    return plain_table(shown, "depth-table-8", rows="Change")
