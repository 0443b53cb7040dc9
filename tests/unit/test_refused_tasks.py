"""Loading Harbor task directories: what is refused, and with which words."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from task_files import TOML, MakeTask

from depthkit.errors import DepthkitError, DepthkitWarning
from depthkit.tasks import load_task, load_tasks


def _error(path: Path | str) -> str:
    with pytest.raises(DepthkitError) as caught:
        load_task(path)
    return str(caught.value)


# --- what is refused ---


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "timeout_sec = 120.0",
            'timeout_sec = "ten"',
            '[verifier] timeout_sec is "ten"; it must be a number of seconds, such as 600.',
        ),
        (
            "timeout_sec = 900.0",
            "timeout_sec = -5",
            "[agent] timeout_sec is -5; it must be a positive number of seconds, such as 600.",
        ),
        (
            "timeout_sec = 900.0",
            "timeout_sec = nan",
            "[agent] timeout_sec is nan; it must be a positive number of seconds, such as 600.",
        ),
        (
            "timeout_sec = 120.0",
            "timeout_secs = 120.0",
            "[verifier] timeout_secs is not a field of Harbor tasks; did you mean timeout_sec?",
        ),
        ("cpus = 1", "cpus = []", "[environment] cpus is []; it must be a whole number."),
        (
            "memory_mb = 512",
            'memory_mb = "x"',
            '[environment] memory_mb is "x"; it must be a whole number of megabytes, such as 2048.',
        ),
        (
            '"no-network"',
            '"none"',
            "[environment] network_mode is \"none\"; it must be 'no-network', 'public' or "
            "'allowlist'.",
        ),
        ("cpus = 1", 'os = "windows"', '[environment] os is "windows"; it must be "linux".'),
        ("cpus = 1", "env = 5", "[environment] env is 5; it must be a table."),
        ("cpus = 1", "skills_dir = 5", "[environment] skills_dir is 5; it must be text in quotes."),
        (
            '[metadata]\ndifficulty = "hard"',
            "steps = []\n[metadata]",
            "steps is an empty list; add a [[steps]] table for each segment, or remove it.",
        ),
        (
            "[agent]",
            '[metadata.depthkit]\ngroup = "mine"\n[agent]',
            "[metadata.depthkit] group is \"mine\"; it must be 'synthetic', 'human-curated' or "
            "'ours'.",
        ),
        (
            "[agent]",
            '[metadata.depthkit]\ngruop = "ours"\n[agent]',
            "[metadata.depthkit] gruop is not a field of Harbor tasks; did you mean group?",
        ),
        (
            "[agent]",
            "[metadata.depthkit]\nevents = [1, 2]\n[agent]",
            "[metadata.depthkit] events is [1, 2]; it must be a list of 1 whole number, one a "
            "segment.",
        ),
        (
            'difficulty = "hard"',
            'depthkit.label_source = "author"',
            "[metadata.depthkit] label_source says who set [metadata] difficulty, which must then "
            'be text, such as "hard".',
        ),
        (
            "timeout_sec = 900.0",
            "timeout_sec = ",
            "is not valid TOML: Invalid value (at line 8, column 15); correct it there.",
        ),
    ],
)
def test_a_wrong_field_is_named_with_its_mend(
    single: MakeTask, old: str, new: str, expected: str
) -> None:
    path = single({"task.toml": TOML.replace(old, new, 1)})
    assert _error(path) == f"tasks/foo/task.toml: {expected}"


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ('name = "two"\nagent.timeout_sec = "x"', "[[steps]] number 2, agent.timeout_sec is"),
        ("min_reward = 1", "[[steps]] number 2, name is missing; add it."),
        ('name = "two"\nmin_rewards = 1', "[[steps]] number 2, min_rewards is not a field of"),
        ('name = "../one"', '[[steps]] number 2, name is "../one"; Invalid step name'),
        ('name = "one"', "steps is"),
        ('name = "two"\nverifier.timeout_sec = 0', "[[steps]] number 2, verifier.timeout_sec is 0"),
    ],
)
def test_a_wrong_field_of_a_step_is_named_with_its_number(
    stepped: MakeTask, step: str, expected: str
) -> None:
    path = stepped()
    toml = (path / "task.toml").read_text().replace('name = "two"', step)
    (path / "task.toml").write_text(toml)
    assert _error(path).startswith(f"tasks/bar/task.toml: {expected}")


@pytest.mark.parametrize(
    ("table", "ignored"),
    [('[[sources]]\nurl = "x"\n', "sources"), ("[artifact]\na = 1\n", "artifact")],
)
def test_a_field_that_harbor_accepts_is_no_misspelling_of_one_of_another_form(
    single: MakeTask, table: str, ignored: str
) -> None:
    with pytest.warns(DepthkitWarning, match=f"does not know {ignored} and ignores it"):
        assert load_tasks([single({"task.toml": f"{TOML}\n{table}"})])[0].ignored == (ignored,)


def test_fields_that_harbor_ignores_are_named_once_for_all_tasks(
    single: MakeTask, stepped: MakeTask
) -> None:
    """Public tasks with steps have ``dependencies`` and ``inherit_prior_session``."""
    path, other = stepped(), single({"task.toml": TOML + "\n[zebra]\nstripes = 1\n"})
    toml = (path / "task.toml").read_text()
    public = 'name = "two"\ndependencies = ["one"]\ninherit_prior_session = true'
    (path / "task.toml").write_text(
        toml.replace('name = "one"', 'name = "one"\ndependencies = []').replace(
            'name = "two"', public
        )
    )
    with pytest.warns(DepthkitWarning) as caught:
        loaded = load_tasks([path, other])
    assert [str(each.message) for each in caught] == [
        "task.toml of bar and 1 more: Harbor does not know [[steps]] dependencies, [[steps]] "
        "inherit_prior_session, zebra and ignores them."
    ]
    assert loaded[0].ignored == ("[[steps]] dependencies", "[[steps]] inherit_prior_session")
    assert load_tasks([single({"task.toml": TOML})])[0].ignored == ()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"task.toml": None}, "tasks/foo: is no Harbor task, it has no task.toml; add that file."),
        (
            {"instruction.md": None},
            "tasks/foo/instruction.md: is missing; it must say what the agent should do.",
        ),
        (
            {"instruction.md": " \n"},
            "tasks/foo/instruction.md: is empty; it must say what the agent should do.",
        ),
        (
            {"instruction.md": b"gr\xfc\xdfe"},
            "tasks/foo/instruction.md: line 1 is not UTF-8; save the file in that encoding.",
        ),
        (
            {"tests/test.sh": None},
            "tasks/foo/tests/test.sh: is missing; it must write 1 or 0 to "
            "/logs/verifier/reward.txt.",
        ),
        (
            {"environment/Dockerfile": None},
            "tasks/foo/environment: has neither Dockerfile nor docker-compose.yaml; add one, or "
            "name a ready image as [environment] docker_image in task.toml.",
        ),
        (
            {"solution/solve.sh": b"\x7fELF\0\0\0"},
            "tasks/foo/solution/solve.sh: holds NUL bytes; it must be a text file.",
        ),
        (
            {"solution/solve.sh": b"x" * 50_000_000},
            "tasks/foo/solution/solve.sh: is 50,000,000 bytes; a text file may have at "
            "most 900,000, so move bulk data into files of its own.",
        ),
        (
            {"task.toml": "a = " + "[" * 100_000},
            "tasks/foo/task.toml: is nested too deeply; make it flatter.",
        ),
    ],
)
def test_a_malformed_task_is_one_sentence(
    single: MakeTask, changes: dict[str, str | bytes | None], expected: str
) -> None:
    assert _error(single(changes)) == expected


def test_what_a_step_lacks_is_named(stepped: MakeTask) -> None:
    path = stepped({"steps/two/instruction.md": None})
    assert _error(path).startswith("tasks/bar/steps/two/instruction.md: is missing")
    path = stepped({"steps/two/tests/test.sh": None})
    assert _error(path).startswith("tasks/bar/steps/two/tests/test.sh: is missing")


def test_a_directory_of_tasks_is_told_from_a_task(single: MakeTask) -> None:
    single()
    assert _error("tasks") == (
        "tasks: is no Harbor task, it has no task.toml; give the tasks in it, such as tasks/*."
    )
    assert _error("nowhere") == "nowhere: no such directory; give a Harbor task directory."


@pytest.mark.parametrize(
    "place",
    [
        "solution",
        "solution/solve.sh",
        "tests",
        "tests/test.sh",
        "environment",
        "environment/Dockerfile",
        "environment/data.txt",
        "instruction.md",
        "task.toml",
    ],
)
@pytest.mark.parametrize("absolute", [True, False])
def test_a_link_that_leaves_the_task_is_refused(
    single: MakeTask, place: str, absolute: bool
) -> None:
    path = single()
    outside = Path("outside")
    shutil.copytree(path, outside)
    (outside / "environment/data.txt").write_text("secret")
    target = path / place
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)
    inside_out = (outside / place).absolute()
    target.symlink_to(
        inside_out if absolute else os.path.relpath(inside_out, target.parent.absolute())
    )
    message = _error(path)
    assert message.startswith(f"tasks/foo/{place}: is a link that leaves the task directory (to ")


def test_a_step_that_is_a_link_out_of_the_task_is_refused(stepped: MakeTask) -> None:
    path = stepped()
    shutil.move(path / "steps/two", "elsewhere")
    (path / "steps/two").symlink_to(Path("elsewhere").absolute())
    assert _error(path).startswith("tasks/bar/steps/two: is a link that leaves the task directory")


def test_a_pipe_in_a_task_is_refused_and_not_read(single: MakeTask) -> None:
    path = single({"solution/solve.sh": None})
    os.mkfifo(path / "solution/solve.sh")
    assert "is no file, directory or link" in _error(path)


def test_links_in_a_circle_are_refused(single: MakeTask) -> None:
    path = single({"solution/solve.sh": None})
    (path / "solution/loop").symlink_to("../solution")
    assert "Harbor refuses this task" in _error(path)


def test_control_characters_of_a_name_do_not_reach_the_terminal(single: MakeTask) -> None:
    path = single()
    (path / "evil\x1b[31m").symlink_to("/etc/passwd")
    message = _error(path)
    assert "\x1b" not in message
    assert r"tasks/foo/evil\x1b[31m: is a link" in message
    assert "rename the directory" in _error(single(name="a\nb"))
