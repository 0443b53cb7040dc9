"""What Harbor recorded of a trial becomes a verdict and a stop by DESIGN's words."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from records import run_of, task_of
from typer.testing import CliRunner

from depthkit.artifacts.audit import audit_table
from depthkit.cli import app
from depthkit.corpus import Corpus
from depthkit.dashboard.html import Context, Site
from depthkit.dashboard.pages import PAGES
from depthkit.dashboard.source import Source
from depthkit.protocol.verdict import (
    Passes,
    SegmentRecord,
    all_pass,
    judge,
    passes,
    reward_of,
    rewards_kept,
)

SUBMITTED = {"end": "submitted", "cap": None}


@pytest.mark.parametrize(
    ("rewards", "error", "facts", "expected"),
    [
        ({"reward": 1.0}, None, SUBMITTED, ("passed", "submitted")),
        ({"reward": 0.99}, None, SUBMITTED, ("failed", "submitted")),
        ({"reward": 1.0}, None, {"end": "turns_used", "cap": 5}, ("passed", "turn_cap")),
        ({"reward": 0.0}, None, {"end": "turns_used", "cap": None}, ("failed", "turn_ceiling")),
        ({"reward": 1.0}, None, {"end": "terminal_broken"}, ("passed", "terminal_broken")),
        # A run that timed out can have passed.
        ({"reward": 1.0}, "AgentTimeoutError", {"end": "error"}, ("passed", "time_limit")),
        ({"reward": 0.0}, "AgentTimeoutError", {"end": "error"}, ("failed", "time_limit")),
        # But not in time that the endpoint used up, whatever the state that it left.
        *(
            (
                {"reward": reward},
                "AgentTimeoutError",
                {"end": "error", "endpoint_silent": "no answer"},
                ("none", "model_error"),
            )
            for reward in (0.0, 1.0)
        ),
        (None, "AgentTimeoutError", {"end": "error"}, ("none", "infrastructure")),
        (None, None, SUBMITTED, ("none", "infrastructure")),
        (None, "ModelCallError", {"end": "error"}, ("none", "model_error")),
        # No error but a time limit leaves a verdict, even where the verifier ran.
        ({"reward": 1.0}, "ModelCallError", {"end": "error"}, ("none", "model_error")),
        (None, "ContextLengthExceededError", {"end": "error"}, ("none", "model_error")),
        (None, "ContainerDiedError", {"end": "error", "turns": 3}, ("none", "infrastructure")),
        # Ended by the agent, in its own time or while it was verified; not before it did anything.
        (None, "ContainerEndedError", {"end": "error", "turns": 3}, ("failed", "terminal_broken")),
        (None, "ContainerEndedError", {**SUBMITTED, "turns": 3}, ("failed", "submitted")),
        (None, "ContainerEndedError", {"end": "error", "turns": 0}, ("none", "infrastructure")),
        (None, "ContainerEndedError", {}, ("none", "infrastructure")),
        (None, "UnfitContainerError", SUBMITTED, ("failed", "submitted")),
        # Not to be made again until it comes out better.
        (None, "VerifierTimeoutError", SUBMITTED, ("failed", "submitted")),
        (None, "VerifierTooSlowError", {"end": "turns_used", "cap": 5}, ("failed", "turn_cap")),
        (
            None,
            "RewardFileNotFoundError",
            {"end": "terminal_broken"},
            ("failed", "terminal_broken"),
        ),
        (None, "RewardFileEmptyError", {"end": "error"}, ("failed", "time_limit")),
        # Nor a verifier that ran and gave no number; NaN is no pass.
        ({"reward": math.nan}, None, SUBMITTED, ("failed", "submitted")),
        ({}, None, SUBMITTED, ("failed", "submitted")),
        (None, "CancelledError", {"end": "error"}, ("none", "cancelled")),
    ],
)
def test_verdict_and_stop(
    rewards: dict[str, float] | None,
    error: str | None,
    facts: dict[str, Any],
    expected: tuple[str, str],
) -> None:
    judgement = judge([SegmentRecord(rewards, error, "why", facts)], k=1)
    assert (judgement.verdict, judgement.stop) == expected
    assert (judgement.reward is None) == (judgement.verdict == "none")
    if judgement.verdict == "none" or reward_of(rewards) is None:
        assert judgement.detail


def test_an_end_that_nobody_recorded_is_not_guessed() -> None:
    with pytest.raises(ValueError, match="ended without an error"):
        judge([SegmentRecord({"reward": 1.0})], k=1)


@pytest.mark.parametrize(
    ("rewards", "reward", "kept"),
    [
        (
            {"reward": 1, "style": 0.4, "n_tests_failed": 0},
            1,
            ["reward", "style", "n_tests_failed"],
        ),
        ({"reward": 0, "style": 1}, 0, ["reward", "style"]),
        ({"a": 1.0, "b": 0.5}, 0.5, ["a", "b"]),
        ({"reward": 1, "loss": math.inf}, 1, ["reward"]),
        ({"reward": "1"}, None, []),
        ({"a": 1, "b": 10**400}, None, ["a"]),
        ({}, None, []),
    ],
)
def test_the_key_reward_decides_where_it_is_there_else_the_smallest(
    rewards: dict[str, Any], reward: float | None, kept: list[str]
) -> None:
    assert reward_of(rewards) == reward
    assert passes(rewards) == (None if reward is None else reward == 1)
    assert list(rewards_kept(rewards) or {}) == kept


def test_a_verifier_that_did_not_run_gave_no_rewards() -> None:
    assert (reward_of(None), passes(None), rewards_kept(None)) == (None, None, None)


@pytest.mark.parametrize(
    ("segments", "run"),
    [
        ([True, True], True),
        ([True, None], None),
        ([True, None, True], None),
        ([None, False], False),
        ([False, None], False),
        ([False, True], False),
        ([], None),
    ],
)
def test_a_run_passes_only_if_every_segment_is_known_to(
    segments: list[bool | None], run: bool | None
) -> None:
    assert all_pass(segments) is run


@pytest.mark.parametrize(
    ("run", "counted"),
    [
        ({"confirmed": True}, Passes(1, 0, 0)),
        ({"confirmed": None}, Passes(1, 1, 0)),
        ({"confirmed": False, "provenance": "measured"}, Passes(1, 1, 0)),
        ({"confirmed": True, "suspect": True}, Passes(0, 0, 1)),
        ({"verdict": "failed", "suspect": True}, Passes(0, 0, 0)),
        ({"verdict": "none", "stop": "budget"}, Passes(0, 0, 0)),
        # What others ran, or nobody, could not be compared here.
        ({"provenance": "imported"}, Passes(1, 0, 0)),
        ({"provenance": "fitted"}, Passes(1, 0, 0)),
    ],
)
def test_passes_that_rest_on_less_are_counted_apart(run: dict[str, Any], counted: Passes) -> None:
    assert Passes.of([run_of("r", **run)]) == counted


def test_every_place_that_counts_passes_says_which_rest_on_less(tmp_path: Path) -> None:
    corpus = Corpus.open_or_create(tmp_path / "c", models=["first"])
    corpus.append_task(task_of("toy", 9))
    corpus.append_task(task_of("forged", 9))
    corpus.append_runs(
        [
            run_of("a", turns=1, confirmed=True),
            run_of("b", attempt=2, turns=1),
            run_of("c", task_id="forged", suspect=True, turns=1),
            run_of("d", task_id="forged", attempt=2, verdict="failed"),
        ]
    )
    rows = corpus.estimates().set_index("task_id")
    assert rows.loc["toy", ["passes", "unconfirmed", "suspect", "final"]].tolist() == [
        2,
        1,
        0,
        True,
    ]
    assert rows.loc["forged", ["passes", "unconfirmed", "suspect"]].tolist() == [0, 0, 1]
    assert not rows.loc["forged", "final"]
    said = "2 passed (1 unconfirmed), 1 suspect"
    assert f"4 runs, {said}" in audit_table(corpus).provenance
    told = CliRunner().invoke(app, ["estimates", str(corpus.path)], env={"COLUMNS": "200"}).stdout
    assert "2 (1 unconfirmed)" in told and "0, 1 suspect" in told and "no so far" in told
    told = CliRunner().invoke(app, ["status", str(corpus.path)], env={"COLUMNS": "200"}).stdout
    assert "1 of 2 tasks are final" in told
    assert "Passes: 2 (1 unconfirmed), 1 suspect." in told
    assert "toys/forged. A pass that may be forged decides there" in told
    source = Source(corpus.path)
    context = Context(Site({"c": "c"}), "c", source, source.load())
    assert "2 (1 unconfirmed)" in str(PAGES["tasks"](context, {}))
    forged = {"dataset": ["toys"], "task": ["forged"]}
    assert "0 of 2, 1 suspect" in str(PAGES["task"](context, forged))
    assert "unconfirmed" in str(PAGES["run"](context, {"id": ["b"]}))


FULL, ZERO = {"reward": 1.0}, {"reward": 0.0}
DONE = SegmentRecord(FULL, facts={"end": "submitted", "cap": 5})
OVER = SegmentRecord(None, "RunOverError", "the run ended")


@pytest.mark.parametrize(
    ("segments", "verdict", "stop", "segment", "passed"),
    [
        ([DONE, DONE, DONE], "passed", "submitted", 3, 3),
        # The last segment is judged by its state, marked complete or not.
        (
            [DONE, DONE, SegmentRecord(FULL, facts={"end": "turns_used", "cap": 5})],
            *("passed", "turn_cap", 3, 3),
        ),
        ([DONE, SegmentRecord(ZERO, facts=DONE.facts), OVER], "failed", "submitted", 2, 1),
        # Left unfinished, an earlier segment fails whatever its checks would say.
        (
            [DONE, SegmentRecord(FULL, facts={"end": "turns_used", "cap": 5}), OVER],
            *("failed", "turn_cap", 2, 1),
        ),
        ([SegmentRecord(FULL, "AgentTimeoutError")], "failed", "time_limit", 1, 0),
        (
            [DONE, SegmentRecord(None, facts={"end": "terminal_broken"})],
            "failed",
            "terminal_broken",
            2,
            1,
        ),
        # Marked complete in the last turn: it counts, but the run fails.
        ([DONE, DONE, OVER], "failed", "turn_cap", 2, 2),
        ([DONE, SegmentRecord(FULL, "ModelCallError")], "none", "model_error", 2, None),
        ([DONE, SegmentRecord(None, facts=DONE.facts)], "none", "infrastructure", 2, None),
        ([OVER], "none", "infrastructure", 1, None),
        # Something else ended the trial: no cap and no ceiling while turns are left.
        (
            [SegmentRecord(FULL, facts={**DONE.facts, "turns_left": 3})],
            *("none", "infrastructure", 1, None),
        ),
    ],
)
def test_segments_are_judged_in_order_up_to_the_first_that_ends_the_run(
    segments: list[SegmentRecord], verdict: str, stop: str, segment: int, passed: int | None
) -> None:
    judgement = judge(segments, k=3)
    assert (judgement.verdict, judgement.stop) == (verdict, stop)
    assert (judgement.stop_segment, judgement.segments_passed) == (segment, passed)
    if passed is not None:
        assert judgement.reward == pytest.approx(passed / 3)
