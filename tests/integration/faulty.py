"""What the fault tests share: a toy measured by a model whose server belongs to the test."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from depthkit.trials import engine
from depthkit.trials.budget import Price
from depthkit.trials.scripted.policies import Policy
from depthkit.trials.scripted.server import ScriptedServer

ROOT = Path(__file__).parents[2]
PRICE = Price(1e-6, 1e-6, 2e-6)
KEY = "sk-a-key-that-must-not-be-written"
KEY_ENV = "FAULTY_MODEL_KEY"


def write_models(folder: Path, base_url: str, *names: str) -> Path:
    """A registry of models served at an address, called with a key."""
    path = folder / "models.toml"
    path.write_text(
        "".join(
            f'["{name}"]\nlitellm = "openai/{name}"\nbase_url = "{base_url}"\n'
            f'api_key_env = "{KEY_ENV}"\ncontext_tokens = 100000\nmax_output_tokens = 1000\n'
            f"input_usd_per_mtok = {PRICE.input * 1e6}\n"
            f"output_usd_per_mtok = {PRICE.output * 1e6}\n"
            for name in names or ("m",)
        )
    )
    return path


class BilledServer(ScriptedServer):
    """A server that bills its answers at the prices of :func:`write_models`."""

    def __init__(self, policies: Mapping[str, Policy]) -> None:
        super().__init__(policies, prices=PRICE)


def start(
    command: str, tasks: list[Path], corpus: Path, *more: str, cwd: Path | None = None, **env: str
) -> subprocess.Popen[str]:
    """`depthkit free` or `ladder` in a process of its own."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "depthkit", command, *map(str, tasks)),
            *("--corpus", str(corpus), *more),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), KEY_ENV: KEY, **env},
    )


def wait_until(condition: Callable[[], Any], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def containers_of(task: Path) -> list[Any]:
    """Containers of a task's trials, whoever made them; its folder's name is in theirs."""
    found = engine.client().containers.list(all=True, ignore_removed=True)
    return [each for each in found if (each.name or "").startswith(f"{task.name}__")]


def made_here(*, others: bool = False) -> dict[str, set[str]]:
    """Names of what is in the engine, by kind.

    Networks and volumes carry no owner: they are another's while one of its containers uses them.

    Args:
        others: Also what processes made that keep their locks elsewhere, or that are none of ours.
    """
    api, here = engine.client(), engine.owner().lock.parent

    def ours(labels: Mapping[str, str] | None) -> bool:
        lock = (labels or {}).get(engine.LOCK_LABEL)
        return others or (lock is not None and Path(lock).parent == here)

    containers = api.containers.list(all=True, ignore_removed=True)
    elsewhere = [each.attrs for each in containers if not ours(each.labels)]
    used = {
        *(mount.get("Name") for each in elsewhere for mount in each["Mounts"]),
        *(name for each in elsewhere for name in each["NetworkSettings"]["Networks"]),
    }
    images = [each for each in api.api.images(all=True) if ours(each.get("Labels"))]
    return {
        "containers": {str(each.name) for each in containers if ours(each.labels)},
        "images": {str(each["Id"]) for each in images},
        "networks": {str(each.name) for each in api.networks.list()} - used,
        "volumes": {str(each.name) for each in api.volumes.list()} - used,
    }
