"""A corpus as tables that are asked in SQL, and what is wrong with it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import duckdb
import pandas as pd
import pyarrow as pa

from depthkit.artifacts.run_ends import OUTCOMES, endings
from depthkit.corpus import Corpus
from depthkit.corpus.estimates import ESTIMATES
from depthkit.corpus.files import counted
from depthkit.dashboard.labels import Labels
from depthkit.errors import DepthkitError
from depthkit.model import Run, Task
from depthkit.protocol.verdict import standing

log = logging.getLogger(__name__)

ENDINGS = {key: said for key, (said, _) in OUTCOMES.items()} | {
    "cap": "turn cap reached",
    "no result": "no result",
}
"""How a run ends: the classes of Figure 14, failed runs stopped at their cap, and no result."""

_RUNS = """
    CREATE TABLE runs AS
    SELECT *, coalesce(cap::VARCHAR, 'none') AS cap_name, row_number() OVER () AS place,
        lower(concat_ws(' ', run_id, dataset || '/' || task_id, model, detail)) AS sought
    FROM incoming
"""

_TASKS = """
    CREATE TABLE tasks AS
    SELECT e.dataset, e.task_id, e."group" AS family, e.k, e.solved, e.N, e.R,
        e.D, e.final, e.work_lines AS W, e.work_tokens, e.work_chars, e.work_from,
        e.lowest_passing_cap, e.author_rating, e.public_pass_rate, e.n_run_id,
        t.generated_label, t.category, t.seed_env, t.parent, t.parent_dataset,
        t.instruction_words,
        coalesce(e.provenance, t.provenance) AS provenance,
        coalesce(r.runs, 0) AS runs, coalesce(r.valid, 0) AS valid, coalesce(r.passes, 0) AS passes,
        coalesce(r.unconfirmed, 0) AS unconfirmed, coalesce(r.suspect, 0) AS suspect,
        r.passes / nullif(r.valid, 0) AS pass_share, r.cost_usd, r.last,
        CASE WHEN e.solved THEN 'solved' WHEN e.solved IS NULL THEN 'not known' ELSE 'not solved'
        END AS outcome,
        CASE WHEN e.final THEN 'final' ELSE 'open' END AS state, e.D_by_model,
        lower(concat_ws(' ', e.dataset || '/' || e.task_id, t.category, t.parent, t.seed_env))
        AS sought,
        row_number() OVER () AS place
    FROM estimates e
    LEFT JOIN incoming t USING (dataset, task_id)
    LEFT JOIN (
        SELECT dataset, task_id, count(*) AS runs, count(*) FILTER (verdict <> 'none') AS valid,
            count(*) FILTER (passed) AS passes,
            count(*) FILTER (standing = 'unconfirmed') AS unconfirmed,
            count(*) FILTER (standing = 'suspect') AS suspect, max(started) AS last,
            CASE WHEN count(cost_usd) = count(*) THEN sum(cost_usd) END AS cost_usd
        FROM runs GROUP BY ALL
    ) r USING (dataset, task_id)
"""


_LARGE = 20_000_000
"""Bytes of ``runs.jsonl`` above which what needs much memory is left to a process that ends."""


@dataclass(frozen=True)
class Snapshot:
    """The corpus as it was when it was read.

    Attributes:
        tables: An in-memory database with ``runs``, ``tasks`` and ``labels``; asked through
            :meth:`rows`.
        digest: Of what was read; an empty one before anything was.
        at: When.
        provenance: What the corpus rests on, in one line.
        problems: What could not be read and how to mend it, one sentence or more each.
        datasets: All of them, by name.
        models: All that have runs, by name.
        caps: Of the protocol.
        made: See :meth:`once`.
        lock: For it.
    """

    tables: duckdb.DuckDBPyConnection
    digest: str
    at: datetime
    provenance: str = ""
    problems: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    model_set: tuple[str, ...] = ()
    caps: tuple[int, ...] = ()
    made: dict[str, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def once[T](self, name: str, make: Callable[[], T]) -> T:
        """What was made of this snapshot under a name; made now if it has not been."""
        with self.lock:
            if name not in self.made:
                self.made[name] = make()
            found: T = self.made[name]
            return found

    def rows(self, query: str, parameters: list[Any] | None = None) -> list[dict[str, Any]]:
        """Rows of a query, as dictionaries by column."""
        result = self.tables.cursor().execute(query, parameters or [])
        names = [column[0] for column in result.description or []]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def value(self, query: str, parameters: list[Any] | None = None) -> Any:
        """The only value of a query."""
        row = self.tables.cursor().execute(query, parameters or []).fetchone()
        return None if row is None else row[0]

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run: the columns of ``Corpus.runs()``, ``ending``, ``standing`` and ``passed``."""
        found = self.rows("SELECT * FROM runs WHERE run_id = ?", [run_id])
        return found[0] if found else None

    def task(self, dataset: str, task_id: str) -> dict[str, Any] | None:
        """One task: what is known of it and what its runs say about its depth."""
        found = self.rows(
            "SELECT * FROM tasks WHERE dataset = ? AND task_id = ?", [dataset, task_id]
        )
        return found[0] if found else None


