"""Appendix I: on which tasks models have no result, and how their runs end (Figure 14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from depthkit.artifacts import figures, model_shapes
from depthkit.artifacts.artifact import Figure, Table, artifact
from depthkit.artifacts.datasets import numbers
from depthkit.artifacts.evaluated import Evaluated, evaluated
from depthkit.artifacts.model_styles import label
from depthkit.artifacts.tables import plain_table
from depthkit.corpus import Corpus
from depthkit.protocol import EARLY


@artifact("depth/section-I", section="I, text")
def evaluation_text(corpus: Corpus, *, datasets: Sequence[str] | None = None) -> Table:
    """What Appendix I says of results that are missing and of the model that measures depth.

    ``frame`` has one row a model: ``tasks`` with a result, and tasks that it was run on without
    any: ``refused`` (at least one run was), ``invalid`` (for another reason), ``left_out`` (both).
    ``overlap`` counts, for each two models, the tasks that were left out of both. ``measuring``
    has one row: the tasks that the first measurement model passes in its evaluation runs, and
    those of them that count as solved by its free runs; null without evaluation runs of it.

    Args:
        corpus: With runs of purpose ``evaluation``.
        datasets: Only these; ``None`` for those of group ``ours``.
    """
    found = evaluated(corpus, datasets)
    missing = {model: found.missing(model) for model in found.models}
    frame = pd.DataFrame(
        [
            {
                "model": model,
                "tasks": len(found.tasks_of(model)),
                "refused": sum(missing[model].values()),
                "invalid": len(missing[model]) - sum(missing[model].values()),
                "left_out": len(missing[model]),
            }
            for model in found.models
        ],
        columns=["model", "tasks", "refused", "invalid", "left_out"],
    )
    overlap = pd.DataFrame(
        [
            {"model": one, "other": two, "left_out": len(set(missing[one]) & set(missing[two]))}
            for one in found.models
            for two in found.models
            if one != two
        ],
        columns=["model", "other", "left_out"],
    )
    measuring = _measuring(corpus, found)
    return Table(
        title=(
            "Tasks with a result of each model, and those left out because the model refused "
            "every run or gave no valid result."
        ),
        frame=frame,
        parts={"overlap": overlap, "measuring": measuring},
        provenance=found.provenance,
        draw=lambda: _table(frame),
        cells=("model", "tasks", "refused", "invalid", "left_out"),
        notes=(*found.notes, *_measuring_note(corpus, measuring)),
    )


def _measuring(corpus: Corpus, found: Evaluated) -> pd.DataFrame:
    passed = passed_and_solved = None
    if corpus.models and corpus.models[0] in found.models:
        runs = found.of(corpus.models[0])
        passing = runs[runs["passed"] == 1]
        tasks = set(zip(passing["dataset"], passing["task_id"], strict=True))
        solved = found.own.solved
        passed = len(tasks)
        if found.own.tasks["solved"].notna().any():
            passed_and_solved = len(
                tasks & set(zip(solved["dataset"], solved["task_id"], strict=True))
            )
    return pd.DataFrame(
        {
            "passed": pd.array([passed], dtype="Int64"),
            "passed_and_solved": pd.array([passed_and_solved], dtype="Int64"),
        }
    )


def _measuring_note(corpus: Corpus, measuring: pd.DataFrame) -> list[str]:
    passed, both = measuring.iloc[0]
    if pd.isna(passed):
        return ["The model that measures depth has no evaluation runs here."]
    text = f"{label(corpus.models[0])} passes {passed} tasks in its evaluation runs"
    return [f"{text}; it solves {both} of them when D is measured."] if both is not pd.NA else []


def _table(frame: pd.DataFrame) -> Any:
    shown = pd.DataFrame(
        {
            "Model": [label(model) for model in frame["model"]],
            "Tasks": frame["tasks"].map("{:,d}".format),
            "Refused": frame["refused"].map("{:,d}".format),
            "No valid result": frame["invalid"].map("{:,d}".format),
            "Left out": frame["left_out"].map("{:,d}".format),
        }
    )
    return plain_table(shown, "depth-section-I", rows="Model")


OUTCOMES = {
    "passed": ("passed", "#0072B2"),
    "early": ("submitted within three turns", "#E69F00"),
    "submitted": ("submitted later", "#F7E3B0"),
    "unclear": ("submitted, when is not known", "#FFFFFF"),
    "unknown": ("stopped, how is not known", "#D9D9D9"),
    "terminal": ("terminal broken", "#444444"),
    "limit": ("limit of time or turns", "#7F7F7F"),
}
"""How a run ends, as Figure 14 classes it: what the legend says, and its colour."""

_STOPS = {
    "terminal_broken": "terminal",
    "time_limit": "limit",
    "turn_ceiling": "limit",
    "unknown": "unknown",
}


@artifact("depth/figure-14", section="I, Figure 14")
def run_ends_figure(corpus: Corpus, *, datasets: Sequence[str] | None = None) -> Figure:
    """How runs without a cap end, as a share of each model's runs.

    One row a model that has evaluation runs and an outcome: ``passed``, or failed and ``early``
    (submitted, with the first completion claim in turn 3 or before), ``submitted``, ``terminal``
    (the session broke) or ``limit`` (of time or turns). Evaluation and free runs count, each with
    a result. Where the turn of the first claim is not known of some, ``unclear`` holds all failed
    submitted runs of that model, and its ``early`` and ``submitted`` are null. ``unknown`` are
    failed runs of which nobody recorded how they ended; only where there are any.

    Args:
        corpus: With runs of purpose ``evaluation``.
        datasets: Only these; ``None`` for those of group ``ours``.
    """
    purposes = ("evaluation", "free")
    found = evaluated(
        corpus, datasets, counts=lambda run: run.purpose in purposes and run.cap is None
    )
    tested = {run.model for run in found.attempted if run.purpose == "evaluation"}
    results = found.results[found.results["model"].isin(tested)]
    models = [model for model in found.models if (results["model"] == model).any()]
    frame = pd.DataFrame(
        [row for model in models for row in _outcomes(model, results[results["model"] == model])],
        columns=["model", "outcome", "runs", "share"],
    )
    unclear = frame[frame["outcome"] == "unclear"]["model"]
    notes = [
        f"{label(model)}: the turn of the first completion claim is not known of some failed "
        "runs, so early ones cannot be told from others."
        for model in unclear
    ]
    return Figure(
        title=(
            "Outcome of every run without a cap, evaluation runs and those that measure depth, as "
            "a share of each model's runs. Failed runs are classed by how they stop."
        ),
        frame=frame,
        provenance=found.provenance,
        draw=lambda backend: _draw(frame, models, backend),
        notes=(*found.notes, *notes),
    )


def endings(runs: pd.DataFrame) -> pd.Series:
    """How each run ends: a key of :data:`OUTCOMES`.

    Args:
        runs: Each with a result: ``passed``, ``stop``, ``first_claim_turn`` and ``turns``.
    """
    claim, turns = numbers(runs["first_claim_turn"]), numbers(runs["turns"])
    # A run that ended within three turns made its first claim by then.
    early = (claim <= EARLY) | (turns <= EARLY)
    found = pd.Series("submitted", runs.index).mask(claim.isna(), "unclear").mask(early, "early")
    stopped = runs["stop"].map(_STOPS)
    return found.mask(stopped.notna(), stopped).mask(runs["passed"].astype(bool), "passed")


def _outcomes(model: str, runs: pd.DataFrame) -> list[dict[str, Any]]:
    found = endings(runs)
    counts: dict[str, float] = {outcome: int((found == outcome).sum()) for outcome in OUTCOMES}
    if counts["unclear"]:
        counts["unclear"] += counts["early"] + counts["submitted"]
        counts |= {"early": float("nan"), "submitted": float("nan")}
    else:
        del counts["unclear"]
    if not counts["unknown"]:
        del counts["unknown"]
    return [
        {"model": model, "outcome": outcome, "runs": count, "share": count / len(runs)}
        for outcome, count in counts.items()
    ]


def _draw(frame: pd.DataFrame, models: list[str], backend: figures.Backend) -> Any:
    import holoviews as hv

    places = {model: float(len(models) - 1 - row) for row, model in enumerate(models)}
    left = dict.fromkeys(models, 0.0)
    shown = hv.Overlay([])
    dark: list[tuple[float, float, str]] = []
    light: list[tuple[float, float, str]] = []
    for outcome, (name, fill) in OUTCOMES.items():
        boxes = []
        for row in frame[frame["outcome"] == outcome].to_dict("records"):
            share = row["share"]
            if pd.isna(share) or not share:
                continue
            start, y = left[row["model"]], places[row["model"]]
            left[row["model"]] = start + share
            said = f"{label(row['model'])}, {name}: {share:.1%} ({row['runs']:.0f} runs)"
            boxes.append(model_shapes.Bar(start, y - 0.36, start + share, y + 0.36, said))
            if share >= 0.05:
                text = (start + share / 2, y, f"{share:.0%}")
                (light if outcome in ("passed", "terminal", "limit") else dark).append(text)
        if boxes:
            shown *= model_shapes.bars(boxes, fill, backend, name=name)
    for places_of, ink in ((dark, figures.DARK), (light, "#FFFFFF")):
        if places_of:
            shown *= model_shapes.texts(places_of, ink, backend)
    return hv.Layout(
        [
            figures.panel(
                shown,
                backend,
                xlabel="share of runs",
                ylabel="",
                xlim=(0, 1),
                yticks=[(places[model], label(model)) for model in models] or [(0.0, "")],
                ylim=(-0.6, max(1, len(models)) - 0.4),
                names=frame["outcome"].nunique(),
            )
        ]
    )
