"""Section 4.4 and Appendix G, Figure 13: our tasks beside the original ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pandas as pd

from depthkit.artifacts import figures, shapes
from depthkit.artifacts.artifact import Figure, artifact
from depthkit.artifacts.datasets import audited, numbers, styles
from depthkit.artifacts.own_tasks import measured_line, one_row, own_tasks
from depthkit.corpus import Corpus
from depthkit.model import Task
from depthkit.protocol import ABOVE
from depthkit.stats import quantile, sign_test


@artifact("depth/figure-13", section="G, Figure 13")
def originals_figure(corpus: Corpus, *, datasets: Sequence[str] | None = None) -> Figure:
    """Our solved tasks against the original tasks of their seed environments.

    The original of a task is the one task with the same ``seed_env`` that is not ours and not
    merged. ``frame`` has one row a pair in which both have a D: ``D``, ``D_original`` (99 for
    above the largest cap), ``W``, ``W_original`` in lines. ``parts["summary"]`` has one row; ``p``
    is that of the two-sided sign test of D, which leaves ties out. What is about W is over the
    ``with_W`` pairs that have both, ``W_ratio_min`` over those whose original has a line.

    Args:
        corpus: What was measured, the original tasks too.
        datasets: Only pairs with our tasks of these; ``None`` for those of group ``ours``.
    """
    own = own_tasks(corpus, datasets)
    originals: dict[str, list[Task]] = defaultdict(list)
    for task in own.others:
        if task.seed_env is not None:
            originals[task.seed_env].append(task)
    everything = audited(corpus).tasks
    everything.index = pd.MultiIndex.from_frame(everything[["dataset", "task_id"]])
    depths, lines = numbers(everything["D"]), numbers(everything["work_lines"])
    several, rows, used = 0, [], []
    solved = own.solved
    for key, depth, work in zip(
        zip(solved["dataset"], solved["task_id"], strict=True),
        solved["D"],
        numbers(solved["work_lines"]),
        strict=True,
    ):
        record = own.records.get(key)
        candidates = originals.get(record.seed_env, []) if record and record.seed_env else []
        several += len(candidates) > 1
        if len(candidates) != 1 or pd.isna(depth):
            continue
        original = (candidates[0].dataset, candidates[0].task_id)
        if pd.isna(depths[original]):
            continue
        used += [key, original]
        rows.append(
            {
                "task_id": key[1],
                "D": int(depth),
                "D_original": int(depths[original]),
                "W": work,
                "W_original": lines[original],
            }
        )
    frame = pd.DataFrame(rows, columns=["task_id", "D", "D_original", "W", "W_original"])
    frame = frame.sort_values("task_id", ignore_index=True)
    summary = _summary(frame)
    notes = list(own.notes)
    if several:
        notes.append(f"{several} tasks share their environment with several others: no pairs.")
    if frame.empty:
        notes.append("The corpus holds no solved task of ours with a measured original task.")
    elif without := int(frame[["W", "W_original"]].isna().any(axis=1).sum()):
        notes.append(f"W is not known of both tasks in {without} pairs, which it leaves out.")
    colour = styles(list(own.tasks["dataset"].unique()) or ["ours"])
    shade = next(iter(colour.values()))
    return Figure(
        title=(
            "Original task of each seed environment against our task from the same environment. "
            f"Left: D, with the number of pairs in each cell; >{own.caps[-1]} means passed only "
            "without a cap. Right: W in lines of the reference solution, on log scales. Dashed "
            "lines mark equal values."
        ),
        frame=frame,
        parts={"summary": summary},
        provenance=measured_line(corpus, everything.loc[used]),
        widths=(1.2, 1),
        draw=lambda backend: _draw(frame, own.caps, shade, backend),
        notes=tuple(notes),
    )


def _summary(frame: pd.DataFrame) -> pd.DataFrame:
    depth, original = frame["D"], frame["D_original"]
    known = frame.dropna(subset=["W", "W_original"])
    work, before = known["W"], known["W_original"]
    ratios = (work / before)[before > 0]
    differs = bool((depth != original).any())
    cells: dict[str, Any] = {
        "pairs": len(frame),
        "original_le_10": int((original <= 10).sum()),
        "original_eq_1": int((original == 1).sum()),
        "ours_ge_20": int((depth >= 20).sum()),
        "ours_deeper": int((depth > original).sum()),
        "p": sign_test(depth, original).p_value if differs else None,
        "ours_longer": int((work > before).sum()) if len(known) else None,
        "with_W": len(known),
        "W": quantile(work, 0.5) if len(known) else None,
        "W_original": quantile(before, 0.5) if len(known) else None,
        "W_ratio_min": float(ratios.min()) if len(ratios) else None,
    }
    return one_row(**(cells if len(frame) else dict.fromkeys(cells)))


def _draw(frame: pd.DataFrame, caps: tuple[int, ...], style: Any, backend: figures.Backend) -> Any:
    import holoviews as hv

    names = [str(cap) for cap in caps] + [f">{caps[-1]}"]
    said = dict(zip((*caps, ABOVE), names, strict=True))
    counts = frame.groupby(["D", "D_original"]).size().rename("tasks").reset_index()
    cells = pd.DataFrame(
        {
            "row": counts["D"].map(said),
            "column": counts["D_original"].map(said),
            "tasks": counts["tasks"],
            "share": counts["tasks"] / max(1, counts["tasks"].max() if len(counts) else 1),
        }
    )
    depths = shapes.grid(
        cells,
        names[::-1],
        names,
        backend,
        xlabel="D of the original task (turns)",
        ylabel="D of our task (turns)",
        diagonal=True,
    )
    known = frame.dropna(subset=["W", "W_original"])
    # the axes are logarithmic
    marks = known.assign(x=known["W_original"].clip(lower=1), y=known["W"].clip(lower=1))
    limits, ticks = figures.log_axis(pd.concat([marks["x"], marks["y"]]))
    plane = hv.Overlay([])
    if len(marks):
        cloud = marks[["x", "y", "task_id", "W", "W_original"]]
        plane = shapes.equal(*limits, backend) * figures.points(
            cloud, "x", "y", style, backend, label="pairs"
        )
    right = figures.panel(
        plane,
        backend,
        xlabel="W of the original task (lines)",
        ylabel="W of our task (lines)",
        logx=True,
        logy=True,
        xticks=ticks,
        yticks=ticks,
        xlim=limits,
        ylim=limits,
    )
    return hv.Layout([depths, right])
