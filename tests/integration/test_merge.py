"""Three segments become one instruction, and are measured downward for real (Appendix H)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from checked_task import write_checked_task
from toys import reply
from typer.testing import CliRunner

from depthkit.artifacts.merging import merging_figure
from depthkit.cli import app
from depthkit.corpus import Corpus
from depthkit.corpus.show import estimate_rows
from depthkit.experiments.merge import merge_task
from depthkit.model import Run
from depthkit.tasks import load_task
from depthkit.tasks.check_scripts import check_script
from depthkit.trials import engine
from depthkit.trials.scripted.policies import Messages
from depthkit.trials.scripted.server import ScriptedServer

pytestmark = pytest.mark.docker

SEGMENTS = [
    {
        "instruction": "Write the port 80 to /app/port and the word open to /app/state.\n",
        "solve": "#!/bin/bash\nset -e\necho 80 >/app/port\necho open >/app/state\nexit 0\n",
        "check": (
            "expect_eq port \"$(tr -d '\\n' </app/port)\" 80 int\n"
            "expect_out state open -- cat /app/state\n"
        ),
    },
    {
        "instruction": "Write twice the port of /app/port to /app/double.\n",
        "solve": "#!/bin/sh\necho $((2 * $(cat /app/port))) >/app/double\n",
        "check": "expect_file double /app/double\nexpect_ok set -- test -s /app/port\n",
    },
    {
        "instruction": "Move the port in /app/port to 8080.\n",
        "solve": "#!/bin/bash\ncat >/app/port <<'END'\n8080\nEND\n",
        "check": 'expect_eq port "$(cat /app/port)" 8080 int\n',
    },
]
WORK = [
    ["echo 80 >/app/port", "echo open >/app/state"],
    ["echo $((2 * $(cat /app/port))) >/app/double"],
    ["echo 8080 >/app/port"],
]


def write_task(folder: Path, **last: str) -> Path:
    segments = [*SEGMENTS[:2], SEGMENTS[2] | last]
    return write_checked_task(folder, segments, dockerfile="FROM depthkit/base:1\nWORKDIR /app\n")


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("tasks") / "ours" / "ports")


@pytest.fixture(scope="module")
def merged(parent: Path) -> Path:
    out = parent.parents[1] / "merged"
    found = merge_task(parent, out)
    assert found.faults == []
    assert [(each.segment, each.check) for each in found.dropped] == [("s1", "port")]
    assert found.checks == 4
    assert found.path == str(out / "ports-merged")
    assert [each.name for each in out.iterdir()] == ["ports-merged"]
    return out / "ports-merged"


def test_a_merged_task_has_all_requirements_in_order(parent: Path, merged: Path) -> None:
    task, before = load_task(merged), load_task(parent)
    assert (task.record.k, task.record.parent, task.merged_segments) == (1, "ports", 3)
    assert task.record.parent_dataset == "ours"
    places = [task.instructions[0].index(text.strip()) for text in before.instructions]
    assert places == sorted(places)
    # The work stays the same, but for the parentheses around each script.
    assert task.record.work is not None
    assert before.record.work is not None
    assert task.record.work.lines == before.record.work.lines + 6
    assert json.loads((merged / "merged.json").read_text())["dropped"][0]["check"] == "port"
    assert "--without port" in (merged / "tests/test.sh").read_text()
    assert task.verifier_timeout_sec == 3 * before.verifier_timeout_sec


def test_a_task_that_fails_its_last_segment_is_not_accepted(tmp_path: Path) -> None:
    task = write_task(tmp_path / "ours" / "wrong", check="expect_file none /app/none\n")
    done = CliRunner().invoke(app, ["merge", str(task), "-o", str(tmp_path / "merged")])
    assert done.exit_code == 1
    assert "the last segment's check none fails: /app/none is missing" in done.output
    assert list((tmp_path / "merged").iterdir()) == []
    assert not engine.clean(dry_run=True)


def one_part_a_turn(messages: Messages) -> str:
    turn = sum(message["role"] == "assistant" for message in messages)
    return reply(*WORK[min(turn, 2)], complete=turn >= 2)


def run_before(cap: int | None, attempt: int, passed: bool, turns: int) -> Run:
    values: dict[str, Any] = {
        "run_id": f"{cap}-{attempt}",
        "dataset": "ours",
        "task_id": "ports",
        "model": "m",
        "cap": cap,
        "attempt": attempt,
        "purpose": "ladder" if cap else "free",
        "verdict": "passed" if passed else "failed",
        "stop": "submitted",
        "turns": turns,
        "provenance": "scripted",
    }
    return Run.model_validate(values)


def test_a_merged_task_is_measured_from_its_original_d_downward(
    parent: Path, merged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus.open_or_create(tmp_path / "corpus", models=["m"])
    corpus.append_tasks([load_task(parent).record])
    arguments = ["ladder", "--merged", str(merged), "--corpus", str(corpus.path)]
    unknown = CliRunner().invoke(app, arguments)
    assert unknown.exit_code == 2
    assert "D of ours/ports with m is not known" in unknown.output
    for cap, passed, turns in ((None, True, 4), (1, False, 1), (2, False, 2), (3, True, 3)):
        for attempt in (1, 2):
            corpus.append_run(run_before(cap, attempt, passed, turns))
    estimates = corpus.estimates()
    with ScriptedServer({"m": one_part_a_turn}) as server:
        registry = tmp_path / "models.toml"
        registry.write_text(
            f'[m]\nlitellm = "openai/m"\nbase_url = "{server.base_url}"\n'
            "context_tokens = 100000\nmax_output_tokens = 1000\n"
        )
        done = CliRunner().invoke(app, [*arguments, "--models-file", str(registry), "--json"])
    assert done.exit_code == 0, done.output
    corpus = Corpus.open(corpus.path)
    runs = [run for run in corpus.run_records() if run.purpose == "merged"]
    assert sorted((run.cap, run.attempt, run.passed) for run in runs) == [
        (2, 1, False),
        (2, 2, False),
        (3, 1, True),
        (3, 2, True),
    ]
    assert {run.depth_before for run in runs} == {3}
    # Merged runs stay out of the estimates and stand apart; Figure 5 follows from them.
    (row,) = [row for row in estimate_rows(corpus) if row["task_id"] == "ports-merged"]
    assert row["D"] is None
    assert row["merged"] == {"D_before": 3, "first_cap": 3, "D": 3}
    after = corpus.estimates()
    assert after[after["task_id"] == "ports"]["D"].tolist() == estimates["D"].tolist() == [3]
    assert after[after["task_id"] == "ports-merged"]["D"].isna().all()
    frame = merging_figure(corpus).frame
    assert frame.to_dict("records") == [{"D_before": 3, "D_after": "3", "tasks": 1}]


def test_the_check_scripts_of_the_parent_stay_as_they_are(parent: Path, merged: Path) -> None:
    for index in range(3):
        source = check_script(load_task(parent), index)
        assert source is not None
        copy = merged / "tests" / f"check-{index + 1}.sh"
        assert copy.read_text() == source.read_text()
