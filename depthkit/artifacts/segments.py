"""Section 4.5, Figure 6: how far into a task the runs of each model come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from depthkit.artifacts import figures, model_shapes
from depthkit.artifacts.artifact import Figure, artifact
from depthkit.artifacts.evaluated import evaluated, mean_note
from depthkit.artifacts.model_styles import label, model_styles
from depthkit.corpus import Corpus
from depthkit.stats import segment_rates

SIX = 6
"""Segments of most of our tasks, for which Figure 6 gives the share of runs that pass all."""


@artifact("depth/figure-6", section="4.5, Figure 6")
def segments_figure(corpus: Corpus, *, datasets: Sequence[str] | None = None) -> Figure:
    """Evaluation runs segment by segment, pooled over runs.

    ``frame`` has one row a model and segment: ``runs`` on tasks with at least so many segments,
    the ``share`` of them that passes it, how many ``reached`` it (passed all earlier ones) and the
    share of these that passes it (``conditional``).

    ``parts["rates"]`` has one row a model: ``rate``, the geometric mean of the conditional rates
    (null where no run reaches a segment although no rate is 0), and ``all_six``, the share of runs
    on tasks with six segments or more that pass six (null without such tasks).

    Args:
        corpus: With runs of purpose ``evaluation``.
        datasets: Only these; ``None`` for those of group ``ours``.
    """
    found = evaluated(corpus, datasets)
    known = found.results.dropna(subset=["segments", "k"])
    models = [model for model in found.models if (known["model"] == model).any()]
    frame = pd.DataFrame(
        [row for model in models for row in _rows(model, known[known["model"] == model])],
        columns=["model", "segment", "runs", "share", "reached", "conditional"],
    )
    rates = pd.DataFrame(
        [{"model": model, **rates_of(known[known["model"] == model])} for model in models],
        columns=["model", "runs", "rate", "all_six"],
    ).astype({"rate": "float64", "all_six": "float64"})
    every = corpus.runs()
    styles = model_styles(every[every["purpose"] == "evaluation"]["model"])
    return Figure(
        title=(
            "Runs segment by segment. Left: share of runs that pass segment i, among runs on tasks "
            "with at least i segments. Right: the per-segment pass rate (filled), the geometric "
            "mean of the conditional pass rates, next to the share of runs that pass all six "
            "segments (open). Values are pooled over runs."
        ),
        frame=frame,
        parts={"rates": rates},
        provenance=found.provenance,
        widths=(1.3, 1),
        draw=lambda backend: _draw(frame, rates, models, styles, backend),
        notes=(*found.notes, *mean_note(found.results, "segments", "Segments passed")),
    )


def rates_of(results: pd.DataFrame) -> dict[str, Any]:
    """Per-segment pass rate and share of six segments of one model's results; ``None`` if unknown.

    Results whose segments are not known are left out.
    """
    known = results.dropna(subset=["segments", "k"])
    if known.empty:
        return {"runs": 0, "rate": None, "all_six": None}
    found = segment_rates(known["segments"], known["k"])
    all_six = found.passing[SIX - 1] if len(found.passing) >= SIX else None
    return {"runs": found.n, "rate": found.value, "all_six": all_six}


def _rows(model: str, known: pd.DataFrame) -> list[dict[str, Any]]:
    found = segment_rates(known["segments"], known["k"])
    return [
        {
            "model": model,
            "segment": number,
            "runs": int((known["k"] >= number).sum()),
            "share": found.passing[number - 1],
            "reached": found.reached[number - 1],
            "conditional": found.conditional[number - 1],
        }
        for number in range(1, len(found.passing) + 1)
    ]


def _draw(
    frame: pd.DataFrame,
    rates: pd.DataFrame,
    models: list[str],
    styles: dict[str, Any],
    backend: figures.Backend,
) -> Any:
    import holoviews as hv

    lines = hv.Overlay([])
    for model in models:
        rows = frame[frame["model"] == model]
        lines *= model_shapes.line(
            list(zip(rows["segment"].astype(float), rows["share"], strict=True)),
            styles[model],
            backend,
            name=label(model),
            said=[
                f"{label(model)}, segment {row.segment}: {row.share:.0%} of {row.runs} runs"
                for row in rows.itertuples()
            ],
        )
    last = int(frame["segment"].max()) if len(frame) else 1
    places = {model: float(len(models) - 1 - row) for row, model in enumerate(models)}
    bars = hv.Overlay([])
    for row in rates.to_dict("records"):
        y, style = places[row["model"]], styles[row["model"]]
        rate, all_six = row["rate"], row["all_six"]
        if not pd.isna(rate) and not pd.isna(all_six):
            bars *= model_shapes.spans([(all_six, y, rate, y)], backend)
        for value, filled, what in (
            (all_six, False, "passes all six segments"),
            (rate, True, "per segment"),
        ):
            if not pd.isna(value):
                said = f"{label(row['model'])}: {value:.3f} {what}"
                bars *= model_shapes.marks([(value, y, said)], style, backend, filled=filled)
    return hv.Layout(
        [
            figures.panel(
                lines,
                backend,
                xlabel="segment",
                ylabel="share of runs that pass it",
                xticks=[(float(n), str(n)) for n in range(1, last + 1)],
                xlim=(0.7, last + 0.3),
                ylim=(0, 1.02),
                names=len(models),
            ),
            figures.panel(
                bars,
                backend,
                xlabel="share",
                ylabel="",
                xlim=(0, 1.02),
                yticks=[(places[model], label(model)) for model in models] or [(0.0, "")],
                ylim=(-0.6, max(1, len(models)) - 0.4),
            ),
        ]
    )
