"""The tasks that Sections 4.4 to 4.6 are about, and what tables and figures of them rest on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from depthkit.artifacts.datasets import Audited, audited, runs_said
from depthkit.corpus import Corpus
from depthkit.corpus.files import counted
from depthkit.model import Run, Task
from depthkit.protocol.verdict import Passes

type Key = tuple[str, str]
"""Data set and task_id."""


@dataclass(frozen=True)
class OwnTasks:
    """Our tasks, with those that were made from them or that they were made from.

    Attributes:
        tasks: One row a task, columns as in :class:`Audited`; tasks that were merged from one of
            several segments are not among them.
        records: What is known of each; a task that only has runs is not there.
        merged: Merged tasks by the task they were merged from, wherever in the corpus they are.
        others: All further tasks of the corpus.
        caps: The scale of D.
        notes: Which tasks were taken, where the corpus does not mark any as ours.
    """

    tasks: pd.DataFrame
    records: dict[Key, Task]
    merged: list[tuple[Key, Task]]
    others: list[Task]
    caps: tuple[int, ...]
    notes: tuple[str, ...]

    @property
    def keys(self) -> list[Key]:
        """Data set and task_id of each row of ``tasks``, in its order."""
        return list(zip(self.tasks["dataset"], self.tasks["task_id"], strict=True))

    @property
    def solved(self) -> pd.DataFrame:
        """The solved tasks, as in :attr:`Audited.solved`."""
        return self.tasks[self.tasks["solved"].eq(True).fillna(False)]


def own_tasks(corpus: Corpus, datasets: Sequence[str] | None = None) -> OwnTasks:
    """Choose the tasks that "our tasks" stands for.

    Args:
        corpus: Where they are.
        datasets: Only those of these data sets (in any letter case). ``None`` for the data sets of
            group ``ours``, or for all where the corpus marks none so.

    Raises:
        DepthkitError: a data set is not in the corpus.
    """
    chosen: Audited = audited(corpus, datasets)
    frame, notes = chosen.tasks, []
    if datasets is None and len(frame):
        if (frame["group"] == "ours").any():
            frame = frame[frame["group"] == "ours"]
        else:
            notes.append(
                "No task of this corpus is of group ours: all its tasks stand for our own here."
            )
    records = {(task.dataset, task.task_id): task for task in corpus.task_records()}
    parts: dict[str | None, list[Key]] = defaultdict(list)
    for key, task in records.items():
        if task.k > 1:
            parts[task.task_id].append(key)
    parents = {
        key: [parent for parent in parts.get(task.parent, ()) if task.made_from(*parent)]
        for key, task in records.items()
        if task.k == 1
    }
    is_merged = {key: records[key] for key in parents if parents[key]}
    keys = list(zip(frame["dataset"], frame["task_id"], strict=True))
    ours = pd.Series([key not in is_merged for key in keys], frame.index, dtype=bool)
    frame = frame[ours].reset_index(drop=True)
    kept = set(zip(frame["dataset"], frame["task_id"], strict=True))
    merged = []
    for key, task in is_merged.items():
        mine = [parent for parent in parents[key] if parent in kept]
        if len(mine) == 1:
            merged.append((mine[0], task))
        elif mine:
            notes.append(
                f"{task.task_id}: left out, tasks of {len(mine)} data sets are {mine[0][1]}."
            )
    return OwnTasks(
        tasks=frame,
        records={key: records[key] for key in records if key in kept},
        merged=merged,
        others=[task for key, task in records.items() if key not in kept and key not in is_merged],
        caps=chosen.caps,
        notes=tuple(notes),
    )


def one_row(**cells: Any) -> pd.DataFrame:
    """A frame of one row: whole numbers stay whole, what is not known (``None``) is null."""
    columns: dict[str, Any] = {}
    for name, value in cells.items():
        whole = value is None or isinstance(value, int | np.integer)
        kind: Any = "Int64" if whole else "Float64"
        columns[name] = pd.array([value], dtype=kind)
    return pd.DataFrame(columns)


def resting_on(corpus: Corpus, kinds: Iterable[str | None], counted: str) -> str:
    """Provenance in one line, for example ``measured · 105 tasks, 1,260 runs · corpus ours``.

    Args:
        corpus: Whose rows they are.
        kinds: Provenance of each row that enters; several are all named, with their counts.
        counted: What these rows are, such as ``105 tasks, 1,260 runs``.
    """
    counts = pd.Series(list(kinds), dtype=object).dropna().value_counts().sort_index()
    if len(counts) > 1:
        source = " and ".join(f"{kind} ({count:,} rows)" for kind, count in counts.items())
    else:
        source = str(counts.index[0]) if len(counts) else "no data"
    return f"{source} · {counted} · corpus {corpus.name}"


def measured_line(corpus: Corpus, tasks: pd.DataFrame) -> str:
    """Provenance of numbers that follow from the depth of tasks (rows as in ``OwnTasks.tasks``)."""
    said = f"{counted(len(tasks), 'task')}, {runs_said(tasks)}"
    return resting_on(corpus, tasks["provenance"], said)


def known_line(corpus: Corpus, own: OwnTasks) -> str:
    """Provenance of numbers that follow from the tasks themselves, run or not."""
    kinds = [task.provenance for task in own.records.values()]
    return resting_on(corpus, kinds, counted(len(own.records), "task"))


def runs_line(corpus: Corpus, runs: Sequence[Run]) -> str:
    """Provenance of numbers that follow from these runs."""
    tasks = {(run.dataset, run.task_id) for run in runs}
    return resting_on(
        corpus,
        [run.provenance for run in runs],
        f"{counted(len(tasks), 'task')}, {counted(len(runs), 'run')}{Passes.of(runs).beside}",
    )
