"""The scheduler: what the protocol says may start next, in parallel, until nothing is left.

The corpus is the only state. A stopped or killed schedule is continued by starting it again: the
finished runs are in ``runs.jsonl``, and what was in flight is started anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import shutil
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.model import Run
from depthkit.protocol import CEILING, Planned, next_runs
from depthkit.tasks import LoadedTask
from depthkit.trials import engine
from depthkit.trials.models import ModelSpec
from depthkit.trials.run import RUN_FILE, run_trial

TRIES = 3
"""Times a run without a verdict is started again within one schedule."""

RUNNING = ".running"
"""Folder in ``trials/`` of runs in flight; what a killed schedule leaves there is no result."""

type Key = tuple[str, str]
type OnChange = Callable[[Run | None], None]


@dataclass
class Outcome:
    """What one schedule did.

    Attributes:
        runs: Runs that were carried out, without verdict included.
        given_up: Runs that gave no verdict in :data:`TRIES` tries, with the last reason.
        stopped: Whether it was stopped before nothing was left.
    """

    runs: list[Run] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    stopped: bool = False


class Schedule:
    """Runs of several tasks under one protocol, at most ``workers`` at a time.

    Args:
        corpus: Where runs are appended; its model set is ``models``.
        tasks: Single-instruction tasks.
        models: The model set in order; the first makes the free runs.
        scope: ``free`` starts free runs only, ``ladder`` capped runs only, ``both`` either.
        workers: Trials at a time.
        base_urls: Endpoint by model name, for models that have none of their own.
        on_change: Called when the history was read, with ``None``, and after each run.
        record: Whether to record terminals.
    """

    def __init__(
        self,
        corpus: Corpus,
        tasks: Sequence[LoadedTask],
        models: Sequence[ModelSpec],
        *,
        scope: Literal["free", "ladder", "both"],
        workers: int,
        base_urls: dict[str, str] | None = None,
        on_change: OnChange | None = None,
        record: bool = True,
    ) -> None:
        self.corpus = corpus
        self.tasks = {(task.record.dataset, task.record.task_id): task for task in tasks}
        self.models = {spec.name: spec for spec in models}
        self.scope = scope
        self.workers = workers
        self.base_urls = base_urls or {}
        self.on_change = on_change
        self.record = record
        self.history: defaultdict[Key, list[Run]] = defaultdict(list)
        self.outcome = Outcome()
        self._tries: Counter[tuple[Key, Planned]] = Counter()
        self._interrupts = 0

    def due(self) -> list[tuple[Key, Planned]]:
        """Runs that may start now, task by task in the order given."""
        found = []
        for key in self.tasks:
            for planned in next_runs(
                self.history[key], list(self.models), with_free=self.scope != "ladder"
            ):
                in_scope = self.scope != "free" or planned.purpose == "free"
                if in_scope and self._tries[key, planned] < TRIES:
                    found.append((key, planned))
        return found

    def run(self) -> Outcome:
        """Measure until nothing is left or the schedule is interrupted.

        Ctrl-C once finishes what runs; twice, or SIGTERM, stops what runs.

        Raises:
            DepthkitError: If no engine answers, or another process measures into this corpus.
        """
        with _only_one(self.corpus):
            engine.clean()
            recover(self.corpus)
            for task in self.tasks.values():
                self.corpus.append_task(task.record)
            self._read_history()
            self._changed(None)
            try:
                asyncio.run(self._measure())
            finally:
                engine.release()
                engine.clean()
                shutil.rmtree(_running_folder(self.corpus), ignore_errors=True)
        return self.outcome

    def _read_history(self) -> None:
        for run in self.corpus.run_records():
            task = self.tasks.get(key := (run.dataset, run.task_id))
            if task is None:
                continue
            if run.task_digest is not None and run.task_digest != task.record.digest:
                raise DepthkitError(
                    f"{task.path}: the task has changed since run {run.run_id} was made; measure "
                    "the changed task into another corpus (--corpus), or give it another name."
                )
            self.history[key].append(run)

    def _changed(self, run: Run | None) -> None:
        if self.on_change is not None:
            self.on_change(run)

    def most_left(self, key: Key) -> int:
        """Most runs of one task that may still be needed: as many as if every one failed."""
        imagined = list(self.history[key])
        count = 0
        while planned := [
            p
            for p in next_runs(imagined, list(self.models), with_free=self.scope != "ladder")
            if self.scope != "free" or p.purpose == "free"
        ]:
            count += len(planned)
            imagined += [_worst(key, p, count) for p in planned]
        return count

    async def _measure(self) -> None:
        running: dict[asyncio.Task[Run], tuple[Key, Planned]] = {}
        with self._interruptible(running):
            while True:
                if self._interrupts == 0:
                    in_flight = set(running.values())
                    for key, planned in self.due():
                        if len(running) >= self.workers:
                            break
                        if (key, planned) not in in_flight:
                            self._tries[key, planned] += 1
                            running[self._start(key, planned)] = (key, planned)
                if not running:
                    break
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._finish(task, *running.pop(task))
        self.outcome.stopped = self._interrupts > 0

    def _start(self, key: Key, planned: Planned) -> asyncio.Task[Run]:
        return asyncio.create_task(
            run_trial(
                self.tasks[key],
                planned,
                self.models[planned.model],
                trials_dir=_running_folder(self.corpus),
                base_url=self.base_urls.get(planned.model),
                record=self.record,
            )
        )

    def _finish(self, task: asyncio.Task[Run], key: Key, planned: Planned) -> None:
        if task.cancelled():
            return
        if error := task.exception():
            # Harbor refuses the task itself, for example a network policy that cannot be kept:
            # no run was made, and none will be.
            self._tries[key, planned] = TRIES
            self.outcome.given_up.append(f"{'/'.join(key)}: {error}")
            return
        run = task.result()
        _land(self.corpus, run)
        self.history[key].append(run)
        self.outcome.runs.append(run)
        if run.verdict == "none" and self._tries[key, planned] >= TRIES:
            cap = f"cap {planned.cap}" if planned.cap else "no cap"
            self.outcome.given_up.append(
                f"{'/'.join(key)} with {planned.model}, {cap}, run {planned.attempt}: "
                f"{run.stop} ({run.detail})"
            )
        self._changed(run)

    @contextlib.contextmanager
    def _interruptible(
        self, running: dict[asyncio.Task[Run], tuple[Key, Planned]]
    ) -> Iterator[None]:
        loop = asyncio.get_running_loop()

        def interrupt(stop_now: bool) -> None:
            if stop_now or self._interrupts:
                for task in running:
                    task.cancel()
            self._interrupts += 1

        handlers = {signal.SIGINT: False, signal.SIGTERM: True}
        for number, stop_now in handlers.items():
            loop.add_signal_handler(number, interrupt, stop_now)
        try:
            yield
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)


def _worst(key: Key, planned: Planned, number: int) -> Run:
    """The outcome that leaves most to do: a free run passes only at the ceiling, others fail."""
    free = planned.purpose == "free"
    return Run(
        run_id=f"imagined-{number}-{planned.attempt}",
        dataset=key[0],
        task_id=key[1],
        model=planned.model,
        cap=planned.cap,
        attempt=planned.attempt,
        purpose=planned.purpose,
        verdict="passed" if free else "failed",
        stop="submitted",
        turns=CEILING if free else planned.cap,
        provenance="scripted",
    )


def _running_folder(corpus: Corpus) -> Path:
    return corpus.path / "trials" / RUNNING


def _land(corpus: Corpus, run: Run) -> None:
    """Move a finished trial to its place, then append its record.

    In this order a run in ``runs.jsonl`` always has its files, and one killed in between is found
    again.
    """
    source = _running_folder(corpus) / run.run_id
    if source.is_dir():
        source.rename(corpus.trial_dir(run.run_id))
    corpus.append_run(run)


def recover(corpus: Corpus) -> list[str]:
    """Append runs whose files are in place but whose line is missing; drop half-done trials.

    Only a process that holds the corpus may call it.

    Returns:
        list[str]: Names of the runs that were appended.
    """
    known = {run.run_id for run in corpus.run_records()}
    found = []
    trials = corpus.path / "trials"
    for folder in (trials, trials / RUNNING):
        for path in sorted(folder.glob(f"*/{RUN_FILE}")):
            run = Run.model_validate_json(path.read_text(encoding="utf-8"))
            if run.run_id not in known and run.run_id == path.parent.name:
                _land(corpus, run)
                found.append(run.run_id)
    shutil.rmtree(trials / RUNNING, ignore_errors=True)
    return found


@contextlib.contextmanager
def _only_one(corpus: Corpus) -> Iterator[None]:
    """Hold the corpus for measuring, so that nothing is measured twice."""
    path = corpus.path / ".measuring.lock"
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DepthkitError(
                f"{corpus.path}: another depthkit process is measuring into this corpus; wait for "
                "it, or name another one with --corpus."
            ) from error
        yield
