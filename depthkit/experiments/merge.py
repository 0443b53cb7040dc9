"""``depthkit merge``: the segments of a task as one instruction (Appendix H).

The environment and the work stay the same. The instruction has the requirements of all segments in
order, the reference solution runs their scripts in order, and all checks run on the final state.
Checks of earlier segments that fail there, since a later segment is meant to change what they look
at, are dropped and recorded.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.tasks import LoadedTask, load_task
from depthkit.tasks.check_scripts import LIBRARY, check_script
from depthkit.tasks.review import syntax_fault
from depthkit.tasks.text import encoding_of, read_text
from depthkit.trials import engine
from depthkit.trials.checks import CheckOutcome
from depthkit.trials.play import offline_container, play_solution, run_check_script

RECORD = "merged.json"
"""In a merged task: where it comes from and which checks were dropped."""


@dataclass(frozen=True)
class Dropped:
    """A check of an earlier segment that does not hold on the final state."""

    segment: str
    check: str
    reason: str


@dataclass
class Merged:
    """What became of one task.

    Attributes:
        path: The merged task; ``None`` where it was not accepted.
        checks: Checks that remain.
        faults: Why it was not accepted.
    """

    parent: str
    parent_dataset: str
    segments: int
    path: str | None = None
    checks: int = 0
    dropped: list[Dropped] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return asdict(self)


def merge_task(path: Path, out: Path) -> Merged:
    """Merge the segments of a task into ``out/NAME-merged`` where that passes the quality check.

    The merged reference solution is run once to find which checks to drop; then the merged task is
    checked as any other: its solution must pass, doing nothing must not.

    Args:
        path: A task of several segments whose checks are written with the check library.
        out: Folder for the merged task; its name is the data set's.

    Raises:
        DepthkitError: The task cannot be merged, ``out`` has such a task already, or no engine
            answers.
    """
    task = load_task(path)
    target = out / f"{task.record.task_id}-merged"
    if target.exists():
        raise DepthkitError(f"{target}: is there already; remove it, or name another folder (-o).")
    found = Merged(task.record.task_id, task.record.dataset, task.record.k)
    _require_mergeable(task)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".merging-", dir=out) as folder:
        draft = Path(folder) / target.name
        write_merged(task, draft, ())
        try:
            engine.clean()
            outcomes = asyncio.run(_final_checks(task, load_task(draft)))
        finally:
            engine.release()
        _judge(task, outcomes, found)
        if not found.faults:
            shutil.rmtree(draft)
            write_merged(task, draft, found.dropped)
            _quality(draft, found)
        if not found.faults:
            found.path = str(target)
            record = json.dumps(found.row(), indent=2, ensure_ascii=False)
            (draft / RECORD).write_text(record + "\n", encoding="utf-8")
            draft.rename(target)
    return found


def _require_mergeable(task: LoadedTask) -> None:
    if task.record.k < 2:
        raise DepthkitError(f"{task.path}: has one segment; there is nothing to merge.")
    for index, segment in enumerate(task.record.segments):
        script = task.solutions[index]
        if script is None:
            raise DepthkitError(f"{task.path}: segment {segment.name} has no solution/solve.sh.")
        if check_script(task, index) is None:
            raise DepthkitError(
                f"{task.path}: segment {segment.name} has no tests/check.sh for the check library; "
                "the checks within a test.sh cannot be told apart (docs/checks.md)."
            )
        first = read_text(script, str(script), latin_1=True).split("\n", 1)[0]
        if first.startswith("#!") and not first.rstrip().endswith(("bash", "sh", "bash -e")):
            raise DepthkitError(f"{script}: is no shell script, so it cannot run with the others.")


async def _final_checks(task: LoadedTask, draft: LoadedTask) -> list[CheckOutcome]:
    """Outcome of each segment's checks after the merged reference solution."""
    async with offline_container(draft, name="merge") as environment:
        await play_solution(environment, draft, 0)
        return [await run_check_script(environment, task, i) for i in range(task.record.k)]


def _judge(task: LoadedTask, outcomes: Sequence[CheckOutcome], found: Merged) -> None:
    *earlier, last = zip(task.record.segments, outcomes, strict=True)
    for segment, outcome in (*earlier, last):
        failed = [result for result in outcome.results if not result.passed]
        if not outcome.finished:
            found.faults.append(
                f"the check script of segment {segment.name} stops on the final state"
            )
        elif segment is last[0]:
            found.faults += [
                f"the last segment's check {each.name} fails: {each.reason}" for each in failed
            ]
        else:
            found.dropped += [
                Dropped(segment.name, each.name, each.reason or "") for each in failed
            ]
        found.checks += sum(result.passed for result in outcome.results)


def _quality(draft: Path, found: Merged) -> None:
    from depthkit.experiments.check import check_tasks

    (checked,) = check_tasks([draft])
    found.faults += checked.faults


# --- the merged task's files ---


