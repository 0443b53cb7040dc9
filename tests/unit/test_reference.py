"""Results in the files of the paper's own repository, written and read back."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from corpora import Spec, write_corpus
from typer.testing import CliRunner, Result

from depthkit.cli import app
from depthkit.corpus import Corpus
from depthkit.corpus.show import estimate_rows
from depthkit.model import Run, Segment, Task
from depthkit.protocol import ABOVE

PAGE = (Path(__file__).parents[2] / "docs/reference-repository.md").read_text()


def run(*arguments: str | Path, **environ: str) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "120", **environ})


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def measured(tmp_path: Path) -> Corpus:
    """Tasks of every kind: shallow, above 80, unsolved, unfinished, and one of six segments."""
    specs = [
        Spec("tb2", 3, task_id="shallow"),
        Spec("tb2", 200, turns=120, task_id="deepest"),
        Spec("tw", 0, task_id="unsolved"),
        Spec("tw", 3, task_id="unfinished", runs=4),
        Spec("depth", 20, turns=30, task_id="six"),
    ]
    corpus = write_corpus(tmp_path / "measured", specs)
    segments = tuple(Segment(index=i, name=f"s{i}") for i in range(1, 7))
    corpus.append_task(
        Task(dataset="depth", task_id="six", segments=segments, provenance="scripted")
    )
    return corpus


def test_the_demo_corpus_has_the_same_estimates_after_there_and_back(tmp_path: Path) -> None:
    assert run("export", "demo", "--reference", tmp_path / "out").exit_code == 0
    result = run("ingest", tmp_path / "out", "--corpus", tmp_path / "back", "--json")
    assert result.exit_code == 0
    summary = json.loads(result.stdout)
    assert len(summary["added"]) == 188
    assert (summary["bad"], summary["notes"]) == ([], [])
    demo, back = Corpus.open("demo"), Corpus.open(tmp_path / "back")
    assert estimate_rows(back) == estimate_rows(demo)
    assert back.models == demo.models
    assert back.provenance() == {"scripted": 188}


def test_tasks_of_every_kind_have_the_same_estimates_after_there_and_back(
    measured: Corpus, tmp_path: Path
) -> None:
    run("export", measured.path, "--reference", tmp_path / "out")
    run("ingest", tmp_path / "out", "--corpus", tmp_path / "back")
    back = {row["task_id"]: row for row in estimate_rows(Corpus.open(tmp_path / "back"))}
    assert back == {row["task_id"]: row for row in estimate_rows(measured)}
    depths = {name: row["D"] for name, row in back.items()}
    assert depths == {
        "shallow": 3,
        "deepest": ABOVE,
        "unsolved": None,
        "unfinished": None,
        "six": 20,
    }


def test_the_files_are_those_that_the_readme_names(measured: Corpus, tmp_path: Path) -> None:
    run("export", measured.path, "--reference", tmp_path / "out")
    files = {str(p.relative_to(tmp_path / "out")) for p in tmp_path.glob("out/**/*") if p.is_file()}
    assert files == {
        f"{kind}/runs/{name}"
        for kind in ("harness", "audit")
        for name in ("summary.json", "first/results.jsonl", "second__below/results.jsonl")
    }
    audit = read(tmp_path / "out/audit/runs/summary.json")
    assert {of: list(tasks) for of, tasks in audit.items()} == {
        "tb2": ["shallow", "deepest"],
        "tw": ["unsolved", "unfinished"],
    }
    deepest = audit["tb2"]["deepest"]
    assert (deepest["N"], deepest["D"], deepest["D_by_model"]["first"]) == (120, 99, 99)
    assert audit["tw"]["unsolved"]["D"] is None
    assert (audit["tw"]["unfinished"]["finished"], deepest["finished"]) == (False, True)
    harness = read(tmp_path / "out/harness/runs/summary.json")
    assert {name: entry["segments"] for name, entry in harness.items()} == {"six": 6}
    later = lines(tmp_path / "out/audit/runs/second__below/results.jsonl")
    assert {record["model"] for record in later} == {"second"}
    assert all(record["cap"] for record in later)


def test_runs_that_are_no_measurement_or_no_result_are_left_out_and_counted(
    measured: Corpus, tmp_path: Path
) -> None:
    template = measured.run_records()[0]
    evaluation = template.model_copy(update={"run_id": "e", "purpose": "evaluation"})
    refused = template.model_copy(update={"run_id": "n", "verdict": "none", "stop": "refused"})
    forged = template.model_copy(update={"run_id": "f", "suspect": True, "attempt": 3})
    measured.append_runs([evaluation, refused, forged])
    result = run("export", measured.path, "--reference", tmp_path / "out", "--json")
    assert json.loads(result.stdout)["left_out"] == {
        "that enter no estimate": 1,
        "without a result": 1,
    }
    records = lines(tmp_path / "out/audit/runs/first/results.jsonl")
    by_id = {record["run_id"]: record for record in records}
    assert {"e", "n"}.isdisjoint(by_id)
    assert (by_id["f"]["passed"], by_id["f"]["verdict"]) == (False, "passed")


def test_results_are_not_written_over(measured: Corpus, tmp_path: Path) -> None:
    run("export", measured.path, "--reference", tmp_path / "out")
    again = run("export", measured.path, "--reference", tmp_path / "out")
    assert again.exit_code == 2
    assert "there are results in it already" in again.stderr


def test_two_tasks_of_several_segments_with_one_name_are_refused(
    measured: Corpus, tmp_path: Path
) -> None:
    six = next(task for task in measured.task_records() if task.task_id == "six")
    measured.append_task(six.model_copy(update={"dataset": "other"}))
    result = run("export", measured.path, "--reference", tmp_path / "out")
    assert result.exit_code == 2
    assert "six is a task of depth and of other" in result.stderr
    assert not (tmp_path / "out").exists()


def test_reading_again_adds_nothing(measured: Corpus, tmp_path: Path) -> None:
    run("export", measured.path, "--reference", tmp_path / "out")
    first = json.loads(run("ingest", tmp_path / "out", "--corpus", tmp_path / "b", "--json").stdout)
    again = json.loads(run("ingest", tmp_path / "out", "--corpus", tmp_path / "b", "--json").stdout)
    assert (again["added"], again["bad"]) == ([], [])
    assert len(again["already_there"]) == len(first["added"])


# --- files that name their fields otherwise ---


def write_foreign(out: Path, kind: str = "audit") -> None:
    """As the README describes the files, with field names that nobody here chose."""
    runs = out / kind / "runs"
    (runs / "flash").mkdir(parents=True)
    (runs / "glm__below").mkdir()
    first = [
        {"task": "a", "limit": None, "n_turns": 7, "success": True, "secs": 3},
        {"task": "a", "limit": None, "n_turns": 9, "success": True, "secs": 3},
        {"task": "a", "limit": 1, "n_turns": 1, "success": False, "secs": 3},
        {"task": "a", "limit": 1, "n_turns": 1, "success": False, "secs": 3},
        {"task": "a", "limit": 2, "n_turns": 2, "success": False, "secs": 3},
        {"task": "a", "limit": 2, "n_turns": 2, "success": False, "secs": 3},
        {"task": "a", "limit": 3, "n_turns": 3, "success": True, "secs": 3},
    ]
    later = [
        {"task": "a", "limit": 1, "n_turns": 1, "success": False, "secs": 3},
        {"task": "a", "limit": 1, "n_turns": 1, "success": False, "secs": 3},
        {"task": "a", "limit": 2, "n_turns": 2, "success": True, "secs": 3},
    ]
    for folder, records in (("flash", first), ("glm__below", later)):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (runs / folder / "results.jsonl").write_text(text)
    entry = {"N": 7, "D": 2}
    summary = {"tb2": {"a": entry}} if kind == "audit" else {"a": entry}
    (runs / "summary.json").write_text(json.dumps(summary))


FIELDS = ["task_id=task", "cap=limit", "turns=n_turns", "passed=success"]
NAMED = [word for pair in FIELDS for word in ("--field", pair)]


def test_other_field_names_are_listed_and_asked_for(tmp_path: Path) -> None:
    write_foreign(tmp_path / "out")
    result = run("ingest", tmp_path / "out", "--corpus", tmp_path / "back")
    assert result.exit_code == 2
    assert (
        "flash/results.jsonl:1: no task_id and no cap and no turns and no passed" in result.stderr
    )
    assert "its fields are task, limit, n_turns, success, secs" in result.stderr
    assert "--field task_id=NAME" in result.stderr
    assert not (tmp_path / "back").exists()


def test_files_with_other_field_names_are_read_once_these_are_said(tmp_path: Path) -> None:
    write_foreign(tmp_path / "out")
    result = run("ingest", tmp_path / "out", "--corpus", tmp_path / "back", *NAMED, "--json")
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout)
    assert len(summary["added"]) == 10
    (note,) = summary["notes"]
    assert note.endswith("fields that were not read: secs")
    back = Corpus.open(tmp_path / "back")
    (row,) = estimate_rows(back)
    assert (row["dataset"], row["N"], row["D"], row["final"]) == ("tb2", 7, 2, True)
    assert row["D_by_model"] == {"flash": 3, "glm": 2}
    assert back.models == ("flash", "glm")
    assert back.provenance() == {"imported": 10}
    capped = [r for r in back.run_records() if r.cap]
    assert {record.stop for record in capped} == {"turn_cap"}
    assert all("not recorded" in str(record.detail) for record in back.run_records())


def test_tasks_whose_files_name_no_data_set_need_one(tmp_path: Path) -> None:
    write_foreign(tmp_path / "out", kind="harness")
    arguments: list[str | Path] = [
        "ingest",
        tmp_path / "out",
        "--corpus",
        tmp_path / "back",
        *NAMED,
    ]
    result = run(*arguments)
    assert result.exit_code == 2
    assert "a has no dataset; give the data set with --dataset" in result.stderr
    assert run(*arguments, "--dataset", "depth").exit_code == 0
    assert estimate_rows(Corpus.open(tmp_path / "back"))[0]["dataset"] == "depth"


def test_a_summary_that_its_runs_contradict_is_pointed_out(tmp_path: Path) -> None:
    write_foreign(tmp_path / "out")
    path = tmp_path / "out/audit/runs/summary.json"
    path.write_text(json.dumps({"tb2": {"a": {"N": 7, "D": 99}}}))
    result = run("ingest", tmp_path / "out", "--corpus", tmp_path / "back", *NAMED)
    assert "tb2/a: summary.json has D = 99, the runs give 2" in result.stdout


def test_bad_records_are_reported_and_the_others_read(tmp_path: Path) -> None:
    write_foreign(tmp_path / "out")
    path = tmp_path / "out/audit/runs/flash/results.jsonl"
    with path.open("a") as out:
        out.write('{"task": "a", "limit": 0, "n_turns": 1, "success": true}\n')
        out.write('{"task": "a", "limit": 5, "n_turns": 1, "success": "yes"}\n')
        out.write('{"task": "../a", "limit": 5\n')
        out.write('{"task": "b", "n_turns": 5, "success": true}\n')
    result = run("ingest", tmp_path / "out", "--corpus", tmp_path / "back", *NAMED, "--json")
    summary = json.loads(result.stdout)
    assert len(summary["added"]) == 10
    reasons = [re.sub(r"^.*:", "", bad["path"]) + " " + bad["reason"] for bad in summary["bad"]]
    assert [reason[:14] for reason in sorted(reasons)] == [
        "10 the line is",
        "11 no cap",
        "8 cap: Input s",
        "9 passed is ye",
    ]


def test_a_link_out_of_the_results_is_not_followed(tmp_path: Path) -> None:
    write_foreign(tmp_path / "out")
    path = tmp_path / "out/audit/runs/flash/results.jsonl"
    path.rename(tmp_path / "elsewhere.jsonl")
    path.symlink_to(tmp_path / "elsewhere.jsonl")
    result = run("ingest", tmp_path / "out", "--corpus", tmp_path / "back", *NAMED)
    assert result.exit_code == 2
    assert "results.jsonl leads out of its directory" in result.stderr


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--field", "colour=x"], "--field colour=x: write it as OURS=THEIRS"),
        (["--field", "cap"], "--field cap=: write it as OURS=THEIRS"),
        (["--purpose", "free"], "--purpose is for Harbor trials"),
    ],
)
def test_options_that_do_not_fit_are_explained(
    extra: list[str], message: str, tmp_path: Path
) -> None:
    write_foreign(tmp_path / "out")
    result = run("ingest", tmp_path / "out", "--corpus", tmp_path / "back", *extra)
    assert result.exit_code == 2
    assert message in result.stderr


def test_which_model_is_the_first_is_asked_where_two_could_be(tmp_path: Path) -> None:
    write_foreign(tmp_path / "out")
    runs = tmp_path / "out/audit/runs"
    shutil.copytree(runs / "flash", runs / "luna")
    result = run("ingest", tmp_path / "out", "--corpus", tmp_path / "back", *NAMED)
    assert result.exit_code == 2
    assert "which model is the first is not recorded" in result.stderr


# --- environment variables ---


def test_depth_out_names_the_corpus(tmp_path: Path) -> None:
    (task,) = run("calibrate", "-o", tmp_path, "parallel-2-s1").stdout.splitlines()
    result = run("free", task, DEPTH_OUT=str(tmp_path / "there"))
    assert result.exit_code == 2
    assert f"{tmp_path / 'there'}: the corpus names no models yet" in result.stderr


def test_depth_out_that_still_names_reference_results_is_explained(tmp_path: Path) -> None:
    write_foreign(tmp_path / "out")
    result = run("ladder", "any", DEPTH_OUT=str(tmp_path / "out"))
    assert result.exit_code == 2
    assert "holds results of the reference repository, not a corpus" in result.stderr
    assert f"depthkit ingest {tmp_path / 'out'} --corpus NEW" in result.stderr


def test_depth_workers_is_read_as_the_number_of_trials_at_a_time() -> None:
    result = run("free", "any", DEPTH_WORKERS="0")
    assert result.exit_code == 2
    assert "'--workers' (env var: 'DEPTH_WORKERS')" in result.stderr


def test_depth_harbor_is_answered_with_one_note_where_trials_run() -> None:
    noted = run("free", "any", DEPTH_HARBOR="/home/me/.local/bin/harbor").stderr
    assert noted.count("DEPTH_HARBOR is set, but not used") == 1
    assert "DEPTH_HARBOR" not in run("free", "any").stderr
    assert "DEPTH_HARBOR" not in run("estimates", "demo", DEPTH_HARBOR="x").output


# --- the page about it ---


def test_what_the_page_shows_works_as_it_is_printed(tmp_path: Path) -> None:
    (block,) = re.findall(r"<!-- tested -->\n```console\n(.*?)```", PAGE, re.DOTALL)
    commands = [line.removeprefix("$ ") for line in block.splitlines()]
    assert len(commands) == 3
    environ = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command in commands:
        subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environ, check=True)
    assert estimate_rows(Corpus.open(tmp_path / "back")) == estimate_rows(Corpus.open("demo"))


def test_the_page_names_every_field_of_a_summary(measured: Corpus, tmp_path: Path) -> None:
    run("export", measured.path, "--reference", tmp_path / "out")
    entry = read(tmp_path / "out/harness/runs/summary.json")["six"]
    rows = [line for line in PAGE.splitlines() if line.startswith("| `summary.json`")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[2])}
    assert named == set(entry) | {"harness"}
    assert set(Run.model_fields) >= {"run_id", "dataset", "task_id", "model", "cap", "attempt"}
