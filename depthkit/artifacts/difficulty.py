"""Section 4.3: depth against the pass rates of other models and the ratings of task authors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from depthkit.artifacts import figures, shapes
from depthkit.artifacts.artifact import Figure, Table, artifact
from depthkit.artifacts.datasets import Audited
from depthkit.artifacts.levels import HARD, level
from depthkit.artifacts.samples import (
    CAPTION,
    CORRELATION,
    CURATED,
    EVALUATED,
    OURS,
    POOLED,
    Study,
    correlate,
    study,
)
from depthkit.artifacts.tables import MISSING, plain_table
from depthkit.corpus import Corpus
from depthkit.protocol import ABOVE
from depthkit.stats import SampleError, quadrant_test
from depthkit.stats.correlation import RESAMPLES

HARD_NAME, EASIER_NAME = "hard", "easy or medium"
NOT_SOLVED = "not\nsolved"


@artifact("depth/figure-4", section="4.3, Figure 4")
def difficulty_figure(
    corpus: Corpus,
    *,
    datasets: Sequence[str] | None = None,
    caps: Sequence[int] | None = None,
    evaluated: Sequence[str] = EVALUATED,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Figure:
    """Depth against the pass rates of other models, and against the ratings of task authors.

    ``frame`` has one row a sample and pair of variables: the rank partial correlation of the pass
    rate with ``x``, controlling for ``given``, over solved tasks. Pass rates are public ones for
    human-curated tasks and the mean of the evaluated models for ours. As one of these may measure
    depth too, D of ours is the first measurement model's alone; that of all others is the smallest
    over the models. ``low`` and ``high`` are of the percentile bootstrap.

    ``parts["ratings"]`` counts the sampled tasks with an author rating by that rating, and those
    of them with D ≥ 2; ``parts["rating_depths"]`` has their whole distribution of D (99 for above
    the largest cap, missing for tasks that are not solved).

    Args:
        corpus: What was measured.
        datasets: Only these; ``None`` for all.
        caps: A coarser scale of D; ``None`` for all caps.
        evaluated: Models whose mean is the pass rate of our tasks.
        resamples: Of the bootstrap over tasks.
        seed: Of the bootstrap.
    """
    about = study(corpus, datasets, caps, evaluated)
    frame, missing = pass_rate_rows(about, resamples=resamples, seed=seed)
    ratings, depths, unfinished = _ratings(about.chosen)
    return Figure(
        title=(
            "Depth against difficulty. Left: rank partial correlation of the pass rate with D "
            "controlling for W (filled) and with N controlling for D (open), with 95% intervals; "
            "pass rates are public ones for human-curated tasks and the mean of other models for "
            "ours, whose D is the first measurement model's; both are pooled last. Right: D "
            f"of the sampled tasks by the rating of their authors; numbers are task "
            f"counts. {CAPTION}"
        ),
        frame=frame,
        parts={"ratings": ratings, "rating_depths": depths},
        provenance=about.provenance,
        widths=(1.25, 1),
        draw=lambda backend: _draw_figure_4(about, frame, depths, backend),
        notes=(*about.notes, *missing, *unfinished),
    )


def main_depth(tasks: pd.DataFrame) -> pd.Series:
    """The D of the main text: the first model's alone for ours, the smallest for all others."""
    return tasks["D"].mask(tasks["group"].eq(OURS), tasks["D_first"])


def pass_rate_rows(about: Study, *, resamples: int, seed: int) -> tuple[pd.DataFrame, list[str]]:
    """The correlations of Figure 4's left panel, and why some are missing."""
    rows, missing = [], []
    for sample in about.samples():
        tasks = sample.tasks.assign(D=main_depth(sample.tasks))
        for x, given in (("D", "W"), ("N", "D")):
            row, why = correlate(tasks, x, given, "pass rate", resamples=resamples, seed=seed)
            rows.append({"sample": sample.name, "x": x, "given": given} | row)
            missing += [f"{sample.name}, {x} given {given}: {why}"] if why else []
    return pd.DataFrame(rows, columns=["sample", "x", "given", *CORRELATION]), missing


