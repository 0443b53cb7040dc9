"""Appendix G, Table 10: one task of ours, segment by segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from depthkit.artifacts.artifact import Table, artifact
from depthkit.artifacts.evaluated import Evaluated, evaluated
from depthkit.artifacts.model_styles import label
from depthkit.artifacts.own_tasks import Key, resting_on
from depthkit.artifacts.tables import MISSING, formatted, plain_table
from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.protocol import ABOVE

EXAMPLE = "NetworkManager-l2tp"
"""The environment of the paper's example."""


@artifact("depth/table-10", section="G, Table 10")
def example_table(
    corpus: Corpus, *, datasets: Sequence[str] | None = None, task: str | None = None
) -> Table:
    """One task: its D, N and W (lines), its segments, and how many runs of each model pass it.

    ``frame`` has one row, null throughout where the paper's example is not in the corpus.
    ``segments`` has one row a segment with its size; what its instruction asks for and its key step
    stand in the task's own files, not in a corpus. ``models`` has one row an evaluated model:
    ``runs`` with a result and those ``passed``; ``outcomes`` counts the models by runs passed, from
    0 to the most runs.

    Args:
        corpus: What was measured.
        datasets: Only tasks of these; ``None`` for those of group ``ours``.
        task: Its ``task_id`` or seed environment, in any letter case; ``None`` for the paper's
            example (a task whose ``task_id`` or seed environment contains NetworkManager-l2tp).

    Raises:
        DepthkitError: there is no such task, or there are several.
    """
    found = evaluated(corpus, datasets)
    key = _find(corpus, found, task)
    notes = list(found.own.notes)
    if key is None:
        notes = [f"Corpus {corpus.name} does not hold the paper's example task, {EXAMPLE}."]
    fits = [each == key for each in found.own.keys]
    row = found.own.tasks.loc[pd.Series(fits, found.own.tasks.index, dtype=bool)]
    record = found.own.records.get(key) if key else None
    frame = pd.DataFrame(
        {
            name: pd.array([None if row.empty else row[column].iloc[0]], dtype="Int64")
            for name, column in (("D", "D"), ("N", "N"), ("W", "work_lines"), ("k", "k"))
        }
    )
    segments = pd.DataFrame(
        [
            {
                "segment": segment.index,
                "name": segment.name,
                "W": segment.work.lines if segment.work else float("nan"),
                "words": _or_nan(segment.instruction_words),
                "names": _or_nan(segment.names_stated),
                "key_steps": _or_nan(segment.key_steps),
            }
            for segment in (record.segments if record else ())
        ],
        columns=["segment", "name", "W", "words", "names", "key_steps"],
    )
    models = _models(found, key)
    most = int(models["runs"].max()) if len(models) else -1
    outcomes = pd.DataFrame(
        [
            {"passed": passed, "models": int((models["passed"] == passed).sum())}
            for passed in range(most + 1)
        ],
        columns=["passed", "models"],
    )
    kinds = list(row["provenance"]) + ([record.provenance] if record else [])
    return Table(
        title=_title(corpus, key, frame, models),
        frame=frame,
        parts={"segments": segments, "models": models, "outcomes": outcomes},
        provenance=resting_on(corpus, set(kinds), "1 task" if key else "0 tasks"),
        draw=lambda: _table(segments),
        notes=tuple(notes),
    )


def _or_nan(value: int | None) -> float:
    return float("nan") if value is None else value


def _find(corpus: Corpus, found: Evaluated, task: str | None) -> Key | None:
    wanted = (task or EXAMPLE).casefold()

    def fits(name: str | None) -> bool:
        text = (name or "").casefold()
        return text == wanted if task else wanted in text

    own = found.own
    keys = [
        key
        for key in own.keys
        if fits(key[1]) or fits(own.records[key].seed_env if key in own.records else None)
    ]
    if len(keys) == 1:
        return keys[0]
    if not keys and task is None:
        return None
    known = ", ".join(sorted(task_id for _, task_id in keys or own.keys)[:10]) or "none"
    raise DepthkitError(
        f"task is {task or EXAMPLE!r}; corpus {corpus.name} holds "
        f"{'several such tasks' if keys else 'no such task'}: give the task_id of one ({known})."
    )


def _models(found: Evaluated, key: Key | None) -> pd.DataFrame:
    rows = []
    for model in found.models if key else []:
        runs = found.of(model)
        here = runs.loc[
            [each == key for each in zip(runs["dataset"], runs["task_id"], strict=True)]
        ]
        if len(here):
            rows.append({"model": model, "passed": int(here["passed"].sum()), "runs": len(here)})
    return pd.DataFrame(rows, columns=["model", "passed", "runs"])


def _title(corpus: Corpus, key: Key | None, frame: pd.DataFrame, models: pd.DataFrame) -> str:
    if key is None:
        return f"Segments of the example task. It is not in corpus {corpus.name}."
    depth, n, work, _ = frame.iloc[0]
    said = {
        "D": f">{corpus.caps[-1]}" if not pd.isna(depth) and depth == ABOVE else depth,
        "N": n,
        "W": work,
    }
    numbers = ", ".join(f"{k} {MISSING if pd.isna(v) else v}" for k, v in said.items())
    passing = "; ".join(
        f"{label(model)} passes {passed} of {runs} runs"
        for model, passed, runs in models.itertuples(index=False)
    )
    return f"Segments of task {key[1]}. {numbers}." + (f" {passing}." if passing else "")


def _table(segments: pd.DataFrame) -> Any:
    shown = pd.DataFrame(
        {
            "Segment": segments["segment"].map(str),
            "Name": segments["name"],
            "Lines": formatted(segments["W"], "{:.0f}"),
            "Words": formatted(segments["words"], "{:.0f}"),
            "Names stated": formatted(segments["names"], "{:.0f}"),
            "Key steps": formatted(segments["key_steps"], "{:.0f}"),
        }
    )
    return plain_table(shown, "depth-table-10", rows="Segment", left=("Name",))
