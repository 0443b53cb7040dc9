"""Without an engine, containers are left out with a reason; `make test` leaves nothing out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
A_DOCKER_TEST = "tests/integration/test_base_image.py::test_the_tools_of_a_task_are_there"


@pytest.mark.parametrize(
    ("environ", "outcome"), [({}, "1 skipped"), ({"DEPTHKIT_NO_SKIP": "1"}, "1 error")]
)
def test_without_an_engine(environ: dict[str, str], outcome: str, tmp_path: Path):
    kept = {name: value for name, value in os.environ.items() if name != "DEPTHKIT_NO_SKIP"}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", A_DOCKER_TEST],
        cwd=ROOT,
        env=kept | {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"} | environ,
        capture_output=True,
        text=True,
    )
    assert outcome in run.stdout.splitlines()[-1]
    assert "no Docker engine answers (env/engine.sh up starts one)" in run.stdout
