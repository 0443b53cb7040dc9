"""From what Harbor recorded of a trial to a verdict and a stop: read off, never guessed.

Pure: the records go in, the judgement comes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from depthkit.model import Stop, Verdict

TIME_LIMIT_ERROR = "AgentTimeoutError"
MODEL_ERRORS = frozenset({"ModelCallError", "ContextLengthExceededError"})
CANCELLED = "CancelledError"


@dataclass(frozen=True)
class Judgement:
    """Verdict and stop of a run, the reward behind it, and one line on what is missing."""

    verdict: Verdict
    stop: Stop
    reward: float | None = None
    detail: str | None = None


def reward_of(rewards: Mapping[str, float] | None) -> float | None:
    """One number of a verifier's rewards: the smallest, since every check must pass (Eq. 1).

    ``None`` where the verifier gave none.
    """
    return float(min(rewards.values())) if rewards else None


def judge(
    *,
    rewards: Mapping[str, float] | None,
    error: str | None,
    error_message: str | None,
    facts: Mapping[str, Any],
) -> Judgement:
    """Judge one single-instruction trial.

    Args:
        rewards: What the verifier gave, ``None`` if it did not run or gave nothing.
        error: Class name of the error that ended the trial, ``None`` if there was none.
        error_message: Its message.
        facts: What the agent said of itself (:meth:`CappedTerminus2.facts`).

    Returns:
        Judgement: ``none`` with the reason where there is no valid verdict.
    """
    reward = reward_of(rewards)
    line = " ".join(f"{error}: {error_message or ''}".split())[:500] if error else None
    if error is not None and error != TIME_LIMIT_ERROR:
        if error in MODEL_ERRORS:
            return Judgement("none", "model_error", None, line)
        if error == CANCELLED:
            return Judgement("none", "cancelled", None, line)
        return Judgement("none", "infrastructure", None, line)
    if reward is None:
        return Judgement("none", "infrastructure", None, line or "the verifier gave no reward")
    verdict: Verdict = "passed" if reward >= 1 else "failed"
    return Judgement(verdict, "time_limit" if error else _stop(facts), reward)


def _stop(facts: Mapping[str, Any]) -> Stop:
    match facts.get("end"):
        case "submitted":
            return "submitted"
        case "turns_used":
            return "turn_cap" if facts.get("cap") is not None else "turn_ceiling"
        case "terminal_broken":
            return "terminal_broken"
        case other:
            raise ValueError(f"the agent ended without an error but says {other!r}")
