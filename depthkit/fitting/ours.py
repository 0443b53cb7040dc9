"""The paper's own tasks: size, depth and the pass rates of six models (4.4, 4.5, G, I)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from depthkit.errors import DepthkitError
from depthkit.fitting.audit import least_turns
from depthkit.fitting.pins import Floats, Pins, share_out, spread_out
from depthkit.fitting.search import rank_correlation
from depthkit.fitting.targets import Targets
from depthkit.protocol import ABOVE, CAPS, CEILING

EXAMPLE = "NetworkManager-l2tp"
MODELS = (
    "claude-sonnet-5.5",
    "gpt-6.1-sol",
    "gpt-6-luna",
    "deepseek-v4.1-flash",
    "mimo-v2.6-flash",
    "glm-5.3-flash",
)
NAMES = dict(
    zip(
        MODELS,
        (
            "Claude Sonnet 5.5",
            "GPT-6.1 Sol",
            "GPT-6 Luna",
            "DeepSeek-V4.1-Flash",
            "MiMo-V2.6-Flash",
            "GLM-5.3-Flash",
        ),
        strict=True,
    )
)
CLAUDE, SOL, LUNA, DEEPSEEK, MIMO, GLM = range(6)
RATED = (GLM, LUNA, MIMO, SOL)
"""Whose mean is the pass rate of our tasks."""

_BOTH_SHARE = 0.55
"""Of the solved tasks, about how many pass both free runs; the paper does not say."""


def our_tasks(targets: Targets, rng: np.random.Generator) -> pd.DataFrame:
    """One row a task, columns as in ``audit.sampled_tasks``, and k, category, seed_env, paired.

    ``paired``: the seed environment has an original task that is measured. The first row is the
    paper's example.
    """
    number = int(targets("section-4.4/tasks"))
    solved = int(targets("table-1/Ours/solved"))
    depths = [(10, "D-10"), (20, "D-20"), (40, "D-40"), (80, "D-80"), (ABOVE, "D-above")]
    depth = np.concatenate([np.repeat(d, int(targets(f"section-G/{c}"))) for d, c in depths])
    first = _first(targets, depth)
    # The example comes first
    example = int(np.flatnonzero((depth == targets.number("table-10/D")) & (first == depth))[0])
    order = np.concatenate([[example], rng.permutation(np.delete(np.arange(solved), example))])
    depth, first = depth[order], first[order]
    tasks = pd.DataFrame(
        {
            "dataset": "Ours",
            "group": "ours",
            "solved": np.arange(number) < solved,
            "D": np.concatenate([depth, np.full(number - solved, np.nan)]),
            "D_first": np.concatenate([first, np.full(number - solved, np.nan)]),
            "k": _lengths(targets, number, rng),
            "category": _categories(targets, number, rng),
        }
    )
    names = [f"env-{n:03d}" for n in rng.permutation(number) + 1]
    tasks["seed_env"] = [EXAMPLE, *names[1:]]
    tasks["task_id"] = [f"ours-{name.lower()}" for name in tasks["seed_env"]]
    tasks["paired"] = False
    deep = np.flatnonzero((tasks["D"] >= 20).to_numpy())
    pairs = int(targets("section-4.4/pairs"))
    tasks.loc[rng.choice(deep, pairs, replace=False), "paired"] = True
    tasks["N"] = _turns(targets, tasks, rng)
    tasks["W"] = _work(targets, tasks, rng)
    tasks["R"] = _both_pass(targets, tasks, rng)
    return tasks


def _first(targets: Targets, depth: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first model's estimates: the second lowers some tasks by one cap, none below 20."""
    lowered = int(targets("figure-10/ours-lowered"))
    goal = targets("figure-10/ours-rho")
    up = dict(zip((*CAPS, ABOVE), (*CAPS[1:], ABOVE, ABOVE), strict=True))
    best: tuple[float, NDArray[np.int64]] | None = None
    for counts in product(range(lowered + 1), repeat=3):
        if sum(counts) != lowered:
            continue
        first = depth.copy()
        for before, n in zip((20, 40, 80), counts, strict=True):
            first[np.flatnonzero(depth == before)[-n or len(depth) :]] = up[before]
        miss = abs(rank_correlation(depth, first) - goal.value)
        if best is None or miss < best[0]:
            best = miss, first
    assert best is not None
    return best[1]


