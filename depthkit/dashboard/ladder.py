"""The ladder of a task: models by caps, each run a cell, with D and N where they come from."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from depthkit.artifacts.model_styles import in_order
from depthkit.dashboard.source import Snapshot
from depthkit.protocol import depth_text


@dataclass(frozen=True)
class Cell:
    """The runs of one model under one cap.

    Attributes:
        cap: ``None`` for no stated cap.
        runs: As in the table ``runs``, by attempt and start.
        is_depth: Whether D of this model is this cap.
        measured: Whether the cap is one of the protocol; others come from other people's runs.
    """

    cap: int | None
    runs: tuple[dict[str, Any], ...]
    is_depth: bool
    measured: bool


@dataclass(frozen=True)
class Rung:
    """One model's row.

    Attributes:
        model: Its name.
        place: In the measurement model set, from 1; ``None`` for a model outside it.
        cells: One a column of the ladder.
        depth: Its D as people read it; empty if unknown.
    """

    model: str
    place: int | None
    cells: tuple[Cell, ...]
    depth: str


@dataclass(frozen=True)
class Ladder:
    """A task's runs.

    Attributes:
        caps: The columns, ``None`` last.
        rungs: Models with free and ladder runs, those of the model set in its order first.
        others: Runs of other purposes (evaluation, merged, progress, generation), by purpose.
        n_run: The run that gives N.
    """

    caps: tuple[int | None, ...]
    rungs: tuple[Rung, ...]
    others: dict[str, list[dict[str, Any]]]
    n_run: str | None


def ladder(snapshot: Snapshot, dataset: str, task_id: str) -> Ladder:
    """The ladder of a task; an empty one if it has no runs."""
    runs = snapshot.rows(
        "SELECT * EXCLUDE (sought) FROM runs WHERE dataset = ? AND task_id = ? "
        "ORDER BY attempt, started NULLS LAST, place",
        [dataset, task_id],
    )
    task = snapshot.task(dataset, task_id) or {}
    depths = json.loads(task.get("D_by_model") or "{}")
    if snapshot.model_set and task.get("D") is not None and not depths:
        depths = {snapshot.model_set[0]: task["D"]}
    cells: dict[tuple[str, int | None], list[dict[str, Any]]] = defaultdict(list)
    others: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        if run["purpose"] in ("free", "ladder"):
            cells[run["model"], run["cap"]].append(run)
        else:
            others[run["purpose"]].append(run)
    found = {cap for _, cap in cells if cap is not None}
    caps = (*sorted({*snapshot.caps, *found}), None)
    names = [name for name in snapshot.model_set if any(model == name for model, _ in cells)]
    names += in_order({model for model, _ in cells} - set(names))
    rungs = tuple(
        Rung(
            model,
            snapshot.model_set.index(model) + 1 if model in snapshot.model_set else None,
            tuple(
                Cell(
                    cap,
                    tuple(cells.get((model, cap), ())),
                    cap is not None and depths.get(model) == cap,
                    cap is None or cap in snapshot.caps,
                )
                for cap in caps
            ),
            depth_text(depths.get(model), snapshot.caps),
        )
        for model in names
    )
    return Ladder(caps, rungs, dict(others), task.get("n_run_id"))


def run_class(run: dict[str, Any]) -> str:
    """Name of the colour of a run: its ending, apart from passes that do not count."""
    if run["suspect"]:
        return "suspect"
    return str(run["ending"]).replace(" ", "-")


def run_word(run: dict[str, Any]) -> str:
    """What a cell says in two or three characters: turns, or why there is no result."""
    if run["verdict"] == "none":
        words = {"refused": "ref", "model_error": "err", "budget": "$", "cancelled": "can"}
        return words.get(run["stop"], "inf")
    return "?" if run["turns"] is None else str(run["turns"])
