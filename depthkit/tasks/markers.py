"""Marks in a reference solution: which lines are its key step, and which its events (Appendix F).

A mark is a comment line of its own, outside quotes and here-documents:

    # key-step: begin
    …
    # key-step: end
    # event: begin restart of the broker
    …
    # event: end

Blocks do not overlap. A segment may have several blocks of its key step; they are removed together,
events one at a time. The words after ``begin`` are for people.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from depthkit.tasks.bash import comment_lines

type Kind = Literal["key-step", "event"]

_MARK = re.compile(r"\s*#\s(key-step|event): (begin|end)(?:\s+(\S.*?))?\s*\Z")
_NEARLY = re.compile(
    r"\s*#+\s*(?:key[-_ ]?step|event)s?\s*[:-]?\s*(?:begin|start|end|stop)\b", re.I
)


@dataclass(frozen=True)
class Block:
    """Marked lines.

    Attributes:
        kind: What they are.
        first: Line of the mark before them, from 1.
        last: Line of the mark after them.
        label: What the first mark says beside, if anything.
    """

    kind: Kind
    first: int
    last: int
    label: str = ""


@dataclass(frozen=True)
class Marks:
    """Blocks in order, and what is wrong with marks, by line."""

    blocks: tuple[Block, ...]
    faults: tuple[tuple[int, str], ...] = ()

    @property
    def key_steps(self) -> tuple[Block, ...]:
        """The blocks of the key step."""
        return tuple(block for block in self.blocks if block.kind == "key-step")

    @property
    def events(self) -> tuple[Block, ...]:
        """The events, in order; the first is event 1."""
        return tuple(block for block in self.blocks if block.kind == "event")


def read_marks(script: str) -> Marks:
    """The marks of a reference solution."""
    lines = script.replace("\r\n", "\n").split("\n")
    comments = comment_lines(script)
    blocks: list[Block] = []
    faults: list[tuple[int, str]] = []
    opened: tuple[Kind, int, str] | None = None
    for number, line in enumerate(lines, 1):
        found = _MARK.match(line)
        if found is None:
            if _NEARLY.match(line):
                faults.append((number, f"is no mark as it stands: {line.strip()[:60]}"))
            continue
        kind: Kind = "key-step" if found[1] == "key-step" else "event"
        if number - 1 not in comments:
            faults.append((number, "a mark within quotes or a here-document marks nothing"))
        elif found[2] == "begin":
            if opened is not None:
                faults.append((number, f"begins before the {opened[0]} of line {opened[1]} ends"))
            opened = (kind, number, found[3] or "")
        elif opened is None or opened[0] != kind:
            faults.append((number, f"ends a {kind} that did not begin"))
        else:
            block = Block(kind, opened[1], number, opened[2])
            opened = None
            blocks.append(block)
            inside = range(block.first, block.last - 1)
            if all(at in comments or not lines[at].strip() for at in inside):
                faults.append((block.first, f"the {kind} has no command"))
    if opened is not None:
        faults.append((opened[1], f"the {opened[0]} does not end"))
    return Marks(tuple(blocks), tuple(sorted(faults)))


def without(script: str, blocks: Iterable[Block]) -> str:
    """The script with these blocks taken out; the numbers of other lines stay."""
    lines = script.replace("\r\n", "\n").split("\n")
    for block in blocks:
        lines[block.first - 1 : block.last] = [""] * (block.last - block.first + 1)
    return "\n".join(lines)
