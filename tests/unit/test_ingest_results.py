"""Verdict, stop, turns and segments of Harbor trials of other people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fake_trials import CONFIRM, agent, at, atif, finished, garbled, result, user, write_trial
from records import run_of
from taking import take, take_one

from depthkit.corpus import Corpus

REFUSED = ("AgentTimeoutError", "Agent execution timed out after 900.0 seconds")


# --- verdict and stop ---

MODEL_ERROR = ("RateLimitError", "litellm.RateLimitError: slow down")


@pytest.mark.parametrize(
    ("given", "verdict", "stop"),
    [
        ({"reward": 1.0}, "passed", "submitted"),
        ({"reward": 0.99}, "failed", "submitted"),
        ({"reward": 2}, "passed", "submitted"),
        ({"reward": None}, "none", "infrastructure"),
        ({"reward": float("nan")}, "none", "infrastructure"),
        ({"verifier_result": {"rewards": {"a": 1, "b": 0.5}}}, "failed", "submitted"),
        ({"verifier_result": {"rewards": {"a": 1, "b": 1}}}, "passed", "submitted"),
        ({"verifier_result": {"rewards": {"reward": 1, "style": 0.4}}}, "passed", "submitted"),
        ({"verifier_result": {"rewards": {"reward": 0, "style": 1}}}, "failed", "submitted"),
        ({"verifier_result": {"rewards": {"a": "1"}}}, "none", "infrastructure"),
        ({"verifier_result": {"rewards": {"a": 10**400}}}, "none", "infrastructure"),
        # An exception does not mean a failure, and a time limit without a reward is no result.
        ({"reward": 1.0, "error": REFUSED}, "passed", "time_limit"),
        ({"reward": 0.0, "error": REFUSED}, "failed", "time_limit"),
        ({"reward": None, "error": REFUSED}, "none", "infrastructure"),
        # Why the agent's program gave up is not known.
        ({"reward": 1.0, "error": ("NonZeroAgentExitCodeError", "1")}, "passed", "unknown"),
        ({"reward": None, "error": ("CancelledError", "")}, "none", "cancelled"),
        # Not a result even if a verifier ran: the model never had its say.
        ({"reward": 0.0, "error": MODEL_ERROR}, "none", "model_error"),
        ({"reward": None, "error": ("ContextLengthExceededError", "")}, "none", "model_error"),
        ({"reward": None, "error": ("ContentPolicyViolationError", "")}, "none", "refused"),
        ({"reward": None, "error": ("BudgetExceededError", "")}, "none", "budget"),
        ({"reward": None, "error": ("EnvironmentStartTimeoutError", "")}, "none", "infrastructure"),
        ({"reward": None, "error": ("VerifierTimeoutError", "900")}, "none", "infrastructure"),
        ({"reward": None, "error": ("SomethingNew", "?")}, "none", "infrastructure"),
    ],
)
def test_verdict_and_stop_follow_from_reward_and_error(
    tmp_path: Path, given: dict[str, Any], verdict: str, stop: str
) -> None:
    run = take_one(tmp_path, result(requests=4, **given), trajectory__json=atif(finished(4)))
    assert (run.verdict, run.stop) == (verdict, stop)
    if verdict == "none":
        assert run.detail


def test_an_unknown_error_that_litellm_raised_is_a_model_error(tmp_path: Path) -> None:
    outcome = result(reward=None, error=("BrandNewError", "x"))
    outcome["exception_info"]["exception_traceback"] = "Traceback\nlitellm.exceptions.BrandNewError"
    assert take_one(tmp_path, outcome).stop == "model_error"


WORK = [user(), agent("a\n"), agent("b\n"), agent("c\n")]


def test_turns_used_up_are_told_only_where_the_settings_show_the_limit(tmp_path: Path) -> None:
    limited = result("toy__1", requests=3, reward=0.0)
    limited["config"]["agent"]["kwargs"] = {"max_turns": 3}
    unlimited = result("toy__2", requests=3, reward=0.0)
    write_trial(tmp_path / "job" / "1", limited, trajectory__json=atif(WORK))
    write_trial(tmp_path / "job" / "2", unlimited, trajectory__json=atif(WORK))
    first, second = (taken.run for taken in take(tmp_path).added)
    assert (first.verdict, first.stop, first.detail) == ("failed", "turn_ceiling", None)
    assert second.stop == "unknown"
    assert "how the agent ended is not recorded (no confirmed completion" in str(second.detail)


def test_a_first_claim_in_the_last_turn_is_no_confirmed_completion(tmp_path: Path) -> None:
    outcome = result(requests=2, reward=1.0)
    outcome["config"]["agent"]["kwargs"] = {"max_turns": 2}
    steps = [user(), agent("a\n"), agent(claim=True, observation=CONFIRM)]
    run = take_one(tmp_path, outcome, trajectory__json=atif(steps))
    assert (run.verdict, run.stop, run.first_claim_turn) == ("passed", "turn_ceiling", 2)


def test_a_turn_without_a_reply_shows_that_the_terminal_was_gone(tmp_path: Path) -> None:
    outcome = result(requests=3, metadata={"n_episodes": 4}, reward=0.0)
    run = take_one(tmp_path, outcome, trajectory__json=atif(WORK))
    assert (run.stop, run.turns) == ("terminal_broken", 3)


def test_our_own_agent_says_itself_how_it_ended(tmp_path: Path) -> None:
    facts = {"depthkit": {"cap": 3, "end": "turns_used", "agent_seconds": 30.0}}
    run = take_one(
        tmp_path, result(requests=3, metadata=facts, reward=0.0), trajectory__json=atif(WORK)
    )
    assert (run.cap, run.stop) == (3, "turn_cap")
    assert run.agent_minutes == 0.5  # its own clock, not the wall's


# --- turns ---


def test_replies_are_counted_from_the_recorded_request_times(tmp_path: Path) -> None:
    # The third reply was received, but the run died before its step was written.
    outcome = result(requests=3, reward=None, error=("RuntimeError", "failed to send keys"))
    run = take_one(tmp_path, outcome, trajectory__json=atif(WORK[:3]))
    assert run.turns == 3
    assert run.context_tokens is None
    assert len(Corpus.open(tmp_path / "corpus").turns()) == 2


@pytest.mark.parametrize("calls", [["summary", "questions", "answers"], ["summary"], []])
def test_requests_of_summarizations_are_not_turns(tmp_path: Path, calls: list[str]) -> None:
    # Without any file of it, and without a whole trajectory, a summarization is three requests.
    made = len(calls) or 3
    outcome = result(requests=4 + made, metadata={"summarization_count": 1})
    files = {f"trajectory__summarization-1-{call}__json": atif([user(), agent()]) for call in calls}
    trajectory = atif(finished(4)) if calls else json.dumps(atif(finished(4)))[:-9]
    assert take_one(tmp_path, outcome, trajectory__json=trajectory, **files).turns == 4


def test_without_request_times_replies_are_counted_from_the_steps(tmp_path: Path) -> None:
    steps = [user(), garbled(), agent("x\n", is_copied_context=True), *finished(4)[1:]]
    write_trial(tmp_path / "job" / "t", result(), trajectory__json=atif(steps))
    (taken,) = take(tmp_path).added
    assert (taken.run.turns, taken.parse_errors) == (5, 1)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"trajectory__json": json.dumps(atif(finished(4)))[:-9]},
        {"trajectory__json": [{"role": "assistant", "content": "hi"}]},
    ],
)
def test_without_either_turns_are_unknown(tmp_path: Path, files: dict[str, Any]) -> None:
    write_trial(tmp_path / "job" / "t", result(reward=1.0), **files)
    (taken,) = take(tmp_path).added
    assert (taken.run.verdict, taken.run.turns, taken.parse_errors) == ("passed", None, None)
    assert "trajectory.json" in str(taken.run.detail)


def test_request_times_count_even_where_the_trajectory_is_cut_off(tmp_path: Path) -> None:
    cut = json.dumps(atif(finished(4)))[:-9]
    run = take_one(tmp_path, result(requests=4), trajectory__json=cut)
    assert run.turns == 4


def test_numbers_nobody_can_mean_are_unknown(tmp_path: Path) -> None:
    outcome = result(requests=3)
    outcome["agent_result"] |= {
        "n_input_tokens": 10**40,
        "n_cache_tokens": -5,
        "n_output_tokens": "many",
        "cost_usd": float("inf"),
    }
    outcome["agent_result"]["metadata"]["api_request_times_msec"] = [1.0, "x", float("nan")]
    outcome["agent_execution"] = {"started_at": at(90), "finished_at": at(1)}
    outcome["started_at"] = "yesterday"
    steps = [step | {"metrics": {"prompt_tokens": 10**40}} for step in finished(3)]
    document = atif(steps, final_metrics={"total_prompt_tokens": 10**40})
    run = take_one(tmp_path, outcome, trajectory__json=document)
    assert (run.input_tokens, run.cached_tokens, run.output_tokens) == (None, None, None)
    assert (run.cost_usd, run.agent_minutes, run.started, run.turns) == (None, None, None, 3)


def test_a_cost_of_zero_stands_for_want_of_a_price(tmp_path: Path) -> None:
    outcome = result()
    outcome["agent_result"]["cost_usd"] = 0.0
    assert take_one(tmp_path, outcome, trajectory__json=atif(finished(3))).cost_usd is None


# --- other agents ---

CALLS = [
    user(),
    # One call in three steps; what it used is written down with one of them.
    agent(
        "ls\n",
        tokens=(1000, 50),
        metrics={"prompt_tokens": 1000, "completion_tokens": 50, "cost_usd": 0.01},
    ),
    agent(tokens=None),
    agent(tokens=None, observation="a file"),
    agent("cat a\n", metrics={"prompt_tokens": 2000, "completion_tokens": 60, "cost_usd": 0.02}),
    agent(tokens=None),
]


def others_trial(steps: list[dict[str, Any]], **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Result and trajectory of an agent that writes 0 for what it does not know."""
    outcome = result(**more)
    outcome["agent_info"]["name"] = "openclaw"
    outcome["agent_result"] |= dict.fromkeys(
        ("n_input_tokens", "n_output_tokens", "n_cache_tokens"), 0
    )
    outcome["agent_result"] |= {"cost_usd": None, "metadata": None}
    named = {"name": "openclaw", "version": "1", "model_name": "some-model"}
    return outcome, atif(steps, agent=named, final_metrics={})


