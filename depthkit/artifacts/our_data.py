"""Section 4.4 and Appendix G: our tasks in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from depthkit.artifacts.artifact import Table, artifact
from depthkit.artifacts.datasets import numbers
from depthkit.artifacts.own_tasks import OwnTasks, known_line, measured_line, one_row, own_tasks
from depthkit.artifacts.tables import MISSING, formatted, plain_table
from depthkit.corpus import Corpus
from depthkit.model import Segment, Task
from depthkit.protocol import ABOVE
from depthkit.stats import quantile, spread

DEEP = 40
"""From this D on Section 4.4 calls a task deep."""


@artifact("depth/section-4.4", section="4.4, text")
def our_tasks_text(corpus: Corpus, *, datasets: Sequence[str] | None = None) -> Table:
    """What the text of Section 4.4 says of our tasks and of what they cost.

    ``frame`` has one row: ``tasks``; ``seed_envs``, how many different ones they come from (null
    where a task does not say); ``k_min`` and ``k_max`` segments; ``D_ge_40``, solved tasks (null
    while none has a final D).

    ``parts["generation"]`` has one row over the runs of purpose ``generation``, which name the
    task that they were to make: ``seeds``, the environments they started from (one a task that was
    to be made); ``accepted``, how many of these tasks there are; ``accepted_share``; ``cost_usd``
    of all runs and ``cost_usd_per_accepted``. All are null without such runs, and the cost where
    that of any run is not known.

    Args:
        corpus: What was measured.
        datasets: Only these; ``None`` for those of group ``ours``.
    """
    own = own_tasks(corpus, datasets)
    records = list(own.records.values())
    depth = own.solved["D"].dropna()
    envs = [record.seed_env for record in records]
    known = len(depth) or (own.tasks["solved"].notna().any() and own.solved.empty)
    frame = one_row(
        tasks=len(own.tasks),
        seed_envs=len(set(envs)) if envs and None not in envs else None,
        k_min=min((record.k for record in records), default=None),
        k_max=max((record.k for record in records), default=None),
        D_ge_40=int((depth >= DEEP).sum()) if known else None,
    )
    generation = _generation(corpus, own)
    notes = list(own.notes)
    if without := envs.count(None):
        notes.append(f"{without} tasks do not name their seed environment.")
    if unfinished := len(own.solved) - len(depth):
        notes.append(f"{unfinished} solved tasks have no final D and are not counted with D ≥ 40.")
    if generation["seeds"].isna().all():
        notes.append("The corpus has no generation runs, so what tasks cost is not known.")
    elif generation["cost_usd"].isna().all():
        notes.append("The cost of some generation runs is not known, so neither is the sum.")
    return Table(
        title=(
            "Our tasks, and their generation. Seed environments of the tasks: different ones. "
            "Environments: those with a generation run; accepted: tasks made from them."
        ),
        frame=frame,
        parts={"generation": generation},
        provenance=measured_line(corpus, own.tasks),
        draw=lambda: _our_tasks(frame, generation),
        notes=tuple(notes),
    )


def _generation(corpus: Corpus, own: OwnTasks) -> pd.DataFrame:
    names = set(own.tasks["dataset"])
    runs = [
        run for run in corpus.run_records() if run.purpose == "generation" and run.dataset in names
    ]
    if not runs:
        return one_row(
            seeds=None,
            accepted=None,
            accepted_share=None,
            cost_usd=None,
            cost_usd_per_accepted=None,
        )
    seeds = {(run.dataset, run.task_id) for run in runs}
    accepted = len(seeds & set(own.records))
    costs = [run.cost_usd for run in runs]
    cost = None if None in costs else float(np.sum(np.array(costs, dtype=float)))
    return one_row(
        seeds=len(seeds),
        accepted=accepted,
        accepted_share=accepted / len(seeds),
        cost_usd=cost,
        cost_usd_per_accepted=None if cost is None or not accepted else cost / accepted,
    )


def _our_tasks(frame: pd.DataFrame, generation: pd.DataFrame) -> Any:
    own, made = frame.iloc[0], generation.iloc[0]
    segments = {f"{k:g}" for k in (own["k_min"], own["k_max"]) if not pd.isna(k)}
    rows = [
        ("Tasks", "tasks", f"{own['tasks']:,.0f}"),
        ("Tasks", "seed environments", _said(own["seed_envs"], "{:,.0f}")),
        ("Tasks", "segments", " to ".join(sorted(segments)) or MISSING),
        ("Tasks", f"solved, with D ≥ {DEEP}", _said(own["D_ge_40"], "{:,.0f}")),
        ("Generation", "environments", _said(made["seeds"], "{:,.0f}")),
        ("Generation", "accepted", _said(made["accepted"], "{:,.0f}")),
        ("Generation", "accepted, share", _said(made["accepted_share"], "{:.0%}")),
        ("Generation", "cost", _said(made["cost_usd"], "${:,.2f}")),
        ("Generation", "cost per accepted task", _said(made["cost_usd_per_accepted"], "${:,.2f}")),
    ]
    shown = pd.DataFrame(rows, columns=["group", "Of what", "Number"])
    return plain_table(shown, "depth-section-4-4", rows="Of what", groups="group")


def _said(value: Any, form: str) -> str:
    return MISSING if pd.isna(value) else form.format(value)


MEASURES = {
    "lines": "Lines of the reference solution",
    "words": "Words of the instruction",
    "names": "Names stated in the instruction",
}
"""The rows of Table 9."""


@artifact("depth/table-9", section="G, Table 9")
def task_size_table(corpus: Corpus, *, datasets: Sequence[str] | None = None) -> Table:
    """How large our tasks are, by segment and by task: median, 10th and 90th percentile.

    One row a measure: lines of the reference solution, words of the instruction, names that it
    states. ``segments`` and ``tasks`` say over how many it is known; a task counts where all its
    segments do. All tasks, solved or not.

    Args:
        corpus: What was measured.
        datasets: Only these; ``None`` for those of group ``ours``.
    """
    own = own_tasks(corpus, datasets)
    frame = sizes(own.records.values())
    return Table(
        title=(
            "Statistics of our tasks: median, with the 10th and 90th percentiles in brackets. "
            "Names: paths, ports, accounts and other names that the checks rely on, each stated "
            "in the instruction."
        ),
        frame=frame,
        provenance=known_line(corpus, own),
        draw=lambda: sizes_view(frame, "depth-table-9"),
        cells=("measure", "segment_median", "task_median"),
        notes=(*own.notes, *_unknown(own, frame)),
    )


def sizes(records: Iterable[Task]) -> pd.DataFrame:
    """The rows of Table 9, one a measure, over some tasks."""
    tasks = list(records)
    return pd.DataFrame([_size(tasks, measure) for measure in MEASURES])


def _size(records: Iterable[Task], measure: str) -> dict[str, Any]:
    tasks = [[_of(segment, measure) for segment in task.segments] for task in records]
    by_segment = spread([value for task in tasks for value in task])
    by_task = spread([float(sum(task)) for task in tasks])  # nan if any segment is not known
    return {
        "measure": measure,
        "segment_median": by_segment.value,
        "segment_p10": by_segment.low,
        "segment_p90": by_segment.high,
        "segments": by_segment.n,
        "task_median": by_task.value,
        "task_p10": by_task.low,
        "task_p90": by_task.high,
        "tasks": by_task.n,
    }


def _of(segment: Segment, measure: str) -> float:
    value = {
        "lines": segment.work.lines if segment.work else None,
        "words": segment.instruction_words,
        "names": segment.names_stated,
    }[measure]
    return float("nan") if value is None else float(value)


def _unknown(own: OwnTasks, frame: pd.DataFrame) -> Iterator[str]:
    for row in frame.to_dict("records"):
        if row["tasks"] < len(own.records):
            yield (
                f"{MEASURES[row['measure']]}: known of all segments of {row['tasks']} of "
                f"{len(own.records)} tasks."
            )


def sizes_view(frame: pd.DataFrame, table_id: str) -> Any:
    """Table 9 as it is printed, of :func:`sizes`."""
    shown = pd.DataFrame({"Measure": [MEASURES[measure] for measure in frame["measure"]]})
    for heading, kind in (("Per segment", "segment"), ("Per task", "task")):
        columns = [f"{kind}_{part}" for part in ("median", "p10", "p90")]
        shown[heading] = [
            MISSING if pd.isna(median) else f"{median:,.0f} [{low:,.0f}, {high:,.0f}]"
            for median, low, high in frame[columns].itertuples(index=False)
        ]
    return plain_table(shown, table_id, rows="Measure")


@artifact("depth/section-G", section="G, text")
def our_data_text(
    corpus: Corpus, *, datasets: Sequence[str] | None = None, least: int = 15
) -> Table:
    """What the text of Appendix G says of our tasks.

    ``frame`` has one row a number of segments ``k``, from the least to the most. ``words`` gives
    the median words of the instruction of the first segment and of all later ones, ``depths`` how
    many solved tasks have each D (99 for above the largest cap; no rows while none has one),
    ``categories`` how many tasks each category has, with ``other`` for those below ``least`` tasks
    together and ``none`` for tasks without one; ``categories`` counts what a row stands for.

    Args:
        corpus: What was measured.
        datasets: Only these; ``None`` for those of group ``ours``.
        least: Tasks that a category needs for a row of its own.
    """
    own = own_tasks(corpus, datasets)
    lengths = Counter(task.k for task in own.records.values())
    span = range(min(lengths), max(lengths) + 1) if lengths else range(0)
    frame = pd.DataFrame([{"k": k, "tasks": lengths[k]} for k in span], columns=["k", "tasks"])
    words = _words(own)
    depths = _depths(own)
    categories = _categories(own, least)
    notes = list(own.notes)
    if unfinished := int(own.solved["D"].isna().sum()):
        notes.append(f"{unfinished} solved tasks have no final D and are not among those with one.")
    notes += [
        f"Words: not known of {row['unknown']} {row['segment']} segments, left out."
        for row in words.to_dict("records")
        if row["unknown"]
    ]
    return Table(
        title=(
            "Our tasks by number of segments, the words of their instructions (median), the "
            "solved ones by D, and all by category. Other: categories with fewer than "
            f"{least} tasks."
        ),
        frame=frame,
        parts={"words": words, "depths": depths, "categories": categories},
        provenance=measured_line(corpus, own.tasks),
        draw=lambda: _text_table(frame, words, depths, categories, own.caps[-1]),
        notes=tuple(notes),
    )


def _words(own: OwnTasks) -> pd.DataFrame:
    segments = [segment for task in own.records.values() for segment in task.segments]
    rows = []
    for name, first in (("first", True), ("later", False)):
        values = [_of(segment, "words") for segment in segments if (segment.index == 1) == first]
        unknown = int(np.isnan(values).sum())
        rows.append({"segment": name, "median": quantile(values, 0.5), "unknown": unknown})
    return pd.DataFrame(rows)


def _depths(own: OwnTasks) -> pd.DataFrame:
    depth = numbers(own.solved["D"]).dropna()
    scale = [*own.caps, ABOVE] if len(depth) else []
    return pd.DataFrame(
        [{"D": cap, "tasks": int((depth == cap).sum())} for cap in scale], columns=["D", "tasks"]
    )


def _categories(own: OwnTasks, least: int) -> pd.DataFrame:
    """Largest first, then other and none; a category's name as people write it."""
    found = Counter(
        None if task.category is None else " ".join(task.category.replace("_", "-").split("-"))
        for task in own.records.values()
    )
    without = found.pop(None, 0)
    named = {str(name).casefold(): 0 for name in found}
    for name, count in found.items():
        named[str(name).casefold()] += count
    large = {
        name: count
        for name, count in named.items()
        if count >= least and name not in ("other", "none")
    }
    rows = [
        {"category": name, "tasks": count, "categories": 1}
        for name, count in sorted(large.items(), key=lambda item: (-item[1], item[0]))
    ]
    small = {name: count for name, count in named.items() if name not in large}
    if own.records:
        rows.append({"category": "other", "tasks": sum(small.values()), "categories": len(small)})
        rows.append({"category": "none", "tasks": without, "categories": 0})
    return pd.DataFrame(rows, columns=["category", "tasks", "categories"])


def _text_table(
    frame: pd.DataFrame,
    words: pd.DataFrame,
    depths: pd.DataFrame,
    categories: pd.DataFrame,
    largest: int,
) -> Any:
    rows = [("Segments", str(k), f"{tasks:,}") for k, tasks in frame.itertuples(index=False)]
    rows += [
        ("Words of an instruction", f"{segment} segments", text)
        for segment, text in zip(
            words["segment"], formatted(words["median"], "{:,.0f}"), strict=True
        )
    ]
    rows += [
        ("D of solved tasks", f">{largest}" if depth == ABOVE else str(depth), f"{tasks:,}")
        for depth, tasks in depths.itertuples(index=False)
        if tasks
    ]
    for name, tasks, kinds in categories.itertuples(index=False):
        shown = {"other": f"{kinds} others", "none": "no category"}.get(name, name)
        rows.append(("Category", shown, f"{tasks:,}"))
    table = pd.DataFrame(rows, columns=["group", "Of what", "Number"])
    return plain_table(table, "depth-section-G", rows="Of what", groups="group")
