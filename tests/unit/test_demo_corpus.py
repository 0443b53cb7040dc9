"""The bundled demo corpus: whole, scripted, and saying what its families are for."""

from __future__ import annotations

import gzip
import re

import pytest

from depthkit.corpus import Corpus, read_trajectory
from depthkit.experiments.demo import DEMO, MODELS, SIZES
from depthkit.tasks import load_task
from depthkit.tasks.calibration import write_family


@pytest.fixture(scope="module")
def demo() -> Corpus:
    return Corpus.open("demo")


def test_it_holds_every_task_of_the_plan_and_only_scripted_runs(demo: Corpus) -> None:
    wanted = {(f, f"{f}-{n}-s1") for f, sizes in SIZES.items() for n in sizes}
    assert {(t.dataset, t.task_id) for t in demo.task_records()} == wanted
    assert demo.models == MODELS
    assert set(demo.provenance()) == {"scripted"}


def test_its_tasks_are_those_that_calibrate_writes_today(demo: Corpus, tmp_path) -> None:
    for family, sizes in SIZES.items():
        folder = write_family(tmp_path / family, family, sizes[0], 1)
        kept = next(t for t in demo.task_records() if t.task_id == folder.name)
        assert load_task(folder).record == kept


def test_every_run_has_its_trajectory_recording_and_turns(demo: Corpus) -> None:
    for run in demo.run_records():
        agent = demo.trial_dir(run.run_id) / "agent"
        assert (agent / "trajectory.json").is_file()
        assert (agent / "recording.cast").is_file()
        assert len((agent / "turns.jsonl").read_text().splitlines()) == run.turns
        assert read_trajectory(agent / "trajectory.json").command_lines == run.command_lines


def test_depth_follows_the_family_and_not_the_number_of_steps(demo: Corpus) -> None:
    rows = demo.estimates()
    assert rows["final"].all()
    steps = rows["task_id"].str.extract(r"-(\d+)-s1$")[0].astype(int)
    merged = rows["dataset"] != "control"
    assert (rows[merged]["D"] <= 3).all()
    # In control every step needs a turn; D is the smallest cap with room for all of them.
    assert (rows[~merged]["D"] > steps[~merged]).all()
    # The habit of the first model shows in N everywhere.
    assert (rows["N"] > steps).all()


def test_it_names_no_folder_of_the_machine_it_was_measured_on() -> None:
    for path in DEMO.rglob("*"):
        if path.is_file() and path.suffix != ".parquet":
            data = path.read_bytes()
            text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
            assert not re.search(r"(?<![\w.])/(root|home|tmp/tmp|Users)\b", text), path
