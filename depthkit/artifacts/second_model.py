"""Appendix E.1: what the second measurement model changes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from depthkit.artifacts import figures, shapes
from depthkit.artifacts.artifact import Figure, artifact
from depthkit.artifacts.datasets import depth_share, is_existing
from depthkit.artifacts.difficulty import mark, quadrant_rows, short
from depthkit.artifacts.samples import (
    CAPTION,
    CORRELATION,
    EVALUATED,
    OURS,
    Study,
    correlate,
    study,
)
from depthkit.corpus import Corpus
from depthkit.stats import SampleError, spearman
from depthkit.stats.correlation import RESAMPLES

EXISTING = "existing"
SOURCES = {"both": "D", "first": "D_first"}
"""Where D is from: all measurement models, or the first alone; with the column that holds it."""

PASS_RATE, RATING = "pass rate", "author rating"


@artifact("depth/figure-10", section="E.1, Figure 10")
def second_model_figure(
    corpus: Corpus,
    *,
    datasets: Sequence[str] | None = None,
    caps: Sequence[int] | None = None,
) -> Figure:
    """Share of deep tasks before and after the later measurement models may lower D.

    ``frame`` has one row an existing data set: the share of solved tasks with D ≥ 5 by the first
    model's estimate and by the smallest over the models, the solved tasks that a later model was
    run on and those whose D it lowers, and Spearman's correlation of the two estimates.
    ``parts["pooled"]`` has the same over all existing data sets and over ours.

    Args:
        corpus: What was measured.
        datasets: Only these; ``None`` for all.
        caps: A coarser scale of D; ``None`` for all caps.
    """
    about = study(corpus, datasets, caps, ())
    later = corpus.models[1:]
    runs = corpus.runs()
    runs = runs[
        (runs["purpose"] == "ladder") & (runs["verdict"] != "none") & runs["model"].isin(later)
    ]
    tried = set(zip(runs["dataset"], runs["task_id"], strict=True))
    solved = about.solved.dropna(subset=["D", "D_first"])
    keys = zip(solved["dataset"], solved["task_id"], strict=True)
    solved = solved.assign(run_on=[key in tried for key in keys])
    existing = solved[is_existing(solved["group"])]
    rows, notes = [], []
    for name in about.chosen.datasets:
        tasks = existing[existing["dataset"] == name]
        if len(tasks):
            row, why = _effect(tasks, about.chosen.caps, bool(later))
            rows.append({"dataset": name} | row)
            notes += [f"{name}: {why}"] if why else []
    frame = pd.DataFrame(rows, columns=["dataset", *_EFFECT])
    pooled = []
    for group, tasks in ((EXISTING, existing), ("ours", solved[solved["group"] == OURS])):
        if len(tasks):
            row, why = _effect(tasks, about.chosen.caps, bool(later))
            notes += [f"{group}: {why}"] if why else []
            deep = tasks[["D_first", "D"]].ge(5).groupby(tasks["dataset"]).sum()
            falls = int((deep["D"] < deep["D_first"]).sum()) if later else np.nan
            pooled.append({"group": group} | row | {"falls": falls})
    if not later:
        notes = ["The corpus was measured with one model: there is no second one to compare."]
    if left_out := len(about.solved) - len(solved):
        notes.append(f"{left_out} solved tasks without a final D are left out.")
    first = corpus.models[0] if corpus.models else "the first model"
    return Figure(
        title=(
            f"Share of solved tasks with D ≥ 5 when D comes from {first} alone (open) and from "
            f"the smaller of its estimate and that of {', '.join(later) or 'later models'} "
            "(filled). In brackets: tasks whose D is lowered, of the solved tasks with D > 1 on "
            "which a later model was run. A filled mark alone stands for two equal shares."
        ),
        frame=frame,
        parts={"pooled": pd.DataFrame(pooled, columns=["group", *_EFFECT, "falls"])},
        provenance=about.provenance,
        draw=lambda backend: _draw_effect(frame, backend),
        notes=tuple(notes),
    )


_EFFECT = [
    "solved",
    "D_ge_5_first",
    "D_ge_5",
    "run_on",
    "lowered",
    "lowered_by_1",
    "lowest_lowered",
    "rho",
    "deep_first",
    "deep_lost",
]


def _effect(
    tasks: pd.DataFrame, caps: tuple[int, ...], later: bool
) -> tuple[dict[str, Any], str | None]:
    """What the later models change on these tasks; only counts of the first without any."""
    first, smallest = tasks["D_first"], tasks["D"]
    row: dict[str, Any] = dict.fromkeys(_EFFECT, np.nan)
    row |= {"solved": len(tasks), "D_ge_5_first": depth_share(first, least=5)}
    row["deep_first"] = int((first >= 5).sum())
    if not later:
        return row, None
    lowered = smallest < first
    steps = _steps(first, caps) - _steps(smallest, caps)
    row |= {
        "D_ge_5": depth_share(smallest, least=5),
        "run_on": int(tasks["run_on"].sum()),
        "lowered": int(lowered.sum()),
        "lowered_by_1": int((steps == 1).sum()),
        "lowest_lowered": smallest[lowered].min(),
        "deep_lost": int(((first >= 5) & (smallest < 5)).sum()),
    }
    try:
        row["rho"] = spearman(smallest, first, resamples=0, permutations=0).value
    except SampleError as error:
        return row, f"no correlation of the two estimates over {len(tasks)} tasks: {error}"
    return row, None


def _steps(depth: pd.Series, caps: tuple[int, ...]) -> pd.Series:
    """Place of D among the caps; above all of them is the place after the last."""
    return pd.Series(np.searchsorted(caps, depth), depth.index)


def _draw_effect(frame: pd.DataFrame, backend: figures.Backend) -> Any:
    import holoviews as hv

    marks, names = [], []
    for place, row in enumerate(frame.to_dict("records")):
        known = not pd.isna(row["lowered"])
        of = f" ({row['lowered']:.0f} of {row['run_on']:.0f})" if known else ""
        names.append(f"{row['dataset']}{of}")
        fill, nothing = shapes.colour(row["dataset"]), float("nan")
        for column, filled, whose in (("D_ge_5_first", False, "first"), ("D_ge_5", True, "both")):
            said = f"{row['dataset']}, {whose}: {row[column]:.1%} of {row['solved']} tasks"
            # the line between the two, drawn once
            low, high = (row["D_ge_5"], row["D_ge_5_first"]) if filled else (nothing, nothing)
            marks.append(shapes.Mark(place, row[column], low, high, fill, filled, said=said))
    xlabel = "share of solved tasks with D ≥ 5"
    return hv.Layout([shapes.forest(marks, names, backend, xlabel=xlabel, zero=False)])


@artifact("depth/figure-11", section="E.1, Figure 11")
def model_set_figure(
    corpus: Corpus,
    *,
    datasets: Sequence[str] | None = None,
    caps: Sequence[int] | None = None,
    evaluated: Sequence[str] = EVALUATED,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Figure:
    """The tests of depth against difficulty, with D from all measurement models and from the first.

    ``frame`` has one row a sample, outcome, pair of variables and source of D. Pass rates of ours
    leave out the models that measure depth. ``parts["quadrants"]`` repeats the split of Section
    4.3 and ``parts["shallow"]`` the share of solved synthetic tasks with D ≤ 3.

    Args:
        corpus: What was measured.
        datasets: Only these; ``None`` for all.
        caps: A coarser scale of D; ``None`` for all caps.
        evaluated: Models whose mean is the pass rate of our tasks, measuring ones left out.
        resamples: Of the bootstrap over tasks.
        seed: Of the bootstrap.
    """
    others = [model for model in evaluated if model not in corpus.models]
    about = study(corpus, datasets, caps, others)
    frame, notes = _tests(about, resamples, seed)
    quadrants, shallow = [], []
    for source, column in SOURCES.items():
        found, why = quadrant_rows(about.solved, column, resamples=resamples, seed=seed)
        quadrants.append(found.assign(D_from=source))
        notes += [f"D from {source}: {why}"] if why else []
        depth = about.solved.loc[about.solved["group"] == "synthetic", column].dropna()
        if len(depth):
            row = {"group": "synthetic", "D_from": source, "D_le_3": depth_share(depth, most=3)}
            shallow.append(row | {"n": len(depth)})
    return Figure(
        title=(
            "Tests of depth against difficulty, with D from all measurement models (filled) and "
            "from the first alone (open), with the number of tasks. Pass rates of ours leave out "
            "the models that measure depth; human-curated tasks and ours are pooled last. "
            f"{CAPTION}"
        ),
        frame=frame,
        parts={
            "quadrants": pd.concat(quadrants, ignore_index=True),
            "shallow": pd.DataFrame(shallow, columns=["group", "D_from", "D_le_3", "n"]),
        },
        provenance=about.provenance,
        draw=lambda backend: _draw_tests(frame, backend),
        notes=(*about.notes, *notes),
    )


def _tests(about: Study, resamples: int, seed: int) -> tuple[pd.DataFrame, list[str]]:
    rows, notes = [], []
    for sample, outcome in product(about.samples(), (PASS_RATE, RATING)):
        if sample.tasks[outcome].isna().all():
            continue
        # Ratings are compared within a data set: only there do they share a scale
        if outcome == RATING and sample.tasks["dataset"].nunique() > 1:
            continue
        if outcome == RATING and sample.name not in about.chosen.datasets:
            continue
        for (x, given), source in product((("D", "W"), ("N", "D")), SOURCES):
            tasks = sample.tasks.assign(D=sample.tasks[SOURCES[source]])
            row, why = correlate(tasks, x, given, outcome, resamples=resamples, seed=seed)
            key = {"sample": sample.name, "outcome": outcome, "x": x, "given": given}
            rows.append(key | {"D_from": source} | row)
            if why:
                notes.append(f"{sample.name}, {outcome}, {x} given {given}, D {source}: {why}")
    keys = ["sample", "outcome", "x", "given", "D_from"]
    return pd.DataFrame(rows, columns=[*keys, *CORRELATION]), notes


def _draw_tests(frame: pd.DataFrame, backend: figures.Backend) -> Any:
    import holoviews as hv

    keys = ["sample", "outcome", "x", "given"]
    marks, names = [], []
    for place, (key, rows) in enumerate(frame.groupby(keys, sort=False)):
        sample, outcome, x, given = key
        names.append(f"{short(str(sample))}: {outcome} and {x} given {given} ({rows['n'].max()})")
        for row in rows.to_dict("records"):
            both = row["D_from"] == "both"
            marks.append(mark(row, place, filled=both, shift=0.16 if both else -0.16))
    xlabel = "rank partial correlation"
    return hv.Layout([shapes.forest(marks, names, backend, xlabel=xlabel)])
