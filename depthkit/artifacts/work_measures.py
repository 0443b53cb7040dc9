"""Appendix D, Figure 9: work counted in lines, tokens and characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from depthkit.artifacts import figures
from depthkit.artifacts.artifact import Figure, artifact
from depthkit.artifacts.datasets import Audited, audited, numbers
from depthkit.corpus import Corpus
from depthkit.stats import SampleError, quantile, spearman

_MEASURES = {"lines": "Lines", "tokens": "BPE tokens", "chars": "Characters"}


@artifact("depth/figure-9", section="D, Figure 9")
def work_measures_figure(corpus: Corpus, *, datasets: Sequence[str] | None = None) -> Figure:
    """Median work of all sampled tasks by three measures of the same reference solutions.

    ``frame`` has one row a data set and measure, over its sampled tasks that have a reference
    solution (``n``); a data set without any has no row. ``parts["agreement"]`` gives Spearman's
    correlation of tokens and characters with lines, ``parts["margin"]`` the share by which ours
    exceeds the next largest data set.

    Args:
        corpus: What was measured.
        datasets: Only these; ``None`` for all.
    """
    chosen = audited(corpus, datasets)
    sampled = chosen.tasks[chosen.tasks["solved"].notna()]
    work = pd.DataFrame({measure: numbers(sampled[f"work_{measure}"]) for measure in _MEASURES})
    work = work.assign(dataset=sampled["dataset"]).dropna()
    frame = pd.DataFrame(
        [
            {"dataset": name, "measure": measure, "W": quantile(known[measure], 0.5)}
            | {"n": len(known)}
            for measure in _MEASURES
            for name in chosen.datasets
            if len(known := work[work["dataset"] == name])
        ],
        columns=["dataset", "measure", "W", "n"],
    ).astype({"W": float})
    agreement, notes = _agreement(work)
    without = [name for name in chosen.datasets if name not in set(frame["dataset"])]
    if without:
        notes.append(f"No sampled task of {', '.join(without)} has a reference solution.")
    return Figure(
        title=(
            "Other measures of work. Median over all sampled tasks that have a reference solution, "
            "counted in lines, BPE tokens and characters of it."
        ),
        frame=frame,
        parts={"agreement": agreement, "margin": _margin(chosen, frame)},
        provenance=chosen.provenance,
        widths=(1, 1, 1),
        size=(figures.TEXT_WIDTH, 1.7),
        draw=lambda backend: _draw(chosen, frame, backend),
        notes=tuple(notes),
    )


def _agreement(work: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    rows, notes = [], []
    for measure in ("tokens", "chars"):
        rho = None
        try:
            found = spearman(work["lines"], work[measure], resamples=0, permutations=0)
            rho = found.value
        except SampleError as reason:
            notes.append(f"No correlation of {measure} with lines: {reason}")
        rows.append({"measure": measure, "rho": rho, "n": len(work)})
    frame = pd.DataFrame(rows, columns=["measure", "rho", "n"])
    return frame.astype({"rho": float}), notes


def _margin(chosen: Audited, frame: pd.DataFrame) -> pd.DataFrame:
    """By how much ours exceeds the largest other, ``nan`` where either is not there."""
    groups = chosen.tasks.drop_duplicates("dataset").set_index("dataset")["group"]
    ours = frame["dataset"].map(groups) == "ours"
    rows = []
    for measure in _MEASURES:
        here = frame["measure"] == measure
        mine = frame.loc[here & ours, "W"]
        others = frame[here & ~ours].nlargest(1, "W")
        known = len(mine) == 1 and bool((others["W"] > 0).any())
        above = mine.iloc[0] / others["W"].iloc[0] - 1 if known else float("nan")
        following = others["dataset"].iloc[0] if known else None
        rows.append({"measure": measure, "above": above, "next": following})
    return pd.DataFrame(rows, columns=["measure", "above", "next"])


def _draw(chosen: Audited, frame: pd.DataFrame, backend: figures.Backend) -> Any:
    """Three panels of lying bars."""
    import holoviews as hv

    names = [name for name in chosen.datasets if name in set(frame["dataset"])]
    places = {name: float(len(names) - 1 - number) for number, name in enumerate(names)}
    panels = []
    for measure, label in _MEASURES.items():
        rows = frame[frame["measure"] == measure]
        rows = rows.assign(place=rows["dataset"].map(places).astype(float), value=rows["W"])
        panels.append(
            figures.panel(
                figures.bars(rows, chosen.styles, backend),
                backend,
                xlabel=f"Median W ({label.lower().replace('bpe', 'BPE')})",
                ylabel="",
                xticks=3,
                xlim=(0, 1.4 * rows["W"].max() if len(rows) and rows["W"].max() > 0 else 1),
                yticks=[(place, name) for name, place in places.items()] or [(0.0, "")],
                ylim=(-0.6, max(1, len(names)) - 0.4),
            )
        )
    return hv.Layout(panels)
