"""What a Harbor trial that someone else ran came to: verdict, stop, turns; read off, never guessed.

Pure over the parsed ``result.json`` and trajectories; which rewards pass is said in
:mod:`depthkit.protocol.verdict`. Where the files cannot show how a run
ended, the weakest claim that fits is made and ``detail`` says what is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from depthkit.corpus.files import count, dollars, mask_text, one_line, timestamp
from depthkit.corpus.trajectory import Trajectory
from depthkit.corpus.turns import request_times
from depthkit.model import Stop, Verdict
from depthkit.protocol.verdict import (
    STOP_OF_ERROR,
    TIME_LIMIT_ERROR,
    all_pass,
    passes,
    reward_of,
    rewards_kept,
)

_CALLS_A_SUMMARY = 3
"""Summary, questions, answers (Appendix J)."""

# The agent program ended by itself, with an error status; the state it left was verified.
_AGENT_EXIT = "NonZeroAgentExitCodeError"

_STOP_OF_ERROR: dict[str, Stop] = {
    **STOP_OF_ERROR,
    "KeyboardInterrupt": "cancelled",
    "ContentPolicyViolationError": "refused",
    "AgentSafetyRefusalError": "refused",
    **dict.fromkeys(
        (
            "AgentAuthenticationError",
            "APIConnectionError",
            "APIError",
            "APIResponseValidationError",
            "ApiConnectionClosedError",
            "ApiConnectionError",
            "ApiError",
            "ApiInternalServerError",
            "ApiOverloadedError",
            "ApiProviderResourceNotFoundError",
            "ApiRateLimitError",
            "ApiResponseStalledError",
            "ApiUsageLimitError",
            "AuthenticationError",
            "BadGatewayError",
            "BadRequestError",
            "ContextWindowExceededError",
            "InternalServerError",
            "ModelNotFoundError",
            "NotFoundError",
            "OutputLengthExceededError",
            "OutputTokenExceededError",
            "PermissionDeniedError",
            "RateLimitError",
            "ServiceUnavailableError",
            "Timeout",
            "UnknownApiError",
            "UnprocessableEntityError",
            "UnsupportedParamsError",
        ),
        "model_error",
    ),
}


@dataclass(frozen=True)
class Part:
    """One segment of a trial: what ``result.json`` says of it, and its trajectory."""

    record: dict[str, Any]
    """The trial itself, or its entry in ``step_results``."""
    context: dict[str, Any]
    """``agent_result``; empty where there is none."""
    trajectory: Trajectory

    @property
    def turns(self) -> int | None:
        """Replies that drove the terminal.

        From the recorded times of successful model requests, less those of summarizations, where
        there are any; else from the agent steps of a whole trajectory; else ``None``. Of another
        agent than terminus-2 its model calls.
        """
        times = request_times(self.context)
        replies = self.trajectory.replies
        if times is None or (not times and replies):
            told = self.trajectory.complete and all(step.calls is not None for step in replies)
            return sum(step.calls or 0 for step in replies) if told else None
        calls = len(self.trajectory.summarization_calls)
        summaries = count(_metadata(self.context).get("summarization_count")) or 0
        if summaries and not calls:
            if self.trajectory.complete:
                return len(replies)  # They failed, and how many requests that took is not recorded.
            calls = _CALLS_A_SUMMARY * summaries
        return max(0, len(times) - calls)

    @property
    def rewards(self) -> object:
        """What the verifier gave."""
        verifier = self.record.get("verifier_result")
        return verifier.get("rewards") if isinstance(verifier, dict) else None


@dataclass(frozen=True)
class Outcome:
    """Verdict and stop of a run, and one line on what is missing or doubtful."""

    verdict: Verdict
    stop: Stop
    detail: str | None = None


def judge(result: dict[str, Any], parts: list[Part]) -> Outcome:
    """Verdict and stop by DESIGN.md's words.

    A reward of at least 1 in every segment passes and a lower one fails, whether the agent ran out
    of time or not. Any other error than a time limit or an agent program that exits with an error
    gives no result, even if a verifier ran. Without a reward there is no result either.
    """
    error = _first_error(result, parts)
    kind = note = ""
    if error:
        kind = str(error.get("exception_type") or "an error without a name")
        message = mask_text(str(error.get("exception_message") or ""))
        note = one_line(f"{kind}: {message}".rstrip(": "))
    if error and kind not in (TIME_LIMIT_ERROR, _AGENT_EXIT):
        return Outcome("none", _stop_of_error(kind, error), note)
    passed = all_pass([passes(part.rewards) for part in parts])
    if passed is None:
        why = "the verifier gave no usable reward"
        return Outcome("none", "infrastructure", f"{note}; {why}" if note else why)
    verdict: Verdict = "passed" if passed else "failed"
    if kind == TIME_LIMIT_ERROR:
        return Outcome(verdict, "time_limit")
    if kind == _AGENT_EXIT:
        return Outcome(verdict, "unknown", note)
    return Outcome(verdict, *_how_it_ended(result, parts[-1]))


def stated_cap(parts: list[Part]) -> int | None:
    """The cap our own agent recorded as stated; other agents state none."""
    return count(_own_facts(parts[0]).get("cap")) or None if parts else None


def agent_minutes(parts: list[Part]) -> float | None:
    """Time of the agent phase over all segments, model waits included."""
    seconds = _own_facts(parts[-1]).get("agent_seconds") if parts else None
    if isinstance(seconds, int | float) and seconds >= 0:
        return round(seconds / 60, 4)  # a wall clock may have stepped meanwhile
    total = 0.0
    for part in parts:
        phase = part.record.get("agent_execution")
        phase = phase if isinstance(phase, dict) else {}
        started, finished = timestamp(phase.get("started_at")), timestamp(phase.get("finished_at"))
        if started is None or finished is None or finished < started:
            return None
        total += (finished - started).total_seconds()
    return round(total / 60, 4)


def context_tokens(last: Part) -> int | None:
    """Context at the end, if the last reply is the last recorded one."""
    if last.turns is None or last.turns > len(last.trajectory.replies):
        return None
    return last.trajectory.context_tokens


def total_tokens(parts: list[Part], name: str, total_name: str, of_step: str) -> int | None:
    """Tokens over all segments.

    A run that was killed may lack them, and some agents write 0 for what they do not know; the
    trajectory's totals or else its steps stand in if no summarization, which they leave out, took
    place. A model call takes at least one token in and one out, so there 0 is not known.
    """
    return total([_recorded(part, name, total_name, of_step, count) for part in parts])


def _recorded(
    part: Part, name: str, total_name: str, of_step: str, read: Callable[[object], Any]
) -> Any:
    """The first number other than 0 of the places that a part's totals stand in."""
    found = [read(part.context.get(name))]
    trajectory = part.trajectory
    if not trajectory.summarization_calls:
        steps = [getattr(step, of_step) for step in trajectory.replies]
        every = part.turns and part.turns == sum(step.calls or 0 for step in trajectory.replies)
        whole = every and trajectory.complete and None not in steps
        found += [read(trajectory.final_metrics.get(total_name)), sum(steps) if whole else None]
    known = [number for number in found if number is not None]
    zero_will_do = known and (of_step == "cached_tokens" or part.turns == 0)
    return next((number for number in known if number), known[0] if zero_will_do else None)


