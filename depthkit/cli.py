"""``depthkit …``: thin, one function a command; what a command needs is imported when it runs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from depthkit.errors import DepthkitError


class _Group(TyperGroup):
    """Prints a :class:`DepthkitError` as one line and exits with status 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except DepthkitError as error:
            typer.secho(f"{error}", fg=typer.colors.RED, err=True)
            raise typer.Exit(2) from error


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Measure how deep terminal tasks are, and look into what agents did.",
)

_RUNS_TRIALS = {"free", "ladder", "check"}


@app.callback()
def _start(ctx: typer.Context) -> None:
    if ctx.invoked_subcommand in _RUNS_TRIALS and os.environ.get("DEPTH_HARBOR"):
        from importlib.metadata import version

        typer.secho(
            f"DEPTH_HARBOR is set, but not used: depthkit runs Harbor {version('harbor')} as a "
            "library, from its own environment. Unset it to be rid of this note.",
            fg=typer.colors.YELLOW,
            err=True,
        )


TaskDirs = Annotated[
    list[Path], typer.Argument(help="Harbor task directories.", show_default=False)
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


def _print_json(rows: Iterable[Any] | dict[str, Any]) -> None:
    data = rows if isinstance(rows, dict) else list(rows)
    sys.stdout.write(json.dumps(data, indent=2, default=str) + "\n")


# --- tasks: work, calibrate ---


@app.command(
    help="Count the work of reference solutions: lines, tokens and characters.\n\n"
    "Lines are those of solution/solve.sh that are neither blank nor comments, with the content "
    "of here-documents. Tokens are o200k_base tokens. Other files in solution/ are not counted."
)
def work(tasks: TaskDirs, as_json: JsonFlag = False) -> None:
    """Print the three works of each task, a segment and in all."""
    from depthkit.tasks import load_tasks
    from depthkit.tasks.show import work_rows, work_table

    loaded = load_tasks(tasks)
    if as_json:
        _print_json(work_rows(loaded))
    else:
        from rich.console import Console

        Console().print(work_table(loaded))


@app.command(
    # One string a paragraph: Typer keeps line breaks.
    help="\n\n".join(
        (
            "Write calibration tasks, which show whether a model is fit to measure depth.",
            "A model that measures depth must merge commands into fewer turns once it is told the "
            "turn cap; otherwise it measures work. Run a candidate on these three families before "
            "you trust its D:",
            "parallel: independent steps, all listed in one file. A model that merges passes "
            "within two or three turns, whatever the number of steps.",
            "static-chain: each step needs the answer to the step before it, but all stand in "
            "plain files from the start. A script settles this in two or three turns as well.",
            "control: each step is encrypted with the answer to the step before it, so each needs "
            "a turn of its own.",
            "Fit is a model that passes parallel-10 and static-chain-10 under a cap of 3; no model "
            'should pass control-6 there (Depth paper, Appendix B, "Choice of models"). The same '
            "name always gives the same bytes. The tasks build on the image depthkit/base:1.",
        )
    )
)
def calibrate(
    out: Annotated[
        Path,
        typer.Option("-o", "--out", help="Directory to write the tasks into.", show_default=False),
    ],
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tasks by name: a family, a number of steps and a seed, such as control-6-s1.",
            show_default="parallel-10-s1 static-chain-10-s1 control-6-s1",
        ),
    ] = None,
    family: Annotated[
        str | None,
        typer.Option(help="One more task, by its parts: parallel, static-chain or control."),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(help="Steps of the --family task.", show_default="10, control 6"),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the --family task.", show_default="1")
    ] = None,
) -> None:
    """Write calibration tasks."""
    from depthkit.tasks.calibration import DEFAULT_NAMES, parse_name, write_family

    wanted = [parse_name(name) for name in names or ()]
    if family is not None:
        default_steps = 6 if family == "control" else 10
        wanted.append(
            (family, default_steps if steps is None else steps, 1 if seed is None else seed)
        )
    elif steps is not None or seed is not None:
        raise DepthkitError("--steps and --seed need --family, such as --family control.")
    for arguments in wanted or map(parse_name, DEFAULT_NAMES):
        typer.echo(write_family(out, *arguments))


