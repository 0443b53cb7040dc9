"""The records of depthkit: what a task, a run, a turn and a replay are.

Types only: nothing here reads a file or knows how depth follows from runs (that is
``depthkit.protocol``). Records are immutable; a field that could not be determined is ``None``,
never a guess. Sections cited are those of the Depth paper.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

Provenance = Literal["measured", "scripted", "imported", "fitted"]
"""Where a row comes from: a real model, a scripted policy, somebody else's run, or a fit."""

Group = Literal["synthetic", "human-curated", "ours"]
"""How a data set was made (Table 1)."""

Purpose = Literal["free", "ladder", "evaluation", "merged", "progress", "generation"]
"""Why a run was started; only ``free`` and ``ladder`` runs enter an estimate of depth."""

Verdict = Literal["passed", "failed", "none"]
"""What the verifier said; ``none`` is no result and is never counted as a failure."""

Stop = Literal[
    "submitted",
    "turn_cap",
    "turn_ceiling",
    "time_limit",
    "terminal_broken",
    "refused",
    "model_error",
    "infrastructure",
    "budget",
    "cancelled",
    "unknown",
]
"""Why a run ended. Independent of the verdict: a run that timed out can have passed. ``unknown``:
there is a verdict, but nobody recorded how the agent ended."""

NO_RESULT_STOPS: frozenset[Stop] = frozenset(
    {"refused", "model_error", "infrastructure", "budget", "cancelled"}
)
"""Stops after which there is no verdict: the run is retried or left out of denominators."""

Change = Literal[
    "checks_before_work",
    "previous_segment_skipped",
    "event_removed",
    "key_step_removed",
    "key_step_removed_next_run",
]
"""What a replay changes in the reference solution: the five rows of Table 8."""


class Record(BaseModel):
    """Base of all records: immutable, and unknown fields are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Work(Record):
    """Work of a script, by the three measures of Appendix D.

    ``lines`` are physical lines that are neither blank nor comments, ``tokens`` o200k_base
    tokens of the script as it is, ``chars`` its characters.
    """

    lines: int = Field(ge=0)
    tokens: int = Field(ge=0)
    chars: int = Field(ge=0)

    def __add__(self, other: Work) -> Work:
        """Sum over segments."""
        return Work(
            lines=self.lines + other.lines,
            tokens=self.tokens + other.tokens,
            chars=self.chars + other.chars,
        )


class Segment(Record):
    """One segment of a task; a single-instruction task has one, numbered 1."""

    index: int = Field(ge=1)
    name: str
    work: Work | None = None
    """``None`` where no reference solution is released."""
    instruction_words: int | None = Field(default=None, ge=0)
    names_stated: int | None = Field(default=None, ge=0)
    key_steps: int | None = Field(default=None, ge=0)
    events: int | None = Field(default=None, ge=0)


class Task(Record):
    """A task as the corpus keeps it (``tasks.jsonl``)."""

    dataset: str
    task_id: str
    group: Group | None = None
    segments: tuple[Segment, ...] = Field(min_length=1)
    author_rating: str | None = None
    """Difficulty given by the person who wrote the task."""
    generated_label: str | None = None
    """Difficulty label set during generation."""
    category: str | None = None
    sampling_group: str | None = None
    seed_env: str | None = None
    parent: str | None = None
    """``task_id`` this one was merged or derived from."""
    parent_dataset: str | None = None
    """Data set of ``parent``; ``None`` where its name alone is known."""
    public_pass_rate: float | None = Field(default=None, ge=0, le=1)
    public_pass_rate_source: str | None = None
    digest: str | None = None
    """Digest of the task directory's contents."""
    provenance: Provenance

    @property
    def k(self) -> int:
        """Number of segments."""
        return len(self.segments)

    def made_from(self, dataset: str, task_id: str) -> bool:
        """Whether a task is the parent; by its name alone where the data set is not known."""
        return self.parent == task_id and self.parent_dataset in (None, dataset)

    @property
    def work(self) -> Work | None:
        """Work summed over segments; ``None`` if any segment has no reference solution."""
        total = Work(lines=0, tokens=0, chars=0)
        for segment in self.segments:
            if segment.work is None:
                return None
            total = total + segment.work
        return total


