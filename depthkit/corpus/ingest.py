"""Take in Harbor trials that someone else ran: job directories, trial directories, any folder.

A trial becomes a :class:`Run` with provenance ``imported``, a :class:`Task` if its task is new,
and a copy of the files a corpus keeps. A bad trial is reported, never fatal. Nothing of a trial is
executed, links are not followed, and keys are left out of what is copied (:func:`files.redact`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import ValidationError

from depthkit.corpus.files import (
    UnreadableError,
    is_plain_name,
    mask_text,
    one_line,
    parse_json,
    read_regular,
    require_plain_name,
    timestamp,
)
from depthkit.corpus.keep import RUN_FILE, copy_trial
from depthkit.corpus.outcome import (
    Part,
    agent_minutes,
    context_tokens,
    judge,
    last_rewards,
    smallest_reward,
    stated_cap,
    total,
    total_cost,
    total_tokens,
)
from depthkit.corpus.store import Corpus
from depthkit.corpus.trajectory import TERMINUS, read_trajectory
from depthkit.corpus.turns import agent_folders
from depthkit.errors import DepthkitError
from depthkit.model import Purpose, Run, Segment, Task
from depthkit.protocol.verdict import passes

_BATCH = 100
_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/")


@dataclass(frozen=True)
class BadTrial:
    """A directory that looks like a trial and could not be taken in."""

    path: str
    reason: str


@dataclass(frozen=True)
class Taken:
    """A trial that was taken in."""

    run: Run
    parse_errors: int | None
    """Replies that did not parse; ``None`` without a whole trajectory."""


@dataclass
class IngestReport:
    """What came of an ingest."""

    corpus: Corpus

    added: list[Taken] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    """``run_id`` of each run that was there already."""
    bad: list[BadTrial] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Files that were left out, and why."""


@dataclass(frozen=True)
class _Found:
    directory: Path
    problem: str | None = None


