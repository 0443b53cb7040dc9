"""What a model was asked and what it said, call by call: ``agent/replies.jsonl.gz`` of a trial.

A trajectory keeps ``Analysis: … Plan: …`` in place of a reply; this file keeps the reply itself.
One line a call that was answered, in order. Its messages are those of an earlier call (``base``,
the reply included) up to ``keep``, and then the line's own ``messages``: a conversation that grows
is stored once, one that a summarization replaced begins anew. Each line is flushed as it is
written, so a killed process loses at most the last one.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from depthkit.corpus.files import UnreadableError, hide, read_inside

REPLIES_FILE = "replies.jsonl.gz"

_BASES = 4
"""Calls looked back for the conversation that goes on: a summarization makes three of its own."""

_MOST_BYTES = 1 << 30
"""Text of one file at most; more is no conversation."""

type CallKind = Literal["turn", "summary", "questions", "answers", "short_summary"]
"""``turn`` drives the terminal. A summarization makes the next three; where it fails, terminus-2
asks for a short one instead."""

type Messages = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class ModelCall:
    """One model call that was answered.

    Attributes:
        kind: What it was for.
        messages: All that was sent, oldest first.
        reply: What came back, byte for byte.
        reasoning: Reasoning that the endpoint gave apart from it.
        tool_calls: Tool calls that came with it, in OpenAI's form; terminus-2 makes no use of them.
        finish: The endpoint's reason for the end of the reply; empty where it gave none.
        input_tokens: Of the messages; this and the next two ``None`` where not stated.
        cached_tokens: Part of these that a cache had.
        output_tokens: Of the reply.
    """

    kind: CallKind
    messages: Messages
    reply: str
    reasoning: str | None = None
    tool_calls: Messages = field(default_factory=list)
    finish: str = ""
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None


@dataclass
class ReplyLog:
    """Writes the calls of one run.

    Attributes:
        path: The file.
        secret: A key that is not to be written, if there is one; ``***`` stands in its place.
    """

    path: Path
    secret: str | None = None
    _calls: int = 0
    _said: dict[int, Messages] = field(default_factory=dict)
    _out: gzip.GzipFile | None = None

    def add(self, call: ModelCall) -> None:
        """Write a call."""
        self._calls += 1
        shared = {number: _shared(said, call.messages) for number, said in self._said.items()}
        base = max(shared, key=lambda number: (shared[number], number), default=0)
        keep = shared.get(base, 0)
        line = {
            "call": self._calls,
            "base": base if keep else None,
            "keep": keep,
            **vars(call),
            "messages": call.messages[keep:],
        }
        text = hide(json.dumps(line), self.secret)  # in ASCII, which carries half a character too
        if self._out is None:
            self._out = gzip.GzipFile(self.path, "ab", mtime=0)
        self._out.write(text.encode() + b"\n")
        self._out.flush()
        reply = {"role": "assistant", "content": call.reply}
        self._said[self._calls] = [*call.messages, reply]
        self._said.pop(self._calls - _BASES, None)

    def close(self) -> None:
        """Finish the file; another call may be added all the same."""
        if self._out is not None:
            self._out.close()
            self._out = None


def _shared(said: Messages, messages: Messages) -> int:
    """How many messages two conversations have in common from the beginning."""
    pairs = enumerate(zip(said, messages, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(said), len(messages)))


def read_replies(trial: Path) -> Iterator[ModelCall]:
    """The model calls of a trial, in order, each with all its messages.

    A file that a killed process left gives the calls up to its last whole line.

    Raises:
        FileNotFoundError: The trial has none: it was measured before they were kept, or imported.
        UnreadableError: The file is damaged.
    """
    path = trial / "agent" / REPLIES_FILE
    said: dict[int, Messages] = {}
    for number, line in enumerate(_lines(read_inside(path, trial)), start=1):
        try:
            row = json.loads(line)
            base = row.pop("base")
            kept = said[base][: row.pop("keep")] if base is not None else []
            row["messages"] = [*kept, *row["messages"]]
            call = ModelCall(**{name: row[name] for name in ModelCall.__dataclass_fields__})
            said[row["call"]] = [*call.messages, {"role": "assistant", "content": call.reply}]
            said.pop(row["call"] - _BASES, None)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            why = f"{path.name}: line {number} is no model call ({type(error).__name__}: {error})"
            raise UnreadableError(why) from error
        yield call


def _lines(data: bytes) -> Iterator[bytes]:
    """Whole lines of gzip members one after another; the last may lack its end."""
    rest, size = b"", 0
    while data:
        unpack = zlib.decompressobj(wbits=31)
        while not unpack.eof:
            try:
                text = unpack.decompress(data, 1 << 20)
            except zlib.error as error:
                raise UnreadableError(f"{REPLIES_FILE} is damaged ({error})") from error
            data = unpack.unconsumed_tail
            if not text and not data:
                break
            size += len(text)
            if size > _MOST_BYTES:
                raise UnreadableError(f"{REPLIES_FILE} holds more than {_MOST_BYTES:,} bytes")
            *whole, rest = (rest + text).split(b"\n")
            yield from whole
        data = unpack.unused_data
