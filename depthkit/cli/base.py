"""What all commands share: the application, how an error is shown, and common options."""

from __future__ import annotations

import errno
import gc
import json
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import current_thread, main_thread
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from depthkit.errors import DepthkitError, DepthkitWarning


class _Group(TyperGroup):
    """Prints an error that a person can mend, or a warning, as one line; errors exit with 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("default", DepthkitWarning)  # each once
                warnings.showwarning = _show_warning(warnings.showwarning)
                return super().invoke(ctx)
        except Exception as error:
            if (said := _said(error)) is None:
                raise
            typer.secho(said, fg=typer.colors.RED, err=True)
            raise typer.Exit(2) from error


def _said(error: Exception) -> str | None:
    """What a person is told of an error; ``None`` where it is none that a person can mend."""
    if isinstance(error, ExceptionGroup):  # of what ran at the same time
        each = [_said(inner) for inner in error.exceptions]
        return None if None in each else "\n".join(dict.fromkeys(filter(None, each)))
    if isinstance(error, DepthkitError):
        return f"{error}"
    if not isinstance(error, OSError):
        return None
    if error.filename is not None:
        from depthkit.tasks.text import printable

        return f"{printable(str(error.filename))}: {error.strerror}."
    if error.errno in (errno.ENOSPC, errno.EDQUOT) or "temporary directory" in str(error):
        return (
            f"{error.strerror}: make room there, or in TMPDIR (now "
            f"{os.environ.get('TMPDIR', 'not set')}), and run the same command again."
        )
    return None  # no path that a person gave, such as a broken pipe


def _show_warning(shown_before: Callable[..., None]) -> Callable[..., None]:
    """A way to show warnings: ours as one line, others as before."""

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, DepthkitWarning):
            typer.secho(f"{message}", fg=typer.colors.YELLOW, err=True)
        else:
            shown_before(message, category, *where, **more)

    return show


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Measure how deep terminal tasks are, and look into what agents did.",
)

_RUNS_TRIALS = {"attempt", "check", "free", "generate", "ladder", "merge", "replay"}


@app.callback()
def _start(ctx: typer.Context) -> None:
    # Thousands of modules are imported, none of it garbage: looking for some takes a sixth of that.
    gc.set_threshold(50_000)
    # On a full disk Harbor's log files cannot be written either; what is wrong is said once, by us.
    logging.raiseExceptions = False
    if ctx.invoked_subcommand in _RUNS_TRIALS and current_thread() is main_thread():
        # So that what was begun is ended and taken away, as on Ctrl-C.
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, lambda number, _: sys.exit(128 + number))
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
CorpusName = Annotated[
    str, typer.Argument(help="A directory, or a bundled corpus by name.", show_default=False)
]
ModelsFile = Annotated[
    Path | None,
    typer.Option(help="Your models.toml, laid over the bundled one.", show_default=False),
]
Workers = Annotated[int, typer.Option(min=1, envvar="DEPTH_WORKERS", help="Trials at a time.")]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


def tell_left_out(faults: Iterable[str]) -> None:
    """Say what is wrong with tasks that others went on without."""
    for fault in faults:
        typer.secho(f"Left out: {fault}", fg=typer.colors.YELLOW, err=True)


def print_json(rows: Iterable[Any] | dict[str, Any]) -> None:
    """Print an object, or rows as a list, for scripts."""
    data = rows if isinstance(rows, dict) else list(rows)
    sys.stdout.write(json.dumps(data, indent=2, default=str) + "\n")
