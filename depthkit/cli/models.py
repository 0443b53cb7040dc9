"""Commands on models and settings."""

from __future__ import annotations

from typing import Annotated

import typer

from depthkit.cli.base import JsonFlag, ModelsFile, app, print_json

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
        print_json(rows)
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
        print_json(result.row())
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
        print_json(rows())
    else:
        from rich.console import Console

        Console().print(settings_table())
