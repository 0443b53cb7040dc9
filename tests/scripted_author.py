"""A script in place of a model that writes a task, behind the model server."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

type Message = dict[str, Any]

MODELS = """\
["{name}"]
litellm = "openai/{name}"
base_url = "{url}"
api_key_env = "AUTHOR_KEY"
context_tokens = 64000
max_output_tokens = 8000
input_usd_per_mtok = 0.5
output_usd_per_mtok = 2.0
"""
"""An entry of the registry."""


@dataclass(frozen=True)
class Written:
    """A whole task, as the messages that write it; each sequence has an item a segment."""

    goal: str
    asks: Sequence[str]
    key_steps: Sequence[str]
    segments: Sequence[Mapping[str, str]]

    def plan(self, asks: Sequence[str] | None = None) -> Message:
        """The message that says what the task is about."""
        return {"do": "plan", "goal": self.goal, "segments": list(asks or self.asks)}

    def writes(self, number: int, **changed: str | None) -> list[Message]:
        """Messages that write the files of a segment; ``solve``, ``reports`` … may be others."""
        files: dict[str, str | None] = dict(self.segments[number - 1])
        for name, text in changed.items():
            files[next(file for file in files if file.startswith(name))] = text
        return [{"do": "write", "file": n, "text": t} for n, t in files.items() if t is not None]

    def done(self, number: int) -> list[Message]:
        """Messages that end a segment."""
        return [{"do": "replay"}, {"do": "finish", "key_step": self.key_steps[number - 1]}]


class ScriptedAuthor:
    """Stands in for a model that writes: its replies by segment, one after another.

    A reply is the text itself, or messages.
    """

    def __init__(self, script: Mapping[int, Sequence[str | list[Message]]]) -> None:
        self._script = script

    def __call__(self, messages: Sequence[Mapping[str, Any]]) -> str:
        brief = str(messages[1]["content"])
        found = re.search(r"^Now write segment (\d+) of", brief, re.MULTILINE)
        assert found is not None
        replies = self._script[int(found[1])]
        turn = sum(message["role"] == "assistant" for message in messages)
        reply = replies[min(turn, len(replies) - 1)]
        return reply if isinstance(reply, str) else "\n".join(map(json.dumps, reply))
