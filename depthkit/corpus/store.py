"""The corpus on disk: append records, read them as records or as typed frames."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import duckdb
import pandas as pd
import pyarrow as pa

from depthkit.corpus.columns import cached, code_digest, read_table, record_of, to_frame
from depthkit.corpus.config import (
    CONFIG,
    FIXED,
    bundled_corpora,
    cache_folder,
    default_name,
    has_corpus,
    load_config,
    refuse_bundled,
    warn_of_two,
    write_config,
)
from depthkit.corpus.estimates import estimates_table, unpack_estimates
from depthkit.corpus.files import counted, require_plain_name
from depthkit.corpus.lines import Lines
from depthkit.corpus.turns import turns_table
from depthkit.errors import DepthkitError
from depthkit.model import Record, Replay, Run, Task
from depthkit.protocol import ABOVE, CAPS

_LAST_TASKS = """
    SELECT * EXCLUDE (line) FROM (SELECT *, row_number() OVER () AS line FROM tasks)
    QUALIFY line = max(line) OVER (PARTITION BY dataset, task_id)
    ORDER BY line
"""

KEPT_BYTES = 16 * 2**20
"""Records of a file up to this size stay in memory; some 20,000 runs."""

_AT_ONCE = 2_000
"""Runs that are taken from a table at a time."""


class Corpus:
    """A directory of tasks, runs and replays with what was recorded of each run.

    Records are only ever appended; frames are derived, cached under :attr:`cache` and keyed by the
    sources, so deleting the cache changes nothing. Every frame of runs or tasks has a
    ``provenance`` column.

    Attributes:
        path: The directory.
        name: Its name.
        models: The measurement model set, in order; the first makes the free runs.
        caps: Turn caps of the protocol it was measured with.
    """

    path: Path
    name: str
    models: tuple[str, ...]
    caps: tuple[int, ...]

    def __init__(self, path: Path) -> None:
        """Use :meth:`open` or :meth:`open_or_create`."""
        self.path = path
        self._tasks = Lines(path / "tasks.jsonl")
        self._runs = Lines(path / "runs.jsonl", unique="run_id")
        self._replays = Lines(path / "replays.jsonl")
        self._frames: dict[str, tuple[str, pd.DataFrame]] = {}
        self._kept: dict[str, tuple[bytes, list[Any]]] = {}
        self._digest: tuple[Any, str] = (None, "")
        self._read_config()

    # --- opening ---

    @classmethod
    def open(cls, name_or_dir: str | Path) -> Self:
        """Open a corpus that is there.

        Args:
            name_or_dir: A directory, or the name of a corpus that comes with the package. A
                directory of that name comes first, with a warning that names both.

        Raises:
            DepthkitError: It is neither, or ``corpus.toml`` is malformed.
        """
        bundled = bundled_corpora()
        path = Path(name_or_dir)
        if isinstance(name_or_dir, str) and name_or_dir in bundled:
            if not has_corpus(path):
                return cls(bundled[name_or_dir])
            warn_of_two(name_or_dir)
        if not has_corpus(path):
            names = ", ".join(sorted(bundled)) or "none in this installation"
            raise DepthkitError(
                f"{name_or_dir}: neither a corpus directory (no {CONFIG} in it) nor a bundled "
                f"corpus; the bundled ones are: {names}."
            )
        return cls(path)

    @classmethod
    def open_or_create(
        cls, path: str | Path, *, name: str | None = None, models: Sequence[str] = ()
    ) -> Self:
        """Open the corpus in a directory, or start one there.

        Args:
            path: The directory; made if missing.
            name: Name of a new corpus; the directory's name by default.
            models: The model set, in order. An existing corpus may be given its first models, or
                more at the end; another order or other models are refused, because estimates
                depend on them.

        Raises:
            DepthkitError: The directory holds something else or is the package's own, or ``models``
                contradicts the corpus.
        """
        path = Path(path)
        refuse_bundled(path)
        if not has_corpus(path):
            if path.exists() and (not path.is_dir() or any(path.iterdir())):
                raise DepthkitError(
                    f"{path}: exists and is no corpus (no {CONFIG} in it); name a new or empty "
                    "directory, or an existing corpus."
                )
            path.mkdir(parents=True, exist_ok=True)
            write_config(path, default_name(path, name), tuple(models))
        corpus = cls(path)
        if models and tuple(models) != corpus.models[: len(models)]:
            if corpus.models != tuple(models)[: len(corpus.models)]:
                raise DepthkitError(
                    f"{path / CONFIG}: models is {list(corpus.models)}, not {list(models)}; models "
                    "can only be added at the end, so use another corpus for another set."
                )
            write_config(path, corpus.name, tuple(models), load_config(path))
            corpus._read_config()
        return corpus

    def _read_config(self) -> None:
        config = load_config(self.path)
        where = self.path / CONFIG
        self.name = config.get("name", self.path.name)
        models = config.get("models", [])
        protocol = config.get("protocol", {})
        if not isinstance(protocol, dict):
            raise DepthkitError(
                f"{where}: protocol must be a table, [protocol], such as with caps."
            )
        caps = protocol.get("caps", list(CAPS))
        if not isinstance(self.name, str):
            raise DepthkitError(f"{where}: name must be text.")
        if not isinstance(models, list) or not all(isinstance(m, str) and m for m in models):
            raise DepthkitError(f'{where}: models must be a list of names, such as ["first"].')
        if not isinstance(caps, list) or not all(type(cap) is int and cap > 0 for cap in caps):
            raise DepthkitError(f"{where}: [protocol] caps must be a list of whole numbers.")
        if not caps or caps != sorted(set(caps)) or caps[-1] >= ABOVE:
            raise DepthkitError(
                f"{where}: [protocol] caps must be increasing whole numbers from 1 to {ABOVE - 1}."
            )
        for name, used in FIXED.items():
            if protocol.get(name, used) != used:
                raise DepthkitError(
                    f"{where}: [protocol] {name} is {protocol[name]!r}, but this version always "
                    f"uses {used}; write that, or measure into another corpus."
                )
        self.models, self.caps = tuple(models), tuple(caps)

    # --- appending ---

    def append_task(self, task: Task) -> None:
        """Append a task; it replaces an earlier line of the same data set and ``task_id``."""
        self.append_tasks([task])

    def append_tasks(self, tasks: Sequence[Task]) -> None:
        """Append several tasks at once, all or none."""
        for task in tasks:
            require_plain_name(task.task_id, f"{self._tasks.path}: task_id")
            require_plain_name(task.dataset, f"{self._tasks.path}: dataset")
        self._append(self._tasks, tasks)

    def append_run(self, run: Run) -> None:
        """Append a run; its files, if any, must be in :meth:`trial_dir` by now.

        Raises:
            DepthkitError: Its ``run_id`` is there already or is no plain name, or the disk is full.
        """
        self.append_runs([run])

    def append_runs(self, runs: Sequence[Run]) -> None:
        """Append several runs at once, all or none."""
        for run in runs:
            require_plain_name(run.run_id, f"{self._runs.path}: run_id")
        self._append(self._runs, runs)

    def append_replay(self, replay: Replay) -> None:
        """Append a replay."""
        self._append(self._replays, [replay])

    def _append(self, lines: Lines, records: Sequence[Record]) -> None:
        refuse_bundled(self.path)
        for record in records:
            for field, value in record:
                if isinstance(value, int) and abs(value) >= 2**63:
                    raise DepthkitError(f"{lines.path}: {field} is {value:.3g}; it must be < 2^63.")
        if records:
            lines.append(records)

    def trial_dir(self, run_id: str) -> Path:
        """Directory of what Harbor wrote of a run; it need not exist.

        Raises:
            DepthkitError: ``run_id`` is no plain name, or the directory is a symbolic link.
        """
        directory = self.path / "trials" / require_plain_name(run_id, "run_id")
        if directory.is_symlink():
            raise DepthkitError(f"{directory}: is a symbolic link; put the directory itself there.")
        return directory

    @property
    def cache(self) -> Path:
        """Where derived tables are kept; see :func:`depthkit.corpus.config.cache_folder`."""
        return cache_folder(self.path)

    # --- records ---

    def task_records(self) -> list[Task]:
        """Tasks, the last line of each, in the order of these lines."""
        last: dict[tuple[str, str], Task] = {}
        for task in self._records(self._tasks, Task):
            last.pop((task.dataset, task.task_id), None)
            last[task.dataset, task.task_id] = task
        return list(last.values())

    def run_records(self) -> list[Run]:
        """All runs, in the order they were appended."""
        return self._records(self._runs, Run)

    def replay_records(self) -> list[Replay]:
        """All replays, in the order they were appended."""
        return self._records(self._replays, Replay)

    def run_ids(self) -> frozenset[str]:
        """Ids of all runs; cheaper than reading the runs."""
        return self._runs.keys()

    def _records[R: Record](self, lines: Lines, model: type[R]) -> list[R]:
        """Read and checked again only where the file has changed; many artifacts ask for them."""
        data = lines.read()
        mark = hashlib.blake2b(data).digest()
        known, kept = self._kept.get(lines.path.name, (b"", []))
        if known == mark:
            return list(kept)
        found = [
            record_of(line, model, lines.path, number)
            for number, line in enumerate(data.split(b"\n"), start=1)
            if line.strip()
        ]
        self._kept[lines.path.name] = (mark, found) if len(data) <= KEPT_BYTES else (b"", [])
        return list(found)

    # --- frames ---

    def runs(self) -> pd.DataFrame:
        """One row a run, columns as in :class:`depthkit.model.Run`."""
        return self._frame("runs", self._runs_table)

    def tasks(self) -> pd.DataFrame:
        """One row a task: the columns of :class:`depthkit.model.Task` and totals over segments.

        The totals are ``k``, ``work_lines``, ``work_tokens``, ``work_chars``,
        ``instruction_words``, ``names_stated``, ``key_steps`` and ``events``; each is missing if
        any segment lacks it.
        """
        return self._frame("tasks", self._tasks_table)

    def replays(self) -> pd.DataFrame:
        """One row a replay, columns as in :class:`depthkit.model.Replay`."""
        return self._frame("replays", self._replays_table)

    def turns(self) -> pd.DataFrame:
        """One row a recorded turn, columns as in :class:`depthkit.model.Turn`, by run and turn.

        Read from ``trials/``: from the turns the harness wrote down itself where there are some,
        else from the trajectory. Only trial directories that are new since last time are parsed.
        The provenance of a row is that of its run.
        """
        return self._frame("turns", lambda: turns_table(self.path, self.cache, self.runs()))

    def estimates(self) -> pd.DataFrame:
        """One row a task: what its ``free`` and ``ladder`` runs say about its depth.

        Columns: dataset, task_id, group, k, solved, N, R, D, D_by_model (a dictionary by model),
        lowest_passing_cap, final, work_lines, work_tokens, work_chars, work_from (``solution``, or
        ``run`` in a data set without any: the lines are then the commands of a run, Appendix D),
        n_run_id, n_minutes and n_context_tokens (of the run that gives N), author_rating,
        public_pass_rate, provenance (of the runs; several joined by ``+``; missing without runs),
        runs (how many are valid), passes (how many of these count as such), unconfirmed (how many
        of the passes) and suspect (how many passes beside them do not count).

        Raises:
            DepthkitError: There are such runs but the corpus names no model set.
        """
        return self._frame("estimates", self._estimates_table)

    def _runs_table(self) -> pa.Table:
        table = self._source_table("runs", self._runs, Run)
        ids = table["run_id"].to_pandas()
        if not ids.is_unique:
            twice = ids[ids.duplicated()].iloc[0]
            raise DepthkitError(
                f"{self._runs.path}: run_id {twice!r} stands on several lines; delete all but one."
            )
        return table

    def _tasks_table(self) -> pa.Table:
        tasks = self._source_table("tasks", self._tasks, Task)
        works = [_sum_or_null(f"work.{m}", f"work_{m}") for m in ("lines", "tokens", "chars")]
        fields = ("instruction_words", "names_stated", "key_steps", "events")
        totals = ", ".join(works + [_sum_or_null(field, field) for field in fields])
        with duckdb.connect() as connection:
            connection.register("tasks", tasks)
            query = f"SELECT *, len(segments) AS k, {totals} FROM ({_LAST_TASKS})"  # noqa: S608
            return connection.sql(query).to_arrow_table()

    def _replays_table(self) -> pa.Table:
        return self._source_table("replays", self._replays, Replay)

    def _estimates_table(self) -> pa.Table:
        code = code_digest(
            "protocol/__init__.py", "protocol/verdict.py", "corpus/estimates.py", "corpus/store.py"
        )
        return cached(
            self.cache / "estimates.parquet",
            f"{code}:{self.digest()}",
            lambda: estimates_table(
                self.tasks(),
                self._runs_by_task(),
                self.models,
                self.caps,
                where=self.path / CONFIG,
            ),
        )

    def _runs_by_task(self) -> Iterator[Run]:
        """Runs with those of a task together, in the order of their first; one at a time."""
        table = self._source_table("runs", self._runs, Run)
        tasks = table.select(["dataset", "task_id"]).to_pandas()
        numbers = tasks.groupby(["dataset", "task_id"], sort=False).ngroup()
        order = pa.array(numbers.to_numpy().argsort(kind="stable"))
        for start in range(0, len(order), _AT_ONCE):
            for row in table.take(order[start : start + _AT_ONCE]).to_pylist(
                maps_as_pydicts="strict"
            ):
                yield Run.model_construct(**row)  # the table's columns have been checked

    def _source_table(self, name: str, lines: Lines, model: type[Record]) -> pa.Table:
        data = lines.read()
        key = f"{len(data)}:{hashlib.sha256(data).hexdigest()}"
        path = self.cache / f"{name}.parquet"
        return cached(path, key, lambda: read_table(data, model, lines.path))

    def _frame(self, name: str, build: Any) -> pd.DataFrame:
        key = self.digest()
        if self._frames.get(name, ("",))[0] != key:
            frame = to_frame(build())
            if name == "estimates":
                frame = unpack_estimates(frame)
            self._frames[name] = (key, frame)
        return self._frames[name][1].copy(deep=False)

    # --- about it ---

    def digest(self) -> str:
        """SHA-256 of settings, tasks, runs and replays; whatever is derived is keyed by it."""
        sources = (self.path / CONFIG, self._tasks.path, self._runs.path, self._replays.path)
        stamp = tuple(_stamp(path) for path in sources)
        if self._digest[0] != stamp:
            load_config(self.path)  # raises: it is gone meanwhile, or no longer TOML
            total = hashlib.sha256((self.path / CONFIG).read_bytes())
            for lines in (self._tasks, self._runs, self._replays):
                data = lines.read()
                total.update(f"{len(data)}:".encode())
                total.update(data)
            self._digest = (stamp, total.hexdigest())
        return self._digest[1]

    def provenance(self) -> dict[str, int]:
        """How many runs there are of each provenance."""
        counts = self.runs()["provenance"].value_counts()
        return {str(kind): int(number) for kind, number in counts.sort_index().items()}

    def provenance_line(self) -> str:
        """What the corpus rests on, in one line to stand under a table or figure."""
        kinds = ", ".join(f"{number:,} {kind}" for kind, number in self.provenance().items())
        tasks, runs = counted(len(self.tasks()), "task"), counted(len(self.runs()), "run")
        return f"Corpus {self.name}: {tasks}, {runs}" + (f" ({kinds})" if kinds else "")


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        info = path.stat()
    except FileNotFoundError:
        return (0, 0, 0)
    return (info.st_ino, info.st_size, info.st_mtime_ns)


def _sum_or_null(field: str, name: str) -> str:
    """SQL: total over segments, null if any segment lacks it."""
    values = f"list_transform(segments, lambda s: s.{field})"
    whole = f"list_count({values}) = len(segments)"
    return f"CASE WHEN {whole} THEN list_sum({values})::BIGINT END AS {name}"
