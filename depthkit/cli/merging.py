"""Commands that make tasks from tasks: merge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from depthkit.cli.base import JsonFlag, TaskDirs, app, print_json


@app.command()
def merge(
    tasks: TaskDirs,
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", help="Folder for merged tasks: their data set.", show_default=False
        ),
    ],
    as_json: JsonFlag = False,
) -> None:
    """Merge the segments of tasks into one instruction each (Appendix H).

    Requirements, reference scripts and checks of all segments, in order. Checks of earlier segments
    that a later one is meant to change are found by running the merged solution, dropped and
    recorded (merged.json). A merged task is kept if its reference solution passes what remains and
    doing nothing does not. Measure it with depthkit ladder --merged. Exit status 1 if a task was
    not accepted.

    Example: depthkit merge tasks/ours/* -o tasks/merged
    """
    from depthkit.experiments.merge import merge_task

    merged = [merge_task(path, out) for path in tasks]
    if as_json:
        print_json(each.row() for each in merged)
    else:
        for each in merged:
            typer.echo(
                f"{'ok  ' if each.path else 'FAIL'}  {each.parent}: {each.segments} segments, "
                f"{each.checks} checks, {len(each.dropped)} dropped"
            )
            for dropped in each.dropped:
                typer.echo(f"  dropped {dropped.check} of {dropped.segment}: {dropped.reason}")
            for fault in each.faults:
                typer.echo(f"  - {fault}")
    if not all(each.path for each in merged):
        raise typer.Exit(1)
