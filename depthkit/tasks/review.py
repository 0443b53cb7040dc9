"""Static review of a task: the rules of Appendix F that can be read off, and Table 9's counts."""

from __future__ import annotations

import re
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from depthkit.errors import DepthkitError
from depthkit.tasks.check_scripts import (
    LIBRARY,
    check_script,
    names_file,
)
from depthkit.tasks.findings import Finding
from depthkit.tasks.load import LoadedTask, load_task
from depthkit.tasks.markers import read_marks, without
from depthkit.tasks.names import read_names
from depthkit.tasks.reading import CHECKS, READERS, CheckScript, names_used
from depthkit.tasks.review_checks import review_checks
from depthkit.tasks.text import read_text
from depthkit.tasks.words import read_script

_DEFINED = re.compile(r"\s*(?:function\s+)?(\w+)\s*\(\)")
_LONG = 80
"""Characters of an instruction from which the same text in the container is no accident."""


@dataclass(frozen=True)
class SegmentCounts:
    """What is worth knowing of a segment before it is run; ``None`` where it cannot be read off.

    Attributes:
        names: Names stated in the instruction that the checks rely on (Table 9).
        lines: Lines of the reference solution, W.
    """

    name: str
    words: int | None
    names: int | None
    lines: int | None
    checks: int | None
    key_steps: int | None
    events: int | None


