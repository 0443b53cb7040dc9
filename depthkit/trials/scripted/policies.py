"""Policies that stand in for a model: pure functions from the chat to a reply.

Two habits, for the calibration tasks of Appendix B. Both read the instruction and the terminal
output that terminus-2 sends and turn each English selection into a short awk command; neither
knows an answer. ``merge`` does all it can see in one batch and claims completion with it;
``step`` does one step a turn and claims completion in a turn of its own. Neither heeds a cap.

Then what tests need to play any endpoint: fixed replies and faults.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from depthkit.trials.scripted.reading import (
    Chat,
    ListedStep,
    LockedStep,
    answers_directory,
    files_to_read,
    listed_steps,
    locked_steps,
    read_chat,
)

Messages = Sequence[Mapping[str, Any]]
"""The ``messages`` of a chat completion request."""


@dataclass(frozen=True)
class Reply:
    """What the endpoint answers; a plain string is the same as ``Reply(content)``.

    With a ``status`` other than 200 it is an error whose message is ``content``. ``delay`` is in
    seconds before the answer; a very long one is a server that hangs. Some servers do not say
    how many tokens they counted: ``usage`` is false.
    """

    content: str
    finish_reason: str = "stop"
    status: int = 200
    delay: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    usage: bool = True


type Policy = Callable[[Messages], str | Reply]
"""Answers one request from its messages alone."""


# --- waits, in seconds: terminus-2 does not wait for a command to end, only this long ---

_READ = 0.4
_READ_EARLY = 3.0  # the shell itself is still starting
_WORK = 1.0  # a batch of awk commands
_UNLOCK = 1.5  # Python's start and one key derivation: 0.2 s, but several times that when busy
_LOOK = 0.2
_PAUSE = 2.0

_WAIT = "Wait for the output."
_TRY = "Look around and see whether that helps."
_GIVE_UP = "I could not make sense of what is on the screen, so I stop here."
_PATIENCE = 3
"""Turns of waiting and looking around in a row before giving up."""


def merge(messages: Messages) -> str:
    """As few turns as possible: everything that can be seen goes into one batch."""
    return _act(read_chat(messages), at_once=True)


def step(messages: Messages) -> str:
    """One step a turn, and a turn of its own for the claim of completion."""
    return _act(read_chat(messages), at_once=False)


POLICIES: Mapping[str, Policy] = MappingProxyType({"scripted-merge": merge, "scripted-step": step})
"""The policies by the name under which they are served."""


def _act(chat: Chat, *, at_once: bool) -> str:
    """Choose the next reply."""
    if chat.asked_to_confirm and chat.replies and chat.replies[-1].get("analysis") == _GIVE_UP:
        return _reply(_GIVE_UP, "Confirm.", complete=True)
    if not chat.replies:
        files = files_to_read(chat.instruction)
        if not files:
            return _idle(chat, "The instruction names no file to read.")
        ready = chat.screen.rstrip().endswith(("$", "#"))
        return _reply(
            "Nothing has been done yet.",
            "Read the task.",
            f"cat {' '.join(files)}",
            _READ if ready else _READ_EARLY,
        )
    if missing := _not_yet_shown(chat):
        return _idle(chat, f"There is no {missing} on the screen yet.", waiting=True)
    listed, locked = listed_steps(chat.text), locked_steps(chat.text)
    if listed:
        return _work_through_list(chat, listed, at_once=at_once)
    if locked:
        return _open_next(chat, max(locked), locked[max(locked)], at_once=at_once)
    waiting = not any(reply.get("plan") == _WAIT for reply in chat.replies)
    return _idle(chat, "I see no step that I understand.", waiting=waiting)


def _work_through_list(chat: Chat, steps: dict[int, ListedStep], *, at_once: bool) -> str:
    """Steps that are all in one file."""
    folder = answers_directory(chat.instruction)
    if folder is None:
        return _idle(chat, "The instruction does not say where the answers go.")
    gaps = sorted(set(range(1, max(steps))) - set(steps))
    if gaps:
        files = files_to_read(chat.instruction)
        command = f"sed -n '{gaps[0]},{gaps[-1]}p' {' '.join(files)}"
        if command in chat.typed:
            return _idle(chat, f"Step {gaps[0]} is not one that I understand.")
        return _reply(
            f"Steps {gaps[0]} to {gaps[-1]} were left out of the output.",
            "Read those lines again.",
            command,
            _READ,
        )
    done = {int(i) for i in re.findall(r"\banswer (\d+): \$", chat.typed)}
    done |= {int(i) for i in re.findall(r"^put (\d+) ", chat.typed, re.MULTILINE)}
    left = [number for number in sorted(steps) if number not in done]
    if not left:
        return _finish(chat, f"All {len(steps)} answers are written.", f"ls {folder}")
    if at_once:
        lines = [
            f"{{ mkdir -p {folder}",
            f'put() {{ printf %s "$2" > {folder}/$1; echo "answer $1: $2"; }}',
            *(f'put {number} "$({_seal(steps[number], folder)})"' for number in left),
            "}",
        ]
        return _reply(
            f"I see {len(left)} steps, each solved by one short command.",
            "Do all of them in one script; nothing remains after it.",
            "\n".join(lines),
            _WORK,
            complete=True,
        )
    number = left[0]
    return _reply(
        f"{len(left)} steps are left.",
        f"Do step {number}.",
        f"mkdir -p {folder}; a=$({_seal(steps[number], folder)}); "
        f'printf %s "$a" > {folder}/{number}; echo "answer {number}: $a"',
        _READ,
    )


def _seal(listed: ListedStep, folder: str) -> str:
    """Command that prints the seal of a listed step."""
    return listed.selection.command(listed.path, f'"$(cat {folder}/{listed.selection.answer_to})"')


def _open_next(chat: Chat, number: int, locked: LockedStep, *, at_once: bool) -> str:
    """The newest step of a chain in which each answer opens the next step."""
    seals = "-".join(f"$({selection.command(locked.path)})" for selection in locked.selections)
    if locked.opens is not None:
        command, following = locked.opens
        return _reply(
            f"Step {number} is open.",
            f"Answer it and open step {following}.",
            f'a={seals}; {command} {following} "$a"',
            _UNLOCK,
        )
    if f"> {locked.answer_file};" in chat.typed:
        return _finish(chat, "The last answer is written.", f"ls {locked.answer_file}")
    return _reply(
        f"Step {number} is the last one.",
        "Answer it and write the answer down.",
        f'a={seals}; printf %s "$a" > {locked.answer_file}; echo "last answer: $a"',
        _READ,
        complete=at_once,
    )


def _finish(chat: Chat, analysis: str, look: str) -> str:
    """Claim completion, or confirm it when asked."""
    if chat.asked_to_confirm:
        return _reply(analysis, "Confirm.", complete=True)
    return _reply(analysis, "Nothing remains; mark the task complete.", look, _LOOK, complete=True)


def _not_yet_shown(chat: Chat) -> str | None:
    """What the commands typed so far should have printed, but is not on the screen."""
    numbers = re.findall(r"^put (\d+) |\banswer (\d+): \$", chat.typed, re.MULTILINE)
    expected = [f"answer {written or one}" for written, one in numbers]
    if 'echo "last answer: $a"' in chat.typed:
        expected.append("last answer")
    for label in expected:
        # The echo of the command itself has "$" where the output has the seal. It may just fill a
        # row of the terminal, so this looks at the rows as they are.
        if not re.search(rf"^{label}: [0-9a-z-]+\s*$", chat.screen, re.MULTILINE):
            return label
    opened = re.findall(r'; /\S+ (\d+) "\$a"', chat.typed)
    unopened = {int(number) for number in opened} - set(locked_steps(chat.text))
    return f"step {min(unopened)}" if unopened else None


def _idle(chat: Chat, analysis: str, *, waiting: bool = False) -> str:
    """Wait, or issue a harmless command; give up after a few such turns in a row."""
    idle = itertools.takewhile(
        lambda reply: reply.get("plan") in (_WAIT, _TRY), reversed(chat.replies)
    )
    if len(list(idle)) >= _PATIENCE:
        return _reply(_GIVE_UP, "Claim completion.", complete=True)
    if waiting:
        return _reply(analysis, _WAIT, "", _PAUSE)
    return _reply(f"I do not understand this. {analysis}", _TRY, "pwd; ls", _LOOK)


def _reply(
    analysis: str,
    plan: str,
    command: str | None = None,
    duration: float = 0.0,
    *,
    complete: bool = False,
) -> str:
    """A reply in terminus-2's JSON. An empty command only waits."""
    commands = []
    if command is not None:
        keystrokes = f"{command}\n" if command else ""
        commands.append({"keystrokes": keystrokes, "duration": duration})
    return json.dumps(
        {"analysis": analysis, "plan": plan, "commands": commands, "task_complete": complete},
        indent=2,
    )


# --- for tests ---


def fixed_replies(replies: Sequence[str | Reply]) -> Policy:
    """A policy that answers turn i with the i-th of these, and every later one with the last.

    A turn is told by the number of assistant messages before it, so a request that is retried
    gets the same answer again; see :func:`after_faults` for faults that pass.
    """
    played = tuple(replies)
    if not played:
        raise ValueError("fixed_replies needs at least one reply")

    def policy(messages: Messages) -> str | Reply:
        turn = sum(message.get("role") == "assistant" for message in messages)
        reply: str | Reply = played[min(turn, len(played) - 1)]
        return reply

    return policy


def after_faults(faults: Sequence[Reply], policy: Policy) -> Policy:
    """A policy whose first requests, one each, meet these faults."""
    left = iter(tuple(faults))
    nothing = object()

    def faulty(messages: Messages) -> str | Reply:
        fault = next(left, nothing)
        return fault if isinstance(fault, Reply) else policy(messages)

    return faulty
