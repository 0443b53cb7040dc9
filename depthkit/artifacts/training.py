"""Section 4.6: the runs that training samples come from, and models before and after training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from depthkit.artifacts import figures, model_shapes
from depthkit.artifacts.artifact import Figure, Table, artifact
from depthkit.artifacts.datasets import audited
from depthkit.artifacts.evaluated import Evaluated, evaluated
from depthkit.artifacts.model_styles import label, model_styles
from depthkit.artifacts.own_tasks import own_tasks, runs_line
from depthkit.artifacts.tables import MISSING, plain_table
from depthkit.corpus import Corpus


@artifact("depth/section-4.6", section="4.6, text")
def training_text(corpus: Corpus, *, datasets: Sequence[str] | None = None) -> Table:
    """How many training samples were built from how many runs on our tasks.

    One row: ``runs`` that gave at least one sample, and the ``samples`` of all of them, from
    ``training_samples`` of runs of any purpose. Both are null where no run states it.

    Args:
        corpus: With the runs.
        datasets: Only these; ``None`` for those of group ``ours``.
    """
    own = own_tasks(corpus, datasets)
    keys = set(own.keys)
    stated = [
        run
        for run in corpus.run_records()
        if (run.dataset, run.task_id) in keys and run.training_samples is not None
    ]
    used = [run for run in stated if run.training_samples]
    samples = sum(run.training_samples or 0 for run in used)
    frame = pd.DataFrame(
        {
            "runs": pd.array([len(used) if stated else None], dtype="Int64"),
            "samples": pd.array([samples if stated else None], dtype="Int64"),
        }
    )
    notes = list(own.notes)
    if not stated:
        notes.append("No run of this corpus says how many training samples were built from it.")
    return Table(
        title="Runs on our tasks that training samples are built from, and these samples.",
        frame=frame,
        provenance=runs_line(corpus, used),
        draw=lambda: plain_table(
            pd.DataFrame(
                {
                    "Of what": ["runs", "samples"],
                    "Number": [MISSING if pd.isna(n) else f"{n:,}" for n in frame.iloc[0]],
                }
            ),
            "depth-section-4-6",
            rows="Of what",
        ),
        notes=tuple(notes),
    )


@artifact("depth/figure-7", section="4.6, Figure 7")
def training_figure(
    corpus: Corpus,
    *,
    datasets: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
) -> Figure:
    """pass@1 of models on benchmarks, before and after fine-tuning.

    One row a data set and model that has a result there: ``pass_at_1``, the mean over its runs
    (first attempts, second attempts, …) of the share of tasks passed; ``sd``, the standard
    deviation over runs with n - 1 in the denominator (the paper does not say which; null for one
    run); ``runs`` per task, the fewest that any of its ``tasks`` has.

    Args:
        corpus: With runs of purpose ``evaluation``.
        datasets: Only these; ``None`` for all that are not of group ``ours``.
        models: Only these; ``None`` for all that have results there.
    """
    if datasets is None:
        groups = audited(corpus).tasks
        datasets = sorted(set(groups[groups["group"] != "ours"]["dataset"]))
    found = evaluated(corpus, datasets)
    chosen = [model for model in found.models if models is None or model in models]
    # in the order given, with the corpus' own letter case
    place = {name.casefold(): number for number, name in enumerate(datasets)}
    names = sorted(set(found.results["dataset"]), key=lambda name: place[name.casefold()])
    frame = pd.DataFrame(
        [
            row
            for name in names
            for model in chosen
            if (row := _row(found.of(model), name, model)) is not None
        ],
        columns=["dataset", "model", "tasks", "pass_at_1", "sd", "runs"],
    )
    notes = list(found.notes)
    uneven = [
        f"{label(row['model'])} on {row['dataset']}"
        for row in frame.to_dict("records")
        if _attempts(found, row["dataset"], row["model"]) > row["runs"]
    ]
    if uneven:
        notes.append(f"Not all tasks have equally many runs: {', '.join(uneven)}.")
    if frame.empty:
        notes.append("The corpus has no evaluation runs on these data sets.")
    every = corpus.runs()
    styles = model_styles(every[every["purpose"] == "evaluation"]["model"])
    return Figure(
        title=(
            "pass@1 of models on other benchmarks. Bars are the mean over runs, and error bars one "
            "standard deviation over runs."
        ),
        frame=frame,
        provenance=found.provenance,
        draw=lambda backend: _draw(frame, names, styles, backend),
        notes=tuple(notes),
    )


def _row(results: pd.DataFrame, dataset: str, model: str) -> dict[str, Any] | None:
    rows = results[results["dataset"] == dataset]
    if rows.empty:
        return None
    by_run = rows.groupby("attempt")["passed"].mean()
    per_task = rows.groupby("task_id").size()
    return {
        "dataset": dataset,
        "model": model,
        "tasks": len(per_task),
        "pass_at_1": by_run.mean(),
        "sd": by_run.std(ddof=1),
        "runs": int(per_task.min()),
    }


def _attempts(found: Evaluated, dataset: str, model: str) -> int:
    rows = found.of(model)
    return int(rows[rows["dataset"] == dataset]["attempt"].nunique())


def _draw(frame: pd.DataFrame, names: list[str], styles: dict[str, Any], backend: Any) -> Any:
    import holoviews as hv

    models = list(dict.fromkeys(frame["model"]))
    width = 0.8 / max(1, len(models))
    shown, errors, over = hv.Overlay([]), [], []
    top = 0.0
    for number, model in enumerate(sorted(models, key=list(styles).index)):
        boxes = []
        for row in frame[frame["model"] == model].to_dict("records"):
            x = names.index(row["dataset"]) - 0.4 + (number + 0.5) * width
            share, sd = row["pass_at_1"], row["sd"]
            said = f"{label(model)}, {row['dataset']}: {share:.1%}"
            boxes.append(
                model_shapes.Bar(x - 0.46 * width, 0.0, x + 0.46 * width, 100 * share, said)
            )
            high = share if pd.isna(sd) else share + sd
            if not pd.isna(sd):
                errors.append((x, 100 * (share - sd), x, 100 * high))
            over.append((x, 100 * high, f"{100 * share:.1f}"))
            top = max(top, 100 * high)
        shown *= model_shapes.bars(boxes, styles[model].colour, backend, name=label(model))
    if errors:
        shown *= model_shapes.spans(errors, backend)
    top = 1.15 * top or 1.0
    if over:
        lifted = [(x, y + 0.04 * top, text) for x, y, text in over]
        shown *= model_shapes.texts(lifted, figures.DARK, backend)
    return hv.Layout(
        [
            figures.panel(
                shown,
                backend,
                xlabel="",
                ylabel="pass@1 (%)",
                xticks=[(float(place), name) for place, name in enumerate(names)] or [(0.0, "")],
                xlim=(-0.6, max(1, len(names)) - 0.4),
                ylim=(0, top),
                names=len(models),
            )
        ]
    )
