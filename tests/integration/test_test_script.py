"""What `make test` says is so: no failure is hidden by another try, and one part runs under load.

The script itself runs, in a checkout of its own with a Python that only notes what it is asked for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = """#!/usr/bin/env bash
cd "$(dirname "$0")"
echo "$*" >>calls
case "$*" in
*" tests/browser") # passes when tried again
    echo x >>tries
    [ "$(wc -l <tries)" -gt 1 ] && exit
    $FAILS || exit 0
    echo "FAILED tests/browser/test_page.py::test_it - late"
    exit 1
    ;;
*" tests/integration/test_environment.py"*)
    sleep 0.5
    own=$(ps -o sid= $$)
    ps -eo sid=,stat=,args= | awk -v own="$own" '$1 == own && $2 ~ /^R/ && /test.sh/' >busy
    ;;
esac
"""


@dataclass
class Outcome:
    status: int
    said: str
    calls: list[str]
    """Arguments of each call of Python."""
    busy: list[str]
    """Processes that kept a processor busy during the loaded part."""
    left: list[str]
    """Processes that are there after the end."""


def run_script(folder: Path, fails: bool) -> Outcome:
    for script in ("env/base/build.sh", "env/tools/build.sh", "bin/id", "python"):
        path = folder / script
        path.parent.mkdir(parents=True, exist_ok=True)
        # Only root starts engines.
        path.write_text(PYTHON if script == "python" else "#!/bin/sh\necho 1000\n")
        path.chmod(0o755)
    shutil.copy(ROOT / "env/test.sh", folder / "env/test.sh")
    env = os.environ | {
        "PATH": f"{folder}/bin:{os.environ['PATH']}",
        "FAILS": str(fails).lower(),
        "TMPDIR": str(folder),
    }
    with subprocess.Popen(
        [folder / "env/test.sh", folder / "python"],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as running:
        said, _ = running.communicate(timeout=300)
    processes = subprocess.run(["ps", "-eo", "sid=,args="], capture_output=True, text=True)
    left = [line for line in processes.stdout.splitlines() if line.split()[0] == str(running.pid)]
    calls, busy = ((folder / name).read_text().splitlines() for name in ("calls", "busy"))
    return Outcome(running.returncode, said, calls, busy, left)


@pytest.mark.parametrize("fails", [True, False])
def test_a_failed_test_is_a_failure_and_is_not_tried_again(tmp_path: Path, fails: bool) -> None:
    found = run_script(tmp_path, fails)
    assert found.status == int(fails), found.said
    last = found.said.splitlines()[-1]
    assert last.startswith("test: failed: tests/browser/test_page.py::test_it") == fails
    assert sum(call.endswith(" tests/browser") for call in found.calls) == 1


def test_trials_and_execs_run_beside_busy_processes_that_end_with_them(tmp_path: Path) -> None:
    found = run_script(tmp_path, fails=False)
    assert len(found.busy) >= 2, found.busy  # of three; one may just have waited for its turn
    assert found.left == []
    pytests = [call for call in found.calls if call.startswith("-m pytest")]
    assert "tests/integration/test_environment.py" in pytests[-1]  # it makes no other part late