def _ratings(chosen: Audited) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Counts by rating, the distribution of D behind them, and what they leave out."""
    tasks = chosen.tasks[chosen.tasks["solved"].notna()]
    places = tasks["author_rating"].map(level, na_action="ignore").astype(float)
    sampled = tasks[places.notna()].assign(
        rating=np.where(places[places.notna()] >= HARD, HARD_NAME, EASIER_NAME)
    )
    rows, depths, notes = [], [], []
    for name in (HARD_NAME, EASIER_NAME):
        members = sampled[sampled["rating"] == name]
        if members.empty:
            continue
        rows.append(
            {"rating": name, "sampled": len(members), "D_ge_2": int((members["D"] >= 2).sum())}
        )
        solved = members["solved"].astype(bool)
        found = members["D"].where(solved).value_counts(dropna=False).sort_index()
        depths += [
            {"rating": name, "D": D, "tasks": int(n), "share": n / len(members)}
            for D, n in found.items()
        ]
        if unfinished := int((solved & members["D"].isna()).sum()):
            notes.append(f"{unfinished} solved tasks rated {name} have no final D.")
    names = sorted(sampled["dataset"].unique())
    if len(names) > 1:
        notes.append(f"Ratings are of {', '.join(names)} together.")
    if unread := int((tasks["author_rating"].notna() & places.isna()).sum()):
        notes.append(f"{unread} tasks have an author rating whose order is not known.")
    return (
        pd.DataFrame(rows, columns=["rating", "sampled", "D_ge_2"]),
        pd.DataFrame(depths, columns=["rating", "D", "tasks", "share"]),
        notes,
    )


def _draw_figure_4(
    about: Study, frame: pd.DataFrame, depths: pd.DataFrame, backend: figures.Backend
) -> Any:
    import holoviews as hv

    marks, names = [], []
    for row in frame[frame["n"] > 0].to_dict("records"):
        filled = row["x"] == "D"
        names.append(f"{short(row['sample'])}: {row['x']} given {row['given']} ({row['n']})")
        marks.append(mark(row, len(names) - 1, filled=filled))
    left = shapes.forest(marks, names, backend, xlabel="rank partial correlation with pass rate")
    return hv.Layout([left, depth_grid(depths, "rating", about.chosen.caps, backend)])


def short(sample: str) -> str:
    """How a sample is called beside a row of a figure."""
    return "pooled" if sample == POOLED else sample


def mark(row: dict[Any, Any], place: int, *, filled: bool, shift: float = 0.0) -> shapes.Mark:
    """A row of correlations as a mark of a forest plot."""
    said = f"{row['sample']}: {row['rho']:+.2f} ({row['low']:+.2f} to {row['high']:+.2f}), "
    said += f"{row['n']} tasks"
    fill = shapes.colour(row["sample"])
    return shapes.Mark(
        place, row["rho"], row["low"], row["high"], fill, filled=filled, shift=shift, said=said
    )


def depth_grid(
    depths: pd.DataFrame, key: str, caps: tuple[int, ...], backend: figures.Backend
) -> Any:
    """Distributions of D, one row each value of ``key``; the last column is for unsolved tasks."""
    names = {float(cap): str(cap) for cap in caps} | {float(ABOVE): f">{caps[-1]}"}
    cells = depths.assign(
        row=depths[key], column=[names.get(depth, NOT_SOLVED) for depth in depths["D"]]
    )
    columns = [*names.values()]
    if NOT_SOLVED in set(cells["column"]):
        columns.append(NOT_SOLVED)
    return shapes.grid(cells, list(dict.fromkeys(cells["row"])), columns, backend, xlabel="D")


@artifact("depth/section-4.3", section="4.3, text")
def difficulty_text(
    corpus: Corpus,
    *,
    datasets: Sequence[str] | None = None,
    caps: Sequence[int] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Table:
    """What the text of Section 4.3 says of author ratings, and of tasks large in D, W or both.

    ``frame`` has the rank partial correlations of the author rating with ``x``, controlling for
    ``given``, over solved tasks with a rating. ``parts["quadrants"]`` splits the solved
    human-curated tasks with a public pass rate at D = 2 and at their median W (D ≥ 2 and W at or
    above the median are large) and gives the mean percentile of the pass rate within the data set
    of each; lower is harder.

    Args:
        corpus: What was measured.
        datasets: Only these; ``None`` for all.
        caps: A coarser scale of D; ``None`` for all caps.
        resamples: Of the bootstrap over tasks.
        seed: Of the bootstrap.
    """
    about = study(corpus, datasets, caps, ())
    rated = about.solved[about.solved["author rating"].notna()]
    rows, notes = [], []
    for x, given in (("D", "W"), ("W", "D"), ("N", "D")):
        row, why = correlate(rated, x, given, "author rating", resamples=resamples, seed=seed)
        rows.append({"x": x, "given": given} | row)
        notes += [f"Author rating with {x} given {given}: {why}"] if why else []
    frame = pd.DataFrame(rows, columns=["x", "given", *CORRELATION])
    quadrants, why = quadrant_rows(about.solved, "D", resamples=resamples, seed=seed)
    notes += [why] if why else []
    names = sorted(rated["dataset"].unique())
    return Table(
        title=(
            "Above: rank partial correlations of the author rating with D, W and N, each "
            f"controlling for another, over solved tasks{_of(names)}. Below: mean percentile "
            "within its data set of the public pass rate (lower is harder) of human-curated tasks "
            "split at D = 2 and at the median W. Intervals are 95% by percentile bootstrap over "
            "tasks; Fisher's stand beside those of the correlations."
        ),
        frame=frame,
        parts={"quadrants": quadrants},
        provenance=about.chosen.provenance,
        draw=lambda: _text_table(frame, quadrants),
        notes=(*about.notes, *notes),
    )


def quadrant_rows(
    solved: pd.DataFrame, depth: str, *, resamples: int, seed: int
) -> tuple[pd.DataFrame, str | None]:
    """Tasks large in both D and W, in one, or in neither, with the mean percentile of each."""
    known = solved[solved["group"] == CURATED]
    known = known.dropna(subset=[depth, "W", "pass rate"])
    columns = ["large", "both", "percentile", "low", "high", "n", "W_split", "p"]
    try:
        found = quadrant_test(
            known[depth],
            known["W"],
            known["pass rate"],
            known["dataset"],
            resamples=resamples,
            seed=seed,
        )
    except SampleError as error:
        return pd.DataFrame(columns=columns), f"No quadrants of D and W: {error}"
    rows = [
        {
            "large": name,
            "both": "yes" if name == "both" else "no",
            "percentile": float("nan") if part.value is None else part.value,
            "low": part.interval.low if part.interval else float("nan"),
            "high": part.interval.high if part.interval else float("nan"),
            "n": part.n,
            "W_split": found.work_split,
            "p": found.p_value if name == "both" and found.p_value is not None else float("nan"),
        }
        for name, part in (
            ("both", found.both),
            ("D", found.deep_only),
            ("W", found.large_only),
            ("neither", found.neither),
        )
    ]
    return pd.DataFrame(rows, columns=columns), None


def _of(names: list[str]) -> str:
    return f" of {', '.join(names)}" if names else ""


def _text_table(frame: pd.DataFrame, quadrants: pd.DataFrame) -> Any:
    shown = [
        {
            "part": "Author rating",
            " ": f"{row['x']} given {row['given']}",
            "Value": signed(row["rho"]),
            "95% interval": interval(row["low"], row["high"], signed),
            "Fisher's": interval(row["fisher_low"], row["fisher_high"], signed),
            "p": chance(row["p"]),
            "Tasks": str(row["n"]),
        }
        for row in frame.to_dict("records")
    ]
    names = {"both": "Large in both", "D": "In D only", "W": "In W only", "neither": "In neither"}
    shown += [
        {
            "part": "Percentile of the pass rate",
            " ": names[row["large"]],
            "Value": plain(row["percentile"]),
            "95% interval": interval(row["low"], row["high"], plain),
            "Fisher's": MISSING,
            "p": chance(row["p"]) if row["large"] == "both" else MISSING,
            "Tasks": str(row["n"]),
        }
        for row in quadrants.to_dict("records")
    ]
    return plain_table(pd.DataFrame(shown), "depth-section-4-3", rows=" ", groups="part")


def signed(value: float) -> str:
    """A correlation as the papers print it."""
    return MISSING if pd.isna(value) else f"{value:+.2f}"


def plain(value: float) -> str:
    """A number with two decimals."""
    return MISSING if pd.isna(value) else f"{value:.2f}"


def chance(p: float) -> str:
    """A p-value with two digits that tell."""
    return MISSING if pd.isna(p) else f"{p:.2g}"


def interval(low: float, high: float, form: Any) -> str:
    """Both ends of an interval."""
    return MISSING if pd.isna(low) else f"{form(low)} to {form(high)}"
