"""What a generation log says: costs, minutes, outcomes, over several processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from depthkit.artifacts.generation import (
    generated_example_table,
    generated_segments_table,
    generated_sizes_table,
    generation_table,
    seed_work_table,
)
from depthkit.cli import app
from depthkit.errors import DepthkitError
from depthkit.generation.log import GenerationLog, read_log, task_logs
from depthkit.generation.log_summary import summary

SEGMENT = {
    "index": 1,
    "name": "s1",
    "work": {"lines": 30, "tokens": 200, "chars": 900},
    "instruction_words": 120,
    "names_stated": 7,
    "key_steps": 1,
    "events": 0,
    "checks": 5,
    "asks": "Load the readings",
    "key_step": "The export has two bytes a letter.",
}


def event(at: str, task: str, kind: str, segment: int | None = None, **more: Any) -> str:
    known = {"task": task, "seed": "readings", "author": "m", "provenance": "measured"}
    return json.dumps(
        {"at": f"2026-11-30T{at}+00:00", "event": kind, "segment": segment, **known} | more
    )


def turn(at: str, task: str, segment: int, cost: float | None) -> str:
    tokens = {"input_tokens": 1000, "cached_tokens": 400, "output_tokens": 100}
    return event(at, task, "turn", segment, cost_usd=cost, seconds=5.0, **tokens)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    report = {"strict": True, "table8": [], "segments": [SEGMENT]}
    lines = [
        event("10:00:00", "a", "started", details={"k": 1, "original_lines": 4}),
        turn("10:01:00", "a", 1, 0.01),
        event("10:01:00", "a", "format_error", 1, details={"faults": ["x"]}),
        event("10:01:30", "a", "stopped", 1),
        # An hour in which nobody worked.
        event("11:00:00", "a", "started", details={"k": 1, "resumed": True, "original_lines": 4}),
        turn("11:02:00", "a", 1, 0.03),
        event("11:02:30", "a", "replay", 1, details={"passed": False}),
        event("11:03:00", "a", "replay", 1, details={"passed": True}),
        event("11:03:00", "a", "finished", 1),
        event("11:04:00", "a", "accepted", details={"report": report}),
        event("12:00:00", "b", "started", details={"k": 2}),
        turn("12:01:00", "b", 1, 0.06),
        event("12:01:00", "b", "rejected", 1, details={"reason": "given up: no key step"}),
        # Begun again after it was rejected: another task.
        event("13:00:00", "b", "started", details={"k": 2}),
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(line + "\n" for line in lines))
    return path


def test_costs_and_minutes_are_those_of_all_processes_without_the_time_between(log: Path) -> None:
    first, second, third = task_logs(read_log(log))
    assert (first.outcome, first.resumed, first.finished) == ("accepted", 1, 1)
    row = first.segments[1].row()
    assert (row["turns"], row["input_tokens"], row["format_errors"]) == (2, 2000, 1)
    assert (row["replays"], row["replays_failed"]) == (2, 1)
    assert row["cost_usd"] == pytest.approx(0.04)
    assert row["minutes"] == pytest.approx(1.5 + 3.0)
    assert first.whole.row()["minutes"] == pytest.approx(1.5 + 4.0)
    assert (second.outcome, second.reason) == ("rejected", "given up: no key step")
    assert third.outcome == "unfinished"


def test_shares_and_tasks_a_dollar(log: Path) -> None:
    found = summary(log)
    assert found.accepted_share == 0.5
    assert found.tasks_per_usd == pytest.approx(1 / 0.10)
    with log.open("a") as more:
        more.write(turn("13:01:00", "b", 1, None) + "\n")
    assert summary(log).tasks_per_usd is None  # A cost that is not known is not taken for none.


def test_the_command_sums_up(log: Path) -> None:
    said = CliRunner().invoke(app, ["generate", "log", str(log)])
    assert said.exit_code == 0
    assert "3 tasks: 1 accepted, 1 rejected, 1 unfinished (50% of those that ended)" in said.stdout
    assert "10.00 tasks per dollar" in said.stdout
    spent = "2 turns, 2,200 tokens, 4.5 min, $0.0400, 1 format error, 1 of 2 replays failed"
    assert f"  segment 1: {spent}\n" in said.stdout
    row = json.loads(CliRunner().invoke(app, ["generate", "log", str(log), "--json"]).stdout)
    assert row["reasons"] == {"given up: no key step": 1}
    assert row["each"][0]["segments"][0]["turns"] == 2
    assert row["a_task"] == {"turns": 1.5, "tokens": 1650, "minutes": 1.0, "cost_usd": 0.05}
    assert row["a_segment"]["minutes"] == pytest.approx((4.5 + 1.0) / 2)


def test_what_is_no_log_is_told(tmp_path: Path) -> None:
    with pytest.raises(DepthkitError, match="no such file"):
        read_log(tmp_path / "none.jsonl")
    (tmp_path / "other.jsonl").write_text('{"run_id": "x"}\n')
    with pytest.raises(DepthkitError, match="line 1 is no event"):
        read_log(tmp_path / "other.jsonl")


def test_an_event_is_whole_when_a_process_dies_while_it_writes(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = GenerationLog(path, task="a", seed="s", author="stdio")
    log.add("started", details={"k": 1})
    with path.open("a") as torn:
        torn.write('{"at": "2026')
    log.add("stopped", 1)
    assert [each.event for each in read_log(path)] == ["started", "stopped"]


def test_tables_of_a_log(log: Path) -> None:
    table = generation_table(log)
    assert list(table.frame["outcome"]) == ["accepted", "rejected", "unfinished"]
    assert table.frame["tokens"][0] == 2200
    assert table.notes == ("Rejected: b: given up: no key step.",)
    assert table.parts["totals"]["accepted_share"][0] == 0.5
    assert table.parts["medians"]["of"].tolist() == ["task", "segment"]
    segments = generated_segments_table(log)
    assert segments.frame[["task", "segment", "turns"]].to_numpy().tolist()[0] == ["a", 1, 2]
    assert "measured · 3 tasks begun" in table.provenance
    work = seed_work_table(log).frame
    assert work[["W", "original"]].to_numpy().tolist() == [[30, 4]]
    sizes = generated_sizes_table(log).frame.set_index("measure")
    assert sizes.loc["words", "segment_median"] == 120
    example = generated_example_table(log)
    assert example.frame["key_step"][0] == SEGMENT["key_step"]
    for each in (table, segments, generated_sizes_table(log), seed_work_table(log), example):
        assert "<table" in each.html()
    with pytest.raises(DepthkitError, match="accepted tasks of the log: a"):
        generated_example_table(log, task="c")


def test_an_empty_log_has_tables_too(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").touch()
    for make in (
        generation_table,
        generated_segments_table,
        generated_sizes_table,
        seed_work_table,
        generated_example_table,
    ):
        assert "<table" in make(tmp_path / "log.jsonl").html()
