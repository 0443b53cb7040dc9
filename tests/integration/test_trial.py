"""One capped run of the real terminus-2 in a real container, and what becomes of it."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from harbor.models.trial.result import TrialResult
from harbor.trial.trial import Trial
from toys import TASK_TOML, TEST_SH, reply, write_toy

from depthkit.corpus.replies import REPLIES_FILE, read_replies
from depthkit.model import Run
from depthkit.protocol import Planned, cap_statement
from depthkit.tasks import load_task
from depthkit.trials import copying, engine, recorder
from depthkit.trials.models import ModelSpec
from depthkit.trials.run import run_trial
from depthkit.trials.scripted.policies import Policy, Reply, after_faults, fixed_replies
from depthkit.trials.scripted.server import ScriptedServer

pytestmark = pytest.mark.docker

KEY = 'sk-a-"key"-that-must-not-be-written'

WRITE = reply("echo done > /app/out")
CLAIM = reply(complete=True)
LOOK = reply("ls")


@pytest.fixture(autouse=True, scope="module")
def tidy_engine() -> Any:
    yield
    engine.release()


class Played:
    """A run, its files, and what the model server received."""

    def __init__(self, run: Run, folder: Path, requests: list[dict[str, Any]]) -> None:
        self.run = run
        self.folder = folder
        self.requests = requests

    @property
    def turns(self) -> list[dict[str, Any]]:
        lines = (self.folder / "agent" / "turns.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Played]:
    def play_(
        replies: Sequence[str | Reply] | Policy,
        *,
        cap: int | None = None,
        test: str = TEST_SH,
        toml: str = TASK_TOML,
        during: Callable[[], None] | None = None,
        prices: dict[str, float] | None = None,
        record: bool = False,
        **kwargs: Any,
    ) -> Played:
        monkeypatch.setenv("TEST_MODEL_KEY", KEY)
        task = load_task(write_toy(tmp_path / "set" / "toy", test=test, toml=toml))
        spec = ModelSpec(
            name="m",
            # LiteLLM keeps prices by model for the whole process.
            litellm="openai/m-priced" if prices else "openai/m",
            api_key_env="TEST_MODEL_KEY",
            context_tokens=100_000,
            max_output_tokens=1_000,
            **(prices or {}),
        )
        planned = Planned("m", cap, 1, "ladder" if cap else "free")
        policy = replies if callable(replies) else fixed_replies(replies)
        with ScriptedServer({"m": policy, "m-priced": policy}) as server:
            if during is not None:
                threading.Thread(target=during, daemon=True).start()
            run = asyncio.run(
                run_trial(
                    task,
                    planned,
                    spec,
                    trials_dir=tmp_path / "trials",
                    base_url=server.base_url,
                    record=record,
                    **kwargs,
                )
            )
            return Played(run, tmp_path / "trials" / run.run_id, server.requests)

    return play_


def kill_container(after: float) -> Callable[[], None]:
    def kill() -> None:
        time.sleep(after)
        query: engine.Filters = {"label": f"{engine.OWNER_LABEL}={engine.owner().id}"}
        for container in engine.client().containers.list(filters=query):
            container.kill()

    return kill


def test_a_run_without_a_cap_ends_when_completion_is_confirmed(play: Callable[..., Played]) -> None:
    played = play([WRITE, CLAIM, CLAIM, LOOK])
    run = played.run
    assert (run.verdict, run.stop, run.turns, run.reward) == ("passed", "submitted", 3, 1.0)
    assert run.first_claim_turn == 2
    assert run.segments_passed == 1
    assert len(played.requests) == 3
    assert "turn" not in played.requests[0]["messages"][0]["content"].split("Write done")[1].lower()
    assert [turn["completion_claim"] for turn in played.turns] == [False, True, True]


def test_the_cap_is_stated_and_the_run_stops_after_its_last_turn(
    play: Callable[..., Played],
) -> None:
    played = play([LOOK, WRITE, LOOK, LOOK], cap=2)
    run = played.run
    # The commands of the last turn ran, and the state they left was verified.
    assert (run.verdict, run.stop, run.turns) == ("passed", "turn_cap", 2)
    assert len(played.requests) == 2
    assert cap_statement(2) in played.requests[0]["messages"][0]["content"]


def test_a_cap_that_is_too_small_fails(play: Callable[..., Played]) -> None:
    run = play([LOOK, WRITE], cap=1).run
    assert (run.verdict, run.stop, run.turns, run.reward) == ("failed", "turn_cap", 1, 0.0)


def test_a_wall_clock_that_steps_back_loses_nothing(
    play: Callable[..., Played], monkeypatch: pytest.MonkeyPatch
) -> None:
    began = datetime.now(UTC)
    backwards = (began - timedelta(hours=number) for number in itertools.count())
    monkeypatch.setattr(Trial, "_now", staticmethod(lambda: next(backwards)))
    run = play([reply("sleep 2; echo done > /app/out", wait=3)], cap=1).run
    assert (run.verdict, run.stop, run.detail) == ("passed", "turn_cap", None)
    assert run.agent_minutes == pytest.approx(4 / 60, abs=0.04)


def test_a_run_whose_record_cannot_be_made_keeps_its_files_and_its_cost(
    play: Callable[..., Played], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: TrialResult) -> None:
        raise ArithmeticError(f"no sum, and the key is {KEY}")

    monkeypatch.setattr(TrialResult, "compute_token_cost_totals", fail)
    prices = {"input_usd_per_mtok": 1.0, "output_usd_per_mtok": 2.0}
    played = play([reply(f"echo '{KEY}'"), CLAIM, CLAIM], prices=prices)
    run = played.run
    assert (run.verdict, run.stop, run.turns) == ("none", "infrastructure", 3)
    assert run.agent_minutes is not None
    # It is tidied like any other: no key, no set-up.
    files = [path for path in played.folder.rglob("*") if path.is_file()]
    assert [path for path in files if b"must-not-be-written" in path.read_bytes()] == []
    assert not (played.folder / "config.json").exists()
    assert run.detail == (
        "the record could not be made: ArithmeticError: no sum, and the key is ***"
    )
    assert run.cost_usd is not None and run.cost_usd > 0
    assert len(played.turns) == 3
    assert (
        "ArithmeticError: no sum, and the key is ***"
        in (played.folder / "exception.txt").read_text()
    )
    assert Run.model_validate_json((played.folder / "run.json").read_text()) == run


def test_the_last_commands_get_their_wait(play: Callable[..., Played]) -> None:
    run = play([reply("sleep 2; echo done > /app/out", wait=3)], cap=1).run
    assert run.verdict == "passed"


def test_a_claim_in_the_last_turn_needs_no_confirmation(play: Callable[..., Played]) -> None:
    run = play([reply("echo done > /app/out", complete=True)], cap=1).run
    assert (run.verdict, run.stop, run.first_claim_turn) == ("passed", "turn_cap", 1)


def test_a_reply_that_does_not_parse_is_a_turn(play: Callable[..., Played]) -> None:
    played = play(["I would rather chat.", WRITE], cap=2)
    assert (played.run.verdict, played.run.turns) == ("passed", 2)
    assert [turn["parse_error"] for turn in played.turns] == [True, False]
    assert played.turns[0]["commands"] is None


def test_a_cut_reply_is_one_turn_and_none_of_its_commands_run(
    play: Callable[..., Played],
) -> None:
    played = play([Reply(WRITE, finish_reason="length"), LOOK], cap=2)
    assert (played.run.verdict, played.run.turns) == ("failed", 2)
    assert [turn["cut_reply"] for turn in played.turns] == [True, False]
    assert len(played.requests) == 2
    assert "none of its commands were run" in played.requests[1]["messages"][-1]["content"]
    tokens = [turn["output_tokens"] for turn in played.turns]
    assert all(tokens)
    assert played.run.output_tokens == sum(tokens)


def test_replies_cut_for_ever_use_up_the_cap_and_no_more(play: Callable[..., Played]) -> None:
    played = play([Reply("{", finish_reason="length")] * 9, cap=5)
    assert (played.run.stop, played.run.turns, len(played.requests)) == ("turn_cap", 5, 5)


def test_a_time_limit_is_a_result_and_can_pass(play: Callable[..., Played]) -> None:
    run = play([WRITE, reply("sleep 60", wait=60)], segment_seconds=4).run
    assert (run.verdict, run.stop, run.turns) == ("passed", "time_limit", 2)
    assert run.agent_minutes == pytest.approx(4 / 60, abs=0.03)


def test_an_endpoint_that_fails_gives_no_result(play: Callable[..., Played]) -> None:
    played = play([WRITE, *[Reply(f"no: {KEY}", status=401)] * 9])
    run = played.run
    assert (run.verdict, run.stop, run.reward, run.turns) == ("none", "model_error", None, 1)
    assert run.detail is not None
    assert "AuthenticationError" in run.detail
    assert KEY not in run.model_dump_json()


def test_replies_are_kept_as_they_came(play: Callable[..., Played]) -> None:
    said = ["no JSON, but prose with ${BRACES}\n", f"Sure!\n{WRITE}", "half a \ud83d pair", CLAIM]
    played = play([*said, CLAIM])
    calls = list(read_replies(played.folder))
    assert [call.reply for call in calls] == [*said, CLAIM]
    assert [call.messages for call in calls] == [each["messages"] for each in played.requests]
    assert {(call.kind, call.finish) for call in calls} == {("turn", "stop")}
    assert sum(call.output_tokens or 0 for call in calls) == played.run.output_tokens


@pytest.mark.parametrize("untypable", ["\0", "\ud83d"])
def test_keystrokes_that_cannot_be_typed_cost_a_turn_and_the_model_is_told(
    play: Callable[..., Played], untypable: str
) -> None:
    # As escapes within the reply, as a model writes them.
    played = play([reply("echo done > /app/out", f"echo {untypable}"), LOOK, CLAIM, CLAIM])
    assert (played.run.verdict, played.run.stop, played.run.turns) == ("failed", "submitted", 4)
    assert [turn["parse_error"] for turn in played.turns] == [True, False, False, False]
    assert "cannot be typed" in played.requests[1]["messages"][-1]["content"]


def test_a_semicolon_at_the_end_is_typed(play: Callable[..., Played]) -> None:
    keys = ["printf 'a", ";", "b\\;' > /app/typed;", "cp /app/typed /app/out\n"]
    commands = [{"keystrokes": each, "duration": 0.3} for each in keys]
    typed = json.dumps({"analysis": "", "plan": "", "commands": commands})
    test = """#!/bin/bash
