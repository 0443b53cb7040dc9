"""Harbor task directories, written as a test asks for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

TOML = """\
schema_version = "1.4"

[metadata]
difficulty = "hard"
category = "tools"

[agent]
timeout_sec = 900.0

[verifier]
timeout_sec = 120.0

[environment]
network_mode = "no-network"
cpus = 1
memory_mb = 512
"""


type MakeTask = Callable[..., Path]


def _write(root: Path, files: dict[str, str | bytes | None]) -> None:
    for name, content in files.items():
        path = root / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.fixture
def single(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeTask:
    """A task of one instruction at tasks/foo, changed as asked for (None removes a file)."""
    monkeypatch.chdir(tmp_path)

    def make(changes: dict[str, str | bytes | None] | None = None, name: str = "foo") -> Path:
        task = Path("tasks") / name
        _write(
            task,
            {
                "task.toml": TOML,
                "instruction.md": "Make the file /app/done.\n",
                "environment/Dockerfile": "FROM depthkit/base:1\n",
                "solution/solve.sh": "#!/bin/bash\n# make it\ntouch /app/done\n",
                "tests/test.sh": "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n",
            },
        )
        _write(task, changes or {})
        return task

    return make


@pytest.fixture
def stepped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeTask:
    """A task of two steps at tasks/bar."""
    monkeypatch.chdir(tmp_path)

    def make(changes: dict[str, str | bytes | None] | None = None) -> Path:
        task = Path("tasks/bar")
        files: dict[str, str | bytes | None] = {
            "task.toml": f'{TOML}\n[[steps]]\nname = "one"\n\n[[steps]]\nname = "two"\n',
            "environment/Dockerfile": "FROM depthkit/base:1\n",
        }
        for step, script in (("one", "echo 1\n"), ("two", "echo 2\necho 3\n")):
            files[f"steps/{step}/instruction.md"] = f"Do {step}.\n"
            files[f"steps/{step}/solution/solve.sh"] = script
            files[f"steps/{step}/tests/test.sh"] = "echo 1 > /logs/verifier/reward.txt\n"
        _write(task, files)
        _write(task, changes or {})
        return task

    return make
