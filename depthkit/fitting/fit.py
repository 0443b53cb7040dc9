"""Make the ``paper`` corpus: tasks, runs and replays whose aggregates are those of the paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from depthkit.corpus.config import write_config
from depthkit.errors import DepthkitError
from depthkit.fitting import others
from depthkit.fitting.audit import GROUPS, check_depths, free_runs, sampled_tasks
from depthkit.fitting.courses import evaluation_runs
from depthkit.fitting.depths import EXISTING
from depthkit.fitting.difficulty import CURATED, fit_difficulty, public_rates
from depthkit.fitting.evaluation import fit_passes
from depthkit.fitting.labels import (
    give_labels,
    place,
    rates_by_label,
    sampling_groups,
    unrelated_labels,
    unsampled_tasks,
)
from depthkit.fitting.ours import Parts, our_tasks, segments
from depthkit.fitting.pins import Floats, share_out
from depthkit.fitting.runs import FIRST, SECOND, measuring_runs, new_run
from depthkit.fitting.targets import Targets
from depthkit.fitting.work import other_measures
from depthkit.model import Record, Replay, Run, Segment, Task, Work

NAME = "paper"
SEED = 0
CREATED = "2026-11-30T00:00:00+00:00"
"""Written into every fitted corpus, so that the same seed gives the same bytes."""

SOURCES = {
    "TMax": "fitted to the rank correlation of labels with released Gemini-3-Flash runs",
    "SETA": "fitted to the rank correlation of labels with released Qwen3 runs",
    "RST": "fitted to the rank correlation of labels with released Qwen3.5-27B runs",
    "TB2": "fitted to correlations with the mean of 15 leaderboard submissions",
    "TW": "fitted to correlations with the share of eight models that solve a task",
}


def fit_published(directory: Path, *, seed: int = SEED) -> None:
    """Write the fitted corpus into a new or empty directory.

    The same seed gives the same bytes on any processor, with the libraries' versions of
    ``environment.yml``. Nothing in it was measured: every record's provenance is
    ``fitted``.

    Args:
        directory: Made if missing.
        seed: Of everything the paper leaves open.

    Raises:
        DepthkitError: The directory holds something, or the printed numbers leave no way.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise DepthkitError(f"{directory}: is not empty; name a new or empty directory.")
    tasks, runs, replays = fit_records(seed)
    directory.mkdir(parents=True, exist_ok=True)
    for name, records in (("tasks", tasks), ("runs", runs), ("replays", replays)):
        _write(directory / f"{name}.jsonl", records)
    write_config(directory, NAME, (FIRST, SECOND), {"created": CREATED})


def _write(path: Path, records: Iterable[Record]) -> None:
    """One record a line, without what is not known: half the size, and read back the same."""
    path.write_text(
        "".join(
            record.model_dump_json(exclude_none=True, exclude_defaults=True) + "\n"
            for record in records
        ),
        "utf-8",
    )


def fit_records(seed: int = SEED) -> tuple[list[Task], list[Run], list[Replay]]:
    """The records of the fitted corpus, see :func:`fit_published`."""
    targets, rng = Targets(), np.random.default_rng(seed)
    existing = sampled_tasks(targets, rng)
    labels = give_labels(targets, existing, rng)
    existing["sampling_group"] = sampling_groups(targets, existing, labels, rng)
    existing["author_rating"] = None
    existing.loc[existing["dataset"] == "TB2", "author_rating"] = labels["TB2"]
    existing["public_pass_rate"] = public_rates(existing, rng)
    existing = fit_difficulty(targets, existing, rng)
    labels["TB2"] = existing.loc[existing["dataset"] == "TB2", "author_rating"].to_numpy()
    curated = existing[existing["solved"] & existing["dataset"].isin(CURATED)]

    ours, passes = fit_passes(targets, our_tasks(targets, rng), curated, rng)
    parts = segments(targets, ours, rng)
    both = pd.concat([existing.assign(k=1), ours], ignore_index=True)
    both["tokens"], both["chars"] = other_measures(targets, both, rng)
    both = free_runs(targets, both, rng)
    check_depths(both)

    originals = others.original_tasks(targets, ours, rng)
    merged, merged_runs = others.merged_tasks(targets, ours, rng)
    events = others.event_counts(targets, len(parts.task), rng)
    unsampled = unsampled_tasks(targets, labels)
    rates = _label_rates(targets, existing, labels, unsampled, rng)
    tw = [key for key in rates if key[0] == "TW"]
    in_files = unrelated_labels(np.array([rates[key] for key in tw]), rng)
    file_labels = {task_id: label for (_, task_id), label in zip(tw, in_files, strict=True)}

    runs = [*measuring_runs(targets, both, rng), *measuring_runs(targets, originals, rng)]
    runs += _evaluations(evaluation_runs(targets, ours, passes, rng), ours)
    runs = others.training_samples(targets, runs, rng)
    runs += merged_runs
    runs += others.generation_runs(targets, ours, rng)
    runs += others.tuning_runs(targets, rng)
    tasks = [
        *_existing_records(both, labels, file_labels, rates),
        *_unsampled_records(unsampled, file_labels, rates),
        *_our_records(both[both["dataset"] == "Ours"], parts, events, rng),
        *_original_records(originals),
        *_merged_records(merged),
        *_benchmark_records(),
    ]
    return tasks, runs, list(others.replays(targets, ours, events, rng))


