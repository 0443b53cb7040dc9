"""Appendix D: what a model does when its turns are capped, beside what it does without a cap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from depthkit.artifacts.artifact import Table, artifact
from depthkit.artifacts.datasets import audited
from depthkit.artifacts.evidence import counted, first_model
from depthkit.artifacts.tables import formatted, plain_table
from depthkit.corpus import Corpus
from depthkit.stats import quantile

_TASK = ["dataset", "task_id"]
_MEASURES = {
    "command_lines": "Command lines at cap D over without a cap",
    "output_tokens": "Output tokens at T = 1 over without a cap, tasks with D = 1",
}


@artifact("depth/section-D", section="D, text")
def at_cap_text(corpus: Corpus, *, datasets: Sequence[str] | None = None) -> Table:
    """Command lines and output tokens of the first model at cap D, over those without a cap.

    The ratio of a task is the mean over the model's passing runs under cap D over the mean over
    its passing runs without a cap; ``command_lines`` and ``output_tokens`` are medians over tasks
    (the paper does not say how it averages), the latter over tasks with D = 1 only.
    ``parts["tasks"]`` has the ratio of each task. Tasks whose D is another model's, or whose D
    counts as passed without a run, take no part.

    Args:
        corpus: What was measured.
        datasets: Only these; ``None`` for all.
    """
    chosen = audited(corpus, datasets)
    runs = counted(corpus, chosen, first_model(corpus))
    passed = runs[runs["passed"]].merge(chosen.solved[[*_TASK, "D"]], on=_TASK)
    tasks = _ratios(passed)
    shallow = tasks["D"] == 1
    lines = tasks["command_lines"].dropna()
    tokens = tasks.loc[shallow, "output_tokens"].dropna()
    frame = pd.DataFrame(
        {
            "command_lines": [quantile(lines, 0.5)],
            "command_lines_tasks": [len(lines)],
            "output_tokens": [quantile(tokens, 0.5)],
            "output_tokens_tasks": [len(tokens)],
        }
    )
    notes = []
    if len(lines) < len(tasks):
        notes.append(f"Command lines are known of {len(lines)} of {len(tasks)} tasks.")
    if len(tokens) < shallow.sum():
        notes.append(f"Output tokens are known of {len(tokens)} of {shallow.sum()} tasks.")
    if tasks.empty:
        notes.append("There is no task that the first model passes in a run under cap D.")
    return Table(
        title=(
            "Work under a cap. Ratio of the first model's passing runs under cap D to its passing "
            "runs without a cap, each averaged within a task: median over tasks."
        ),
        frame=frame,
        parts={"tasks": tasks},
        provenance=chosen.provenance,
        draw=lambda: _table(frame),
        notes=tuple(notes),
    )


def _ratios(passed: pd.DataFrame) -> pd.DataFrame:
    """One row a task that has a passing run under cap D: the ratios, ``nan`` where unknown."""
    measures = list(_MEASURES)
    key = [*_TASK, "D"]
    capped = passed[passed["cap"] == passed["D"]].groupby(key)[measures].mean(skipna=False)
    free = passed[passed["cap"].isna()].groupby(key)[measures].mean(skipna=False)
    return (capped / free.where(free > 0).reindex(capped.index)).reset_index()


def _table(frame: pd.DataFrame) -> Any:
    shown = pd.DataFrame(
        {
            "Ratio": list(_MEASURES.values()),
            "Median": [formatted(frame[measure], "{:.2f}")[0] for measure in _MEASURES],
            "Tasks": [str(frame[f"{measure}_tasks"].iloc[0]) for measure in _MEASURES],
        }
    )
    return plain_table(shown, "depth-section-d", rows="Ratio")
