"""What of a corpus is measured, what is missing, and what the rest will take, also while it runs.

Reads only; a ladder that runs elsewhere is seen by the lock it holds and the trials in its folder.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from rich.table import Table
from rich.text import Text

from depthkit.corpus import Corpus
from depthkit.corpus.files import one_line
from depthkit.corpus.show import evaluation_only
from depthkit.errors import DepthkitError
from depthkit.model import Run
from depthkit.protocol import depth_text, estimate, refusing
from depthkit.protocol.verdict import Passes
from depthkit.trials.forecast import (
    Expected,
    Key,
    Most,
    clock,
    expected,
    expected_words,
    most,
    pending,
)
from depthkit.trials.landing import Measuring, measuring, running_folder

State = Literal["not started", "measuring", "partly measured", "suspect", "final", "refused"]

_TURNS = "agent/turns.jsonl"


@dataclass(frozen=True)
class InFlight:
    """A trial that runs now: its name, turns so far, minutes since it began."""

    run_id: str
    turns: int
    minutes: float


@dataclass(frozen=True)
class TaskStatus:
    """How far one task is.

    Attributes:
        state: ``refused``: its first model will not work on it, so there is no result.
            ``suspect``: nothing is missing, but the estimate hangs on a pass that may be forged.
        runs: Runs with a verdict, of those that count for depth.
        without_verdict: Runs without one, by their stop.
        missing: Runs it may still need at most.
        next: What may start next, such as ``glm-5.3-flash cap 5``.
        D: The estimate so far.
        passes: Of the runs with a verdict.
        cost_usd: What its runs cost; ``None`` if that of any is unknown.
    """

    dataset: str
    task_id: str
    state: State
    runs: int
    without_verdict: dict[str, int]
    missing: int
    next: list[str]
    D: int | None
    passes: Passes
    cost_usd: float | None


@dataclass(frozen=True)
class Status:
    """How far a corpus is.

    Attributes:
        measuring: Who measures into it now, if anybody.
        in_flight: Trials that run now.
        tasks: Tasks, in the order of the corpus.
        most: Bound of what is left.
        caps: Turn caps of the corpus.
        expected: What is left, by the finished tasks.
        models: The model set.
        spent_usd: Dollars that its measured runs cost, whatever their purpose; those of unknown
            cost left out.
        of_unknown_cost: How many measured runs those are.
    """

    measuring: Measuring | None
    in_flight: list[InFlight]
    tasks: list[TaskStatus]
    most: Most
    caps: tuple[int, ...]
    expected: Expected
    models: tuple[str, ...]
    spent_usd: float
    of_unknown_cost: int

    @property
    def final(self) -> int:
        """Tasks whose estimate no further run could change."""
        return sum(task.state == "final" for task in self.tasks)

    def row(self) -> dict[str, Any]:
        """For scripts."""
        return asdict(self)


def status(corpus: Corpus) -> Status:
    """Look at a corpus.

    Raises:
        DepthkitError: It names no model set, which evaluation runs alone need not have.
    """
    who = measuring(corpus)
    histories: dict[Key, list[Run]] = {
        (task.dataset, task.task_id): [] for task in corpus.task_records()
    }
    records = corpus.run_records()
    # A scripted policy costs nothing, and what others' runs cost was not spent here.
    costs = [run.cost_usd for run in records if run.provenance == "measured"]
    for run in records:
        if run.purpose in ("free", "ladder") and run.agent is None:
            histories.setdefault((run.dataset, run.task_id), []).append(run)
    # What was merged is measured downward from its parent's D, not by this protocol.
    merged = {(run.dataset, run.task_id) for run in records if run.purpose == "merged"}
    histories = {key: runs for key, runs in histories.items() if runs or key not in merged}
    if not corpus.models and (said := evaluation_only(corpus)):
        raise DepthkitError(f"{corpus.path}: {said}")
    if histories and not corpus.models:
        raise DepthkitError(
            f"{corpus.path}/corpus.toml: models is empty, so there is nothing to say about what is "
            "missing; name the model set there, the one that makes the free runs first."
        )
    flying = _in_flight(corpus) if who is not None else []
    models, caps = corpus.models, corpus.caps
    left = {key: most(key, runs, models, "both", caps=caps) for key, runs in histories.items()}
    stems = Counter(each.run_id.split("__")[0] for each in flying)
    tasks = [
        _task(key, runs, models, caps, left[key].runs, stems) for key, runs in histories.items()
    ]
    return Status(
        measuring=who,
        in_flight=flying,
        tasks=tasks,
        most=sum(left.values(), Most()),
        caps=caps,
        expected=expected(histories, models, "both", caps=lambda _: caps)
        if histories
        else Expected(0, 0, 0, 0),
        models=corpus.models,
        spent_usd=sum(cost for cost in costs if cost is not None),
        of_unknown_cost=costs.count(None),
    )


def _task(
    key: Key,
    runs: list[Run],
    models: tuple[str, ...],
    caps: tuple[int, ...],
    missing: int,
    stems: Mapping[str, int],
) -> TaskStatus:
    due = pending(runs, models, "both", caps=caps)
    valid = [run for run in runs if run.valid]
    costs = [run.cost_usd for run in runs if run.cost_usd is not None]
    found = estimate(runs, models, caps=caps, dataset=key[0], task_id=key[1])
    state: State = "final" if found.final else "suspect"
    if models[0] in refusing(runs, models):
        state = "refused"
    elif _stem(key[1]) in stems:
        state = "measuring"
    elif due:
        state = "partly measured" if valid else "not started"
    return TaskStatus(
        dataset=key[0],
        task_id=key[1],
        state=state,
        runs=len(valid),
        without_verdict=dict(Counter(run.stop for run in runs if not run.valid)),
        missing=missing,
        next=sorted({f"{p.model} {f'cap {p.cap}' if p.cap else 'free'}" for p in due}),
        D=found.D,
        passes=Passes.of(runs),
        cost_usd=sum(costs) if costs and len(costs) == len(runs) else None,
    )


def _stem(task_id: str) -> str:
    """How the name of a task's runs begins (:func:`depthkit.trials.run.new_run_id`)."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", task_id[:40]).strip("-.")


