"""The file of what a model said: whole conversations out of what was stored once."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from depthkit.corpus.files import UnreadableError
from depthkit.corpus.replies import REPLIES_FILE, ModelCall, ReplyLog, read_replies


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def said(call: ModelCall) -> list[dict[str, str]]:
    return [*call.messages, {"role": "assistant", "content": call.reply}]


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    (tmp_path / "agent").mkdir()
    return tmp_path


def conversation() -> list[ModelCall]:
    """Two turns, a summarization of three calls, and the turn after it."""
    first = ModelCall("turn", [user("task")], '{"commands": []}', "thought", [], "stop", 10, 0, 5)
    second = ModelCall("turn", [*said(first), user("screen 1")], "no JSON \ud800 at all")
    summary = ModelCall("summary", [*said(first), user("sum up")], "so far")
    questions = ModelCall("questions", [user("ask")], "what?", finish="length")
    answers = ModelCall("answers", [*said(summary), user("what?")], "that")
    third = ModelCall("turn", [user("task"), *said(questions), user("that")], "{}")
    return [first, second, summary, questions, answers, third]


def written(trial: Path, calls: list[ModelCall], secret: str | None = None) -> Path:
    log = ReplyLog(trial / "agent" / REPLIES_FILE, secret)
    for call in calls:
        log.add(call)
    log.close()
    return log.path


def test_every_call_comes_back_with_all_its_messages(trial: Path) -> None:
    written(trial, conversation())
    assert list(read_replies(trial)) == conversation()


def test_a_conversation_is_stored_once(trial: Path) -> None:
    calls = [ModelCall("turn", [user("task")], "reply 0")]
    for turn in range(1, 40):
        calls.append(ModelCall("turn", [*said(calls[-1]), user(f"screen {turn}")], f"reply {turn}"))
    path = written(trial, calls)
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert [len(line["messages"]) for line in lines] == [1] * 40
    assert list(read_replies(trial)) == calls


def test_a_file_that_was_closed_goes_on(trial: Path) -> None:
    log = ReplyLog(trial / "agent" / REPLIES_FILE)
    for call in conversation():
        log.add(call)
        log.close()
    assert list(read_replies(trial)) == conversation()


def test_a_killed_process_loses_the_last_call_at_most(trial: Path) -> None:
    log = ReplyLog(trial / "agent" / REPLIES_FILE)
    sizes = []
    for call in conversation():
        log.add(call)
        sizes.append(log.path.stat().st_size)
    whole = log.path.read_bytes()
    for number, size in enumerate(sizes, start=1):
        log.path.write_bytes(whole[: size + 3])
        assert list(read_replies(trial)) == conversation()[:number]


def test_a_key_is_not_written(trial: Path) -> None:
    key = 'se"cret\\'
    path = written(trial, [ModelCall("turn", [user(f"env: {key}")], f"key is {key}.")], key)
    assert "cret" not in gzip.decompress(path.read_bytes()).decode()
    assert [call.reply for call in read_replies(trial)] == ["key is ***."]


@pytest.mark.parametrize(
    "data",
    [
        b"no gzip at all",
        gzip.compress(b"[1]\n"),
        gzip.compress(b'{"base": 7, "keep": 1}\n'),
        gzip.compress(b"[" * 100_000 + b"\n"),
    ],
)
def test_a_damaged_file_is_one_error_that_names_it(trial: Path, data: bytes) -> None:
    (trial / "agent" / REPLIES_FILE).write_bytes(data)
    with pytest.raises(UnreadableError, match=REPLIES_FILE):
        list(read_replies(trial))
