"""How the work of tasks is shown: as rows for scripts and as a table for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from depthkit.model import Work
from depthkit.tasks.load import LoadedTask
from depthkit.tasks.text import printable


def work_rows(tasks: Sequence[LoadedTask]) -> list[dict[str, Any]]:
    """One object a task: its work a segment and in all; null without a reference solution."""
    return [
        {
            "dataset": task.record.dataset,
            "task_id": task.record.task_id,
            "segments": [
                {"index": segment.index, "name": segment.name, **_measures(segment.work)}
                for segment in task.record.segments
            ],
            **_measures(task.record.work),
            "helper_files": [name for names in task.helper_files for name in names],
        }
        for task in tasks
    ]


def work_table(tasks: Sequence[LoadedTask]) -> Table:
    """A row a task, and under a task of several segments a row a segment."""
    table = Table("Task", "Lines", "Tokens", "Characters", "Not counted", box=None)
    for column in table.columns[1:4]:
        column.justify = "right"
    for task in tasks:
        record = task.record
        helpers = sum(map(len, task.helper_files))
        note = f"{helpers} other file{'s' if helpers > 1 else ''}" if helpers else ""
        table.add_row(_plain(f"{record.dataset}/{record.task_id}"), *_cells(record.work), note)
        if record.k > 1:
            for segment in record.segments:
                label = f"  {segment.index}. {segment.name}"
                table.add_row(_plain(label), *_cells(segment.work), style="dim")
    return table


def _measures(work: Work | None) -> dict[str, int | None]:
    return {
        f"work_{name}": None if work is None else getattr(work, name)
        for name in ("lines", "tokens", "chars")
    }


def _cells(work: Work | None) -> tuple[str, str, str]:
    if work is None:
        return "-", "-", "-"
    return f"{work.lines:,}", f"{work.tokens:,}", f"{work.chars:,}"


def _plain(text: str) -> Text:
    """Names come from directories: no markup, no control characters."""
    return Text(printable(text))
