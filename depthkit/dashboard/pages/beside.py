"""What stands beside a task's ladder: its replays, and the tasks derived from it."""

from __future__ import annotations

from typing import Any

import pandas as pd

from depthkit.artifacts.tables import MISSING
from depthkit.dashboard import html
from depthkit.dashboard.html import Context
from depthkit.dashboard.text import plain
from depthkit.errors import DepthkitError
from depthkit.protocol import depth_text


def derived(context: Context, dataset: str, task_id: str) -> str:
    """Tasks that were merged or derived from this one, with their depth beside it."""
    found = context.snapshot.rows(
        "SELECT * EXCLUDE (sought) FROM tasks WHERE parent = ? AND coalesce(parent_dataset, ?) = ? "
        "AND (dataset, task_id) <> (?, ?) ORDER BY place LIMIT 200",
        [task_id, dataset, dataset, dataset, task_id],
    )
    if not found:
        return ""
    caps = context.snapshot.caps
    rows = [
        [
            f'<a href="{context.task(row["dataset"], row["task_id"])}">{plain(row["task_id"])}</a>',
            html.dataset(context, row["dataset"]),
            plain(html.written(row["k"], "number")),
            plain(depth_text(row["D"], caps) or MISSING),
            plain(html.written(row["N"], "number")),
            plain(html.written(row["W"], "number")),
            html.passes(row, f" of {row['valid']}"),
        ]
        for row in found
    ]
    heads = ["Task", "Data set", "Segments", "D", "N", "W", "Passes"]
    table = html.table(heads, rows, numeric=range(2, 7), label="Derived tasks")
    return f"<h2>Merged or derived from it</h2>{table}"


def replays(context: Context, dataset: str, task_id: str) -> str:
    """The reference solution replayed with one part changed: do the checks report it?"""
    if context.source.corpus is None:
        return ""
    try:
        frame = context.source.corpus.replays()
    except DepthkitError as error:
        return html.problems([str(error)])
    frame = frame[(frame["dataset"] == dataset) & (frame["task_id"] == task_id)]
    if frame.empty:
        return ""
    rows = [
        [
            plain(str(row["change"]).replace("_", " ")),
            _number(row["segment"]),
            _number(row["event"]),
            _number(row["checked_segment"]),
            _holds(row["holds"], row["reason"]),
            plain(row["provenance"]),
        ]
        for row in frame.to_dict("records")
    ]
    heads = ["Changed", "Segment", "Event", "Checked segment", "Checks report it", "Provenance"]
    table = html.table(heads, rows, numeric=(1, 2, 3), label="Replays")
    return f"<h2>Replays <small>{len(rows)}</small></h2>{table}"


def _number(value: Any) -> str:
    return MISSING if pd.isna(value) else str(int(value))


def _holds(holds: Any, reason: Any) -> str:
    if pd.isna(holds):
        return f"no result: {plain(reason)}" if isinstance(reason, str) else "no result"
    return "yes" if holds else '<span class="flag">no</span>'
