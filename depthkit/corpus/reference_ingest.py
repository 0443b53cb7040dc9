"""Read results of the paper's own repository (:mod:`depthkit.corpus.reference`) into a corpus."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import ValidationError

from depthkit.corpus.files import UnreadableError, is_plain_name, one_line, parse_json, read_inside
from depthkit.corpus.ingest import BadTrial, IngestReport, Taken
from depthkit.corpus.reference import AUDIT, BELOW, HARNESS, RESULTS, SUMMARY, is_results
from depthkit.corpus.store import Corpus
from depthkit.errors import DepthkitError
from depthkit.model import Provenance, Purpose, Run, Segment, Task

_NEEDED = ("task_id", "cap", "turns")
"""Without these, and the verdict, a record is no run of a measurement."""

_SHOWN = 5
"""Differences to the summary that are listed; more are counted."""


def ingest_results(
    sources: Sequence[Path],
    corpus_dir: Path,
    *,
    dataset: str | None = None,
    fields: Mapping[str, str] | None = None,
) -> IngestReport:
    """Take in the results of the reference repository, or what :func:`export` wrote.

    Estimates follow from the runs; where a summary says otherwise, a note says so. Real runs
    become ``imported``; those that say they are scripted or fitted stay that.

    Args:
        sources: Directories like its ``out/``.
        corpus_dir: The corpus they go to; made if there is none.
        dataset: Data set of all of them; by default what summary or record names.
        fields: What the records call a field of ours, such as ``{"task_id": "task"}``.

    Raises:
        DepthkitError: A file cannot be read, a record lacks what a run cannot be without, or the
            corpus measures with other models.
    """
    if other := [source for source in sources if not is_results(source)]:
        raise DepthkitError(
            f"{other[0]}: no results of the reference repository ({AUDIT}/runs or {HARNESS}/runs); "
            "ingest Harbor trials by a command of their own."
        )
    parts = [
        _Part(source, kind, dataset, fields or {})
        for source in sources
        for kind in (HARNESS, AUDIT)
        if (source / kind / "runs").is_dir()
    ]
    models: tuple[str, ...] = ()
    for part in parts:
        if models[: len(part.models)] != part.models[: len(models)]:
            raise DepthkitError(
                f"{part.root}: its models are {list(part.models)}, but those of the results before "
                f"it {list(models)}; read them into corpora of their own."
            )
        models = max(models, part.models, key=len)
    runs = [run for part in parts for run in part.runs()]
    corpus = Corpus.open_or_create(corpus_dir, models=models)
    report = IngestReport(corpus)
    there = corpus.run_ids()
    report.known = [run.run_id for run in runs if run.run_id in there]
    fresh = {run.run_id: run for run in runs if run.run_id not in there}
    known = {(task.dataset, task.task_id) for task in corpus.task_records()}
    tasks = {(task.dataset, task.task_id): task for part in parts for task in part.tasks()}
    corpus.append_tasks([task for key, task in tasks.items() if key not in known])
    corpus.append_runs(list(fresh.values()))
    report.added = [Taken(run, None) for run in fresh.values()]
    for part in parts:
        report.bad += part.bad
        report.notes += part.notes
        report.notes += part.differences(corpus)
    return report


def parse_fields(pairs: Sequence[str]) -> dict[str, str]:
    """What the records call our fields, from ``--field task_id=task`` and the like.

    Raises:
        DepthkitError: It is no such pair, or names no field of ours.
    """
    names = dict(pair.partition("=")[::2] for pair in pairs)
    for ours, theirs in names.items():
        if not theirs or ours not in {*Run.model_fields, "passed"}:
            raise DepthkitError(
                f"--field {ours}={theirs}: write it as OURS=THEIRS, such as task_id=task; ours are "
                f"passed, {', '.join(Run.model_fields)}."
            )
    return names


class _Part:
    """The results of one kind, ``harness`` or ``audit``."""

    def __init__(
        self, source: Path, kind: str, dataset: str | None, fields: Mapping[str, str]
    ) -> None:
        self.root = source / kind / "runs"
        self.bad: list[BadTrial] = []
        self.notes: list[str] = []
        self._dataset, self._fields = dataset, fields
        self._entries = self._read_summary(kind)
        self._records = self._read_results()
        self._datasets: dict[str, set[str]] = defaultdict(set)
        for of, task_id in self._entries:
            self._datasets[task_id].add(of)
        self.models, self._folders = self._model_set()

    def _read_summary(self, kind: str) -> dict[tuple[str, str], dict[str, Any]]:
        """Entries by data set and task."""
        if not (self.root / SUMMARY).is_file():
            self.notes.append(f"{self.root}: no {SUMMARY}, so tasks are known by their runs alone")
            return {}
        try:
            summary = parse_json(read_inside(self.root / SUMMARY, self.root), SUMMARY)
        except UnreadableError as error:
            raise DepthkitError(f"{self.root}/{error}; mend or remove it.") from error
        shape = {"": summary} if kind == HARNESS else summary
        if not isinstance(summary, dict) or not all(
            isinstance(tasks, dict) and all(isinstance(entry, dict) for entry in tasks.values())
            for tasks in shape.values()
        ):
            raise DepthkitError(
                f"{self.root / SUMMARY}: it must hold an object for each task"
                f"{'' if kind == HARNESS else ', under the name of its data set'}; mend it."
            )
        return {
            (self._dataset or of or self._named(entry, task_id), task_id): entry
            for of, tasks in shape.items()
            for task_id, entry in tasks.items()
        }

    def _named(self, entry: Mapping[str, Any], task_id: str) -> str:
        if not isinstance(entry.get("dataset"), str):
            raise DepthkitError(
                f"{self.root / SUMMARY}: {one_line(task_id, 80)} has no dataset; give the data "
                "set with --dataset."
            )
        return str(entry["dataset"])

    def _model_set(self) -> tuple[tuple[str, ...], dict[str, tuple[str, str]]]:
        """The model set in order; of each folder, the model and its part in the measurement."""
        named = {name: self._model_of(name) for name in self._records}
        first = [model for name, model in named.items() if not name.endswith(BELOW)]
        later = [model for name, model in named.items() if name.endswith(BELOW)]
        recorded = [entry.get("D_by_model") for entry in self._entries.values()]
        order = next(
            (list(models) for models in recorded if models and isinstance(models, dict)), []
        )
        if order and first and order[0] not in first:
            raise DepthkitError(
                f"{self.root}: the first model is {one_line(order[0], 80)} by {SUMMARY} "
                f"(D_by_model), but the results are of {', '.join(first)}; name the folder so."
            )
        if not order and named and len(first) != 1:
            raise DepthkitError(
                f"{self.root}: which model is the first is not recorded (D_by_model in {SUMMARY}), "
                f"and {len(first)} folders could be its; leave one without {BELOW} there."
            )
        if not order and len(later) > 1:
            self.notes.append(f"{self.root}: the order of {', '.join(later)} is not recorded")
        models = tuple(dict.fromkeys([*order, *(() if order else first), *later]))
        roles = {
            name: (model, "ladder" if name.endswith(BELOW) or model == models[0] else "evaluation")
            for name, model in named.items()
        }
        return models, roles

    def _model_of(self, folder: str) -> str:
        """The model that the records of a folder name, else the folder's own name."""
        for _, record in self._records[folder]:
            if isinstance(record.get("model"), str) and record["model"]:
                return one_line(record["model"], 200)
        return folder.removesuffix(BELOW)

    def _read_results(self) -> dict[str, list[tuple[str, dict[str, Any]]]]:
        """Records of each folder, with our names for their fields, and where each stands."""
        theirs = {other: ours for ours, other in self._fields.items()}
        found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        for path in sorted(self.root.glob(f"*/{RESULTS}")):
            records = found.setdefault(path.parent.name, [])
            for where, line in self._lines(path):
                try:
                    record = parse_json(line, "the line")
                    if not isinstance(record, dict):
                        raise UnreadableError("the line is no object")
                except UnreadableError as error:
                    self.bad.append(BadTrial(where, str(error)))
                    continue
                record = {theirs.get(name, name): value for name, value in record.items()}
                if not records:
                    self._require(record, where)
                records.append((where, record))
        return found

    def _lines(self, path: Path) -> Iterator[tuple[str, bytes]]:
        try:
            data = read_inside(path, self.root)
        except UnreadableError as error:
            raise DepthkitError(f"{path.parent}/{error}; mend or remove it.") from error
        for number, line in enumerate(data.split(b"\n"), start=1):
            if line.strip():
                yield f"{path}:{number}", line

    def _require(self, record: Mapping[str, Any], where: str) -> None:
        """Stop at a first record that names its fields otherwise: all others will as well."""
        if lacking := _lacking(record):
            names = ", ".join(one_line(name, 40) for name in record)
            raise DepthkitError(
                f"{where}: no {' and no '.join(lacking)}; its fields are {names}. Say what they "
                f"are called here, such as --field {lacking[0]}=NAME."
            )

    def runs(self) -> list[Run]:
        """The runs of all folders."""
        found: list[Run] = []
        unread: set[str] = set()
        attempts: Counter[tuple[Any, ...]] = Counter()
        for folder, (model, role) in self._folders.items():
            for where, record in self._records[folder]:
                unread |= set(record) - set(Run.model_fields) - {"passed"}
                try:
                    found.append(self._run({"model": model, **record}, role, attempts))
                except UnreadableError as error:
                    self.bad.append(BadTrial(where, one_line(error)))
                except ValidationError as error:
                    self.bad.append(BadTrial(where, _said(error)))
        if unread:
            names = ", ".join(sorted(one_line(name, 40) for name in unread))
            self.notes.append(f"{self.root}: fields that were not read: {names}")
        return found

    def _run(self, record: dict[str, Any], role: str, attempts: Counter[tuple[Any, ...]]) -> Run:
        if lacking := _lacking(record):
            raise UnreadableError(f"no {' and no '.join(lacking)}")
        task_id = str(record["task_id"])
        of = self._dataset or record.get("dataset")
        if of is None and len(self._datasets[task_id]) == 1:
            (of,) = self._datasets[task_id]
        if not is_plain_name(of):
            raise UnreadableError(f"the data set of {task_id} is not known; give it with --dataset")
        cap = record["cap"]
        slot = (record["model"], of, task_id, cap)
        attempts[slot] += 1
        identity = json.dumps([record, attempts[slot]], sort_keys=True).encode()
        verdict = record.get("verdict")
        if verdict is None:
            passed = record.get("passed")
            if not isinstance(passed, bool):
                raise UnreadableError(f"passed is {one_line(passed, 40)}; it must be true or false")
            verdict = "passed" if passed else "failed"
        defaults: dict[str, Any] = {
            "run_id": f"reference-{hashlib.sha256(identity).hexdigest()[:16]}",
            "attempt": attempts[slot],
            "purpose": _purpose(role, cap),
        }
        if record.get("stop") is None:
            capped = isinstance(cap, int) and record["turns"] == cap
            defaults["stop"] = "turn_cap" if capped else "unknown"
            defaults["detail"] = "why the run ended is not recorded" + (
                "; taken from its turns" if capped else ""
            )
        known = {name: record[name] for name in Run.model_fields if record.get(name) is not None}
        provenance = _provenance(record.get("provenance"))
        settled = {"dataset": of, "task_id": task_id, "verdict": verdict, "provenance": provenance}
        run = Run.model_validate({**defaults, **known, **settled})
        if not is_plain_name(run.run_id):
            raise UnreadableError(f"run_id is {one_line(run.run_id, 80)}; it must be a plain name")
        return run

    def tasks(self) -> list[Task]:
        """The tasks of the summary."""
        found = []
        for (of, task_id), entry in self._entries.items():
            given = entry.get("task")
            if not isinstance(given, dict):
                k = entry.get("segments")
                k = k if isinstance(k, int) and 0 < k < 1000 else 1
                given = {"segments": [Segment(index=i, name=str(i)) for i in range(1, k + 1)]}
            settled = {
                "dataset": of,
                "task_id": task_id,
                "provenance": _provenance(given.get("provenance")),
            }
            task = {**given, **settled}
            try:
                found.append(Task.model_validate(task))
            except ValidationError as error:
                where = f"{self.root / SUMMARY}: {one_line(task_id, 80)}"
                self.bad.append(BadTrial(where, _said(error)))
        return found

    def differences(self, corpus: Corpus) -> list[str]:
        """Where N or D of the summary are not what the runs give."""
        rows = corpus.estimates().to_dict("records")
        ours = {(row["dataset"], row["task_id"]): row for row in rows}
        notes = []
        for key, entry in self._entries.items():
            for name in ("N", "D"):
                given, found = entry.get(name), ours.get(key, {}).get(name)
                found = None if pd.isna(found) else found
                if name in entry and given != found:
                    notes.append(
                        f"{key[0]}/{key[1]}: {SUMMARY} has {name} = {one_line(given, 40)}, the "
                        f"runs give {found}"
                    )
        more = [f"{len(notes) - _SHOWN} more such differences"] if len(notes) > _SHOWN else []
        return notes[:_SHOWN] + more


def _lacking(record: Mapping[str, Any]) -> list[str]:
    lacking = [name for name in _NEEDED if name not in record]
    return lacking if "verdict" in record or "passed" in record else [*lacking, "passed"]


def _said(error: ValidationError) -> str:
    """The first of what is wrong, in one line."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"]) or "record"
    return one_line(f"{place}: {first['msg']}")


def _purpose(role: str, cap: object) -> Purpose:
    if role == "evaluation":
        return "evaluation"
    return "free" if cap is None else "ladder"


def _provenance(given: object) -> Provenance:
    """Somebody else's measurement is imported; a script or a fit never passes for one."""
    return given if given in ("scripted", "fitted") else "imported"
