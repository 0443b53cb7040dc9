"""From what Harbor recorded of a trial to a verdict and a stop: read off, never guessed.

What makes a segment pass, and several of them, is said here for every run, our own and those that
somebody else ran (:mod:`depthkit.corpus.outcome`). Pure: the records go in, the judgement comes
out. A single-instruction task is a task of one segment.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from depthkit.model import Run, Stop, Verdict

TIME_LIMIT_ERROR = "AgentTimeoutError"
RUN_OVER_ERROR = "RunOverError"
VERIFIER_ERRORS = frozenset(
    {
        "RewardFileEmptyError",
        "RewardFileNotFoundError",
        "UnfitContainerError",
        "VerifierOutputParseError",
        "VerifierTimeoutError",
        "VerifierTooSlowError",
    }
)
"""Errors of a verifier that came to no number in a living container."""

ENDED_ERROR = "ContainerEndedError"
"""The container was ended from within: by the agent, once it has had a turn."""

STOP_OF_ERROR: dict[str, Stop] = {
    "CancelledError": "cancelled",
    "BudgetExceededError": "budget",
    "RefusedError": "refused",
    "ModelCallError": "model_error",
    "ContextLengthExceededError": "model_error",
}
"""Errors after which there is no result and the container is not to blame."""


@dataclass(frozen=True)
class SegmentRecord:
    """What Harbor recorded of one segment.

    Attributes:
        rewards: What the verifier gave; ``None`` if it did not run or gave nothing.
        error: Class name of the error that ended the segment; ``None`` if there was none.
        message: Its message.
        facts: What the agent said of itself (:meth:`CappedTerminus2.facts`).
    """

    rewards: Mapping[str, float] | None = None
    error: str | None = None
    message: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Judgement:
    """Verdict and stop of a run.

    Attributes:
        reward: 1 for a pass; below it the verifier's number in a task of one segment, the
            fraction of segments passed in a task of several. ``None`` without a verdict.
        stop_segment: Segment in which the run ended.
        segments_passed: Segments whose checks passed; ``None`` without a verdict.
        detail: One line on what is missing.
    """

    verdict: Verdict
    stop: Stop
    reward: float | None = None
    stop_segment: int | None = None
    segments_passed: int | None = None
    detail: str | None = None


def rewards_kept(rewards: object) -> dict[str, float] | None:
    """What a verifier gave, by key, less what is no finite number; ``None`` if it did not run."""
    if not isinstance(rewards, Mapping):
        return None
    numbers = {str(key): _number(value) for key, value in rewards.items()}
    return {key: number for key, number in numbers.items() if number is not None}


def reward_of(rewards: object) -> float | None:
    """One number of a verifier's rewards: ``reward`` decides where it is there, else the smallest.

    Harbor looks at ``reward`` too; without it every key is a check that must pass (Eq. 1).
    ``None`` where there is none, or one that would decide is no finite number.
    """
    if not isinstance(rewards, Mapping) or not rewards:
        return None
    numbers = list(map(_number, [rewards["reward"]] if "reward" in rewards else rewards.values()))
    known = [number for number in numbers if number is not None]
    return min(known) if len(known) == len(numbers) else None


def passes(rewards: object) -> bool | None:
    """Whether a segment passes: at a reward of 1, whatever less the task would be content with.

    ``None`` without a reward.
    """
    reward = reward_of(rewards)
    return None if reward is None else reward >= 1


def all_pass(segments: Sequence[bool | None]) -> bool | None:
    """Whether a run over segments passes: ``None`` unless one fails or each is known to pass."""
    return False if False in segments else None if None in segments or not segments else True


@dataclass(frozen=True)
class Passes:
    """The passes of some runs, those that rest on less counted apart.

    Attributes:
        counted: Runs that count as passes.
        unconfirmed: Of these, runs made here whose files were not seen to pass where none of the
            agent's processes run, as of every task that needs its daemons.
        suspect: Passes beside these that may be forged and do not count.
    """

    counted: int = 0
    unconfirmed: int = 0
    suspect: int = 0

    @classmethod
    def of(cls, runs: Iterable[Run]) -> Passes:
        """Those of these runs."""
        kinds = Counter(map(standing, runs))
        doubted = kinds["unconfirmed"]
        return cls(kinds["passed"] + doubted, doubted, kinds["suspect"])

    @property
    def apart(self) -> str:
        """What to say beside a number of passes; empty where there is nothing to say."""
        doubted = f" ({self.unconfirmed} unconfirmed)" if self.unconfirmed else ""
        return doubted + (f", {self.suspect} suspect" if self.suspect else "")

    @property
    def beside(self) -> str:
        """The same with the passes themselves, to stand behind a number of runs."""
        return f", {self.counted:,} passed{self.apart}" if self.apart else ""


def standing(run: Run) -> Literal["passed", "unconfirmed", "suspect"] | None:
    """How much a pass counts for (:class:`Passes`); ``None`` where a run did not pass."""
    if run.verdict != "passed":
        return None
    if run.suspect:
        return "suspect"
    ours = run.provenance in ("measured", "scripted")
    return "unconfirmed" if ours and run.confirmed is not True else "passed"


def _number(value: object) -> float | None:
    try:
        number = float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def judge(segments: Sequence[SegmentRecord], *, k: int) -> Judgement:
    """Judge one trial.

    An earlier segment counts only if it was marked complete; the last one is judged by the state
    it was left in. A segment marked complete in the last turn of the cap counts as passed, but the
    run fails, since the parts after it were not finished. A verifier that runs over its time or
    gives no reward although the container lives does not pass, nor does a container that the agent
    itself ended: what the agent did can bring that about, and a run is not to be made again until
    it comes out better. ``depthkit check`` tells whether the verifier works on the reference
    solution.

    Args:
        segments: The segments that were started, in order.
        k: Number of segments of the task.

    Returns:
        Judgement: ``none`` with the reason where there is no valid verdict.
    """
    started = [segment for segment in segments if segment.error != RUN_OVER_ERROR]
    passed = 0
    for number, segment in enumerate(started, start=1):
        ended = segment.error == ENDED_ERROR and bool(segment.facts.get("turns"))
        undecided = segment.error in VERIFIER_ERRORS or ended
        if segment.error not in (None, TIME_LIMIT_ERROR) and not undecided:
            return _no_result(segment, number)
        # A verifier only runs after an agent that ended as it should or was out of time.
        timed_out = segment.error == TIME_LIMIT_ERROR or (
            undecided and not ended and _broken_off(segment.facts)
        )
        if timed_out and (late := segment.facts.get("endpoint_silent")):
            # Whatever the state: the time was the endpoint's, so it says nothing of the model.
            line = f"the time limit came while the endpoint did not answer: {late}"
            return Judgement("none", "model_error", None, number, None, line)
        stop: Stop = "time_limit" if timed_out else _stop(segment.facts, ended=ended)
        marked = stop == "submitted"
        if number < k and not marked:
            return _failed(stop, number, passed, k)
        if undecided:
            return replace(_failed(stop, number, passed, k), detail=_line(segment))
        reward = reward_of(segment.rewards)
        if segment.rewards is None:
            return _no_result(segment, number)
        if reward is None or reward < 1:
            failed = _failed(stop, number, passed, k, reward or 0.0)
            return failed if reward is not None else replace(failed, detail=_line(segment))
        passed += 1
        if number == k:
            return Judgement("passed", stop, 1.0, number, passed)
    if not started:
        return _no_result(SegmentRecord(), 1)
    # The last segment that was started passed, and there was no turn left for the next one.
    if started[-1].facts.get("turns_left"):
        line = f"the trial ended after segment {len(started)} of {k}, though turns were left"
        return Judgement("none", "infrastructure", None, len(started), None, line)
    capped = started[-1].facts.get("cap") is not None
    return _failed("turn_cap" if capped else "turn_ceiling", len(started), passed, k)


def _failed(stop: Stop, segment: int, passed: int, k: int, reward: float = 0.0) -> Judgement:
    return Judgement("failed", stop, reward if k == 1 else passed / k, segment, passed)


def _no_result(segment: SegmentRecord, number: int) -> Judgement:
    stop = STOP_OF_ERROR.get(segment.error or "", "infrastructure")
    return Judgement("none", stop, None, number, None, _line(segment))


def _line(segment: SegmentRecord) -> str:
    error = segment.error
    line = f"{error}: {segment.message or ''}" if error else "the verifier gave no usable reward"
    return " ".join(line.split())[:500]


def _broken_off(facts: Mapping[str, Any]) -> bool:
    return facts.get("end") == "error"


def _stop(facts: Mapping[str, Any], *, ended: bool) -> Stop:
    match facts.get("end"):
        case "error" if ended:
            return "terminal_broken"  # before the verifier, and everything with it
        case "submitted":
            return "submitted"
        case "turns_used":
            return "turn_cap" if facts.get("cap") is not None else "turn_ceiling"
        case "terminal_broken":
            return "terminal_broken"
        case other:
            raise ValueError(f"the agent ended without an error but says {other!r}")
