"""A model that writes, as far as it needs no container: what it may answer, and what it is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from scripted_author import MODELS
from written_task import TASK, write_draft, write_seed

from depthkit.generation.author import StoppedError, drive
from depthkit.generation.draft import Draft
from depthkit.generation.guide import guide
from depthkit.generation.log import Event, GenerationLog, read_log
from depthkit.generation.session import _DO, Rules, Session
from depthkit.trials.limits import Limits, Watch
from depthkit.trials.llm import PATIENCE, Patience
from depthkit.trials.models import select_models
from depthkit.trials.scripted.policies import Reply
from depthkit.trials.scripted.server import ScriptedServer

GIVE_UP = json.dumps({"do": "give_up", "reason": "no key step"})


class Replies:
    """Answers requests one after another; keeps what each was."""

    def __init__(self, *replies: str | Reply) -> None:
        self._replies = iter(replies)
        self.asked: list[list[str]] = []

    def __call__(self, messages: Sequence[Mapping[str, Any]]) -> str | Reply:
        self.asked.append([str(message["content"]) for message in messages])
        return next(self._replies)


def let_write(
    tmp_path: Path, replies: Replies, draft: Draft | None = None, *, context: int = 64_000
) -> tuple[Session, list[Event]]:
    draft = draft or Draft(tmp_path / "tasks" / "t", write_seed(tmp_path / "seeds/readings"), 2)
    log = GenerationLog(tmp_path / "log.jsonl", task="t", seed="readings", author="m")
    session = Session(draft, log, Rules(mends=8))

    async def run() -> None:
        PATIENCE.set(Patience(tries=3, blip_seconds=0.0, first_pause=0.01))
        await drive(session, spec, Watch(Limits(), [spec], {}))

    with ScriptedServer({"m": replies}) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTHOR_KEY", "none")
        registry = MODELS.format(name="m", url=server.base_url)
        registry = registry.replace("context_tokens = 64000", f"context_tokens = {context}")
        (tmp_path / "models.toml").write_text(registry)
        [spec] = select_models(["m"], tmp_path / "models.toml")
        try:
            asyncio.run(run())
        except StoppedError as error:
            session.reason = str(error)
    return session, read_log(tmp_path / "log.jsonl")


def test_what_is_wrong_with_a_reply_is_told_and_counts(tmp_path: Path) -> None:
    replies = Replies(
        "I shall write a task.",
        "",
        json.dumps(TASK.plan(["One segment"])),
        Reply("x" * 20_000, finish_reason="length"),
        Reply("overloaded", status=500),
        Reply("slow down", status=429),
        "\n".join(map(json.dumps, [TASK.plan(), {"do": "sing"}, {"do": "replay"}])),
        GIVE_UP,
    )
    session, events = let_write(tmp_path, replies)
    assert (session.over, session.reason) == ("rejected", "given up: no key step")
    told = [asked[-1] for asked in replies.asked]
    assert "the reply has no message; send JSON objects such as" in told[1]
    assert '"mends_left": 6' in told[2]
    assert "segments has 1 items; the task has 2 segments" in told[3]
    assert "the reply was cut at the model's output limit; split it" in told[4]
    assert told[4] == told[5] == told[6]  # Failed requests are made again.
    plan, sing, replay = map(json.loads, told[7].splitlines())
    assert (plan["ok"], sing["ok"], replay["ok"]) == (True, False, False)
    assert replay["error"] == "not carried out, since a message before it failed"
    assert "" not in replies.asked[-1]
    assert max(map(len, replies.asked[-1][2:])) < 10_000
    assert sum(event.event == "turn" for event in events) == 6
    assert sum(event.event == "format_error" for event in events) == 3


def test_an_endpoint_that_is_gone_stops_it(tmp_path: Path) -> None:
    down = [Reply("overloaded", status=500)] * 20
    session, _ = let_write(tmp_path, Replies(json.dumps(TASK.plan()), *down))
    assert session.over is None
    assert session.reason == "the model does not answer (InternalServerError)"


def test_a_conversation_stays_within_the_context(tmp_path: Path) -> None:
    """Old answers and files are shortened; one that does not fit all the same begins anew."""
    long = json.dumps({"do": "write", "file": "check.sh", "text": "true " * 1_500})
    read = json.dumps({"do": "read", "file": "check.sh"})
    over = Reply("maximum context length exceeded: context_length_exceeded", status=400)
    turns = [json.dumps(TASK.plan()), *[f"{long}\n{read}"] * 8]
    replies = Replies(*turns, over, over, read, GIVE_UP)
    session, events = let_write(tmp_path, replies, context=16_000)
    assert session.reason == "given up: no key step"
    assert max(event.input_tokens or 0 for event in events) < 16_000
    assert any("characters left out" in text for text in replies.asked[8])
    assert len(replies.asked[9]) == len(replies.asked[10]) > len(replies.asked[11]) == 2
    assert "tests/check.sh. Read them first." in replies.asked[11][1]


def test_after_an_acceptance_that_did_not_hold_every_conversation_says_why(tmp_path: Path) -> None:
    draft = write_draft(tmp_path)
    draft.refuse(2, ["doing nothing passes the task"])
    replies = Replies(GIVE_UP)
    let_write(tmp_path, replies, draft)
    assert "not accepted:\n- doing nothing passes the task" in replies.asked[0][1]


def test_the_guide_names_every_message_of_a_model() -> None:
    told = guide(3)
    assert all(f'{{"do": "{name}"' in told for name in _DO if name != "quit")
    assert "{{" not in told
