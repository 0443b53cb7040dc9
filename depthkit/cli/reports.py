"""Commands on tables, figures and reports: claims, report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from depthkit.cli.base import JsonFlag, app, print_json
from depthkit.errors import DepthkitError


@app.command()
def claims(
    corpus: Annotated[str, typer.Option(help="Name of a bundled corpus, or a directory.")] = "demo",
    section: Annotated[
        list[str] | None,
        typer.Option(help="Only numbers of this section, such as 4.2; may be given again."),
    ] = None,
    disagreeing: Annotated[
        bool, typer.Option("--disagreeing", help="Only numbers that disagree.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Compare the numbers the papers print with what a corpus gives.

    A number that the corpus cannot give stands there too, with the reason.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from depthkit.artifacts.claims import claims as compare

    found = compare(corpus, *section or ())
    chosen = [each for each in found.results if not disagreeing or each.agrees is False]
    if as_json:
        print_json(result.row() | {"provenance": found.stamp} for result in chosen)
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("Section", "Number", "Published", "Computed", "Agrees"):
        table.add_column(heading, justify="right" if heading.endswith("ed") else "left")
    for result in chosen:
        said = f"not computable: {result.reason}"
        table.add_row(
            Text(result.claim.section),
            Text(result.claim.claim),
            result.claim.value,
            result.computed_text,
            Text({True: "yes", False: "no", None: said}[result.agrees]),
        )
    console = Console()
    if chosen:
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
        list[str] | None,
        typer.Option("-p", metavar="KEY=VALUE", help="Set a parameter; lists as [TB2, TW]."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Reports that run at once. [default: cores and one]"),
    ] = None,
    pdf: Annotated[
        bool, typer.Option("--pdf", help="Print each page to PDF too, with a browser.")
    ] = False,
    cells: Annotated[
        bool, typer.Option("--cells", help="Say after each cell how far its notebook is.")
    ] = False,
) -> None:
    """Run the notebooks whose report is stale; write pages that open offline."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from depthkit import reports

    texts = {}
    for pair in parameter or []:
        key, equals, texts[key] = pair.partition("=")
        if not equals or not key:
            raise DepthkitError(f"-p {pair}: write it as key=value, such as seed=1.")
    project = reports.find_project()
    chosen = reports.load_reports(project, names or [], corpus=corpus, texts=texts)
    build = output or project / "reports/build"
    words = {"built": "made", "fresh": "up to date", "failed": "FAILED"}
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("Making reports"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
        redirect_stdout=sys.stdout.isatty(),  # what is piped stays in the pipe
    )
    with bar:
        all_reports = bar.add_task("", total=len(chosen))

        def say(outcome: reports.Outcome) -> None:
            typer.echo(f"{outcome.name}: {words[outcome.state]} ({outcome.seconds:.1f} s)")
            bar.advance(all_reports)

        def say_cell(name: str, done: int, of: int) -> None:
            if cells:
                typer.echo(f"{name}: cell {done} of {of}")

        outcomes = reports.make_reports(
            chosen, build, progress=say, cells=say_cell, workers=workers, pdf=pdf, fork=True
        )
    typer.echo(build / "index.html")
    if failed := [outcome for outcome in outcomes if outcome.error]:
        typer.echo("\n\n".join(f"{o.name}: {o.error}" for o in failed), err=True)
        raise typer.Exit(1)