@dataclass
class Review:
    """What the static review of one directory gives."""

    dataset: str
    task_id: str
    findings: list[Finding] = field(default_factory=list)
    segments: list[SegmentCounts] = field(default_factory=list)
    error: str | None = None
    """Why the task could not be reviewed."""
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return self.error is None and not self.findings

    def row(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {
            "dataset": self.dataset,
            "task_id": self.task_id,
            "ok": self.ok,
            "error": self.error,
            "findings": [asdict(finding) for finding in self.findings],
            "notes": self.notes,
            "segments": [asdict(counts) for counts in self.segments],
            "total": self.total(),
        }

    def total(self) -> dict[str, int | None]:
        """Counts of the whole task."""
        keys = ("words", "names", "lines", "checks", "key_steps", "events")
        values = {key: [getattr(each, key) for each in self.segments] for key in keys}
        return {key: None if None in all_ else sum(all_) for key, all_ in values.items()}

    def counts_line(self) -> str:
        """The counts in words."""
        said = [f"{len(self.segments)} segment{'s' if len(self.segments) != 1 else ''}"]
        names = {
            "words": "words",
            "names": "names stated",
            "lines": "lines of solution",
            "checks": "checks",
            "key_steps": "key-step blocks",
            "events": "events",
        }
        total = self.total()
        said += [f"{total[key]:,} {name}" for key, name in names.items() if total[key] is not None]
        return " · ".join(said)


def review(path: Path) -> Review:
    """The static review of a task directory; nothing is run.

    A segment whose checks are not written with the check library is reviewed for its marks alone,
    and a note says so.
    """
    real = path.resolve()
    found = Review(real.parent.name, real.name)
    try:
        task = load_task(path)
        _review(task, found)
    except DepthkitError as error:
        found.error = str(error)
    found.findings.sort()
    return found


def _review(task: LoadedTask, found: Review) -> None:
    instructions: list[str] = []
    readable = [check_script(task, index) is not None for index in range(task.record.k)]
    if any(readable):
        _library(task, found)
    for index, segment in enumerate(task.record.segments):
        instructions.append(task.instructions[index])
        marks = _marks(task, index, found, required=any(readable))
        script = _checks(task, index, "\n".join(instructions), found)
        if script is None:
            found.notes.append(
                f"{segment.name}: its checks are not written with the check library (check.sh), so "
                "they are not reviewed"
            )
        found.segments.append(
            SegmentCounts(
                name=segment.name,
                words=segment.instruction_words,
                names=segment.names_stated if script is None else _names_stated(script),
                lines=segment.work.lines if segment.work else None,
                checks=None
                if script is None
                else sum(c.name in CHECKS - {"fail"} for c in script.script.commands),
                key_steps=marks[0] if marks else None,
                events=marks[1] if marks else None,
            )
        )
    _container(task, found)


def _marks(
    task: LoadedTask, index: int, found: Review, *, required: bool
) -> tuple[int, int] | None:
    solution = task.solutions[index]
    if solution is None:
        return None
    file = solution.relative_to(task.path).as_posix()
    text = read_text(solution, str(solution), latin_1=True)
    marks = read_marks(text)
    for line, fault in marks.faults:
        found.findings.append(Finding(file, line, "mark", fault))
    if not marks.key_steps and required:
        found.findings.append(Finding(file, 1, "key-step-missing", "no key step is marked"))
    if not syntax_fault(text):
        parts = [("key step", marks.key_steps), *(("event", (e,)) for e in marks.events)]
        for what, blocks in parts:
            broken = syntax_fault(without(text, blocks)) if blocks else None
            if broken:
                told = f"without the {what} the script breaks: {broken[1]}"
                found.findings.append(Finding(file, blocks[0].first, "mark", told))
    declared = task.record.segments[index]
    for name, count in (("key_steps", len(marks.key_steps)), ("events", len(marks.events))):
        said = getattr(declared, name)
        if said is not None and said != count:
            told = f"task.toml says {said} {name.replace('_', ' ')}, {count} are marked"
            found.findings.append(Finding(file, 1, "mark", told))
    return len(marks.key_steps), len(marks.events)


def _checks(task: LoadedTask, index: int, instruction: str, found: Review) -> CheckScript | None:
    path = check_script(task, index)
    if path is None:
        return None
    file = path.relative_to(task.path).as_posix()
    text = read_text(path, str(path))
    fault = syntax_fault(text)
    if fault:
        found.findings.append(Finding(file, fault[0], "no-check", f"does not parse: {fault[1]}"))
    for number, line in enumerate(text.split("\n"), 1):
        if (defined := _DEFINED.match(line)) and defined[1] in {*CHECKS, *READERS, "report"}:
            told = f"defines {defined[1]}, which is a function of the library"
            found.findings.append(Finding(file, number, "library", told))
    names = names_file(task, index)
    declared = read_names(names, names.relative_to(task.path).as_posix())
    script = CheckScript(
        file,
        read_script(text),
        instruction,
        names=declared.names if declared else (),
        own_scripts=_own_scripts(task),
    )
    found.findings += review_checks(script)
    return script


def _own_scripts(task: LoadedTask) -> frozenset[str]:
    """Names of files that the solutions bring or write: what these print, no software prints."""
    names = {Path(name).name for files in task.helper_files for name in files}
    for solution in filter(None, task.solutions):
        for command in read_script(
            read_text(solution, str(solution), latin_1=True)
        ).every_command():
            names |= {Path(word.value).name for sign, word in command.redirections if ">" in sign}
    return frozenset(names)


def _names_stated(script: CheckScript) -> int:
    used = names_used(script)
    stated = {
        n for n, (_, key) in used.items() if (script.key_stated if key else script.name_stated)(n)
    }
    return len(stated | {name for name in script.names if script.stated(name)})


def _library(task: LoadedTask, found: Review) -> None:
    library = task.path / "tests" / "checks.sh"
    if not library.is_file():
        found.findings.append(
            Finding("tests/checks.sh", 1, "library", "is missing; copy it from depthkit/tasks")
        )
    elif library.read_bytes() != LIBRARY.read_bytes():
        found.findings.append(
            Finding("tests/checks.sh", 1, "library", "differs from the library as it is shipped")
        )


def _container(task: LoadedTask, found: Review) -> None:
    """Checks and later instructions in what becomes the container, or in what a solution writes."""
    folder = task.path / "environment"
    later = [" ".join(text.split()) for text in task.instructions[1:]]
    names = (*CHECKS - {"pass", "fail"}, *READERS)
    for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > 1 << 20:
            continue
        file = path.relative_to(task.path).as_posix()
        text = path.read_bytes().decode("utf-8", errors="replace")
        for number, line in enumerate(text.split("\n"), 1):
            if any(word in names and word.startswith("expect_") for word in line.split()):
                found.findings.append(
                    Finding(file, number, "check-in-container", "a check is put into the container")
                )
                break
        flat = " ".join(text.split())
        if any(part[:_LONG] in flat for part in later if len(part) >= _LONG):
            found.findings.append(
                Finding(file, 1, "check-in-container", "holds the instruction of a later segment")
            )
    for solution in filter(None, task.solutions):
        file = solution.relative_to(task.path).as_posix()
        text = read_text(solution, str(solution), latin_1=True)
        for number, line in enumerate(text.split("\n"), 1):
            if "/tests/" in line or any(
                w.startswith("expect_") for w in line.split() if w in names
            ):
                found.findings.append(
                    Finding(file, number, "check-in-container", "the solution knows of the checks")
                )


def syntax_fault(text: str) -> tuple[int, str] | None:
    """Where bash cannot read a script, as line and message; it is not run."""
    done = subprocess.run(
        ["bash", "-n"], input=text.encode(), capture_output=True, env={"LC_ALL": "C"}, check=False
    )
    if done.returncode == 0:
        return None
    said = done.stderr.decode(errors="replace").splitlines() or ["bash cannot read it"]
    parts = said[0].removeprefix("bash: ").split(": ", 1)
    line = parts[0].removeprefix("line ")
    return (int(line), parts[-1]) if line.isdigit() else (1, said[0])
