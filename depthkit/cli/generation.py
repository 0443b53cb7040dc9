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
    max_turns: Annotated[
        int,
        typer.Option(min=1, help="Replies of a model for one segment before it is rejected."),
    ] = 120,
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
    from depthkit.generation.log import Event, told
    from depthkit.generation.run import generate_task
    from depthkit.trials.limits import Limits

    if (driver is Driver.model) != bool(model):
        raise DepthkitError("Name the model that writes with --model, or give --driver stdio.")

    def tell(event: Event) -> None:
        if driver is Driver.model:  # Who writes over stdin knows it from the answers.
            typer.echo(told(event), err=True)

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
        most_turns=max_turns,
        on_event=tell,
    )
    if as_json and driver is Driver.model:
        print_json(done.row())
    more = f": {done.reason or done.task}" if done.reason or done.task else ""
    typer.echo(f"{done.outcome}{more} ({done.finished} of {segments} segments)", err=True)
    if done.outcome == "stopped":
        typer.echo("The same command goes on from here.", err=True)
        raise typer.Exit(3)
    if done.outcome == "rejected":
        raise typer.Exit(1)


@generate.command("log")
def show_log(
    log: Annotated[
        Path, typer.Argument(help="A generation log, or demo or ours.", show_default=False)
    ],
    as_json: JsonFlag = False,
) -> None:
    """Sum up a generation log: what was accepted, what it took, what it cost.

    Minutes are the time from one event to the next, without that in which nobody worked.
    """
    from depthkit.generation.bundled import find_log
    from depthkit.generation.log_summary import shown_json, summary

    if as_json:
        print_json(shown_json(find_log(log)))
    else:
        typer.echo("\n".join(summary(find_log(log)).lines()))


@generate.command()
def seeds(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Harbor task packages, or directories of them.", show_default=False),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", help="File that verdicts are appended to.", show_default="seeds.jsonl"
        ),
    ] = Path("seeds.jsonl"),
    model: Annotated[
        str,
        typer.Option(help="The judge; without one the rules alone decide.", show_default=False),
    ] = "",
    models_file: ModelsFile = None,
    least: Annotated[
        int, typer.Option(min=1, max=5, help="Least of the four ratings that is kept.")
    ] = 3,
    write: Annotated[
        Path | None,
        typer.Option(
            help="Also make a seed environment in this directory of each that is kept.",
            show_default=False,
        ),
    ] = None,
    max_cost: MaxCost = None,
    reserve: Reserve = None,
    stop_file: StopFile = None,
    max_hours: MaxHours = None,
    as_json: JsonFlag = False,
) -> None:
    """Find seed environments among released task packages.

    First by rules, then by a judge that rates four things and says why; of each kind of system at
    most one is kept. Every verdict is kept in FILE, so that the same command goes on where it was
    stopped. Exit status 3 if a limit ended it early, 1 if some could not be judged.

    Example: depthkit generate seeds tasks/tw -o seeds.jsonl --model glm-5.3-flash --max-cost 2
    """
    from depthkit.generation.screening import screen, write_seeds
    from depthkit.trials.limits import Limits

    found = screen(
        folders,
        out,
        model=model or None,
        models_file=models_file,
        limits=Limits(max_cost, reserve, stop_file, max_hours),
        least=least,
    )
    written = write_seeds(found.choices, write) if write is not None else []
    if as_json:
        print_json(choice.row() for choice in found.choices)
    else:
        words = {True: "kept", False: "left", None: "open"}
        for choice in found.choices:
            kind = f" ({choice.verdict.kind})" if choice.verdict.kind else ""
            typer.echo(f"{words[choice.kept]}  {choice.verdict.path}{kind}: {choice.reason}")
        kept = sum(bool(choice.kept) for choice in found.choices)
        typer.echo(f"{kept} of {len(found.choices)} kept; all verdicts are in {out}")
    for path in written:
        typer.echo(f"wrote {path}", err=True)
    if found.stopped is not None:
        typer.echo(f"{found.stopped}; the same command goes on from here.", err=True)
        raise typer.Exit(3)
    if model and any(choice.kept is None for choice in found.choices):
        raise typer.Exit(1)


@generate.command("replay-tasks")
def replay_shipped_tasks(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="A directory of tasks.", show_default="the tasks that come with the package"
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, envvar="DEPTH_WORKERS", help="Containers at a time.")
    ] = 2,
    as_json: JsonFlag = False,
) -> None:
    """Check and replay all tasks that ship, and write replays.json beside them.

    With the digests of tasks, checks and library. A task that is as it was is not replayed again.
    Exit status 1 if anything is wrong with a task, or a share of Table 8 is below the paper's.
    """
    from rich.console import Console

    from depthkit.generation.shipped import replay_shipped, shipped_folder, short_of

    result = replay_shipped(
        folder or shipped_folder(), workers=workers, console=Console(stderr=True)
    )
    wrong = short_of(result)
    if as_json:
        print_json(result)
    else:
        for row in result["table8"]:
            share = "" if row["share"] is None else f" ({row['share']:.1%})"
            change = row["change"].replace("_", " ")
            typer.echo(f"{change}: {row['holds']} / {row['results']}{share}")
    for fault in wrong:
        typer.secho(fault, fg=typer.colors.RED, err=True)
    if wrong:
        raise typer.Exit(1)


@generate.command("shipped")
def shipped(as_json: JsonFlag = False) -> None:
    """List the tasks that come with the package, each with its evidence.

    Size, what replays with one part changed gave (Table 8), and blind attempts by hand, whose runs
    are the bundled corpus `attempts`. D is unmeasured until a model of a model set has run.
    """
    from rich.console import Console

    from depthkit.corpus import Corpus
    from depthkit.errors import DepthkitError
    from depthkit.generation.overview import ATTEMPTS, overview, overview_table
    from depthkit.generation.shipped import shipped_folder

    try:
        attempts = Corpus.open(shipped_folder().parent / ATTEMPTS)
    except DepthkitError:  # none is bundled
        attempts = None
    rows = overview(shipped_folder(), attempts)
    if as_json:
        print_json(rows)
    else:
        Console().print(overview_table(rows))
