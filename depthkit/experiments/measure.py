"""Measure depth: free runs and the ladder over a set of tasks, with progress (Section 3.1)."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from depthkit.corpus import Corpus
from depthkit.corpus.config import CONFIG
from depthkit.corpus.files import counted
from depthkit.errors import DepthkitError
from depthkit.model import Run
from depthkit.protocol import CEILING, Planned
from depthkit.protocol.verdict import Passes
from depthkit.tasks import LoadedTask, load_tasks
from depthkit.trials.budget import OUTPUT_TOKENS, Purse, may_start
from depthkit.trials.forecast import (
    Expected,
    Key,
    Most,
    Scope,
    clock,
    expected_words,
    most_runs,
    pending,
    refused,
)
from depthkit.trials.limits import Limits, Outcome
from depthkit.trials.models import MODELS_FILE, ModelSpec, select_models
from depthkit.trials.schedule import Schedule
from depthkit.trials.scripted.server import ScriptedServer


def measure(
    task_dirs: Sequence[Path],
    corpus_dir: Path,
    *,
    models: Sequence[str] = (),
    scope: Scope,
    workers: int = 3,
    depths_before: Mapping[Key, int] | None = None,
    models_file: Path | None = None,
    record: bool = True,
    limits: Limits | None = None,
    console: Console | None = None,
) -> Outcome:
    """Run what is missing of the protocol over these tasks, appending to a corpus.

    Args:
        task_dirs: Harbor task directories.
        corpus_dir: The corpus; made if there is none.
        models: Names of the model set in order; by default the corpus' own. For ``evaluation``
            the models to evaluate, whatever the set is.
        scope: Free runs only, capped runs only, or both; or evaluation runs, or runs of merged
            tasks.
        workers: Trials at a time.
        depths_before: Of merged tasks, D before merging (``merged_from``).
        models_file: Registry to lay over the bundled one.
        record: Whether to record terminals.
        limits: When to start no more runs.
        console: Where to draw progress; none is drawn without.

    Raises:
        DepthkitError: For anything about the input that can be said before a run starts.
    """
    faults: list[str] = []
    tasks = load_tasks(task_dirs, faults)
    specs = _specs(corpus_dir, models, models_file, scope)
    for spec in specs:
        spec.check_ready(os.environ)
    (limits or Limits()).prices(specs)
    # Only now: a model set that is written stays, and a wrong name in it could not be taken back.
    corpus = Corpus.open_or_create(corpus_dir, models=_model_set(models, scope))
    with _endpoints(specs) as base_urls:
        schedule = Schedule(
            corpus,
            tasks,
            specs,
            scope=scope,
            workers=workers,
            depths_before=depths_before,
            base_urls=base_urls,
            limits=limits,
            record=record,
        )
        schedule.outcome.given_up += faults
        if console is not None:
            _say_plan(console, tasks, specs, schedule)
        with _progress(console, schedule):
            outcome = schedule.run()
        outcome.given_up += refused(schedule.history, list(schedule.models), scope, outcome.runs)
        if console is not None and (waiting := _without_free(schedule)):
            console.print(_free_first(waiting, len(tasks)), highlight=False, markup=False)
        return outcome


@dataclass(frozen=True)
class Plan:
    """What :func:`measure` would do.

    Attributes:
        tasks: Tasks, of them ``tasks_left`` not finished.
        without_free: Tasks whose capped runs wait for free runs that are not to be started.
        starts: Runs that would start at once.
        most: Runs and turns that may be needed at most.
        most_usd: Dollars of those turns, each as dear as a call of its own model can be, or
            ``max_cost`` where that is less; ``None`` where neither is known.
        not_known: Fields of the registry without which no dearest call is known, such as
            ``context_tokens of my-model``.
        max_cost: The budget, if there is one.
        likely_usd: Dollars of as many runs as may be needed at most, each as dear as the runs so
            far make it likely; ``None`` where no run tells.
        expected: What is to be expected by the finished tasks among these.
        left_out: What is wrong with tasks that would be left out.
    """

    tasks: int
    tasks_left: int
    without_free: int
    starts: list[tuple[Key, Planned]]
    most: Most
    most_usd: float | None
    not_known: list[str]
    max_cost: float | None
    likely_usd: float | None
    expected: Expected
    left_out: list[str]

    def row(self) -> dict[str, Any]:
        """For scripts."""
        starts = [
            {"dataset": key[0], "task_id": key[1], **asdict(planned)}
            for key, planned in self.starts
        ]
        return {**asdict(self), "starts": starts}

    def lines(self) -> list[str]:
        """For a person."""
        said = [
            f"{'/'.join(key)}: {each.model}, {f'cap {each.cap}' if each.cap else 'no cap'}, "
            f"run {each.attempt}"
            for key, each in self.starts
        ]
        likely = []
        if self.likely_usd is not None and self.expected.usd is None:
            likely = [f"As the runs so far cost, all of these would cost ${self.likely_usd:.2f}"]
        return [
            *(f"Left out: {fault}" for fault in self.left_out),
            f"{self.tasks_left} of {self.tasks} tasks are not finished.",
            *([_free_first(self.without_free, self.tasks)] if self.without_free else []),
            f"{len(said)} runs would start now:" if said else "No run would start.",
            *(f"  {line}" for line in said),
            f"At most: {self.most.runs} runs, {self.most.turns} turns, {self._most_words()}",
            *likely,
            f"Expected: {expected_words(self.expected)}",
        ]

    def _most_words(self) -> str:
        if self.most_usd is None:
            return f"cost unknown ({', '.join(self.not_known)} not set in {MODELS_FILE})"
        by = " (--max-cost)" if self.most_usd == self.max_cost else ""
        return f"${self.most_usd:.2f}{by}"


def plan(
    task_dirs: Sequence[Path],
    corpus_dir: Path,
    *,
    models: Sequence[str] = (),
    scope: Scope,
    workers: int = 3,
    depths_before: Mapping[Key, int] | None = None,
    models_file: Path | None = None,
    limits: Limits | None = None,
) -> Plan:
    """What :func:`measure` would start; nothing is started or written, no engine is needed.

    Raises:
        DepthkitError: As :func:`measure`, but for a missing key.
    """
    faults: list[str] = []
    tasks = load_tasks(task_dirs, faults)
    with tempfile.TemporaryDirectory() as nowhere:
        there = (corpus_dir / CONFIG).is_file()
        corpus = (
            Corpus.open(corpus_dir)
            if there
            else Corpus.open_or_create(Path(nowhere) / "corpus", models=_model_set(models, scope))
        )
        specs = _specs(corpus_dir, models, models_file, scope)
        schedule = Schedule(
            corpus,
            tasks,
            specs,
            scope=scope,
            workers=workers,
            depths_before=depths_before,
            limits=limits,
        )
        schedule.read_history()
    without_free = _without_free(schedule)
    runs = {
        key: most_runs(
            key, schedule.history[key], list(schedule.models), scope, caps=schedule.caps_of(key)
        )
        for key in schedule.tasks
    }
    needed = [planned for each in runs.values() for planned in each]
    used = [spec for spec in specs if any(planned.model == spec.name for planned in needed)]
    not_known = [f"{field} of {spec.name}" for spec in used for field in _not_set(spec)]
    max_cost = schedule.limits.max_cost
    bounds = [] if max_cost is None else [max_cost]
    if not not_known:
        dearest = {spec.name: _dearest_call(spec) for spec in used}
        bounds.append(sum((each.cap or CEILING) * dearest[each.model] for each in needed))
    return Plan(
        tasks=len(schedule.tasks),
        tasks_left=sum(map(bool, runs.values())) + without_free,
        without_free=without_free,
        starts=_first(schedule),
        most=Most(len(needed), sum(each.cap or CEILING for each in needed)),
        most_usd=min(bounds, default=None),
        not_known=not_known,
        max_cost=max_cost,
        likely_usd=_likely(schedule, needed),
        expected=schedule.expected_left(),
        left_out=faults + schedule.outcome.given_up,
    )


def _likely(schedule: Schedule, needed: Sequence[Planned]) -> float | None:
    """Dollars of these runs by what runs cost so far; ``None`` where that is not known of any."""
    prices = schedule.limits.prices(list(schedule.models.values()))
    total = 0.0
    for each in needed:
        if schedule.models[each.model].policy is not None:
            continue
        cost = schedule.expected_costs.of(each.model, each.cap, margin=0)
        if cost is None or prices[each.model] is None:
            return None
        total += cost
    return total


def _without_free(schedule: Schedule) -> int:
    """Tasks whose capped runs wait for free runs that this schedule does not start."""
    if schedule.scope != "ladder":
        return 0
    due = [
        pending(schedule.history[key], list(schedule.models), "both", caps=schedule.corpus.caps)
        for key in schedule.tasks
    ]
    return sum(any(planned.purpose == "free" for planned in each) for each in due)


def _free_first(waiting: int, tasks: int) -> str:
    return (
        f"{waiting} of {tasks} tasks lack free runs, without which no capped run starts; "
        "--with-free, or depthkit free beforehand, makes them."
    )


def _first(schedule: Schedule) -> list[tuple[Key, Planned]]:
    """Runs that would start now."""
    running: list[tuple[str, int | None, Purse]] = []
    found: list[tuple[Key, Planned]] = []
    for key, each in schedule.due():
        if len(found) < schedule.workers and may_start(
            schedule.budget, schedule.expected_costs, each.model, each.cap, running
        ):
            found.append((key, each))
            running.append((each.model, each.cap, Purse(schedule.budget)))
    return found


def _not_set(spec: ModelSpec) -> list[str]:
    """Fields of a model that bound what its calls cost and are not set."""
    if spec.policy is not None:
        return []
    fields = ("context_tokens", "input_usd_per_mtok", "output_usd_per_mtok")
    return [field for field in fields if getattr(spec, field) is None]


def _dearest_call(spec: ModelSpec) -> float:
    """Dollars of a call whose prompt and reply are as long as they can be."""
    price = Limits().prices([spec])[spec.name]
    if price is None:  # a scripted policy
        return 0.0
    assert spec.context_tokens is not None
    return price.worst(spec.context_tokens, spec.max_output_tokens or OUTPUT_TOKENS)


def evaluates(corpus_dir: Path, model: str) -> bool:
    """Whether free runs of a model are evaluation: it is not the first of the corpus' model set.

    Where there is no corpus yet, or one without models, it becomes the first.
    """
    if not (corpus_dir / CONFIG).is_file():
        return False
    models = Corpus.open(corpus_dir).models
    return bool(models) and models[0] != model


def _model_set(models: Sequence[str], scope: Scope) -> tuple[str, ...]:
    """Models to enter into the corpus' set; evaluated ones are not."""
    return () if scope in ("evaluation", "merged") else tuple(models)


