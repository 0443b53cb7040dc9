"""The sampled tasks of the six audited data sets: what was measured of each (Sections 4.2, 4.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from depthkit.fitting.depths import EXISTING, SYNTHETIC, Depths, existing_depths
from depthkit.fitting.pins import Floats, Pins, spread_out
from depthkit.fitting.targets import Targets
from depthkit.model import Group
from depthkit.protocol import ABOVE, CAPS

GROUPS: dict[str, Group] = {
    name: "synthetic" if name in SYNTHETIC else "human-curated" for name in EXISTING
}
SPREAD = {"TMax": 0.6, "FACET": 0.45, "SETA": 0.8, "RST": 0.7, "TB2": 1.0, "TW": 0.75}
"""Of log W within a data set; the paper prints medians only."""

LONGEST_MINUTES = 29.9
"""An existing task has 30 minutes (Appendix B)."""

_R_SHARE = 0.6
"""Of the deep synthetic tasks, those that pass both free runs; the paper does not say."""


def least_turns(depth: float) -> int:
    """The least N with which the first model's estimate can be ``depth``: above the cap before."""
    smaller = [cap for cap in CAPS if cap < depth]
    return (smaller[-1] if smaller else 0) + 1


def sampled_tasks(targets: Targets, rng: np.random.Generator) -> pd.DataFrame:
    """One row a sampled task of the six data sets.

    Columns: dataset, group, task_id, solved, D (both models), D_first, N, R (0 for unsolved tasks)
    and W, ``nan`` for unsolved tasks of TMax, which releases no reference solutions.
    """
    depths = existing_depths(targets, rng)
    rows: list[pd.DataFrame] = []
    for name in EXISTING:
        sampled = int(targets(f"table-1/{name}/sampled"))
        members = depths.of(name)
        solved = int(members.sum())
        unsolved = sampled - solved
        rows.append(
            pd.DataFrame(
                {
                    "dataset": name,
                    "group": GROUPS[name],
                    "solved": np.arange(sampled) < solved,
                    "D": np.concatenate([depths.both[members], np.full(unsolved, np.nan)]),
                    "D_first": np.concatenate([depths.first[members], np.full(unsolved, np.nan)]),
                }
            )
        )
    tasks = pd.concat(rows, ignore_index=True)
    tasks["N"] = turns_of_n(targets, tasks, rng)
    tasks["W"] = _work(targets, tasks, rng)
    tasks["R"] = _both_pass(targets, tasks, rng)
    for name in EXISTING:
        # Tasks are named in random order, so that a name says nothing about its row
        own = tasks["dataset"] == name
        order = rng.permutation(int(own.sum())) + 1
        tasks.loc[own, "task_id"] = [f"{name.lower()}-{n:03d}" for n in order]
    return tasks


def turns_of_n(targets: Targets, tasks: pd.DataFrame, rng: np.random.Generator) -> Floats:
    """N of solved tasks: medians and means, and tasks with N from 6 to 10 by D = 1."""
    solved = tasks["solved"].to_numpy()
    depth, first = tasks["D"].to_numpy(), tasks["D_first"].to_numpy()
    start = np.ones(len(tasks))
    for name in EXISTING:
        members = solved & (tasks["dataset"] == name).to_numpy()
        n = int(members.sum())
        wanted = np.sort(spread_out(rng, n, targets.number(f"table-1/{name}/N"), 0.5))
        place = np.argsort(np.argsort(np.log(first[members]) + rng.normal(0, 1.6, n)))
        start[members] = wanted[place]
    least = np.array([least_turns(d) if d == d else 1 for d in first], float)
    pins = Pins(np.maximum(start, least), least, 100)
    for name in EXISTING:
        members = solved & (tasks["dataset"] == name).to_numpy()
        pins.pin(0.5, targets.number(f"table-1/{name}/N"), members)
    middle = int(targets("section-4.2/middle-turns"))
    single = int(targets("section-4.2/middle-turns-single"))
    pins.count(6, 10, single, solved & (depth == 1))
    pins.count(6, 10, middle - single, solved & (depth > 1))
    for name in EXISTING:
        members = solved & (tasks["dataset"] == name).to_numpy()
        pins.mean(targets.number(f"table-1/{name}/N_mean"), members)
    return np.where(solved, pins.values, np.nan)


