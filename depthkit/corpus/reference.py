"""Measurements in the files of the paper's own repository; ``reference_ingest`` reads them back.

Its README (the section "Results") documents names and contents of these files, but no field: the
fields are ours, those of :class:`depthkit.model.Run` and the few of :func:`_entry`.
``docs/reference-repository.md`` says which is which::

    OUT/harness/runs/summary.json                       tasks of several segments
    OUT/audit/runs/summary.json                         single-instruction tasks, by data set
    OUT/{harness,audit}/runs/MODEL/results.jsonl        runs of the first model
    OUT/{harness,audit}/runs/MODEL__below/results.jsonl of each later one, under smaller caps

D is 99 above the largest cap, and null where there is no estimate.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from depthkit.corpus.config import CONFIG
from depthkit.corpus.store import Corpus
from depthkit.errors import DepthkitError
from depthkit.model import Task

HARNESS, AUDIT = "harness", "audit"
SUMMARY, RESULTS, BELOW = "summary.json", "results.jsonl", "__below"


@dataclass
class ExportReport:
    """What was written.

    Attributes:
        directory: Where to.
        files: The files, relative to it.
        tasks: Tasks in the summaries.
        runs: Runs in the results.
        left_out: How many runs were not written, by reason.
    """

    directory: Path
    files: list[str] = field(default_factory=list)
    tasks: int = 0
    runs: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def row(self) -> dict[str, Any]:
        """For scripts."""
        return {**vars(self), "directory": str(self.directory), "left_out": dict(self.left_out)}

    def lines(self) -> list[str]:
        """For a person."""
        left = [f"Left out: {number} runs {why}." for why, number in self.left_out.items()]
        head = f"{self.tasks} tasks and {self.runs} runs written to {self.directory}"
        return [head, *(f"  {name}" for name in self.files), *left]


def export(corpus: Corpus, directory: Path) -> ExportReport:
    """Write what a corpus measured as the reference repository would have it in its ``out/``.

    Runs that enter no estimate (evaluations, other models) and runs without a result have no
    place there and are left out; so are trajectories.

    Args:
        corpus: The corpus.
        directory: Made if missing; it holds no such results yet.

    Raises:
        DepthkitError: Results are there already, or names would collide.
    """
    if is_results(directory):
        raise DepthkitError(
            f"{directory}: there are results in it already; name a new directory for --reference."
        )
    if not corpus.models:
        raise DepthkitError(
            f"{corpus.path}: corpus.toml names no models, so there is no measurement to write."
        )
    tasks = {(task.dataset, task.task_id): task for task in corpus.task_records()}
    report = ExportReport(directory)
    texts: dict[str, str] = {}
    for kind, summary in _summaries(corpus, tasks).items():
        texts[f"{kind}/runs/{SUMMARY}"] = json.dumps(summary, indent=2) + "\n"
    report.tasks = len(corpus.estimates())
    for name, lines in _results(corpus, tasks, report.left_out).items():
        texts[name] = "".join(line + "\n" for line in lines)
        report.runs += len(lines)
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=directory) as work:
        for name, text in texts.items():
            path = Path(work, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for made in sorted(Path(work).iterdir()):
            made.rename(directory / made.name)
    report.files = sorted(texts)
    return report


def _summaries(
    corpus: Corpus, tasks: Mapping[tuple[str, str], Task]
) -> dict[str, dict[str, dict[str, Any]]]:
    """The summaries there is something for: of tasks by name, or by data set and name."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in corpus.estimates().to_dict("records"):
        key = row["dataset"], row["task_id"]
        entry = _entry(row, tasks.get(key))
        if _kind(tasks.get(key)) == AUDIT:
            found.setdefault(AUDIT, {}).setdefault(key[0], {})[key[1]] = entry
            continue
        harness = found.setdefault(HARNESS, {})
        if key[1] in harness:
            raise DepthkitError(
                f"{corpus.path}: {key[1]} is a task of {harness[key[1]]['dataset']} and of "
                f"{key[0]}; {HARNESS}/runs/{SUMMARY} has tasks by name alone, so export one "
                "of these data sets at a time."
            )
        harness[key[1]] = {"dataset": key[0], **entry}
    return found


def _entry(row: Mapping[Any, Any], task: Task | None) -> dict[str, Any]:
    """A task's summary: what the README says it holds, then what it does not."""
    work = task.work if task else None
    plain = {name: None if pd.isna(row[name]) else row[name] for name in ("N", "D", "solved", "R")}
    return {
        "segments": task.k if task else None,
        "W": work.lines if work else None,
        "N": plain["N"],
        "D": plain["D"],
        "D_by_model": row["D_by_model"],
        "finished": bool(row["final"]),
        "solved": plain["solved"],
        "R": plain["R"],
        "task": task.model_dump(mode="json") if task else None,
    }


def _results(
    corpus: Corpus, tasks: Mapping[tuple[str, str], Task], left_out: Counter[str]
) -> dict[str, list[str]]:
    """Lines of each results file, by its name."""
    folders: dict[str, str] = {}
    for model in corpus.models:
        folder = re.sub(r"[^A-Za-z0-9._+=-]+", "-", model).strip("-.") or "model"
        folder += "" if model == corpus.models[0] else BELOW
        if folder in folders.values() or (model == corpus.models[0] and folder.endswith(BELOW)):
            raise DepthkitError(
                f"{corpus.path}: the folder of model {model!r} would be {folder}, which is "
                "another's; such a model set cannot be written in this form."
            )
        folders[model] = folder
    lines: dict[str, list[str]] = defaultdict(list)
    for run in corpus.run_records():
        free = run.purpose == "free" and run.cap is None and run.model == corpus.models[0]
        ladder = run.purpose == "ladder" and run.cap in corpus.caps and run.model in folders
        if not free and not ladder:
            left_out["that enter no estimate"] += 1
        elif not run.valid:
            left_out["without a result"] += 1
        else:
            kind = _kind(tasks.get((run.dataset, run.task_id)))
            record = {"passed": run.passed, **run.model_dump(mode="json")}
            lines[f"{kind}/runs/{folders[run.model]}/{RESULTS}"].append(json.dumps(record))
    return lines


def _kind(task: Task | None) -> str:
    return HARNESS if task is not None and task.k > 1 else AUDIT


def is_results(directory: Path) -> bool:
    """Whether a directory is laid out like the reference repository's ``out/``."""
    return any((directory / kind / "runs").is_dir() for kind in (HARNESS, AUDIT))


def refuse_results(directory: Path) -> None:
    """Say where to go from a directory of such results that was given for a corpus.

    The reference repository keeps its results where ``DEPTH_OUT`` says, depthkit its corpus.

    Raises:
        DepthkitError: The directory is one.
    """
    if is_results(directory) and not (directory / CONFIG).is_file():
        raise DepthkitError(
            f"{directory}: holds results of the reference repository, not a corpus; read them with "
            f"depthkit ingest {directory} --corpus NEW, and name NEW as --corpus or in DEPTH_OUT."
        )
