"""Faults of the model endpoint, injected for real: what a schedule makes of them."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from faulty import (
    PASSES,
    QUICK,
    WRITE,
    BilledServer,
    measure,
)
from toys import reply, write_toy

from depthkit.experiments.status import status
from depthkit.trials.forecast import TRIES
from depthkit.trials.limits import Limits
from depthkit.trials.run import run_trial
from depthkit.trials.scripted.policies import Messages, Reply, fixed_replies

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("model_key", "no_leftovers")]


def test_an_endpoint_that_is_gone_for_a_while_is_waited_for(tmp_path: Path, toy: Path) -> None:
    asked: list[float] = []

    def policy(messages: Messages) -> str | Reply:
        asked.append(time.monotonic())
        return Reply("gone", status=503) if asked[-1] < asked[0] + 6 else PASSES(messages)

    with BilledServer({"m": policy}) as server:
        done = measure(tmp_path, server, toy, pauses=(2, 2, 2, 2))
    assert done.outcome.given_up == []
    ends = Counter(done.ends)
    assert ends["passed", "submitted"] == 2
    # Both runs that were under way failed; after each pause one alone tries.
    assert 2 <= ends["none", "model_error"] <= 4
    assert any("m's endpoint does not answer; next try in" in said for said in done.notices)
    assert done.notices[-1] == ""


def test_an_endpoint_that_stays_gone_is_given_up(tmp_path: Path, toy: Path) -> None:
    with BilledServer({"m": fixed_replies([Reply("gone", status=500)])}) as server:
        done = measure(tmp_path, server, toy, pauses=(0.1,), workers=1)
    assert done.ends == [("none", "model_error")] * 2
    assert len(done.outcome.given_up) == 1
    assert "m, all its runs" in done.outcome.given_up[0]


def test_a_model_that_may_not_be_called_is_not_tried_task_after_task(
    tmp_path: Path, toy: Path
) -> None:
    others = [write_toy(tmp_path / "set" / f"other-{i}") for i in range(3)]
    with BilledServer({"m": fixed_replies([Reply("no credit", status=402)])}) as server:
        done = measure(tmp_path, server, toy, *others, workers=1)
    assert done.ends == [("none", "model_error")]
    assert "402" in done.outcome.given_up[0] or "no credit" in done.outcome.given_up[0]


def test_a_refused_task_is_left_out_and_holds_up_nothing(tmp_path: Path, toy: Path) -> None:
    other = write_toy(tmp_path / "set" / "other", instruction="Harmless. Write done to /app/out.")

    def policy(messages: Messages) -> str | Reply:
        harmless = "Harmless" in str(messages)
        return PASSES(messages) if harmless else Reply("", finish_reason="content_filter")

    with BilledServer({"m": policy}) as server:
        done = measure(tmp_path, server, toy, other)
        refused = [run for run in done.outcome.runs if run.task_id == toy.name]
        assert {(run.verdict, run.stop) for run in refused} == {("none", "refused")}
        assert 3 <= len(refused) <= 6  # retries are refused as well; then it is let be
        assert [run.passed for run in done.outcome.runs if run.task_id == "other"] == [True] * 2
        again = measure(tmp_path, server, toy, other)
    assert again.outcome.runs == []
    states = {task.task_id: task.state for task in status(done.corpus).tasks}
    assert states == {toy.name: "refused", "other": "partly measured"}


def test_nothing_but_empty_replies_is_no_result(tmp_path: Path, toy: Path) -> None:
    with BilledServer({"m": fixed_replies([""])}) as server:
        done = measure(tmp_path, server, toy, workers=1)
    assert set(done.ends) == {("none", "refused")}
    assert all("empty" in (run.detail or "") for run in done.outcome.runs)


def test_a_conversation_too_long_for_the_model_makes_no_turns(tmp_path: Path, toy: Path) -> None:
    too_long = Reply("This model's maximum context length is 5 tokens", status=400)

    def policy(messages: Messages) -> str | Reply:
        return reply("ls") if len(messages) == 1 and "Briefly" not in str(messages) else too_long

    with BilledServer({"m": policy}) as server:
        done = measure(tmp_path, server, toy, workers=1)
    assert set(done.ends) == {("none", "model_error")}
    # One reply was the model's; those that terminus-2 makes up are none.
    assert {run.turns for run in done.outcome.runs} == {1}


def test_a_time_limit_while_the_endpoint_hangs_is_no_result(tmp_path: Path, toy: Path) -> None:
    patience = replace(QUICK, request_seconds=60.0, silent_seconds=1.0)
    with BilledServer({"m": fixed_replies([Reply("late", delay=60)])}) as server:
        done = measure(
            *(tmp_path, server, toy),
            runner=partial(run_trial, segment_seconds=4),
            limits=Limits(max_cost=1.0),
            patience=patience,
            pauses=(0.1,),
            workers=1,
            exact=False,
        )
        assert done.ends == [("none", "model_error")] * 2
        assert "the time limit came while the endpoint did not answer" in str(done.outcome.runs[0])
        assert [run.cost_usd for run in done.outcome.runs] == [None] * 2
        assert 0 < server.billed <= done.outcome.spent
    assert "m, all its runs" in done.outcome.given_up[0]


def test_a_prompt_that_always_fails_is_given_up_while_others_are_answered(
    tmp_path: Path, toy: Path
) -> None:
    other = write_toy(tmp_path / "set" / "other", instruction="Harmless. Write done to /app/out.")

    def policy(messages: Messages) -> str | Reply:
        harmless = "Harmless" in str(messages)
        if harmless or len(messages) == 1:
            return PASSES(messages)
        return Reply("this prompt breaks the server", status=500)

    patience = replace(QUICK, blip_seconds=0.2)
    with BilledServer({"m": policy}) as server:
        done = measure(tmp_path, server, toy, other, patience=patience, pauses=(0.1,) * 50)
    ends = Counter((run.task_id, run.verdict, run.stop) for run in done.outcome.runs)
    assert ends == {
        (toy.name, "none", "model_error"): 2 * TRIES,
        ("other", "passed", "submitted"): 2,
    }
    assert len(done.outcome.given_up) == 2


def test_after_an_outage_others_start_with_the_first_answer(tmp_path: Path, toy: Path) -> None:
    began, answered = time.monotonic(), list[int]()

    def policy(messages: Messages) -> str | Reply:
        if len(server.requests) <= 4 or time.monotonic() < began + 5:
            return Reply("gone", status=503)
        answered.append(len(messages))
        # The first run does nothing until the second has been answered.
        waits = answered.count(1) < 2 and len(answered) < 60
        return reply("true", wait=1) if waits else WRITE

    with BilledServer({"m": policy}) as server:
        done = measure(tmp_path, server, toy, pauses=(2,) * 5)
    assert Counter(done.ends)["passed", "submitted"] == 2
    second = len(answered) - 1 - answered[::-1].index(1)
    assert 0 < second < 59  # the second run did not wait for the end of the first


def test_a_run_whose_endpoint_states_no_usage_has_no_tokens_and_no_cost(
    tmp_path: Path, toy: Path
) -> None:
    with BilledServer({"m": fixed_replies([Reply(WRITE, usage=False)])}) as server:
        done = measure(tmp_path, server, toy, limits=Limits(max_cost=1.0), exact=False)
    assert done.ends == [("passed", "submitted")] * 2
    for run in done.outcome.runs:
        tokens = (run.input_tokens, run.cached_tokens, run.output_tokens, run.context_tokens)
        assert (tokens, run.cost_usd) == ((None,) * 4, None)
