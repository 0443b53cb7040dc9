"""Released pass rates: from one row a trial of other people's runs to ``Task.public_pass_rate``.

A table of trials has the columns ``submission``, ``task`` and ``reward``, and ``started_at`` where
the earliest submissions are wanted. ``docs/pass-rates.md`` describes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from depthkit.corpus.files import one_line, require_plain_name
from depthkit.corpus.store import Corpus
from depthkit.errors import DepthkitError
from depthkit.model import Group, Segment, Task

_TRIALS = ("submission", "task", "reward")
_STARTED = "started_at"
_TASKS = ("task", "difficulty", "category")


@dataclass(frozen=True)
class PassRates:
    """Pass rates of tasks, each the mean over submissions of the share of its trials that pass.

    Attributes:
        rates: By task, exact, so that tasks passed equally often have equal rates.
        submissions: Those behind them, by first start where that is known, else by name.
        source: What to call them, in one line.
    """

    rates: dict[str, Fraction]
    submissions: tuple[str, ...]
    source: str


@dataclass
class RatesReport:
    """What came of adding pass rates to a corpus; task ids, and notes for a person."""

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_pass_rates(
    path: Path, *, at_least: int | None = None, earliest: int | None = None
) -> PassRates:
    """Read a table of trials (Parquet, or CSV by its suffix) into pass rates.

    A trial passes with a reward of at least 1; without a reward it failed. An owner before a task
    name (``terminal-bench/``) is dropped.

    Args:
        path: The table.
        at_least: Only submissions with so many trials of every task in the table.
        earliest: Of these, so many that started first; all by default.

    Raises:
        DepthkitError: the file cannot be read, lacks a column, holds a reward or time that is
            none, or has fewer such submissions.
    """
    needed = (*_TRIALS, _STARTED) if earliest is not None else _TRIALS
    trials = _read(path, needed)
    for column in ("submission", "task"):
        if trials[column].isna().any():
            raise DepthkitError(f"{path}: {column} is missing in row {_first(trials[column])}.")
    trials = trials.assign(
        task=trials["task"].astype(str).str.rpartition("/")[2],
        passed=_numbers(trials["reward"], f"{path}: reward").ge(1),
    )
    counts = pd.crosstab(trials["submission"], trials["task"])
    chosen = [str(name) for name in counts.index]
    if at_least is not None:
        chosen = [str(name) for name in counts.index[(counts >= at_least).all(axis=1)]]
    kind = "submissions" if at_least is None else "complete submissions"
    if earliest is not None:
        if earliest > len(chosen):
            raise DepthkitError(
                f"{path}: {len(chosen)} {kind} are there, fewer than the {earliest} earliest asked "
                "for."
            )
        first = _times(trials, path).groupby(trials["submission"]).min()
        chosen = sorted(chosen, key=lambda name: (first[name], name))[:earliest]
        kind = f"earliest {kind}"
    if not chosen:
        raise DepthkitError(
            f"{path}: no submission has {at_least or 1} trials of each of {counts.shape[1]} tasks."
        )
    kept = trials[trials["submission"].isin(chosen)]
    shares: dict[str, list[Fraction]] = {}
    table = kept.groupby(["task", "submission"])["passed"].agg(["sum", "size"])
    for (task, _), passes, size in table.itertuples(name=None):
        shares.setdefault(task, []).append(Fraction(int(passes), int(size)))
    return PassRates(
        rates={task: sum(found, Fraction()) / len(found) for task, found in shares.items()},
        submissions=tuple(chosen),
        source=f"mean over {len(chosen)} {kind} in {one_line(path.name, 80)}",
    )


def add_pass_rates(
    corpus: Corpus,
    dataset: str,
    found: PassRates,
    *,
    tasks: Path | None = None,
    group: Group | None = None,
) -> RatesReport:
    """Give tasks of a corpus their pass rates; tasks it lacks are added without any runs.

    Of a task that is there only the pass rate and its source change, and what the corpus did not
    know: rating, category and group.

    Args:
        corpus: Where to.
        dataset: Data set of these tasks.
        found: Their pass rates.
        tasks: CSV or Parquet with the columns ``task``, ``difficulty`` (the author's rating) and
            ``category``.
        group: How the data set was made.

    Raises:
        DepthkitError: a name is no plain name, or the table of tasks cannot be read.
    """
    require_plain_name(dataset, "--dataset")
    details = {} if tasks is None else _details(tasks)
    there = {task.task_id: task for task in corpus.task_records() if task.dataset == dataset}
    report, changed = RatesReport(), []
    for task_id, rate in sorted(found.rates.items()):
        old = there.get(task_id) or Task(
            dataset=dataset,
            task_id=require_plain_name(task_id, "task"),
            segments=(Segment(index=1, name=task_id),),
            provenance="imported",
        )
        known: dict[str, Any] = {"group": group} | details.get(task_id, {})
        filled = {name: value for name, value in known.items() if getattr(old, name) is None}
        rated = {"public_pass_rate": float(rate), "public_pass_rate_source": found.source}
        task = old.model_copy(update=filled | rated)
        if task_id not in there:
            report.new.append(task_id)
        elif task == old:
            report.same.append(task_id)
            continue
        else:
            report.changed.append(task_id)
        changed.append(task)
    corpus.append_tasks(changed)
    if without := sorted(set(there) - set(found.rates)):
        report.notes.append(f"{len(without)} tasks of {dataset} have no trial in the table")
    if tasks is not None and (unknown := sorted(set(found.rates) - set(details))):
        report.notes.append(f"{len(unknown)} tasks are not in {tasks.name}, such as {unknown[0]}")
    return report


def _details(path: Path) -> dict[str, dict[str, str | None]]:
    """Rating and category by task."""
    table = _read(path, _TASKS)
    if table["task"].duplicated().any():
        twice = table.loc[table["task"].duplicated(), "task"].iloc[0]
        raise DepthkitError(f"{path}: task {one_line(twice, 80)} stands there twice; keep one row.")
    return {
        str(row["task"]): {"author_rating": row["difficulty"], "category": row["category"]}
        for row in table.astype(object).where(table.notna(), None).to_dict("records")
    }


def _read(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    """These columns of a Parquet file, or of a CSV file as text."""
    if not path.is_file():
        raise DepthkitError(f"{path}: no such file.")
    parquet = path.suffix == ".parquet"
    try:
        table = pd.read_parquet(path) if parquet else pd.read_csv(path, dtype=str)
    except (ValueError, OSError, pa.ArrowException) as error:
        raise DepthkitError(
            f"{path}: not readable as {'Parquet' if parquet else 'CSV'} ({one_line(error, 120)})."
        ) from error
    if lacking := [name for name in columns if name not in table]:
        raise DepthkitError(
            f"{path}: lacks the column {lacking[0]}; it needs {', '.join(columns)}."
        )
    if table.empty:
        raise DepthkitError(f"{path}: has no rows.")
    return table[list(columns)]


def _numbers(column: pd.Series, what: str) -> pd.Series:
    """As numbers, ``nan`` where missing."""
    found = pd.to_numeric(column, errors="coerce")
    wrong = found.isna() & column.notna()
    if wrong.any():
        raise DepthkitError(
            f"{what} is {one_line(column[wrong].iloc[0], 40)!r} in row {_first(wrong, True)}; it "
            "must be a number, or empty for a trial without one."
        )
    return found


def _times(trials: pd.DataFrame, path: Path) -> pd.Series:
    """Starts in UTC; one without a zone is taken to be UTC."""
    found = pd.to_datetime(trials[_STARTED], utc=True, format="ISO8601", errors="coerce")
    if (wrong := found.isna() & trials[_STARTED].notna()).any():
        shown = one_line(trials.loc[wrong, _STARTED].iloc[0], 40)
        raise DepthkitError(
            f"{path}: {_STARTED} is {shown!r} in row {_first(wrong, True)}; it must be a time such "
            "as 2026-05-12T13:18:34Z."
        )
    if (never := found.groupby(trials["submission"]).min().isna()).any():
        raise DepthkitError(
            f"{path}: {_STARTED} is missing in all trials of {one_line(never.idxmax(), 80)}."
        )
    return found


def _first(column: pd.Series, flag: bool = False) -> int:
    """Number of the first row, from 1, that is missing, or that is flagged."""
    marked = column if flag else column.isna()
    return int(marked.to_numpy().argmax()) + 1