reward=0
if grep -qxF 'a;b\\;' /app/out; then reward=1; fi
echo $reward > /logs/verifier/reward.txt
"""
    assert play([typed, CLAIM, CLAIM], test=test).run.passed


def test_the_key_is_written_nowhere(play: Callable[..., Played]) -> None:
    # The model repeats it, as it is and as JSON, and so does the endpoint's error.
    typed = reply(f"echo '{KEY}'")
    played = play([WRITE, typed, *[Reply(f"no: {KEY}", status=400)] * 9])
    files = {path: path.read_bytes() for path in played.folder.rglob("*") if path.is_file()}
    assert len(files) > 3
    replies = played.folder / "agent" / REPLIES_FILE
    files[replies] = gzip.decompress(files[replies])
    assert b"***" in files[replies]
    assert b"***" in files[played.folder / "agent" / "trajectory.json"]
    for written in (KEY, json.dumps(KEY)[1:-1], "must-not-be-written"):
        assert [path for path, data in files.items() if written.encode() in data] == []


def test_a_passing_fault_of_the_endpoint_costs_no_turn(play: Callable[..., Played]) -> None:
    played = play(after_faults([Reply("busy", status=503)], fixed_replies([WRITE])), cap=1)
    assert (played.run.verdict, played.run.turns, len(played.requests)) == ("passed", 1, 2)


def test_a_snapshot_that_cannot_be_verified_leaves_a_pass_unconfirmed(
    play: Callable[..., Played],
) -> None:
    test = """#!/bin/bash
