"""`make mutations`: do the tests notice small changes of what the code means?

Each mutation of ``mutations.yaml`` is applied by itself to a copy of the package, never to the
tree, and the tests named beside it run there. Ends with 1 if one survives, 2 if one cannot be
tried.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests/mutations.yaml"
COPIED = ("depthkit", "tests", "env", "docs", "README.md", "pyproject.toml")
SECONDS = 300
"""For the tests of one mutation; tests that do not end have noticed it."""


@dataclass(frozen=True)
class Mutation:
    """A text of a file, what takes its place, and the tests that must fail then."""

    file: str
    text: str
    becomes: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file}: {' '.join(self.text.split())!r} -> {' '.join(self.becomes.split())!r}"

    def fault(self) -> str | None:
        """Why it cannot be tried, or None."""
        count = (ROOT / self.file).read_text("utf-8").count(self.text)
        if count != 1:
            return f"its text stands there {count} times; it must stand there once"
        return None


def mutations() -> list[Mutation]:
    """All of the list, in order."""
    listed = yaml.safe_load(LIST.read_text("utf-8"))
    return [
        Mutation(file, each["text"], each["becomes"], tuple(each["tests"]))
        for file, entries in listed.items()
        for each in entries
    ]


class Copies:
    """Copies of the project, one for each that works at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = threading.local()

    def get(self) -> Path:
        """That of this thread."""
        if not hasattr(self._own, "path"):
            path = Path(tempfile.mkdtemp(dir=self._folder))
            ignored = shutil.ignore_patterns("__pycache__", "cache")
            for name in COPIED:
                source = ROOT / name
                if source.is_dir():
                    shutil.copytree(source, path / name, ignore=ignored)
                else:
                    shutil.copy(source, path)
            self._own.path = path
        found: Path = self._own.path
        return found


def run(copy: Path, tests: tuple[str, ...]) -> tuple[int, str]:
    """pytest's status (-1: it did not end) and what it said."""
    paths = [f"tests/unit/{test}" for test in tests]
    quick = [
        "-q",
        "-x",
        "--no-header",
        "-p",
        "no:cacheprovider",
    ]
    # A file of the same size changed twice a second would otherwise keep its old bytecode.
    env = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *quick, *paths],
            cwd=copy,
            env=env,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return -1, ""
    return done.returncode, done.stdout + done.stderr


def tried(mutation: Mutation, copies: Copies) -> tuple[str, str]:
    """``caught``, ``survived`` or ``error``, and what there is to say of it."""
    if fault := mutation.fault():
        return "error", fault
    copy = copies.get()
    file = copy / mutation.file
    text = file.read_text("utf-8")
    file.write_text(text.replace(mutation.text, mutation.becomes), "utf-8")
    try:
        status, said = run(copy, mutation.tests)
    finally:
        file.write_text(text, "utf-8")
    if status in (-1, 1):
        return "caught", ""
    if status == 0:
        return "survived", f"all pass: {', '.join(mutation.tests)}"
    return "error", f"pytest ended with {status}:\n{said[-2000:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="make mutations")
    parser.add_argument("-k", default="", metavar="PATTERN", help="only lines that have this")
    parser.add_argument("-j", type=int, default=2, metavar="N", help="at a time (2)")
    options = parser.parse_args()
    chosen = [each for each in mutations() if re.search(options.k, str(each))]
    outcomes: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        copies = Copies(Path(folder))
        every = tuple(dict.fromkeys(test for each in chosen for test in each.tests))
        status, said = run(copies.get(), every)
        if status:
            print(f"the tests do not pass as the code is (pytest ended with {status}):\n{said}")
            return 2
        with ThreadPoolExecutor(options.j) as pool:
            found = pool.map(lambda each: tried(each, copies), chosen)
            for number, (mutation, (outcome, why)) in enumerate(
                zip(chosen, found, strict=True), start=1
            ):
                outcomes.append(outcome)
                print(f"{number}/{len(chosen)} {outcome}: {mutation}", flush=True)
                if why:
                    print(f"    {why}", flush=True)
    counts = {each: outcomes.count(each) for each in ("caught", "survived", "error")}
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 2 if counts["error"] else 1 if counts["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())
