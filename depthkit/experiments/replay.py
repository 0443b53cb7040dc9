"""``depthkit replay``: reference solutions with one part changed (Appendix F, Table 8).

Each container is fresh and offline. The state after whole segments is taken from a snapshot of the
clean replay where nothing ran in it that a snapshot would lose, and is otherwise played again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from docker.errors import DockerException
from docker.models.images import Image
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.experiments.replay_plan import Branch, Part, Plan, plan_replays, table_rows
from depthkit.model import Change, Replay
from depthkit.tasks import LoadedTask, load_tasks
from depthkit.tasks.check_scripts import check_script
from depthkit.tasks.markers import read_marks
from depthkit.tasks.text import printable, read_text
from depthkit.trials import engine
from depthkit.trials.checks import CheckOutcome
from depthkit.trials.environment import DockerEnvironment
from depthkit.trials.landing import Hold, disk_errors
from depthkit.trials.play import (
    offline_container,
    play_solution,
    resting_image,
    run_check_script,
)
from depthkit.trials.snapshot import NoSnapshotError, drop_snapshot


class NoResultError(Exception):
    """A replay did not run to a result; the message says why."""


@dataclass
class Replayed:
    """The replays of one task, those of earlier calls among them.

    Attributes:
        containers: How many containers this call started.
        snapshots: How many states were taken from a snapshot.
    """

    dataset: str
    task_id: str
    replays: list[Replay] = field(default_factory=list)
    containers: int = 0
    snapshots: int = 0

    def row(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {
            "dataset": self.dataset,
            "task_id": self.task_id,
            "table": table_rows(self.replays),
            "replays": [each.model_dump(mode="json") for each in self.replays],
            "containers": self.containers,
            "snapshots": self.snapshots,
        }


def replay_tasks(
    task_dirs: Sequence[Path],
    corpus_dir: Path,
    *,
    workers: int = 2,
    retry: bool = False,
    snapshots: bool = True,
    faults: list[str] | None = None,
    console: Console | None = None,
) -> list[Replayed]:
    """Make the replays that are missing of some tasks, appending each to a corpus.

    Args:
        task_dirs: Task directories.
        corpus_dir: The corpus; made if there is none.
        workers: Containers at a time.
        retry: Whether replays that gave no result are made again.
        snapshots: Whether states may be taken from snapshots.
        faults: Takes what is wrong with tasks that are left out; without it the first is raised.
        console: Where to draw progress; none is drawn without.

    Raises:
        DepthkitError: A task cannot be replayed or has changed since its replays were made, another
            process works on this corpus, or no engine answers.
    """
    tasks = load_tasks(task_dirs, faults, require=_require_replayable)
    corpus = Corpus.open_or_create(corpus_dir)
    with disk_errors(corpus), Hold(corpus):
        found = [_known(task, corpus, retry) for task in tasks]
        known = {(record.dataset, record.task_id): record for record in corpus.task_records()}
        corpus.append_tasks(
            [
                task.record
                for task in tasks
                if known.get((task.record.dataset, task.record.task_id)) != task.record
            ]
        )
        plans = [_plan(task, each) for task, each in zip(tasks, found, strict=True)]
        if any(plan.containers for plan in plans):
            engine.clean()
        try:
            with _progress(console, sum(len(plan.parts) for plan in plans)) as advance:

                def keep(replayed: Replayed, replay: Replay) -> None:
                    replayed.replays.append(replay)
                    corpus.append_replay(replay)
                    advance()

                asyncio.run(
                    _replay_all(
                        list(zip(tasks, plans, found, strict=True)), workers, snapshots, keep
                    )
                )
        finally:
            engine.release()
    for each in found:
        each.replays.sort(key=lambda r: (_CHANGES.index(r.change), r.segment, r.event or 0))
    return found


_CHANGES: tuple[Change, ...] = get_args(Change)


def _require_replayable(task: LoadedTask) -> None:
    for index, segment in enumerate(task.record.segments):
        if task.solutions[index] is None:
            raise DepthkitError(f"{task.path}: segment {segment.name} has no solution/solve.sh.")
        if check_script(task, index) is None:
            raise DepthkitError(
                f"{task.path}: segment {segment.name} has no tests/check.sh for the check library; "
                "a test.sh that crashes cannot be told from one that reports a failure "
                "(docs/checks.md)."
            )
    if task.compose:
        raise DepthkitError(
            f"{task.path}: environments of several containers (docker-compose.yaml) are not "
            "replayed (docs/checks.md)."
        )


def _known(task: LoadedTask, corpus: Corpus, retry: bool) -> Replayed:
    record = task.record
    found = Replayed(record.dataset, record.task_id)
    for each in corpus.replay_records():
        if (each.dataset, each.task_id) != (record.dataset, record.task_id):
            continue
        if each.task_digest is not None and each.task_digest != record.digest:
            raise DepthkitError(
                f"{task.path}: the task has changed since its replays were made; replay the "
                "changed task into another corpus (--corpus)."
            )
        if each.holds is not None or not retry:
            found.replays.append(each)
    return found


def _plan(task: LoadedTask, found: Replayed) -> Plan:
    scripts = [_script(task, index) for index in range(task.record.k)]
    done = [Part(r.change, r.segment, r.checked_segment, r.event) for r in found.replays]
    return plan_replays(scripts, [read_marks(script) for script in scripts], done)


def _script(task: LoadedTask, index: int) -> str:
    path = task.solutions[index]
    assert path is not None
    return read_text(path, str(path), latin_1=True)


async def _replay_all(
    work: Sequence[tuple[LoadedTask, Plan, Replayed]], workers: int, snapshots: bool, keep: Any
) -> None:
    free = asyncio.Semaphore(workers)
    async with asyncio.TaskGroup() as group:
        for task, plan, found in work:
            if plan.parts:
                group.create_task(_TaskReplay(task, plan, found, free, snapshots, keep).run())


class _TaskReplay:
    """All replays of one task; states and the verdicts of the clean replay are awaited."""

    def __init__(
        self,
        task: LoadedTask,
        plan: Plan,
        found: Replayed,
        free: asyncio.Semaphore,
        snapshots: bool,
        keep: Any,
    ) -> None:
        self.task, self.plan, self.found = task, plan, found
        self._free, self._snapshots, self._keep_replay = free, snapshots, keep
        k = task.record.k
        loop = asyncio.get_running_loop()
        self._states: list[asyncio.Future[Image | None]] = [loop.create_future() for _ in range(k)]
        """Snapshot after so many segments, from the first on; ``None`` where there is none."""
        self._clean: list[asyncio.Future[str | None]] = [loop.create_future() for _ in range(k)]
        """Why the unchanged solution of a segment does not pass; ``None`` where it does."""
        self._images: list[Image] = []

    async def run(self) -> None:
        for part, reason in self.plan.impossible:
            self._keep(part, None, reason)
        if not self.plan.containers:
            return
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._play_clean())
                for branch in self.plan.branches:
                    group.create_task(self._play_branch(branch))
        finally:
            for image in self._images:
                await drop_snapshot(image)

    # --- the clean replay ---

    async def _play_clean(self) -> None:
        before: dict[int, tuple[bool | None, str | None]] = {}
        fault = "the clean replay did not get there"
        try:
            async with self._free, self._container("clean") as environment:
                for number in range(1, self.task.record.k + 1):
                    if number in self.plan.before:
                        before[number] = await self._checks_fail(environment, number)
                    await self._solve(environment, number, None)
                    self._clean[number - 1].set_result(await self._passes(environment, number))
                    self._states[number - 1].set_result(await self._snapshot(environment, number))
        except (NoResultError, DepthkitError, DockerException, RuntimeError) as error:
            fault = _line(error)
        finally:
            for clean in self._clean:
                if not clean.done():
                    clean.set_result(fault)
            for state in self._states:
                if not state.done():
                    state.set_result(None)
        for number in sorted(self.plan.before):
            holds, reason = before.get(number, (None, fault))
            await self._finish(Part("checks_before_work", number, number), holds, reason)

    async def _passes(self, environment: DockerEnvironment, number: int) -> str | None:
        """Why a segment's checks do not pass after the unchanged solution."""
        outcome = await run_check_script(environment, self.task, number - 1)
        if outcome.passed:
            return None
        if not outcome.finished:
            return f"the check script of segment {number} stops: {_last(outcome)}"
        failed = next((r for r in outcome.results if not r.passed), None)
        said = f"{failed.name}: {failed.reason}" if failed else "it has no check"
        return f"the unchanged solution fails segment {number}: {_line(said)}"

    async def _snapshot(self, environment: DockerEnvironment, number: int) -> Image | None:
        if not self._snapshots or all(branch.start != number for branch in self.plan.branches):
            return None
        try:
            image = await resting_image(environment)
        except NoSnapshotError:
            return None
        if image is not None:
            self._images.append(image)
            self.found.snapshots += 1
        return image

    # --- the others ---

    async def _play_branch(self, branch: Branch) -> None:
        first, image = 0, None
        for number in range(branch.start, 0, -1):
            image = await self._states[number - 1]
            if image is not None:
                first = number
                break
        left = list(branch.steps)
        results: list[tuple[Part, bool | None, str | None]] = []
        name = f"{branch.parts[0].change}-{branch.parts[0].segment}"
        try:
            async with self._free, self._container(name, image) as environment:
                for number in range(first + 1, branch.start + 1):
                    await self._solve(environment, number, None)
                while left:
                    number, script, part = left[0]
                    await self._solve(environment, number, script)
                    results.append((part, *await self._checks_fail(environment, part.checked)))
                    left.pop(0)
        except (NoResultError, DepthkitError, DockerException, RuntimeError) as error:
            results += [(part, None, _line(error)) for _, _, part in left]
        for part, holds, reason in results:
            await self._finish(part, holds, reason)

    # --- what all do ---

    @contextlib.asynccontextmanager
    async def _container(self, name: str, image: Image | None = None) -> Any:
        async with offline_container(self.task, name=name, image=image) as environment:
            self.found.containers += 1
            yield environment

    async def _solve(self, environment: DockerEnvironment, number: int, script: str | None) -> None:
        played = await play_solution(environment, self.task, number - 1, script=script)
        if played.status is None:
            raise NoResultError(f"the solution of segment {number} did not end in its time")

    async def _checks_fail(
        self, environment: DockerEnvironment, number: int
    ) -> tuple[bool | None, str | None]:
        """Whether a segment's checks report a failure; a script that crashes gives no result."""
        outcome = await run_check_script(environment, self.task, number - 1)
        if not outcome.finished:
            return None, f"the check script of segment {number} stops: {_last(outcome)}"
        return not outcome.passed, None

    async def _finish(self, part: Part, holds: bool | None, reason: str | None) -> None:
        """Keep a replay, once it is known whether the unchanged solution passes the same checks."""
        fault = await self._clean[part.checked - 1]
        self._keep(part, None if fault else holds, fault or reason)

    def _keep(self, part: Part, holds: bool | None, reason: str | None) -> None:
        record = self.task.record
        replay = Replay(
            dataset=record.dataset,
            task_id=record.task_id,
            change=part.change,
            segment=part.segment,
            event=part.event,
            checked_segment=part.checked,
            holds=holds,
            reason=reason if holds is None else None,
            task_digest=record.digest,
            provenance="measured",
        )
        self._keep_replay(self.found, replay)


def _last(outcome: CheckOutcome) -> str:
    lines = [line for line in outcome.log.splitlines() if line.strip()]
    return _line(lines[-1] if lines else "it said nothing")


def _line(text: object) -> str:
    return printable(" ".join(str(text).split()))[:300]


@contextlib.contextmanager
def _progress(console: Console | None, parts: int) -> Iterator[Any]:
    if console is None or not parts:
        yield lambda: None
        return
    bar = Progress(TextColumn("Replaying"), BarColumn(), MofNCompleteColumn(), console=console)
    with bar:
        shown = bar.add_task("", total=parts)
        yield lambda: bar.advance(shown)