# --- trials: free, ladder, clean ---

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
ModelsFile = Annotated[
    Path | None,
    typer.Option(help="Your models.toml, laid over the bundled one.", show_default=False),
]
Workers = Annotated[int, typer.Option(min=1, envvar="DEPTH_WORKERS", help="Trials at a time.")]
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
    already is not run again. Exit status: 1 if a run gave no result, 3 if a limit (--max-cost,
    --reserve, --stop-file, --max-hours) ended it early.

    Example: depthkit free tasks/calibration/* --models scripted-merge
    """
    _measure(
        tasks,
        corpus,
        models,
        models_file,
        workers,
        (max_cost, reserve, stop_file, max_hours),
        as_json,
        dry_run,
        "free",
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
    scope: Literal["both", "ladder"] = "both" if with_free else "ladder"
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
    scope: Literal["free", "ladder", "both"],
) -> None:
    from rich.console import Console

    from depthkit.corpus.reference import refuse_results
    from depthkit.experiments.measure import measure, plan
    from depthkit.trials.limits import Limits

    refuse_results(corpus)
    names = [name.strip() for name in models.split(",") if name.strip()]
    if dry_run:
        planned = plan(
            tasks,
            corpus,
            models=names,
            scope=scope,
            workers=workers,
            models_file=models_file,
            limits=Limits(*limits),
        )
        if as_json:
            _print_json(planned.row())
        else:
            typer.echo("\n".join(planned.lines()))
        return
    outcome = measure(
        tasks,
        corpus,
        models=names,
        scope=scope,
        workers=workers,
        models_file=models_file,
        limits=Limits(*limits),
        console=Console(stderr=True),
    )
    if as_json:
        _print_json(run.model_dump(mode="json") for run in outcome.runs)
    else:
        passed = sum(run.passed for run in outcome.runs)
        typer.echo(f"{len(outcome.runs)} runs, {passed} passed, in {corpus}")
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


@app.command()
def check(
    tasks: TaskDirs,
    strict: Annotated[
        bool, typer.Option("--strict", help="Doing nothing must fail every segment.")
    ] = False,
    online: Annotated[
        bool, typer.Option("--online", help="Give tasks the network that they declare.")
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
    from rich.console import Console

    from depthkit.experiments.check import check_tasks

    checked = check_tasks(
        tasks, workers=workers, strict=strict, online=online, console=Console(stderr=True)
    )
    if as_json:
        _print_json(row.row() for row in checked)
    else:
        for row in checked:
            typer.echo(f"{'ok  ' if row.ok else 'FAIL'}  {row.dataset}/{row.task_id}")
            for fault in row.faults:
                typer.echo(f"  - {fault}")
    if not all(row.ok for row in checked):
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
        _print_json(vars(found))
        return
    verb = "Would remove" if dry_run else "Removed"
    for kind in ("containers", "networks", "images"):
        for name in getattr(found, kind):
            typer.echo(f"{verb} {kind.removesuffix('s')} {name}")
    for name in found.in_use:
        typer.echo(f"Left {name}: in use")
    if not found:
        typer.echo("Nothing is left behind.")


# --- models, settings ---

models_app = typer.Typer(help="List the models that can be measured; test one with a call.")
app.add_typer(models_app, name="models")


@models_app.callback(invoke_without_command=True)
def list_models(
    ctx: typer.Context, models_file: ModelsFile = None, as_json: JsonFlag = False
) -> None:
    """List the models of the registry: how each is called, what it costs, whether its key is set.

    test NAME makes one call.
    """
    if ctx.invoked_subcommand is not None:
        return
    from depthkit.trials.models import load_models
    from depthkit.trials.show import model_rows, models_table

    rows = model_rows(load_models(models_file).values())
    if as_json:
        _print_json(rows)
    else:
        from rich.console import Console

        Console().print(models_table(rows))


@models_app.command("test")
def test_model(
    name: Annotated[str, typer.Argument(help="A model of the registry.", show_default=False)],
    models_file: ModelsFile = None,
    timeout: Annotated[float, typer.Option(min=1, help="Most seconds to wait.")] = 180,
    as_json: JsonFlag = False,
) -> None:
    """Make one call with terminus-2's prompt: does it answer, how fast, at what cost, readably.

    Exit status 1 if the call fails or terminus-2 cannot read the reply.
    """
    from depthkit.trials.models import select_models
    from depthkit.trials.probe import probe
    from depthkit.trials.show import probe_lines

    (spec,) = select_models([name], models_file)
    result = probe(spec, timeout=timeout)
    if as_json:
        _print_json(result.row())
    elif result.ok:
        typer.echo("\n".join(probe_lines(result)))
    else:
        typer.secho(f"{name}: {result.problem}", fg=typer.colors.RED, err=True)
    raise typer.Exit(0 if result.ok else 1)


@app.command()
def settings(as_json: JsonFlag = False) -> None:
    """Print the harness' settings as in Table 3 of the Depth paper, read off the code itself."""
    from depthkit.trials.settings import rows, settings_table

    if as_json:
        _print_json(rows())
    else:
        from rich.console import Console

        Console().print(settings_table())


# --- corpus: ingest, export, estimates ---

CorpusName = Annotated[
    str, typer.Argument(help="A bundled corpus by name, or a directory.", show_default=False)
]


@app.command()
def ingest(
    sources: Annotated[
        list[Path],
        typer.Argument(help="Harbor job or trial directories, or folders of such.", metavar="SRC…"),
    ],
    corpus: Annotated[Path, typer.Option(help="Corpus to add to; made if there is none.")],
    dataset: Annotated[
        str | None, typer.Option(help="Data set of all of them; by default what each names.")
    ] = None,
    purpose: Annotated[
        str | None,
        typer.Option(
            help="Purpose of these runs: evaluation, free or ladder.", show_default="evaluation"
        ),
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option(
            "--field",
            metavar="OURS=THEIRS",
            help="Results of the reference repository only: what they call a field.",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Read Harbor trials that someone else ran into a corpus.

    Also reads the results of the paper's own repository: name its out/ directory.
    """
    from depthkit.corpus.reference import is_results
    from depthkit.corpus.show import print_report, report_summary, run_ingest

    if any(is_results(source) for source in sources):
        from depthkit.corpus.reference_ingest import ingest_results, parse_fields

        if purpose is not None:
            raise DepthkitError(
                "--purpose is for Harbor trials; these results state it themselves."
            )
        report = ingest_results(sources, corpus, dataset=dataset, fields=parse_fields(fields or ()))
        if not as_json:
            print_report(report)
        summary, status = report_summary(report), 0 if report.added or report.known else 1
    elif fields:
        raise DepthkitError("--field is for results of the reference repository only.")
    else:
        purpose = purpose or "evaluation"
        summary, status = run_ingest(sources, corpus, dataset, purpose, show=not as_json)
    if as_json:
        _print_json(summary)
    raise typer.Exit(status)


@app.command()
def export(
    corpus: CorpusName,
    reference: Annotated[
        Path,
        typer.Option(
            help="Directory for the files of the paper's own repository: summary.json and "
            "results.jsonl as in its out/.",
            show_default=False,
        ),
    ],
    as_json: JsonFlag = False,
) -> None:
    """Write a corpus in the form of the paper's own repository."""
    from depthkit.corpus import Corpus
    from depthkit.corpus.reference import export as export_reference

    report = export_reference(Corpus.open(corpus), reference)
    if as_json:
        _print_json(report.row())
    else:
        typer.echo("\n".join(report.lines()))


@app.command()
def estimates(corpus: CorpusName, as_json: JsonFlag = False) -> None:
    """Print what the runs of each task say about its depth."""
    from depthkit.corpus import Corpus
    from depthkit.corpus.show import estimate_rows, print_estimates

    opened = Corpus.open(corpus)
    if as_json:
        _print_json(estimate_rows(opened))
    else:
        print_estimates(opened)


# --- artifacts and reports: claims, report ---


@app.command()
def claims(
    corpus: Annotated[str, typer.Option(help="Name of a bundled corpus, or a directory.")] = "demo",
    as_json: JsonFlag = False,
) -> None:
    """Compare the numbers the papers print with what a corpus gives."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from depthkit.artifacts.claims import claims as compare

    found = compare(corpus)
    if as_json:
        _print_json(result.row() for result in found.results)
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("Section", "Number", "Published", "Computed", "Agrees"):
        table.add_column(heading, justify="right" if heading.endswith("ed") else "left")
    for result in found.results:
        if result.kind != "not_computable":
            table.add_row(
                Text(result.claim.section),
                Text(result.claim.claim),
                result.claim.value,
                result.computed_text,
                "yes" if result.agrees else "no",
            )
    console = Console()
    console.print(table)
    console.print(Text(found.score))
    console.print(Text(found.provenance), style="dim")


@app.command()
def report(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Reports of reports/reports.yaml; all by default.", show_default=False),
    ] = None,
    corpus: Annotated[
        str | None, typer.Option(help="Corpus in place of the one in reports.yaml.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Default: reports/build.")
    ] = None,
    parameter: Annotated[
        list[str] | None, typer.Option("-p", metavar="KEY=VALUE", help="Set a parameter.")
    ] = None,
) -> None:
    """Run the notebooks whose report is stale; write pages that open offline."""
    import yaml

    from depthkit import reports

    overrides = {}
    for pair in parameter or []:
        key, equals, value = pair.partition("=")
        try:
            overrides[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise DepthkitError(f"-p {pair}: the value is not YAML.") from error
        if not equals:
            raise DepthkitError(f"-p {pair}: write it as key=value, such as seed=1.")
    project = reports.find_project()
    chosen = reports.load_reports(project, names or [], corpus=corpus, overrides=overrides)
    build = output or project / "reports/build"

    def say(outcome: reports.Outcome) -> None:
        words = {"built": "made", "fresh": "up to date", "failed": "FAILED"}
        typer.echo(f"{outcome.name}: {words[outcome.state]} ({outcome.seconds:.1f} s)")

    outcomes = reports.make_reports(chosen, build, progress=say)
    typer.echo(build / "index.html")
    if failed := [outcome for outcome in outcomes if outcome.error]:
        typer.echo("\n\n".join(f"{o.name}: {o.error}" for o in failed), err=True)
        raise typer.Exit(1)
