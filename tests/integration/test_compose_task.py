"""Tasks with a compose file run in Harbor's own environment, and what it leaves is found too."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from toys import reply, write_toy

from depthkit.protocol import Planned
from depthkit.tasks import LoadedTask, load_task
from depthkit.trials import engine
from depthkit.trials.models import ModelSpec
from depthkit.trials.run import run_trial
from depthkit.trials.scripted.policies import fixed_replies
from depthkit.trials.scripted.server import ScriptedServer

pytestmark = pytest.mark.docker

COMPOSE = """\
services:
  main:
    init: true
    network_mode: none
  side:
    image: depthkit/base:1
    init: true
    command: sleep infinity
"""


@pytest.fixture
def task(tmp_path: Path) -> LoadedTask:
    folder = write_toy(tmp_path / "set" / "composed")
    settings = folder / "task.toml"
    settings.write_text(settings.read_text().replace('network_mode = "no-network"\n', ""))
    (folder / "environment" / "docker-compose.yaml").write_text(COMPOSE)
    return load_task(folder)


def play(task: LoadedTask, trials: Path, replies: list[str]) -> tuple[str, str]:
    spec = ModelSpec(name="m", litellm="openai/m", context_tokens=100_000, max_output_tokens=1_000)
    with ScriptedServer({"m": fixed_replies(replies)}) as server:
        run = asyncio.run(
            run_trial(
                task,
                Planned("m", 1, 1, "ladder"),
                spec,
                trials_dir=trials,
                base_url=server.base_url,
                record=False,
            )
        )
    return run.verdict, run.stop


def running_containers(names: set[str]) -> list[str]:
    """Containers of these compose projects that run."""
    found = engine.client().containers.list(filters={"label": engine.COMPOSE_PROJECT_LABEL})
    return [each.id for each in found if each.labels[engine.COMPOSE_PROJECT_LABEL] in names]


def projects() -> set[str]:
    """Compose projects of which something is left in the engine."""
    query: engine.Filters = {"label": engine.COMPOSE_PROJECT_LABEL}
    containers = engine.client().containers.list(all=True, filters=query, ignore_removed=True)
    networks = engine.client().networks.list(filters=query)
    labels = [c.labels for c in containers] + [n.attrs["Labels"] for n in networks]
    return {found[engine.COMPOSE_PROJECT_LABEL] for found in labels}


def test_a_compose_task_is_measured_like_any_other(
    task: LoadedTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    before = projects()
    assert play(task, tmp_path / "trials", [reply("echo done > /app/out")]) == (
        "passed",
        "turn_cap",
    )
    assert projects() == before


def test_what_a_killed_owner_of_a_compose_task_left_is_removed(
    task: LoadedTask, tmp_path: Path
) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\n"
        "from test_compose_task import load_task, play, reply\n"
        "play(load_task(sys.argv[1]), Path(sys.argv[1]) / 'out', [reply('sleep 60', wait=60)])\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", script, str(task.path), str(Path(__file__).parent)],
        # Where the engine is, and where processes note what they have in it.
        env={"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "OPENAI_API_KEY": "unused"}
        | {name: os.environ[name] for name in ("DOCKER_HOST", "TMPDIR") if name in os.environ},
    )
    before = projects()
    deadline = time.monotonic() + 300
    while len(running_containers(projects() - before)) < 2 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not engine.clean(dry_run=True).containers
    running.send_signal(signal.SIGKILL)
    running.wait()
    found = engine.clean()
    assert len(found.containers) == 2
    assert len(found.networks) == 1
    assert projects() == before
