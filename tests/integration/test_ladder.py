"""Depth measured for real: calibration tasks, containers, terminus-2, scripted models."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from toys import write_toy

from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.experiments.measure import measure
from depthkit.tasks import load_task
from depthkit.tasks.calibration import write_family
from depthkit.trials import engine
from depthkit.trials.landing import RUNNING

pytestmark = pytest.mark.docker

MERGE, STEP = "scripted-merge", "scripted-step"


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tasks") / "calibration"
    wanted = [("parallel", 10), ("static-chain", 10), ("control", 6)]
    return {family: write_family(folder, family, steps, 1) for family, steps in wanted}


def estimates(folder: Path) -> dict[str, dict[str, Any]]:
    printed = subprocess.run(
        [sys.executable, "-m", "depthkit", "estimates", str(folder), "--json"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return {row["task_id"]: row for row in json.loads(printed)}


@pytest.fixture(scope="module")
def merging_first(tasks: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("merging") / "corpus"
    outcome = measure(
        [tasks["parallel"]], folder, models=[MERGE], scope="both", workers=4, record=False
    )
    assert outcome.given_up == []
    return folder


@pytest.fixture(scope="module")
def stepping_first(tasks: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stepping") / "corpus"
    outcome = measure(
        [tasks["parallel"], tasks["control"]],
        folder,
        models=[STEP, MERGE],
        scope="both",
        workers=4,
        record=False,
    )
    assert outcome.given_up == []
    return folder


def test_what_can_be_merged_is_shallow(merging_first: Path) -> None:
    # test_readme measures all three families with this model
    row = estimates(merging_first)["parallel-10-s1"]
    assert row["D"] in (2, 3)
    assert row["solved"] and row["final"]
    assert row["provenance"] == "scripted"


def test_a_second_model_lowers_depth_where_the_first_does_not_merge(stepping_first: Path) -> None:
    rows = estimates(stepping_first)
    parallel, control = rows["parallel-10-s1"], rows["control-6-s1"]
    assert parallel["D_by_model"][STEP] >= 10
    assert parallel["D"] == parallel["D_by_model"][MERGE]
    assert parallel["D"] in (2, 3)
    # Where every step needs a turn of its own there is nothing to merge.
    assert control["D_by_model"] == {STEP: 10, MERGE: None}
    assert control["D"] == 10


def test_no_run_was_made_that_the_protocol_does_not_ask_for(stepping_first: Path) -> None:
    runs = Corpus.open(stepping_first).run_records()
    count = Counter((r.task_id, r.model, r.cap, r.attempt) for r in runs)
    assert set(count.values()) == {1}
    for run in runs:
        first = (run.task_id, run.model, run.cap, 1)
        if run.attempt == 2 and run.cap is not None:
            assert not next(
                r for r in runs if (r.task_id, r.model, r.cap, r.attempt) == first
            ).passed
    assert not [r for r in runs if r.model == MERGE and r.cap is None]
    assert {run.cost_usd for run in runs} == {0.0}  # a policy costs nothing, and that is known
    assert all(
        r.turns is not None and r.cap is not None and r.turns <= r.cap for r in runs if r.cap
    )


def test_measuring_again_starts_nothing(merging_first: Path, tasks: dict[str, Path]) -> None:
    before = (merging_first / "runs.jsonl").read_bytes()
    outcome = measure([tasks["parallel"]], merging_first, scope="both")
    assert outcome.runs == []
    assert (merging_first / "runs.jsonl").read_bytes() == before


def test_turns_of_a_run_are_in_the_corpus(merging_first: Path) -> None:
    corpus = Corpus.open(merging_first)
    turns = corpus.turns().groupby("run_id").size()
    assert turns.to_dict() == {r.run_id: r.turns for r in corpus.run_records()}


def test_a_task_that_changed_is_not_mixed_with_what_was_measured(
    merging_first: Path, tasks: dict[str, Path]
) -> None:
    instruction = tasks["parallel"] / "instruction.md"
    original = instruction.read_text()
    instruction.write_text(original + "\nHurry.\n")
    try:
        with pytest.raises(DepthkitError, match="has changed since run"):
            measure([tasks["parallel"]], merging_first, scope="both")
    finally:
        instruction.write_text(original)


def test_another_first_model_needs_another_corpus(
    merging_first: Path, tasks: dict[str, Path]
) -> None:
    with pytest.raises(DepthkitError, match=r"models is \['scripted-merge'\]"):
        measure([tasks["parallel"]], merging_first, models=[STEP], scope="both")


# --- kill -9 ---


def start_ladder(folder: Path, *tasks: Path, by: Sequence[str] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *by,
            *(sys.executable, "-m", "depthkit", "ladder", *map(str, tasks)),
            *("--with-free", "--models", MERGE, "--corpus", str(folder), "--workers", "3"),
        ],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def labels_of(made: Any) -> dict[str, str]:
    return (made.attrs.get("Config") or made.attrs).get("Labels") or {}


def made_by_others() -> dict[str, set[str]]:
    """Containers, images and networks of other processes whose owners lie beside this one's."""
    api = engine.client()
    query: engine.Filters = {"label": engine.OWNER_LABEL}
    mine = engine.owner()
    found = {
        "containers": api.containers.list(all=True, filters=query, ignore_removed=True),
        "images": api.images.list(filters=query),
        "networks": api.networks.list(filters=query),
    }

    def is_meant(labels: dict[str, str]) -> bool:
        lock = Path(labels[engine.LOCK_LABEL])
        return labels[engine.OWNER_LABEL] != mine.id and lock.parent == mine.lock.parent

    return {
        kind: {str(o.id) for o in made if is_meant(labels_of(o))} for kind, made in found.items()
    }


