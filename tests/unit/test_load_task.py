"""Loading Harbor task directories: what is read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from task_files import TOML, MakeTask

from depthkit.errors import DepthkitError
from depthkit.tasks import directory_digest, load_task, load_tasks

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
