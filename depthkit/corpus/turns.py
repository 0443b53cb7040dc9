"""Turns of all runs as one table, parsed once from the trial directories and kept as Parquet."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from depthkit.corpus.columns import code_digest, table_schema, write_parquet
from depthkit.corpus.files import (
    UnreadableError,
    is_plain_name,
    one_line,
    parse_json,
    read_inside,
)
from depthkit.corpus.lines import open_alone
from depthkit.corpus.trajectory import Trajectory, read_trajectory
from depthkit.errors import DepthkitError
from depthkit.model import Turn

log = logging.getLogger(__name__)

TURNS_FILE = "turns.jsonl"
"""Turns as our own harness records them while a run goes on, without the run's name."""

_SCHEMA = table_schema(Turn)
_READERS = ("corpus/turns.py", "corpus/trajectory.py", "corpus/files.py")
_RUNS_A_PART = 2000
_MOST_PARTS = 16


def turns_table(corpus: Path, cache: Path, runs: pd.DataFrame) -> pa.Table:
    """Recorded turns of these runs, sorted by run as given and by turn.

    Args:
        corpus: The corpus directory.
        cache: Where the turns that were parsed are kept.
        runs: As ``Corpus.runs()``; ``run_id`` and ``provenance`` are used.

    Returns:
        Columns of :class:`depthkit.model.Turn` and ``provenance``. A run whose files cannot be
        read has no rows.
    """
    wanted = pa.table(
        {
            "run_id": pa.array(runs["run_id"], pa.string()),
            "provenance": pa.array(runs["provenance"], pa.string()),
            "place": pa.array(range(len(runs)), pa.int64()),
        }
    )
    with _held(cache) as writable, duckdb.connect() as connection:
        if writable:
            _drop_others(cache)
        parts = [part for part in sorted(cache.glob(f"{_prefix()}*.parquet")) if _usable(part)]
        # Turn 0 marks a run as parsed, whether it has turns or not.
        known = {
            run_id
            for part in parts
            for run_id in pq.read_table(part, columns=["run_id"], filters=[("turn", "=", 0)])[
                "run_id"
            ].to_pylist()
        }
        new = [run_id for run_id in wanted["run_id"].to_pylist() if run_id not in known]
        kept = [_SCHEMA.empty_table()]
        for start in range(0, len(new), _RUNS_A_PART):
            table = _parse(corpus, new[start : start + _RUNS_A_PART])
            part = _next_part(cache)
            if table.num_rows and writable and write_parquet(table, part):
                parts.append(part)
            else:
                kept.append(table)
        connection.register("kept", pa.concat_tables(kept))
        connection.register("wanted", wanted)
        files = ", ".join("'" + str(part).replace("'", "''") + "'" for part in parts)
        stored = f"UNION ALL SELECT * FROM read_parquet([{files}])" if parts else ""  # noqa: S608
        found: pa.Table = connection.sql(
            f"SELECT t.*, provenance FROM (SELECT * FROM kept {stored}) t "  # noqa: S608
            "JOIN wanted USING (run_id) WHERE turn > 0 ORDER BY place, turn"
        ).to_arrow_table()
        if len(parts) > _MOST_PARTS:
            _merge(cache, parts)
        return found


def read_turns(
    trial: Path,
    run_id: str,
    root: Path | None = None,
    read: Callable[[Path], Trajectory] | None = None,
) -> list[Turn]:
    """Turns of one run from its trial directory, over all segments.

    Args:
        trial: The directory, flat or with Harbor's ``agent/`` and ``steps/NAME/agent/``.
        run_id: Run they belong to.
        root: Directory that no file may lead out of; the trial directory by default.
        read: Reads a trajectory, for whoever needs it too; by itself it reads what it needs.
    """
    root = root or trial
    result = _result(trial, root)
    turns: list[Turn] = []
    for segment, (directory, context) in enumerate(agent_folders(trial, result), start=1):
        found = _own_turns(directory / TURNS_FILE, run_id, root)
        if found is None:
            path = directory / "trajectory.json"
            trajectory = read(path) if read else read_trajectory(path, root)
            found = trajectory.turns(run_id, request_times(context))
        # A segment that kept the conversation going numbers its turns on from the last one.
        after = turns[-1].turn if turns else 0
        offset = 0 if found and found[0].turn > after else after
        turns += [
            turn.model_copy(
                update={"turn": turn.turn + offset, "segment": max(turn.segment, segment)}
            )
            for turn in found
        ]
    return turns


