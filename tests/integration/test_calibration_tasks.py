"""Calibration tasks in real containers: built as Harbor would, solved, verified, searched."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.models.containers import Container

from depthkit.tasks.calibration import DEFAULT_NAMES, parse_name, write_family

pytestmark = pytest.mark.docker

TAG = "depthkit/test-calibration"


@pytest.fixture(scope="module", params=DEFAULT_NAMES)
def task(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_family(tmp_path_factory.mktemp("calibration"), *parse_name(request.param))


@pytest.fixture(scope="module")
def image(task: Path) -> Iterator[str]:
    """The task's image, built by the engine's classic builder."""
    client = docker.from_env()
    tag = f"{TAG}:{task.name}"
    client.images.build(path=str(task / "environment"), tag=tag, rm=True)
    yield tag
    client.images.remove(tag, force=True)
    client.close()


@pytest.fixture
def container(image: str, task: Path) -> Iterator[Container]:
    """A container without network, with the limits of the task."""
    client = docker.from_env()
    container = client.containers.run(
        image,
        ["sleep", "infinity"],
        detach=True,
        init=True,
        network_mode="none",
        mem_limit="1024m",
        nano_cpus=1_000_000_000,
        labels={"depthkit.test": task.name},
    )
    yield container
    container.remove(force=True)
    client.close()


def _copy(container: Container, source: Path, target: str) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(source, arcname=target)
    container.put_archive("/", buffer.getvalue())


def _run(container: Container, *command: str) -> tuple[int, str]:
    status, output = container.exec_run(list(command))
    return status, output.decode(errors="replace")


def _solve(container: Container, task: Path) -> None:
    _copy(container, task / "solution", "solution")
    status, output = _run(container, "/solution/solve.sh")
    assert status == 0, output
    _run(container, "rm", "-r", "/solution")


def _reward(container: Container, task: Path) -> str:
    _copy(container, task / "tests", "tests")
    status, output = _run(container, "/tests/test.sh")
    assert status == 0, output
    return _run(container, "cat", "/logs/verifier/reward.txt")[1]


def _answers(container: Container) -> dict[str, str]:
    found = _run(container, "sh", "-c", "ls -d /app/answers/* /app/answer.txt 2>/dev/null")[1]
    return {path: _run(container, "cat", path)[1].strip() for path in found.split()}


def test_the_reference_solution_passes_and_a_changed_answer_fails(
    container: Container, task: Path
) -> None:
    _solve(container, task)
    assert _reward(container, task) == "1\n"
    path, answer = list(_answers(container).items())[-1]
    _run(container, "sh", "-c", f"echo {answer[::-1]} > {path}")
    assert _reward(container, task) == "0\n"


def test_doing_nothing_fails(container: Container, task: Path) -> None:
    assert _reward(container, task) == "0\n"


def test_an_agent_finds_a_plain_app_directory(container: Container) -> None:
    workdir = _run(container, "pwd")[1].strip()
    assert workdir == "/app"
    assert _run(container, "sh", "-c", "ls /app/answers | wc -l")[1].strip() == "0"
    assert _run(container, "sh", "-c", "test -x /app/unlock || test -f /app/steps.txt")[0] == 0


def test_no_answer_stands_elsewhere_in_the_image(
    container: Container, task: Path, image: str
) -> None:
    """Every file of the image, in every layer, is searched for the seals of the answers."""
    _solve(container, task)
    seals = {seal.encode() for answer in _answers(container).values() for seal in answer.split("-")}
    assert len(seals) in {3, 10}
    sealed = parse_name(task.name)[0] == "control"
    client = docker.from_env()
    with tarfile.open(fileobj=io.BytesIO(b"".join(client.images.get(image).save()))) as saved:
        layers = [
            member
            for member in saved
            if member.isfile() and re.search(r"layer\.tar$|^blobs/", member.name)
        ]
        assert layers
        found = set()
        for member in layers:
            data = saved.extractfile(member)
            assert data is not None
            found |= _files_with(data.read(), seals)
    client.close()
    # The last step of a control task is sealed; the others' seals stand in their tables.
    assert bool(found) is not sealed
    assert all(re.fullmatch(r"app/data/\d\d\.tsv", name) for name in found)


def _files_with(layer: bytes, seals: set[bytes]) -> set[str]:
    """The files of a layer in which a seal stands; a blob that is no layer counts as a file."""
    if not tarfile.is_tarfile(io.BytesIO(layer)):
        return {"a blob"} if any(seal in layer for seal in seals) else set()
    found = set()
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        for member in archive:
            data = archive.extractfile(member) if member.isfile() else None
            if data is not None:
                content = data.read()
                if any(seal in content for seal in seals):
                    found.add(member.name)
    return found
