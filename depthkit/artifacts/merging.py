"""Section 4.4 and Appendix H, Figure 5: depth after segments are merged into one instruction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pandas as pd

from depthkit.artifacts import shapes
from depthkit.artifacts.artifact import Figure, artifact
from depthkit.artifacts.own_tasks import OwnTasks, one_row, own_tasks, runs_line
from depthkit.corpus import Corpus
from depthkit.corpus.files import counted
from depthkit.model import Run
from depthkit.protocol import ABOVE
from depthkit.protocol.merged import merged_depth

NOT_WITHIN = "not solved within"
"""D after merging of a task that fails at its original D."""


@artifact("depth/figure-5", section="4.4, Figure 5")
def merging_figure(corpus: Corpus, *, datasets: Sequence[str] | None = None) -> Figure:
    """D of our tasks before and after their segments are merged.

    A merged task has one segment and names as its parent one of our tasks that has several. Both
    depths are those of the first measurement model alone (Appendix H). ``frame`` has one row a
    pair of depths that occurs: ``D_before`` (99 for above the largest cap), ``D_after`` (a cap, or
    ``not solved within``, as text) and how many ``tasks`` have it. A task that is not passed within
    80 turns before and after has not become shallower and counts as not solved within.

    ``parts["tasks"]`` has one row a merged task that is measured, with the ``first_cap`` that was
    tried (the largest where D before is above it), ``parts["summary"]`` the counts of Appendix H in
    one row; all are null where no merged task is measured.

    Args:
        corpus: With merged tasks and runs of purpose ``merged``.
        datasets: Only those merged from tasks of these; ``None`` for those of group ``ours``.
    """
    own = own_tasks(corpus, datasets)
    runs = _runs(corpus, own)
    tasks, unfinished = _measured(corpus, own, runs)
    pairs = tasks.groupby(["D_before", "D_after"], sort=False).size()
    frame = pairs.rename("tasks").reset_index()[["D_before", "D_after", "tasks"]]
    frame = frame.sort_values(
        ["D_before", "D_after"], key=lambda column: column.map(_place), ignore_index=True
    )
    summary = _summary(tasks, own.caps)
    notes = list(own.notes)
    if unfinished:
        notes.append(
            f"{unfinished} merged tasks are left out: D of theirs or of the task before is not "
            "known yet."
        )
    if above := int((tasks["D_before"] == ABOVE).sum()):
        notes.append(
            f"{counted(above, 'merged task')} had D above {own.caps[-1]} before and "
            f"{'was' if above == 1 else 'were'} measured from {own.caps[-1]} downward."
        )
    if tasks.empty:
        notes.append("The corpus has no merged tasks that are measured.")
    return Figure(
        title=(
            "D after the segments of a task are merged into one instruction, measured from the "
            "original D downward. Numbers are task counts; darker is a greater share of a row."
        ),
        frame=frame,
        parts={"summary": summary, "tasks": tasks},
        provenance=runs_line(corpus, [run for of_task in runs.values() for run in of_task]),
        draw=lambda backend: _draw(frame, own.caps, backend),
        notes=tuple(notes),
    )


def _runs(corpus: Corpus, own: OwnTasks) -> dict[tuple[str, str], list[Run]]:
    """Merged runs of the first model by merged task; those with a result."""
    keys = {(task.dataset, task.task_id) for _, task in own.merged}
    found: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in corpus.run_records():
        key = run.dataset, run.task_id
        if key in keys and run.purpose == "merged" and run.valid and run.model in corpus.models[:1]:
            found[key].append(run)
    return found


def _measured(
    corpus: Corpus, own: OwnTasks, runs: dict[tuple[str, str], list[Run]]
) -> tuple[pd.DataFrame, int]:
    """One row a merged task with both depths, and how many lack one."""
    first = corpus.models[0] if corpus.models else ""
    before = {
        key: by_model.get(first)
        for key, by_model in zip(own.keys, own.tasks["D_by_model"], strict=True)
    }
    rows, unfinished = [], 0
    for parent, task in own.merged:
        original = before[parent]
        history = runs.get((task.dataset, task.task_id), [])
        after = (
            merged_depth(history, first, original=original, caps=own.caps)
            if original is not None
            else None
        )
        if after is None:
            unfinished += 1
            continue
        said = NOT_WITHIN if after == ABOVE else str(after)
        row = {"task_id": task.task_id, "parent": parent[1], "D_before": original}
        rows.append(row | {"first_cap": max(run.cap or 0 for run in history), "D_after": said})
    columns = ["task_id", "parent", "D_before", "first_cap", "D_after"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sort_values("task_id", ignore_index=True), unfinished


def _place(depth: Any) -> int:
    """Sorts depths, and "not solved within" after all of them."""
    return ABOVE + 1 if depth == NOT_WITHIN else int(depth)


def _summary(tasks: pd.DataFrame, caps: tuple[int, ...]) -> pd.DataFrame:
    scale = [*caps, ABOVE]
    drops = [
        None if after == NOT_WITHIN else scale.index(before) - scale.index(int(after))
        for before, after in zip(tasks["D_before"], tasks["D_after"], strict=True)
    ]
    lower = sum(drop is not None and drop > 0 for drop in drops)
    counts = {
        "merged": len(tasks),
        "not_lower": len(tasks) - lower,
        "not_lower_share": (len(tasks) - lower) / len(tasks) if len(tasks) else None,
        "same": drops.count(0),
        "not_within": drops.count(None),
        "lower": lower,
        "lower_by_1": drops.count(1),
        "lower_by_2": drops.count(2),
    }
    return one_row(**(counts if len(tasks) else dict.fromkeys(counts)))


def _draw(frame: pd.DataFrame, caps: tuple[int, ...], backend: Any) -> Any:
    import holoviews as hv

    def said(depth: Any) -> str:
        return f">{caps[-1]}" if depth == ABOVE else str(depth)

    largest = max((int(depth) for depth in frame["D_before"]), default=caps[-1])
    least = min((_place(depth) for depth in frame["D_after"]), default=caps[0])
    shown = [cap for cap in (*caps, ABOVE) if cap <= largest]
    before = [cap for cap in shown if cap >= min(frame["D_before"], default=caps[0])]
    after = [str(cap) for cap in shown if least <= cap < ABOVE]
    totals = frame.groupby("D_before")["tasks"].transform("sum")
    cells = pd.DataFrame(
        {
            "row": [said(depth) for depth in frame["D_before"]],
            "column": list(frame["D_after"]),
            "tasks": frame["tasks"],
            "share": frame["tasks"] / totals,
        }
    )
    grid = shapes.grid(
        cells,
        [said(depth) for depth in reversed(before)],
        [*after, NOT_WITHIN],
        backend,
        xlabel="D after merging (turns)",
        ylabel="D before (turns)",
    )
    return hv.Layout([grid])
