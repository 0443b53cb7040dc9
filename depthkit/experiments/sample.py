"""``depthkit sample``: a sample of a data set, every decision with its reason (Appendix C)."""

from __future__ import annotations

import csv
import io
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from rich.console import Console

from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.experiments.sampling import Candidate, Plan, Rules, extension, plan_sample
from depthkit.model import Segment, Task
from depthkit.tasks import LoadedTask, load_task
from depthkit.tasks.light import BUILD_BYTES, BUILD_SECONDS, heavy_signs
from depthkit.tasks.text import parsed

type Decided = Literal["sampled", "replaced", "reserve", "left out"]

CHECKED = "checked.jsonl"
"""In the output folder: what was found out about directories, by their digest."""


@dataclass(frozen=True)
class Decision:
    """What became of one task of the table."""

    task_id: str
    decided: Decided
    group: str | None
    position: int | None
    label: str | None
    reason: str


@dataclass
class Sample:
    """A sample with every decision behind it.

    Attributes:
        decisions: Of all tasks: those of the list in its order, then the others by name.
        extended: What the list was extended by, in words; empty if it was not.
    """

    plan: Plan
    decisions: list[Decision] = field(default_factory=list)
    extended: str = ""

    @property
    def sampled(self) -> list[Decision]:
        """The tasks of the sample, in the order of the list."""
        return [each for each in self.decisions if each.decided == "sampled"]

    def table_4(self) -> dict[str, Any]:
        """The data set's row of Table 4."""
        counts = Counter(each.group for each in self.sampled)
        return {
            "dataset": self.plan.rules.dataset,
            "groups": {
                group: {"candidates": size, "sampled": counts[group]}
                for group, size in self.plan.groups.items()
            },
            "evidence": self.plan.rules.evidence_words(),
            "sampled": len(self.sampled),
        }

    def table_5(self) -> list[dict[str, Any]]:
        """The data set's labels in the sample and in the whole (Table 5)."""
        whole = Counter(each.label for each in self.decisions if each.label is not None)
        drawn = Counter(each.label for each in self.sampled if each.label is not None)
        return [
            {
                "label": label,
                "sampled": drawn[label],
                "share": drawn[label] / total if (total := drawn.total()) else None,
                "original": whole[label],
                "original_share": whole[label] / whole.total(),
            }
            for label in sorted(whole)
        ]

    def row(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {
            "table_4": self.table_4(),
            "table_5": self.table_5(),
            "extended": self.extended,
            "decisions": [asdict(each) for each in self.decisions],
        }


def read_table(path: Path) -> list[dict[str, Any]]:
    """The rows of a CSV or Parquet table of tasks; CSV as text.

    Raises:
        DepthkitError: It cannot be read.
    """
    if not path.is_file():
        raise DepthkitError(f"{path}: no such file.")
    try:
        if path.suffix == ".parquet":
            table = pd.read_parquet(path)
            return [{str(k): v for k, v in row.items()} for row in table.to_dict("records")]
        with path.open(newline="", encoding="utf-8-sig") as source:
            rows = list(csv.DictReader(source, strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise DepthkitError(f"{path}: not readable as a table ({error}).") from error
    if any(None in row or None in row.values() for row in rows):
        raise DepthkitError(f"{path}: a row has more or fewer cells than the header.")
    return rows


def draw_sample(
    rows: Sequence[dict[str, Any]],
    rules: Rules,
    *,
    n: int | None = None,
    tasks_dir: Path | None = None,
    check: bool = False,
    workers: int = 3,
    out: Path | None = None,
    corpus: Corpus | None = None,
    console: Console | None = None,
) -> Sample:
    """Decide on every task of a table.

    Args:
        rows: One a task.
        rules: How the data set is sampled.
        n: How many tasks; as the rules say by default.
        tasks_dir: Where the task directories are. Tasks with heavy dependencies, and those whose
            directory is missing or no task, are replaced by the next of the list.
        check: Whether images are built where dependencies are unsure, and reference solution and
            doing nothing are tried; needs ``tasks_dir`` and an engine.
        workers: Trials at a time.
        out: Folder where what was found out about directories is kept, so that it is not found out
            again.
        corpus: Where results are looked up, for rules that extend the list until enough are solved.
        console: Where to draw progress.

    Raises:
        DepthkitError: The table does not fit the rules, or no engine answers.
    """
    plan = plan_sample(rows, rules)
    wanted = n if n is not None else len(plan.listed) if rules.n == "all" else rules.n
    judge = _Judge(tasks_dir, check, workers, out, console)
    found = Sample(plan)
    accepted, refused = _accept(plan.listed, wanted, judge)
    if corpus is not None and rules.solved is not None:
        more, found.extended = _extension(accepted, corpus, rules, len(plan.listed))
        if more > len(accepted):
            accepted, refused = _accept(plan.listed, more, judge)
    kept = {each.task_id for each in accepted}
    for each in plan.listed:
        if each.task_id in kept:
            decided: Decided = "sampled"
            reason = judge.notes.get(each.task_id, "in the list's order")
        elif each.task_id in refused:
            decided, reason = "replaced", refused[each.task_id]
        else:
            decided, reason = "reserve", "further down the list"
        found.decisions.append(_decision(each, decided, reason))
    found.decisions += [_decision(c, "left out", c.reason or "") for c in plan.left_out]
    return found


def _decision(each: Candidate, decided: Decided, reason: str) -> Decision:
    return Decision(each.task_id, decided, each.group, each.position, each.label, reason)


def _accept(
    listed: Sequence[Candidate], wanted: int, judge: _Judge
) -> tuple[list[Candidate], dict[str, str]]:
    """The first tasks of the list that are fit, and why those before them are not."""
    accepted: list[Candidate] = []
    refused: dict[str, str] = {}
    waiting = list(listed)
    while waiting and len(accepted) < wanted:
        batch, waiting = waiting[: wanted - len(accepted)], waiting[wanted - len(accepted) :]
        faults = judge([each.task_id for each in batch])
        for each in batch:
            fault = faults.get(each.task_id)
            if fault is None:
                accepted.append(each)
            else:
                refused[each.task_id] = fault
    return accepted, refused


def _extension(
    accepted: Sequence[Candidate], corpus: Corpus, rules: Rules, listed: int
) -> tuple[int, str]:
    """How many tasks the sample should have by the results so far, and that in words."""
    assert rules.solved is not None
    names = {each.task_id.rsplit("/", 1)[-1] for each in accepted}
    table = corpus.estimates()
    table = table[(table["dataset"] == rules.dataset) & table["solved"].notna()]
    measured = int(table["task_id"].nunique())
    solved = int(table["solved"].astype(bool).sum())
    if not set(table["task_id"]) >= names:
        return len(accepted), ""  # measure these first
    more = extension(solved, measured, rules.solved, listed - max(measured, len(accepted)))
    if not more:
        return max(measured, len(accepted)), ""
    said = f"{solved} of {measured} tasks are solved, {rules.solved} are wanted: {more} more"
    return max(measured, len(accepted)) + more, said


# --- is a task fit ---


class _Judge:
    """Why tasks are not fit, by name; each is looked at once."""

    def __init__(
        self,
        folder: Path | None,
        check: bool,
        workers: int,
        out: Path | None,
        console: Console | None,
    ) -> None:
        if check and folder is None:
            raise DepthkitError("--check needs the task directories; name their folder (--tasks).")
        self._folder, self._check, self._workers = folder, check, workers
        self._console = console
        self._file = out / CHECKED if out and check else None
        self._known: dict[str, str | None] = {}
        self._before: dict[str, str | None] = {}
        self.notes: dict[str, str] = {}
        if self._file is not None and self._file.is_file():
            shown = str(self._file)
            for number, line in enumerate(self._file.read_bytes().splitlines(), start=1):
                entry = parsed("JSON", line.decode(errors="replace"), f"{shown}: line {number}")
                self._before[entry["digest"]] = entry["fault"]

    def __call__(self, names: Sequence[str]) -> dict[str, str | None]:
        if self._folder is None:
            return {}
        to_check: dict[str, LoadedTask] = {}
        for name in names:
            if name in self._known:
                continue
            task, fault = self._read(name)
            self._known[name] = fault
            if fault is None and task is not None and self._check:
                to_check[name] = task
        if to_check:
            self._try(to_check)
        return {name: self._known[name] for name in names}

    def _read(self, name: str) -> tuple[LoadedTask | None, str | None]:
        assert self._folder is not None
        paths = [self._folder / name, self._folder / name.rsplit("/", 1)[-1]]
        path = next((each for each in paths if each.is_dir()), None)
        if path is None:
            return None, f"no directory of it in {self._folder.name}"
        try:
            task = load_task(path)
        except DepthkitError as error:
            return None, str(error).replace(str(path), name)
        signs = heavy_signs(task)
        if signs and signs[0].sure:
            return task, f"heavy dependency: {signs[0]}"
        if signs:
            self.notes[name] = f"unsure whether light, {signs[0]}"
        return task, None

    def _try(self, tasks: dict[str, LoadedTask]) -> None:
        """Build what is unsure, then the reference solution must pass and doing nothing fail."""
        from depthkit.experiments.check import check_tasks

        fresh = {}
        for name, task in tasks.items():
            digest = str(task.record.digest)
            if digest in self._before:
                self._known[name] = self._before[digest]
                continue
            fault = _build_fault(task) if name in self.notes else None
            if fault is None:
                fresh[name] = task
            else:
                self._keep(name, task, fault)
        checked = check_tasks(
            [task.path for task in fresh.values()], workers=self._workers, console=self._console
        )
        for (name, task), row in zip(fresh.items(), checked, strict=True):
            fault = f"quality check: {row.faults[0].splitlines()[0]}" if row.faults else None
            self._keep(name, task, fault)

    def _keep(self, name: str, task: LoadedTask, fault: str | None) -> None:
        self._known[name] = fault
        if fault is None and name in self.notes:
            self.notes[name] += "; built once and light"
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                entry = {"task_id": name, "digest": task.record.digest, "fault": fault}
                file.write(json.dumps(entry) + "\n")


def _build_fault(task: LoadedTask) -> str | None:
    """Build the image once: too large, too slow or not at all."""
    from depthkit.trials import engine
    from depthkit.trials.images import ensure_image

    if task.dockerfile is None:
        return None
    began = time.monotonic()
    try:
        image = ensure_image(task.path / "environment", str(task.record.digest), force=True)
    except DepthkitError as error:
        return f"its image does not build: {str(error).splitlines()[-1].strip()[:200]}"
    finally:
        engine.release()
    seconds = time.monotonic() - began
    size = int(image.attrs.get("Size") or 0)
    if seconds > BUILD_SECONDS:
        return f"heavy dependency: building its image took {seconds / 60:.0f} minutes"
    if size > BUILD_BYTES:
        return f"heavy dependency: its image has {size >> 20} MB"
    return None


# --- what is written ---


def write_sample(found: Sample, out: Path) -> list[Path]:
    """Write ``sample.csv``, ``decisions.csv`` and ``summary.json``; the same bytes each time."""
    out.mkdir(parents=True, exist_ok=True)
    columns = ["position", "task", "group", "label"]
    rows = [[e.position, e.task_id, e.group, e.label or ""] for e in found.sampled]
    decided = [
        [e.task_id, e.decided, e.group or "", e.position or "", e.label or "", e.reason]
        for e in found.decisions
    ]
    head = ["task", "decision", "group", "position", "label", "reason"]
    summary = {"table_4": found.table_4(), "table_5": found.table_5(), "extended": found.extended}
    texts = {
        "sample.csv": _csv(columns, rows),
        "decisions.csv": _csv(head, decided),
        "summary.json": json.dumps(summary, indent=2, ensure_ascii=False) + "\n",
    }
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    return [out / name for name in texts]


def _csv(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


def add_to_corpus(found: Sample, corpus: Corpus) -> int:
    """Enter every task of the table into a corpus, with its group and label, for Tables 4 and 5.

    A task that is there keeps what it has; only its group is set anew.

    Returns:
        int: How many tasks are new or changed.
    """
    rules = found.plan.rules
    there = {t.task_id: t for t in corpus.task_records() if t.dataset == rules.dataset}
    changed: list[Task] = []
    seen: set[str] = set()
    for each in found.decisions:
        name = each.task_id.rsplit("/", 1)[-1]
        if name in seen:
            raise DepthkitError(f"{name} is the name of two tasks; a corpus needs one each.")
        seen.add(name)
        old = there.get(name) or Task(
            dataset=rules.dataset,
            task_id=name,
            segments=(Segment(index=1, name=name),),
            provenance="imported",
        )
        new = old.model_copy(update={"sampling_group": each.group or old.sampling_group})
        rated = "author_rating" if rules.label_source == "author" else "generated_label"
        if rules.label_source is not None and getattr(old, rated) is None:
            new = new.model_copy(update={rated: each.label})
        if old.group is None:
            new = new.model_copy(update={"group": rules.made})
        if name not in there or new != old:
            changed.append(new)
    corpus.append_tasks(changed)
    return len(changed)