def _label_rates(
    targets: Targets,
    existing: pd.DataFrame,
    labels: dict[str, NDArray[np.object_]],
    unsampled: pd.DataFrame,
    rng: np.random.Generator,
) -> dict[tuple[str, str], float]:
    """Public pass rates: of TB2 and TW as fitted, of the others by label (Figure 8)."""
    found: dict[tuple[str, str], float] = {}
    weakest, strongest = (
        targets.number(f"section-4.3/labels-{w}") for w in ("weakest", "strongest")
    )
    for name, target in (
        ("TMax", weakest), ("SETA", (weakest + strongest) / 2), ("RST", strongest),
        ("TB2", targets.number("section-4.3/labels-TB2")),
    ):  # fmt: skip
        own = existing[existing["dataset"] == name]
        rest = unsampled[unsampled["dataset"] == name]
        places = np.array([place(str(x)) for x in [*labels[name], *rest["label"]]])
        known = own["public_pass_rate"].to_numpy(float) if name == "TB2" else None
        rates = rates_by_label(places, target, 75 if name == "TB2" else 8, rng, known=known)
        ids = [*own["task_id"], *rest["task_id"]]
        found |= {(name, i): float(r) for i, r in zip(ids, rates, strict=True)}
    tw = existing[existing["dataset"] == "TW"]
    found |= {
        ("TW", i): float(r) for i, r in zip(tw["task_id"], tw["public_pass_rate"], strict=True)
    }
    for task_id in unsampled.loc[unsampled["dataset"] == "TW", "task_id"]:
        found["TW", task_id] = int(rng.integers(0, 5)) / 8
    return found


def _evaluations(frame: pd.DataFrame, ours: pd.DataFrame) -> list[Run]:
    tasks = list(ours.itertuples())
    runs = []
    for row in frame.itertuples():
        task = tasks[_int(row.task)]
        if not row.result:
            runs.append(
                new_run(
                    task,
                    str(row.model),
                    "evaluation",
                    _int(row.attempt),
                    verdict="none",
                    stop=row.stop,
                )
            )
            continue
        done = _int(row.segments)
        runs.append(
            new_run(
                task,
                str(row.model),
                "evaluation",
                _int(row.attempt),
                verdict="passed" if row.passed else "failed",
                stop=row.stop,
                segments_passed=done,
                stop_segment=min(_int(row.k), done + 1),
                turns=_int(row.turns),
                agent_minutes=round(float(str(row.minutes)), 1),
                context_tokens=_int(row.tokens),
                first_claim_turn=_known(row.first_claim),
            )
        )
    return runs


def _int(value: Any) -> int:
    return int(value)


def _known(value: Any) -> int | None:
    return None if pd.isna(value) else int(value)


def _one(index: int, name: str, row: Any) -> Segment:
    work = None
    if not (np.isnan(row.W) or np.isnan(row.tokens)):
        work = Work(lines=int(row.W), tokens=int(row.tokens), chars=int(row.chars))
    return Segment(index=index, name=name, work=work)