def containers_of(process: subprocess.Popen[str]) -> set[str]:
    """Names of the containers that a living process owns; its lock file holds its number."""
    query: engine.Filters = {"label": engine.OWNER_LABEL}
    found = engine.client().containers.list(all=True, filters=query, ignore_removed=True)
    locks = {str(c.name): Path(c.labels[engine.LOCK_LABEL]) for c in found}
    return {
        name
        for name, lock in locks.items()
        if lock.is_file() and lock.read_text().strip() == str(process.pid)
    }


def still_there(names: set[str]) -> set[str]:
    found = engine.client().containers.list(all=True, ignore_removed=True)
    return names & {str(c.name) for c in found}


def wait_until(condition: Any, seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)


def tags() -> set[str]:
    """Of images, but those of owners that lie elsewhere: of another process of `make test`."""
    here = engine.owner().lock.parent
    return {
        tag
        for image in engine.client().images.list()
        for tag in image.tags
        if Path(labels_of(image).get(engine.LOCK_LABEL, here / "none")).parent == here
    }


@pytest.fixture
def nothing_left() -> Iterator[None]:
    engine.clean()
    before = tags()
    yield
    assert made_by_others() == {"containers": set(), "images": set(), "networks": set()}
    assert tags() <= before


@pytest.mark.usefixtures("nothing_left")
def test_killed_and_started_again_nothing_is_lost_measured_twice_or_left_behind(
    tasks: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "corpus"
    chosen = (tasks["parallel"], tasks["static-chain"])
    lines = folder / "runs.jsonl"

    first = start_ladder(folder, *chosen)
    wait_until(lambda: lines.is_file() and len(lines.read_text().splitlines()) >= 2)
    left: set[str] = set()

    def stopped_amid_a_trial() -> bool:
        first.send_signal(signal.SIGSTOP)
        time.sleep(0.5)  # A removal that was on its way is carried out.
        left.update(containers_of(first))
        if not left:
            first.send_signal(signal.SIGCONT)
        return bool(left)

    wait_until(stopped_amid_a_trial)
    first.send_signal(signal.SIGKILL)
    first.wait()
    measured = lines.read_text().splitlines()
    assert still_there(left)
    # As if it had been killed after its files were in place, before its line was written.
    last = json.loads(measured[-1])["run_id"]
    lines.write_text("".join(f"{line}\n" for line in measured[:-1]))

    second = start_ladder(folder, *chosen)
    _, err = second.communicate(timeout=240)
    assert second.returncode == 0, err
    runs = Corpus.open(folder).run_records()
    ids = [run.run_id for run in runs]
    assert last in ids
    assert ids[: len(measured)] == [json.loads(line)["run_id"] for line in measured]
    count = Counter((r.task_id, r.cap, r.attempt) for r in runs)
    assert set(count.values()) == {1}
    assert {row["D"] for row in estimates(folder).values()} <= {2, 3}
    assert not (folder / "trials" / RUNNING).exists()
    assert {p.name for p in (folder / "trials").iterdir()} == set(ids)


@pytest.mark.usefixtures("nothing_left")
def test_clean_takes_a_killed_owners_things_and_leaves_a_living_ones(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys, time\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from test_environment import opened\n"
        "from depthkit.trials.environment import DockerEnvironment\n"
        "from pathlib import Path\n"
        "async def main():\n"
        "    folder = Path(sys.argv[1]); folder.mkdir()\n"
        "    text = f'FROM depthkit/base:1\\nRUN echo {folder.name} > /made\\n'\n"
        "    async with opened(DockerEnvironment, folder, config={}, dockerfile=text):\n"
        "        print('up', flush=True)\n"
        "        await asyncio.sleep(300)\n"
        "asyncio.run(main())\n"
    )
    owners = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path / name), str(Path(__file__).parent)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("killed", "living")
    ]
    for owner in owners:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
    killed, living = owners
    try:
        assert not engine.clean(dry_run=True)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        looked = subprocess.run(
            [sys.executable, "-m", "depthkit", "clean", "--dry-run", "--json"],
            check=True,
            capture_output=True,
            text=True,
        )
        seen = json.loads(looked.stdout)
        found = engine.clean()
        assert seen == vars(found)
        # Its own, and the one that holds the tool set for it.
        assert len(found.containers) == 2
        assert "killed" in found.containers[0]
        assert "tools" in found.containers[1]
        assert len(found.images) == 1
        left = made_by_others()
        assert (len(left["containers"]), len(left["images"])) == (2, 1)
    finally:
        living.send_signal(signal.SIGKILL)
        living.wait()
    found = engine.clean()
    assert "living" in found.containers[0]
    # The network that all share goes with its last user.
    engine.clean()
    networks = engine.client().networks.list(names=[engine.NETWORK])
    for network in networks:
        network.reload()
    assert all(network.attrs["Containers"] for network in networks)


