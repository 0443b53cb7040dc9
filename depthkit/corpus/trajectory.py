"""Read what an agent did: ATIF trajectories (1.0 to 1.8) with their continuations.

One run leaves ``trajectory.json``, after summarizations with linear history also
``trajectory.cont-1.json`` and so on, and one ``trajectory.summarization-…`` file for each model
call that a summarization made. The reader never fails: what is missing, cut off or not ATIF is
listed in :attr:`Trajectory.problems`, and counts that depend on it are ``None``.

Everything read here is untrusted text; nothing is executed, and no path found inside a file is
opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from depthkit.corpus.files import (
    UnreadableError,
    count,
    dollars,
    one_line,
    parse_json,
    read_inside,
    timestamp,
)
from depthkit.model import Turn

# What terminus-2 puts before the terminal's output when a reply did not parse. Warnings about a
# reply that did parse begin differently and are no errors.
_PARSE_ERROR = "Previous response had parsing errors"
# What terminus-2 makes up when no model call succeeds: a step, but no reply of the model.
_STAND_IN = "Technical difficulties."
TERMINUS = "terminus-2"
_CLAIM_TOOL = "mark_task_complete"
_VERSION = re.compile(r"ATIF-v1\.\d+")
_XML_CLAIM = re.compile(r"<task_complete>\s*true\s*</task_complete>", re.IGNORECASE)


@dataclass(frozen=True)
class Step:
    """One step of a trajectory, copied context left out."""

    source: str
    message: str
    timestamp: datetime | None
    reasoning: str | None = None
    keystrokes: tuple[str, ...] | None = None
    """Commands of a reply as typed; ``None`` when it did not parse or none are recorded."""
    waits: tuple[float | None, ...] = ()
    """Seconds that the reply gives each of them; ``None`` where it names none."""
    observation: str | None = None
    parse_error: bool = False
    claim: bool = False
    """The reply marks the task complete."""
    reply: bool = False
    """A reply of the model that drives the terminal: a turn."""
    calls: int | None = 1
    """Model calls that a reply stands for; ``None`` where another agent does not say."""
    summarization_calls: tuple[str, ...] = ()
    """Of a summarization step: the files of the model calls it made."""
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True)
class Trajectory:
    """The steps of one run in order, over all continuation files."""

    steps: tuple[Step, ...] = ()
    version: str | None = None
    agent: str | None = None
    model: str | None = None
    complete: bool = False
    """All files were there, whole and ATIF."""
    problems: tuple[str, ...] = ()
    summarization_calls: frozenset[str] = frozenset()
    """Files of model calls made by summarizations, found on disk or named by a step."""
    final_metrics: dict[str, Any] = field(default_factory=dict)
    """Totals of the last file, the summarization calls not included."""

    @property
    def replies(self) -> list[Step]:
        """The replies that drive the terminal, in order."""
        return [step for step in self.steps if step.reply]

    @property
    def first_claim_turn(self) -> int | None:
        """Turn of the first completion claim."""
        claims = (turn for turn, step in enumerate(self.replies, start=1) if step.claim)
        return next(claims, None)

    @property
    def confirmed(self) -> bool:
        """Whether the last reply confirms a completion claim, as terminus-2 asks for.

        A reply that does not parse leaves an open claim open; one that goes on working takes it
        back.
        """
        replies = self.replies
        if not replies or not replies[-1].claim:
            return False
        for step in reversed(replies[:-1]):
            if not step.parse_error:
                return step.claim
        return False

    @property
    def parse_errors(self) -> int:
        """Replies that did not parse."""
        return sum(step.parse_error for step in self.replies)

    @property
    def command_lines(self) -> int | None:
        """Non-blank lines of all commands; ``None`` where steps are missing or type none."""
        if not self.complete or self.agent not in (None, TERMINUS):
            return None
        return sum(lines_typed(step.keystrokes or ()) for step in self.replies)

    @property
    def context_tokens(self) -> int | None:
        """Tokens in the context at the end: prompt and completion of the last recorded reply."""
        replies = self.replies
        if not replies or replies[-1].input_tokens is None or replies[-1].output_tokens is None:
            return None
        return replies[-1].input_tokens + replies[-1].output_tokens

    def turns(self, run_id: str, request_ms: list[float] | None = None) -> list[Turn]:
        """One record a reply.

        Args:
            run_id: Run the turns belong to.
            request_ms: Recorded times of all successful model requests in milliseconds, those of
                summarizations included; used for the seconds only when their number fits.

        Returns:
            Turns numbered from 1. A reply whose step was never written, because the run died while
            its commands ran, counts in ``Run.turns`` but has no record here.
        """
        times = self._request_seconds(request_ms)
        turns: list[Turn] = []
        before: datetime | None = None
        waited = 0.0
        summarized = False
        for index, step in enumerate(self.steps):
            if step.summarization_calls or step.source == "system":
                summarized = summarized or bool(step.summarization_calls)
                waited += sum(times.get(index, []))
                continue
            if not step.reply:
                before = before or step.timestamp
                continue
            model = sum(times[index]) if index in times else None
            terminal = None
            if model is not None and before is not None and step.timestamp is not None:
                span = (step.timestamp - before).total_seconds() - model - waited
                terminal = round(span, 3) if span >= 0 else None
            turns.append(
                Turn(
                    run_id=run_id,
                    turn=len(turns) + 1,
                    commands=None if step.keystrokes is None else len(step.keystrokes),
                    model_seconds=None if model is None else round(model, 3),
                    terminal_seconds=terminal,
                    input_tokens=step.input_tokens,
                    cached_tokens=step.cached_tokens,
                    output_tokens=step.output_tokens,
                    cost_usd=step.cost_usd,
                    observation_bytes=None
                    if step.observation is None
                    else len(step.observation.encode("utf-8", "replace")),
                    parse_error=step.parse_error,
                    summarization=summarized,
                    completion_claim=step.claim,
                )
            )
            before, waited, summarized = step.timestamp, 0.0, False
        return turns

    def _request_seconds(self, request_ms: list[float] | None) -> dict[int, list[float]]:
        """Request times by step, if their number says which request belongs to which step."""
        wanted = [
            (index, len(step.summarization_calls) or int(step.reply))
            for index, step in enumerate(self.steps)
            if step.summarization_calls or step.reply
        ]
        expected = sum(count for _, count in wanted)
        # One more is the reply during whose commands the run ended.
        if request_ms is None or not 0 <= len(request_ms) - expected <= 1:
            return {}
        seconds = iter([ms / 1000 for ms in request_ms])
        return {index: [next(seconds) for _ in range(count)] for index, count in wanted}


def read_trajectory(path: Path, root: Path | None = None) -> Trajectory:
    """Read a trajectory and its continuations.

    Args:
        path: The main file, ``trajectory.json``; a prefix as in ``NAME.trajectory.json`` is taken
            to be shared by the files that belong to it.
        root: Directory that no file may lead out of; the file's own by default.
    """
    root = root or path.parent
    prefix = path.name.removesuffix("trajectory.json") if path.name != "trajectory.json" else ""
    beside = re.compile(re.escape(prefix) + r"trajectory\.cont-(\d{1,6})\.json")
    names = _names(path.parent)
    continued = sorted((int(match[1]), name) for name in names if (match := beside.fullmatch(name)))
    problems: list[str] = []
    steps: list[Step] = []
    documents: list[dict[str, Any]] = []
    if path.name not in names:
        problems.append(f"{path.name} is missing")
    numbers = [number for number, _ in continued]
    if numbers != list(range(1, len(numbers) + 1)):
        problems.append(f"continuation files are missing: only {numbers} are there")
    for name in [path.name] * (path.name in names) + [name for _, name in continued]:
        try:
            document = _document(path.parent / name, root)
        except FileNotFoundError:
            problems.append(f"{name} is missing")
            continue
        except UnreadableError as error:
            problems.append(str(error))
            continue
        documents.append(document)
        fresh = list(_steps(document))
        # A summarization that fails half-way makes terminus-2 write everything so far, once more,
        # into the next file.
        if steps and fresh[: len(steps)] == steps:
            steps = fresh
        else:
            steps += fresh
    if documents:
        wanted = documents[-1].get("continued_trajectory_ref")
        if isinstance(wanted, str) and wanted:
            problems.append(f"the trajectory goes on in {one_line(wanted, 80)}, which is missing")
    calls = {
        name.removeprefix(prefix)
        for name in names
        if name.startswith(f"{prefix}trajectory.summarization-") and name.endswith(".json")
    }
    calls.update(call for step in steps for call in step.summarization_calls)
    agents = [agent for d in documents if isinstance(agent := d.get("agent"), dict)]
    last = documents[-1] if documents else {}
    metrics = last.get("final_metrics")
    return Trajectory(
        steps=tuple(steps),
        version=_text(last.get("schema_version")) or None,
        agent=_text(agents[0].get("name")) or None if agents else None,
        model=_text(agents[0].get("model_name")) or None if agents else None,
        complete=bool(documents) and not problems,
        problems=tuple(problems),
        summarization_calls=frozenset(calls),
        final_metrics=metrics if isinstance(metrics, dict) else {},
    )


def lines_typed(keystrokes: Iterable[str]) -> int:
    """Non-blank lines of commands as typed, those of files written by them included."""
    return sum(bool(line.strip()) for typed in keystrokes for line in typed.splitlines())


def _names(directory: Path) -> set[str]:
    try:
        return {entry.name for entry in directory.iterdir()}
    except OSError:
        return set()


def _document(path: Path, root: Path) -> dict[str, Any]:
    document = parse_json(read_inside(path, root), path.name)
    if isinstance(document, list):
        raise UnreadableError(f"{path.name} is a plain list of messages, not ATIF")
    if not isinstance(document, dict) or not isinstance(document.get("steps"), list):
        raise UnreadableError(f"{path.name} is not ATIF: it has no list of steps")
    if not _VERSION.fullmatch(_text(document.get("schema_version"))):
        raise UnreadableError(
            f"{path.name} has schema_version "
            f"{one_line(json.dumps(document.get('schema_version')), 40)}; ATIF-v1.x is read"
        )
    return document


def _steps(document: dict[str, Any]) -> Iterator[Step]:
    raw = [step for step in document["steps"] if isinstance(step, dict)]
    agent = document.get("agent")
    other = isinstance(agent, dict) and agent.get("name") not in (None, TERMINUS)
    # Another agent may take several steps a call: what it used is written down with one of them.
    tells = any(_calls(step) is not None for step in raw if step.get("source") == "agent")
    for index, step in enumerate(raw):
        if step.get("is_copied_context"):
            continue
        source = _text(step.get("source"))
        message = _text(step.get("message"))
        at = timestamp(step.get("timestamp"))
        if source != "agent":
            yield Step(source, message, at, summarization_calls=tuple(_subagent_files(step)))
            continue
        observation = _observation(step)
        said = observation
        if said is None and index + 1 < len(raw) and raw[index + 1].get("source") == "user":
            said = _text(raw[index + 1].get("message"))
        parse_error = (said or "").startswith(_PARSE_ERROR)
        metrics = step.get("metrics")
        metrics = metrics if isinstance(metrics, dict) else {}
        tokens_in = count(metrics.get("prompt_tokens"))
        stand_in = parse_error and message.startswith(_STAND_IN) and not tokens_in
        calls = _calls(step) if other else int(step.get("llm_call_count") != 0)
        keystrokes, waits, claim = (None, (), False) if parse_error else _actions(step, message)
        yield Step(
            source,
            message,
            at,
            reasoning=_text(step.get("reasoning_content")) or None,
            keystrokes=keystrokes,
            waits=waits,
            observation=observation,
            parse_error=parse_error,
            claim=claim,
            reply=not stand_in and bool(calls or (other and not tells)),
            calls=calls,
            input_tokens=tokens_in or None,
            cached_tokens=count(metrics.get("cached_tokens")),
            output_tokens=count(metrics.get("completion_tokens")),
            cost_usd=dollars(metrics.get("cost_usd")),
        )


def _calls(step: dict[str, Any]) -> int | None:
    """Model calls that a step stands for, if it says so."""
    number = count(step.get("llm_call_count"))
    return 1 if number is None and step.get("metrics") else number


type _Actions = tuple[tuple[str, ...] | None, tuple[float | None, ...], bool]


def _actions(step: dict[str, Any], message: str) -> _Actions:
    """Keystrokes, their waits and the completion claim of a reply that parsed."""
    calls = step.get("tool_calls")
    if isinstance(calls, list):
        keystrokes: list[str] = []
        waits: list[float | None] = []
        claim = False
        for call in calls:
            if not isinstance(call, dict):
                continue
            if call.get("function_name") == _CLAIM_TOOL:
                claim = True
                continue
            arguments = call.get("arguments")
            typed = arguments.get("keystrokes") if isinstance(arguments, dict) else None
            keystrokes.append(
                typed if isinstance(typed, str) else json.dumps(arguments, default=str)
            )
            waits.append(_wait(arguments))
        return tuple(keystrokes), tuple(waits), claim
    # With raw content the message is the reply as the model wrote it, and there are no calls.
    start, end = message.find("{"), message.rfind("}")
    if start >= 0 and end > start and '"commands"' in message:
        try:
            reply = json.loads(message[start : end + 1])
        except (ValueError, RecursionError):
            return None, (), False
        if isinstance(reply, dict) and isinstance(reply.get("commands"), list):
            typed_by = [
                c.get("keystrokes") if isinstance(c, dict) else c for c in reply["commands"]
            ]
            waits_by = tuple(_wait(c) for c in reply["commands"])
            claimed = reply.get("task_complete") is True
            return tuple(str(typed) for typed in typed_by), waits_by, claimed
    if "<commands" in message:
        found = re.findall(r"<keystrokes[^>]*>(.*?)</keystrokes>", message, re.DOTALL)
        return tuple(found), (None,) * len(found), _XML_CLAIM.search(message) is not None
    return (), (), False


def _wait(command: object) -> float | None:
    seconds = command.get("duration") if isinstance(command, dict) else None
    return float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < 1e6 else None


def _observation(step: dict[str, Any]) -> str | None:
    results = _results(step)
    texts = [_text(result.get("content")) for result in results if "content" in result]
    return "\n".join(texts) if texts else None


def _subagent_files(step: dict[str, Any]) -> Iterator[str]:
    for result in _results(step):
        references = result.get("subagent_trajectory_ref")
        for number, reference in enumerate(references if isinstance(references, list) else []):
            if isinstance(reference, dict):
                name = _text(reference.get("trajectory_path")) or _text(reference.get("session_id"))
                yield name.rsplit("/", 1)[-1] or f"call {number}"


def _results(step: dict[str, Any]) -> list[dict[str, Any]]:
    observation = step.get("observation")
    results = observation.get("results") if isinstance(observation, dict) else None
    return [r for r in results if isinstance(r, dict)] if isinstance(results, list) else []


def _text(value: object) -> str:
    """Text of a message or an observation; the text parts of one with several parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = (part.get("text") for part in value if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return ""
