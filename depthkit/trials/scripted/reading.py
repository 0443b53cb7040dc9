"""How a scripted policy reads: the chat as terminus-2 sends it, and the English in the terminal.

A policy sees what a model sees. Everything here starts from message texts: the instruction in the
first message, terminal screens after it, and the policy's own earlier replies. Sentences that do
not read as expected are left out, never guessed at; names that go into a shell command are held
to letters, digits, ``.``, ``_`` and ``-``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TERMINAL_WIDTH = 160
"""Columns of terminus-2's terminal; a longer line arrives broken after this many characters."""

_PATH = r"/[\w./-]*\w"
_WORD = r"[A-Za-z0-9]+(?:[._-]+[A-Za-z0-9]+)*"
_CONFIRMATION = "Are you sure you want to mark the task as complete?"

# --- the chat ---


@dataclass(frozen=True)
class Chat:
    """One conversation, as far as it has come."""

    instruction: str
    screens: tuple[str, ...]
    """Terminal output of each message so far, the initial one included, as it came."""
    replies: tuple[Mapping[str, Any], ...]
    """Our own earlier replies."""
    asked_to_confirm: bool
    """Whether the last message asks if the task is really complete."""

    @property
    def screen(self) -> str:
        """All terminal output so far."""
        return "\n".join(self.screens)

    @property
    def text(self) -> str:
        """The same with the lines joined that the terminal broke, for reading sentences."""
        return unbroken(self.screen)

    @property
    def typed(self) -> str:
        """All keystrokes sent so far."""
        return "".join(
            command.get("keystrokes", "")
            for reply in self.replies
            for command in reply.get("commands", ())
        )


def read_chat(messages: Sequence[Mapping[str, Any]]) -> Chat:
    """Read the messages of one request, in the order of the request."""
    users = [_text(m) for m in messages if m.get("role") == "user"]
    first, rest = (users[0], users[1:]) if users else ("", [])
    task, _, terminal = first.partition("\nCurrent terminal state:")
    instruction = task.partition("Task Description:")[2] or task
    return Chat(
        instruction=instruction.strip(),
        screens=(terminal, *rest),
        replies=tuple(_reply(_text(m)) for m in messages if m.get("role") == "assistant"),
        asked_to_confirm=bool(rest) and _CONFIRMATION in rest[-1],
    )


