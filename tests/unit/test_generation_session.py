"""The protocol that authors speak, as far as it needs no container."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest
from written_task import ASKS, GOAL, TASK, write_draft, write_seed

from depthkit.generation.author import read_messages
from depthkit.generation.draft import Draft
from depthkit.generation.log import GenerationLog, read_log
from depthkit.generation.session import Rules, Session
from depthkit.generation.stdio import drive


def session(tmp_path: Path, draft: Draft | None = None, **rules: Any) -> Session:
    if draft is None:
        draft = Draft(tmp_path / "tasks" / "readings", write_seed(tmp_path / "seeds/readings"), 2)
    log = GenerationLog(tmp_path / "log.jsonl", task="readings", seed="readings", author="stdio")
    return Session(draft, log, Rules(**rules))


def say(session: Session, *messages: Any) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    for message in messages:
        answer = asyncio.run(session.answer(message))
    return answer


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("ls", 'a message is an object with "do", one of plan, run, keys'),
        ({"do": "sing"}, 'a message is an object with "do"'),
        ({"do": "run", "cmd": "ls"}, "run has no cmd; it has command, seconds"),
        ({"do": "run"}, "run needs command, a text."),
        ({"do": "run", "command": "ls", "seconds": "9"}, "seconds must be a number."),
        ({"do": "plan", "goal": "g", "segments": ["a"]}, "segments has 1 items; the task has 2"),
        ({"do": "write", "file": "check.sh", "text": ""}, "there is no plan yet"),
        ({"do": "replay"}, "there is no plan yet"),
        ({"do": "read", "file": "/etc/passwd"}, "there is no file /etc/passwd; write one of"),
        ({"do": "back", "segment": 2}, "segment must be from 1 to 1."),
    ],
)
def test_a_message_that_cannot_be_carried_out_is_told(
    tmp_path: Path, message: Any, error: str
) -> None:
    answer = say(session(tmp_path), message)
    assert answer["ok"] is False
    assert answer["error"].startswith(error)


def test_files_are_written_and_read_back(tmp_path: Path) -> None:
    own = session(tmp_path)
    assert say(own, TASK.plan(), *TASK.writes(1)) == {"ok": True}
    assert say(own, {"do": "read", "file": "solve.sh"})["text"].startswith("#!/bin/bash\n")
    assert own.hello()["plan"]["goal"] == GOAL
    assert set(own.hello()["files"]) >= {"instruction.md", "solution/solve.sh"}


def test_files_of_this_machine_are_for_whoever_sits_at_it(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("echo\n")
    message = {"do": "write", "file": "check.sh", "from": str(tmp_path / "mine")}
    assert say(session(tmp_path), TASK.plan(), message)["error"] == "write needs text."
    own = session(tmp_path, write_draft(tmp_path / "other"), host_files=True)
    assert say(own, message) == {"ok": True}


def test_a_segment_is_finished_only_as_it_was_replayed(tmp_path: Path) -> None:
    answer = say(session(tmp_path, write_draft(tmp_path)), {"do": "finish", "key_step": "x"})
    assert "have passed no replay" in answer["error"]


MEASURED = TASK.segments[0]["check.sh"].replace("\"$(db 'select count(*) from readings')\"", "4")


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"reports": None}, "no reports.toml declares it"),
        ({"check": MEASURED}, "expected-written-in: the expected value '4' is written in"),
    ],
)
def test_errors_of_format_may_be_mended_a_bounded_number_of_times(
    tmp_path: Path, changed: dict[str, str | None], fault: str
) -> None:
    own = session(tmp_path, mends=1)
    say(own, TASK.plan(), *TASK.writes(1, **changed))
    first = say(own, {"do": "replay"})
    assert first["mends_left"] == 0
    assert fault in first["format"][0]
    assert own.over is None
    # Whoever goes on after a stop has as many left as before.
    again = Draft(own.draft.out, tmp_path / "seeds/readings", 2)
    own = Session(again, own.log, own.rules)
    last = say(own, {"do": "replay"})
    assert own.over == "rejected"
    assert last["rejected"].startswith("segment 1 was still refused after 1 mends: steps/s1/tests")
    kinds = [event.event for event in read_log(tmp_path / "log.jsonl")]
    assert kinds == ["started", "planned", *["format_error", "started"], "format_error", "rejected"]
    assert (tmp_path / "tasks" / "readings.rejected-1" / "task").is_dir()


def test_the_plan_of_finished_segments_stays(tmp_path: Path) -> None:
    draft = write_draft(tmp_path)
    draft.format_faults(1)
    draft.finish(1, "it goes wrong")
    own = session(tmp_path, draft)
    assert own.hello()["segment"] == 2
    assert "are finished; leave them" in say(own, TASK.plan(["Other", ASKS[1]]))["error"]
    assert say(own, TASK.plan([ASKS[0], "Other"])) == {"ok": True}
    assert say(own, {"do": "back", "segment": 1}) == {"ok": True, "segment": 1}
    assert draft.finished == 0


def test_over_stdin_every_line_has_an_answer(tmp_path: Path) -> None:
    own = session(tmp_path)
    lines = [
        "no JSON",
        "",
        json.dumps(TASK.plan()),
        json.dumps({"do": "quit"}),
        json.dumps(TASK.plan()),
    ]
    said = io.StringIO()
    (tmp_path / "messages").write_text("\n".join(lines) + "\n")
    with (tmp_path / "messages").open() as source:
        asyncio.run(drive(own, source.fileno(), said))
    answers = [json.loads(line) for line in said.getvalue().splitlines()]
    assert [answer.get("ok") for answer in answers] == [None, False, True, True]
    assert answers[0]["type"] == "hello"
    assert own.over == "stopped"


# --- the replies of a model ---


def test_messages_are_found_in_a_reply_whatever_stands_around_them() -> None:
    reply = 'I look first.\n```json\n{"do": "screen"}\n{"do": "run", "command": "a\nb {c}"}\n```'
    messages, fault = read_messages(reply)
    assert fault is None
    assert messages == [{"do": "screen"}, {"do": "run", "command": "a\nb {c}"}]


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("Nothing.", "the reply has no message"),
        ('{"do": "screen"}\n{"do": }', "message 2 is no JSON: Expecting value, at line 2, column"),
    ],
)
def test_a_reply_without_a_usable_message_is_told_exactly(reply: str, fault: str) -> None:
    messages, told = read_messages(reply)
    assert messages == []
    assert told is not None
    assert told.startswith(fault)