def _existing_records(
    both: pd.DataFrame,
    labels: dict[str, NDArray[np.object_]],
    file_labels: dict[str, str],
    rates: dict[tuple[str, str], float],
) -> list[Task]:
    found = []
    for name in EXISTING:
        own = both[both["dataset"] == name]
        given = labels.get(name, np.full(len(own), "medium", object))
        for row, label in zip(own.itertuples(), given, strict=True):
            rate = rates.get((name, str(row.task_id)))
            found.append(
                Task(
                    dataset=name,
                    task_id=str(row.task_id),
                    group=GROUPS[name],
                    segments=(_one(1, str(row.task_id), row),),
                    sampling_group=str(row.sampling_group),
                    public_pass_rate=rate,
                    public_pass_rate_source=SOURCES[name] if rate is not None else None,
                    provenance="fitted",
                    **_labelled(name, file_labels.get(str(row.task_id), str(label))),
                )
            )
    return found


def _labelled(name: str, label: str) -> dict[str, Any]:
    if name == "TB2":
        return {"author_rating": label}
    return {"generated_label": label}


def _unsampled_records(
    unsampled: pd.DataFrame, file_labels: dict[str, str], rates: dict[tuple[str, str], float]
) -> list[Task]:
    return [
        Task(
            dataset=str(row.dataset),
            task_id=str(row.task_id),
            group="human-curated" if row.dataset in CURATED else "synthetic",
            segments=(Segment(index=1, name=str(row.task_id)),),
            sampling_group=str(row.label) if row.dataset == "TW" else None,
            public_pass_rate=rates[str(row.dataset), str(row.task_id)],
            public_pass_rate_source=SOURCES[str(row.dataset)],
            provenance="fitted",
            **_labelled(str(row.dataset), file_labels.get(str(row.task_id), str(row.label))),
        )
        for row in unsampled.itertuples()
    ]


def _our_records(
    ours: pd.DataFrame, parts: Parts, events: dict[int, int], rng: np.random.Generator
) -> list[Task]:
    found = []
    for number, row in enumerate(ours.itertuples()):
        own = np.flatnonzero(parts.task == number)
        lines = parts.lines[own]

        def split(total: Any, lines: Floats = lines) -> Floats:
            weights = lines * np.exp(rng.normal(0, 0.1, len(lines)))
            shares = weights / weights.sum() * float(total)
            return share_out(shares, np.ones(len(lines)), np.full(len(lines), 1e6), float(total))

        tokens, chars = split(row.tokens), split(row.chars)
        found.append(
            Task(
                dataset="Ours",
                task_id=str(row.task_id),
                group="ours",
                segments=tuple(
                    Segment(
                        index=i + 1,
                        name=f"segment-{i + 1}",
                        work=Work(lines=int(lines[i]), tokens=int(tokens[i]), chars=int(chars[i])),
                        instruction_words=int(parts.words[part]),
                        names_stated=int(parts.names[part]),
                        key_steps=1,
                        events=events.get(int(part), 0),
                    )
                    for i, part in enumerate(own)
                ),
                category=row.category if isinstance(row.category, str) else None,
                seed_env=str(row.seed_env),
                provenance="fitted",
            )
        )
    return found


def _original_records(originals: pd.DataFrame) -> list[Task]:
    return [
        Task(
            dataset=str(row.dataset),
            task_id=str(row.task_id),
            segments=(
                Segment(
                    index=1,
                    name=str(row.task_id),
                    work=Work(lines=_int(row.W), tokens=12 * _int(row.W), chars=42 * _int(row.W)),
                ),
            ),
            seed_env=str(row.seed_env),
            provenance="fitted",
        )
        for row in originals.itertuples()
    ]


def _merged_records(merged: pd.DataFrame) -> list[Task]:
    return [
        Task(
            dataset=str(row.dataset),
            task_id=str(row.task_id),
            group="ours",
            segments=(Segment(index=1, name=str(row.task_id)),),
            parent=str(row.parent),
            provenance="fitted",
        )
        for row in merged.itertuples()
    ]


def _benchmark_records() -> Sequence[Task]:
    return [
        Task(
            dataset=dataset,
            task_id=f"{dataset.lower()}-{number:03d}",
            segments=(Segment(index=1, name=f"{dataset.lower()}-{number:03d}"),),
            provenance="fitted",
        )
        for dataset, count in others.BENCHMARK_TASKS.items()
        for number in range(1, count + 1)
    ]