def test_turns_of_another_agent_are_its_model_calls_and_its_numbers_are_found(
    tmp_path: Path,
) -> None:
    outcome, trajectory = others_trial(CALLS, reward=0.0)
    run = take_one(tmp_path, outcome, trajectory__json=trajectory)
    assert (run.model, run.agent) == ("some-model (openclaw)", "openclaw")
    assert (run.turns, run.input_tokens, run.output_tokens) == (2, 3000, 110)
    assert run.cost_usd == pytest.approx(0.03)
    assert run.command_lines is None
    # Nobody wrote down how it ended.
    assert (run.verdict, run.stop) == ("failed", "unknown")
    assert "how the agent ended is not recorded" in str(run.detail)
    assert len(Corpus.open(tmp_path / "corpus").turns()) == 2


def test_stated_call_counts_come_before_what_steps_look_like(tmp_path: Path) -> None:
    steps = [user(), *(agent(llm_call_count=n) for n in (1, 0, 3))]
    outcome, trajectory = others_trial(steps)
    assert take_one(tmp_path, outcome, trajectory__json=trajectory).turns == 4


def test_turns_that_another_agent_does_not_tell_are_unknown(tmp_path: Path) -> None:
    outcome, trajectory = others_trial([user(), *[agent("ls\n", tokens=None)] * 3])
    run = take_one(tmp_path, outcome, trajectory__json=trajectory)
    assert (run.turns, run.input_tokens, run.output_tokens) == (None, None, None)
    assert len(Corpus.open(tmp_path / "corpus").turns()) == 3