def _specs(
    corpus_dir: Path, models: Sequence[str], models_file: Path | None, scope: Scope
) -> list[ModelSpec]:
    """The models to measure with; nothing is written."""
    if scope == "evaluation":
        return select_models(models, models_file)
    there = Corpus.open(corpus_dir).models if (corpus_dir / CONFIG).is_file() else ()
    if scope == "merged":  # the first model alone (Appendix H)
        return select_models(there[:1], models_file)
    names = tuple(models) or there
    if not names:
        raise DepthkitError(
            f"{corpus_dir}: the corpus names no models yet; give the model set with --models, "
            "first model first."
        )
    shared = min(len(names), len(there))
    if names[:shared] != there[:shared]:
        raise DepthkitError(
            f"{corpus_dir}/corpus.toml: models is {list(there)}, but --models gives "
            f"{list(names)}; estimates of different model sets need different corpora (--corpus)."
        )
    return select_models(names if len(names) > shared else there, models_file)


@contextlib.contextmanager
def _endpoints(specs: Sequence[ModelSpec]) -> Iterator[dict[str, str]]:
    """Serve the scripted models among these; their endpoint by name."""
    scripted = [spec.name for spec in specs if spec.policy is not None]
    if not scripted:
        yield {}
        return
    with ScriptedServer() as server:
        yield dict.fromkeys(scripted, server.base_url)


