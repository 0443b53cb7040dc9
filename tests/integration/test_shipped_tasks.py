"""The tasks that come with the package, and the result of their replays that comes with them."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from written_task import write_draft

from depthkit.corpus import Corpus
from depthkit.generation.overview import ATTEMPTS, overview
from depthkit.generation.rules import task_faults
from depthkit.generation.shipped import (
    RESULT_FILE,
    SHARES,
    in_turn,
    mismatches,
    read_result,
    replay_in_turn,
    replay_shipped,
    shipped_folder,
    shipped_tasks,
    short_of,
)
from depthkit.tasks import load_task
from depthkit.tasks.review import review

ROOT = Path(__file__).parents[2]
FOLDER = shipped_folder()


def test_the_committed_result_fits_the_files() -> None:
    assert mismatches(FOLDER) == [], "make replay-tasks"


def test_the_shares_are_the_papers_or_better() -> None:
    assert short_of(read_result(FOLDER)) == []


def test_nothing_is_found_by_reading_them() -> None:
    for path in shipped_tasks(FOLDER):
        assert list(map(str, review(path).findings)) == []
        assert task_faults(load_task(path)) == []


def test_the_evidence_that_ships_is_about_the_tasks_as_they_are() -> None:
    rows = overview(FOLDER, Corpus.open(ATTEMPTS))
    assert [row["task"] for row in rows] == [path.name for path in shipped_tasks(FOLDER)]
    for row in rows:
        assert {each["change"] for each in row["table8"]} >= set(SHARES), row["task"]
        assert row["attempts"], row["task"]
        assert row["D"] is None, "docs/generation.md says that no model has measured them"


def test_an_attempt_at_a_task_that_has_changed_since_is_outdated(tmp_path: Path) -> None:
    (attempted,) = (path for path in shipped_tasks(FOLDER) if path.name == "shop-store")
    task = shutil.copytree(attempted, tmp_path / "tasks" / attempted.name)
    before = overview(task.parent, Corpus.open(ATTEMPTS))
    (task / "steps" / "s1" / "instruction.md").write_text("Another.\n")
    after = overview(task.parent, Corpus.open(ATTEMPTS))
    told = [[each["outdated"] for each in rows[0]["attempts"]] for rows in (before, after)]
    assert told == [[False], [True]]
    assert before[0]["table8"] == []  # replayed where it ships, not here


@pytest.mark.docker
@pytest.mark.slow
def test_one_task_in_turn_is_replayed() -> None:
    tasks = shipped_tasks(FOLDER)
    said = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    turn = said.stdout.strip() or datetime.now(UTC).date().isoformat()
    assert replay_in_turn(in_turn(tasks, turn), read_result(FOLDER)) == []


@pytest.mark.docker
@pytest.mark.slow
def test_a_result_is_written_once_and_fits_until_something_changes(tmp_path: Path) -> None:
    folder = tmp_path / "shipped"
    draft = write_draft(tmp_path / "drafts")
    for number in (1, 2):
        assert draft.format_faults(number) == []
    shutil.move(draft.task, folder / "readings")
    assert mismatches(folder) == ["readings was not replayed"]
    result = replay_shipped(folder, workers=2)
    assert (mismatches(folder), short_of(result)) == ([], [])
    assert {row["change"] for row in result["table8"]} >= {"key_step_removed_next_run"}
    # Nothing is replayed again, and the task passes in its turn.
    assert replay_shipped(folder) == result
    assert replay_in_turn(folder / "readings", result) == []
    check = folder / "readings" / "steps" / "s2" / "tests" / "check.sh"
    check.write_text(check.read_text() + "pass more\n")
    assert mismatches(folder) == ["readings has changed since it was replayed"]
    old = json.loads((folder / RESULT_FILE).read_text())
    (folder / RESULT_FILE).write_text(json.dumps({**old, "library": "other"}))
    assert mismatches(folder)[0] == "the check library has changed since the tasks were replayed"


def test_a_share_below_the_papers_is_told() -> None:
    row = {"change": "key_step_removed", "holds": 9, "results": 10, "share": 0.9, "left_out": 0}
    task = {"faults": ["doing nothing passes the task"], "review": []}
    result = {"table8": [row], "tasks": {"a": task}}
    assert short_of(result) == [
        "key_step_removed: 9 of 10, less than 99%",
        "a: doing nothing passes the task",
    ]


def test_every_task_has_its_turn(tmp_path: Path) -> None:
    tasks = [tmp_path / name for name in "abc"]
    assert {in_turn(tasks, str(commit)) for commit in range(50)} == set(tasks)
