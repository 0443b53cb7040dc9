"""Commands that run trials or clean up after them: free, ladder, check, clean."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from depthkit.cli.base import CorpusName, JsonFlag, ModelsFile, TaskDirs, Workers, app, print_json
from depthkit.errors import DepthkitError

CorpusDir = Annotated[
    Path,
    typer.Option(
        "--corpus",
        envvar="DEPTH_OUT",
        help="Directory of the corpus that runs are appended to; made if there is none.",
        show_default="corpus",
    ),
]
Models = Annotated[
    str,
    typer.Option(
        help="Model set, comma-separated, first model first; a corpus remembers its own.",
        show_default=False,
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        min=0,
        metavar="USD",
        show_default=False,
        help="Spend at most this in this invocation, all runs counted. The worst case of each "
        "model call is reserved before it is made; needs the models' prices.",
    ),
]
Reserve = Annotated[
    float | None,
    typer.Option(
        min=0,
        metavar="USD",
        show_default=False,
        help="Start no more runs when less is left on the account, where the endpoint tells it.",
    ),
]
StopFile = Annotated[
    Path | None,
    typer.Option(help="Start no more runs once this file exists.", show_default=False),
]
MaxHours = Annotated[
    float | None,
    typer.Option(min=0, help="Start no more runs after so many hours.", show_default=False),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Only say which runs would start, what is needed at most and what to expect.",
    ),
]


@app.command()
def free(
    tasks: TaskDirs,
    corpus: CorpusDir = Path("corpus"),
    models: Models = "",
    model: Annotated[
        str,
        typer.Option(
            help="One model. Another than the first of the corpus' set is evaluated.",
            show_default=False,
        ),
    ] = "",
    evaluate: Annotated[
        bool,
        typer.Option(
            "--evaluate",
            help="Evaluate all models that are named, the corpus' first one too: its runs that "
            "measure depth are no evaluation.",
        ),
    ] = False,
    models_file: ModelsFile = None,
    workers: Workers = 3,
    max_cost: MaxCost = None,
    reserve: Reserve = None,
    stop_file: StopFile = None,
    max_hours: MaxHours = None,
    dry_run: DryRun = False,
    as_json: JsonFlag = False,
) -> None:
    """Run the first model twice on each task without a stated cap.

    Says which tasks are solved and gives N, the fewest turns of a passing run. What is measured
    already is not run again. With --evaluate, or for another --model than the first, the runs
    count for `depthkit evaluate` and not for depth. Exit status: 1 if a run gave no result, 3 if a
    limit (--max-cost, --reserve, --stop-file, --max-hours) ended it early.

    Example: depthkit free tasks/calibration/* --models scripted-merge
    """
    from depthkit.experiments.measure import evaluates

    if model and models:
        raise DepthkitError("Give --model or --models, not both.")
    if evaluate and not (model or models):
        raise DepthkitError("--evaluate needs the models to evaluate; name them with --models.")
    _measure(
        tasks,
        corpus,
        models or model,
        models_file,
        workers,
        (max_cost, reserve, stop_file, max_hours),
        as_json,
        dry_run,
        "evaluation" if evaluate or (model and evaluates(corpus, model)) else "free",
    )


@app.command()
def ladder(
    tasks: TaskDirs,
    corpus: CorpusDir = Path("corpus"),
    models: Models = "",
    models_file: ModelsFile = None,
    workers: Workers = 3,
    with_free: Annotated[
        bool, typer.Option("--with-free", help="Also start missing free runs.")
    ] = False,
    merged: Annotated[
        bool,
        typer.Option(
            "--merged",
            help="Tasks are merged ones (depthkit merge): the corpus' first model alone, from its "
            "own D on the task before merging downward, two runs at each cap.",
        ),
    ] = False,
    max_cost: MaxCost = None,
    reserve: Reserve = None,
    stop_file: StopFile = None,
    max_hours: MaxHours = None,
    dry_run: DryRun = False,
    as_json: JsonFlag = False,
) -> None:
    """Measure depth: runs under stated turn caps, from the smallest up.

    Caps at or above N count as passed; a second run is skipped after a pass; later models only
    try caps below the smallest estimate so far. Stop it with Ctrl-C (once: finish what runs) and
    give the same command again to go on. Exit status as of free.

    Example: depthkit ladder tasks/calibration/* --with-free --models scripted-step,scripted-merge
    """
    if merged and (with_free or models):
        raise DepthkitError("--merged takes the corpus' first model; no --with-free, no --models.")
    scope: Literal["both", "ladder", "merged"] = "both" if with_free else "ladder"
    scope = "merged" if merged else scope
    _measure(
        tasks,
        corpus,
        models,
        models_file,
        workers,
        (max_cost, reserve, stop_file, max_hours),
        as_json,
        dry_run,
        scope,
    )


def _measure(
    tasks: list[Path],
    corpus: Path,
    models: str,
    models_file: Path | None,
    workers: int,
    limits: tuple[float | None, float | None, Path | None, float | None],
    as_json: bool,
    dry_run: bool,
    scope: Literal["free", "ladder", "both", "evaluation", "merged"],
) -> None:
    from rich.console import Console

    from depthkit.corpus.reference import refuse_results
    from depthkit.experiments.measure import measure, plan
    from depthkit.protocol.verdict import Passes
    from depthkit.trials.limits import Limits

    refuse_results(corpus)
    names = [name.strip() for name in models.split(",") if name.strip()]
    depths_before = _depths_before(tasks, corpus) if scope == "merged" else None
    if dry_run:
        planned = plan(
            tasks,
            corpus,
            models=names,
            scope=scope,
            workers=workers,
            depths_before=depths_before,
            models_file=models_file,
            limits=Limits(*limits),
        )
        if as_json:
            print_json(planned.row())
        else:
            typer.echo("\n".join(planned.lines()))
        return
    outcome = measure(
        tasks,
        corpus,
        models=names,
        scope=scope,
        workers=workers,
        depths_before=depths_before,
        models_file=models_file,
        limits=Limits(*limits),
        console=Console(stderr=True),
    )
    if as_json:
        print_json(run.model_dump(mode="json") for run in outcome.runs)
    else:
        passes = Passes.of(outcome.runs)
        typer.echo(f"{len(outcome.runs)} runs, {passes.counted} passed{passes.apart}, in {corpus}")
    for reason in outcome.given_up:
        typer.secho(f"No result: {reason}", fg=typer.colors.YELLOW, err=True)
    if outcome.stopped:
        typer.secho("Stopped; the same command goes on from here.", err=True)
        raise typer.Exit(130)
    if outcome.limit is not None:
        typer.secho(f"{outcome.limit}; the same command goes on from here.", err=True)
        raise typer.Exit(3)
    if outcome.given_up:
        raise typer.Exit(1)


def _depths_before(tasks: list[Path], corpus: Path) -> dict[tuple[str, str], int]:
    """D of each merged task before merging; where it starts is told before anything runs."""
    from depthkit.corpus import Corpus
    from depthkit.experiments.merge import depths_before
    from depthkit.tasks import load_tasks

    opened = Corpus.open(corpus)
    found = depths_before(opened, load_tasks(tasks, []))  # `measure` says what is wrong
    for (dataset, task_id), depth in found.items():
        start = max((cap for cap in opened.caps if cap <= depth), default=None)
        said = f"from cap {start} downward" if start else "no cap is within its D"
        above = f" (D before is above {start})" if start and depth > opened.caps[-1] else ""
        typer.echo(f"{dataset}/{task_id}: {said}{above}", err=True)
    return found


@app.command()
def check(
    tasks: TaskDirs,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Doing nothing must fail every segment; else that is a note only."
        ),
    ] = False,
    online: Annotated[
        bool, typer.Option("--online", help="Give tasks the network that they declare.")
    ] = False,
    static: Annotated[
        bool,
        typer.Option(
            "--static",
            help="Read the task alone: review check scripts, names and marks by the rules of "
            "Appendix F, and count what is worth knowing. Runs nothing, needs no engine.",
        ),
    ] = False,
    workers: Workers = 3,
    as_json: JsonFlag = False,
) -> None:
    """Check that tasks are fit to be measured, without a model.

    First what can be read in the directory. Then, in fresh containers without network: the
    reference solution must pass every segment, and doing nothing must fail the task. Exit status 1
    if anything is wrong with any task.

    Example: depthkit check tasks/calibration/*
    """
    if static:
        _review(tasks, as_json)
        return
    from rich.console import Console

    from depthkit.experiments.check import check_tasks

    checked = check_tasks(
        tasks, workers=workers, strict=strict, online=online, console=Console(stderr=True)
    )
    if as_json:
        print_json(row.row() for row in checked)
    else:
        for row in checked:
            typer.echo(f"{'ok  ' if row.ok else 'FAIL'}  {row.dataset}/{row.task_id}")
            for fault in row.faults:
                typer.echo(f"  - {fault}")
            for note in row.notes:
                typer.echo(f"  note: {note}")
    if not all(row.ok for row in checked):
        raise typer.Exit(1)


def _review(tasks: list[Path], as_json: bool) -> None:
    from depthkit.tasks.review import review

    reviews = [review(path) for path in {path.resolve(): path for path in tasks}.values()]
    if as_json:
        print_json(each.row() for each in reviews)
    else:
        for each in reviews:
            typer.echo(f"{'ok  ' if each.ok else 'FAIL'}  {each.dataset}/{each.task_id}")
            for text in filter(None, [each.error, *map(str, each.findings)]):
                typer.echo(f"  - {text}")
            for note in each.notes:
                typer.echo(f"  note: {note}")
            if each.segments:
                typer.echo(f"  {each.counts_line()}")
    if not all(each.ok for each in reviews):
        raise typer.Exit(1)


@app.command()
def clean(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is there.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Remove containers, networks and images that killed depthkit processes left behind.

    What belongs to a process that still runs is left alone. free and ladder do this by themselves
    when they start.
    """
    from depthkit.trials import engine

    found = engine.clean(dry_run=dry_run)
    if as_json:
        print_json(vars(found))
        return
    verb = "Would remove" if dry_run else "Removed"
    for kind in ("containers", "networks", "images"):
        for name in getattr(found, kind):
            typer.echo(f"{verb} {kind.removesuffix('s')} {name}")
    for name in found.in_use:
        typer.echo(f"Left {name}: in use")
    if not found:
        typer.echo("Nothing is left behind.")


@app.command()
def status(
    corpus: CorpusName,
    every: Annotated[bool, typer.Option("--tasks", help="A row for each task.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Look again every two seconds.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Say what of a corpus is measured, what is missing, and what the rest will take and cost.

    Live while a ladder runs elsewhere. What is expected follows from the tasks that are final.
    """
    import contextlib
    import time

    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    from depthkit.corpus import Corpus
    from depthkit.experiments.status import status as look
    from depthkit.experiments.status import status_lines, status_table

    if watch and as_json:
        raise DepthkitError("Give --watch or --json, not both.")
    opened = Corpus.open(corpus)
    if as_json:
        print_json(look(opened).row())
        return

    def page() -> Group:
        found = look(opened)
        return Group(status_table(found, every=every), Text("\n".join(status_lines(found))))

    console = Console()
    if not watch:
        console.print(page())
        return
    with (
        contextlib.suppress(KeyboardInterrupt),
        Live(page(), console=console, auto_refresh=False) as live,
    ):
        while True:
            time.sleep(2)
            live.update(page(), refresh=True)