def _say_plan(
    console: Console, tasks: Sequence[LoadedTask], specs: Sequence[ModelSpec], schedule: Schedule
) -> None:
    for fault in schedule.outcome.given_up:
        console.print(f"Left out: {fault}", style="yellow", highlight=False, markup=False)
    names = ", ".join(f"{spec.name} ({spec.provenance})" for spec in specs)
    most = schedule.limits.max_cost
    money = "" if most is None else f" · at most ${most:.2f}"
    console.print(
        f"{counted(len(tasks), 'task')} · {counted(len(specs), 'model')}: {names}{money} · corpus "
        f"{schedule.corpus.path}",
        highlight=False,
        markup=False,
    )


@contextlib.contextmanager
def _progress(console: Console | None, schedule: Schedule) -> Iterator[None]:
    """Draw a bar that follows the schedule: runs, passes, money, the most time left, waits."""
    if console is None:
        yield
        return
    bar = Progress(
        TextColumn("Measuring"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[said]}", markup=False),
        TextColumn("{task.fields[notice]}", style="yellow", markup=False),
        console=console,
    )
    started = time.monotonic()
    left: dict[Key, int] = {}

    def follow(run: Run | None) -> None:
        for key in schedule.tasks if run is None else [(run.dataset, run.task_id)]:
            left[key] = schedule.most_left(key).runs
        runs = schedule.outcome.runs
        passes = Passes.of(runs)
        costs = [r.cost_usd for r in runs if r.cost_usd is not None]
        cost = f"${sum(costs):.2f}" if costs else "cost unknown"
        remaining = sum(left.values())
        pace = (time.monotonic() - started) / len(runs) if runs else None
        most = f"at most {clock(pace * remaining)} left" if pace is not None else ""
        bar.update(
            shown,
            total=len(runs) + remaining,
            completed=len(runs),
            said=f"{len(runs)} runs  {passes.counted} passed{passes.apart}  {cost}  {most}",
        )

    def notice(text: str) -> None:
        bar.update(shown, notice=text)
        if text and not console.is_terminal:  # a log shows no bar
            console.print(text, highlight=False, markup=False)

    with bar:
        shown = bar.add_task("", said="", notice="")
        schedule.on_change, schedule.on_notice = follow, notice
        yield
