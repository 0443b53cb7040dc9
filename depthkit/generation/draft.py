"""A task as it is being written: plain files beside where it will stand, and how far it is.

DIR.draft/task/        the task: environment/, steps/sN/…, tests/, plan.json, task.toml
DIR.draft/state.json   the seed, k, the digests of finished segments, what was refused so far

Segments are finished in order. What is finished is what passed a clean replay: a file of it that
changed since makes the segment, and those after it, unfinished.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from depthkit.corpus.lines import sync_directory
from depthkit.errors import DepthkitError
from depthkit.generation.formats import read_reports, with_formats, without_formats
from depthkit.generation.rules import task_faults
from depthkit.generation.seeds import copy_environment, load_seed, seed_digest
from depthkit.tasks.check_scripts import LIBRARY, TEST_SH
from depthkit.tasks.load import LoadedTask, load_task
from depthkit.tasks.review import review
from depthkit.tasks.text import MAX_TEXT_BYTES, printable, read_text

INSTRUCTION, SOLUTION, CHECKS = "instruction.md", "solution/solve.sh", "tests/check.sh"
NAMES, REPORTS = "names.toml", "reports.toml"

FILES = (INSTRUCTION, REPORTS, NAMES, SOLUTION, CHECKS)
"""What an author writes of a segment, in the order in which it is written."""

SHORT = {"solve.sh": SOLUTION, "check.sh": CHECKS}

PLAN_FILE = "plan.json"
"""In the task: its goal, what each segment asks for, and the key steps in words."""

_NEEDED = (INSTRUCTION, NAMES, SOLUTION, CHECKS)

_TOML = """\
schema_version = "1.1"

[metadata]
{category}
[metadata.depthkit]
group = "ours"
seed_env = {seed}

[agent]
timeout_sec = 1800.0

[verifier]
timeout_sec = 600.0

