"""The dashboard's command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from depthkit.cli.base import app


@app.command()
def dashboard(
    corpora: Annotated[
        list[str] | None,
        typer.Option(
            "--corpus",
            help="Name of a bundled corpus, or a directory; may be given several times.",
            show_default="demo and paper",
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 5007,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but loopback's needs a token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            envvar="DEPTHKIT_TOKEN",
            help="What a browser must show; made up where one is needed.",
            show_default=False,
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write it as files that open from disk, and serve nothing.",
            show_default=False,
        ),
    ] = None,
    tasks: Annotated[
        list[Path] | None,
        typer.Option(
            help="Task directories, or folders of such: their instructions, solutions and checks "
            "are shown.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Look into corpora in a browser: depth, ladders, and what agents did, turn by turn."""
    from depthkit.dashboard.app import export_site, serve

    if export is not None:
        pages = export_site(corpora or ["demo", "paper"], export, tasks=tasks or [])
        typer.echo(f"{export / 'index.html'}: {pages:,} pages")
        return
    serve(
        corpora or ["demo", "paper"],
        port=port,
        host=host,
        token=token,
        tasks=tasks or [],
        say=typer.echo,
    )