def _work(targets: Targets, tasks: pd.DataFrame, rng: np.random.Generator) -> Floats:
    """Lines of the reference solutions: medians by data set and group, over samples and solved."""
    solved = tasks["solved"].to_numpy()
    group = tasks["group"].to_numpy()
    start = np.ones(len(tasks))
    for name in EXISTING:
        members = (tasks["dataset"] == name).to_numpy()
        median = targets.number(f"table-1/{name}/W")
        start[members] = spread_out(rng, int(members.sum()), median, SPREAD[name])
    pins = Pins(start, 1, 3000)
    for name in EXISTING:
        members = (tasks["dataset"] == name).to_numpy()
        pins.pin(0.5, targets.number(f"table-1/{name}/W"), members & solved)
    pins.pin(0.9, targets.number("figure-3/W-line"), solved & (group == "synthetic"))
    pins.pin(0.5, targets.number("section-4.2/synthetic-work"), solved & (group == "synthetic"))
    pins.pin(0.5, targets.number("section-4.2/curated-work"), solved & (group == "human-curated"))
    # Ours exceeds the next data set by so much over all sampled tasks (Figure 9)
    ours = targets.number("table-9/lines/task_median")
    facet = round(ours / (1 + targets.number("figure-9/above-lines")))
    pins.pin(0.5, facet, (tasks["dataset"] == "FACET").to_numpy())
    unknown = (tasks["dataset"] == "TMax").to_numpy() & ~solved
    return np.where(unknown, np.nan, pins.values)


def _both_pass(targets: Targets, tasks: pd.DataFrame, rng: np.random.Generator) -> Floats:
    """R: 1 where both free runs pass, 0.5 where one does, 0 for unsolved tasks."""
    solved = tasks["solved"].to_numpy()
    synthetic = (tasks["group"] == "synthetic").to_numpy() & solved
    deep = synthetic & (tasks["D"] >= 5).to_numpy()
    found = np.where(solved, 0.5, 0.0)
    both = round(_R_SHARE * deep.sum())
    share = targets.number("figure-12/synthetic-shallow")
    shallow = round(both * share / (1 - share))
    for members, n in ((deep, both), (synthetic & ~deep, shallow)):
        found[rng.choice(np.flatnonzero(members), n, replace=False)] = 1
    curated = np.flatnonzero(solved & ~synthetic)
    found[rng.choice(curated, round(0.72 * len(curated)), replace=False)] = 1
    return found


