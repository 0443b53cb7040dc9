"""The command that makes the ``paper`` corpus, and what it reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from depthkit.cli.base import JsonFlag, app, print_json

if TYPE_CHECKING:
    from depthkit.artifacts.claims import Result


@app.command("fit-published")
def fit_published(
    output: Annotated[
        Path, typer.Argument(help="New or empty directory for the corpus.", metavar="DIR")
    ],
    seed: Annotated[int, typer.Option(help="Of all that the paper leaves open.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Make a corpus whose aggregates are the numbers the paper prints; report every constraint.

    The data are fitted, not measured: they show whether the printed numbers can hold together. The
    corpus that comes with the package as `paper` is the one of seed 0.
    """
    from depthkit.artifacts.claims import claims
    from depthkit.fitting import fit_published as fit

    fit(output, seed=seed)
    found = claims(output)
    rows = [_constraint(result) for result in found.results if result.counted]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        if row["state"] != "met":
            typer.echo(
                f"{row['id']}: printed {row['printed']}, fitted {row['fitted']} "
                f"({row['state']}). {row['reason'] or ''}".rstrip()
            )
    typer.echo(found.score)
    typer.echo(f"fitted · seed {seed} · {output}")


def _constraint(result: Result) -> dict[str, Any]:
    """One printed number: met, missed (by how much), or at odds with another printed number."""
    from depthkit.fitting import REASONS

    claim = result.claim
    fitted = None if result.computed is None else result.computed[0]
    state = "met" if result.agrees else "at odds" if claim.id in _at_odds() else "missed"
    return {
        "id": claim.id,
        "section": claim.section,
        "claim": claim.claim,
        "printed": claim.value,
        "fitted": result.computed_text,
        "state": state,
        "by": None if result.agrees or fitted is None else float(abs(fitted - claim.number)),
        "reason": None if result.agrees else REASONS.get(claim.id),
    }


def _at_odds() -> set[str]:
    """Printed shares for which no whole number exists."""
    from depthkit.published import cross_checks

    return {
        found.check.share
        for found in cross_checks("depth")
        if not found.holds and found.check.share
    }
