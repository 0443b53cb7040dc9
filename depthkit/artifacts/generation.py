"""How tasks were made: computed from a generation log, where all others are from a corpus.

A log is a file, or the name of one that comes with the package: ``demo``, written by a script that
stood in for a model, and ``ours``, that of the tasks that ship.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate

import pandas as pd

from depthkit.artifacts.artifact import Table
from depthkit.artifacts.checks import CHANGES
from depthkit.artifacts.our_data import sizes, sizes_view
from depthkit.artifacts.tables import MISSING, formatted, plain_table
from depthkit.errors import DepthkitError
from depthkit.generation.bundled import find_log
from depthkit.generation.log import TaskLog
from depthkit.generation.log_summary import LogSummary, summary
from depthkit.model import Segment, Task


def _of_a_log[**P](
    table_id: str, *, section: str
) -> Callable[
    [Callable[Concatenate[LogSummary, P], Table]], Callable[Concatenate[str | Path, P], Table]
]:
    """Let a function be called with a log, and name what it returns."""

    def named(
        compute: Callable[Concatenate[LogSummary, P], Table],
    ) -> Callable[Concatenate[str | Path, P], Table]:
        @wraps(compute)
        def made(log: str | Path, /, *args: P.args, **kwargs: P.kwargs) -> Table:
            found = summary(find_log(log))
            table = compute(found, *args, **kwargs)
            kinds = " and ".join(sorted({task.provenance for task in found.tasks})) or "empty"
            told = f"{kinds} · {len(found.tasks)} tasks begun · generation log {Path(log).stem}"
            return replace(table, id=table_id, section=section, provenance=told)

        return made

    return named


@_of_a_log("generation/tasks", section="3.3, generation")
def generation_table(found: LogSummary) -> Table:
    """What became of each task that was begun, and what it took.

    ``frame`` has one row a task: ``task``, ``seed``, ``author``, ``outcome``, ``reason`` of a
    rejection, ``segments`` finished, ``turns``, ``minutes``, ``tokens`` (in and out), ``cost_usd``,
    ``format_errors``, ``replays`` and ``replays_failed``. ``segments`` has the same numbers one row
    a segment, ``totals`` one row over all: ``accepted``, ``rejected``, ``unfinished``,
    ``accepted_share`` of those that ended, ``cost_usd``, ``tasks_per_usd``. ``medians`` has one row
    a task and one a segment. A cost is null where that of any turn is not known.
    """
    frame = pd.DataFrame([_row(task) for task in found.tasks], columns=[*_FIRST, *_SPENT])
    row = found.row()
    medians = pd.DataFrame([{"of": of, **row[f"a_{of}"]} for of in ("task", "segment")])
    totals = pd.DataFrame([{name: row[name] for name in _TOTALS}])
    reasons = [f"{t.task}: {t.reason}." for t in found.tasks if t.outcome == "rejected"]
    return Table(
        title=_outcome(found),
        frame=frame,
        parts={"segments": _segments(found), "totals": totals, "medians": medians},
        provenance="",
        draw=lambda: _tasks_view(frame),
        notes=tuple(f"Rejected: {reason}" for reason in reasons),
    )


@_of_a_log("generation/segments", section="3.3, generation")
def generated_segments_table(found: LogSummary) -> Table:
    """What each segment took, of all tasks that were begun.

    ``frame`` has one row a segment, with the numbers of :func:`generation_table`. What was done
    before the first segment or after the last, acceptance for one, is in no segment.
    """
    frame = _segments(found)
    first = pd.DataFrame({"Task": frame["task"], "Segment": frame["segment"].map(str)})
    shown = pd.concat([first, _spent_view(frame)], axis=1)
    return Table(
        title="What each segment took.",
        frame=frame,
        provenance="",
        draw=lambda: plain_table(shown, "generation-segments", rows="Segment", groups="Task"),
    )


def _segments(found: LogSummary) -> pd.DataFrame:
    rows = [
        {"task": task.task, "segment": number, **_spent(spent.row())}
        for task in found.tasks
        for number, spent in sorted(task.segments.items())
    ]
    return pd.DataFrame(rows, columns=["task", "segment", *_SPENT])


_FIRST = ("task", "seed", "author", "outcome", "reason", "segments")
_SPENT = (
    "turns",
    "minutes",
    "tokens",
    "cost_usd",
    "format_errors",
    "replays",
    "replays_failed",
)
_TOTALS = (
    "tasks",
    "accepted",
    "rejected",
    "unfinished",
    "accepted_share",
    "cost_usd",
    "tasks_per_usd",
    "turns",
    "minutes",
)


def _row(task: TaskLog) -> dict[str, Any]:
    first = {name: getattr(task, name) for name in ("task", "seed", "author", "outcome", "reason")}
    return {**first, "segments": task.finished, **_spent(task.whole.row())}


def _spent(row: dict[str, Any]) -> dict[str, Any]:
    nan = float("nan")
    cost = nan if row["cost_usd"] is None else row["cost_usd"]
    # Turns are a model's; those of a person or another program are not known, nor its tokens.
    turns = row["turns"] or nan
    tokens = row["input_tokens"] + row["output_tokens"] if row["turns"] else nan
    known = {"turns": turns, "tokens": tokens, "cost_usd": cost}
    return {name: row.get(name) for name in _SPENT} | known


def _outcome(found: LogSummary) -> str:
    row = found.row()
    share, cost, rate = row["accepted_share"], row["cost_usd"], row["tasks_per_usd"]
    said = [
        f"Tasks begun: {row['tasks']}; accepted {row['accepted']}, rejected {row['rejected']}, "
        f"unfinished {row['unfinished']}"
        + ("." if share is None else f" ({share:.0%} of those that ended are accepted).")
    ]
    if cost is not None:
        said.append(f"All cost ${cost:,.4f}" + (f", {rate:,.1f} tasks a dollar." if rate else "."))
    for of in ("task", "segment"):
        if (own := row[f"a_{of}"])["turns"] is not None:
            paid = "" if own["cost_usd"] is None else f", ${own['cost_usd']:,.4f}"
            said.append(
                f"A {of}, median: {own['turns']:g} turns, {own['tokens']:,.0f} tokens, "
                f"{own['minutes']:,.1f} minutes{paid}."
            )
    said.append("Minutes: from one event to the next, without the time in which nobody worked.")
    return " ".join(said)


def _tasks_view(frame: pd.DataFrame) -> Any:
    shown = pd.DataFrame(
        {
            "Task": frame["task"],
            "Seed environment": frame["seed"],
            "Author": frame["author"],
            "Outcome": frame["outcome"],
            "Segments": frame["segments"].map(str),
        }
    )
    shown = pd.concat([shown, _spent_view(frame)], axis=1)
    left = ("Seed environment", "Author", "Outcome")
    return plain_table(shown, "generation-tasks", rows="Task", left=left)


def _spent_view(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "Turns": formatted(frame["turns"], "{:,.0f}"),
            "Minutes": formatted(frame["minutes"], "{:,.1f}"),
            "Tokens": formatted(frame["tokens"], "{:,.0f}"),
            "Cost": formatted(frame["cost_usd"], "${:,.4f}"),
            "Format errors": formatted(frame["format_errors"], "{:.0f}"),
            "Replays": formatted(frame["replays"], "{:.0f}"),
            "failed": formatted(frame["replays_failed"], "{:.0f}"),
        }
    )


@_of_a_log("generation/sizes", section="G, as Table 9")
def generated_sizes_table(found: LogSummary) -> Table:
    """How large the accepted tasks are, in the rows of Table 9."""
    records = [_record(task) for task in found.tasks if task.outcome == "accepted"]
    frame = sizes(record for record in records if record is not None)
    return Table(
        title=(
            "Statistics of the accepted tasks: median, with the 10th and 90th percentiles in "
            "brackets."
        ),
        frame=frame,
        provenance="",
        draw=lambda: sizes_view(frame, "generation-sizes"),
    )


def _record(task: TaskLog) -> Task | None:
    known = set(Segment.model_fields)
    segments = [
        Segment.model_validate({key: each[key] for key in known & set(each)})
        for each in task.statistics
    ]
    if not segments:
        return None
    return Task(
        dataset="generated",
        task_id=task.task,
        segments=tuple(segments),
        seed_env=task.seed,
        provenance=task.provenance,
    )


@_of_a_log("generation/replays", section="F, as Table 8")
def generated_replays_table(found: LogSummary) -> Table:
    """Replays of the accepted tasks with one part changed, in the rows of Table 8.

    ``holds`` of so many ``results`` were noticed by the checks; ``left_out`` gave no result.
    """
    rows = []
    for change, name in CHANGES.items():
        own = [
            row
            for task in found.tasks
            if task.outcome == "accepted"
            for row in task.table8
            if row["change"] == change
        ]
        holds, results, left_out = (
            sum(row[key] for row in own) for key in ("holds", "results", "left_out")
        )
        share = holds / results if results else float("nan")
        rows.append((change, name, holds, results, share, left_out))
    frame = pd.DataFrame(rows, columns=["change", "name", "holds", "results", "share", "left_out"])
    shown = pd.DataFrame(
        {
            "Change": frame["name"],
            "Holds": [
                f"{holds:,} / {results:,}"
                for holds, results in zip(frame["holds"], frame["results"], strict=True)
            ],
            "Share": formatted(frame["share"], "{:.1%}"),
            "Left out": formatted(frame["left_out"], "{:.0f}"),
        }
    )
    return Table(
        title="Replays of the accepted tasks with one part changed. Holds: the checks notice.",
        frame=frame.drop(columns="name"),
        provenance="",
        draw=lambda: plain_table(shown, "generation-replays", rows="Change"),
    )


@_of_a_log("generation/work", section="G, as Figure 13")
def seed_work_table(found: LogSummary) -> Table:
    """W of each accepted task beside that of the original task of its seed environment.

    ``original`` is null where the environment was not released with a task, or none is known.
    """
    rows = []
    for task in found.tasks:
        record = _record(task) if task.outcome == "accepted" else None
        if record is not None:
            lines = [segment.work.lines for segment in record.segments if segment.work]
            original = float("nan") if task.original_lines is None else task.original_lines
            rows.append(
                {"task": task.task, "seed": task.seed, "W": sum(lines), "original": original}
            )
    frame = pd.DataFrame(rows, columns=["task", "seed", "W", "original"])
    shown = pd.DataFrame(
        {
            "Task": frame["task"],
            "Seed environment": frame["seed"],
            "W": formatted(frame["W"], "{:,.0f}"),
            "W of the original task": formatted(frame["original"], "{:,.0f}"),
        }
    )
    return Table(
        title="Lines of the reference solution, beside the original task of the environment.",
        frame=frame,
        provenance="",
        draw=lambda: plain_table(shown, "generation-work", rows="Task", left=("Seed environment",)),
    )


@_of_a_log("generation/example", section="G, as Table 10")
def generated_example_table(found: LogSummary, *, task: str | None = None) -> Table:
    """One accepted task, segment by segment: what the instruction asks for, and the key step.

    Args:
        found: A generation log.
        task: Its name; ``None`` for the accepted one with the most segments.

    Raises:
        DepthkitError: No accepted task is called so.
    """
    accepted = [each for each in found.tasks if each.outcome == "accepted"]
    chosen = [each for each in accepted if task in (None, each.task)]
    if task is not None and not chosen:
        names = ", ".join(each.task for each in accepted) or "none"
        raise DepthkitError(f"task is {task!r}; accepted tasks of the log: {names}.")
    one = max(chosen, key=lambda each: len(each.statistics)) if chosen else None
    rows = one.statistics if one else []
    frame = pd.DataFrame(
        [
            {
                "segment": row["index"],
                "asks": row.get("asks") or "",
                "key_step": row.get("key_step") or "",
                "W": row["work"]["lines"] if row.get("work") else float("nan"),
            }
            for row in rows
        ],
        columns=["segment", "asks", "key_step", "W"],
    )
    shown = pd.DataFrame(
        {
            "Segment": frame["segment"].map(str),
            "The instruction asks to": [text or MISSING for text in frame["asks"]],
            "Key step": [text or MISSING for text in frame["key_step"]],
            "W": formatted(frame["W"], "{:.0f}"),
        }
    )
    told = f"{one.task}, from {one.seed}. {one.goal or ''}" if one else "none was accepted."
    return Table(
        title=f"Segments of a generated task: {told}".strip(),
        frame=frame,
        provenance="",
        draw=lambda: _example_view(shown),
    )


def _example_view(shown: pd.DataFrame) -> Any:
    left = ("The instruction asks to", "Key step")
    table = plain_table(shown, "generation-example", rows="Segment", left=left)
    # Sentences, which tables of numbers have no room for on one line.
    return table.opt_css("#generation-example td { white-space: normal; vertical-align: top; }")
