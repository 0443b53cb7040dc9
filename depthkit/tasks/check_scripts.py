"""Where a task keeps what the check library works on, and what it says about its names.

tests/test.sh              runs the segment's check script (:data:`TEST_SH`)
tests/checks.sh            the library, as this package ships it
steps/NAME/tests/check.sh  the check script of a segment; tests/check.sh without segments
steps/NAME/names.toml      names stated in its instruction; names.toml without segments
"""

from __future__ import annotations

from pathlib import Path

from depthkit.tasks.load import LoadedTask
from depthkit.tasks.text import read_text

LIBRARY = Path(__file__).with_name("checks.sh")
"""The check library (Table 7)."""

TEST_SH = """\
#!/bin/bash
cd "$(dirname "$0")" && exec bash checks.sh check.sh
"""
"""A task's ``tests/test.sh``: Harbor copies it, the library and the segment's script together."""


def _in_segment(task: LoadedTask, index: int, name: str, single: str) -> Path:
    if task.config.steps:
        return task.path / "steps" / task.config.steps[index].name / name
    return task.path / single


def check_script(task: LoadedTask, index: int) -> Path | None:
    """The check script of a segment, by its place from 0; ``None`` where it has none."""
    path = _in_segment(task, index, "tests/check.sh", "tests/check.sh")
    return path if path.is_file() else None


def names_file(task: LoadedTask, index: int) -> Path:
    """Where the names of a segment are, whether or not there is such a file."""
    return _in_segment(task, index, "names.toml", "names.toml")


def instruction_file(task: LoadedTask, index: int) -> Path:
    """The instruction of a segment."""
    return _in_segment(task, index, "instruction.md", "instruction.md")


def full_script(task: LoadedTask, index: int) -> str | None:
    """What runs the checks of a segment: the library and its script, or ``None`` without one.

    For :func:`depthkit.trials.checks.run_checks`, which says where results go.
    """
    path = check_script(task, index)
    if path is None:
        return None
    return f"{LIBRARY.read_text()}\n{read_text(path, str(path))}"
