"""Replays in real containers: the table, no result, resuming, snapshots and sabotage (Table 8)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from checked_task import write_stock
from typer.testing import CliRunner

from depthkit.artifacts.checks import checks_table
from depthkit.cli import app
from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.experiments.replay import Replayed, replay_tasks
from depthkit.model import Change
from depthkit.trials import engine

pytestmark = pytest.mark.docker

type Row = tuple[Change, int, int | None]

STOCK_TABLE: dict[Row, bool] = {
    ("checks_before_work", 1, None): True,
    ("checks_before_work", 2, None): True,
    ("previous_segment_skipped", 2, None): True,
    ("event_removed", 2, 1): True,
    ("key_step_removed", 1, None): True,
    ("key_step_removed", 2, None): True,
    # The second segment lists what is in the database, right or wrong.
    ("key_step_removed_next_run", 1, None): False,
}


def table(found: Replayed) -> dict[Row, bool | None]:
    return {(r.change, r.segment, r.event): r.holds for r in found.replays}


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_stock(tmp_path_factory.mktemp("tasks") / "ours" / "stock")


@pytest.fixture(scope="module")
def corpus(stock: Path) -> Path:
    return stock.parents[1] / "corpus"


@pytest.fixture(scope="module")
def replayed(stock: Path, corpus: Path) -> Replayed:
    (found,) = replay_tasks([stock], corpus)
    return found


def test_the_checks_notice_each_missing_part(replayed: Replayed) -> None:
    assert table(replayed) == STOCK_TABLE
    assert all(each.task_digest for each in replayed.replays)
    assert (replayed.containers, replayed.snapshots) == (5, 1)


def test_the_table_is_that_of_the_artifact(replayed: Replayed, corpus: Path) -> None:
    frame = checks_table(Corpus.open(corpus)).frame
    rows = replayed.row()["table"]
    assert frame[["change", "holds", "results"]].to_dict("records") == [
        {key: row[key] for key in ("change", "holds", "results")} for row in rows
    ]


def test_what_is_known_is_not_replayed_again(
    stock: Path, corpus: Path, replayed: Replayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    done = CliRunner().invoke(app, ["replay", str(stock), "--corpus", str(corpus), "--json"])
    assert done.exit_code == 0, done.output
    printed = json.loads(done.output)
    assert printed["tasks"][0]["containers"] == 0
    assert printed["table"] == replayed.row()["table"]
    told = CliRunner().invoke(app, ["replay", str(stock), "--corpus", str(corpus)])
    assert "key step removed next run, segment 1: does not hold" in told.output


def test_without_snapshots_the_table_is_the_same(stock: Path, tmp_path: Path) -> None:
    (found,) = replay_tasks([stock], tmp_path / "corpus", snapshots=False)
    assert table(found) == STOCK_TABLE
    assert (found.containers, found.snapshots) == (5, 0)


def test_a_state_in_which_something_runs_is_not_taken_from_a_snapshot(tmp_path: Path) -> None:
    """The keeper's process is part of the state, so the third segment's branches play it again."""
    task = write_stock(tmp_path / "ours" / "running")
    (task / "task.toml").write_text((task / "task.toml").read_text() + '\n[[steps]]\nname = "s3"\n')
    third = {
        "instruction.md": "Write the number of processes `keeper-loop` to /srv/count.\n",
        "solution/solve.sh": (
            "#!/bin/bash\n# key-step: begin\npgrep -cf keeper-loop >/srv/count\n# key-step: end\n"
        ),
        "tests/check.sh": (
            'expect_eq count "$(head -1 /srv/count)" 1 int\nexpect_proc keeper keeper-loop\n'
        ),
    }
    for name, text in third.items():
        path = task / "steps/s3" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (found,) = replay_tasks([task], tmp_path / "corpus", workers=3)
    outcomes = table(found)
    assert found.snapshots == 1  # after the first segment, not after the second
    assert outcomes["key_step_removed", 3, None] is True
    assert outcomes["previous_segment_skipped", 3, None] is True
    assert None not in outcomes.values()
    assert not engine.clean(dry_run=True)


def test_sabotaged_copies_are_found_and_crashes_do_not_count(tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    cannot_fail = write_stock(folder / "cannot-fail", segments=1)
    (cannot_fail / "steps/s1/tests/check.sh").write_text("if [ -d /srv ]; then pass there; fi\n")
    no_step = write_stock(folder / "no-step")
    solve = no_step / "steps/s2/solution/solve.sh"
    text = solve.read_text()
    solve.write_text(
        text.replace("# key-step: end\n", "").replace(
            "# key-step: begin\n",
            "rows >/srv/list.tsv\n# key-step: begin\nls /srv >/dev/null\n# key-step: end\n",
        )
    )
    crashing = write_stock(folder / "crashing", segments=1)
    check = crashing / "steps/s1/tests/check.sh"
    check.write_text(f"[ -f /srv/report.txt ] || exit 3\n{check.read_text()}")
    found = {
        each.task_id: each
        for each in replay_tasks([cannot_fail, no_step, crashing], tmp_path / "corpus", workers=3)
    }
    assert table(found["cannot-fail"])["checks_before_work", 1, None] is False
    assert table(found["cannot-fail"])["key_step_removed", 1, None] is False
    assert table(found["no-step"])["key_step_removed", 2, None] is False
    assert table(found["no-step"])["event_removed", 2, 1] is True
    (left_out,) = [r for r in found["crashing"].replays if r.holds is None]
    assert (left_out.change, left_out.segment) == ("checks_before_work", 1)
    assert "stops" in str(left_out.reason)


def test_a_solution_that_fails_by_itself_gives_no_result(tmp_path: Path) -> None:
    task = write_stock(tmp_path / "ours" / "wrong")
    check = task / "steps/s1/tests/check.sh"
    check.write_text(check.read_text() + "expect_file none /srv/none\n")
    done = CliRunner().invoke(
        app, ["replay", str(task), "--corpus", str(tmp_path / "corpus"), "--json"]
    )
    assert done.exit_code == 1
    replays = json.loads(done.output[done.output.index("{") :])["tasks"][0]["replays"]
    reasons = {r["reason"] for r in replays if r["checked_segment"] == 1}
    assert reasons == {"the unchanged solution fails segment 1: none: /srv/none is missing"}
    assert all(r["holds"] is not None for r in replays if r["checked_segment"] == 2)


def test_a_changed_task_needs_another_corpus(
    stock: Path, corpus: Path, replayed: Replayed, tmp_path: Path
) -> None:
    changed = write_stock(tmp_path / "ours" / "stock")
    (changed / "steps/s1/instruction.md").write_text("Otherwise.\n")
    with pytest.raises(DepthkitError, match="has changed since its replays were made"):
        replay_tasks([changed], corpus)