class Run(Record):
    """One run of one model on one task (``runs.jsonl``)."""

    run_id: str
    dataset: str
    task_id: str
    model: str
    agent: str | None = None
    """The agent, where it is another than terminus-2; such a run never enters an estimate of depth,
    and ``model`` names both."""
    cap: int | None = Field(default=None, ge=1)
    """The stated turn cap; ``None`` when none was stated."""
    attempt: int = Field(ge=1)
    """1 for the first run of its kind, 2 for the second; a retried run keeps its attempt."""
    purpose: Purpose
    verdict: Verdict
    stop: Stop
    suspect: bool = False
    """The verdict may be forged; such a run never counts as a pass."""
    confirmed: bool | None = None
    """Whether the same files passed where none of the agent's processes run; ``None`` where the
    run did not pass or the two were not compared."""
    stop_segment: int | None = Field(default=None, ge=1)
    segments_passed: int | None = Field(default=None, ge=0)
    reward: float | None = None
    rewards: dict[str, FiniteFloat] | None = None
    """All keys as the verifier of the last verified segment gave them."""
    turns: int | None = Field(default=None, ge=0)
    first_claim_turn: int | None = Field(default=None, ge=1)
    """Turn of the first completion claim (early submission, Figure 14)."""
    agent_minutes: float | None = Field(default=None, ge=0)
    """Wall time of the agent phase, waiting for the model included."""
    context_tokens: int | None = Field(default=None, ge=0)
    """Tokens in the context at the end of the run."""
    input_tokens: int | None = Field(default=None, ge=0)
    cached_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    command_lines: int | None = Field(default=None, ge=0)
    """Non-blank lines of all commands sent, file content included (Appendix D)."""
    cost_usd: float | None = Field(default=None, ge=0)
    """``None`` when unknown, never zero for want of a price."""
    started: datetime | None = None
    harness_digest: str | None = None
    task_digest: str | None = None
    image_digest: str | None = None
    training_samples: int | None = Field(default=None, ge=0)
    """Samples for fine-tuning that were built from this run (Section 4.6, Appendix J)."""
    depth_before: int | None = Field(default=None, ge=1)
    """Of a merged run: D of the task before merging, by the same model, from which it is measured
    downward; 99 is above the largest cap, and the largest cap then comes first (Appendix H)."""
    detail: str | None = None
    """One line on why there is no result, or on what is doubtful."""
    provenance: Provenance

    @model_validator(mode="after")
    def _verdict_fits_stop(self) -> Run:
        if self.stop in NO_RESULT_STOPS and self.verdict != "none":
            raise ValueError(
                f"verdict is {self.verdict!r} but stop {self.stop!r} gives no result; "
                "it must be 'none'"
            )
        return self

    @property
    def valid(self) -> bool:
        """Whether this run is a result."""
        return self.verdict != "none"

    @property
    def passed(self) -> bool:
        """Whether this run counts as a pass: a passing verdict that is not suspect."""
        return self.verdict == "passed" and not self.suspect


class Turn(Record):
    """One model reply that drives the terminal (Section 2)."""

    run_id: str
    turn: int = Field(ge=1)
    segment: int = Field(default=1, ge=1)
    commands: int | None = Field(default=None, ge=0)
    """Commands in the reply; ``None`` when the reply did not parse."""
    model_seconds: float | None = Field(default=None, ge=0)
    terminal_seconds: float | None = Field(default=None, ge=0)
    input_tokens: int | None = Field(default=None, ge=0)
    cached_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    cost_usd: float | None = Field(default=None, ge=0)
    observation_bytes: int | None = Field(default=None, ge=0)
    parse_error: bool = False
    cut_reply: bool = False
    summarization: bool = False
    """A context summarization happened within this turn."""
    completion_claim: bool = False


class Replay(Record):
    """A reference solution replayed with one part changed (Appendix F, Table 8)."""

    dataset: str
    task_id: str
    change: Change
    segment: int = Field(ge=1)
    event: int | None = Field(default=None, ge=1)
    checked_segment: int = Field(ge=1)
    holds: bool | None = None
    """Whether the checks reported a failure; ``None`` when there is no result."""
    reason: str | None = None
    """Why there is no result."""
    task_digest: str | None = None
    provenance: Provenance


class Checkpoint(Record):
    """A verifier result taken while a run goes on (LHTB 2.0)."""

    run_id: str
    minute: float = Field(ge=0)
    reward: float | None = None
    reason: str | None = None


class Estimate(Record):
    """What the runs of one task say about its depth (Section 3.1); derived, never stored by hand.

    ``D`` above the largest cap is 99 (:data:`depthkit.protocol.ABOVE`). All fields but
    ``lowest_passing_cap`` are ``None`` until the first model has two valid free runs.
    """

    dataset: str
    task_id: str
    solved: bool | None = None
    N: int | None = None
    R: float | None = None
    """Share of the two free runs of the first model that pass."""
    D: int | None = None
    D_by_model: dict[str, int | None] = Field(default_factory=dict)
    lowest_passing_cap: int | None = None
    final: bool = False
    """Whether no further run could change this estimate."""
