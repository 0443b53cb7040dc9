"""Section 4.5: results of the evaluated models, as Table 2 and as the numbers of the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from depthkit.artifacts.artifact import Table, artifact
from depthkit.artifacts.evaluated import Evaluated, evaluated, mean_note
from depthkit.artifacts.model_styles import label
from depthkit.artifacts.own_tasks import one_row
from depthkit.artifacts.segments import rates_of
from depthkit.artifacts.tables import MISSING, formatted, plain_table
from depthkit.corpus import Corpus
from depthkit.protocol import first_of_attempts
from depthkit.protocol.verdict import Passes

_TASK = ["dataset", "task_id"]


@artifact("depth/table-2", section="4.5, Table 2")
def models_table(corpus: Corpus, *, datasets: Sequence[str] | None = None) -> Table:
    """Results of models on our tasks.

    One row a model that has a result: ``pass_at_1`` and ``segments`` (the fraction of segments
    passed) are averaged within each task and then over tasks; ``turns``, ``minutes`` and
    ``tokens_k`` are means over its runs, ``turns_passed`` and ``minutes_passed`` over its passing
    runs. The paper does not say whether those five are means. The efforts of Table 2 are settings
    and not in a corpus.

    Args:
        corpus: With runs of purpose ``evaluation``.
        datasets: Only these; ``None`` for those of group ``ours``.
    """
    found = evaluated(corpus, datasets)
    frame = pd.DataFrame(
        [_row(found, model) for model in found.models if len(found.of(model))], columns=_COLUMNS
    )
    notes = list(found.notes)
    for column, what in (
        ("segments", "Segments"),
        ("turns", "Turns"),
        ("minutes", "Minutes"),
        ("tokens", "Tokens"),
    ):
        notes += mean_note(found.results, column, what)
    return Table(
        title=(
            "Results of models. pass@1: share of passing runs, averaged within each task and then "
            "over tasks. Segments: mean fraction of segments passed, averaged likewise. Minutes: "
            "time the agent runs in the container. Tokens: thousands in the context at the end of "
            "a run. Turns, minutes and tokens are means over runs."
        ),
        frame=frame,
        provenance=found.provenance,
        draw=lambda: _table_2(frame),
        cells=(
            *("model", "tasks", "runs", "pass_at_1", "segments", "turns", "minutes"),
            *("tokens_k", "turns_passed", "minutes_passed"),
        ),
        notes=tuple(notes),
    )


def evaluation(corpus: Corpus) -> pd.DataFrame:
    """Results of models on all tasks of a corpus, also those of models without any.

    Returns:
        One row a model with evaluation runs: columns as in :func:`models_table`, and
        ``without_result``, tasks it was run on without one; ``unconfirmed``, how many of the
        ``passed`` runs are, and ``suspect``, how many passes beside them do not count;
        ``pooled_pass`` and ``pooled_segments``, the shares over all runs (Figure 6);
        ``context_tokens``, the mean over runs; ``cost_usd`` of all runs, null if any is unknown;
        ``provenance``.
    """
    found = evaluated(corpus, list(corpus.estimates()["dataset"].unique()))
    rows = []
    for model in found.models:
        results, runs = found.of(model), [run for run in found.attempted if run.model == model]
        passes = Passes.of(first_of_attempts(runs))
        costs = pd.Series([run.cost_usd for run in runs], dtype=float)
        rows.append(
            _row(found, model)
            | {
                "without_result": len(found.missing(model)),
                "unconfirmed": passes.unconfirmed,
                "suspect": passes.suspect,
                "pooled_pass": results["passed"].mean(),
                "pooled_segments": (results["segments"] / results["k"]).mean(),
                "context_tokens": results["tokens"].mean(),
                "cost_usd": costs.sum(skipna=False),
                "provenance": ", ".join(sorted({run.provenance for run in runs})),
            }
        )
    return pd.DataFrame(rows)


_COLUMNS = [
    "model",
    "tasks",
    "runs",
    "passed",
    "pass_at_1",
    "segments",
    "turns",
    "minutes",
    "tokens_k",
    "turns_passed",
    "minutes_passed",
]


def pass_at_1(results: pd.DataFrame) -> float:
    """Share of passing runs, averaged within each task and then over tasks."""
    return float(results.groupby(_TASK)["passed"].mean().mean())


def _row(found: Evaluated, model: str) -> dict[str, Any]:
    runs = found.of(model)
    passing = runs[runs["passed"] == 1]
    fraction = (runs["segments"] / runs["k"]).groupby([runs[key] for key in _TASK]).mean()
    return {
        "model": model,
        "tasks": len(fraction),
        "runs": len(runs),
        "passed": len(passing),
        "pass_at_1": pass_at_1(runs),
        "segments": fraction.mean(),
        "turns": runs["turns"].mean(),
        "minutes": runs["minutes"].mean(),
        "tokens_k": runs["tokens"].mean() / 1000,
        "turns_passed": passing["turns"].mean(),
        "minutes_passed": passing["minutes"].mean(),
    }


def _table_2(frame: pd.DataFrame) -> Any:
    shown = pd.DataFrame(
        {
            "Model": [label(model) for model in frame["model"]],
            "Tasks": frame["tasks"].map("{:d}".format),
            "Runs": frame["runs"].map("{:d}".format),
            "pass@1": formatted(frame["pass_at_1"], "{:.0%}"),
            "Segments": formatted(frame["segments"], "{:.2f}"),
            "Turns": formatted(frame["turns"], "{:.0f}"),
            "Minutes": formatted(frame["minutes"], "{:.1f}"),
            "Tokens": formatted(frame["tokens_k"], "{:.1f}"),
            "Turns (passing)": formatted(frame["turns_passed"], "{:.0f}"),
            "Minutes (passing)": formatted(frame["minutes_passed"], "{:.1f}"),
        }
    )
    return plain_table(
        shown,
        "depth-table-2",
        rows="Model",
        spanners={
            "All runs": ("Turns", "Minutes", "Tokens"),
            "Passing runs": ("Turns (passing)", "Minutes (passing)"),
        },
    )


@artifact("depth/section-4.5", section="4.5, text")
def models_text(corpus: Corpus, *, datasets: Sequence[str] | None = None) -> Table:
    """What the text of Section 4.5 says over the evaluated models together.

    One row: ``tasks_all_models`` has a result of each model, ``passed_by_none`` counts those of
    them that no run of any model passes. ``spread`` is the highest pass@1 less the lowest,
    ``rate_gap`` the same of the per-segment pass rates of Figure 6, ``all_six_ratio`` the share of
    runs that pass all six segments of the model with the highest of these rates over that of the
    one with the lowest. Each is null with fewer than two models, or where one of these is unknown.

    Args:
        corpus: With runs of purpose ``evaluation``.
        datasets: Only these; ``None`` for those of group ``ours``.
    """
    found = evaluated(corpus, datasets)
    models = found.models
    row: dict[str, Any] = dict.fromkeys(_TEXT)
    if len(models) > 1:
        shared = set.intersection(*(found.tasks_of(model) for model in models))
        passing = found.results[found.results["passed"] == 1]
        passed = set(zip(passing["dataset"], passing["task_id"], strict=True))
        row["tasks_all_models"] = len(shared)
        row["passed_by_none"] = len(shared - passed)
    with_results = [model for model in models if len(found.of(model))]
    if len(with_results) > 1:
        shares = [pass_at_1(found.of(model)) for model in with_results]
        row["spread"] = max(shares) - min(shares)
        rates = [rates_of(found.of(model)) for model in with_results]
        if all(rate["rate"] is not None for rate in rates):
            best = max(rates, key=lambda rate: rate["rate"])
            worst = min(rates, key=lambda rate: rate["rate"])
            row["rate_gap"] = best["rate"] - worst["rate"]
            if best["all_six"] is not None and worst["all_six"]:
                row["all_six_ratio"] = best["all_six"] / worst["all_six"]
    frame = one_row(**row)
    notes = list(found.notes)
    if len(models) < 2:
        notes.append("These numbers compare models; the corpus has evaluation runs of fewer.")
    return Table(
        title=(
            "What the text says of the models together. Spread and gap: the highest less the "
            "lowest. Ratio: shares of runs that pass all six segments, of the model with the "
            "highest per-segment pass rate over the one with the lowest."
        ),
        frame=frame,
        provenance=found.provenance,
        draw=lambda: _text_table(frame),
        notes=tuple(notes),
    )


_TEXT = {
    "tasks_all_models": ("tasks with results from all models", "{:,.0f}"),
    "passed_by_none": ("… passed by none", "{:,.0f}"),
    "spread": ("spread of pass@1", "{:.1%}"),
    "rate_gap": ("gap of per-segment pass rates", "{:.3f}"),
    "all_six_ratio": ("ratio of shares that pass all six segments", "{:.2f}"),
}
"""Columns: what they are, and how they are printed."""


def _text_table(frame: pd.DataFrame) -> Any:
    values = frame.iloc[0]
    shown = pd.DataFrame(
        {
            "Of what": [what for what, _ in _TEXT.values()],
            "Number": [
                MISSING if pd.isna(values[name]) else form.format(values[name])
                for name, (_, form) in _TEXT.items()
            ],
        }
    )
    return plain_table(shown, "depth-section-4-5", rows="Of what")