class Source:
    """A corpus that is watched: pages always get a whole snapshot, never a half-read one.

    Args:
        where: Name of a bundled corpus, or a directory.
        tasks: Task directories, or folders of such, in which tasks of the corpus may be.
    """

    def __init__(self, where: str | Path | Corpus, tasks: tuple[Path, ...] = ()) -> None:
        self.where = where.path if isinstance(where, Corpus) else where
        self.corpus: Corpus | None = where if isinstance(where, Corpus) else None
        self.task_dirs = tasks
        self.labels: Labels | None = None
        self._snapshot = _nothing(())
        self._lock = threading.Lock()
        self._checked = 0.0
        self._thread: threading.Thread | None = None

    @property
    def path(self) -> Path:
        """The directory."""
        return self.corpus.path if self.corpus else Path(self.where)

    @property
    def name(self) -> str:
        """Of the corpus; of its directory as long as it cannot be opened."""
        return self.corpus.name if self.corpus else Path(self.where).name

    def snapshot(self, *, wait: float = 0.0, every: float = 1.0) -> Snapshot:
        """The latest snapshot; a newer one is made behind it if the files have changed.

        Args:
            wait: Seconds to wait for a newer one.
            every: Look at the files only when so many seconds have passed since last time.
        """
        now = time.monotonic()
        if now - self._checked >= every:
            self._checked = now
            self._start()
        thread = self._thread
        if wait and thread is not None:
            thread.join(wait)
        return self._snapshot

    def open(self) -> None:
        """Open the corpus, to have its name; what is wrong with it is found when it is read."""
        if self.corpus is not None:
            return
        with contextlib.suppress(DepthkitError, OSError):
            self.corpus = Corpus.open(self.where)

    def load(self) -> Snapshot:
        """Read the corpus now, and wait for it."""
        self._refresh()
        return self._snapshot

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._refresh, daemon=True)
            self._thread.start()

    def _refresh(self) -> None:
        with self._lock:
            try:
                if self.corpus is None or not self.corpus.path.is_dir():
                    self.corpus = Corpus.open(self.where)
                if self.labels is None:
                    self.labels = Labels(self.corpus.path)
                stamp = f"{self.corpus.digest()}:{self.labels.stamp()}"
                if stamp == self._snapshot.digest:
                    return
                before = self._snapshot
                if before.digest.split(":")[0] == stamp.split(":")[0]:
                    _put_labels(before.tables, self.labels)
                    self._snapshot = replace(before, digest=stamp, made={})
                    return
                # Its settings may have changed, and its frames are not needed any more afterwards.
                self._snapshot = _read(Corpus.open(self.corpus.path), self.labels, stamp)
            except (DepthkitError, OSError) as error:
                self._snapshot = _nothing((_sentence(error),))
            except Exception as error:  # A page that says so serves better than a dead thread.
                log.exception("%s", self.where)
                self._snapshot = _nothing(
                    (f"{self.where}: could not be read ({type(error).__name__}: {error}).",)
                )


@dataclass
class _Reading:
    """Tables of a corpus, each read by itself, so that a bad one leaves the others."""

    problems: list[str] = field(default_factory=list)

    def table(self, read: Callable[[], pd.DataFrame], empty: pa.Schema) -> pa.Table:
        try:
            return pa.Table.from_pandas(read(), preserve_index=False)
        except DepthkitError as error:
            if _sentence(error) not in self.problems:
                self.problems.append(_sentence(error))
            return empty.empty_table()


def _with_endings(runs: pd.DataFrame) -> pd.DataFrame:
    judged = runs[["verdict", "suspect", "confirmed", "provenance"]].astype(object)
    kinds = [standing(cast(Run, row)) for row in judged.itertuples(index=False)]
    runs = runs.assign(
        standing=pd.Series(kinds, runs.index, dtype=object),
        passed=[kind in ("passed", "unconfirmed") for kind in kinds],
        rewards=runs["rewards"].map(json.dumps, na_action="ignore"),
    )
    found = endings(runs).mask(~runs["passed"] & runs["stop"].eq("turn_cap"), "cap")
    return runs.assign(ending=found.mask(runs["verdict"].eq("none"), "no result"))


def is_large(corpus: Path) -> bool:
    """Whether what goes through all runs takes long, and more memory than one would keep."""
    try:
        return (corpus / "runs.jsonl").stat().st_size > _LARGE
    except OSError:
        return False


def _warm(corpus: Corpus) -> None:
    """Let another process make the caches of a large corpus: it needs memory that nobody gets back.

    What goes wrong there goes wrong here too, and is said then.
    """
    if is_large(corpus.path) and os.access(corpus.path, os.W_OK):
        code = (
            "import sys; from depthkit.corpus import Corpus; Corpus.open(sys.argv[1]).estimates()"
        )
        command = [sys.executable, "-c", code, str(corpus.path.absolute())]
        subprocess.run(command, capture_output=True, check=False)


