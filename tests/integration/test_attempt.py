"""`depthkit attempt`: a task tried by hand, through the files that a person would use."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from toys import reply, write_segments, write_toy

from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.experiments.attempt import attempt

pytestmark = pytest.mark.docker

REPLIES = ("echo part-1 > /app/out-1", "echo part-2 > /app/out-2")


def answer(folder: Path, turn: int, text: str) -> str:
    """Wait for a turn, answer it, and give back what was seen."""
    asked = folder / f"turn-{turn:03}.txt"
    until = time.monotonic() + 240
    while not asked.exists():
        assert time.monotonic() < until, f"no {asked.name}"
        time.sleep(0.1)
    (folder / f"turn-{turn:03}.json").write_text(text)
    return asked.read_text()


def test_a_task_is_tried_blind_and_recorded_as_an_evaluation(tmp_path: Path) -> None:
    task, turns = write_segments(tmp_path / "set" / "two", 2), tmp_path / "turns"
    command = [
        *(sys.executable, "-m", "depthkit", "attempt", str(task), "--by", "alice", "--json"),
        *("--exchange", str(turns), "--corpus", str(tmp_path / "corpus")),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            seen = [
                answer(turns, 1, reply(REPLIES[0], complete=True)),
                answer(turns, 2, "no reply in the form that was asked for"),
                answer(turns, 3, reply(REPLIES[1], complete=True)),
                answer(turns, 4, reply(complete=True)),  # confirms, as after the last segment
            ]
            printed, _ = process.communicate(timeout=240)
        except BaseException:
            process.terminate()
            raise
    assert process.returncode == 0
    assert "part 2 of 2" in re.sub(r"\s+", " ", seen[1])
    solution = (task / "steps" / "s2" / "solution" / "solve.sh").read_text()
    assert not any(solution.strip() in text for text in seen)
    run = json.loads(printed)
    assert run == json.loads((turns / "run.json").read_text())
    assert (run["verdict"], run["turns"], run["segments_passed"]) == ("passed", 4, 2)
    corpus = Corpus.open(tmp_path / "corpus")
    (recorded,) = corpus.run_records()
    assert (recorded.model, recorded.purpose) == ("by-hand-alice", "evaluation")
    assert recorded.cost_usd is None
    assert corpus.estimates()["solved"].isna().all()
    with pytest.raises(DepthkitError, match="earlier attempt"):
        attempt(task, tmp_path / "corpus", turns, by="alice", say=print)
    (task / "steps" / "s2" / "instruction.md").write_text("Something else.\n")
    with pytest.raises(DepthkitError, match="the task has changed since run"):
        attempt(task, tmp_path / "corpus", tmp_path / "more", by="bob", say=print)
    assert len(Corpus.open(tmp_path / "corpus").task_records()) == 1


def test_a_name_that_will_not_do_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    task = write_toy(tmp_path / "set" / "toy")
    with pytest.raises(DepthkitError, match="--by is 'A B'"):
        attempt(task, tmp_path / "corpus", tmp_path / "turns", by="A B", say=print)
    assert not (tmp_path / "turns").exists()
    assert not (tmp_path / "corpus").exists()
