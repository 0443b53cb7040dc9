"""What a user may rely on when Harbor trials of other people are taken in."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from fake_trials import atif, finished, result, user, write_trial
from taking import take, take_one
from typer.testing import CliRunner

from depthkit.cli import app
from depthkit.corpus import Corpus
from depthkit.corpus.files import mask_text
from depthkit.corpus.ingest import ingest
from depthkit.errors import DepthkitError

KEY = "sk-live-0123456789abcdef"


def test_a_trial_becomes_a_run_a_task_and_a_copy_of_its_files(tmp_path: Path) -> None:
    run = take_one(tmp_path, result(requests=5), trajectory__json=atif(finished(5)))
    assert (run.dataset, run.task_id, run.model) == ("toys", "toy", "some-model")
    assert (run.verdict, run.stop, run.reward, run.turns) == ("passed", "submitted", 1.0, 5)
    assert (run.first_claim_turn, run.agent_minutes, run.context_tokens) == (4, 1.5, 1050)
    assert (run.input_tokens, run.cached_tokens, run.output_tokens) == (5000, 100, 250)
    assert run.command_lines == 3
    assert (run.cost_usd, run.purpose, run.cap, run.detail) == (0.25, "evaluation", None, None)
    assert run.provenance == "imported"
    corpus = Corpus.open(tmp_path / "corpus")
    (task,) = corpus.task_records()
    assert (task.dataset, task.task_id, task.k, task.work) == ("toys", "toy", 1, None)
    kept = corpus.trial_dir(run.run_id)
    assert sorted(str(path.relative_to(kept)) for path in kept.rglob("*") if path.is_file()) == [
        "agent/recording.cast",
        "agent/trajectory.json",
        "result.json",
        "verifier/reward.txt",
    ]
    assert len(corpus.turns()) == 5
    assert [path.name for path in (corpus.path / "trials").iterdir()] == [run.run_id]


def test_ingesting_again_adds_only_what_is_new(tmp_path: Path) -> None:
    for number in range(3):
        write_trial(
            tmp_path / "job" / f"t{number}",
            result(f"toy__{number}", requests=5),
            trajectory__json=atif(finished(5)),
        )
    first = take(tmp_path)
    write_trial(tmp_path / "job" / "t9", result("toy__9"), trajectory__json=atif(finished(5)))
    second = take(tmp_path)
    assert (len(first.added), len(first.known)) == (3, 0)
    assert (len(second.added), len(second.known)) == (1, 3)
    runs = Corpus.open(tmp_path / "corpus").runs()
    assert sorted(runs["attempt"]) == [1, 2, 3, 4]
    # The same trial under another path is the same trial.
    (tmp_path / "job").rename(tmp_path / "moved")
    assert ingest([tmp_path / "moved"], tmp_path / "corpus").added == []


def test_an_ingest_that_was_killed_before_the_run_was_written_is_finished(tmp_path: Path) -> None:
    run = take_one(tmp_path, result(requests=5), trajectory__json=atif(finished(5)))
    corpus = Corpus.open(tmp_path / "corpus")
    (corpus.path / "runs.jsonl").write_text("")
    (corpus.trial_dir(run.run_id) / "half").write_text("done")
    (corpus.path / "trials" / ".ingest-999999999" / "half").mkdir(parents=True)
    assert [taken.run for taken in take(tmp_path).added] == [run]
    assert not (corpus.trial_dir(run.run_id) / "half").exists()
    assert [path.name for path in (corpus.path / "trials").iterdir()] == [run.run_id]


def test_jobs_are_searched_at_any_depth_but_nothing_inside_a_trial(tmp_path: Path) -> None:
    job = tmp_path / "job" / "agent" / "2026-05-01"
    trial = write_trial(job / "t", result(), trajectory__json=atif(finished(3)))
    (job / "result.json").write_text(json.dumps({"id": "j", "n_total_trials": 1, "stats": {}}))
    write_trial(trial / "agent" / "planted", result("forged__1", reward=1.0))
    write_trial(trial / "artifacts" / "planted", result("forged__2", reward=1.0))
    report = take(tmp_path)
    assert [taken.run.task_id for taken in report.added] == ["toy"]
    assert report.bad == []


def test_a_bad_trial_is_named_with_its_reason_and_stops_nothing(tmp_path: Path) -> None:
    job = tmp_path / "job"
    write_trial(job / "a-good", result("good__1"), trajectory__json=atif(finished(3)))
    write_trial(job / "b-no-result", None, trajectory__json=atif(finished(3)))
    broken = write_trial(job / "c-cut-off", None)
    (broken / "result.json").write_text(json.dumps(result("cut__1"))[:300])
    write_trial(job / "d-hostile", result(task_name="../../x"))
    write_trial(job / "e-no-model", result("anon__1", agent_info={}))
    write_trial(job / "f-no-set", result("set__1", source=None))
    (write_trial(job / "g-pipe", None) / "result.json").unlink(missing_ok=True)
    os.mkfifo(job / "g-pipe" / "result.json")
    write_trial(job / "z-good", result("good__2"), trajectory__json=atif(finished(3)))
    report = take(tmp_path)
    assert [taken.run.task_id for taken in report.added] == ["good", "good"]
    reasons = {Path(bad.path).name: bad.reason for bad in report.bad}
    assert "did not finish" in reasons["b-no-result"]
    assert "not whole JSON" in reasons["c-cut-off"]
    assert 'task_name is "../../x"' in reasons["d-hostile"]
    assert "neither a model nor an agent" in reasons["e-no-model"]
    assert "--dataset" in reasons["f-no-set"]
    assert "not a regular file" in reasons["g-pipe"]


def test_a_trial_that_nobody_thought_of_stops_nothing(tmp_path: Path) -> None:
    huge = result(requests=1)
    huge["verifier_result"] = {"rewards": {"a": 1, "b": 10**400}}
    nested: Any = "x"
    for _ in range(1500):
        nested = [nested]
    write_trial(tmp_path / "job" / "huge", huge | {"trial_name": "huge"})
    write_trial(tmp_path / "job" / "nested", result(requests=1) | {"trial_name": "n", "x": nested})
    write_trial(tmp_path / "job" / "plain", result(requests=1))
    report = take(tmp_path)
    assert {taken.run.run_id.split("-")[0]: taken.run.verdict for taken in report.added} == {
        "huge": "none",
        "toy__abc1234": "passed",
    }
    (bad,) = report.bad
    assert bad.path == str(tmp_path / "job" / "nested")
    assert bad.reason.startswith("cannot be taken in (RecursionError: ")
    assert len(Corpus.open(tmp_path / "corpus").run_records()) == 2


def test_a_folder_without_a_trial_makes_no_corpus(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    with pytest.raises(DepthkitError, match="no Harbor trial in it"):
        take(tmp_path)
    with pytest.raises(DepthkitError, match="no such directory"):
        ingest([tmp_path / "nowhere"], tmp_path / "corpus")
    assert not (tmp_path / "corpus").exists()


@pytest.mark.parametrize(
    ("given", "dataset", "task_id"),
    [
        ({"task_name": "terminal-bench/foo"}, "toys", "foo"),
        ({"task_name": "terminal-bench/foo", "source": None}, "terminal-bench", "foo"),
        ({"source": "terminal-bench/terminal-bench-2"}, "terminal-bench-2", "toy"),
    ],
)
def test_the_owner_before_a_name_is_left_out(
    tmp_path: Path, given: dict[str, Any], dataset: str, task_id: str
) -> None:
    run = take_one(tmp_path, result(**given), trajectory__json=atif(finished(3)))
    assert (run.dataset, run.task_id) == (dataset, task_id)


def test_data_set_and_purpose_can_be_given(tmp_path: Path) -> None:
    write_trial(tmp_path / "job" / "t", result(), trajectory__json=atif(finished(3)))
    (taken,) = take(tmp_path, dataset="tb2", purpose="free").added
    assert (taken.run.dataset, taken.run.purpose) == ("tb2", "free")


# --- files that are not trusted ---


def test_no_key_reaches_the_corpus(tmp_path: Path) -> None:
    outcome = result(requests=3, error=("AuthenticationError", f"Incorrect API key: {KEY}"))
    outcome["config"]["agent"] |= {
        "kwargs": {"api_key": KEY, "max_tokens": 4096, "llm_kwargs": {"auth_token": KEY}},
        "env": {"ANYTHING": KEY, "EMPTY": ""},
    }
    document = atif(finished(3))
    document["agent"]["extra"] = {"parser": "json", "llm_kwargs": {"api_key": KEY}}
    trial = write_trial(tmp_path / "job" / "t", outcome, trajectory__json=document)
    whole = json.dumps(document)
    (trial / "agent" / "trajectory.cont-1.json").write_text(whole[: whole.rindex("final")])
    (trial / "exception.txt").write_text(f"AuthenticationError: Incorrect API key: {KEY}")
    (trial / "trial.log").write_text(KEY)
    (taken,) = take(tmp_path).added
    corpus = Corpus.open(tmp_path / "corpus")
    for path in corpus.path.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path
    kept = json.loads((corpus.trial_dir(taken.run.run_id) / "result.json").read_text())
    options = kept["config"]["agent"]["kwargs"]
    assert (options["api_key"], options["max_tokens"]) == ("[redacted]", 4096)
    assert kept["config"]["agent"]["env"] == {"ANYTHING": "[redacted]", "EMPTY": ""}
    assert taken.run.detail == "AuthenticationError: Incorrect API key: [redacted]"


def test_a_trajectory_without_keys_is_copied_byte_for_byte(tmp_path: Path) -> None:
    text = json.dumps(atif([user('the api_key" : "is a secret'), *finished(3)[1:]]), indent=3)
    run = take_one(tmp_path, result("sk-learn-hf-model-inference__x"), trajectory__json=text)
    kept = Corpus.open(tmp_path / "corpus").trial_dir(run.run_id)
    assert (kept / "agent" / "trajectory.json").read_text() == text
    assert run.task_id == "sk-learn-hf-model-inference"


def test_links_and_special_files_are_left_out_and_told(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not yours")
    trial = write_trial(tmp_path / "job" / "t", result(), trajectory__json=atif(finished(3)))
    (trial / "verifier" / "link.txt").symlink_to(secret)
    os.mkfifo(trial / "verifier" / "pipe.txt")
    (trial / "verifier" / "odd name").write_text("x")
    (trial / "verifier" / "more").mkdir()
    (trial / "verifier" / "more" / "log.txt").write_text("kept")
    (trial / "steps").symlink_to("/etc")
    (trial / "agent" / "recording.cast").unlink()
    (trial / "agent" / "recording.cast").symlink_to(secret)
    report = take(tmp_path)
    kept = Corpus.open(tmp_path / "corpus").trial_dir(report.added[0].run.run_id)
    assert sorted(p.name for p in kept.rglob("*") if p.is_file()) == [
        "log.txt",
        "result.json",
        "reward.txt",
        "trajectory.json",
    ]
    told = "\n".join(report.notes)
    for name in ("link.txt", "pipe.txt", "odd name", "recording.cast"):
        assert name in told


@pytest.mark.parametrize("name", ["../../../etc/x", "a\x1b[31m b", ".", "", "ü" * 300, "x" * 4000])
def test_any_trial_name_gives_a_plain_run_id(tmp_path: Path, name: str) -> None:
    run = take_one(tmp_path, result(trial_name=name), trajectory__json=atif(finished(3)))
    assert Corpus.open(tmp_path / "corpus").trial_dir(run.run_id).is_dir()
    assert len(run.run_id) < 150


# --- the commands ---


def test_the_command_prints_what_was_read_and_what_was_not(tmp_path: Path) -> None:
    write_trial(tmp_path / "job" / "a", result(requests=4), trajectory__json=atif(finished(4)))
    write_trial(tmp_path / "job" / "b", result(task_name="../x"))
    arguments = ["ingest", str(tmp_path / "job"), "--corpus", str(tmp_path / "c")]
    told = CliRunner().invoke(app, [*arguments, "--json"])
    assert told.exit_code == 0
    summary = json.loads(told.stdout)
    (added,) = summary["added"]
    shown = {name: added[name] for name in ("verdict", "stop", "turns", "parse_errors")}
    assert shown == {"verdict": "passed", "stop": "submitted", "turns": 4, "parse_errors": 0}
    assert summary["bad"][0]["path"].endswith("/b")
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 0
    assert "Trials added: 0, already there: 1, not readable: 1." in again.stdout
    assert "1 task, 1 run (1 imported)" in again.stdout


def test_runs_for_estimates_without_a_model_set_are_told_at_once_what_they_lack(
    tmp_path: Path,
) -> None:
    write_trial(tmp_path / "job" / "t", result(requests=4), trajectory__json=atif(finished(4)))
    arguments = ["ingest", str(tmp_path / "job"), "--corpus", str(tmp_path / "c")]
    told = CliRunner().invoke(app, [*arguments, "--purpose", "free"])
    assert told.exit_code == 0
    assert f"{tmp_path / 'c'}: names no model set yet" in told.stderr
    assert "--models some-model (" in told.stderr
    again = CliRunner().invoke(app, [*arguments, "--purpose", "free", "--models", "some-model"])
    assert (again.exit_code, again.stderr.strip()) == (0, "")
    assert Corpus.open(tmp_path / "c").estimates()["runs"].tolist() == [1]


def test_the_command_fails_if_nothing_could_be_read(tmp_path: Path) -> None:
    write_trial(tmp_path / "job" / "b", result(task_name="../x"))
    told = CliRunner().invoke(
        app, ["ingest", str(tmp_path / "job"), "--corpus", str(tmp_path / "c")]
    )
    assert told.exit_code == 1
    wrong = ["ingest", str(tmp_path), "--corpus", str(tmp_path / "c"), "--purpose", "fun"]
    assert CliRunner().invoke(app, wrong).exit_code == 2


def test_estimates_of_imported_free_runs_are_printed(tmp_path: Path) -> None:
    for number, turns in ((1, 6), (2, 4)):
        write_trial(
            tmp_path / "job" / f"t{number}",
            result(f"toy__{number}", requests=turns),
            trajectory__json=atif(finished(turns)),
        )
    Corpus.open_or_create(tmp_path / "corpus", models=["some-model"])
    take(tmp_path, purpose="free")
    told = CliRunner().invoke(app, ["estimates", str(tmp_path / "corpus"), "--json"])
    (row,) = json.loads(told.stdout)
    assert row == {
        "dataset": "toys",
        "task_id": "toy",
        "solved": True,
        "N": 4,
        "D": None,
        "D_by_model": {"some-model": None},
        "R": 1.0,
        "work_lines": None,
        "work_tokens": None,
        "work_chars": None,
        "lowest_passing_cap": None,
        "final": False,
        "merged": None,
        "runs": 2,
        "passes": 2,
        "unconfirmed": 0,
        "suspect": 0,
        "provenance": "imported",
    }
    shown = CliRunner().invoke(app, ["estimates", str(tmp_path / "corpus")])
    assert "Corpus corpus: 1 task, 2 runs (2 imported)" in shown.stdout
    assert CliRunner().invoke(app, ["estimates", str(tmp_path / "nowhere")]).exit_code == 2


def test_imported_free_runs_without_a_model_set_say_how_to_name_it(tmp_path: Path) -> None:
    write_trial(tmp_path / "job" / "t", result(requests=2), trajectory__json=atif(finished(2)))
    corpus = tmp_path / "corpus"
    ingest = ["ingest", str(tmp_path / "job"), "--corpus", str(corpus), "--purpose", "free"]
    assert CliRunner().invoke(app, ingest).exit_code == 0
    told = CliRunner().invoke(app, ["estimates", str(corpus)])
    assert told.exit_code == 2
    assert told.stderr.startswith(f"{corpus}/corpus.toml: models is empty")
    assert "--models" in told.stderr
    assert CliRunner().invoke(app, [*ingest, "--models", "some-model"]).exit_code == 0
    told = CliRunner().invoke(app, ["estimates", str(corpus), "--json"])
    assert [row["runs"] for row in json.loads(told.stdout)] == [1]


def test_credentials_in_an_address_are_masked() -> None:
    masked = mask_text("api_base https://me:pass-word@host:8000/v1?api_key=abc&n=1 refused")
    assert masked == "api_base https://[redacted]@host:8000/v1?api_key=[redacted]&n=1 refused"
    assert mask_text("http://host/v1?n=1") == "http://host/v1?n=1"
