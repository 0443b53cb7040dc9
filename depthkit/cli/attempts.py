"""The command that lets a person take the model's place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from depthkit.cli.base import JsonFlag, app, print_json
from depthkit.cli.trials import CorpusDir


@app.command()
def attempt(
    task: Annotated[Path, typer.Argument(help="A Harbor task directory.", show_default=False)],
    exchange: Annotated[
        Path,
        typer.Option(
            help="New folder for the turns: what is seen appears in turn-001.txt, the reply is "
            "taken from turn-001.json, and so on.",
            show_default=False,
        ),
    ],
    by: Annotated[
        str, typer.Option(help="Name of the one who answers; goes into the run's model.")
    ] = "me",
    corpus: CorpusDir = Path("corpus"),
    as_json: JsonFlag = False,
) -> None:
    """Try a task by hand, blind: you see what a model would see and answer in its place.

    The first file explains the form of a reply, as it does for a model. Turns, checks and the stop
    at the first failed segment are those of a model's run; only the time limit is a day a segment.
    The run is appended to the corpus as an evaluation of the model by-hand-NAME and written to
    run.json in the folder. Exit status: 1 if it gave no result.

    Example: depthkit attempt tasks/mine --exchange turns --by alice
    """
    from depthkit.experiments.attempt import attempt as play
    from depthkit.protocol.verdict import Passes

    def say(text: str) -> None:
        typer.echo(text, err=True)

    run = play(task, corpus, exchange, by=by, say=say)
    if as_json:
        print_json(run.model_dump(mode="json"))
    else:
        typer.echo(
            f"{run.dataset}/{run.task_id}: {run.verdict}{Passes.of([run]).apart} ({run.stop}), "
            f"{run.turns} turns, {run.segments_passed} segments passed"
        )
    if run.verdict == "none":
        raise typer.Exit(1)
