"""Section 4.2, Figure 3: data sets on the plane of depth and work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from depthkit.artifacts import figures
from depthkit.artifacts.artifact import Figure, artifact
from depthkit.artifacts.datasets import Audited, audited, numbers, work_notes
from depthkit.corpus import Corpus
from depthkit.protocol import ABOVE
from depthkit.stats import depth_quantile, quantile

PERCENTILES = (10, 25, 50, 75, 90)
"""Box plots: whiskers at the first and last, box from the second to the fourth, median line."""

SYNTHETIC = "all synthetic"
"""Row of the percentiles over all synthetic data sets together, which gives the dashed lines."""


@artifact("depth/figure-3", section="4.2, Figure 3")
def depth_work_figure(
    corpus: Corpus,
    *,
    datasets: Sequence[str] | None = None,
    caps: Sequence[int] | None = None,
    seed: int = 0,
) -> Figure:
    """Solved tasks by depth and work.

    ``frame`` has one row a solved task with D and W; ``parts["percentiles"]`` one row a data set
    and measure with its percentiles, and one for all synthetic data sets together.
    ``p90_above`` says that the 90th percentile is only known to be greater than ``p90``.

    Args:
        corpus: What was measured.
        datasets: Only these; ``None`` for all.
        caps: A coarser scale of D; ``None`` for all caps.
        seed: Of the jitter that keeps tasks with equal D and W apart.
    """
    chosen = audited(corpus, datasets, caps)
    solved = chosen.solved
    percentiles = _percentiles(chosen)
    drawn = solved.assign(W=numbers(solved["work_lines"]))
    drawn = drawn[["dataset", "group", "task_id", "W", "D"]].dropna(subset=["W", "D"])
    drawn = drawn.sort_values(["dataset", "task_id"], ignore_index=True)
    left_out = len(solved) - len(drawn)
    return Figure(
        title=(
            "Depth and work. Left: each mark is a solved task; marks are moved a little up or "
            f"down so that equal tasks can be told apart, and >{chosen.caps[-1]} means passed only "
            "without a cap. Middle and right: W and D of each data set; boxes span the 25th to "
            "75th percentiles, whiskers the 10th to 90th. Dashed lines mark the 90th percentiles "
            "over the synthetic data sets."
        ),
        frame=drawn,
        parts={"percentiles": percentiles},
        provenance=chosen.provenance,
        widths=(1.7, 1, 1.3),
        draw=lambda backend: _draw(chosen, drawn, percentiles, seed, backend),
        notes=(
            *([f"{left_out} solved tasks have no W or no final D and no mark."] * bool(left_out)),
            *work_notes(chosen),
        ),
    )


def _percentiles(chosen: Audited) -> pd.DataFrame:
    """One row a data set and measure (``W`` or ``D``)."""
    solved = chosen.solved
    samples = [(name, solved[solved["dataset"] == name]) for name in chosen.datasets]
    samples.append((SYNTHETIC, solved[solved["group"] == "synthetic"]))
    rows: list[dict[str, Any]] = []
    for name, tasks in samples:
        work, depth = numbers(tasks["work_lines"]).dropna(), tasks["D"].dropna()
        if len(work):
            row: dict[str, Any] = {"dataset": name, "measure": "W", "n": len(work)}
            for p in PERCENTILES:
                row |= {f"p{p}": quantile(work, p / 100), f"p{p}_above": False}
            rows.append(row)
        if len(depth):
            row = {"dataset": name, "measure": "D", "n": len(depth)}
            for p in PERCENTILES:
                found = depth_quantile(depth, p / 100, caps=chosen.caps)
                row |= {f"p{p}": found.value, f"p{p}_above": found.above}
            rows.append(row)
    numbered = [f"p{p}{suffix}" for p in PERCENTILES for suffix in ("", "_above")]
    return pd.DataFrame(rows, columns=["dataset", "measure", "n", *numbered])


def _draw(
    chosen: Audited,
    drawn: pd.DataFrame,
    percentiles: pd.DataFrame,
    seed: int,
    backend: figures.Backend,
) -> Any:
    """Three panels: the plane, boxes of W, boxes of D."""
    import holoviews as hv

    ticks = figures.cap_ticks(chosen.caps)
    work_range, work_ticks = figures.log_axis(drawn["W"])
    depth_range = (-0.5, len(chosen.caps) + 0.5)
    return hv.Layout(
        [
            figures.panel(
                _plane(chosen, drawn, percentiles, seed, backend),
                backend,
                xlabel="W (lines of the reference solution)",
                ylabel="D (turns)",
                logx=True,
                xticks=work_ticks,
                xlim=work_range,
                yticks=ticks,
                ylim=depth_range,
                names=drawn["dataset"].nunique(),
            ),
            figures.panel(
                _boxes(chosen, percentiles, "W", backend),
                backend,
                xlabel="W (lines)",
                ylabel="",
                logx=True,
                xticks=work_ticks,
                xlim=work_range,
                **_names(chosen),
            ),
            figures.panel(
                _boxes(chosen, percentiles, "D", backend),
                backend,
                xlabel="D (turns)",
                ylabel="",
                xticks=ticks,
                xlim=depth_range,
                **_names(chosen),
            ),
        ]
    )


def _plane(
    chosen: Audited,
    drawn: pd.DataFrame,
    percentiles: pd.DataFrame,
    seed: int,
    backend: figures.Backend,
) -> Any:
    import holoviews as hv

    jitter = np.random.default_rng(seed).uniform(-0.28, 0.28, len(drawn))
    largest = chosen.caps[-1]
    marks = pd.DataFrame(
        {
            "x": drawn["W"].clip(lower=1),  # the axis is logarithmic
            "y": figures.cap_position(drawn["D"], chosen.caps) + jitter,
            "task": drawn["dataset"] + "/" + drawn["task_id"],
            "W": [f"{work:g}" for work in drawn["W"]],
            "D": [f">{largest}" if depth > largest else f"{depth:g}" for depth in drawn["D"]],
        }
    )
    lines = percentiles[percentiles["dataset"] == SYNTHETIC].set_index("measure")["p90"]
    if marks.empty:
        return hv.Overlay([])
    plane = figures.rules(
        lines.get("W"),
        figures.cap_position(lines["D"], chosen.caps) if "D" in lines else None,
        backend,
    )
    for name in chosen.datasets:
        cloud = marks[drawn["dataset"] == name]
        if len(cloud):
            plane *= figures.points(cloud, "x", "y", chosen.styles[name], backend, label=name)
    return plane


def _boxes(
    chosen: Audited, percentiles: pd.DataFrame, measure: str, backend: figures.Backend
) -> Any:
    rows = percentiles[
        (percentiles["measure"] == measure) & (percentiles["dataset"] != SYNTHETIC)
    ].copy()
    rows["place"] = [_place(chosen, name) for name in rows["dataset"]]
    for column in (f"p{p}" for p in PERCENTILES):
        if measure == "W":
            rows[column] = rows[column].clip(lower=1)  # the axis is logarithmic
            continue
        # A percentile above the largest cap is drawn there; a lower bound below it at its value.
        beyond = rows[f"{column}_above"].astype(bool) & rows[column].ge(chosen.caps[-1])
        rows[column] = figures.cap_position(rows[column].mask(beyond, ABOVE), chosen.caps)
    return figures.boxes(rows, chosen.styles, backend)


def _place(chosen: Audited, name: str) -> float:
    """Row of a data set in the box plots, the first at the top."""
    return float(len(chosen.datasets) - 1 - chosen.datasets.index(name))


def _names(chosen: Audited) -> dict[str, Any]:
    """The vertical axis of the box plots."""
    return {
        "yticks": [(_place(chosen, name), name) for name in chosen.datasets] or [(0.0, "")],
        "ylim": (-0.6, max(1, len(chosen.datasets)) - 0.4),
    }