def free_runs(targets: Targets, tasks: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Length, minutes and context of the two free runs of each task, as Tables 1 and 6 have them.

    Args:
        targets: The printed numbers.
        tasks: With dataset, solved, N and R; data sets of Table 1.
        rng: Of what is free.

    Returns:
        The tasks with turns_n, minutes_n, tokens_n of the run that gives N (of an unsolved task,
        any one of the two), and turns_o, minutes_o, tokens_o of the other.
    """
    names = list(dict.fromkeys(tasks["dataset"]))
    solved, passes = tasks["solved"].to_numpy(), tasks["R"].to_numpy() == 1
    n_turns = tasks["N"].to_numpy(dtype=float)
    ceiling = 150.0
    masks = {name: (tasks["dataset"] == name).to_numpy() for name in names}

    def of(table: str, name: str, column: str) -> float:
        return targets.number(f"{table}/{name}/{column}")

    guess = np.array([of("table-6", name, "turns_all") for name in tasks["dataset"]])
    long = guess * np.exp(rng.normal(0, 0.45, len(tasks)))
    start = np.where(solved, n_turns + np.where(passes, rng.integers(0, 4, len(tasks)), 1), long)
    # The sum of both runs is pinned; a passing second run is not shorter than N
    low = np.where(solved, n_turns + np.where(passes, n_turns, 1), 2)
    sums = Pins(
        np.where(solved, n_turns + start, 2 * start),
        low,
        np.where(solved, n_turns, ceiling) + ceiling,
    )
    for name in names:
        sums.mean(2 * of("table-6", name, "turns_all"), masks[name])
    turns_n = np.where(solved, n_turns, np.maximum(1, np.floor(sums.values / 2)))
    turns_o = sums.values - turns_n

    minutes_n, minutes_o = _two_runs(
        names,
        masks,
        tasks,
        turns_n,
        turns_o,
        rng,
        lambda name: (of("table-1", name, "minutes"), of("table-6", name, "minutes_all")),
        step=0.1,
        most=LONGEST_MINUTES,
        statistic="median",
    )
    tokens_n, tokens_o = _two_runs(
        names,
        masks,
        tasks,
        turns_n,
        turns_o,
        rng,
        lambda name: (
            1000 * of("table-1", name, "tokens_k"),
            1000 * of("table-6", name, "tokens_k_all"),
        ),
        step=1,
        most=400_000,
        statistic="mean",
    )
    return tasks.assign(
        turns_n=turns_n,
        turns_o=turns_o,
        minutes_n=minutes_n,
        minutes_o=minutes_o,
        tokens_n=tokens_n,
        tokens_o=tokens_o,
    )


def _two_runs(
    names: list[str],
    masks: dict[str, Any],
    tasks: pd.DataFrame,
    turns_n: Floats,
    turns_o: Floats,
    rng: np.random.Generator,
    wanted: Callable[[str], tuple[float, float]],
    *,
    step: float,
    most: float,
    statistic: str,
) -> tuple[Floats, Floats]:
    """A quantity of both runs: a statistic over the runs that give N, and one over task means."""
    solved = tasks["solved"].to_numpy()
    noise = np.exp(rng.normal(0, 0.25, (2, len(tasks))))
    limit = np.array([most if name != "Ours" else most * 6 for name in tasks["dataset"]])
    scale = np.ones(len(tasks))
    for name in names:
        over_solved, over_all = wanted(name)
        typical = np.median(turns_n[masks[name] & solved])
        scale[masks[name]] = over_solved / typical
        unsolved = masks[name] & ~solved
        scale[unsolved] *= 1.2 if over_all > over_solved else 0.7
    first = Pins(np.maximum(turns_n * scale * noise[0], step), step, limit, step)
    second = np.maximum(turns_o * scale * noise[1], step)
    for name in names:
        over_solved, _ = wanted(name)
        if statistic == "median":
            first.pin(0.5, over_solved, masks[name] & solved)
        else:
            first.mean(over_solved, masks[name] & solved)
    # Of the sum of both: twice the task's mean, so that medians and means of it are exact
    total = Pins(first.values + second, first.values + step, first.values + limit, step)
    for name in names:
        _, over_all = wanted(name)
        if statistic == "median":
            total.pin(0.5, round(2 * over_all, 6), masks[name])
        else:
            total.mean(2 * over_all, masks[name])
    return first.values, np.round(total.values - first.values, 6)


def check_depths(tasks: pd.DataFrame) -> None:
    """Say so if a task has an estimate that its N rules out."""
    solved = tasks[tasks["solved"]]
    for task in solved.itertuples():
        assert least_turns(float(task.D_first)) <= float(task.N), f"{task.task_id}: N is too small"  # type: ignore[arg-type]
        assert float(task.D) <= float(task.D_first) <= ABOVE, f"{task.task_id}: D"  # type: ignore[arg-type]


__all__ = ["Depths", "check_depths", "free_runs", "least_turns", "sampled_tasks"]