[environment]
network_mode = "no-network"
cpus = {cpus}
memory_mb = {memory}
"""


@dataclass
class Plan:
    """What a task is about.

    Attributes:
        goal: What a user of this software would pursue.
        segments: What each segment asks for, a sentence each.
        key_steps: What goes wrong in the usual way, of each finished segment.
    """

    goal: str
    segments: list[str]
    key_steps: list[str]

    def row(self) -> dict[str, Any]:
        """As ``plan.json`` keeps it and an author is told."""
        return {"goal": self.goal, "segments": self.segments, "key_steps": self.key_steps}


class Draft:
    """One draft. Whatever is kept of it is on disk when a call returns.

    Attributes:
        out: Where the task will stand once it is accepted.
        task: The task's directory until then.
        k: Number of segments.
        seed: The seed environment.
    """

    def __init__(self, out: Path, seed_dir: Path, k: int) -> None:
        """Open the draft of a task, or begin one.

        Raises:
            DepthkitError: The task is there already, or the draft is of another seed, of a seed
                that has changed, or of another number of segments.
        """
        self.out = out.resolve()
        self.seed = load_seed(seed_dir)
        self.k = k
        if self.out.exists():
            raise DepthkitError(f"{out}: is there already; give another directory with -o.")
        self._folder = self.out.with_name(f"{self.out.name}.draft")
        self.task = self._folder / "task"
        self._state = self._folder / "state.json"
        now = {"seed": self.seed.name, "seed_digest": seed_digest(seed_dir), "k": k}
        self.resumed = self._state.is_file() and self.task.is_dir()
        if self.resumed:
            self._kept = {**_new(), **json.loads(self._state.read_text())}
            for key, value in now.items():
                if self._kept[key] != value:
                    told = "the seed as it is now" if key == "seed_digest" else f"{key} {value}"
                    raise DepthkitError(
                        f"{self._folder}: is the draft of another task, not of {told}; go on with "
                        "the same arguments, remove it, or give another directory with -o."
                    )
            # What a process that was killed had half written.
            shutil.rmtree(self._folder / self.seed.name, ignore_errors=True)
            for half in self.task.rglob(".*.new"):
                half.unlink()
        else:
            self._kept = {**_new(), **now}
            self._begin(seed_dir)

    def _begin(self, seed_dir: Path) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        (self.task / "tests").mkdir(parents=True)
        copy_environment(seed_dir, self.task / "environment")
        (self.task / "tests" / "test.sh").write_text(TEST_SH)
        shutil.copy(LIBRARY, self.task / "tests" / "checks.sh")
        self._keep()

    def _keep(self) -> None:
        _write(self._state, json.dumps(self._kept, indent=2) + "\n")

    # --- how far it is ---

    @property
    def finished(self) -> int:
        """Segments that are finished; one whose files changed since is not."""
        for number, known in enumerate(self._kept["finished"], 1):
            if self.digest(number) != known:
                return number - 1
        return len(self._kept["finished"])

    def digest(self, number: int) -> str:
        """SHA-256 of a segment's files, by its number from 1."""
        made = hashlib.sha256()
        for name in FILES:
            path = self.path(number, name)
            data = path.read_bytes() if path.is_file() else b""
            if name == INSTRUCTION:
                data = without_formats(data.decode(errors="replace")).encode()
            made.update(f"{name} {path.is_file()} {len(data)}\n".encode() + data)
        return made.hexdigest()

    def finish(self, number: int, key_step: str) -> None:
        """Keep that a segment is finished; those before it are."""
        digests = [self.digest(each) for each in range(1, number + 1)]
        plan = self.plan
        if plan is not None:
            plan.key_steps = [*plan.key_steps[: number - 1], key_step]
            self.write_plan(plan)
        for name in FILES:
            path = self.path(number, name)
            if path.is_file():
                _sync(path)
        self._kept["finished"] = digests
        self._keep()

    def refuse(self, number: int, faults: list[str] | None = None) -> int:
        """Keep that a segment, or with ``faults`` the whole task, was refused once more.

        Returns:
            How often the segment was refused so far.
        """
        counts = self._kept["refused"]
        counts[str(number)] = counts.get(str(number), 0) + 1
        if faults is not None:
            self._kept["faults"] = faults
        self._keep()
        return int(counts[str(number)])

    @property
    def faults(self) -> list[str]:
        """Why the task was last not accepted; empty where it was not tried."""
        return list(self._kept["faults"])

    def go_back(self, number: int) -> None:
        """Take a segment and those after it for unfinished."""
        self._kept["finished"] = self._kept["finished"][: number - 1]
        self._keep()

    @property
    def plan(self) -> Plan | None:
        """The plan, once there is one."""
        path = self.task / PLAN_FILE
        return Plan(**json.loads(path.read_text())) if path.is_file() else None

    def write_plan(self, plan: Plan) -> None:
        """Keep the plan."""
        _write(self.task / PLAN_FILE, json.dumps(plan.row(), indent=2, ensure_ascii=False) + "\n")

    # --- files ---

    def path(self, number: int, name: str) -> Path:
        """A file of a segment."""
        return self.task / "steps" / f"s{number}" / name

    def file_name(self, name: object) -> str:
        """The full name of a file that an author names.

        Raises:
            DepthkitError: There is no such file in a segment.
        """
        full = SHORT.get(str(name), str(name))
        if full not in FILES:
            raise DepthkitError(
                f"there is no file {printable(str(name))}; write one of {', '.join(FILES)}."
            )
        return full

    def write(self, number: int, name: str, text: str) -> None:
        """Write a file of a segment.

        Raises:
            DepthkitError: It is no text or too large.
        """
        if "\0" in text or len(text.encode()) > MAX_TEXT_BYTES:
            raise DepthkitError(f"{name}: must be text of at most {MAX_TEXT_BYTES:,} bytes.")
        _write(self.path(number, name), text.rstrip("\n") + "\n")
        if name == SOLUTION:
            self.path(number, name).chmod(0o755)

    def read(self, number: int, name: str) -> str:
        """A file of a segment, without what the pipeline wrote into it.

        Raises:
            DepthkitError: It has not been written.
        """
        path = self.path(number, name)
        if not path.is_file():
            raise DepthkitError(f"{name} of segment {number} has not been written.")
        text = read_text(path, name)
        return without_formats(text) if name == INSTRUCTION else text

    def written(self, number: int) -> dict[str, int]:
        """The files of a segment that there are, with their sizes in bytes."""
        paths = {name: self.path(number, name) for name in FILES}
        return {name: path.stat().st_size for name, path in paths.items() if path.is_file()}

    # --- as a task ---

    def format_faults(self, number: int) -> list[str]:
        """What is wrong with the form of a segment; report formats are written where nothing is.

        Everything that can be told without running anything: a file that is missing or cannot be
        read, what the static review finds, reports that are not declared, leaks.
        """
        faults = [
            f"steps/s{number}/{name}: is missing"
            for name in _NEEDED
            if not self.path(number, name).is_file()
        ]
        if faults:
            return faults
        for name in (SOLUTION, CHECKS):
            self.path(number, name).chmod(0o755)
        try:
            self._render(number)
            faults = task_faults(self.load(number))
            found = review(self.task)
        except DepthkitError as error:
            return [str(error).replace(f"{self.task}/", "")]
        faults += [found.error] if found.error else []
        return [*map(str, found.findings), *faults]

    def _render(self, number: int) -> None:
        reports = read_reports(self.path(number, REPORTS), f"steps/s{number}/{REPORTS}")
        path = self.path(number, INSTRUCTION)
        text = read_text(path, f"steps/s{number}/{INSTRUCTION}")
        rendered = with_formats(text, reports)
        if rendered != text:
            _write(path, rendered)

    def load(self, segments: int) -> LoadedTask:
        """The task of its first segments, as it is on disk."""
        self._write_toml(segments)
        return load_task(self.task)

    def _write_toml(self, segments: int) -> None:
        steps = "".join(f'\n[[steps]]\nname = "s{each}"\n' for each in range(1, segments + 1))
        _write(self.task / "task.toml", self._toml() + steps)

    def _toml(self) -> str:
        category = self.seed.category
        return _TOML.format(
            category=f"category = {json.dumps(category)}\n" if category else "",
            seed=json.dumps(self.seed.name),
            cpus=self.seed.cpus,
            memory=self.seed.memory_mb,
        )

    def bare(self) -> LoadedTask:
        """The environment as a task of nothing, for the time before there is a segment."""
        folder = self._folder / self.seed.name
        if not folder.exists():
            (folder / "tests").mkdir(parents=True)
            shutil.copytree(self.task / "environment", folder / "environment", symlinks=True)
            (folder / "tests" / "test.sh").write_text(TEST_SH)
            (folder / "instruction.md").write_text("-\n")
            (folder / "task.toml").write_text(self._toml())
        return load_task(folder)

    def publish(self) -> Path:
        """Move the accepted task to where it belongs, and remove the draft."""
        self.out.parent.mkdir(parents=True, exist_ok=True)
        self.task.rename(self.out)
        sync_directory(self.out.parent)
        shutil.rmtree(self._folder, ignore_errors=True)
        return self.out

    def set_aside(self) -> None:
        """Make room for another try: the rejected draft stays as ``DIR.rejected-N``."""
        number = 1
        while (aside := self.out.with_name(f"{self.out.name}.rejected-{number}")).exists():
            number += 1
        self._folder.rename(aside)


def _new() -> dict[str, Any]:
    return {"finished": [], "refused": {}, "faults": []}


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    other = path.with_name(f".{path.name}.new")
    other.write_text(text, encoding="utf-8")
    mode = path.stat().st_mode if path.exists() else None
    _sync(other)
    if mode is not None:
        other.chmod(mode)
    other.replace(path)
    sync_directory(path.parent)


def _sync(path: Path) -> None:
    with path.open("rb") as handle:
        os.fsync(handle.fileno())
