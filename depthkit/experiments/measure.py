"""Measure depth: free runs and the ladder over a set of tasks, with progress (Section 3.1)."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.model import Run
from depthkit.tasks import LoadedTask, load_tasks
from depthkit.trials.models import ModelSpec, select_models
from depthkit.trials.schedule import Outcome, Schedule
from depthkit.trials.scripted.server import ScriptedServer

type Scope = Literal["free", "ladder", "both"]


def measure(
    task_dirs: Sequence[Path],
    corpus_dir: Path,
    *,
    models: Sequence[str] = (),
    scope: Scope,
    workers: int = 3,
    models_file: Path | None = None,
    record: bool = True,
    console: Console | None = None,
) -> Outcome:
    """Run what is missing of the protocol over these tasks, appending to a corpus.

    Args:
        task_dirs: Harbor task directories.
        corpus_dir: The corpus; made if there is none.
        models: Names of the model set in order; by default the corpus' own.
        scope: Free runs only, capped runs only, or both.
        workers: Trials at a time.
        models_file: Registry to lay over the bundled one.
        record: Whether to record terminals.
        console: Where to draw progress; none is drawn without.

    Raises:
        DepthkitError: For anything about the input that can be said before a run starts.
    """
    tasks = load_tasks(task_dirs)
    corpus = Corpus.open_or_create(corpus_dir, models=tuple(models))
    names = tuple(models) or corpus.models
    if not names:
        raise DepthkitError(
            f"{corpus_dir}: the corpus names no models yet; give the model set with --models, "
            "first model first."
        )
    if corpus.models and names != corpus.models[: len(names)]:
        raise DepthkitError(
            f"{corpus_dir}/corpus.toml: models is {list(corpus.models)}, but --models gives "
            f"{list(names)}; estimates of different model sets need different corpora (--corpus)."
        )
    specs = select_models(corpus.models or names, models_file)
    for spec in specs:
        spec.check_ready(os.environ)
    with _endpoints(specs) as base_urls:
        schedule = Schedule(
            corpus,
            tasks,
            specs,
            scope=scope,
            workers=workers,
            base_urls=base_urls,
            record=record,
        )
        if console is not None:
            _say_plan(console, tasks, specs, schedule)
        with _progress(console, schedule):
            return schedule.run()


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
    names = ", ".join(f"{spec.name} ({spec.provenance})" for spec in specs)
    console.print(
        f"{len(tasks)} tasks · {len(specs)} models: {names} · corpus {schedule.corpus.path}",
        highlight=False,
        markup=False,
    )


@contextlib.contextmanager
def _progress(console: Console | None, schedule: Schedule) -> Iterator[None]:
    """Draw a bar that follows the schedule: runs, passes, money, and the most time left."""
    if console is None:
        yield
        return
    bar = Progress(
        TextColumn("Measuring"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[said]}"),
        console=console,
    )
    started = time.monotonic()
    left: dict[tuple[str, str], int] = {}

    def follow(run: Run | None) -> None:
        for key in schedule.tasks if run is None else [(run.dataset, run.task_id)]:
            left[key] = schedule.most_left(key)
        runs = schedule.outcome.runs
        passed = sum(r.passed for r in runs)
        costs = [r.cost_usd for r in runs if r.cost_usd is not None]
        cost = f"${sum(costs):.2f}" if costs else "cost unknown"
        remaining = sum(left.values())
        pace = (time.monotonic() - started) / len(runs) if runs else None
        most = f"at most {_clock(pace * remaining)} left" if pace is not None else ""
        bar.update(
            shown,
            total=len(runs) + remaining,
            completed=len(runs),
            said=f"{len(runs)} runs  {passed} passed  {cost}  {most}",
        )

    with bar:
        shown = bar.add_task("", said="")
        schedule.on_change = follow
        yield


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
