"""The scheduler: what the protocol says may start next, in parallel, until nothing is left.

The corpus is the only state. A stopped or killed schedule is continued by starting it again: the
finished runs are in ``runs.jsonl``, and what was in flight is started anew.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from docker.errors import DockerException
from requests.exceptions import ConnectionError as EngineConnectionError

from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.model import Run
from depthkit.protocol import ABOVE, Planned
from depthkit.tasks import LoadedTask
from depthkit.trials import engine
from depthkit.trials.budget import PURSE, Budget, Expectation, Purse, may_start
from depthkit.trials.forecast import TRIES, Expected, Key, Most, Scope, expected, most, pending
from depthkit.trials.interrupts import interruptible
from depthkit.trials.landing import (
    DISK_FULL,
    Hold,
    disk_errors,
    disk_full,
    land,
    recover,
    running_folder,
)
from depthkit.trials.limits import Limits, Outcome, Watch
from depthkit.trials.models import ModelSpec
from depthkit.trials.outages import PAUSES, Outages, engine_answers
from depthkit.trials.patience import PATIENCE, Patience
from depthkit.trials.run import run_trial

type OnChange = Callable[[Run | None], None]
type OnNotice = Callable[[str], None]
type Runner = Callable[..., Coroutine[Any, Any, Run]]

_ENGINE_SECONDS = 2.0
_TRIAL_SECONDS = 1.0
_DISK_FULL = re.compile("no space left on device|disk quota exceeded", re.IGNORECASE)


@dataclass(frozen=True)
class _Started:
    key: Key
    planned: Planned
    purse: Purse
    at: float


type _Running = dict[asyncio.Task[Run], _Started]


class Schedule:
    """Runs of several tasks under one protocol, at most ``workers`` at a time.

    Args:
        corpus: Where runs are appended; its model set is ``models``.
        tasks: The tasks.
        models: The model set in order; the first makes the free runs.
        scope: ``free`` starts free runs only, ``ladder`` capped runs only, ``both`` either.
        depths_before: Of merged tasks, D before merging: no cap above it is tried.
        workers: Trials at a time.
        base_urls: Endpoint by model name, for models that have none of their own.
        limits: When to stop.
        on_change: Called when the history was read, with ``None``, and after each run.
        on_notice: Called with a sentence on what is waited for, empty when that is over.
        record: Whether to record terminals.
        runner: Makes one run, as :func:`depthkit.trials.run.run_trial` does.
        patience: With the endpoint, within a run.
        pauses: With an endpoint that is gone, between runs (:data:`PAUSES`).

    Raises:
        DepthkitError: A limit that cannot be kept: the prices of a model are not known.
    """

    def __init__(
        self,
        corpus: Corpus,
        tasks: Sequence[LoadedTask],
        models: Sequence[ModelSpec],
        *,
        scope: Scope,
        workers: int,
        depths_before: Mapping[Key, int] | None = None,
        base_urls: dict[str, str] | None = None,
        limits: Limits | None = None,
        on_change: OnChange = lambda _: None,
        on_notice: OnNotice = lambda _: None,
        record: bool = True,
        runner: Runner = run_trial,
        patience: Patience | None = None,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self.corpus = corpus
        self.tasks = {(task.record.dataset, task.record.task_id): task for task in tasks}
        self.models = {spec.name: spec for spec in models}
        self.scope: Scope = scope
        self.workers = workers
        self._depths_before = depths_before or {}
        self.base_urls = base_urls or {}
        self.limits = limits or Limits()
        self.on_change = on_change
        self.on_notice = on_notice
        self.record = record
        self.history: defaultdict[Key, list[Run]] = defaultdict(list)
        self.outcome = Outcome()
        self.budget = Budget(self.limits.max_cost)
        self.expected_costs = Expectation(
            self.limits.prices(models), {spec.name: spec.max_output_tokens for spec in models}
        )
        self._runner = runner
        self._patience = patience or Patience()
        self._outages = Outages(pauses)
        self._watch = Watch(self.limits, models, self.base_urls)
        self._tries: Counter[tuple[Key, Planned]] = Counter()
        self._closed: set[str] = set()
        self._pending: dict[Key, list[Planned]] = {}
        self._interrupts = 0
        self._fatal: DepthkitError | OSError | None = None
        self._engine_gone: float | None = None
        self._no_money = False
        self._notice = ""

    # --- what there is to do ---

    def caps_of(self, key: Key) -> Sequence[int]:
        """Caps at which a task is measured."""
        return [c for c in self.corpus.caps if c <= self._depths_before.get(key, ABOVE)]

    def due(self) -> list[tuple[Key, Planned]]:
        """Runs that may start now, task by task in the order given."""
        for key in self.tasks:
            if key not in self._pending:
                history, caps = self.history[key], self.caps_of(key)
                self._pending[key] = pending(history, list(self.models), self.scope, caps=caps)
        return [
            (key, planned)
            for key in self.tasks
            for planned in self._pending[key]
            if self._tries[key, planned] < TRIES and planned.model not in self._closed
        ]

    def most_left(self, key: Key) -> Most:
        """What one task may still need at most: as if every run failed."""
        history, caps = self.history[key], self.caps_of(key)
        return most(key, history, list(self.models), self.scope, caps=caps)

    def expected_left(self) -> Expected:
        """What is left of all tasks, judged by those that are finished."""
        left = {key: self.history[key] for key in self.tasks}
        return expected(left, list(self.models), self.scope, caps=self.caps_of)

    def read_history(self) -> None:
        """Read the runs made so far, and leave out tasks that have changed since.

        Raises:
            DepthkitError: All tasks have.
        """
        changed: dict[Key, str] = {}
        runs = self.corpus.run_records()
        self.expected_costs.learn(runs)
        for run in runs:
            if (task := self.tasks.get(key := (run.dataset, run.task_id))) is None:
                continue
            if run.task_digest not in (None, task.record.digest):
                changed.setdefault(
                    key,
                    f"{task.path}: the task has changed since run {run.run_id} was made; measure "
                    "the changed task into another corpus (--corpus), or give it another name.",
                )
            self.history[key].append(run)
        if changed and len(changed) == len(self.tasks):
            raise DepthkitError("\n".join(changed.values()))
        self.tasks = {key: task for key, task in self.tasks.items() if key not in changed}
        self.outcome.given_up += changed.values()

    def enter_tasks(self) -> None:
        """Append the records that the corpus does not have as they are now."""
        known = {(task.dataset, task.task_id): task for task in self.corpus.task_records()}
        records = (task.record for task in self.tasks.values())
        new = [each for each in records if known.get((each.dataset, each.task_id)) != each]
        self.corpus.append_tasks(new)

    # --- doing it ---

    def run(self) -> Outcome:
        """Measure until nothing is left, a limit is reached, or the schedule is interrupted.

        Ctrl-C once finishes what runs; twice, SIGTERM or SIGHUP stops what runs.

        Raises:
            DepthkitError: If no engine answers, another process measures into this corpus, the
                disk is full, or the account's balance is asked for and not told.
        """
        self._watch.start()
        with disk_errors(self.corpus), Hold(self.corpus, self.budget) as self._hold:
            engine.clean()
            recover(self.corpus)
            self.read_history()  # before anything is written: it may refuse a task
            self.enter_tasks()
            self.on_change(None)
            try:
                asyncio.run(self._measure())
            finally:
                self._clean_up()
        if self._fatal is not None:
            raise self._fatal
        return self.outcome

    def _clean_up(self) -> None:
        try:
            engine.release()
            engine.clean()
        except (DockerException, EngineConnectionError):
            self._say(
                "The Docker engine does not answer, so containers may be left; depthkit clean "
                "removes them."
            )
        if self._fatal is None:  # else a trial may wait there that could not be moved
            shutil.rmtree(running_folder(self.corpus), ignore_errors=True)

    async def _measure(self) -> None:
        self._wake = asyncio.Event()
        running: _Running = {}

        def interrupt(stop_now: bool) -> None:
            if stop_now or self._interrupts:
                for task in running:
                    task.cancel()
            self._interrupts += 1
            self._wake.set()

        with interruptible(interrupt):
            while True:
                limit = self._money_sentence() if self._no_money else await self._watch.reached()
                short = False
                if limit is None and not self._interrupts and self._fatal is None:
                    short = self._start_what_may(running)
                wait = None if limit or self._interrupts else self._wait(running)
                if not running and (wait is None or self._fatal is not None):
                    if limit or short:
                        self.outcome.limit = limit or self._money_sentence()
                    break
                await self._something(running, wait)
        self.outcome.stopped = self._interrupts > 0
        self.outcome.spent = self.budget.spent

    async def _something(self, running: _Running, wait: float | None) -> None:
        """Until a run ends, a pause is over, or the schedule is interrupted."""
        wake = asyncio.create_task(self._wake.wait())
        await asyncio.wait({*running, wake}, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
        wake.cancel()
        self._wake.clear()
        for task in [task for task in running if task.done()]:
            await self._finish(task, running.pop(task))
        if self._engine_gone is not None:
            await self._lost()
        self._say(self._waits_for())

    def _start_what_may(self, running: _Running) -> bool:
        """Start runs; say whether one was left out only because it costs too much."""
        if self._engine_gone is not None:
            return False
        short = False
        in_flight = {(started.key, started.planned) for started in running.values()}
        for key, planned in self.due():
            if len(running) >= self.workers:
                break
            model, others = planned.model, list(running.values())
            same = [other.purse for other in others if other.planned.model == model]
            if (key, planned) in in_flight or not self._outages.may_start(model, same):
                continue
            costs = [(other.planned.model, other.planned.cap, other.purse) for other in others]
            if not may_start(self.budget, self.expected_costs, model, planned.cap, costs):
                short = True
                continue
            self._tries[key, planned] += 1
            started = _Started(key, planned, Purse(self.budget), time.monotonic())
            running[self._start(started)] = started
        return short

    def _start(self, started: _Started) -> asyncio.Task[Run]:
        # The endpoint, which Harbor makes deep inside the trial, finds these by context.
        context = copy_context()
        context.run(PURSE.set, started.purse)
        context.run(PATIENCE.set, self._patience)
        model = started.planned.model
        return asyncio.create_task(
            self._runner(
                self.tasks[started.key],
                started.planned,
                self.models[model],
                trials_dir=running_folder(self.corpus),
                base_url=self.base_urls.get(model),
                record=self.record,
                depth_before=self._depths_before.get(started.key),
            ),
            context=context,
        )

    async def _finish(self, task: asyncio.Task[Run], started: _Started) -> None:
        if task.cancelled():
            return
        key, planned = started.key, started.planned
        self.expected_costs.saw(planned.model, started.purse)
        if error := task.exception():
            await self._could_not_run(error, started)
            return
        run = task.result()
        try:
            with disk_errors(self.corpus):
                land(self.corpus, run)
        except (DepthkitError, OSError) as failed:
            self._fatal = failed  # the trial stays where it is; the next start takes it in
            return
        self.history[key].append(run)
        self._pending.pop(key, None)
        self.outcome.runs.append(run)
        self.expected_costs.learn([run])
        await self._learn_from(run, started)
        if run.verdict == "none" and self._tries[key, planned] >= TRIES:
            cap = f"cap {planned.cap}" if planned.cap else "no cap"
            self.outcome.given_up.append(
                f"{'/'.join(key)} with {planned.model}, {cap}, run {planned.attempt}: "
                f"{run.stop} ({run.detail})"
            )
        self.on_change(run)

    async def _could_not_run(self, error: BaseException, started: _Started) -> None:
        if isinstance(error, OSError) and error.errno in DISK_FULL:
            self._fatal = disk_full(self.corpus, error)
        elif isinstance(error, DockerException | EngineConnectionError) and await self._lost():
            self._tries[started.key, started.planned] -= 1
        else:
            # Harbor refuses the task itself, for example a network policy that cannot be kept:
            # no run was made, and none will be.
            self._tries[started.key, started.planned] = TRIES
            self.outcome.given_up.append(f"{'/'.join(started.key)}: {error}")

    async def _learn_from(self, run: Run, started: _Started) -> None:
        """What a run without a verdict says of the ones to come."""
        model, again = run.model, (started.key, started.planned)
        refused = time.monotonic() if run.stop == "refused" else None
        self._outages.answered(model, refused or started.purse.answered)
        match run.stop, started.purse.outlook:
            case "infrastructure", _ if _DISK_FULL.search(run.detail or ""):
                self._fatal = disk_full(self.corpus, run.detail)
            case "infrastructure", _ if await self._lost():
                self._tries[again] -= 1
            case "budget", _:
                self._no_money = True
            case "model_error", "may_pass":
                self._tries[again] -= not self._outages.costs_a_try(again, started.purse)
                if self._outages.failed(model, started.at):
                    self._close(model, run)
            case "model_error", "all":
                self._close(model, run)

    def _close(self, model: str, run: Run) -> None:
        """Start no more runs of a model that cannot be called."""
        if model not in self._closed:
            self._closed.add(model)
            self.outcome.given_up.append(f"{model}, all its runs: {run.detail}")

    async def _lost(self) -> bool:
        """Whether the engine itself is gone, not a container only."""
        if await engine_answers():
            self._engine_gone = None
            return False
        self._engine_gone = self._engine_gone or time.monotonic()
        if time.monotonic() - self._engine_gone > sum(PAUSES):
            self._fatal = DepthkitError("The Docker engine has not answered for an hour; start it.")
        return True

    # --- limits and waits ---

    def _money_sentence(self) -> str:
        return (
            f"--max-cost ${self.limits.max_cost:.2f} does not cover another run "
            f"(${self.budget.spent:.2f} spent)"
        )

    def _wait(self, running: _Running) -> float | None:
        """Seconds after which something may start that may not now; ``None`` without such."""
        waits = [_ENGINE_SECONDS] if self._engine_gone is not None else []
        due = {planned.model for _, planned in self.due()}
        waits += [left for model, left in self._outages.waiting().items() if model in due]
        if running and due & self._outages.on_trial():
            waits.append(_TRIAL_SECONDS)
        return min(waits) if waits else None

    def _waits_for(self) -> str:
        if self._engine_gone is not None:
            return "The Docker engine does not answer; no new runs until it does."
        return " ".join(
            f"{model}'s endpoint does not answer; next try in {seconds:.0f} s."
            for model, seconds in self._outages.waiting().items()
        )

    def _say(self, notice: str) -> None:
        self._hold.say(notice)
        if re.sub(r"\d+ s", "", notice) != re.sub(r"\d+ s", "", self._notice):
            self._notice = notice
            self.on_notice(notice)
