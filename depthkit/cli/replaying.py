"""Commands that replay reference solutions: replay."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from depthkit.cli.base import JsonFlag, TaskDirs, Workers, app, print_json, tell_left_out

if TYPE_CHECKING:
    from depthkit.experiments.replay import Replayed
    from depthkit.model import Replay


@app.command()
def replay(
    tasks: TaskDirs,
    corpus: Annotated[
        Path,
        typer.Option(
            "--corpus",
            envvar="DEPTH_OUT",
            help="Directory of the corpus that replays are appended to; made if there is none.",
            show_default="corpus",
        ),
    ] = Path("corpus"),
    workers: Workers = 3,
    retry: Annotated[
        bool, typer.Option("--retry", help="Make replays again that gave no result.")
    ] = False,
    snapshots: Annotated[
        bool,
        typer.Option(
            help="Take states from snapshots where nothing runs in them; the table is the same.",
        ),
    ] = True,
    as_json: JsonFlag = False,
) -> None:
    """Replay reference solutions with one part changed, and see whether the checks notice.

    In fresh offline containers, the changes of Table 8: checks before the work, the previous
    segment skipped, each event removed, the key step removed, and then the next segment run. Key
    steps and events are marked in the solution (docs/checks.md). What is known of a task as it is
    now is not replayed again. Exit status 1 if a replay gave no result.

    Example: depthkit replay tasks/ours/* --corpus my-corpus
    """
    from rich.console import Console

    from depthkit.corpus.reference import refuse_results
    from depthkit.experiments.replay import replay_tasks

    refuse_results(corpus)
    faults: list[str] = []
    found = replay_tasks(
        tasks,
        corpus,
        workers=workers,
        retry=retry,
        snapshots=snapshots,
        faults=faults,
        console=Console(stderr=True),
    )
    if as_json:
        from depthkit.experiments.replay_plan import table_rows

        rows = table_rows(replay for each in found for replay in each.replays)
        print_json({"tasks": [each.row() for each in found], "table": rows})
    else:
        _tell(found)
    tell_left_out(faults)
    if faults or any(replay.holds is None for each in found for replay in each.replays):
        raise typer.Exit(1)


def _tell(found: list[Replayed]) -> None:
    for each in found:
        typer.echo(f"{each.dataset}/{each.task_id}")
        _table(each.replays)
        for replay in each.replays:
            if not replay.holds:
                why = "does not hold" if replay.holds is False else f"no result: {replay.reason}"
                event = f", event {replay.event}" if replay.event else ""
                change = replay.change.replace("_", " ")
                typer.echo(f"  - {change}, segment {replay.segment}{event}: {why}")
    if len(found) > 1:
        typer.echo(f"All {len(found)} tasks")
        _table(replay for each in found for replay in each.replays)


def _table(replays: Iterable[Replay]) -> None:
    from depthkit.artifacts.checks import CHANGES
    from depthkit.experiments.replay_plan import table_rows

    width = max(map(len, CHANGES.values()))
    for row in table_rows(replays):
        share = "" if row["share"] is None else f"{row['share']:7.1%}"
        left = f"  ({row['left_out']} left out)" if row["left_out"] else ""
        counts = f"{row['holds']:,} / {row['results']:,}"
        typer.echo(f"  {CHANGES[row['change']]:{width}}  {counts:>9} {share}{left}")