def _text(message: Mapping[str, Any]) -> str:
    """Text of a message, whose content is a string or a list of typed parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _reply(text: str) -> Mapping[str, Any]:
    """One of our own replies; one that was cut on its way ran no command."""
    try:
        reply = json.loads(text)
    except json.JSONDecodeError:
        return {}
    return reply if isinstance(reply, dict) else {}


def unbroken(screen: str) -> str:
    """Join lines that the terminal broke at its width.

    A line that just fills the width looks broken too; what follows it tells, where it is the
    beginning of a step, of an item or of a prompt.
    """
    begins = r"Step \d|- the |\S+@\S+:"
    return re.sub(rf"(?m)^(.{{{TERMINAL_WIDTH}}})\n(?!{begins})", r"\1", screen)


# --- the instruction ---


def files_to_read(instruction: str) -> list[str]:
    """Text files that the instruction names, but for those it asks to write to."""
    written = set(re.findall(rf"\b(?:to|into)\s+`?({_PATH}\.txt)\b", instruction))
    named = re.findall(rf"({_PATH}\.txt)\b", instruction)
    return [path for path in dict.fromkeys(named) if path not in written]


def answers_directory(instruction: str) -> str | None:
    """Where the answers to listed steps go: the directory in a path such as ``/app/answers/i``."""
    match = re.search(rf"({_PATH})/(?:i|N|1|<\w+>|\{{\w+\}})(?!\.?\w)", instruction)
    return match[1] if match else None


# --- selections ---


@dataclass(frozen=True)
class Selection:
    """Which seal to take, as an awk program over the tab-separated columns of a data file."""

    awk: str
    answer_to: int | None = None
    """Step whose answer is the name sought; the program knows it as ``q``."""

    def command(self, path: str, answer: str = "") -> str:
        """One shell command that prints the seal.

        Args:
            path: Data file with the columns name, zone, weight and seal.
            answer: Shell word that gives the answer sought, where one is.
        """
        variable = "" if self.answer_to is None else f"-v q={answer} "
        return f"awk -F'\\t' {variable}'{self.awk}' {path}"


def read_selection(phrase: str) -> Selection | None:
    """Read one English selection, such as ``of the row with the largest weight``."""
    words = " ".join(phrase.split())
    for pattern, program in _SELECTIONS:
        match = re.fullmatch(pattern, words)
        if match is None:
            continue
        found = {key: value for key, value in match.groupdict().items() if value is not None}
        if "step" in found:
            # Text on both sides: seals of digits alone must not be compared as numbers.
            return Selection(program.format(name='q""', **found), int(found["step"]))
        if "name" in found:
            found["name"] = f'"{found["name"]}"'
        if "extreme" in found:
            found["order"] = ">" if found["extreme"] == "largest" else "<"
        return Selection(program.format(**found))
    return None


_NAME = rf"(?:the answer to step (?P<step>\d+)|(?P<name>{_WORD}))"
_EXTREME = "(?P<extreme>largest|smallest)"
_SELECTIONS: tuple[tuple[str, str], ...] = (
    (f"of the row whose name is {_NAME}", "$1=={name}{{print $4;exit}}"),
    (
        f"of the row right after the one whose name is {_NAME}",
        "found{{print $4;exit}} $1=={name}{{found=1}}",
    ),
    (r"on line (?P<line>\d+)", "NR=={line}{{print $4;exit}}"),
    (
        f"of the first row whose zone is (?P<zone>{_WORD})",
        '$2=="{zone}"{{print $4;exit}}',
    ),
    (
        f"of the last row whose zone is (?P<zone>{_WORD})",
        '$2=="{zone}"{{seal=$4}} END{{print seal}}',
    ),
    (
        f"of the row with the {_EXTREME} weight",
        "NR==1||$3+0{order}best{{best=$3+0;seal=$4}} END{{print seal}}",
    ),
    (
        f"of the row with the {_EXTREME} weight whose zone is (?P<zone>{_WORD})",
        '$2=="{zone}"&&(seal==""||$3+0{order}best){{best=$3+0;seal=$4}} END{{print seal}}',
    ),
)


# --- steps ---


@dataclass(frozen=True)
class ListedStep:
    """A step of a list that can be read from the start: one seal, by itself the answer."""

    path: str
    selection: Selection


@dataclass(frozen=True)
class LockedStep:
    """A step whose answer, seals joined with hyphens, opens the next one or ends the task."""

    path: str
    selections: tuple[Selection, ...]
    opens: tuple[str, int] | None
    """Command and number of the next step."""
    answer_file: str | None
    """Where the answer to the last step goes."""


def listed_steps(screen: str) -> dict[int, ListedStep]:
    """Steps such as ``Step 3. From FILE take the seal on line 7.``, by number."""
    steps = {}
    for number, path, phrase in _LISTED.findall(screen):
        if (selection := read_selection(phrase)) is not None:
            steps[int(number)] = ListedStep(path, selection)
    return steps


def locked_steps(screen: str) -> dict[int, LockedStep]:
    """Steps printed when they are opened, by number."""
    steps = {}
    for match in _LOCKED.finditer(screen):
        phrases = re.findall(r"- the seal (.+)", match["items"])
        selections = [read_selection(phrase) for phrase in phrases]
        known = tuple(selection for selection in selections if selection is not None)
        if len(known) == len(selections):
            steps[int(match["number"])] = LockedStep(
                path=match["path"],
                selections=known,
                opens=(match["command"], int(match["next"])) if match["command"] else None,
                answer_file=match["file"],
            )
    return steps


# A break that replaced a space at the terminal's edge reads as a space. Brackets stand in the
# notice that output was left out, so a sentence cut by it does not match.
_LISTED = re.compile(
    rf"^Step (\d+)\.\s+From\s+({_PATH})\s+take\s+the\s+seal\s+([^\[\]]+?)\.[ \t]*$", re.MULTILINE
)
_LOCKED = re.compile(
    rf"^Step (?P<number>\d+)\s+From\s+(?P<path>{_PATH})\s+take\s+these\s+seals\s+and\s+join\s+"
    r"them\s+with\s+hyphens,\s+in\s+this\s+order:\s+"
    r"(?P<items>(?:- the seal [^\n]+\s+)+)"
    rf"(?:Open the next step with: (?P<command>{_PATH}) (?P<next>\d+) ANSWER"
    rf"|Write the answer to (?P<file>{_PATH}))",
    re.MULTILINE,
)
