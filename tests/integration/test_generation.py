"""Tasks written by a scripted author behind the model server, in real containers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis_task import BY_HAND_ALONE, MENDS, SEED
from redis_task import TASK as REDIS_TASK
from scripted_author import MODELS, ScriptedAuthor
from typer.testing import CliRunner, Result
from written_task import ASKS, SEGMENTS, TASK, write_draft, write_seed

from depthkit.cli import app
from depthkit.errors import DepthkitError
from depthkit.generation.acceptance import accept
from depthkit.generation.log import read_log
from depthkit.generation.log_summary import LogSummary, summary
from depthkit.generation.run import Generated, generate_task
from depthkit.tasks import load_task
from depthkit.trials.limits import Limits
from depthkit.trials.scripted.server import ScriptedServer

pytestmark = [pytest.mark.docker, pytest.mark.slow]

LOADING = SEGMENTS[0]["solve.sh"].partition("set -eu\n")[2].replace("# key-step", "# the step")
"""A second segment that begins with it needs nothing of the first."""

KEY = "sk-of-the-author-8f2b61"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("generation")
    write_seed(folder / "seeds" / "readings")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTHOR_KEY", KEY)
        yield folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ScriptedServer]:
    policies = {"mends": ScriptedAuthor(MENDS), "by-hand": ScriptedAuthor(BY_HAND_ALONE)}
    with ScriptedServer(policies) as server:
        registry = "".join(MODELS.format(name=name, url=server.base_url) for name in policies)
        (folder / "models.toml").write_text(registry)
        yield server


def written(folder: Path, name: str, model: str, **more: Any) -> Generated:
    return generate_task(
        SEED,
        folder / "tasks" / name,
        model=model,
        models_file=folder / "models.toml",
        **more,
    )


@pytest.fixture(scope="module")
def accepted(folder: Path, server: ScriptedServer) -> Generated:
    return written(folder, "carts", "mends", k=2, strict=True, limits=Limits(max_cost=1.0))


@pytest.fixture(scope="module")
def rejected(folder: Path, server: ScriptedServer, accepted: Generated) -> Result:
    arguments = ["generate", "task", str(SEED), "-k", "2", "--json"]
    arguments += ["--model", "by-hand", "--models-file", str(folder / "models.toml")]
    arguments += ["--mends", "1", "-o", str(folder / "tasks" / "by-hand")]
    return CliRunner().invoke(app, arguments)


@pytest.fixture(scope="module")
def log(folder: Path, accepted: Generated, rejected: Result) -> LogSummary:
    return summary(folder / "tasks" / "generation.jsonl")


def test_a_model_writes_a_task_that_passes_every_replay(accepted: Generated, folder: Path) -> None:
    assert (accepted.outcome, accepted.reason, accepted.finished) == ("accepted", None, 2)
    task = load_task(folder / "tasks" / "carts")
    assert task.record.group == "ours"
    assert task.record.seed_env == "redis-sentinel"
    assert [segment.key_steps for segment in task.record.segments] == [1, 1]
    assert "- `carts`: number of carts in the store" in task.instructions[0]
    assert not (folder / "tasks" / "carts.draft").exists()


def test_the_log_shows_what_was_mended_and_why_one_was_rejected(log: LogSummary) -> None:
    good, bad = log.tasks
    assert (good.whole.format_errors, good.whole.replays_failed, good.outcome) == (1, 1, "accepted")
    assert [good.segments[n].turns for n in (1, 2)] == [5, 2]
    assert good.whole.cost_usd
    assert [row["key_step"] for row in good.statistics] == list(REDIS_TASK.key_steps)
    assert all(row["holds"] == row["results"] > 0 for row in good.table8)
    assert len(good.table8) == 4  # No event is marked.
    assert bad.outcome == "rejected"
    assert bad.reason is not None
    assert "segment 1 was still refused after 1 mends: segment 1, answers" in bad.reason
    assert log.accepted_share == 0.5
    assert log.tasks_per_usd == pytest.approx(1 / log.cost_usd) if log.cost_usd else False


def test_a_solution_that_relies_on_a_change_by_hand_is_rejected(
    rejected: Result, folder: Path
) -> None:
    assert rejected.exit_code == 1
    assert json.loads(rejected.stdout)["outcome"] == "rejected"
    assert "segment 1: replay fails: segment 1, answers: " in rejected.stderr
    assert KEY not in rejected.output
    assert not (folder / "tasks" / "by-hand").exists()
    assert (folder / "tasks" / "by-hand.rejected-1").is_dir()


def test_a_limit_stops_it_and_the_same_command_goes_on(
    folder: Path, server: ScriptedServer
) -> None:
    sent = len(server.requests)
    for limits in (Limits(max_cost=0.0), Limits(max_hours=0.0)):
        log = folder / "limited.jsonl"
        done = written(folder, "limited", "mends", k=2, limits=limits, log_file=log)
        assert (done.outcome, done.limit, done.finished) == ("stopped", True, 0)
    assert len(server.requests) == sent
    with pytest.raises(DepthkitError, match="Limits are for models"):
        generate_task(SEED, folder / "x", k=2, limits=Limits(max_hours=1))


def test_the_key_is_in_no_file(folder: Path, log: LogSummary) -> None:
    for path in (folder / "tasks").rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()


def test_the_model_is_told_the_exact_error_and_starts_a_segment_in_a_clean_container(
    server: ScriptedServer, accepted: Generated
) -> None:
    told = [
        str(message["content"])
        for body in server.requests
        if body["model"] == "mends"
        for message in body["messages"]
        if message["role"] == "user"
    ]
    error = "/srv/store/moved.txt is read, but no reports.toml declares it"
    assert any(error in text for text in told)
    # The usual way ended well and gave an empty store; in segment 2 the one of the solution runs.
    assert any('"status": 0, "output": "0\\n"' in text for text in told)
    assert any("SOLDOUT only 0 left" in text for text in told)


def test_strict_a_second_segment_that_needs_no_key_step_is_not_accepted(tmp_path: Path) -> None:
    again = SEGMENTS[1]["solve.sh"].replace("set -eu\n", f"set -eu\nrm -rf /srv/data\n{LOADING}\n")
    draft = write_draft(tmp_path, {}, {"solve.sh": again})
    verdict = accept(draft, strict=True)
    assert verdict.faults == [
        "key step removed next run, segment 1: does not hold",
        "previous segment skipped, segment 2: does not hold",
    ]
    assert not verdict.accepted


# --- stopped by force ---


class Author:
    """A program that speaks the protocol to the command line."""

    def __init__(self, folder: Path, *more: str) -> None:
        command = [sys.executable, "-m", "depthkit", "generate", "task"]
        command += [str(folder / "seeds" / "readings"), "-k", "3", "--driver", "stdio"]
        command += ["-o", str(folder / "tasks" / "killed"), *more]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ
        )
        self.hello = self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message; gives its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def say(self, *messages: dict[str, Any]) -> dict[str, Any]:
        """Send messages that can be carried out; gives the last answer."""
        answer = self.hello
        for message in messages:
            answer = self.ask(message)
            assert answer["ok"], answer
        return answer


def test_killed_in_segment_3_it_goes_on_there_with_what_the_solutions_leave(folder: Path) -> None:
    author = Author(folder)
    author.say(TASK.plan([*ASKS, "Archive the database"]))
    author.say(*TASK.writes(1), *TASK.done(1), *TASK.writes(2), *TASK.done(2))
    author.say(
        {"do": "run", "command": "touch /srv/by-hand"},
        {"do": "write", "file": "instruction.md", "text": "Archive the database."},
    )
    author.process.send_signal(signal.SIGKILL)
    author.process.wait()
    again = Author(folder)
    assert (again.hello["finished"], again.hello["segment"]) == (2, 3)
    assert again.hello["resumed"]
    assert list(again.hello["files"]) == ["instruction.md"]
    look = "ls -A /srv /solution /tests /logs/verifier; tail -n 2 /srv/out/largest.tsv"
    seen = again.say({"do": "run", "command": look})["output"]
    assert "by-hand" not in seen
    # Nor is there a script of the segments before.
    assert ".sh" not in seen
    assert "north   10" in seen
    # The terminal has a screen.
    screen = again.say({"do": "keys", "text": "echo $((6 * 7))\n"})["screen"]
    for _ in range(60):
        screen = again.say({"do": "screen"})["screen"] if "\n42" not in screen else screen
    assert "\n42" in screen
    # A container that died is replaced.
    died = again.ask({"do": "run", "command": "pkill -9 sleep; sleep 60"})
    assert died["error"].startswith("the container died; the next one is as the segments before")
    # Going back, what the segment made is gone.
    assert again.say({"do": "back", "segment": 2}) == {"ok": True, "segment": 2}
    assert again.say({"do": "run", "command": "ls /srv/out"})["output"] == "load.txt\n"
    again.say({"do": "quit"})
    assert again.process.wait() == 3
    events = read_log(folder / "tasks" / "generation.jsonl")
    mine = [event for event in events if event.task == "killed"]
    assert [event.event for event in mine][-2:] == ["started", "stopped"]
    assert sum(event.event == "finished" for event in mine) == 2
