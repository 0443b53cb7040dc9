"""Task images: built once per content digest, by BuildKit where it is present."""

from __future__ import annotations

import hashlib
import re
import subprocess
import threading
from collections import defaultdict
from functools import cache
from pathlib import Path

from docker.errors import BuildError, ImageNotFound
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


def ensure_image(environment_dir: Path, content_digest: str, *, force: bool = False) -> Image:
    """The image of a task's ``environment/Dockerfile``, built if no image of this content exists.

    The digest covers the files of ``environment/`` and the identity of local base images, so a
    rebuilt base is not missed.

    Args:
        environment_dir: Folder with the Dockerfile, the build context.
        content_digest: Digest of that folder's contents.
        force: Build although an image exists.

    Raises:
        DepthkitError: If the build fails, or needs BuildKit and there is no buildx.
    """
    dockerfile = environment_dir / "Dockerfile"
    text = dockerfile.read_text(encoding="utf-8", errors="replace")
    tag = f"{REPOSITORY}:{_digest(content_digest, text)}"
    images = engine.client().images
    with _building[tag]:
        if not force:
            try:
                return images.get(tag)
            except ImageNotFound:
                pass
        if has_buildx():
            _build_with_buildx(environment_dir, tag)
        elif needs_buildkit(text):
            raise DepthkitError(
                f"{dockerfile}: it uses BuildKit syntax and this machine has no docker buildx; "
                "install the docker-buildx plugin (env/engine.sh up does so on Debian)."
            )
        else:
            _build_classic(environment_dir, tag)
        return images.get(tag)


def _digest(content: str, dockerfile: str) -> str:
    made = hashlib.sha256(content.encode())
    for base in _FROM.findall(dockerfile):
        try:
            made.update(f"{base}={engine.client().images.get(base).id}".encode())
        except ImageNotFound:
            made.update(f"{base}=".encode())
    return made.hexdigest()[:24]


def _build_with_buildx(context: Path, tag: str) -> None:
    labels = [f"--label={key}={value}" for key, value in engine.owner().labels.items()]
    built = subprocess.run(
        ["docker", "buildx", "build", "--load", "--progress=plain", f"--tag={tag}", *labels, "."],
        cwd=context,
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode != 0:
        raise DepthkitError(_failure(context, built.stderr))


def _build_classic(context: Path, tag: str) -> None:
    try:
        engine.client().images.build(
            path=str(context), tag=tag, labels=engine.owner().labels, rm=True, forcerm=True
        )
    except BuildError as error:
        log = "".join(str(part.get("stream", "")) for part in error.build_log)
        raise DepthkitError(_failure(context, f"{log}\n{error}")) from error


def _failure(context: Path, log: str) -> str:
    last = "\n".join(f"  {line}" for line in log.strip().splitlines()[-15:])
    return f"{context / 'Dockerfile'}: the image does not build. The end of the log:\n{last}"
