"""What ``depthkit models`` shows a person, or prints as JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from depthkit.trials.models import ModelSpec
from depthkit.trials.probe import Probe


def model_rows(
    specs: Iterable[ModelSpec], environ: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """One object a model; ``None`` is not known or not set.

    Args:
        specs: The models.
        environ: Where it is looked up whether a key is set; the value is not kept.
    """
    environ = os.environ if environ is None else environ
    return [
        {
            "name": spec.name,
            "id": f"openai/{spec.policy}" if spec.policy else spec.litellm,
            "endpoint": spec.endpoint,
            "providers": spec.providers,
            "reasoning_effort": spec.reasoning_effort,
            "effort_reported": spec.effort_reported,
            "endpoint_reported": spec.endpoint_reported,
            "context_tokens": spec.context_tokens,
            "max_output_tokens": spec.max_output_tokens,
            "input_usd_per_mtok": spec.input_usd_per_mtok,
            "cached_usd_per_mtok": spec.cached_usd_per_mtok,
            "output_usd_per_mtok": spec.output_usd_per_mtok,
            "api_key_env": spec.api_key_env,
            "key_set": bool(environ.get(spec.api_key_env)) if spec.api_key_env else None,
            "provenance": spec.provenance,
        }
        for spec in specs
    ]


def models_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """The same for a person."""
    table = Table(box=None, header_style="bold", pad_edge=False, caption_justify="left")
    table.caption = "In brackets: the effort that the paper reports for the provider's default."
    for heading in ("model", "id", "endpoint", "effort", "$/M in", "$/M out", "key", "runs are"):
        right = heading.startswith("$")
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for row in rows:
        served = ", ".join(row["providers"] or ())
        key = {True: "set", False: "not set", None: "-"}
        cells = [
            row["name"],
            row["id"] or "not set",
            f"{row['endpoint']}: {served}" if served else row["endpoint"],
            _effort(row),
            _price(row["input_usd_per_mtok"]),
            _price(row["output_usd_per_mtok"]),
            key[row["key_set"]],
            row["provenance"],
        ]
        table.add_row(*map(Text, cells))
    return table


def probe_lines(result: Probe) -> list[str]:
    """A call that went well, for a person."""
    tokens = "tokens unknown"
    if result.input_tokens is not None:
        cached = f" ({result.cached_tokens:,} cached)" if result.cached_tokens else ""
        tokens = f"{result.input_tokens:,} tokens in{cached}, {result.output_tokens or 0:,} out"
    cost = "cost unknown"
    if result.cost_usd is not None:
        source = {"endpoint": "as billed", "prices": "by the registered prices"}
        cost = f"${result.cost_usd:.6f} {source[result.cost_from or 'prices']}"
    served = [result.served_model, result.served_provider and f"by {result.served_provider}"]
    lines = [
        f"{result.model} answers: {result.seconds:.1f} s, {tokens}, {cost}.",
        f"terminus-2 reads {result.commands} command{'' if result.commands == 1 else 's'} in it"
        + (f" (warning: {result.warning})." if result.warning else "."),
    ]
    if any(served):
        lines.append(f"Served: {' '.join(part for part in served if part)}.")
    return lines


def _effort(row: Mapping[str, Any]) -> str:
    if row["reasoning_effort"]:
        return str(row["reasoning_effort"])
    if row["effort_reported"] == "-" or row["provenance"] == "scripted":
        return "-"
    reported = row["effort_reported"]
    return f"default ({reported})" if reported else "default"


def _price(price: float | None) -> str:
    return "-" if price is None else f"{price:.2f}"
