"""``depthkit …``: thin, one function a command; what a command needs is imported when it runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

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

TaskDirs = Annotated[
    list[Path], typer.Argument(help="Harbor task directories.", show_default=False)
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


def _print_json(rows: Iterable[Any] | dict[str, Any]) -> None:
    data = rows if isinstance(rows, dict) else list(rows)
    sys.stdout.write(json.dumps(data, indent=2, default=str) + "\n")


# --- tasks: work, calibrate ---

# --- trials: free, ladder, clean ---

# --- corpus: ingest, estimates ---

# --- artifacts and reports: claims, report ---
