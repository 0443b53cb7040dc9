"""What Harbor recorded of a trial becomes a verdict and a stop by DESIGN's words."""

from __future__ import annotations

from typing import Any

import pytest

from depthkit.trials.verdict import judge, reward_of

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
        (None, "AgentTimeoutError", {"end": "error"}, ("none", "infrastructure")),
        (None, None, SUBMITTED, ("none", "infrastructure")),
        (None, "ModelCallError", {"end": "error"}, ("none", "model_error")),
        # No error but a time limit leaves a verdict, even where the verifier ran.
        ({"reward": 1.0}, "ModelCallError", {"end": "error"}, ("none", "model_error")),
        (None, "ContextLengthExceededError", {"end": "error"}, ("none", "model_error")),
        (None, "ContainerDiedError", {"end": "error"}, ("none", "infrastructure")),
        (None, "VerifierTimeoutError", SUBMITTED, ("none", "infrastructure")),
        (None, "CancelledError", {"end": "error"}, ("none", "cancelled")),
    ],
)
def test_verdict_and_stop(
    rewards: dict[str, float] | None,
    error: str | None,
    facts: dict[str, Any],
    expected: tuple[str, str],
) -> None:
    judgement = judge(rewards=rewards, error=error, error_message="why", facts=facts)
    assert (judgement.verdict, judgement.stop) == expected
    assert (judgement.reward is None) == (judgement.verdict == "none")
    if judgement.verdict == "none":
        assert judgement.detail


def test_an_end_that_nobody_recorded_is_not_guessed() -> None:
    with pytest.raises(ValueError, match="ended without an error"):
        judge(rewards={"reward": 1.0}, error=None, error_message=None, facts={})


def test_every_reward_must_be_full() -> None:
    assert reward_of({"a": 1.0, "b": 0.5}) == 0.5
    assert reward_of({}) is None
    assert reward_of(None) is None
