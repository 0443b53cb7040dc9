"""What measuring writes into a corpus before its first run, and what it refuses; no engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from depthkit.corpus import Corpus
from depthkit.corpus.config import CONFIG
from depthkit.errors import DepthkitError
from depthkit.experiments.measure import measure, plan
from depthkit.experiments.status import status
from depthkit.model import Run
from depthkit.tasks import load_task
from depthkit.tasks.calibration import write_family
from depthkit.trials import engine
from depthkit.trials.limits import Limits

MODEL = "scripted-merge"


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here starts a container."""
    monkeypatch.setattr(engine, "clean", lambda: None)
    monkeypatch.setattr(engine, "release", lambda: None)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_family(tmp_path / "set", "parallel", 2, 1)


def unsolved(task: Path, attempt: int) -> Run:
    record = load_task(task).record
    return Run(
        run_id=f"r{attempt}",
        dataset=record.dataset,
        task_id=record.task_id,
        model=MODEL,
        attempt=attempt,
        purpose="free",
        verdict="failed",
        stop="submitted",
        turns=3,
        task_digest=record.digest,
        provenance="scripted",
    )


@pytest.fixture
def measured(task: Path, tmp_path: Path) -> Corpus:
    """A corpus in which nothing is missing of the task: both free runs fail."""
    corpus = Corpus.open_or_create(tmp_path / "corpus", models=[MODEL])
    corpus.append_runs([unsolved(task, 1), unsolved(task, 2)])
    measure([task], corpus.path, scope="both")
    return corpus


def test_measuring_again_does_not_repeat_the_tasks(measured: Corpus, task: Path) -> None:
    before = (measured.path / "tasks.jsonl").read_bytes()
    assert before.count(b"\n") == 1
    measure([task], measured.path, scope="both")
    assert (measured.path / "tasks.jsonl").read_bytes() == before
    other = write_family(task.parent, "parallel", 3, 1)
    Corpus.open(measured.path).append_runs(
        [
            unsolved(other, attempt).model_copy(update={"run_id": f"other-{attempt}"})
            for attempt in (1, 2)
        ]
    )
    measure([task, other], measured.path, scope="both")
    names = [record.task_id for record in measured.task_records()]
    assert names == [task.name, other.name]
    assert (measured.path / "tasks.jsonl").read_bytes().startswith(before)
    assert (measured.path / "tasks.jsonl").read_bytes().count(b"\n") == 2


def test_a_refused_task_leaves_its_record_as_it_was(measured: Corpus, task: Path) -> None:
    before = (measured.path / "tasks.jsonl").read_bytes()
    with (task / "solution/solve.sh").open("a") as script:
        script.write("echo one line more\n")
    with pytest.raises(DepthkitError, match="has changed since run r1"):
        measure([task], measured.path, scope="both")
    assert (measured.path / "tasks.jsonl").read_bytes() == before


def test_the_others_go_on_without_a_bad_task_which_is_named(measured: Corpus, task: Path) -> None:
    broken = write_family(task.parent, "parallel", 3, 1)
    (broken / "task.toml").write_text("a = ")
    changed = write_family(task.parent, "parallel", 4, 1)
    old = unsolved(changed, 1).model_copy(update={"run_id": "old"})
    Corpus.open(measured.path).append_run(old)
    (changed / "instruction.md").write_text("Do something else.\n")
    before = (measured.path / "tasks.jsonl").read_bytes()
    tasks = [broken, task, changed]
    outcome = measure(tasks, measured.path, scope="both")
    said = plan(tasks, measured.path, scope="both")
    assert said.tasks == 1
    assert said.left_out == outcome.given_up
    assert [reason.split(": ")[0] for reason in outcome.given_up] == [
        str(broken / "task.toml"),
        str(changed),
    ]
    assert (measured.path / "tasks.jsonl").read_bytes() == before
    with pytest.raises(DepthkitError, match="is not valid TOML"):
        measure([broken], measured.path, scope="both")


def test_a_task_that_was_refused_for_good_is_named_again(task: Path, tmp_path: Path) -> None:
    corpus = Corpus.open_or_create(tmp_path / "corpus", models=[MODEL])
    refusal = {"verdict": "none", "stop": "refused"}
    corpus.append_runs(
        [
            unsolved(task, 1).model_copy(update={"run_id": f"refused-{number}", **refusal})
            for number in range(3)
        ]
    )
    outcome = measure([task], corpus.path, scope="both")
    assert outcome.runs == []
    (reason,) = outcome.given_up
    assert reason.startswith(f"set/{task.name}: {MODEL} has refused it several times")


def test_a_model_that_cannot_be_used_is_not_written_into_the_corpus(
    measured: Corpus, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = tmp_path / "models.toml"
    registry.write_text(
        '[keyless]\nlitellm = "openai/x"\nbase_url = "http://localhost:9"\napi_key_env = "NO_KEY"\n'
        '[priceless]\nlitellm = "openai/y"\nbase_url = "http://localhost:9"\n'
        'api_key_env = "A_KEY"\n'
    )
    monkeypatch.delenv("NO_KEY", raising=False)
    monkeypatch.setenv("A_KEY", "any")
    before = (measured.path / CONFIG).read_bytes()
    for folder in (measured.path, tmp_path / "new"):
        for model, limits, why in (
            ("scripted-stpe", None, "scripted-stpe"),
            ("keyless", None, "NO_KEY"),
            ("priceless", Limits(max_cost=1.0), "needs the prices of priceless"),
        ):
            with pytest.raises(DepthkitError, match=why):
                measure(
                    [task],
                    folder,
                    models=[MODEL, model],
                    models_file=registry,
                    limits=limits,
                    scope="both",
                )
    assert (measured.path / CONFIG).read_bytes() == before
    assert not (tmp_path / "new").exists()


def test_the_caps_of_a_corpus_are_those_that_are_planned(task: Path, tmp_path: Path) -> None:
    corpus = Corpus.open_or_create(tmp_path / "corpus", models=[MODEL])
    where = corpus.path / CONFIG
    where.write_text(where.read_text().replace("[1, 2, 3, 5, 10, 20, 40, 80]", "[4, 7]"))
    passed = {"verdict": "passed", "turns": 9}
    corpus.append_task(load_task(task).record)
    corpus.append_runs([unsolved(task, n).model_copy(update=passed) for n in (1, 2)])
    found = plan([task], corpus.path, scope="both")
    assert [planned.cap for _, planned in found.starts] == [4]
    assert (found.most.runs, found.most.turns) == (4, 2 * 4 + 2 * 7)
    said = status(Corpus.open(corpus.path))
    assert said.most == found.most
    assert said.tasks[0].next == [f"{MODEL} cap 4"]
    corpus.append_runs(
        [
            unsolved(task, n).model_copy(
                update={"run_id": f"l{cap}-{n}", "purpose": "ladder", "cap": cap, **more}
            )
            for cap, n, more in ((4, 1, {}), (4, 2, {}), (7, 1, {"verdict": "passed"}))
        ]
    )
    (told,) = status(Corpus.open(corpus.path)).tasks
    assert (told.state, told.D, told.missing) == ("final", 7, 0)
    assert Corpus.open(corpus.path).estimates()["D"].tolist() == [7]
