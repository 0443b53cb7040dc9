"""How models do on a set of tasks: pass@1 and the fraction of segments (Section 4.5)."""

from __future__ import annotations

import pandas as pd
from rich.markup import escape
from rich.table import Table

from depthkit.corpus import Corpus

PURPOSE = "evaluation"


def evaluation(corpus: Corpus) -> pd.DataFrame:
    """One row a model that has evaluation runs.

    Each number is given both ways the paper uses: averaged within a task and then over tasks
    (Table 2), and pooled over runs (Figure 6). Runs without a verdict are no results; a task with
    none but those leaves the denominator of that model only (Appendix I). A suspect run passed
    nothing, neither the task nor a segment: what was forged once may be forged throughout.

    Args:
        corpus: With runs of purpose ``evaluation``; the runs that measure depth do not count.

    Returns:
        Columns ``model``; ``tasks`` and ``runs`` with a result; ``without_result``, the tasks left
        out; ``pass_at_1`` and ``segments`` (shares of 1, averaged per task); ``pooled_pass`` and
        ``pooled_segments``; ``turns`` (mean), ``minutes`` (mean) and ``context_tokens`` (mean)
        over all runs; ``cost_usd`` in all, null if any is unknown; ``provenance``.
    """
    runs = corpus.runs()
    runs = runs[runs["purpose"] == PURPOSE]
    segments = {(t.dataset, t.task_id): t.k for t in corpus.task_records()}
    rows = []
    for model, of_model in runs.groupby("model", sort=True):
        valid = of_model[of_model["verdict"] != "none"].copy()
        keys = list(zip(valid["dataset"], valid["task_id"], strict=True))
        valid["pass"] = ((valid["verdict"] == "passed") & ~valid["suspect"]).astype(float)
        passed = valid["segments_passed"].astype(float).mask(valid["suspect"], 0.0)
        valid["fraction"] = passed / [segments[k] for k in keys]
        by_task = valid.groupby(["dataset", "task_id"])[["pass", "fraction"]].mean()
        attempted = of_model[["dataset", "task_id"]].drop_duplicates()
        rows.append(
            {
                "model": model,
                "tasks": len(by_task),
                "runs": len(valid),
                "without_result": len(attempted) - len(by_task),
                "pass_at_1": by_task["pass"].mean(),
                "segments": by_task["fraction"].mean(),
                "pooled_pass": valid["pass"].mean(),
                "pooled_segments": valid["fraction"].mean(),
                "turns": valid["turns"].astype(float).mean(),
                "minutes": valid["agent_minutes"].astype(float).mean(),
                "context_tokens": valid["context_tokens"].astype(float).mean(),
                "cost_usd": of_model["cost_usd"].astype(float).sum(skipna=False),
                "provenance": ", ".join(sorted(set(of_model["provenance"]))),
            }
        )
    return pd.DataFrame(rows)


def evaluation_table(frame: pd.DataFrame) -> Table:
    """The frame of :func:`evaluation` for a terminal; shares in percent, a dash for unknown."""

    def said(value: float, form: str) -> str:
        return "\N{EN DASH}" if pd.isna(value) else format(value, form)

    table = Table(
        *("model", "tasks", "no result", "pass@1", "segments", "pooled", "turns", "minutes"),
        *("cost", "provenance"),
    )
    for row in frame.to_dict("records"):
        table.add_row(
            escape(str(row["model"])),
            str(row["tasks"]),
            str(row["without_result"]),
            said(row["pass_at_1"], ".0%"),
            said(row["segments"], ".2f"),
            said(row["pooled_pass"], ".0%"),
            said(row["turns"], ".0f"),
            said(row["minutes"], ".1f"),
            said(row["cost_usd"], ".2f"),
            str(row["provenance"]),
        )
    return table
