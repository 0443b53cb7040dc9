"""Task images: built once per content digest, by BuildKit where it is present."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import socket
import subprocess
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from docker.errors import ImageNotFound
from docker.models.images import Image

from depthkit.errors import DepthkitError
from depthkit.trials import engine

REPOSITORY = "depthkit/task"

_building: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

_FROM = re.compile(r"^\s*FROM\s+(?:--platform=\S+\s+)?(\S+)", re.IGNORECASE | re.MULTILINE)

_BUILDKIT_ONLY = re.compile(
    r"""^\s*(?:
        \#\s*syntax\s*=            # a frontend of its own
      | RUN\s+(?:--\w+\S*\s+)*--(?:mount|network|security)\b
      | (?:COPY|ADD)\s+(?:--\S+\s+)*--(?:link|chmod|parents|exclude|checksum|keep-git-dir)\b
      | (?:RUN|COPY|ADD)\b[^\n]*<<-?\s*["']?\w+   # heredocs
    )""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


def needs_buildkit(dockerfile: str) -> bool:
    """Whether a Dockerfile uses syntax that only BuildKit understands."""
    return _BUILDKIT_ONLY.search(dockerfile) is not None


@cache
def has_buildx() -> bool:
    """Whether the Docker command line with its buildx plugin is installed."""
    try:
        probe = subprocess.run(["docker", "buildx", "version"], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return probe.returncode == 0


class Build:
    """How whoever waits no longer ends a build, which would go on after its time, or after us.

    One that is still in the queue for the same image is killed as soon as it begins.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._kill: Callable[[], object] | None = None
        self._ended = False

    def end(self) -> None:
        """Kill what runs; a build that is done stays."""
        with self._guard:
            self._ended = True
            if self._kill is not None:
                self._kill()

    @contextmanager
    def killed_by(self, kill: Callable[[], object]) -> Iterator[None]:
        """Say how to kill what has just begun, for as long as it runs."""
        with self._guard:
            self._kill = kill
            if self._ended:
                kill()
        try:
            yield
        finally:
            with self._guard:
                self._kill = None


def ensure_image(
    environment_dir: Path, content_digest: str, *, force: bool = False, build: Build | None = None
) -> Image:
    """The image of a task's ``environment/Dockerfile``, built if no image of this content exists.

    The digest covers the files of ``environment/`` and the identity of local base images, so a
    rebuilt base is not missed.

    Args:
        environment_dir: Folder with the Dockerfile, the build context.
        content_digest: Digest of that folder's contents.
        force: Build although an image exists.
        build: By which another thread ends the build.

    Raises:
        DepthkitError: If the build fails, or needs BuildKit and there is no buildx.
    """
    dockerfile = environment_dir / "Dockerfile"
    text = dockerfile.read_text(encoding="utf-8", errors="replace")
    tag = f"{REPOSITORY}:{_digest(content_digest, text)}"
    images, build = engine.client().images, build or Build()
    with _building[tag]:
        if not force:
            try:
                return images.get(tag)
            except ImageNotFound:
                pass
        if has_buildx():
            _build_with_buildx(environment_dir, tag, build)
        elif needs_buildkit(text):
            raise DepthkitError(
                f"{dockerfile}: it uses BuildKit syntax and this machine has no docker buildx; "
                "install the docker-buildx plugin (env/engine.sh up does so on Debian)."
            )
        else:
            _build_classic(environment_dir, tag, build)
        return images.get(tag)


def _digest(content: str, dockerfile: str) -> str:
    made = hashlib.sha256(content.encode())
    for base in _FROM.findall(dockerfile):
        try:
            made.update(f"{base}={engine.client().images.get(base).id}".encode())
        except ImageNotFound:
            made.update(f"{base}=".encode())
    return made.hexdigest()[:24]


def _build_with_buildx(context: Path, tag: str, build: Build) -> None:
    labels = [f"--label={key}={value}" for key, value in engine.owner().labels.items()]
    command = ["docker", "buildx", "build", "--load", "--progress=plain", f"--tag={tag}", *labels]
    process = subprocess.Popen(
        [*command, "."],
        cwd=context,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,  # buildx is a process of its own, which outlives docker
    )
    with process, build.killed_by(lambda: os.killpg(process.pid, signal.SIGKILL)):
        _, log = process.communicate()
    if process.returncode != 0:
        raise DepthkitError(_failure(context, log))


def _build_classic(context: Path, tag: str, build: Build) -> None:
    parts = engine.client().api.build(
        path=str(context),
        tag=tag,
        labels=engine.owner().labels,
        rm=True,
        forcerm=True,
        decode=True,
    )
    connection = engine.response_of(parts).raw.connection  # without it the engine ends the build
    log = ""
    with build.killed_by(lambda: connection.sock.shutdown(socket.SHUT_RDWR)):
        for part in parts:
            log += str(part.get("stream", "")) + str(part.get("error", ""))
            if "error" in part:
                raise DepthkitError(_failure(context, log))


def _failure(context: Path, log: str) -> str:
    last = "\n".join(f"  {line}" for line in log.strip().splitlines()[-15:])
    return f"{context / 'Dockerfile'}: the image does not build. The end of the log:\n{last}"
