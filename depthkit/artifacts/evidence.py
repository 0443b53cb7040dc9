"""The runs that estimates rest on, as a frame: what a table says of runs and not only of tasks."""

from __future__ import annotations

from collections import defaultdict

import pandas as pd

from depthkit.artifacts.datasets import Audited
from depthkit.corpus import Corpus
from depthkit.model import Run
from depthkit.protocol import counted_runs

_COLUMNS = (
    "dataset",
    "task_id",
    "model",
    "cap",
    "passed",
    "turns",
    "agent_minutes",
    "context_tokens",
    "output_tokens",
    "command_lines",
)


def counted(corpus: Corpus, chosen: Audited, model: str | None) -> pd.DataFrame:
    """The runs of one model that count as evidence for the chosen tasks.

    Args:
        corpus: Where they are.
        chosen: Tasks of that corpus.
        model: Of the model set; ``None`` where the corpus names none.

    Returns:
        One row a run: ``cap`` is ``nan`` without a stated one, ``passed`` a boolean, numbers are
        floats, ``nan`` where unknown.
    """
    wanted = set(zip(chosen.tasks["dataset"], chosen.tasks["task_id"], strict=True))
    history: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in corpus.run_records():
        key = run.dataset, run.task_id
        if run.model == model and run.purpose in ("free", "ladder") and key in wanted:
            history[key].append(run)
    rows = [
        [getattr(run, column) for column in _COLUMNS]
        for key in sorted(history)
        for run in counted_runs(history[key], corpus.models, caps=corpus.caps)
    ]
    types = dict.fromkeys(("cap", *_COLUMNS[5:]), float) | {"passed": bool}
    return pd.DataFrame(rows, columns=list(_COLUMNS)).astype(types)


def first_model(corpus: Corpus) -> str | None:
    """The model that makes the runs without a cap; ``None`` where the corpus names no models."""
    return corpus.models[0] if corpus.models else None
