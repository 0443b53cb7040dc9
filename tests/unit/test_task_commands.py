"""`depthkit work` and `depthkit calibrate`, as a person or a script calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from depthkit.cli import app
from depthkit.tasks.calibration import DEFAULT_NAMES, write_family


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "100"})


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A task of two steps with a helper file and a name that looks like markup."""
    task = write_family(tmp_path / "set", "parallel", 2, 1).rename(tmp_path / "set/[red]two")
    toml = (task / "task.toml").read_text()
    (task / "task.toml").write_text(toml + '\n[[steps]]\nname = "a"\n\n[[steps]]\nname = "b"\n')
    for step, script in (("a", "#!/bin/sh\n\necho 1\n"), ("b", "cat > x <<E\n# 2\nE\n")):
        (task / f"steps/{step}/solution").mkdir(parents=True)
        (task / f"steps/{step}/instruction.md").write_text("Do it.\n")
        (task / f"steps/{step}/solution/solve.sh").write_text(script)
    (task / "steps/b/solution/data.csv").write_text("1,2\n")
    return task


def test_an_ignored_field_is_said_in_one_line_beside_the_output(task: Path) -> None:
    toml = (task / "task.toml").read_text()
    (task / "task.toml").write_text(toml + "dependencies = []\n")
    result = run("work", task, "--json")
    assert (result.exit_code, len(json.loads(result.stdout))) == (0, 1)
    assert result.stderr == (
        "task.toml of [red]two: Harbor does not know [[steps]] dependencies and ignores it.\n"
    )


def test_a_bad_task_among_others_is_named_and_the_others_are_counted(
    task: Path, tmp_path: Path
) -> None:
    result = run("work", tmp_path / "gone", task, "--json")
    assert (result.exit_code, len(json.loads(result.stdout))) == (1, 1)
    assert result.stderr == (
        f"Left out: {tmp_path / 'gone'}: no such directory; give a Harbor task directory.\n"
    )
    assert run("work", tmp_path / "gone").exit_code == 2


def test_work_prints_a_segment_and_in_all_for_scripts(task: Path) -> None:
    result = run("work", task, "--json")
    assert result.exit_code == 0
    (row,) = json.loads(result.stdout)
    assert row == {
        "dataset": "set",
        "task_id": "[red]two",
        "segments": [
            {"index": 1, "name": "a", "work_lines": 1, "work_tokens": 8, "work_chars": 18},
            {"index": 2, "name": "b", "work_lines": 3, "work_tokens": 12, "work_chars": 18},
        ],
        "work_lines": 4,
        "work_tokens": 20,
        "work_chars": 36,
        "helper_files": ["steps/b/solution/data.csv"],
    }


def test_work_is_null_without_a_reference_solution(task: Path) -> None:
    (task / "steps/b/solution/solve.sh").unlink()
    (row,) = json.loads(run("work", task, "--json").stdout)
    assert row["segments"][0]["work_lines"] == 1
    assert row["segments"][1]["work_lines"] is None
    assert (row["work_lines"], row["work_tokens"], row["work_chars"]) == (None, None, None)


def test_work_prints_a_table_for_people(task: Path) -> None:
    lines = [line.split() for line in run("work", task).stdout.splitlines()]
    assert lines == [
        ["Task", "Lines", "Tokens", "Characters", "Not", "counted"],
        ["set/[red]two", "4", "20", "36", "1", "other", "file"],
        ["1.", "a", "1", "8", "18"],
        ["2.", "b", "3", "12", "18"],
    ]


def test_a_bad_task_is_one_line_and_status_2(task: Path) -> None:
    (task / "task.toml").write_text('[verifier]\ntimeout_sec = "ten"\n')
    result = run("work", task)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == (
        f'{task}/task.toml: [verifier] timeout_sec is "ten"; it must be a number of seconds, such '
        "as 600.\n"
    )


def test_calibrate_writes_the_three_tasks_of_the_paper(tmp_path: Path) -> None:
    result = run("calibrate", "-o", tmp_path / "new/cal")
    assert result.exit_code == 0
    assert result.stdout.split() == [str(tmp_path / "new/cal" / name) for name in DEFAULT_NAMES]
    assert sorted(p.name for p in (tmp_path / "new/cal").iterdir()) == sorted(DEFAULT_NAMES)
    rows = json.loads(run("work", *(tmp_path / "new/cal").iterdir(), "--json").stdout)
    assert {row["task_id"]: row["work_lines"] for row in rows} == {
        "parallel-10-s1": 12,
        "static-chain-10-s1": 12,
        "control-6-s1": 26,
    }


def test_calibrate_takes_names_and_parts(tmp_path: Path) -> None:
    run("calibrate", "-o", tmp_path, "parallel-3-s2", "--family", "static-chain", "--seed", "4")
    run("calibrate", "-o", tmp_path, "--family", "control", "--steps", "2")
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "control-2-s1",
        "parallel-3-s2",
        "static-chain-10-s4",
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--seed", "2"], "--steps and --seed need --family"),
        (["parallel"], "parallel: is no name of a calibration task"),
        (["--family", "deep"], "family is 'deep'; it must be one of"),
    ],
)
def test_calibrate_refuses_what_it_cannot_write(
    tmp_path: Path, arguments: list[str], expected: str
) -> None:
    result = run("calibrate", "-o", tmp_path, *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(expected)
    assert list(tmp_path.iterdir()) == []


def test_the_help_of_calibrate_says_what_the_families_are_for() -> None:
    text = " ".join(run("calibrate", "--help").stdout.split())
    assert "must merge commands into fewer turns" in text
    for family in ("parallel:", "static-chain:", "control:"):
        assert family in text


def test_a_path_or_name_that_cannot_be_is_one_line(tmp_path: Path, task: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "corpus.toml").write_text('name = "x"\nprotocol = 3\n')
    (trial := tmp_path / "job" / "trial").mkdir(parents=True)
    (trial / "result.json").write_text('{"task_name": "x"}')
    calls: list[tuple[tuple[str | Path, ...], str]] = [
        (("calibrate", "-o", file), f"{file}: File exists."),
        (("free", task, "--model", "scripted-merge", "--corpus", file / "x"), f"{file}"),
        (("ingest", tmp_path / "job", "--corpus", "/dev/null/foo"), "/dev/null"),
        (("export", "demo", "--reference", file), f"{file}: File exists."),
        (("work", "a" * 300), f"{'a' * 300}: File name too long."),
        (
            ("calibrate", "-o", tmp_path / "out", f"parallel-10-s{'1' * 5000}"),
            "parallel-10-s111",
        ),
        (("estimates", broken), f"{broken}/corpus.toml: protocol must be a table"),
    ]
    for arguments, expected in calls:
        result = run(*arguments)
        assert result.exit_code == 2, (arguments, result.exception)
        (line,) = result.stderr.strip().splitlines()
        assert line.startswith(expected)
