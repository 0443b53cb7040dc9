"""Commands that make tasks: generate task, seeds, log, replay-tasks."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from depthkit.cli.base import JsonFlag, ModelsFile, app, print_json
from depthkit.cli.trials import MaxCost, MaxHours, Reserve, StopFile
from depthkit.errors import DepthkitError

generate = typer.Typer(no_args_is_help=True, help="Make deep tasks from seed environments.")
app.add_typer(generate, name="generate")


class Driver(StrEnum):
    """Who writes."""

    model = "model"
    stdio = "stdio"


@generate.command()
def task(
    seed: Annotated[Path, typer.Argument(help="A seed environment.", show_default=False)],
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", help="Where the accepted task is to stand.", show_default=False
        ),
    ],
    segments: Annotated[
        int, typer.Option("-k", "--segments", min=1, max=20, help="Segments of the task.")
    ] = 6,
    driver: Annotated[
        Driver,
        typer.Option(
            help="Who writes: a model, or whoever sends messages on standard input "
            "(docs/generation.md)."
        ),
    ] = Driver.model,
    model: Annotated[
        str, typer.Option(help="The model that writes, by its name.", show_default=False)
    ] = "",
    models_file: ModelsFile = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Accept only if every replay of Table 8 is noticed.")
    ] = False,
    mends: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Refused replays of a segment that may be mended before the task is rejected.",
            show_default="8 for a model, no limit with stdio",
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(help="The generation log.", show_default="generation.jsonl beside DIR"),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, envvar="DEPTH_WORKERS", help="Containers at a time in the end.")
    ] = 2,
    max_cost: MaxCost = None,
    reserve: Reserve = None,
    stop_file: StopFile = None,
    max_hours: MaxHours = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a task of k segments by doing it, or go on at the last finished segment.

    The author works in a container of the seed environment without network and writes, segment by
    segment, instruction, reference solution and checks; a clean container replays them. At the end
    the task is accepted, and then stands at DIR, or rejected, with the reason in the log. Exit
    status: 1 if it was rejected, 3 if a limit (--max-cost, --reserve, --stop-file, --max-hours)
    or the author's leaving ended it early.

    Example: depthkit generate task env/seeds/NAME -k 6 --model glm-5.3-flash -o tasks/ours/NAME
    """
    from depthkit.generation.run import generate_task
    from depthkit.trials.limits import Limits

    if (driver is Driver.model) != bool(model):
        raise DepthkitError("Name the model that writes with --model, or give --driver stdio.")
    done = generate_task(
        seed,
        out,
        k=segments,
        model=model or None,
        models_file=models_file,
        log_file=log,
        strict=strict,
        mends=mends,
        limits=Limits(max_cost, reserve, stop_file, max_hours),
        workers=workers,
    )
    if as_json and driver is Driver.model:
        print_json(done.row())
    told = f": {done.reason}" if done.reason else ""
    typer.echo(f"{done.outcome}{told} ({done.finished} of {segments} segments)", err=True)
    if done.outcome == "stopped":
        typer.echo("The same command goes on from here.", err=True)
        raise typer.Exit(3)
    if done.outcome == "rejected":
        raise typer.Exit(1)


@generate.command("log")
def show_log(
    log: Annotated[Path, typer.Argument(help="A generation log.", show_default=False)],
    as_json: JsonFlag = False,
) -> None:
    """Sum up a generation log: what was accepted, what it took, what it cost.

    Minutes are the time from one event to the next, without that in which nobody worked.
    """
    from depthkit.generation.log import shown_json, summary

    if as_json:
        print_json(shown_json(log))
    else:
        typer.echo("\n".join(summary(log).lines()))
