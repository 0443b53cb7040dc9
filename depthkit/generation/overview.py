"""The tasks that ship, with the evidence that ships with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table

from depthkit.corpus import Corpus
from depthkit.generation.shipped import read_result, shipped_tasks
from depthkit.tasks.load import load_task
from depthkit.tasks.review import review

ATTEMPTS = "attempts"
"""Name of the bundled corpus of blind attempts by hand (``depthkit attempt``)."""


def overview(folder: Path, attempts: Corpus | None) -> list[dict[str, Any]]:
    """One row a task: its size, what its replays gave, and the blind attempts at it.

    ``D`` is null until a model of a model set has run: an attempt by hand is no measurement. An
    attempt at a task as it was before the last change of its directory is given as ``outdated``.

    Args:
        folder: Holds task directories and the result of their replays.
        attempts: Corpus of the attempts, if there is one.

    Raises:
        DepthkitError: A task cannot be loaded or the result cannot be read.
    """
    replayed = read_result(folder)["tasks"]
    runs = attempts.run_records() if attempts else []
    depths = _depths(attempts) if attempts else {}
    rows = []
    for path in shipped_tasks(folder):
        task, counts = load_task(path).record, review(path).segments
        rows.append(
            {
                "task": task.task_id,
                "seed_env": task.seed_env,
                "category": task.category,
                "segments": task.k,
                "work_lines": None if task.work is None else task.work.lines,
                "instruction_words": sum(each.instruction_words or 0 for each in task.segments),
                "checks": sum(each.checks or 0 for each in counts),
                "D": depths.get(task.task_id),
                "table8": replayed.get(task.task_id, {}).get("table8", []),
                "attempts": [
                    {
                        "by": run.model,
                        "verdict": run.verdict,
                        "stop": run.stop,
                        "turns": run.turns,
                        "segments_passed": run.segments_passed,
                        "run_id": run.run_id,
                        "outdated": run.task_digest != task.digest,
                    }
                    for run in runs
                    if run.task_id == task.task_id
                ],
            }
        )
    return rows


def _depths(attempts: Corpus) -> dict[str, int | None]:
    table = attempts.estimates()
    pairs = zip(table["task_id"], table["D"], strict=True)
    return {str(name): None if pd.isna(depth) else int(depth) for name, depth in pairs}


def overview_table(rows: list[dict[str, Any]]) -> Table:
    """The rows for a terminal; lines are W."""
    table = Table()
    heads = ("task", "seed", "k", "lines", "words", "checks", "D", "replays hold", "blind attempt")
    for head in heads:
        table.add_column(head, no_wrap=head == "task")
    for row in rows:
        held = sum(each["holds"] for each in row["table8"])
        results = sum(each["results"] for each in row["table8"])
        table.add_row(
            row["task"],
            row["seed_env"] or "\N{EN DASH}",
            str(row["segments"]),
            str(row["work_lines"]),
            str(row["instruction_words"]),
            str(row["checks"]),
            "\N{EN DASH}" if row["D"] is None else str(row["D"]),
            f"{held} of {results}" if results else "none",
            "; ".join(map(_said, row["attempts"])) or "none",
        )
    return table


def _said(attempt: dict[str, Any]) -> str:
    old = ", before the last change" if attempt["outdated"] else ""
    passed = attempt["segments_passed"]
    return f"{attempt['verdict']}, {attempt['turns']} turns, {passed} segments{old}"
