"""Labels and groups by which tasks were sampled, and the original data sets around the samples.

Appendix C: Table 4 and Table 5. How many tasks an original data set holds is not printed but for
the proportions of its labels; the sizes here are chosen so that these come out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from depthkit.errors import DepthkitError
from depthkit.fitting.pins import Floats
from depthkit.fitting.search import Goal, rank_correlation, search, swap
from depthkit.fitting.targets import Target, Targets


@dataclass(frozen=True)
class Labelled:
    """A data set by label: tasks in the sample and in the original."""

    labels: tuple[str, ...]
    sampled: tuple[int, ...]
    original: tuple[int, ...]


def label_plan(targets: Targets) -> dict[str, Labelled]:
    """Labels of Table 5 with the printed shares; FACET has none."""
    tmax, seta = int(targets("table-1/TMax/sampled")), int(targets("table-1/SETA/sampled"))
    rst, tb2 = int(targets("table-1/RST/sampled")), int(targets("table-1/TB2/sampled"))
    tw = int(targets("table-1/TW/sampled"))
    top = targets("table-5/TMax/hardest").count(tmax)
    rest = tmax - top
    hard = targets("table-5/SETA/hard").count(seta)
    evolve = seta - hard
    medium = targets("table-5/RST/medium").count(rst)
    rated_hard = int(targets("figure-4/hard"))
    number = targets.number

    def parts(total: int, *shares: float) -> tuple[int, ...]:
        counts = [round(total * share) for share in shares]
        return (*counts, total - sum(counts))

    easier = number("table-5/TMax/easier-original")
    seta_hard = number("table-5/SETA/hard-original")
    seta_medium = number("table-5/SETA/medium-original")
    seta_covered = number("table-5/SETA/coverage")
    seta_evolve = round(500 * seta_covered) - round(500 * seta_hard)
    rst_medium = number("table-5/RST/medium-original")
    very_hard = number("table-5/TW/very-hard-original")
    return {
        "TMax": Labelled(
            ("level 1", "level 2", "level 3", "level 4"),
            (rest // 3, rest - 2 * (rest // 3), rest // 3, top),
            parts(200, easier, easier, 1 - 2 * easier - number("table-5/TMax/hardest-original")),
        ),
        "SETA": Labelled(
            (
                "synth hard",
                "evolve easy",
                "evolve medium",
                "evolve hard",
                "synth medium",
                "synth easy",
            ),
            (hard, evolve // 3, evolve // 3, evolve - 2 * (evolve // 3), 0, 0),
            parts(500, seta_hard, *[seta_evolve * s / 500 for s in (0.3, 0.4, 0.3)], seta_medium),
        ),
        # 18.25%, which is printed as 18%: with 18.0% no whole numbers of tasks reweight as printed
        "RST": Labelled(
            ("medium", "easy"), (medium, rst - medium), parts(400, rst_medium + 0.0025)
        ),
        "TB2": Labelled(
            ("hard", "medium", "easy"),
            (rated_hard, tb2 - rated_hard - 3, 3),
            parts(89, number("table-5/TB2/hard-original"), 0.62),
        ),
        "TW": Labelled(
            ("easy", "medium", "hard", "very hard"),
            (tw - 2 * (tw // 3), tw // 3, tw // 3, 0),
            parts(150, 0.22, 0.26, 1 - very_hard - 0.48),
        ),
    }


def give_labels(
    targets: Targets, tasks: pd.DataFrame, rng: np.random.Generator
) -> dict[str, NDArray[np.object_]]:
    """The label of each sampled task, so that reweighting gives what is printed."""
    plan = label_plan(targets)
    found: dict[str, NDArray[np.object_]] = {}
    for name, labelled in plan.items():
        own = tasks[tasks["dataset"] == name]
        solved = own["solved"].to_numpy()
        depth = own["D"].to_numpy()
        if name == "TMax":
            goal, kinds = targets("table-5/TMax/reweighted"), None
            kinds = _kinds(depth, solved)
            fixed = {("level 4", "solved"): int(targets("table-5/TMax/hardest-solved"))}
        else:
            goal, kinds, fixed = targets(f"table-5/{name}/reweighted"), _kinds(depth, solved), {}
        if name == "TB2":
            fixed = {("hard", "above 1"): int(targets("figure-4/hard-deep"))}
        counts = _counts(labelled, kinds, goal, fixed, rng, name)
        labels = np.empty(len(own), object)
        for kind, row in enumerate(counts):
            members = rng.permutation(np.flatnonzero(kinds == kind))
            labels[members] = np.repeat(np.array(labelled.labels, object), row)
        found[name] = labels
    return found


# Kinds of tasks among which a label may move without changing what is printed
UNSOLVED, SINGLE, SHALLOW, DEEP = range(4)


def _kinds(depth: Floats, solved: NDArray[np.bool_]) -> NDArray[np.intp]:
    kinds = np.where(depth >= 5, DEEP, np.where(depth >= 2, SHALLOW, SINGLE))
    return np.where(solved, kinds, UNSOLVED)


def _counts(
    labelled: Labelled,
    kinds: NDArray[np.intp],
    goal: Target,
    fixed: dict[tuple[str, str], int],
    rng: np.random.Generator,
    name: str,
) -> NDArray[np.int64]:
    """Tasks by kind and label; columns add up to the sample, rows to the kinds."""
    sampled = np.array(labelled.sampled)
    original = np.array(labelled.original, float)
    totals = np.bincount(kinds, minlength=4)
    labels = np.repeat(np.arange(len(sampled)), sampled)
    for _ in range(200_000):
        # Each kind of task favours labels at random, deep tasks most
        counts, pool = np.zeros((4, len(sampled)), dtype=np.int64), labels
        for kind, strength in ((DEEP, 1.5), (SHALLOW, 0.8), (SINGLE, 0.3), (UNSOLVED, 0.0)):
            favour = np.exp(rng.normal(0, strength, len(sampled)))
            drawn = np.argsort(rng.exponential(size=len(pool)) / favour[pool])
            counts[kind] = np.bincount(pool[drawn[: totals[kind]]], minlength=len(sampled))
            pool = pool[drawn[totals[kind] :]]
        solved = counts[SINGLE:].sum(axis=0)
        ok = all(
            {"solved": solved, "above 1": counts[SHALLOW:].sum(axis=0)}[what][
                labelled.labels.index(label)
            ]
            == wanted
            for (label, what), wanted in fixed.items()
        )
        present = solved > 0
        if not ok or not (present == (sampled > 0)).all():
            continue
        shares = counts[DEEP][present] / solved[present]
        value = math.fsum(shares * original[present]) / float(original[present].sum())
        if abs(value - goal.value) <= 0.9 * goal.half:
            return counts
    raise DepthkitError(f"{name}: no counts by label give the reweighted share of Table 5.")


def sampling_groups(
    targets: Targets,
    tasks: pd.DataFrame,
    labels: dict[str, NDArray[np.object_]],
    rng: np.random.Generator,
) -> NDArray[np.object_]:
    """The group each sampled task was drawn from (Table 4); of TW the label itself."""
    found = np.full(len(tasks), None, object)
    for name in dict.fromkeys(tasks["dataset"]):
        members = np.flatnonzero(tasks["dataset"] == name)
        if name in ("TW", "SETA"):
            found[members] = labels[name]
        elif name == "TMax":
            thirds = rng.permutation(np.arange(len(members)) % 3) + 1
            found[members] = [
                label if label == "level 4" else f"{label}, turns {third}"
                for label, third in zip(labels[name], thirds, strict=True)
            ]
        elif name in ("FACET", "RST"):
            groups = int(targets(f"table-4/{name}/groups"))
            what = "checks" if name == "FACET" else "lines"
            order = rng.permutation(np.arange(len(members)) % groups) + 1
            found[members] = [f"{what} {group}" for group in order]
        elif name == "TB2":
            found[members] = rng.choice(
                ["5 passes", "3 to 4 passes", "1 to 2 passes"], len(members)
            )
    return found


def unsampled_tasks(targets: Targets, names: dict[str, NDArray[np.object_]]) -> pd.DataFrame:
    """Tasks of the original data sets that were not sampled: dataset, task_id, label."""
    rows = []
    for name, labelled in label_plan(targets).items():
        number = len(names[name])
        for label, whole, part in zip(
            labelled.labels, labelled.original, labelled.sampled, strict=True
        ):
            for _ in range(whole - part):
                number += 1
                rows.append(
                    {"dataset": name, "task_id": f"{name.lower()}-{number:03d}", "label": label}
                )
    return pd.DataFrame(rows)


PLACES = ("very easy", "easy", "medium", "hard", "very hard")


def place(label: str) -> float:
    """Order of a label: its last word or number."""
    word = label.removeprefix("synth ").removeprefix("evolve ")
    return float(PLACES.index(word)) if word in PLACES else float(word.removeprefix("level "))


def rates_by_label(
    places: Floats,
    target: float,
    runs: int,
    rng: np.random.Generator,
    *,
    known: Floats | None = None,
) -> Floats:
    """Pass rates, shares of ``runs``, whose rank correlation with the label is ``target``.

    Args:
        places: Order of each task's label.
        target: The rank correlation.
        runs: Behind each rate.
        rng: Of the search.
        known: Rates of the first tasks, which stay as they are.

    Raises:
        DepthkitError: There are none, or the search did not find them.
    """
    rates = rng.binomial(runs, rng.beta(1.1, 0.9, len(places))) / runs
    first = 0 if known is None else len(known)
    rates[:first] = known if known is not None else rates[:first]
    goal = Goal(
        ("rho",), lambda: rank_correlation(places, rates), np.array([target]), np.array([0.005])
    )
    left = search(
        [goal],
        lambda: swap(rates, *rng.integers(first, len(rates), 2)),
        rng,
        steps=20_000,
        heat=0.0,
    )
    if left:
        raise DepthkitError(f"no pass rates found with a rank correlation of {target} with labels.")
    return rates


def unrelated_labels(rates: Floats, rng: np.random.Generator) -> list[str]:
    """Labels of TW's task files, which say nothing of its pass rates (Section 4.3).

    Raises:
        DepthkitError: The search did not find such labels.
    """
    names = ("easy", "medium", "hard")
    places = rng.permutation(np.arange(len(rates)) % len(names)).astype(float)
    goal = Goal(
        ("rho",), lambda: rank_correlation(places, rates), np.array([0.0]), np.array([0.005])
    )
    if search(
        [goal],
        lambda: swap(places, *rng.integers(0, len(rates), 2)),
        rng,
        steps=20_000,
        heat=0.0,
    ):
        raise DepthkitError("TW: no labels found that are unrelated to its pass rates.")
    return [names[int(x)] for x in places]