def ingest(
    sources: Sequence[Path],
    corpus_dir: Path,
    *,
    dataset: str | None = None,
    purpose: Purpose = "evaluation",
    models: Sequence[str] = (),
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> IngestReport:
    """Take in every trial under these directories.

    Ingesting again adds only what is new: a ``run_id`` follows from what identifies the trial in
    its ``result.json``.

    Args:
        sources: Harbor job or trial directories, or folders of such, at any depth.
        corpus_dir: The corpus they go to; made if there is none, once a trial was found.
        dataset: Data set of all of them; by default what each trial names as its source.
        purpose: Purpose of all of them; only ``free`` and ``ladder`` enter estimates of depth.
        models: Model set of the corpus, in order, as the trials name the models; estimates need it.
        progress: Called with trials done and trials found.

    Raises:
        DepthkitError: A source does not exist, or there is no trial under any of them.
    """
    if dataset is not None:
        require_plain_name(dataset, "--dataset")
    found = [trial for source in sources for trial in find_trials(source)]
    if not found:
        names = ", ".join(str(source) for source in sources)
        raise DepthkitError(
            f"{names}: no Harbor trial in it; name a job directory, a trial directory (one with a "
            "result.json of a trial) or a folder of such."
        )
    intake = _Intake(Corpus.open_or_create(corpus_dir, models=models), dataset, purpose)
    try:
        for done, trial in enumerate(found):
            progress(done, len(found))
            try:
                if trial.problem:
                    raise UnreadableError(trial.problem)
                intake.take(trial.directory)
            except UnreadableError as error:
                intake.report.bad.append(BadTrial(str(trial.directory), str(error)))
        progress(len(found), len(found))
    finally:
        intake.flush()
    return intake.report


def find_trials(source: Path) -> Iterator[_Found]:
    """Trial directories at or below a directory, in order of their paths.

    What lies inside a trial is not searched: an agent may have written it.

    Raises:
        DepthkitError: There is no such directory.
    """
    if not source.is_dir():
        raise DepthkitError(f"{source}: no such directory; name a Harbor job or trial directory.")
    for path, folders, names in os.walk(source):
        directory = Path(path)
        if "result.json" in names:
            kind, problem = _result_kind(directory)
        else:
            kind, problem = "other", "no result.json: the trial did not finish"
        left_behind = _left_behind(directory, folders, names)
        if kind == "trial":
            yield _Found(directory)
        elif kind == "unreadable" or left_behind:
            yield _Found(directory, problem)
        # The result of a whole job may be cut off too; then its trials lie below.
        if kind == "trial" or left_behind:
            folders.clear()
        folders.sort()


def _result_kind(directory: Path) -> tuple[Literal["trial", "other", "unreadable"], str]:
    """Whether a ``result.json`` is that of a trial; a job has one of its own."""
    try:
        data = read_regular(directory / "result.json")
        if b'"task_name"' in data and b'"n_total_trials"' not in data:
            return "trial", ""  # Parsed when it is taken in.
        result = parse_json(data, "result.json")
    except (UnreadableError, FileNotFoundError) as error:
        return "unreadable", str(error)
    if isinstance(result, dict) and "task_name" in result:
        return "trial", ""
    return "other", "result.json is not that of a trial: it has no task_name"


def _left_behind(directory: Path, folders: list[str], names: list[str]) -> bool:
    """Whether a directory has what a trial leaves beside its result."""
    agent = "agent" in folders and (directory / "agent" / "trajectory.json").is_file()
    configured = "config.json" in names and bool({"agent", "verifier"} & set(folders))
    leavings = {"trial.log", "trajectory.json", "exception.txt"} & set(names)
    return bool(leavings) or agent or configured


_TOKENS = (
    ("n_input_tokens", "total_prompt_tokens", "input_tokens"),
    ("n_cache_tokens", "total_cached_tokens", "cached_tokens"),
    ("n_output_tokens", "total_completion_tokens", "output_tokens"),
)
"""Where the tokens of a run stand: in its result, its trajectory's totals, each step."""


class _Intake:
    """Takes in one trial after the other, appending in batches."""

    def __init__(self, corpus: Corpus, dataset: str | None, purpose: Purpose) -> None:
        self.corpus = corpus
        _drop_leftovers(corpus.path / "trials")
        self.report = IngestReport(corpus)
        self._dataset = dataset
        self._purpose = purpose
        self._known = set(corpus.run_ids())
        self._segments = {(t.dataset, t.task_id): t.k for t in corpus.task_records()}
        self._attempts: Counter[tuple[str, str, str, int | None]] = Counter()
        runs = corpus.runs()
        same = runs[runs["purpose"] == purpose]
        key = ["dataset", "task_id", "model", "cap"]
        last = same.groupby(key, dropna=False, as_index=False)["attempt"].max()
        for set_name, task_id, model, cap, attempt in last.itertuples(index=False):
            stated = None if pd.isna(cap) else int(cap)
            self._attempts[set_name, task_id, model, stated] = int(attempt)
        self._taken: list[Taken] = []
        self._tasks: list[Task] = []

    def take(self, trial: Path) -> None:
        """Take in one trial directory.

        Raises:
            UnreadableError: It cannot be; the message says why.
        """
        try:
            self._take(trial)
        except (UnreadableError, DepthkitError):
            raise
        except Exception as error:  # What someone else wrote may hold what nobody thought of.
            why = one_line(f"{type(error).__name__}: {error}", 160)
            raise UnreadableError(f"cannot be taken in ({why})") from error
        if len(self._taken) >= _BATCH:
            self.flush()

    def _take(self, trial: Path) -> None:
        result = parse_json(read_regular(trial / "result.json"), "result.json")
        run_id = run_id_of(result)
        if run_id in self._known:
            self.report.known.append(run_id)
            return
        dataset, task_id = self._task_of(result)
        aside = self.corpus.path / "trials" / f".ingest-{os.getpid()}" / run_id
        try:
            notes = copy_trial(trial, aside, result)
            own = self._own_record(trial)
            if own is not None:
                taken = self._as_recorded(own, run_id, dataset, task_id, result)
            else:
                taken = self._taken_in(run_id, dataset, task_id, result, aside)
            kept = self.corpus.trial_dir(run_id)
            if kept.exists():  # Left by an ingest that was killed before it wrote the run.
                shutil.rmtree(kept)
            aside.rename(kept)
        except OSError as error:
            raise UnreadableError(f"cannot be copied ({error.strerror or error})") from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        self.report.notes += [f"{trial}: {note}" for note in notes]
        self._known.add(run_id)
        self._taken.append(taken)

    def flush(self) -> None:
        """Append what has been taken in; a run another process appended meanwhile is left out."""
        there = self.corpus.run_ids()
        fresh = [taken for taken in self._taken if taken.run.run_id not in there]
        self.corpus.append_tasks(self._tasks)
        self.corpus.append_runs([taken.run for taken in fresh])
        self.report.added += fresh
        self.report.known += [t.run.run_id for t in self._taken if t.run.run_id in there]
        self._taken, self._tasks = [], []
        shutil.rmtree(self.corpus.path / "trials" / f".ingest-{os.getpid()}", ignore_errors=True)

    def _task_of(self, result: dict[str, Any]) -> tuple[str, str]:
        """Data set and task, without the owner that Harbor's registry puts before a name."""
        task_id = result.get("task_name")
        source = result.get("source")
        if isinstance(task_id, str):
            owner = _OWNER.match(task_id)
            task_id = task_id[owner.end() :] if owner else task_id
            source = source or (owner[0][:-1] if owner else None)
        if not is_plain_name(task_id):
            raise UnreadableError(
                f"result.json: task_name is {one_line(json.dumps(result.get('task_name')), 80)}; "
                "it must be a plain name"
            )
        dataset = self._dataset
        if dataset is None:
            dataset = source.rstrip("/").rsplit("/", 1)[-1] if isinstance(source, str) else None
        if not is_plain_name(dataset):
            raise UnreadableError(
                f"result.json: source is {one_line(json.dumps(result.get('source')), 80)}; it "
                "names no data set, so give one with --dataset"
            )
        return str(dataset), str(task_id)

    def _own_record(self, trial: Path) -> Run | None:
        """What this harness itself recorded of a trial; ``None`` if the trial is not one of it."""
        try:
            return Run.model_validate_json(read_regular(trial / RUN_FILE))
        except FileNotFoundError:
            return None
        except (UnreadableError, ValidationError) as error:
            why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
            self.report.notes.append(
                f"{trial}: {RUN_FILE} is not read ({one_line(why)}), result.json is instead"
            )
            return None

    def _as_recorded(
        self, own: Run, run_id: str, dataset: str, task_id: str, result: dict[str, Any]
    ) -> Taken:
        """A run of this harness keeps its verdict and all that was seen around it."""
        key = (dataset, task_id, own.model, own.cap)
        self._attempts[key] += 1
        changed = {
            "run_id": run_id,
            "dataset": dataset,
            "task_id": task_id,
            "attempt": self._attempts[key],
            "purpose": self._purpose,
            "detail": own.detail and mask_text(own.detail),
            # A script or a fit never passes for a model.
            "provenance": "imported" if own.provenance == "measured" else own.provenance,
        }
        steps = [s for s in result.get("step_results") or [] if isinstance(s, dict)]
        self._note_task(dataset, task_id, steps)
        return Taken(own.model_copy(update=changed), None)

    def _taken_in(
        self, run_id: str, dataset: str, task_id: str, result: dict[str, Any], trial: Path
    ) -> Taken:
        steps = result.get("step_results")
        records = [s for s in steps if isinstance(s, dict)] if isinstance(steps, list) else []
        folders = agent_folders(trial, result)
        if records and len(records) != len(folders):
            raise UnreadableError("result.json: a step_name is not a plain name")
        parts = [
            Part(record, context, read_trajectory(folder / "trajectory.json", trial))
            for record, (folder, context) in zip(records or [result], folders, strict=True)
        ]
        outcome = judge(result, parts)
        turns = total([part.turns for part in parts])
        detail = outcome.detail
        if turns is None and detail is None:
            why = "; ".join(problem for part in parts for problem in part.trajectory.problems)
            why = why or "the trajectory does not tell the agent's model calls"
            detail = one_line(f"turns are not recorded ({why})")
        model, agent = _model(result)
        cap = stated_cap(parts)
        key = (dataset, task_id, model, cap)
        sent, cached, written = (total_tokens(parts, *places) for places in _TOKENS)
        checksum = result.get("task_checksum")
        try:
            run = Run(
                run_id=run_id,
                dataset=dataset,
                task_id=task_id,
                model=model,
                agent=agent,
                cap=cap,
                attempt=self._attempts[key] + 1,
                purpose=self._purpose,
                verdict=outcome.verdict,
                stop=outcome.stop,
                stop_segment=len(records) or None,
                segments_passed=None
                if outcome.verdict == "none"
                else sum(passes(part.rewards) is True for part in parts),
                reward=smallest_reward(parts),
                rewards=last_rewards(parts),
                turns=turns,
                first_claim_turn=parts[0].trajectory.first_claim_turn,
                agent_minutes=agent_minutes(parts),
                context_tokens=context_tokens(parts[-1]),
                input_tokens=sent,
                cached_tokens=None if sent is None else cached,
                output_tokens=written,
                command_lines=total([part.trajectory.command_lines for part in parts]),
                cost_usd=total_cost(parts),
                started=timestamp(result.get("started_at")),
                task_digest=f"harbor:{checksum}" if is_plain_name(checksum) else None,
                detail=detail,
                provenance="imported",
            )
        except ValidationError as error:
            raise UnreadableError(f"result.json: {one_line(error.errors()[0]['msg'])}") from error
        self._attempts[key] += 1
        self._note_task(dataset, task_id, records)
        whole = all(part.trajectory.complete for part in parts)
        errors = sum(part.trajectory.parse_errors for part in parts)
        return Taken(run, errors if whole else None)

    def _note_task(self, dataset: str, task_id: str, records: list[dict[str, Any]]) -> None:
        """Append the task if it is new, or if this run reached segments nobody knew of.

        Only imported tasks can grow: one loaded from its directory has all its segments.
        """
        names = [str(record["step_name"]) for record in records] or [task_id]
        if self._segments.get((dataset, task_id), 0) >= len(names):
            return
        self._segments[dataset, task_id] = len(names)
        segments = tuple(Segment(index=i, name=name) for i, name in enumerate(names, start=1))
        self._tasks.append(
            Task(dataset=dataset, task_id=task_id, segments=segments, provenance="imported")
        )


def _drop_leftovers(trials: Path) -> None:
    """Remove half-made copies of an ingest that was killed."""
    for path in trials.glob(".ingest-*"):
        try:
            os.kill(int(path.name.removeprefix(".ingest-")), 0)
        except ProcessLookupError:
            shutil.rmtree(path, ignore_errors=True)
        except (ValueError, OverflowError, PermissionError):
            continue  # Not ours, or somebody else's that still runs.


def run_id_of(result: dict[str, Any]) -> str:
    """Name of an imported run: that of the trial, and eight digits of what identifies it.

    Raises:
        UnreadableError: The trial has no name.
    """
    name = result.get("trial_name") or result.get("task_name")
    if not isinstance(name, str):
        raise UnreadableError("result.json: trial_name is missing")
    identity = [result.get(f) for f in ("id", "trial_name", "task_name", "trial_uri", "started_at")]
    digest = hashlib.sha256(json.dumps(identity, default=str).encode()).hexdigest()[:8]
    plain = re.sub(r"[^A-Za-z0-9._+=-]+", "-", name).strip("-.")[:120]
    return f"{plain or 'trial'}-{digest}"


def _model(result: dict[str, Any]) -> tuple[str, str | None]:
    """Name of the model, and of the agent where it is not terminus-2.

    That is then part of the model's name, as in ``some-model (claude-code)``, since what another
    agent does with a model is not its doing alone; and all of it where there is no model, as of
    the oracle.
    """
    info = result.get("agent_info")
    info = info if isinstance(info, dict) else {}
    model = info.get("model_info")
    names = (model.get("name") if isinstance(model, dict) else None, info.get("name"))
    name, agent = (one_line(n, 200) if isinstance(n, str) and n else None for n in names)
    if not name and not agent:
        raise UnreadableError("result.json: agent_info names neither a model nor an agent")
    if agent in (None, TERMINUS):
        return name or TERMINUS, None
    return f"{name} ({agent})" if name else str(agent), agent