pgrep tmux >/dev/null || head -c 70000000 /dev/zero > /logs/verifier/large
echo 1 > /logs/verifier/reward.txt
"""
    run = play([CLAIM, CLAIM], test=test).run
    assert (run.verdict, run.suspect, run.confirmed) == ("passed", False, None)
    assert "the snapshot could not be verified" in (run.detail or "")


def test_a_dead_container_gives_no_result(play: Callable[..., Played]) -> None:
    run = play([reply("sleep 8", wait=8)], during=kill_container(4)).run
    assert (run.verdict, run.stop) == ("none", "infrastructure")
    assert run.detail is not None
    assert "ContainerDiedError" in run.detail


def test_a_container_that_the_agent_ends_is_a_result(play: Callable[..., Played]) -> None:
    """Else a run that fails could ask for another try."""
    run = play([reply("echo begun"), reply("kill -9 -1"), LOOK], cap=5).run
    assert (run.verdict, run.stop, run.turns, run.reward) == ("failed", "terminal_broken", 2, 0.0)
    assert run.detail is not None
    assert "ended from within" in run.detail


def test_a_terminal_broken_by_the_agent_is_a_result(play: Callable[..., Played]) -> None:
    run = play([WRITE, reply("tmux kill-server"), LOOK]).run
    assert (run.verdict, run.stop, run.turns) == ("passed", "terminal_broken", 2)
    failed = play([reply("tmux kill-server", "echo more"), LOOK], cap=5).run
    assert (failed.verdict, failed.stop, failed.turns) == ("failed", "terminal_broken", 1)


def test_a_verifier_without_a_reward_does_not_pass(play: Callable[..., Played]) -> None:
    run = play([WRITE], cap=1, test="#!/bin/bash\ntrue\n").run
    assert (run.verdict, run.stop) == ("failed", "turn_cap")
    assert run.detail is not None
    assert "RewardFileNotFoundError" in run.detail


def test_cost_follows_the_prices_and_is_unknown_without_them(play: Callable[..., Played]) -> None:
    prices = {"input_usd_per_mtok": 2.0, "output_usd_per_mtok": 10.0}
    run = play([WRITE], cap=1, prices=prices).run
    assert run.input_tokens and run.output_tokens
    assert run.cost_usd == pytest.approx((2 * run.input_tokens + 10 * run.output_tokens) / 1e6)
    assert play([WRITE], cap=1).run.cost_usd is None


def test_what_is_kept_names_no_folder_of_this_machine(
    play: Callable[..., Played], tmp_path: Path
) -> None:
    played = play([WRITE], cap=1)
    assert {"result.json", "trial.log", "run.json"} <= {p.name for p in played.folder.iterdir()}
    for path in played.folder.rglob("*"):
        if path.is_file():
            assert str(tmp_path).encode() not in path.read_bytes(), path
    assert Run.model_validate_json((played.folder / "run.json").read_text()) == played.run


def test_an_agent_cannot_rewrite_what_is_recorded_of_it(play: Callable[..., Played]) -> None:
    forged = "for f in trajectory.json turns.jsonl extra; do echo forged > /logs/agent/$f; done"
    played = play([WRITE, reply(forged), LOOK], cap=3)
    assert len(played.turns) == 3
    trajectory = json.loads((played.folder / "agent" / "trajectory.json").read_text())
    assert [step["source"] for step in trajectory["steps"]] == ["user", "agent", "agent", "agent"]
    assert not (played.folder / "agent" / "extra").exists()


@pytest.mark.parametrize("left", ["sleep 777", "rm -f /logs/verifier/*; exit 1"])
def test_a_verifier_that_comes_to_no_verdict_in_a_living_container_does_not_pass(
    play: Callable[..., Played], left: str
) -> None:
    """Else an agent could leave a state whose run is paid for again and again."""
    test = f"#!/bin/bash\nif [ -e /app/out ]; then {left}; fi\necho 1 > /logs/verifier/reward.txt\n"
    toml = TASK_TOML.replace("timeout_sec = 60.0", "timeout_sec = 2.0")
    played = play([WRITE, CLAIM, CLAIM], test=test, toml=toml)
    run = played.run
    assert (run.verdict, run.stop, run.turns, run.reward) == ("failed", "submitted", 3, 0.0)
    assert run.detail is not None
    assert run.detail.startswith(("VerifierTooSlowError", "RewardFileNotFoundError"))


def test_a_reward_too_large_to_be_read_does_not_pass(play: Callable[..., Played]) -> None:
    test = "#!/bin/bash\ntruncate -s 3G /logs/verifier/reward.json\n"
    run = play([WRITE, CLAIM, CLAIM], test=test).run
    assert (run.verdict, run.stop, run.reward) == ("failed", "submitted", 0.0)
    assert run.detail is not None
    assert "/logs/verifier in the container has more than 64 MB" in run.detail


def test_artifacts_that_are_not_kept_are_not_fetched(
    play: Callable[..., Played], monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = []
    get = copying.get

    def noted(container: Any, path: str, *more: Any) -> Any:
        fetched.append(path)
        return get(container, path, *more)

    monkeypatch.setattr(copying, "get", noted)
    toml = 'artifacts = ["/app/out"]\n' + TASK_TOML
    played = play([reply("echo done | tee /app/out > /logs/artifacts/much")], cap=1, toml=toml)
    assert played.run.verdict == "passed"
    assert set(fetched) == {"/logs/verifier"}
    assert not (played.folder / "artifacts").exists()


def test_a_recording_ends_at_its_bound_and_says_so(
    play: Callable[..., Played], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MOST_BYTES", 100_000)
    played = play([reply("seq 100000"), WRITE], cap=2, record=True)
    assert played.run.verdict == "passed"
    lines = (played.folder / "agent" / "recording.cast").read_text().splitlines()
    assert "[depthkit: the recording ends here, at 100000 bytes]" in json.loads(lines[-1])[2]
    assert sum(map(len, lines[:-1])) < 300_000


def test_ending_all_that_sleeps_leaves_the_container_alive(play: Callable[..., Played]) -> None:
    played = play([reply("pkill sleep; pkill -f sleep", "echo done > /app/out")], cap=1)
    assert (played.run.verdict, played.run.stop) == ("passed", "turn_cap")