def agent_folders(trial: Path, result: dict[str, Any]) -> list[tuple[Path, dict[str, Any]]]:
    """Where the agent's files of each segment are, with what its ``agent_result`` says."""
    steps = result.get("step_results")
    # Our own harness keeps one conversation over all segments, in one place.
    one_conversation = (trial / "agent" / TURNS_FILE).is_file()
    if isinstance(steps, list) and steps and not one_conversation:
        named = [step for step in steps if isinstance(step, dict)]
        return [
            (trial / "steps" / str(step["step_name"]) / "agent", _context(step))
            for step in named
            if is_plain_name(step.get("step_name"))
        ]
    nested = trial / "agent"
    folder = nested if nested.is_dir() and not (trial / "trajectory.json").exists() else trial
    return [(folder, _context(result))]


def request_times(context: dict[str, Any]) -> list[float] | None:
    """Recorded times of all successful model requests in milliseconds, if they were recorded."""
    metadata = context.get("metadata")
    times = metadata.get("api_request_times_msec") if isinstance(metadata, dict) else None
    if not isinstance(times, list) or not all(
        isinstance(t, int | float) and not isinstance(t, bool) and 0 <= t < 1e12 for t in times
    ):
        return None
    return [float(t) for t in times]


def _context(record: dict[str, Any]) -> dict[str, Any]:
    context = record.get("agent_result")
    return context if isinstance(context, dict) else {}


def _own_turns(path: Path, run_id: str, root: Path) -> list[Turn] | None:
    """Turns the harness wrote down itself; a line cut off at the end is left out."""
    try:
        data = read_inside(path, root)
    except FileNotFoundError:
        return None
    except UnreadableError as error:
        log.warning("%s: %s; the trajectory is read instead.", path.parent, error)
        return None
    turns = []
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        try:
            turns.append(Turn.model_validate({**json.loads(line), "run_id": run_id}))
        except (ValueError, TypeError, ValidationError) as error:
            log.warning("%s: %s; the trajectory is read instead.", path, one_line(error, 160))
            return None
    return turns


def _result(trial: Path, root: Path) -> dict[str, Any]:
    try:
        result = parse_json(read_inside(trial / "result.json", root), "result.json")
    except FileNotFoundError:
        return {}
    except UnreadableError as error:
        log.warning("%s: %s", trial, error)
        return {}
    return result if isinstance(result, dict) else {}


def _parse(corpus: Path, run_ids: Sequence[str]) -> pa.Table:
    """Turns of these runs, and a row with turn 0 for each run whose directory is there."""
    rows: list[dict[str, Any]] = []
    for run_id in run_ids:
        trial = corpus / "trials" / run_id
        if not is_plain_name(run_id) or trial.is_symlink() or not trial.is_dir():
            continue
        rows.append({"run_id": run_id, "turn": 0})
        rows += [turn.__dict__ for turn in read_turns(trial, run_id, corpus)]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _usable(part: Path) -> bool:
    try:
        return bool(pq.read_schema(part).equals(_SCHEMA))
    except (OSError, pa.ArrowException) as error:
        log.warning("%s: not usable (%s), its turns are parsed again.", part, one_line(error, 120))
        return False


def _prefix() -> str:
    """How the names of parts begin that were made by the code as it is now."""
    return f"turns-{code_digest(*_READERS)[:16]}-"


def _drop_others(cache: Path) -> None:
    """Remove what other versions of the code have made."""
    for part in cache.glob("turns-*.parquet"):
        if not part.name.startswith(_prefix()):
            with suppress(OSError):
                part.unlink()


def _next_part(cache: Path) -> Path:
    prefix = _prefix()
    numbers = [int(p.stem.removeprefix(prefix)) for p in cache.glob(f"{prefix}*.parquet")]
    return cache / f"{prefix}{max(numbers, default=0) + 1:05}.parquet"


def _merge(cache: Path, parts: list[Path]) -> None:
    """Put the smaller half of many parts into one; after a crash some runs are parsed again."""
    small = sorted(parts, key=lambda part: part.stat().st_size)[: len(parts) // 2 + 1]
    merged = pa.concat_tables(pq.read_table(part) for part in small)
    target = _next_part(cache)
    for part in small:
        part.unlink()
    write_parquet(merged, target)


@contextmanager
def _held(cache: Path) -> Iterator[bool]:
    """Hold the cache against other processes; yields whether it can be written at all."""
    try:
        cache.mkdir(exist_ok=True)
        held = open_alone(cache / ".lock", "a")
    except (OSError, DepthkitError) as error:
        log.info("%s: turns are parsed without a cache (%s).", cache, error)
        yield False
        return
    with held:
        yield True
