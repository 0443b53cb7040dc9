"""Runs that evaluate models (Section 4.5, Appendix I), chosen the same way by all artifacts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from depthkit.artifacts.model_styles import in_order, label
from depthkit.artifacts.own_tasks import Key, OwnTasks, own_tasks, runs_line
from depthkit.corpus import Corpus
from depthkit.model import Run
from depthkit.protocol import first_of_attempts


@dataclass(frozen=True)
class Evaluated:
    """Evaluation runs on a choice of tasks.

    Attributes:
        own: The tasks.
        attempted: All runs, also those that gave no result.
        results: One row a run with a result, one an attempt: ``model``, ``dataset``, ``task_id``,
            ``attempt``, ``passed`` (0 or 1), ``k``, ``segments`` passed (``nan`` where unknown),
            ``turns``, ``minutes``, ``tokens`` (``nan`` where unknown).
        models: Those that have runs, with a result or without, in the paper's order.
        provenance: What the results rest on.
        notes: What a reader must know about them.
    """

    own: OwnTasks
    attempted: list[Run]
    results: pd.DataFrame
    models: list[str]
    provenance: str
    notes: tuple[str, ...]

    def of(self, model: str) -> pd.DataFrame:
        """The results of one model."""
        return self.results[self.results["model"] == model]

    def tasks_of(self, model: str) -> set[Key]:
        """Tasks on which the model has a result."""
        rows = self.of(model)
        return set(zip(rows["dataset"], rows["task_id"], strict=True))

    def missing(self, model: str) -> dict[Key, bool]:
        """Tasks that the model was run on without any result; true where a run was refused."""
        done = self.tasks_of(model)
        found: dict[Key, bool] = {}
        for run in self.attempted:
            key = (run.dataset, run.task_id)
            if run.model == model and key not in done:
                found[key] = found.get(key, False) or run.stop == "refused"
        return found


def evaluated(
    corpus: Corpus,
    datasets: Sequence[str] | None = None,
    *,
    counts: Callable[[Run], bool] | None = None,
) -> Evaluated:
    """Choose evaluation runs on our tasks.

    Runs without a verdict are no results. Of one attempt that was run more than once the valid run
    that started first counts. A suspect run is a result but no pass, and none of its segments
    counts as passed.

    Args:
        corpus: Where they are.
        datasets: As for :func:`own_tasks`.
        counts: Which runs to take; ``None`` for those with purpose ``evaluation``.

    Raises:
        DepthkitError: a data set is not in the corpus.
    """
    own = own_tasks(corpus, datasets)
    keys = set(own.keys)
    wanted = counts or (lambda run: run.purpose == "evaluation")
    attempted = [
        run for run in corpus.run_records() if (run.dataset, run.task_id) in keys and wanted(run)
    ]
    valid = first_of_attempts(attempted)
    results = pd.DataFrame([_row(run, own) for run in valid], columns=_COLUMNS)
    return Evaluated(
        own=own,
        attempted=attempted,
        results=results,
        models=in_order(run.model for run in attempted),
        provenance=runs_line(corpus, valid),
        notes=(*own.notes, *_notes(valid, results)),
    )


_COLUMNS = [
    "model",
    "dataset",
    "task_id",
    "attempt",
    "purpose",
    "passed",
    "k",
    "segments",
    "turns",
    "minutes",
    "tokens",
    "stop",
    "first_claim_turn",
]
_NAN = float("nan")


def _row(run: Run, own: OwnTasks) -> dict[str, object]:
    task = own.records.get((run.dataset, run.task_id))
    k = task.k if task else None
    return {
        "model": run.model,
        "dataset": run.dataset,
        "task_id": run.task_id,
        "attempt": run.attempt,
        "purpose": run.purpose,
        "passed": float(run.passed),
        "k": _number(k),
        "segments": _number(_segments(run, k)),
        "turns": _number(run.turns),
        "minutes": _number(run.agent_minutes),
        "tokens": _number(run.context_tokens),
        "stop": run.stop,
        "first_claim_turn": _number(run.first_claim_turn),
    }


def _segments(run: Run, k: int | None) -> int | None:
    """Segments that count as passed; ``None`` where that is not known."""
    if run.suspect:
        return 0
    if run.passed:
        return k
    if k == 1:
        return 0
    return run.segments_passed


def _number(value: float | None) -> float:
    return _NAN if value is None else float(value)


def _notes(valid: Iterable[Run], results: pd.DataFrame) -> list[str]:
    notes = []
    suspect = sum(run.suspect for run in valid)
    if suspect:
        notes.append(
            f"{suspect} runs have a verdict that may be forged; they count as failed, with no "
            "segment passed."
        )
    if len(results):
        tasks = results.groupby("model")[["dataset", "task_id"]].apply(
            lambda rows: len(rows.drop_duplicates())
        )
        if tasks.nunique() > 1:
            notes.append(
                "Models have results on different numbers of tasks ("
                + ", ".join(f"{label(name)}: {tasks[name]}" for name in in_order(tasks.index))
                + "); each number is over those of its model."
            )
    return notes


def mean_note(frame: pd.DataFrame, column: str, what: str) -> list[str]:
    """A note if a column of the results is not known of all of them."""
    known = int(frame[column].notna().sum())
    if known == len(frame):
        return []
    return [f"{what}: known of {known:,} of {len(frame):,} runs with a result, and over those."]