def total_cost(parts: list[Part]) -> float | None:
    """Dollars over all segments; a zero stands for want of a price."""
    costs = [_recorded(part, "cost_usd", "total_cost_usd", "cost_usd", dollars) for part in parts]
    known = [cost for cost in costs if cost]
    return sum(known) if len(known) == len(parts) else None


def smallest_reward(parts: list[Part]) -> float | None:
    """The smallest reward over all segments, as all must pass (Eq. 2)."""
    rewards = [reward_of(part.rewards) for part in parts]
    known = [reward for reward in rewards if reward is not None]
    return min(known) if len(known) == len(rewards) else None


def last_rewards(parts: list[Part]) -> dict[str, float] | None:
    """All keys of the last segment that was verified."""
    return next((kept for part in reversed(parts) if (kept := rewards_kept(part.rewards))), None)


def total(values: list[int | None]) -> int | None:
    """Sum, or ``None`` if any value is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _first_error(result: dict[str, Any], parts: list[Part]) -> dict[str, Any] | None:
    """The trial's own error, or the first of its segments, where Harbor puts those it survived."""
    for record in [result, *(part.record for part in parts)]:
        error = record.get("exception_info")
        if isinstance(error, dict):
            return error
    return None


def _stop_of_error(kind: str, error: dict[str, Any]) -> Stop:
    if kind in _STOP_OF_ERROR:
        return _STOP_OF_ERROR[kind]
    # Python ends a traceback with the full name of the error.
    last = str(error.get("exception_traceback") or "").rstrip().rsplit("\n", 1)[-1]
    return "model_error" if last.startswith("litellm.") else "infrastructure"


def _how_it_ended(result: dict[str, Any], last: Part) -> tuple[Stop, str | None]:
    """Why the agent stopped, when no error was recorded and the state was verified."""
    facts = _own_facts(last)
    match facts.get("end"):
        case "submitted":
            return "submitted", None
        case "turns_used":
            return ("turn_cap" if facts.get("cap") else "turn_ceiling"), None
        case "terminal_broken":
            return "terminal_broken", None
    if last.trajectory.confirmed:
        return "submitted", None
    limit = _max_turns(result)
    turns = last.turns
    if limit is not None and turns is not None and turns >= limit:
        return "turn_ceiling", None
    # terminus-2 counts an episode before it finds that its tmux session is gone.
    episodes = count(_metadata(last.context).get("n_episodes"))
    steps = sum(step.source == "agent" for step in last.trajectory.steps)
    if last.trajectory.complete and episodes == steps + 1:
        return "terminal_broken", "the agent ended in a turn without a reply, its terminal gone"
    missing = "; ".join(last.trajectory.problems) or "no confirmed completion in the trajectory"
    return "unknown", f"how the agent ended is not recorded ({one_line(missing, 160)})"


def _max_turns(result: dict[str, Any]) -> int | None:
    config = result.get("config")
    agent = config.get("agent") if isinstance(config, dict) else None
    options = agent.get("kwargs") if isinstance(agent, dict) else None
    if not isinstance(options, dict):
        return None
    limits = (count(options.get(name)) for name in ("max_turns", "max_episodes", "episodes"))
    return next((limit for limit in limits if limit), None)


def _metadata(context: dict[str, Any]) -> dict[str, Any]:
    metadata = context.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _own_facts(part: Part) -> dict[str, Any]:
    facts = _metadata(part.context).get("depthkit")
    return facts if isinstance(facts, dict) else {}