def _read(corpus: Corpus, labels: Labels, stamp: str) -> Snapshot:
    _warm(corpus)
    reading = _Reading()
    runs = reading.table(lambda: _with_endings(corpus.runs()), _runs_schema())
    tasks = reading.table(corpus.tasks, _task_schema())
    estimates = reading.table(lambda: _flat(corpus.estimates()), ESTIMATES)
    if not estimates.num_rows:
        estimates = _without_estimates(tasks)
    torn = [
        f"{name}: the last line is cut off and left out; a program is writing it, or was stopped "
        "while it did. The next append sets it aside."
        for name in ("tasks.jsonl", "runs.jsonl")
        if _is_torn(corpus.path / name)
    ]
    tables = duckdb.connect(config={"threads": 2, "memory_limit": "400MB"})
    kept = [name for name in tasks.column_names if name in _TASK_COLUMNS]
    tables.register("incoming", runs)
    tables.execute(_RUNS)
    tables.unregister("incoming")
    tables.register("estimates", estimates)
    tables.register("incoming", tasks.select(kept))
    tables.execute(_TASKS)
    tables.unregister("incoming")
    tables.unregister("estimates")
    _put_labels(tables, labels)
    found = Snapshot(tables, stamp, datetime.now(UTC))
    kinds = found.rows("SELECT provenance, count(*) AS n FROM runs GROUP BY ALL ORDER BY ALL")
    counts = ", ".join(f"{row['n']:,} {row['provenance']}" for row in kinds)
    tasks_n = found.value("SELECT count(*) FROM tasks")
    runs_n = found.value("SELECT count(*) FROM runs")
    return Snapshot(
        tables,
        stamp,
        found.at,
        provenance=f"{counted(tasks_n, 'task')}, {counted(runs_n, 'run')}"
        + (f" ({counts})" if counts else ""),
        problems=(*reading.problems, *torn, *labels.problems),
        datasets=_names(found, "SELECT DISTINCT dataset FROM tasks UNION SELECT dataset FROM runs"),
        models=_names(found, "SELECT DISTINCT model FROM runs"),
        model_set=corpus.models,
        caps=corpus.caps,
    )


_TASK_COLUMNS = (
    "dataset",
    "task_id",
    "generated_label",
    "category",
    "seed_env",
    "parent",
    "parent_dataset",
    "instruction_words",
    "provenance",
)


def _runs_schema() -> pa.Schema:
    from depthkit.corpus.columns import table_schema

    made = [(name, pa.string()) for name in ("standing", "ending")]
    return pa.schema([*table_schema(Run), ("passed", pa.bool_()), *made])


def _task_schema() -> pa.Schema:
    from depthkit.corpus.columns import table_schema

    return table_schema(Task).append(pa.field("instruction_words", pa.int64()))


def _flat(estimates: pd.DataFrame) -> pd.DataFrame:
    """Estimates with ``D_by_model`` as JSON, which the database can hold."""
    return estimates.assign(D_by_model=[json.dumps(each) for each in estimates["D_by_model"]])


def _without_estimates(tasks: pa.Table) -> pa.Table:
    """The tasks alone, where nothing can be said about their depth."""
    columns = [
        tasks[f.name].cast(f.type)
        if f.name in tasks.column_names
        else pa.nulls(tasks.num_rows, f.type)
        for f in ESTIMATES
    ]
    return pa.Table.from_arrays(columns, schema=ESTIMATES)


def _put_labels(tables: duckdb.DuckDBPyConnection, labels: Labels) -> None:
    rows = labels.table()
    cursor = tables.cursor()
    cursor.register("incoming_labels", rows)
    cursor.execute("CREATE OR REPLACE TABLE labels AS SELECT * FROM incoming_labels")
    cursor.unregister("incoming_labels")


def _nothing(problems: tuple[str, ...]) -> Snapshot:
    """A snapshot of nothing, with tables that have the right columns."""
    tables = duckdb.connect()
    tables.register("incoming", _runs_schema().empty_table())
    tables.execute(_RUNS)
    tables.register(
        "incoming",
        _task_schema().empty_table().select(list(_TASK_COLUMNS)),
    )
    tables.register("estimates", ESTIMATES.empty_table())
    tables.execute(_TASKS)
    tables.register("incoming", Labels.schema().empty_table())
    tables.execute("CREATE TABLE labels AS SELECT * FROM incoming")
    return Snapshot(tables, "", datetime.now(UTC), problems=problems)


def _names(found: Snapshot, query: str) -> tuple[str, ...]:
    return tuple(sorted(str(next(iter(row.values()))) for row in found.rows(query)))


def _is_torn(path: Path) -> bool:
    try:
        with path.open("rb") as handle:
            size = handle.seek(0, 2)
            if size == 0:
                return False
            handle.seek(size - 1)
            return handle.read(1) != b"\n"
    except OSError:
        return False


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename or ''}: {error.strerror or error}."
    return str(error)
