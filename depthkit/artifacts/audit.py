"""Section 4.2: the audit of data sets, as Table 1 and as the numbers its text gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from depthkit.artifacts.artifact import Table, artifact
from depthkit.artifacts.datasets import (
    GROUPS,
    NO_GROUP,
    Audited,
    audited,
    depth_share,
    is_existing,
    numbers,
    work_notes,
)
from depthkit.artifacts.tables import MISSING, formatted, plain_table
from depthkit.corpus import Corpus
from depthkit.stats import DepthQuantile, depth_quantile, quantile


@artifact("depth/table-1", section="4.2, Table 1")
def audit_table(
    corpus: Corpus,
    *,
    datasets: Sequence[str] | None = None,
    caps: Sequence[int] | None = None,
) -> Table:
    """Audit of each data set: how many tasks are solved, and how deep and large those are.

    One row a data set, in the paper's order. D, N and W are medians over solved tasks, N̄ is the
    mean of N; minutes (median) and tokens (mean, thousands) come from the run that gives N.

    Tasks whose two free runs are not done are ``unmeasured`` and not among the sampled ones.
    Solved tasks whose ladder is not done have no D yet: they are ``unfinished`` and left out of
    the columns about D, and only of those.

    Args:
        corpus: What was measured.
        datasets: Only these; ``None`` for all.
        caps: A coarser scale of D; ``None`` for all caps.
    """
    chosen = audited(corpus, datasets, caps)
    frame = pd.DataFrame([_row(chosen, name) for name in chosen.datasets], columns=_COLUMNS)
    return Table(
        title=(
            "Audit of data sets. Solved: passed by the first model in at least one of two runs "
            "without a cap. Reported: length reported with the data set (mean turns). D ≤ 3, "
            "D ≥ 5: shares of solved tasks. D, N and W are medians over solved tasks; N: fewest "
            "turns among passing runs without a cap; N̄: mean of N. Minutes: time the agent runs "
            "(median). Tokens: thousands in the context at the end of the run (mean). Minutes "
            "and Tokens are from the run that gives N."
        ),
        frame=frame,
        provenance=chosen.provenance,
        draw=lambda: _table_1(frame),
        cells=(
            *("group", "dataset", "sampled", "solved", "reported", "D_le_3", "D_ge_5"),
            *("D", "N", "W", "N_mean", "minutes", "tokens_k"),
        ),
        notes=(*_notes(frame), *work_notes(chosen)),
    )


_COLUMNS = [
    "dataset",
    "group",
    "sampled",
    "unmeasured",
    "solved",
    "unfinished",
    "reported",
    "D_le_3",
    "D_ge_5",
    "D_eq_1",
    "D",
    "D_above",
    "N",
    "W",
    "N_mean",
    "minutes",
    "tokens_k",
    "with_W",
    "with_minutes",
    "with_tokens",
]


def _row(chosen: Audited, name: str) -> dict[str, Any]:
    tasks = chosen.tasks[chosen.tasks["dataset"] == name]
    solved = chosen.solved[chosen.solved["dataset"] == name]
    n, work = numbers(solved["N"]), numbers(solved["work_lines"])
    minutes, tokens = numbers(solved["n_minutes"]), numbers(solved["n_context_tokens"])
    depth = solved["D"].dropna()
    median = depth_quantile(depth, 0.5, caps=chosen.caps)
    group = tasks["group"].dropna()
    return {
        "dataset": name,
        "group": group.iloc[0] if len(group) else None,
        "sampled": int(tasks["solved"].notna().sum()),
        "unmeasured": int(tasks["solved"].isna().sum()),
        "solved": len(solved),
        "unfinished": len(solved) - len(depth),
        "reported": float("nan"),  # no corpus holds what a data set's own paper reports
        "D_le_3": depth_share(depth, most=3),
        "D_ge_5": depth_share(depth, least=5),
        "D_eq_1": depth_share(depth, least=1, most=1),
        "D": median.value,
        "D_above": median.above,
        "N": quantile(n, 0.5),
        "W": quantile(work, 0.5),
        "N_mean": n.mean(),
        "minutes": quantile(minutes, 0.5),
        "tokens_k": tokens.mean() / 1000,
        "with_W": int(work.notna().sum()),
        "with_minutes": int(minutes.notna().sum()),
        "with_tokens": int(tokens.notna().sum()),
    }


def _notes(frame: pd.DataFrame) -> list[str]:
    """What a reader must know about the rows: tasks not measured, values not known."""
    notes = []
    for row in frame.to_dict("records"):
        if row["unmeasured"]:
            notes.append(
                f"{row['dataset']}: {row['unmeasured']} more tasks lack two valid runs without a "
                "cap; they are not counted as sampled."
            )
        if row["unfinished"]:
            notes.append(
                f"{row['dataset']}: {row['unfinished']} solved tasks have no final D; the columns "
                "about D leave them out."
            )
        for column, what in (
            ("with_W", "W"),
            ("with_minutes", "Minutes"),
            ("with_tokens", "Tokens"),
        ):
            if 0 < row[column] < row["solved"]:
                notes.append(
                    f"{row['dataset']}: {what} is over the {row[column]} of {row['solved']} "
                    "solved tasks for which it is known."
                )
    return notes


def _table_1(frame: pd.DataFrame) -> Any:
    shown = pd.DataFrame(
        {
            "group": [GROUPS.get(group, NO_GROUP) for group in frame["group"]],
            "Dataset": frame["dataset"],
            "Sampled": frame["sampled"].map("{:d}".format),
            "Solved": frame["solved"].map("{:d}".format),
            "Reported": formatted(frame["reported"], "{:g}"),
            "D ≤ 3": formatted(frame["D_le_3"], "{:.0%}"),
            "D ≥ 5": formatted(frame["D_ge_5"], "{:.0%}"),
            "D": [
                str(DepthQuantile(value, above))
                for value, above in zip(frame["D"], frame["D_above"], strict=True)
            ],
            "N": formatted(frame["N"], "{:g}"),
            "W": formatted(frame["W"], "{:g}"),
            "N̄": formatted(frame["N_mean"], "{:.1f}"),
            "Minutes": formatted(frame["minutes"], "{:.1f}"),
            "Tokens": formatted(frame["tokens_k"], "{:.1f}"),
        }
    )
    return plain_table(shown, "depth-table-1", groups="group", rows="Dataset")


@artifact("depth/section-4.2", section="4.2, text")
def audit_text(
    corpus: Corpus,
    *,
    datasets: Sequence[str] | None = None,
    caps: Sequence[int] | None = None,
) -> Table:
    """What the text of Section 4.2 says over several data sets together.

    One row a group, and ``existing`` for the synthetic and human-curated data sets together.
    ``N_6_10`` counts solved tasks with N from 6 to 10 and a known D, ``N_6_10_D_1`` those of them
    with D = 1; all counts of depth are null where no solved task has a final D.

    Args:
        corpus: What was measured.
        datasets: Only these; ``None`` for all.
        caps: A coarser scale of D; ``None`` for all caps.
    """
    chosen = audited(corpus, datasets, caps)
    rows = [_pool(chosen, name, chosen.solved["group"] == name) for name in GROUPS]
    rows.append(_pool(chosen, "existing", is_existing(chosen.solved["group"])))
    frame = pd.DataFrame([row for row in rows if row["solved"]], columns=list(rows[0]))
    return Table(
        title=(
            "Solved tasks of several data sets together. Existing: all data sets but our own. "
            "Shares are of solved tasks; W is the median. Last columns: tasks with N from 6 to "
            "10, and those of them with D = 1."
        ),
        frame=frame,
        provenance=chosen.provenance,
        draw=lambda: _pooled_table(frame),
        cells=(
            *("group", "solved", "with_D", "D_le_3", "D_ge_5"),
            *("W", "N_6_10", "N_6_10_D_1"),
        ),
    )


def _pool(chosen: Audited, name: str, member: pd.Series) -> dict[str, Any]:
    solved = chosen.solved[member]
    depth = solved["D"].dropna()
    middle = solved[numbers(solved["N"]).between(6, 10) & solved["D"].notna()]
    return {
        "group": name,
        "solved": len(solved),
        "with_D": len(depth),
        "D_le_3": (depth <= 3).sum(min_count=1),
        "D_le_3_share": depth_share(depth, most=3),
        "D_ge_5": (depth >= 5).sum(min_count=1),
        "D_ge_5_share": depth_share(depth, least=5),
        "W": quantile(numbers(solved["work_lines"]), 0.5),
        "N_6_10": len(middle) if len(depth) else float("nan"),
        "N_6_10_D_1": (middle["D"] == 1).sum() if len(depth) else float("nan"),
    }


def _pooled_table(frame: pd.DataFrame) -> Any:
    shown = pd.DataFrame(
        {
            "Data sets": [GROUPS.get(group, "Existing") for group in frame["group"]],
            "Solved": frame["solved"].map("{:d}".format),
            "with D": frame["with_D"].map("{:d}".format),
            "D ≤ 3": _share(frame["D_le_3"], frame["D_le_3_share"]),
            "D ≥ 5": _share(frame["D_ge_5"], frame["D_ge_5_share"]),
            "W": formatted(frame["W"], "{:g}"),
            "N 6 to 10": formatted(frame["N_6_10"], "{:.0f}"),
            "… D = 1": formatted(frame["N_6_10_D_1"], "{:.0f}"),
        }
    )
    return plain_table(shown, "depth-section-4-2", rows="Data sets")


def _share(counts: pd.Series, shares: pd.Series) -> list[str]:
    return [
        MISSING if pd.isna(share) else f"{count:.0f} ({share:.0%})"
        for count, share in zip(counts, shares, strict=True)
    ]
