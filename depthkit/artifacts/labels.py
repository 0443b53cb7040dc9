"""Appendix D, Figure 8: difficulty labels against released pass rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from depthkit.artifacts import figures, shapes
from depthkit.artifacts.artifact import Figure, artifact
from depthkit.artifacts.datasets import audited, numbers
from depthkit.artifacts.levels import level, level_name
from depthkit.artifacts.samples import source_notes, task_details
from depthkit.corpus import Corpus
from depthkit.stats import SampleError, spearman
from depthkit.stats.correlation import RESAMPLES

_RHO = ["dataset", "rho", "low", "high", "fisher_low", "fisher_high", "p", "n", "degenerate"]


@artifact("depth/figure-8", section="D, Figure 8")
def labels_figure(
    corpus: Corpus,
    *,
    datasets: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Figure:
    """Mean pass rate at each difficulty level, over every task with a released pass rate.

    Tasks need not be measured. The label is the author rating where a data set has one, otherwise
    the label set during generation. A pass rate that all tasks derived from one seed share (the
    same ``parent``, by any number of steps) was released for the lineage and counts once.

    ``frame`` has one row a data set and level, easiest first; ``parts["rho"]`` the rank
    correlation of pass rate and label in each data set.

    Args:
        corpus: With tasks that have a ``public_pass_rate`` and a label.
        datasets: Only these; ``None`` for all.
        resamples: Of the bootstrap over tasks.
        seed: Of the bootstrap.
    """
    chosen = audited(corpus, datasets)
    fields = ["author_rating", "generated_label", "parent", "public_pass_rate", "provenance"]
    tasks = task_details(corpus, datasets, fields)
    parents = dict(
        zip(zip(tasks["dataset"], tasks["task_id"], strict=True), tasks["parent"], strict=True)
    )
    lineages = [_lineage(name, task_id, parents) for name, task_id in parents]
    tasks = tasks.assign(pass_rate=numbers(tasks["public_pass_rate"]), lineage=lineages)
    tasks = tasks.dropna(subset=["pass_rate"])
    rows, rhos, notes, used = [], [], [], []
    for name in chosen.datasets:
        found, said = _labelled(tasks[tasks["dataset"] == name], name)
        notes += said
        if found.empty:
            continue
        used.append(found)
        by_level = found.groupby(["place", "level"], sort=True)["pass_rate"].agg(["size", "mean"])
        rows += [
            {"dataset": name, "level": each, "tasks": int(size), "pass_rate": mean}
            for (_, each), size, mean in by_level.itertuples(name=None)
        ]
        rho, why = _rho(found, resamples, seed)
        rhos.append({"dataset": name} | rho)
        notes += [f"{name}: {why}"] if why else []
    frame = pd.DataFrame(rows, columns=["dataset", "level", "tasks", "pass_rate"])
    rho_frame = pd.DataFrame(rhos, columns=_RHO)
    counted = pd.concat(used) if used else tasks.iloc[:0]
    kinds = " and ".join(f"{n} {kind}" for kind, n in counted["provenance"].value_counts().items())
    return Figure(
        title=(
            "Mean pass rate at each difficulty level, from easiest to hardest, over all tasks "
            "with a released pass rate (lineages where it was released for these), with the "
            "number of tasks over each bar, and the rank correlation (rho) of the pass rate with "
            "the label."
        ),
        frame=frame,
        parts={"rho": rho_frame},
        provenance=f"{kinds or 'no'} tasks with a released pass rate · corpus {corpus.name}",
        widths=tuple((2 + n) / 6 for n in frame.groupby("dataset", sort=False).size()) or (1.0,),
        draw=lambda backend: _draw(frame, rho_frame, backend),
        notes=(*source_notes(corpus, counted[["dataset", "task_id"]]), *notes),
    )


def _labelled(tasks: pd.DataFrame, name: str) -> tuple[pd.DataFrame, list[str]]:
    """One row a task, or lineage, with the ``level`` of its label and the ``place`` of that."""
    field = "author_rating" if tasks["author_rating"].notna().any() else "generated_label"
    labelled = tasks.dropna(subset=[field])
    labelled = labelled.assign(
        level=labelled[field].map(level_name), place=labelled[field].map(level).astype(float)
    )
    known = labelled.dropna(subset=["place"])
    notes = []
    if tasks.empty or len(known) < len(tasks):
        without = len(tasks) - len(labelled)
        unread = sorted(set(labelled.loc[labelled["place"].isna(), field]))
        if tasks.empty:
            return known, [f"{name}: no task has a released pass rate."]
        if without:
            notes.append(f"{name}: {without} tasks with a released pass rate have no label.")
        if unread:
            notes.append(f"{name}: the order of these labels is not known: {', '.join(unread)}.")
    shared = known.groupby("lineage")["pass_rate"].transform("nunique").eq(1)
    again = known.duplicated(["lineage", "level"]) & shared
    if again.any():
        notes.append(
            f"{name}: {again.sum()} tasks share the pass rate of their lineage with another task "
            "and are counted once."
        )
    return known[~again], notes


def _lineage(dataset: str, task_id: str, parents: dict[tuple[str, str], Any]) -> str:
    """The task that this one was derived from, by any number of steps."""
    seen = {task_id}
    while (parent := parents.get((dataset, task_id))) is not None and parent not in seen:
        seen.add(parent)
        task_id = parent
    return task_id


def _rho(tasks: pd.DataFrame, resamples: int, seed: int) -> tuple[dict[str, Any], str | None]:
    row: dict[str, Any] = dict.fromkeys(_RHO[1:], float("nan")) | {"n": len(tasks)}
    try:
        found = spearman(tasks["place"], tasks["pass_rate"], resamples=resamples, seed=seed)
    except SampleError as error:
        return row, f"no correlation of label (x) and pass rate (y): {error}"
    row |= {"rho": found.value, "p": found.p_value, "degenerate": found.degenerate}
    for prefix, interval in (("", found.percentile), ("fisher_", found.fisher)):
        if interval is not None:
            row |= {f"{prefix}low": interval.low, f"{prefix}high": interval.high}
    return row, " ".join(found.notes) or None


def _draw(frame: pd.DataFrame, rhos: pd.DataFrame, backend: figures.Backend) -> Any:
    import holoviews as hv

    panels: list[Any] = []
    rho_of: dict[Any, float] = dict(zip(rhos["dataset"], rhos["rho"], strict=True))
    for name, rows in frame.groupby("dataset", sort=False):
        rho = rho_of[name]
        said = "" if pd.isna(rho) else f"   \N{GREEK SMALL LETTER RHO} = {rho:+.2f}"
        panels.append(
            shapes.bars(
                rows["pass_rate"].tolist(),
                rows["level"].tolist(),
                [f"{n:,}" for n in rows["tasks"]],
                shapes.colour(str(name)),
                backend,
                xlabel=f"{name}{said}",
                ylabel="" if panels else "mean pass rate",
                xrotation=45,
                # in print one axis serves all panels; on a page they may wrap
                **({"yaxis": None} if panels and backend == "matplotlib" else {}),
            )
        )
    return hv.Layout(panels or [figures.panel(hv.Overlay([]), backend)])
