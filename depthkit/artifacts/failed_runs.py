"""Appendix E.2: whether runs that fail by chance explain the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from depthkit.artifacts import figures, shapes
from depthkit.artifacts.artifact import Figure, artifact
from depthkit.artifacts.datasets import GROUPS, depth_share
from depthkit.artifacts.difficulty import depth_grid, main_depth, mark, short
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
from depthkit.corpus import Corpus
from depthkit.stats.correlation import RESAMPLES

ALL, BOTH_PASS = "all", "R = 1"


@artifact("depth/figure-12", section="E.2, Figure 12")
def failed_runs_figure(
    corpus: Corpus,
    *,
    datasets: Sequence[str] | None = None,
    caps: Sequence[int] | None = None,
    evaluated: Sequence[str] = EVALUATED,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Figure:
    """The main results over all solved tasks, and over those whose two free runs both pass.

    R is the share of the two runs without a cap that pass; where it is 1, a sufficient cap rarely
    fails twice. ``frame`` has the rank partial correlation of the pass rate with D controlling for
    W as Figure 4 computes it; ``parts["depths"]`` the shares of tasks by D, with D as in Table 1,
    and ``parts["distribution"]`` the counts behind them.

    Args:
        corpus: What was measured.
        datasets: Only these; ``None`` for all.
        caps: A coarser scale of D; ``None`` for all caps.
        evaluated: Models whose mean is the pass rate of our tasks.
        resamples: Of the bootstrap over tasks.
        seed: Of the bootstrap.
    """
    about = study(corpus, datasets, caps, evaluated)
    rows, notes = [], []
    for sample in about.samples():
        if sample.name not in (CURATED, OURS, POOLED):
            continue
        tasks = sample.tasks.assign(D=main_depth(sample.tasks))
        for runs, chosen in _by_runs(tasks):
            row, why = correlate(chosen, "D", "W", "pass rate", resamples=resamples, seed=seed)
            rows.append({"sample": sample.name, "runs": runs} | row)
            notes += [f"{sample.name}, {runs} runs: {why}"] if why else []
    frame = pd.DataFrame(rows, columns=["sample", "runs", *CORRELATION])
    depths, distribution = _depths(about.solved)
    return Figure(
        title=(
            "Robustness of D to failed runs: over all solved tasks (filled) and over those with "
            "R = 1 (open), whose two runs without a cap both pass, with the number of tasks. "
            "Left: rank partial correlation of the pass rate with D controlling for W; "
            "human-curated tasks and ours are pooled last. Right: "
            f"distribution of D; numbers are task counts. {CAPTION}"
        ),
        frame=frame,
        parts={"depths": depths, "distribution": distribution},
        provenance=about.provenance,
        widths=(1, 1.15),
        draw=lambda backend: _draw(about, frame, distribution, backend),
        notes=(*about.notes, *notes),
    )


def _by_runs(tasks: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    return [(ALL, tasks), (BOTH_PASS, tasks[tasks["R"] == 1])]


def _depths(solved: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Shares at least or at most as deep, and the whole distribution, by group."""
    rows, counts = [], []
    for group in GROUPS:
        for runs, tasks in _by_runs(solved[solved["group"] == group]):
            depth = tasks["D"].dropna()
            if depth.empty:
                continue
            rows.append(
                {
                    "group": group,
                    "runs": runs,
                    "D_le_3": depth_share(depth, most=3),
                    "D_ge_5": depth_share(depth, least=5),
                    "D_ge_40": depth_share(depth, least=40),
                    "n": len(depth),
                }
            )
            counts += [
                {"group": group, "runs": runs, "D": D, "tasks": int(n), "share": n / len(depth)}
                for D, n in depth.value_counts().sort_index().items()
            ]
    return (
        pd.DataFrame(rows, columns=["group", "runs", "D_le_3", "D_ge_5", "D_ge_40", "n"]),
        pd.DataFrame(counts, columns=["group", "runs", "D", "tasks", "share"]),
    )


def _draw(
    about: Study, frame: pd.DataFrame, distribution: pd.DataFrame, backend: figures.Backend
) -> Any:
    import holoviews as hv

    marks, names = [], []
    for row in frame[frame["n"] > 0].to_dict("records"):
        names.append(f"{short(row['sample'])}, {row['runs']} ({row['n']})")
        marks.append(mark(row, len(names) - 1, filled=row["runs"] == ALL))
    left = shapes.forest(marks, names, backend, xlabel="rank partial correlation with pass rate")
    totals = distribution.groupby(["group", "runs"])["tasks"].transform("sum")
    rows = distribution.assign(
        row=[
            f"{GROUPS[group]}, {runs} ({n})"
            for group, runs, n in zip(
                distribution["group"], distribution["runs"], totals, strict=True
            )
        ]
    )
    return hv.Layout([left, depth_grid(rows, "row", about.chosen.caps, backend)])
