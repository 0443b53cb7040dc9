"""Commands that choose tasks: sample."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from depthkit.cli.base import JsonFlag, Workers, app, print_json


@app.command()
def sample(
    table: Annotated[
        Path, typer.Argument(help="CSV or Parquet, a row a task.", show_default=False)
    ],
    rules: Annotated[
        str,
        typer.Option(
            help="tmax, facet, seta, rst, tb2 or tw for the paper's own, or a YAML file.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("-o", "--out", help="Folder for what was decided.", show_default=False),
    ],
    n: Annotated[
        int | None,
        typer.Option("-n", min=1, help="How many tasks.", show_default="as the rules say"),
    ] = None,
    tasks: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the task directories: those with heavy dependencies are replaced.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Build images where dependencies are unsure, and run depthkit check on each task "
            "of --tasks; one that fails is replaced by the next.",
        ),
    ] = False,
    corpus: Annotated[
        Path | None,
        typer.Option(
            help="Enter the table's tasks with groups and labels into this corpus, for Tables 4 "
            "and 5, and extend the list by its results where the rules want so many solved.",
            show_default=False,
        ),
    ] = None,
    workers: Workers = 3,
    as_json: JsonFlag = False,
) -> None:
    """Draw a sample of a data set by rules, balanced over groups (Appendix C).

    The list is the same each time, whatever the order of the table. Every decision is written with
    its reason: sample.csv, decisions.csv, summary.json.

    Example: depthkit sample tmax.csv --rules tmax -o sample/tmax --tasks tasks/TMax --check
    """
    from rich.console import Console

    from depthkit.corpus import Corpus
    from depthkit.experiments.sample import add_to_corpus, draw_sample, read_table, write_sample
    from depthkit.experiments.sampling import read_rules

    opened = Corpus.open_or_create(corpus) if corpus else None
    found = draw_sample(
        read_table(table),
        read_rules(rules),
        n=n,
        tasks_dir=tasks,
        check=check,
        workers=workers,
        out=out,
        corpus=opened,
        console=Console(stderr=True),
    )
    write_sample(found, out)
    if opened is not None:
        add_to_corpus(found, opened)
    if as_json:
        print_json(found.row())
        return
    row = found.table_4()
    typer.echo(f"{row['dataset']}: {row['sampled']} of {len(found.decisions)} tasks, in {out}")
    for group, counts in row["groups"].items():
        typer.echo(f"  {group}: {counts['sampled']} of {counts['candidates']}")
    typer.echo(f"Evidence that a model passed: {'; '.join(row['evidence'])}")
    if found.extended:
        typer.echo(f"Extended: {found.extended}")
