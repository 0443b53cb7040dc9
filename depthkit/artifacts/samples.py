"""The tasks on which depth is tested against difficulty, and the correlations over them.

Sections 4.3 and E of the Depth paper ask the same question of several samples, with D from both
measurement models or from the first alone, and with pass rates of other models.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from depthkit.artifacts.datasets import Audited, audited, find_datasets, numbers, on_scale
from depthkit.artifacts.levels import level
from depthkit.corpus import Corpus
from depthkit.stats import Correlation, SampleError, rank_partial_correlation
from depthkit.stats.correlation import RESAMPLES

EVALUATED = ("glm-5.3-flash", "gpt-6-luna", "mimo-v2.6-flash", "gpt-6.1-sol")
"""Models whose evaluation runs give the pass rate of our tasks (Section 4.3): those that have
results on nearly all tasks, without the model that made the free runs."""

CURATED, OURS = "human-curated", "ours"
POOLED = f"{CURATED} + {OURS}"

CORRELATION = ("rho", "low", "high", "fisher_low", "fisher_high", "p", "n", "degenerate")
"""Columns that :func:`correlate` gives."""

CAPTION = (
    "Rank partial correlations (Conover and Iman) with 95% intervals by percentile bootstrap over "
    "tasks; Fisher's stand beside them in the numbers."
)


class Sample(NamedTuple):
    """Rows of :attr:`Study.solved` under the name that frames give them."""

    name: str
    tasks: pd.DataFrame


@dataclass(frozen=True)
class Study:
    """Solved tasks with what their depth is tested against.

    Attributes:
        chosen: All tasks of the data sets.
        solved: One row a solved task: ``dataset``, ``group``, ``task_id``, ``D`` (smallest over the
            measurement models), ``D_first`` (first model alone), ``N``, ``W`` in lines, ``R``,
            ``author rating`` (place on the scale of :func:`level`) and ``pass rate``: the mean of
            the evaluated models for ours, the public one for all others. ``nan`` where unknown.
        evaluated: The models behind the pass rates of ours.
        provenance: As of ``chosen``, with the evaluation runs.
        notes: On pass rates that are missing, and where public ones come from.
    """

    chosen: Audited
    solved: pd.DataFrame
    evaluated: tuple[str, ...]
    provenance: str
    notes: tuple[str, ...]

    def samples(self) -> list[Sample]:
        """Each human-curated data set, all of them, ours, and all of these; only those there."""
        curated = self.solved[self.solved["group"] == CURATED]
        ours = self.solved[self.solved["group"] == OURS]
        found = [
            Sample(name, curated[curated["dataset"] == name])
            for name in self.chosen.datasets
            if name in set(curated["dataset"])
        ]
        found += [Sample(CURATED, curated)] if len(curated) else []
        found += [Sample(OURS, ours)] if len(ours) else []
        return found + ([Sample(POOLED, pd.concat([curated, ours]))] if len(found) > 2 else [])


def study(
    corpus: Corpus,
    datasets: Sequence[str] | None,
    caps: Sequence[int] | None,
    evaluated: Sequence[str],
) -> Study:
    """Gather the solved tasks of these data sets with their pass rates.

    Args:
        corpus: What was measured.
        datasets: Only these; ``None`` for all.
        caps: A coarser scale of D; ``None`` for all caps.
        evaluated: Models whose mean is the pass rate of our tasks.

    Raises:
        DepthkitError: a data set is not in the corpus, or a cap was not measured.
    """
    chosen = audited(corpus, datasets, caps)
    tasks = chosen.solved
    first = corpus.models[0] if corpus.models else None
    of_first = tasks["D_by_model"].map(lambda by_model: by_model.get(first))
    final = tasks["final"].astype(bool)
    rates, provenance, notes = _our_rates(corpus, tasks, evaluated)
    keys = list(zip(tasks["dataset"], tasks["task_id"], strict=True))
    ours = tasks["group"].eq(OURS)
    public = numbers(tasks["public_pass_rate"])
    solved = pd.DataFrame(
        {
            "dataset": tasks["dataset"],
            "group": tasks["group"],
            "task_id": tasks["task_id"],
            "D": tasks["D"],
            "D_first": on_scale(of_first.where(final), chosen.caps),
            "N": numbers(tasks["N"]),
            "W": numbers(tasks["work_lines"]),
            "R": numbers(tasks["R"]),
            "author rating": numbers(tasks["author_rating"].map(level, na_action="ignore")),
            "pass rate": pd.Series([rates.get(key) for key in keys], tasks.index, "float64").where(
                ours, public
            ),
        }
    )
    return Study(
        chosen,
        solved,
        tuple(evaluated),
        chosen.provenance + provenance,
        (*notes, *_public_notes(corpus, tasks[tasks["group"] == CURATED])),
    )


def correlate(
    tasks: pd.DataFrame,
    x: str,
    given: str,
    outcome: str,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[dict[str, Any], str | None]:
    """One row of a frame of correlations, over the tasks for which all three are known.

    Returns:
        The columns :data:`CORRELATION`, ``nan`` where there is none, and why there is none.
    """
    known = tasks[[x, given, outcome]].dropna()
    row: dict[str, Any] = dict.fromkeys(CORRELATION, float("nan")) | {"n": len(known)}
    try:
        column = {name: known[name].to_numpy(float).tobytes() for name in (x, outcome, given)}
        found = _correlation(
            column[x], column[outcome], column[given], resamples=resamples, seed=seed
        )
    except SampleError as error:
        names = (("x", x), ("y", outcome), ("covariates[0]", given))
        legend = ", ".join(f"{argument} is {name}" for argument, name in names)
        return row, f"no correlation over {len(known)} tasks: {error} ({legend})"
    row |= {"rho": found.value, "p": found.p_value, "degenerate": found.degenerate}
    for prefix, interval in (("", found.percentile), ("fisher_", found.fisher)):
        if interval is not None:
            row |= {f"{prefix}low": interval.low, f"{prefix}high": interval.high}
    return row, " ".join(found.notes) or None


@functools.lru_cache(maxsize=256)
def _correlation(x: bytes, y: bytes, given: bytes, *, resamples: int, seed: int) -> Correlation:
    """Kept: figures, tables and text share most of their correlations, with all their resamples."""
    return rank_partial_correlation(
        np.frombuffer(x),
        np.frombuffer(y),
        [np.frombuffer(given)],
        resamples=resamples,
        seed=seed,
    )


def _our_rates(
    corpus: Corpus, tasks: pd.DataFrame, evaluated: Sequence[str]
) -> tuple[dict[tuple[str, str], float], str, list[str]]:
    """Pass rate of each of our tasks that has results of all these models.

    The mean over models of the share of the model's runs that pass, as exact fractions, so that
    equal rates stay equal.
    """
    ours = tasks[tasks["group"] == OURS]
    if ours.empty or not evaluated:
        return {}, "", []
    runs = corpus.runs()
    runs = runs[
        (runs["purpose"] == "evaluation")
        & (runs["verdict"] != "none")
        & runs["model"].isin(list(evaluated))
        & runs["dataset"].isin(ours["dataset"].unique())
    ]
    notes = [f"Pass rates of ours are means of {', '.join(evaluated)}."]
    if lacking := [model for model in evaluated if model not in set(runs["model"])]:
        notes.append(
            f"Corpus {corpus.name} has no evaluation runs of {', '.join(lacking)}; give other "
            "models as evaluated."
        )
        return {}, "", notes
    passed = runs["verdict"].eq("passed") & ~runs["suspect"].astype(bool)
    by_model = [runs["dataset"], runs["task_id"], runs["model"]]
    shares: dict[tuple[str, str], list[Fraction]] = defaultdict(list)
    counts = passed.groupby(by_model).agg(["sum", "size"])
    for (dataset, task_id, _), passes, size in counts.itertuples(name=None):
        shares[dataset, task_id].append(Fraction(int(passes), int(size)))
    rates = {
        key: float(sum(found) / len(evaluated))
        for key, found in shares.items()
        if len(found) == len(evaluated)
    }
    keys = zip(ours["dataset"], ours["task_id"], strict=True)
    if without := sum(key not in rates for key in keys):
        notes.append(f"{without} of {len(ours)} solved tasks of ours lack a result of one of them.")
    kinds = " and ".join(f"{n} {kind}" for kind, n in runs["provenance"].value_counts().items())
    return rates, f" · {kinds} evaluation runs", notes


def _public_notes(corpus: Corpus, curated: pd.DataFrame) -> list[str]:
    """Where the public pass rates of these solved tasks come from, and which are missing."""
    rated = curated[curated["public_pass_rate"].notna()]
    notes = [
        f"{name}: {lacking} of {len(tasks)} solved tasks have no public pass rate."
        for name, tasks in curated.groupby("dataset")
        if (lacking := int(tasks["public_pass_rate"].isna().sum()))
    ]
    return notes + source_notes(corpus, rated[["dataset", "task_id"]])


def source_notes(corpus: Corpus, rated: pd.DataFrame) -> list[str]:
    """One sentence a data set on where the public pass rates of these tasks come from."""
    sources = rated.merge(corpus.tasks(), on=["dataset", "task_id"], how="left")
    notes = []
    for name, tasks in sources.groupby("dataset"):
        found = tasks["public_pass_rate_source"].fillna("source not stated").unique()
        notes.append(f"Public pass rates of {name}: {'; '.join(sorted(found))}.")
    return notes


def task_details(
    corpus: Corpus, datasets: Sequence[str] | None, columns: Sequence[str]
) -> pd.DataFrame:
    """Every task of the corpus, measured or not, with these of its own fields.

    Args:
        corpus: Where they are.
        datasets: Only these, all in the corpus; ``None`` for all.
        columns: Fields of :class:`depthkit.model.Task`; those of text have ``None`` where unknown.
    """
    tasks = corpus.tasks()
    if datasets is not None:
        tasks = tasks[tasks["dataset"].isin(find_datasets(corpus, datasets) or [])]
    found = tasks[["dataset", "task_id", *columns]].reset_index(drop=True)
    text = [column for column in columns if not pd.api.types.is_numeric_dtype(found[column])]
    return found.assign(
        **{name: found[name].astype(object).where(found[name].notna(), None) for name in text}
    )
