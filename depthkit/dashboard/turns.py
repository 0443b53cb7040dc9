"""What happened in a run, turn by turn: replies and records brought together, and the playback."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from depthkit.corpus import Corpus, Step, Trajectory, read_trajectory
from depthkit.corpus.turns import agent_folders, read_turns
from depthkit.dashboard.playback import Playback, Timed
from depthkit.dashboard.playback import playback as playback_of
from depthkit.dashboard.trial import Trial
from depthkit.model import Turn

_PROSE = re.compile(r"Analysis:\s*(?P<analysis>.*?)\s*\n\s*Plan:\s*(?P<plan>.*)", re.DOTALL)


@dataclass(frozen=True)
class ShownTurn:
    """One turn.

    Attributes:
        number: From 1.
        segment: From 1.
        analysis: What the model says it sees.
        plan: What it means to do.
        message: The reply as it is where it is not made of analysis and plan.
        reasoning: Where the endpoint gives it.
        commands: Keystrokes and the seconds they are given; ``None`` if the reply did not parse.
        output: What the agent was shown next; ``None`` if that is not recorded.
        record: Tokens, cost, seconds and flags; ``None`` without a record.
        seconds: Where the turn begins in the recording; ``None`` without one.
    """

    number: int
    segment: int
    analysis: str = ""
    plan: str = ""
    message: str = ""
    reasoning: str = ""
    commands: tuple[tuple[str, float | None], ...] | None = ()
    output: str | None = None
    record: Turn | None = None
    seconds: float | None = None

    @property
    def flags(self) -> list[str]:
        """What is out of the ordinary: ``parse error``, ``reply cut``, and so on."""
        record = self.record
        if record is None:
            return []
        named = {
            "parse error": record.parse_error,
            "reply cut": record.cut_reply,
            "summarization": record.summarization,
            "completion claim": record.completion_claim,
        }
        return [name for name, holds in named.items() if holds]

    def texts(self) -> dict[str, str]:
        """All that can be searched, by what it is."""
        typed = "\n".join(keys for keys, _ in self.commands or ())
        return {
            "reasoning": self.reasoning,
            "analysis": self.analysis,
            "plan": self.plan,
            "reply": self.message,
            "commands": typed,
            "output": self.output or "",
        }


@dataclass(frozen=True)
class Between:
    """What stands before a turn: a message to the agent, a summarization, a new segment.

    Attributes:
        before: Number of the turn it stands before; one beyond the last for what comes after all.
        kind: ``message``, ``summarization`` or ``segment``.
        text: What was said.
        files: Trajectories of the model calls of a summarization, by name within the trial.
    """

    before: int
    kind: str
    text: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Course:
    """All that a run left of its course.

    Attributes:
        turns: In order.
        between: In order of where they stand.
        problems: What is missing or could not be read.
        segments: Their names, where the trial names them.
        plays: Whether there is a recording that can be played.
        facts: What the trajectory says about itself: agent, version, model.
    """

    turns: tuple[ShownTurn, ...] = ()
    between: tuple[Between, ...] = ()
    problems: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()
    plays: bool = False
    facts: dict[str, str] = field(default_factory=dict)


def course(corpus: Corpus, run_id: str, *, playback: bool = True) -> Course:
    """What happened in a run.

    Args:
        corpus: Where it is.
        run_id: The run.
        playback: Also find where each turn begins in the recording.
    """
    trial = Trial(corpus, run_id)
    if trial.path is None:
        return Course(problems=(trial.problem or "",))
    result = trial.result()
    folders = agent_folders(trial.path, result)
    names = [_segment_name(trial.path, folder) for folder, _ in folders]
    read = functools.cache(lambda path: read_trajectory(path, corpus.path))  # both need it
    records = read_turns(trial.path, run_id, corpus.path, read)
    by_segment = _by_folder(records, len(folders))
    turns: list[ShownTurn] = []
    between: list[Between] = []
    problems: list[str] = []
    facts: dict[str, str] = {}
    ends: list[datetime | None] = []
    counts: list[int] = []
    for index, (folder, _) in enumerate(folders):
        found = read(folder / "trajectory.json")
        problems += [f"{names[index]}: {p}" if names[index] else p for p in found.problems]
        facts |= _facts(found)
        if len(folders) > 1:
            between.append(Between(len(turns) + 1, "segment", names[index]))
        inside = folder.relative_to(trial.path).as_posix()
        before = len(turns)
        _walk(found, by_segment[index], index + 1, inside, turns, between, ends)
        counts.append(len(turns) - before)
    if records and len(records) != len(turns):
        problems.append(
            f"{len(records)} turns are recorded, but the trajectory holds {len(turns)} replies"
        )
    plays = False
    if playback and trial.recordings():
        play = playback_of(trial)
        plays = bool(play.parts)
        problems += play.problems
        turns = _with_starts(turns, ends, counts, play)
    named = tuple(name for name in names if name)
    return Course(tuple(turns), tuple(between), tuple(problems), named, plays, facts)


def _with_starts(
    turns: list[ShownTurn], ends: list[datetime | None], counts: list[int], play: Playback
) -> list[ShownTurn]:
    """Turns with their places in the playback; ``counts`` is how many each folder has."""
    found: list[ShownTurn] = []
    for segment, count in enumerate(counts):
        mine = slice(len(found), len(found) + count)
        timed = [
            Timed(
                end,
                turn.record.terminal_seconds if turn.record else None,
                tuple(keys for keys, _ in turn.commands or ()),
            )
            for turn, end in zip(turns[mine], ends[mine], strict=True)
        ]
        found += [
            replace(turn, seconds=at)
            for turn, at in zip(turns[mine], play.starts(segment, timed), strict=True)
        ]
    return found


def _walk(
    found: Trajectory,
    records: list[Turn],
    segment: int,
    folder: str,
    turns: list[ShownTurn],
    between: list[Between],
    ends: list[datetime | None],
) -> None:
    """Add the turns of one trajectory, and what stands between them."""
    replies = 0
    for step in found.steps:
        if step.reply:
            record = records[replies] if replies < len(records) else None
            number = len(turns) + 1
            if record is not None and turns and record.segment != turns[-1].segment and replies:
                between.append(Between(number, "segment", ""))
            turns.append(_turn(step, record, number, record.segment if record else segment))
            ends.append(step.timestamp)
            replies += 1
        elif step.summarization_calls:
            prefix = "" if folder == "." else f"{folder}/"
            files = tuple(f"{prefix}{name}" for name in step.summarization_calls)
            between.append(Between(len(turns) + 1, "summarization", step.message, files))
        elif step.message.strip():
            between.append(Between(len(turns) + 1, "message", step.message))


def _turn(step: Step, record: Turn | None, number: int, segment: int) -> ShownTurn:
    analysis, plan, message = _prose(step.message)
    waits = (*step.waits, *[None] * len(step.keystrokes or ()))
    commands = None
    if step.keystrokes is not None:
        commands = tuple(zip(step.keystrokes, waits, strict=False))
    return ShownTurn(
        number,
        segment,
        analysis,
        plan,
        message,
        step.reasoning or "",
        commands,
        step.observation,
        record or _record(step, number, segment),
    )


def _record(step: Step, number: int, segment: int) -> Turn:
    """What the trajectory alone says of a turn."""
    return Turn(
        run_id="",
        turn=number,
        segment=segment,
        commands=None if step.keystrokes is None else len(step.keystrokes),
        input_tokens=step.input_tokens,
        cached_tokens=step.cached_tokens,
        output_tokens=step.output_tokens,
        cost_usd=step.cost_usd,
        parse_error=step.parse_error,
        completion_claim=step.claim,
    )


def _prose(message: str) -> tuple[str, str, str]:
    """Analysis, plan, and the message itself where it is something else."""
    if match := _PROSE.fullmatch(message.strip()):
        return match["analysis"], match["plan"], ""
    start, end = message.find("{"), message.rfind("}")
    if start >= 0 and '"analysis"' in message:
        try:
            reply = json.loads(message[start : end + 1])
        except (ValueError, RecursionError):
            return "", "", message
        if isinstance(reply, dict):
            parts = [reply.get(name) for name in ("analysis", "plan")]
            if all(isinstance(part, str) for part in parts):
                return str(parts[0]), str(parts[1]), ""
    return "", "", message


def _by_folder(records: list[Turn], folders: int) -> list[list[Turn]]:
    """Records of each agent folder; with one folder it has those of all segments."""
    if folders <= 1:
        return [records]
    return [[r for r in records if r.segment == n + 1] for n in range(folders)]


def _segment_name(trial: Path, folder: Path) -> str:
    parts = folder.relative_to(trial).parts
    return parts[1] if len(parts) > 1 and parts[0] == "steps" else ""


def _facts(found: Trajectory) -> dict[str, str]:
    named: dict[str, Any] = {
        "agent": found.agent,
        "model": found.model,
        "trajectory": found.version,
    }
    return {name: str(value) for name, value in named.items() if value}
