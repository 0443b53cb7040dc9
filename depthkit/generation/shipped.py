"""The tasks that ship: checked and replayed, with a committed result that fits their files.

``depthkit/data/tasks/`` holds one directory a task, ``replays.json`` (what the replays gave, with
the digests of what was replayed) and ``generation.jsonl`` (how the tasks were made).
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from rich.console import Console

from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.experiments.check import check_tasks
from depthkit.experiments.replay import Replayed, replay_tasks
from depthkit.experiments.replay_plan import table_rows
from depthkit.generation.acceptance import not_noticed
from depthkit.generation.rules import task_faults
from depthkit.model import Replay
from depthkit.tasks.check_scripts import LIBRARY, check_script
from depthkit.tasks.load import LoadedTask, load_task
from depthkit.tasks.review import review

RESULT_FILE = "replays.json"
LOG_FILE = "generation.jsonl"

SHARES = {"checks_before_work": 0.99, "key_step_removed": 0.99, "key_step_removed_next_run": 0.84}
"""Least shares of replays that are noticed, over all tasks that ship (Table 8)."""


def shipped_folder() -> Path:
    """Where the tasks that come with the package are."""
    return Path(str(files("depthkit"))) / "data" / "tasks"


def shipped_tasks(folder: Path) -> list[Path]:
    """The task directories in a folder, by name."""
    return sorted(path.parent for path in folder.glob("*/task.toml"))


def replay_shipped(
    folder: Path, *, workers: int = 2, console: Console | None = None
) -> dict[str, Any]:
    """Check and replay every task of a folder and write the result beside them.

    What is known of a task that is as it was is taken over.

    Raises:
        DepthkitError: A task cannot be replayed, or no engine answers.
    """
    tasks = [load_task(path) for path in shipped_tasks(folder)]
    current = {task.record.task_id: _digests(task) for task in tasks}

    def known() -> dict[str, Any]:
        old = read_result(folder)
        kept = old["tasks"] if old["library"] == _library() else {}
        return {n: row for n, row in kept.items() if n in current and _same(row, current[n])}

    rows = known()
    for task in tasks:
        name = task.record.task_id
        if name not in rows:
            row = current[name] | _tried(task, workers, console)
            # Kept as it goes, beside what another process has kept: all tasks take long.
            rows = known() | {name: row}
            _write(folder, rows)
    return _write(folder, rows)


def _tried(task: LoadedTask, workers: int, console: Console | None) -> dict[str, Any]:
    found = [str(finding) for finding in review(task.path).findings]
    [checked] = check_tasks([task.path], workers=workers, console=console)
    with tempfile.TemporaryDirectory(prefix="depthkit-replay-") as scratch:
        corpus = Path(scratch) / "corpus"
        [replayed] = replay_tasks([task.path], corpus, workers=workers, console=console)
    return {
        "review": found + task_faults(task),
        "faults": [fault.replace(f"{task.path}/", "") for fault in checked.faults],
        "table8": table_rows(replayed.replays),
        "not_noticed": [not_noticed(each) for each in replayed.replays if not each.holds],
        "replays": [_kept(each) for each in replayed.replays],
    }


def _kept(replay: Replay) -> dict[str, Any]:
    row = replay.model_dump(mode="json")
    return {key: row[key] for key in ("change", "segment", "event", "checked_segment", "holds")}


def _write(folder: Path, rows: dict[str, Any]) -> dict[str, Any]:
    replays = [each for name in sorted(rows) for each in _replays(name, rows[name])]
    result = {
        "library": _library(),
        "table8": table_rows(replays),
        "tasks": {name: rows[name] for name in sorted(rows)},
    }
    path = folder / RESULT_FILE
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return result


def read_result(folder: Path) -> dict[str, Any]:
    """The committed result; an empty one where there is none.

    Raises:
        DepthkitError: It is no JSON.
    """
    path = folder / RESULT_FILE
    if not path.is_file():
        return {"library": _library(), "table8": [], "tasks": {}}
    try:
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DepthkitError(f"{path}: is no JSON; run make replay-tasks.") from error
    return result


def mismatches(folder: Path) -> list[str]:
    """Where the committed result does not fit the tasks as they are, in sentences."""
    result = read_result(folder)
    tasks = {path.name: load_task(path) for path in shipped_tasks(folder)}
    found = []
    if result["library"] != _library():
        found.append("the check library has changed since the tasks were replayed")
    for name in sorted(set(tasks) | set(result["tasks"])):
        row, task = result["tasks"].get(name), tasks.get(name)
        if task is None or row is None:
            found.append(f"{name} {'is gone' if task is None else 'was not replayed'}")
        elif not _same(row, _digests(task)):
            found.append(f"{name} has changed since it was replayed")
    return found


def short_of(result: dict[str, Any]) -> list[str]:
    """Which shares of Table 8 are below those that the paper reports, and what is wrong at all."""
    rows = {row["change"]: row for row in result["table8"]}
    found = [
        f"{change}: {rows[change]['holds']} of {rows[change]['results']}, less than {least:.0%}"
        for change, least in SHARES.items()
        if change in rows and (rows[change]["share"] or 0) < least
    ]
    for name, row in result["tasks"].items():
        found += [f"{name}: {fault}" for fault in (*row["faults"], *row["review"])]
    return found


def replay_in_turn(path: Path, result: dict[str, Any]) -> list[str]:
    """Replay one task without a change, and see that its result is the committed one.

    One container: each segment's checks fail before the work, and pass after it.

    Returns:
        list[str]: What is not as the result says.
    """
    task = load_task(path)
    record = task.record
    rows = _replays(record.task_id, result["tasks"][record.task_id])
    wanted = {each.segment: each.holds for each in rows if each.change == "checks_before_work"}
    with tempfile.TemporaryDirectory(prefix="depthkit-turn-") as scratch:
        folder = Path(scratch) / "corpus"
        corpus = Corpus.open_or_create(folder)
        corpus.append_tasks([record])
        for each in rows:
            if each.change != "checks_before_work":
                known = {"dataset": record.dataset, "task_digest": record.digest}
                corpus.append_replay(each.model_copy(update=known))
        [replayed] = replay_tasks([path], folder, workers=1)
    return _other(replayed, wanted)


def _other(replayed: Replayed, wanted: dict[int, bool | None]) -> list[str]:
    return [
        f"segment {each.segment}, checks before the work: {each.holds} ({each.reason}), in the "
        f"committed result {wanted.get(each.segment)}"
        for each in replayed.replays
        if each.change == "checks_before_work" and each.holds != wanted.get(each.segment)
    ]


def _replays(name: str, row: dict[str, Any]) -> list[Replay]:
    return [
        Replay(dataset="tasks", task_id=name, provenance="measured", reason=_reason(each), **each)
        for each in row["replays"]
    ]


def _reason(replay: dict[str, Any]) -> str | None:
    return "no result" if replay["holds"] is None else None


def _digests(task: LoadedTask) -> dict[str, Any]:
    checks = [check_script(task, index) for index in range(task.record.k)]
    return {
        "digest": task.record.digest,
        "checks": [_sha256(path) if path else None for path in checks],
    }


def _same(row: dict[str, Any], digests: dict[str, Any]) -> bool:
    return all(row.get(key) == value for key, value in digests.items())


def _library() -> str:
    return _sha256(LIBRARY)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def in_turn(tasks: Sequence[Path], turn: str) -> Path:
    """The task whose turn it is, by a text such as the name of a commit."""
    return tasks[int(hashlib.sha256(turn.encode()).hexdigest(), 16) % len(tasks)]
