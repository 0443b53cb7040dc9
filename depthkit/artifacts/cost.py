"""Appendix D, Table 6: how long runs without a cap are, over solved and over all tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from depthkit.artifacts.artifact import Table, artifact
from depthkit.artifacts.audit import audit_table
from depthkit.artifacts.datasets import GROUPS, NO_GROUP, audited
from depthkit.artifacts.evidence import counted, first_model
from depthkit.artifacts.tables import formatted, plain_table
from depthkit.corpus import Corpus
from depthkit.stats import quantile

_ALL = {"turns": "Turns", "agent_minutes": "Minutes", "context_tokens": "Tokens"}
"""Columns of runs that are averaged within a task, as the table names them."""


@artifact("depth/table-6", section="D, Table 6")
def run_cost_table(corpus: Corpus, *, datasets: Sequence[str] | None = None) -> Table:
    """Turns, minutes and tokens of the first model's runs without a cap.

    One row a data set. ``N_mean``, ``minutes`` and ``tokens_k`` are those of Table 1, over solved
    tasks. For ``turns_all``, ``minutes_all`` and ``tokens_k_all`` each sampled task is averaged
    over its two runs without a cap, whether or not they pass; turns and tokens (thousands) are
    means over tasks, minutes the median.

    Args:
        corpus: What was measured.
        datasets: Only these; ``None`` for all.
    """
    chosen = audited(corpus, datasets)
    runs = counted(corpus, chosen, first_model(corpus))
    sampled = chosen.tasks.loc[chosen.tasks["solved"].notna(), ["dataset", "task_id"]]
    free = runs[runs["cap"].isna()].merge(sampled, on=["dataset", "task_id"])
    # a task with one unknown run has no average
    tasks = free.groupby(["dataset", "task_id"])[list(_ALL)].mean(skipna=False)
    of_solved = audit_table(corpus, datasets=datasets).frame
    rows: list[dict[str, Any]] = []
    for name in chosen.datasets:
        found = tasks.loc[tasks.index.get_level_values("dataset") == name]
        rows.append(
            {
                "dataset": name,
                "turns_all": found["turns"].mean(),
                "minutes_all": quantile(found["agent_minutes"], 0.5),
                "tokens_k_all": found["context_tokens"].mean() / 1000,
                **{f"with_{column}": int(found[column].notna().sum()) for column in _ALL},
            }
        )
    columns = ["turns_all", "minutes_all", "tokens_k_all", *(f"with_{c}" for c in _ALL)]
    kept = ["dataset", "group", "sampled", "solved", "N_mean", "minutes", "tokens_k"]
    frame = of_solved[kept].merge(pd.DataFrame(rows, columns=["dataset", *columns]), on="dataset")
    return Table(
        title=(
            "Runs of the first model without a cap. Solved tasks: N̄, Minutes and Tokens as in "
            "Table 1. All sampled tasks: each task is averaged over its two runs without a cap, "
            "whether or not they pass; Turns and Tokens (thousands) are means over tasks, Minutes "
            "is the median."
        ),
        frame=frame,
        provenance=chosen.provenance,
        draw=lambda: _table_6(frame),
        cells=(
            *("group", "dataset", "N_mean", "minutes", "tokens_k"),
            *("turns_all", "minutes_all", "tokens_k_all"),
        ),
        notes=tuple(_notes(frame)),
    )


def _notes(frame: pd.DataFrame) -> list[str]:
    return [
        f"{row['dataset']}: {name} of all sampled tasks is over the {row[f'with_{column}']} of "
        f"{row['sampled']} for which it is known of both runs."
        for row in frame.to_dict("records")
        for column, name in _ALL.items()
        if row[f"with_{column}"] < row["sampled"]
    ]


def _table_6(frame: pd.DataFrame) -> Any:
    shown = pd.DataFrame(
        {
            "group": [GROUPS.get(group, NO_GROUP) for group in frame["group"]],
            "Dataset": frame["dataset"],
            "N̄": formatted(frame["N_mean"], "{:.1f}"),
            "Minutes": formatted(frame["minutes"], "{:.1f}"),
            "Tokens": formatted(frame["tokens_k"], "{:.1f}"),
            "Turns (all)": formatted(frame["turns_all"], "{:.1f}"),
            "Minutes (all)": formatted(frame["minutes_all"], "{:.1f}"),
            "Tokens (all)": formatted(frame["tokens_k_all"], "{:.1f}"),
        }
    )
    return plain_table(
        shown,
        "depth-table-6",
        groups="group",
        rows="Dataset",
        spanners={
            "Solved tasks": ("N̄", "Minutes", "Tokens"),
            "All sampled tasks": ("Turns (all)", "Minutes (all)", "Tokens (all)"),
        },
    )
