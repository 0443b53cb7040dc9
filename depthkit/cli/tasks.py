"""Commands on task directories: work, calibrate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from depthkit.cli.base import JsonFlag, TaskDirs, app, print_json, tell_left_out
from depthkit.errors import DepthkitError


@app.command(
    help="Count the work of reference solutions: lines, tokens and characters.\n\n"
    "Lines are those of solution/solve.sh that are neither blank nor comments, with the content "
    "of here-documents. Tokens are o200k_base tokens. Other files in solution/ are not counted."
)
def work(tasks: TaskDirs, as_json: JsonFlag = False) -> None:
    """Print the three works of each task, a segment and in all."""
    from depthkit.tasks import load_tasks
    from depthkit.tasks.show import work_rows, work_table

    faults: list[str] = []
    loaded = load_tasks(tasks, faults)
    if as_json:
        print_json(work_rows(loaded))
    else:
        from rich.console import Console

        Console().print(work_table(loaded))
    tell_left_out(faults)
    if faults:
        raise typer.Exit(1)


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
