"""What the fault tests share: a toy measured by a model whose server belongs to the test."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from toys import reply

from depthkit.corpus import Corpus
from depthkit.tasks import load_task
from depthkit.trials import engine
from depthkit.trials.budget import Price
from depthkit.trials.models import select_models
from depthkit.trials.patience import Patience
from depthkit.trials.schedule import Outcome, Schedule
from depthkit.trials.scripted.policies import Policy, fixed_replies
from depthkit.trials.scripted.server import ScriptedServer

ROOT = Path(__file__).parents[2]
PRICE = Price(1e-6, 1e-6, 2e-6)
KEY = "sk-a-key-that-must-not-be-written"
KEY_ENV = "FAULTY_MODEL_KEY"

WRITE = reply("echo done > /app/out", complete=True)
PASSES = fixed_replies([WRITE, WRITE])
QUICK = Patience(tries=2, first_pause=0.01, longest_pause=0.1)


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


def wait_until(condition: Callable[[], Any], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def containers_of(task: Path) -> list[Any]:
    """Containers of a task's trials, whoever made them; its folder's name is in theirs."""
    found = engine.client().containers.list(all=True, ignore_removed=True)
    return [each for each in found if (each.name or "").startswith(f"{task.name}__")]


def processes_of_the_host() -> str:
    """What runs where the engine runs, as the engine sees it."""
    seen = engine.client().containers.run(
        "depthkit/base:1", ["ps", "-eo", "args"], pid_mode="host", network_mode="none", remove=True
    )
    return bytes(seen).decode()


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


def cost_of(corpus: Corpus) -> float:
    """What the runs of a corpus say they cost; each that got a reply must say it."""
    runs = corpus.run_records()
    assert all(run.cost_usd is not None for run in runs if run.turns)
    return sum(run.cost_usd or 0 for run in runs)


class Measured:
    def __init__(self, outcome: Outcome, corpus: Corpus, notices: list[str]) -> None:
        self.outcome, self.corpus, self.notices = outcome, corpus, notices

    @property
    def ends(self) -> list[tuple[str, str]]:
        return [(run.verdict, run.stop) for run in self.outcome.runs]


def measure(
    tmp_path: Path,
    server: BilledServer,
    *tasks: Path,
    models: str = "m",
    exact: bool = True,
    **schedule: Any,
) -> Measured:
    """Measure; what was spent is what was billed, at least if not ``exact``."""
    names = models.split(",")
    notices: list[str] = []
    corpus = Corpus.open_or_create(tmp_path / "corpus", models=names)
    made = Schedule(
        corpus,
        [load_task(task) for task in tasks],
        select_models(names, write_models(tmp_path, server.base_url, *names)),
        **{
            "scope": "free",
            "workers": 2,
            "record": False,
            "patience": QUICK,
            "on_notice": notices.append,
            **schedule,
        },
    )
    billed, cost = server.billed, cost_of(corpus)
    outcome = made.run()
    if not exact:
        assert server.billed - billed <= outcome.spent
        return Measured(outcome, corpus, notices)
    # Whatever went wrong, what was spent is what the endpoint billed, and each cent has its run.
    assert outcome.spent == pytest.approx(server.billed - billed)
    assert cost_of(corpus) - cost == pytest.approx(server.billed - billed)
    return Measured(outcome, corpus, notices)