def test_runs_of_another_agent_never_enter_depth(tmp_path: Path) -> None:
    for number in (1, 2):
        outcome, trajectory = others_trial(CALLS)
        outcome |= {"id": str(number), "trial_name": f"toy__{number}"}
        write_trial(tmp_path / "job" / str(number), outcome, trajectory__json=trajectory)
    taken = take(tmp_path, purpose="free", models=["some-model (openclaw)"])
    assert [each.run.purpose for each in taken.added] == ["free", "free"]
    (row,) = Corpus.open(tmp_path / "corpus").estimates().to_dict("records")
    assert (row["solved"] is None or pd.isna(row["solved"])) and row["runs"] == 0


# --- our own ---


def test_a_trial_of_this_harness_keeps_what_it_recorded_itself(tmp_path: Path) -> None:
    """With a pass that may be forged, for example, which result.json does not tell."""
    recorded = run_of("there", cap=5, suspect=True, rewards={"reward": 1}, provenance="measured")
    steps = [segment(name, 1.0, 3) for name in ("one", "two")]
    for number, provenance in enumerate(("measured", "scripted")):
        outcome = result(f"toy__{number}", step_results=steps, agent_result=None)
        trial = write_trial(tmp_path / "job" / provenance, outcome, turns__jsonl="")
        of = recorded.model_copy(update={"provenance": provenance})
        (trial / "run.json").write_text(of.model_dump_json())
    report = take(tmp_path)
    assert (report.bad, report.notes) == ([], [])
    first, second = (taken.run for taken in report.added)
    assert (first.verdict, first.suspect, first.passed, first.turns) == ("passed", True, False, 7)
    assert (first.rewards, first.cap, first.purpose) == ({"reward": 1.0}, 5, "evaluation")
    assert (first.provenance, first.attempt) == ("imported", 1)
    assert (second.provenance, second.attempt) == ("scripted", 2)
    (task,) = Corpus.open(tmp_path / "corpus").task_records()
    assert [part.name for part in task.segments] == ["one", "two"]