def test_an_interrupted_ladder_finishes_what_runs_and_says_how_to_go_on(
    tasks: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "corpus"
    running = start_ladder(folder, tasks["control"])
    wait_until(lambda: containers_of(running))
    made = containers_of(running)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=120)
    assert running.returncode == 130
    assert "the same command goes on" in err
    runs = Corpus.open(folder).run_records()
    assert [run.verdict for run in runs] == ["passed", "passed"]
    assert still_there(made) == set()


def test_a_corpus_is_measured_by_one_process_at_a_time(
    tasks: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "corpus"
    running = start_ladder(folder, tasks["parallel"])
    wait_until(lambda: containers_of(running))
    made = containers_of(running)
    with pytest.raises(DepthkitError, match="another depthkit process is measuring"):
        measure([tasks["parallel"]], folder, models=[MERGE], scope="both")
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=60)
    assert still_there(made) == set()


def test_a_terminal_that_is_closed_leaves_nothing_behind(
    tasks: dict[str, Path], tmp_path: Path
) -> None:
    running = start_ladder(tmp_path / "corpus", tasks["parallel"])
    wait_until(lambda: containers_of(running))
    made = containers_of(running)
    running.send_signal(signal.SIGHUP)
    _, err = running.communicate(timeout=60)
    assert (running.returncode, "the same command goes on" in err) == (130, True)
    assert still_there(made) == set()


def test_under_nohup_a_ladder_outlives_its_terminal(tasks: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    running = start_ladder(folder, tasks["control"], by=["nohup"])
    wait_until(lambda: containers_of(running))
    running.send_signal(signal.SIGHUP)
    running.send_signal(signal.SIGINT)  # finishes what runs
    running.communicate(timeout=120)
    assert [run.verdict for run in Corpus.open(folder).run_records()] == ["passed", "passed"]


def test_no_engine_is_one_clear_error(tasks: dict[str, Path], tmp_path: Path) -> None:
    said = subprocess.run(
        [
            *(sys.executable, "-m", "depthkit", "free", str(tasks["parallel"])),
            *("--models", MERGE, "--corpus", str(tmp_path / "corpus")),
        ],
        env={**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/none.sock"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 2
    assert "No Docker engine answers" in said.stderr
    assert "Traceback" not in said.stderr


def test_a_task_that_cannot_be_built_does_not_hold_up_the_others(tmp_path: Path) -> None:
    broken = write_toy(tmp_path / "set" / "broken")
    (broken / "environment" / "Dockerfile").write_text("FROM depthkit/base:1\nRUN false\n")
    good = write_family(tmp_path / "set", "parallel", 3, 1)
    outcome = measure(
        [broken, good], tmp_path / "corpus", models=[MERGE], scope="free", workers=4, record=False
    )
    assert load_task(good).record.task_id in {r.task_id for r in outcome.runs if r.passed}
    assert len(outcome.given_up) == 2
    assert all("broken" in reason and "does not build" in reason for reason in outcome.given_up)