def write_merged(task: LoadedTask, target: Path, dropped: Sequence[Dropped]) -> None:
    """Write the files of a merged task, without these checks.

    Raises:
        DepthkitError: Its parts do not go together.
    """
    target.mkdir(parents=True)
    shutil.copytree(task.path / "environment", target / "environment", symlinks=True)
    (target / "solution").mkdir()
    (target / "tests").mkdir()
    (target / "task.toml").write_text(_toml_text(task), encoding="utf-8")
    (target / "instruction.md").write_text(_instruction(task), encoding="utf-8")
    solve = target / "solution" / "solve.sh"
    solve.write_bytes(_solution(task, target / "solution"))
    if fault := syntax_fault(read_text(solve, str(solve), latin_1=True)):
        raise DepthkitError(f"{task.path}: merged, its solution does not parse: {fault[1]}")
    shutil.copy(LIBRARY, target / "tests" / "checks.sh")
    lines = ["#!/bin/bash", 'cd "$(dirname "$0")" || exit', "status=0"]
    for index, segment in enumerate(task.record.segments):
        source = check_script(task, index)
        assert source is not None
        shutil.copy(source, target / "tests" / f"check-{index + 1}.sh")
        names = [each.check for each in dropped if each.segment == segment.name]
        without = f" --without {' '.join(names)}" if names else ""
        lines.append(f"bash checks.sh check-{index + 1}.sh{without} || status=1")
    lines.append("printf '%s\\n' \"$((1 - status))\" >/logs/verifier/reward.txt")
    (target / "tests" / "test.sh").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _instruction(task: LoadedTask) -> str:
    parts = [
        f"This task has {task.record.k} parts. Do all of them, in this order; what a later part "
        "changes need not stay as an earlier one asks. Everything is checked once, at the end."
    ]
    for number, text in enumerate(task.instructions, 1):
        parts.append(f"## Part {number}\n\n{text.strip()}")
    return "\n\n".join(parts) + "\n"


def _solution(task: LoadedTask, folder: Path) -> bytes:
    """One script: each segment's in a subshell, so that none changes how the next one runs."""
    parts = [b"#!/bin/bash"]
    for index, script in enumerate(task.solutions):
        assert script is not None
        for helper in task.helper_files[index]:
            source = task.path / helper
            copy = folder / source.relative_to(script.parent)
            if copy.exists() and copy.read_bytes() != source.read_bytes():
                raise DepthkitError(
                    f"{source}: another segment has a different file of this name; rename one."
                )
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
        text = read_text(script, str(script), latin_1=True).replace("\r\n", "\n")
        parts.append(f"(\n{text.rstrip()}\n)".encode(encoding_of(script)))
    return b"\n".join(parts) + b"\n"


def _toml_text(task: LoadedTask) -> str:
    """``task.toml`` without steps, with the parent's name and time for all segments."""
    import tomllib

    raw = tomllib.loads(read_text(task.path / "task.toml", "task.toml"))
    steps = raw.pop("steps", [])
    own = dict(raw.get("metadata", {}).get("depthkit", {}))
    for name in (
        "names_stated",
        "key_steps",
        "events",
        "public_pass_rate",
        "public_pass_rate_source",
    ):
        own.pop(name, None)
    own |= {
        "parent": task.record.task_id,
        "parent_dataset": task.record.dataset,
        "merged_segments": task.record.k,
    }
    raw["metadata"] = {**raw.get("metadata", {}), "depthkit": own}
    limits = [
        step.get("verifier", {}).get("timeout_sec", task.verifier_timeout_sec) for step in steps
    ]
    raw["verifier"] = {**raw.get("verifier", {}), "timeout_sec": float(sum(limits))}
    if isinstance(raw.get("task"), dict) and "name" in raw["task"]:
        raw["task"] = {**raw["task"], "name": f"{raw['task']['name']}-merged"}
    return _table(raw)


def _table(table: dict[str, Any], where: tuple[str, ...] = ()) -> str:
    """TOML of plain values, lists and tables."""
    plain = [f"{_key(k)} = {_value(v)}\n" for k, v in table.items() if not isinstance(v, dict)]
    head = f"[{'.'.join(map(_key, where))}]\n" if where and plain else ""
    inner = [_table(v, (*where, k)) for k, v in table.items() if isinstance(v, dict)]
    return "\n".join(part for part in (head + "".join(plain), *inner) if part)


def _key(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


# --- measuring it ---


def depths_before(corpus: Corpus, tasks: Sequence[LoadedTask]) -> dict[tuple[str, str], int]:
    """D that the first model has on the task that each merged one was made from.

    No cap above it is tried; where it is above the largest cap (99), all are, from the largest.

    Raises:
        DepthkitError: A task is not merged, or its parent is not told apart or its D not known in
            this corpus.
    """
    if not corpus.models:
        raise DepthkitError(f"{corpus.path}: names no model; measure the tasks before merging.")
    first = corpus.models[0]
    table = corpus.estimates()
    keys = zip(table["dataset"], table["task_id"], strict=True)
    known = {
        key: by_model.get(first) for key, by_model in zip(keys, table["D_by_model"], strict=True)
    }
    found = {}
    for task in tasks:
        record = task.record
        if task.merged_segments < 2 or record.parent is None:
            raise DepthkitError(f"{task.path}: is no merged task; depthkit merge makes them.")
        parents = [key for key in known if record.made_from(*key)]
        if len(parents) > 1:
            raise DepthkitError(
                f"{task.path}: {record.parent} is a task of {', '.join(d for d, _ in parents)} in "
                f"{corpus.path}; say which in task.toml, [metadata.depthkit] parent_dataset."
            )
        depth = known[parents[0]] if parents else None
        if depth is None:
            name = "/".join(filter(None, (record.parent_dataset, record.parent)))
            raise DepthkitError(
                f"{task.path}: D of {name} with {first} is not known in {corpus.path}; measure "
                "that task first (depthkit ladder --with-free)."
            )
        found[record.dataset, record.task_id] = depth
    return found
