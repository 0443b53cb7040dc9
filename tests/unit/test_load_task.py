"""Loading Harbor task directories: what is read, and what is refused with which words."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from depthkit.errors import DepthkitError, DepthkitWarning
from depthkit.tasks import directory_digest, load_task, load_tasks

TOML = """\
schema_version = "1.4"

[metadata]
difficulty = "hard"
category = "tools"

[agent]
timeout_sec = 900.0

[verifier]
timeout_sec = 120.0

[environment]
network_mode = "no-network"
cpus = 1
memory_mb = 512
"""

type MakeTask = Callable[..., Path]


def _write(root: Path, files: dict[str, str | bytes | None]) -> None:
    for name, content in files.items():
        path = root / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.fixture
def single(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeTask:
    """A task of one instruction at tasks/foo, changed as asked for (None removes a file)."""
    monkeypatch.chdir(tmp_path)

    def make(changes: dict[str, str | bytes | None] | None = None, name: str = "foo") -> Path:
        task = Path("tasks") / name
        _write(
            task,
            {
                "task.toml": TOML,
                "instruction.md": "Make the file /app/done.\n",
                "environment/Dockerfile": "FROM depthkit/base:1\n",
                "solution/solve.sh": "#!/bin/bash\n# make it\ntouch /app/done\n",
                "tests/test.sh": "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n",
            },
        )
        _write(task, changes or {})
        return task

    return make


@pytest.fixture
def stepped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeTask:
    """A task of two steps at tasks/bar."""
    monkeypatch.chdir(tmp_path)

    def make(changes: dict[str, str | bytes | None] | None = None) -> Path:
        task = Path("tasks/bar")
        files: dict[str, str | bytes | None] = {
            "task.toml": f'{TOML}\n[[steps]]\nname = "one"\n\n[[steps]]\nname = "two"\n',
            "environment/Dockerfile": "FROM depthkit/base:1\n",
        }
        for step, script in (("one", "echo 1\n"), ("two", "echo 2\necho 3\n")):
            files[f"steps/{step}/instruction.md"] = f"Do {step}.\n"
            files[f"steps/{step}/solution/solve.sh"] = script
            files[f"steps/{step}/tests/test.sh"] = "echo 1 > /logs/verifier/reward.txt\n"
        _write(task, files)
        _write(task, changes or {})
        return task

    return make


def _error(path: Path | str) -> str:
    with pytest.raises(DepthkitError) as caught:
        load_task(path)
    return str(caught.value)


# --- what is read ---


def test_a_single_instruction_task_has_one_segment(single: MakeTask) -> None:
    task = load_task(single())
    assert (task.record.dataset, task.record.task_id, task.record.k) == ("tasks", "foo", 1)
    assert task.instructions == ("Make the file /app/done.\n",)
    assert task.record.segments[0].instruction_words == 4
    work = task.record.work
    assert work is not None
    assert (work.lines, work.chars) == (1, 38)
    assert task.dockerfile == Path("tasks/foo/environment/Dockerfile").resolve()
    assert (task.image, task.compose) == (None, False)
    assert (task.agent_timeout_sec, task.verifier_timeout_sec) == (900, 120)
    assert task.record.category == "tools"
    assert task.record.digest == directory_digest("tasks/foo")


def test_a_stepped_task_has_a_segment_for_each_step(stepped: MakeTask) -> None:
    task = load_task(stepped())
    assert [(s.index, s.name) for s in task.record.segments] == [(1, "one"), (2, "two")]
    assert task.instructions == ("Do one.\n", "Do two.\n")
    first, second = (segment.work for segment in task.record.segments)
    assert first is not None
    assert second is not None
    assert (first.lines, second.lines) == (1, 2)
    assert task.record.work == first + second


def test_the_data_set_is_the_parent_directory_unless_given(
    single: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = single()
    assert load_task(path, dataset="mine").record.dataset == "mine"
    monkeypatch.chdir(path)
    record = load_task(".").record
    assert (record.dataset, record.task_id) == ("tasks", "foo")


def test_without_a_reference_solution_the_work_is_unknown(
    single: MakeTask, stepped: MakeTask
) -> None:
    assert load_task(single({"solution/solve.sh": None})).record.work is None
    task = load_task(stepped({"steps/two/solution/solve.sh": None}))
    assert task.record.segments[0].work is not None
    assert task.record.work is None


def test_other_files_of_a_solution_are_named_and_not_counted(single: MakeTask) -> None:
    task = load_task(single({"solution/lib/helper.py": "a = 1\nb = 2\n"}))
    assert task.helper_files == (("solution/lib/helper.py",),)
    assert task.record.work is not None
    assert task.record.work.lines == 1


def test_a_step_without_a_solution_directory_has_that_of_the_task(stepped: MakeTask) -> None:
    path = stepped({"solution/solve.sh": "a\nb\nc\n"})
    shutil.rmtree(path / "steps/one/solution")
    work = load_task(path).record.segments[0].work
    assert work is not None
    assert work.lines == 3


def test_a_difficulty_is_nobodys_unless_the_task_says_whose(single: MakeTask) -> None:
    def record(source: str) -> tuple[str | None, str | None]:
        task = load_task(single({"task.toml": TOML + source})).record
        return task.author_rating, task.generated_label

    assert record("") == (None, None)
    assert record('[metadata.depthkit]\nlabel_source = "author"\n') == ("hard", None)
    assert record('[metadata.depthkit]\nlabel_source = "generated"\n') == (None, "hard")


def test_facts_that_no_file_shows_come_from_the_metadata(stepped: MakeTask) -> None:
    path = stepped()
    toml = (path / "task.toml").read_text()
    ours = '[metadata.depthkit]\ngroup = "ours"\nnames_stated = [14, 9]\nseed_env = "redis"\n'
    (path / "task.toml").write_text(toml.replace("[agent]", ours + "[agent]"))
    record = load_task(path).record
    assert (record.group, record.seed_env) == ("ours", "redis")
    assert [segment.names_stated for segment in record.segments] == [14, 9]
    assert [segment.events for segment in record.segments] == [None, None]


def test_canary_lines_are_not_part_of_the_instruction(single: MakeTask) -> None:
    text = "<!-- canary GUID 1234 -->\n\nMake it.\n"
    assert load_task(single({"instruction.md": text})).instructions == ("Make it.\n",)


def test_a_ready_image_needs_no_dockerfile(single: MakeTask) -> None:
    toml = TOML + 'docker_image = "some/image:1"\n'
    task = load_task(single({"task.toml": toml, "environment/Dockerfile": None}))
    assert (task.image, task.dockerfile) == ("some/image:1", None)


def test_a_compose_file_is_seen(single: MakeTask) -> None:
    assert load_task(single({"environment/docker-compose.yaml": "services: {}\n"})).compose


def test_solutions_in_any_encoding_and_with_any_line_ends_are_counted(single: MakeTask) -> None:
    script = b"#!/bin/bash\r\n# gr\xfc\xdfe\r\necho gr\xfc\xdfe\r\n"
    work = load_task(single({"solution/solve.sh": script})).record.work
    assert work is not None
    assert (work.lines, work.chars) == (1, len(script))


def test_links_within_the_task_are_fine(stepped: MakeTask) -> None:
    path = stepped()
    shutil.rmtree(path / "steps/two/tests")
    (path / "steps/two/tests").symlink_to("../one/tests")
    assert load_task(path).record.k == 2


def test_fields_of_older_harbor_versions_are_still_read(single: MakeTask) -> None:
    toml = TOML.replace('schema_version = "1.4"', 'version = "1.0"')
    toml = toml.replace("memory_mb = 512", 'memory = "2G"\nallow_internet = false')
    config = load_task(single({"task.toml": toml})).config
    assert config.environment.memory_mb == 2048


def test_several_tasks_keep_their_order_and_are_read_once(single: MakeTask) -> None:
    b, a = single(name="b"), single(name="a")
    loaded = load_tasks([b, a, Path("tasks/../tasks/b")])
    assert [task.record.task_id for task in loaded] == ["b", "a"]


def test_two_directories_of_one_name_are_refused(single: MakeTask) -> None:
    first = single()
    shutil.copytree("tasks", "other/tasks")
    with pytest.raises(DepthkitError, match=r"other/tasks/foo: tasks/foo is also the name of"):
        load_tasks([first, "other/tasks/foo"])


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
            "tasks/foo/solution/solve.sh: is 50,000,000 bytes; a text file of a task may have at "
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


# --- the digest ---


def test_the_digest_follows_names_contents_and_executable_bits_only(single: MakeTask) -> None:
    path = single()
    before = directory_digest(path)
    os.utime(path / "instruction.md", (1, 1))
    (path / "instruction.md").chmod(0o600)
    assert directory_digest(path) == before
    copy = Path(shutil.copytree(path, "copy"))
    assert directory_digest(copy) == before

    (copy / "tests/test.sh").chmod(0o755)
    executable = directory_digest(copy)
    (copy / "instruction.md").write_text("Other.\n")
    changed = directory_digest(copy)
    (copy / "tests/test.sh").rename(copy / "tests/test2.sh")
    renamed = directory_digest(copy)
    (copy / "empty").mkdir()
    assert len({before, executable, changed, renamed, directory_digest(copy)}) == 5


def test_the_digest_does_not_follow_links(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("a")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to("../outside")
    before = directory_digest(folder)
    (tmp_path / "outside").write_text("b")
    assert directory_digest(folder) == before
    (folder / "link").unlink()
    (folder / "link").symlink_to("../elsewhere")
    assert directory_digest(folder) != before
