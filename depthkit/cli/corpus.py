"""Commands on corpora: ingest, pass rates, export, estimates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from depthkit.cli.base import CorpusName, JsonFlag, app, print_json
from depthkit.errors import DepthkitError

if TYPE_CHECKING:
    from depthkit.model import Group


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
    models: Annotated[
        str,
        typer.Option(
            help="Model set of the corpus, first model first, separated by commas, as the trials "
            "name the models; estimates of free and ladder runs need it.",
            show_default=False,
        ),
    ] = "",
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

    Runs of other agents than terminus-2 are kept under the names of model and agent, as in
    "some-model (claude-code)". Their turns are the agent's model calls, and they never enter depth.
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
        if models:
            raise DepthkitError("--models is for Harbor trials; these results name theirs.")
        report = ingest_results(sources, corpus, dataset=dataset, fields=parse_fields(fields or ()))
        if not as_json:
            print_report(report)
        summary, status = report_summary(report), 0 if report.added or report.known else 1
    elif fields:
        raise DepthkitError("--field is for results of the reference repository only.")
    else:
        purpose = purpose or "evaluation"
        names = [name.strip() for name in models.split(",") if name.strip()]
        summary, status = run_ingest(
            sources, corpus, dataset, purpose, models=names, show=not as_json
        )
    if as_json:
        print_json(summary)
    raise typer.Exit(status)


@app.command("pass-rates")
def pass_rates(
    trials: Annotated[
        Path,
        typer.Argument(
            help="Parquet or CSV, one row a trial: submission, task, reward (and started_at).",
            metavar="TRIALS",
        ),
    ],
    corpus: Annotated[Path, typer.Option(help="Corpus to add to; made if there is none.")],
    dataset: Annotated[str, typer.Option(help="Data set of these tasks.", show_default=False)],
    tasks: Annotated[
        Path | None,
        typer.Option(help="Parquet or CSV, one row a task: task, difficulty, category."),
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="synthetic, human-curated or ours; where not known.")
    ] = None,
    at_least: Annotated[
        int | None,
        typer.Option(min=1, help="Only submissions with so many trials of every task."),
    ] = None,
    earliest: Annotated[
        int | None, typer.Option(min=1, help="Of these, so many that started first.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Give tasks the pass rates that others released, from a table of their trials.

    Each rate is the mean over submissions of the share of trials that pass. Tasks that the corpus
    lacks are added without runs: Figure 8 needs none.
    """
    from typing import get_args

    from depthkit.corpus import Corpus
    from depthkit.corpus.pass_rates import add_pass_rates, read_pass_rates
    from depthkit.model import Group

    if group is not None and group not in get_args(Group):
        raise DepthkitError(
            f"--group is {group!r}; it must be one of {', '.join(get_args(Group))}."
        )
    found = read_pass_rates(trials, at_least=at_least, earliest=earliest)
    opened = Corpus.open_or_create(corpus)
    report = add_pass_rates(opened, dataset, found, tasks=tasks, group=cast("Group | None", group))
    if as_json:
        print_json({**vars(report), "source": found.source, "submissions": found.submissions})
        return
    typer.echo(
        f"{len(found.rates)} tasks of {dataset}: {found.source} · {len(report.new)} new, "
        f"{len(report.changed)} changed, {len(report.same)} as they were"
    )
    for note in report.notes:
        typer.echo(note)


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
        print_json(report.row())
    else:
        typer.echo("\n".join(report.lines()))


@app.command()
def estimates(corpus: CorpusName, as_json: JsonFlag = False) -> None:
    """Print what the runs of each task say about its depth."""
    from depthkit.corpus import Corpus
    from depthkit.corpus.show import estimate_rows, print_estimates

    opened = Corpus.open(corpus)
    if as_json:
        print_json(estimate_rows(opened))
    else:
        print_estimates(opened)


@app.command()
def evaluate(corpus: CorpusName, as_json: JsonFlag = False) -> None:
    """Print how models do on a corpus' tasks: pass@1 and the fraction of segments (Table 2).

    Counts evaluation runs only (depthkit free --model NAME), averaged within a task and then over
    tasks, and pooled over runs.
    """
    from depthkit.artifacts.model_results import evaluation
    from depthkit.corpus import Corpus
    from depthkit.protocol.verdict import Passes

    frame = evaluation(Corpus.open(corpus))
    if as_json:
        print_json(json.loads(frame.to_json(orient="records")))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    headings = (
        "model",
        "tasks",
        "no result",
        "passes",
        "pass@1",
        "segments",
        "pooled",
        "turns",
        "minutes",
    )
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in (*headings, "cost", "provenance"):
        table.add_column(heading, overflow="fold")  # cut, two models may look the same
    forms = {"pass_at_1": ".0%", "segments": ".2f", "pooled_pass": ".0%", "turns": ".0f"}
    forms |= {"minutes": ".1f", "cost_usd": ".2f"}
    for row in frame.to_dict("records"):
        numbers = (
            "\N{EN DASH}" if row[name] != row[name] else format(row[name], form)
            for name, form in forms.items()
        )
        passes = f"{row['passed']}{Passes(0, row['unconfirmed'], row['suspect']).apart}"
        cells = (row["model"], str(row["tasks"]), str(row["without_result"]), passes, *numbers)
        table.add_row(*map(Text, (*cells, row["provenance"])))
    Console().print(table)
