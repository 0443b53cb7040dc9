"""What the fault tests share: a toy measured by a model whose server belongs to the test."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from depthkit.trials import engine

KEY = "sk-a-key-that-must-not-be-written"
KEY_ENV = "FAULTY_MODEL_KEY"


def write_models(folder: Path, base_url: str, *names: str) -> Path:
    """A registry of models served at an address, called with a key."""
    path = folder / "models.toml"
    path.write_text(
        "".join(
            f'["{name}"]\nlitellm = "openai/{name}"\nbase_url = "{base_url}"\n'
            f'api_key_env = "{KEY_ENV}"\ncontext_tokens = 100000\nmax_output_tokens = 1000\n'
            "input_usd_per_mtok = 1.0\noutput_usd_per_mtok = 2.0\n"
            for name in names or ("m",)
        )
    )
    return path


def start(
    command: str, tasks: list[Path], corpus: Path, *more: str, **env: str
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
        env={**os.environ, KEY_ENV: KEY, **env},
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