def _in_flight(corpus: Corpus) -> list[InFlight]:
    now = datetime.now(UTC).timestamp()
    found = []
    for folder in sorted(running_folder(corpus).glob("*__*")):
        try:
            began = (folder / "config.json").stat().st_mtime
        except OSError:
            continue  # it is just being set up, or has just ended
        found.append(InFlight(folder.name, _lines(folder / _TURNS), (now - began) / 60))
    return found


def _lines(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except OSError:
        return 0


def status_table(found: Status, *, every: bool) -> Table:
    """For a person: one row a data set, or a task.

    Args:
        found: The status.
        every: A row for each task.
    """
    table = Table(box=None, pad_edge=False)
    if every:
        for heading in ("task", "state", "runs", "missing at most", "D", "next"):
            table.add_column(
                heading, overflow="fold", justify="right" if heading in ("runs", "D") else "left"
            )
        for task in found.tasks:
            table.add_row(
                Text(f"{task.dataset}/{task.task_id}"),
                task.state,
                str(task.runs),
                str(task.missing),
                depth_text(task.D, found.caps),
                Text(", ".join(task.next)),
            )
        return table
    groups: defaultdict[str, list[TaskStatus]] = defaultdict(list)
    for task in found.tasks:
        groups[task.dataset].append(task)
    for heading in (
        "data set",
        "tasks",
        "final",
        "partly",
        "not started",
        "suspect",
        "refused",
        "runs",
    ):
        table.add_column(
            heading, overflow="fold", justify="left" if heading == "data set" else "right"
        )
    for name, tasks in groups.items():
        states = Counter(task.state for task in tasks)
        table.add_row(
            Text(name),
            str(len(tasks)),
            str(states["final"]),
            str(states["partly measured"] + states["measuring"]),
            str(states["not started"]),
            str(states["suspect"]),
            str(states["refused"]),
            str(sum(task.runs for task in tasks)),
        )
    return table


def status_lines(found: Status) -> list[str]:
    """The sentences below the table."""
    unknown = found.of_unknown_cost
    spent = f"${found.spent_usd:.2f}"
    if unknown:
        spent = f"at least {spent} ({unknown} run{'s' if unknown > 1 else ''} of unknown cost)"
    total = Passes(*map(sum, zip(*(astuple(task.passes) for task in found.tasks), strict=True)))
    lines = [
        f"Spent so far: {spent}.",
        f"{found.final} of {len(found.tasks)} tasks are final. "
        f"Left at most: {found.most.runs} runs, {found.most.turns} turns.",
        f"Left as expected: {expected_words(found.expected)}.",
        f"Passes: {total.counted}{total.apart}.",
    ]
    if hanging := [f"{t.dataset}/{t.task_id}" for t in found.tasks if t.state == "suspect"]:
        lines.append(
            f"Not final, though nothing is missing: {', '.join(map(one_line, hanging))}. A pass "
            "that may be forged decides there; the run's detail says why, and depthkit check "
            "whether the task brings that about."
        )
    who = found.measuring
    if who is None:
        return [*lines, "Nobody is measuring into it now."]
    since = clock((datetime.now(UTC) - who.since).total_seconds())
    lines.append(f"Process {who.pid} has been measuring for {since}. {who.notice}".rstrip())
    if who.max_usd is not None:
        lines.append(f"It has spent ${who.spent_usd:.2f} of its --max-cost ${who.max_usd:.2f}.")
    lines += [
        f"  {each.run_id}: {each.turns} turns, {each.minutes:.1f} min" for each in found.in_flight
    ]
    return lines
