"""What the README shows to a newcomer works as it is printed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def commands_shown() -> list[str]:
    blocks = re.findall(r"<!-- tested -->\n```console\n(.*?)```", README, re.DOTALL)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]


def printed_depths() -> dict[str, int]:
    rows = re.findall(r"^ *\| `([\w-]+-s\d+)` \|.*\| (\d+) \|$", README, re.MULTILINE)
    return {task: int(depth) for task, depth in rows}


@pytest.mark.docker
@pytest.mark.slow
def test_the_first_measurement_of_the_readme_gives_what_it_says(tmp_path: Path):
    for part in ("notebooks", "reports"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("build"))
    environ = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    commands = commands_shown()
    assert len(commands) > 3
    for command in commands:
        run = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        assert run.returncode == 0, f"{command}\n{run.stdout}\n{run.stderr}"
    estimates = subprocess.run(
        ["depthkit", "estimates", "my-corpus", "--json"],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    depths = {each["task_id"]: each["D"] for each in json.loads(estimates)}
    assert depths == printed_depths()
    # What can be merged is shallow, and what cannot is deep.
    assert depths["parallel-10-s1"] in (2, 3)
    assert depths["static-chain-10-s1"] in (2, 3)
    assert depths["control-6-s1"] == 10
    assert (tmp_path / "reports/build/index.html").exists()


def test_the_readme_names_every_command_and_no_other():
    listing = subprocess.run(
        [Path(sys.executable).parent / "depthkit", "--help"],
        env=os.environ | {"COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    commands = set(re.findall(r"^│ ([a-z][a-z-]*) {2,}", listing, re.MULTILINE))
    in_table = set(re.findall(r"^\| `depthkit ([a-z-]+)", README, re.MULTILINE))
    assert in_table == commands
