"""One row a task: what its runs say about its depth, beside its work."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from depthkit.errors import DepthkitError
from depthkit.model import Estimate, Run
from depthkit.protocol import estimate, run_of_d, run_of_n
from depthkit.protocol.verdict import Passes

ESTIMATES = pa.schema(
    [
        ("dataset", pa.string()),
        ("task_id", pa.string()),
        ("group", pa.string()),
        ("k", pa.int64()),
        ("solved", pa.bool_()),
        ("N", pa.int64()),
        ("R", pa.float64()),
        ("D", pa.int64()),
        ("D_by_model", pa.string()),
        ("lowest_passing_cap", pa.int64()),
        ("final", pa.bool_()),
        ("work_lines", pa.int64()),
        ("work_tokens", pa.int64()),
        ("work_chars", pa.int64()),
        ("work_from", pa.string()),
        ("n_run_id", pa.string()),
        ("n_minutes", pa.float64()),
        ("n_context_tokens", pa.int64()),
        ("author_rating", pa.string()),
        ("public_pass_rate", pa.float64()),
        ("provenance", pa.string()),
        ("runs", pa.int64()),
        ("passes", pa.int64()),
        ("unconfirmed", pa.int64()),
        ("suspect", pa.int64()),
    ]
)
"""The table's columns; ``D_by_model`` is JSON, as neither Parquet nor DuckDB holds it better."""

_FROM_TASK = (
    "group",
    "k",
    "work_lines",
    "work_tokens",
    "work_chars",
    "author_rating",
    "public_pass_rate",
)


def estimates_table(
    tasks: pd.DataFrame,
    runs: Iterable[Run],
    models: Sequence[str],
    caps: Sequence[int],
    *,
    where: Path,
) -> pa.Table:
    """Estimates of all tasks that are known or have been run, in the order of the tasks.

    In a data set that releases no reference solution at all, ``work_lines`` counts the command
    lines of the first model's passing run at the smallest cap it passes (Appendix D, for TMax);
    ``work_from`` is then ``run``, else ``solution``, missing where W is.

    Args:
        tasks: As ``Corpus.tasks()``.
        runs: All runs, those of a task one after another; only those of terminus-2 with
            purpose ``free`` or ``ladder`` count. They are let go task by task: 100,000 at once
            take 400 MB.
        models: The model set, in order.
        caps: Turn caps in increasing order.
        where: The file that states models and caps, for the error.

    Raises:
        DepthkitError: Runs count but no model set is named.
    """
    counted = (run for run in runs if run.purpose in ("free", "ladder") and run.agent is None)
    if not models and (found := sorted({run.model for run in counted})):
        raise DepthkitError(
            f"{where}: models is empty, but there are free or ladder runs of {found}; name the "
            "model set there, in order, the one that made the free runs first (or give it to "
            "depthkit ingest with --models)."
        )
    known: dict[tuple[str, str], dict[Any, Any]] = {
        (row["dataset"], row["task_id"]): row for row in tasks.to_dict("records")
    }
    by_task: dict[tuple[str, str], dict[str, Any]] = {}
    for key, history in groupby(counted, key=lambda run: (run.dataset, run.task_id)):
        by_task[key] = _row(key, known.get(key, {}), list(history), models, caps)
    rows = [
        by_task.pop(key) if key in by_task else _row(key, known[key], [], models, caps)
        for key in known
    ]
    rows += by_task.values()
    with_solutions = {row["dataset"] for row in rows if row["work_lines"] is not None}
    for row in rows:
        if row["work_lines"] is not None:
            row["work_from"] = "solution"
        elif row["dataset"] not in with_solutions and row["run_lines"] is not None:
            row |= {"work_lines": row["run_lines"], "work_from": "run"}
    columns = [pa.array([row[f.name] for row in rows], type=f.type) for f in ESTIMATES]
    return pa.Table.from_arrays(columns, schema=ESTIMATES)


def unpack_estimates(frame: pd.DataFrame) -> pd.DataFrame:
    """Turn the stored form of ``D_by_model`` into a dictionary by model, in order."""
    by_model = [json.loads(text) for text in frame["D_by_model"]]
    return frame.assign(D_by_model=pd.Series(by_model, index=frame.index, dtype=object))


def _row(
    key: tuple[str, str],
    task: dict[Any, Any],
    runs: list[Run],
    models: Sequence[str],
    caps: Sequence[int],
) -> dict[str, Any]:
    dataset, task_id = key
    if models:
        found = estimate(runs, models, caps=caps, dataset=dataset, task_id=task_id)
        of_n, of_d = run_of_n(runs, models), run_of_d(runs, models, caps=caps)
    else:
        found, of_n, of_d = Estimate(dataset=dataset, task_id=task_id), None, None
    passes = Passes.of(runs)
    from_task = {name: task.get(name) for name in _FROM_TASK}
    return {
        "dataset": dataset,
        "task_id": task_id,
        **{name: None if pd.isna(value) else value for name, value in from_task.items()},
        "solved": found.solved,
        "N": found.N,
        "R": found.R,
        "D": found.D,
        "D_by_model": json.dumps(found.D_by_model, ensure_ascii=False),
        "lowest_passing_cap": found.lowest_passing_cap,
        "final": found.final,
        "work_from": None,
        "run_lines": of_d.command_lines if of_d else None,
        "n_run_id": of_n.run_id if of_n else None,
        "n_minutes": of_n.agent_minutes if of_n else None,
        "n_context_tokens": of_n.context_tokens if of_n else None,
        "provenance": "+".join(sorted({run.provenance for run in runs})) or None,
        "runs": sum(run.valid for run in runs),
        "passes": passes.counted,
        "unconfirmed": passes.unconfirmed,
        "suspect": passes.suspect,
    }
