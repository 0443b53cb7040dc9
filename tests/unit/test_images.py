"""Which Dockerfiles only BuildKit can build, and how often an image is built."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from docker.errors import ImageNotFound

from depthkit.trials import engine, images
from depthkit.trials.images import Build, ensure_image, needs_buildkit


@pytest.mark.parametrize(
    "line",
    [
        "# syntax=docker/dockerfile:1",
        "RUN --mount=type=cache,target=/root/.cache pip install x",
        "RUN --network=none true",
        "COPY --link a b",
        "COPY --from=x --chmod=755 a b",
        "RUN <<EOF\necho hi\nEOF",
        "COPY <<'EOF' /etc/motd\nhi\nEOF",
    ],
)
def test_syntax_of_buildkit_is_seen(line: str) -> None:
    assert needs_buildkit(f"FROM debian\n{line}\n")


@pytest.mark.parametrize(
    "line",
    [
        "RUN apt-get install -y tmux",
        "COPY --from=build --chown=1:1 a b",
        "RUN echo --mount",
        "# RUN --mount=type=cache x",
        "RUN test 1 -lt 2",
    ],
)
def test_plain_dockerfiles_need_none(line: str) -> None:
    assert not needs_buildkit(f"FROM debian\n{line}\n")


class Engine:
    """An engine that keeps images by tag, and counts how often each is built."""

    def __init__(self) -> None:
        self.images = self
        self.kept: set[str] = set()
        self.builds: list[tuple[str, str]] = []

    def get(self, tag: str) -> SimpleNamespace:
        if tag not in self.kept:
            raise ImageNotFound(tag)
        return SimpleNamespace(id=f"id of {tag}", tags=[tag])

    def builder(self, name: str):
        def build(_context: Path, tag: str, _build: Build) -> None:
            self.builds.append((name, tag))
            time.sleep(0.2)  # time enough for another to start one as well
            self.kept.add(tag)

        return build


@pytest.mark.parametrize("builder", ["_build_with_buildx", "_build_classic"])
def test_the_same_content_is_built_once_however_many_start_at_once(
    builder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = Engine()
    monkeypatch.setattr(engine, "client", lambda: fake)
    monkeypatch.setattr(images, "has_buildx", lambda: builder == "_build_with_buildx")
    for name in ("_build_with_buildx", "_build_classic"):
        monkeypatch.setattr(images, name, fake.builder(name))
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        folder.mkdir()
        (folder / "Dockerfile").write_text("FROM debian\n")
    together = threading.Barrier(3)

    def start(folder: Path) -> list[str]:
        together.wait(5)
        return list(ensure_image(folder, "same").tags)

    with ThreadPoolExecutor(3) as pool:
        made = list(pool.map(start, folders))
    assert [name for name, _ in fake.builds] == [builder]
    assert made == [[fake.builds[0][1]]] * 3
    assert ensure_image(folders[0], "same").tags == made[0]
    assert len(fake.builds) == 1
    ensure_image(folders[0], "other")
    ensure_image(folders[0], "same", force=True)
    fake.kept.add("debian")  # another base: no image of before is of use
    ensure_image(folders[0], "same")
    assert len(fake.builds) == 4
    assert len({tag for _, tag in fake.builds}) == 3
