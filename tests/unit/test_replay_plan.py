"""Which replays Table 8 asks for, and in how few containers they are made."""

from __future__ import annotations

from pathlib import Path

import pytest
from checked_task import STOCK, write_stock

from depthkit.errors import DepthkitError
from depthkit.experiments.merge import merge_task
from depthkit.experiments.replay import replay_tasks
from depthkit.experiments.replay_plan import Part, Plan, plan_replays, table_rows
from depthkit.model import Change, Replay
from depthkit.tasks.markers import read_marks


def script(*, key: bool = True, events: int = 0) -> str:
    lines = ["work"]
    if key:
        lines += ["# key-step: begin", "key", "# key-step: end"]
    for event in range(1, events + 1):
        lines += ["# event: begin", f"event-{event}", "# event: end"]
    return "\n".join(lines) + "\n"


def plan(*scripts: str, done: list[Part] | None = None) -> Plan:
    return plan_replays(scripts, [read_marks(each) for each in scripts], done or [])


def test_six_segments_need_a_container_a_change_and_one_for_the_clean_replay() -> None:
    found = plan(*[script(events=1)] * 6)
    assert len(found.parts) == 6 + 5 + 6 + 6 + 5
    # The checks before the work ride on the clean replay, the next segment on the key step's.
    assert found.containers == 1 + 5 + 6 + 6
    assert found.impossible == ()


def test_each_branch_starts_from_the_state_its_change_needs() -> None:
    found = plan(script(), script(events=2), script())
    starts = {
        (branch.parts[0].change, branch.parts[0].segment, branch.parts[0].event): branch.start
        for branch in found.branches
    }
    assert starts == {
        ("previous_segment_skipped", 2, None): 0,
        ("previous_segment_skipped", 3, None): 1,
        ("event_removed", 2, 1): 1,
        ("event_removed", 2, 2): 1,
        ("key_step_removed", 1, None): 0,
        ("key_step_removed", 2, None): 1,
        ("key_step_removed", 3, None): 2,
    }


def test_only_what_a_change_removes_is_missing_from_its_script() -> None:
    found = plan(script(events=2))
    changed = {branch.parts[0]: branch.steps[0][1] or "" for branch in found.branches}
    first = changed[Part("event_removed", 1, 1, 1)]
    assert ("event-1" in first, "event-2" in first, "key" in first) == (False, True, True)
    key = changed[Part("key_step_removed", 1, 1)]
    assert ("event-1" in key, "\nkey\n" in key) == (True, False)


def test_what_is_known_is_not_made_again() -> None:
    whole = plan(script(), script(events=1))
    done = whole.parts
    assert plan(script(), script(events=1), done=done).containers == 0
    for part in done:
        left = plan(script(), script(events=1), done=[each for each in done if each != part])
        # The next segment needs the key step's removal before it.
        with_it = part.change == "key_step_removed_next_run"
        assert part in left.parts
        assert len(left.parts) == 1 + with_it


def test_a_segment_without_a_marked_key_step_is_told() -> None:
    found = plan(script(key=False), script())
    assert {(part.change, part.segment) for part, _ in found.impossible} == {
        ("key_step_removed", 1),
        ("key_step_removed_next_run", 1),
    }
    assert found.containers == 1 + 1 + 1


def test_a_real_solution_loses_its_marked_lines_alone() -> None:
    found = plan(*(each["solve"] for each in STOCK))
    removed = next(b for b in found.branches if b.parts[0] == Part("key_step_removed", 1, 1))
    assert [(part.change, part.checked) for part in removed.parts] == [
        ("key_step_removed", 1),
        ("key_step_removed_next_run", 2),
    ]
    assert "grep -v" not in (removed.steps[0][1] or "")


def test_the_table_counts_the_last_result_of_each_replay() -> None:
    def replay(change: Change, segment: int, holds: bool | None) -> Replay:
        return Replay(
            dataset="d",
            task_id="t",
            change=change,
            segment=segment,
            checked_segment=segment,
            holds=holds,
            provenance="measured",
        )

    rows = table_rows(
        [
            replay("key_step_removed", 1, None),
            replay("key_step_removed", 1, True),
            replay("key_step_removed", 2, False),
            replay("key_step_removed", 3, True),
            replay("key_step_removed", 3, None),
            replay("key_step_removed", 4, None),
            replay("checks_before_work", 1, None),
        ]
    )
    assert rows == [
        {"change": "checks_before_work", "holds": 0, "results": 0, "share": None, "left_out": 1},
        {"change": "key_step_removed", "holds": 2, "results": 3, "share": 2 / 3, "left_out": 1},
    ]


def test_a_verifier_that_cannot_tell_a_crash_from_a_failure_is_refused(tmp_path: Path) -> None:
    """Before anything is written or an engine is asked for."""
    task = write_stock(tmp_path / "ours" / "stock")
    (task / "steps/s2/tests/check.sh").unlink()
    with pytest.raises(DepthkitError, match=r"s2 has no tests/check\.sh .* cannot be told"):
        replay_tasks([task], tmp_path / "corpus")
    with pytest.raises(DepthkitError, match=r"s2 has no tests/check\.sh .* cannot be told apart"):
        merge_task(task, tmp_path / "merged")
    whole = write_stock(tmp_path / "ours" / "composed")
    (whole / "environment/docker-compose.yaml").write_text("services: {main: {image: x}}\n")
    with pytest.raises(DepthkitError, match="several containers"):
        replay_tasks([whole], tmp_path / "corpus")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ours"]