def _lengths(targets: Targets, number: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Segments of each task; the example has six."""
    five, three = (int(targets(f"section-G/{n}-segments")) for n in ("five", "three"))
    found = np.full(number, int(targets("table-10/segments")))
    # Most of the shorter tasks are solved, so that models can pass them
    short = np.concatenate([rng.choice(np.arange(1, 50), 5, replace=False), [70, 71]])
    found[short[: five + three]] = np.repeat([5, 3], [five, three])
    return found


def _categories(targets: Targets, number: int, rng: np.random.Generator) -> NDArray[np.object_]:
    named = ("software-engineering", "environment-setup", "system-administration", "security")
    found: list[str | None] = []
    for name in named:
        found += [name] * int(targets(f"section-G/{name}"))
    others, tasks = (
        int(targets("section-G/other-categories")),
        int(targets("section-G/other-tasks")),
    )
    found += [f"category-{1 + i % others:02d}" for i in range(tasks)]
    found += [None] * int(targets("section-G/no-category"))
    if len(found) != number:
        raise DepthkitError(f"G: the categories hold {len(found)} tasks, not {number}.")
    return rng.permutation(np.array(found, object))


def _turns(targets: Targets, tasks: pd.DataFrame, rng: np.random.Generator) -> Floats:
    solved = tasks["solved"].to_numpy()
    n = int(solved.sum())
    least = np.array([least_turns(d) if d == d else 1 for d in tasks["D_first"]], float)
    start = np.where(solved, least * np.exp(rng.uniform(0, 0.7, len(tasks))), 1)
    high = np.full(len(tasks), float(CEILING - 5))
    least[0] = high[0] = targets.number("table-10/N")
    pins = Pins(start, least, high)
    pins.pin(0.5, targets.number("table-1/Ours/N"), solved)
    pins.mean(targets.number("table-1/Ours/N_mean"), solved)
    assert n == solved.sum()
    return np.where(solved, pins.values, np.nan)


def _work(targets: Targets, tasks: pd.DataFrame, rng: np.random.Generator) -> Floats:
    solved, paired = tasks["solved"].to_numpy(), tasks["paired"].to_numpy()
    number = targets.number
    low = np.full(len(tasks), 30.0)
    high = np.full(len(tasks), 1500.0)
    low[0] = high[0] = number("table-10/W")
    pins = Pins(spread_out(rng, len(tasks), number("table-9/lines/task_median"), 0.6), low, high)
    pins.pin(0.5, number("figure-13/work"), paired)
    pins.pin(0.5, number("table-1/Ours/W"), solved)
    for q, name in ((0.5, "median"), (0.1, "p10"), (0.9, "p90")):
        pins.pin(q, number(f"table-9/lines/task_{name}"))
    return pins.values


def _both_pass(targets: Targets, tasks: pd.DataFrame, rng: np.random.Generator) -> Floats:
    solved = tasks["solved"].to_numpy()
    deep = (tasks["D"] >= 40).to_numpy()
    share = targets.number("figure-12/ours-very-deep")
    shallow_pool = np.flatnonzero(solved & ~deep)
    # The most shallow tasks that still leave about the wanted number of both
    shallow = min(len(shallow_pool), round(_BOTH_SHARE * solved.sum() * (1 - share)))
    both = round(shallow * share / (1 - share))
    found = np.where(solved, 0.5, 0.0)
    found[rng.choice(shallow_pool, shallow, replace=False)] = 1
    found[rng.choice(np.flatnonzero(solved & deep), both, replace=False)] = 1
    return found


@dataclass(frozen=True)
class Parts:
    """Segments of all tasks, in order of tasks."""

    task: NDArray[np.intp]
    index: NDArray[np.intp]
    lines: Floats
    words: Floats
    names: Floats


def segments(targets: Targets, tasks: pd.DataFrame, rng: np.random.Generator) -> Parts:
    """Lines, words and names of each segment, with the quantiles of Table 9."""
    lengths = tasks["k"].to_numpy()
    task = np.repeat(np.arange(len(tasks)), lengths)
    index = np.concatenate([np.arange(1, k + 1) for k in lengths])

    def totals(measure: str, sigma: float, low: float) -> Floats:
        median = targets.number(f"table-9/{measure}/task_median")
        size = median * lengths / 6
        pins = Pins(size * spread_out(rng, len(tasks), 1, sigma), low, 4 * median)
        for q, name in ((0.5, "median"), (0.1, "p10"), (0.9, "p90")):
            pins.pin(q, targets.number(f"table-9/{measure}/task_{name}"))
        return pins.values

    def split(measure: str, sums: Floats, sigma: float, low: float, share: Any = 1.0) -> Floats:
        weights = share * np.exp(rng.normal(0, sigma, len(task)))
        whole = np.bincount(task, weights)
        pins = Pins(weights / whole[task] * sums[task], low, 1200)
        if measure == "words":
            pins.pin(0.5, targets.number("section-G/words-first"), index == 1)
            pins.pin(0.5, targets.number("section-G/words-later"), index > 1)
        for q, name in ((0.5, "median"), (0.1, "p10"), (0.9, "p90")):
            pins.pin(q, targets.number(f"table-9/{measure}/segment_{name}"))
        _make_room(pins, task, index == 1, sums, rng)
        found = pins.values.copy()
        for number, total in enumerate(sums):
            own = task == number
            found[own] = share_out(found[own], pins.low[own], pins.high[own], total)
        return found

    words = totals("words", 0.16, 400)
    names = totals("names", 0.35, 10)
    return Parts(
        task=task,
        index=index,
        lines=split("lines", tasks["W"].to_numpy(), 0.65, 2),
        words=split("words", words, 0.25, 60, np.where(index == 1, 0.8, 1.0)),
        names=split("names", names, 0.5, 1),
    )


def _make_room(
    pins: Pins,
    task: NDArray[np.intp],
    kind: NDArray[np.bool_],
    sums: Floats,
    rng: np.random.Generator,
) -> None:
    """Exchange segments of a kind between tasks until the bounds of each task allow its total."""

    def short(number: int) -> float:
        own = task == number
        return float(
            max(0.0, pins.low[own].sum() - sums[number], sums[number] - pins.high[own].sum())
        )

    for number in range(len(sums)):
        for _ in range(2000):
            if not (missing := short(number)):
                break
            i = int(rng.choice(np.flatnonzero(task == number)))
            j = int(rng.choice(np.flatnonzero((task != number) & (kind == kind[i]))))
            other = int(task[j])
            before = missing + short(other)
            pair, turned = [i, j], [j, i]
            columns = (pins.values, pins.low, pins.high)
            for column in columns:
                column[pair] = column[turned]
            if short(number) + short(other) >= before:
                for column in columns:
                    column[pair] = column[turned]