def test_a_record_of_another_version_is_said_and_result_json_read(tmp_path: Path) -> None:
    trial = write_trial(tmp_path / "job" / "t", result(), trajectory__json=atif(finished(4)))
    (trial / "run.json").write_text('{"run_id": "x", "novel": 1}')
    report = take(tmp_path)
    assert report.added[0].run.stop == "submitted"
    assert "run.json is not read (Field required), result.json is instead" in report.notes[0]


# --- several segments ---


def segment(name: str, reward: float | None, requests: int, **more: Any) -> dict[str, Any]:
    own = result(requests=requests, reward=reward)
    names = ("agent_result", "verifier_result", "agent_execution", "exception_info")
    return {"step_name": name} | {field: own[field] for field in names} | more


def test_segments_of_a_trial_are_judged_together(tmp_path: Path) -> None:
    steps = [segment("one", 1.0, 3), segment("two", 0.0, 4)]
    outcome = result(reward=0.5, step_results=steps, agent_result=None)
    trial = write_trial(tmp_path / "job" / "t", outcome)
    for name, turns in (("one", 3), ("two", 4)):
        folder = trial / "steps" / name / "agent"
        folder.mkdir(parents=True)
        (folder / "trajectory.json").write_text(json.dumps(atif(finished(turns))))
    (taken,) = take(tmp_path).added
    run = taken.run
    assert (run.verdict, run.stop, run.turns, run.reward) == ("failed", "submitted", 7, 0.0)
    assert (run.segments_passed, run.stop_segment, run.input_tokens) == (1, 2, 10_000)
    corpus = Corpus.open(tmp_path / "corpus")
    assert [s.name for s in corpus.task_records()[0].segments] == ["one", "two"]
    turns = corpus.turns()
    assert turns["segment"].tolist() == [1] * 3 + [2] * 4
    assert turns["turn"].tolist() == list(range(1, 8))


@pytest.mark.parametrize(
    ("rewards", "verdict"), [((1.0, None), "none"), ((None, 1.0), "none"), ((0.0, None), "failed")]
)
def test_a_segment_without_a_reward_is_not_passed_over(
    tmp_path: Path, rewards: tuple[float | None, ...], verdict: str
) -> None:
    steps = [segment(str(number), reward, 3) for number, reward in enumerate(rewards)]
    run = take_one(tmp_path, result(reward=1.0, step_results=steps, agent_result=None))
    assert run.verdict == verdict


def test_imported_runs_keep_every_reward_of_the_last_segment_verified(tmp_path: Path) -> None:
    steps = [segment("one", 1.0, 3), segment("two", 1.0, 3), segment("three", None, 0)]
    steps[1]["verifier_result"]["rewards"] = {"reward": 1, "style": 0.4, "odd": "x"}
    run = take_one(tmp_path, result(reward=1.0, step_results=steps, agent_result=None))
    assert run.rewards == {"reward": 1.0, "style": 0.4}


def test_a_model_error_that_only_a_segment_records_is_seen(tmp_path: Path) -> None:
    error = result(error=("RateLimitError", "slow down"))["exception_info"]
    steps = [segment("one", 1.0, 3), segment("two", 0.0, 1, exception_info=error)]
    run = take_one(tmp_path, result(reward=0.5, step_results=steps, agent_result=None))
    assert (run.verdict, run.stop) == ("none", "model_error")
