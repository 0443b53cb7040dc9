"""The Docker engine: connection, ownership of what trials make, and removal of what is left.

Every container, image and network made here carries labels that name its *owner*, one
``depthkit`` process, and the lock file that this process holds for as long as it lives. The
kernel releases the lock when the process is gone, however it went; so whoever can take the lock
of an owner knows that its leftovers belong to nobody (:func:`clean`).
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container
from docker.models.images import Image

from depthkit.errors import DepthkitError

OWNER_LABEL = "depthkit.owner"
LOCK_LABEL = "depthkit.lock"
HOST_LABEL = "depthkit.host"
COMPOSE_PROJECT_LABEL = "com.docker.compose.project"

type Filters = dict[str, str | list[str] | bool]

NETWORK = "depthkit"
"""The one bridge network of all trials with network access: one, because an engine has address
space for about thirty, and without traffic between its containers."""


@cache
def client() -> docker.DockerClient:
    """The engine's client, one a process, safe for many threads.

    Raises:
        DepthkitError: If no engine answers.
    """
    try:
        # No read timeout: a verifier may be silent for as long as its own limit allows.
        made: docker.DockerClient = docker.from_env(timeout=None, max_pool_size=128)  # type: ignore[arg-type]
        made.ping()
    except DockerException as error:
        raise DepthkitError(
            "No Docker engine answers. Start Docker, or, on Debian as root, run "
            f"env/engine.sh up. (The client said: {error})"
        ) from error
    return made


@dataclass(frozen=True)
class Owner:
    """This process, as the owner of what it makes.

    Attributes:
        id: Eight hexadecimal digits, new for every process.
        lock: The lock file held for the life of the process.
    """

    id: str
    lock: Path
    _held: Any = field(repr=False)

    @property
    def labels(self) -> dict[str, str]:
        """Labels for everything this process makes in the engine."""
        return {
            OWNER_LABEL: self.id,
            LOCK_LABEL: str(self.lock),
            HOST_LABEL: socket.gethostname(),
        }


def _lock_folder() -> Path:
    folder = Path(tempfile.gettempdir()) / "depthkit-owners"
    folder.mkdir(mode=0o777, exist_ok=True)
    if folder.stat().st_uid == os.getuid():
        folder.chmod(0o1777)
    return folder


_owner: Owner | None = None
_owner_guard = threading.Lock()


def owner() -> Owner:
    """The owner that stands for this process; its lock is taken at the first call."""
    global _owner
    with _owner_guard:
        if _owner is None:
            identity = secrets.token_hex(4)
            path = _lock_folder() / f"{identity}.lock"
            held = path.open("w")
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held.write(f"{os.getpid()}\n")
            held.flush()
            _owner = Owner(identity, path, held)
        return _owner


def _owner_is_gone(labels: dict[str, str]) -> bool:
    """Whether the process that made something with these labels has ended.

    An owner on another host (a shared engine) or one whose lock cannot be read is taken to live.
    """
    if labels.get(HOST_LABEL) != socket.gethostname():
        return False
    path = Path(labels.get(LOCK_LABEL, ""))
    try:
        handle = path.open("r+")
    except FileNotFoundError:
        return True
    except OSError:
        return False
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


@dataclass
class Leftovers:
    """What :func:`clean` found (and, unless only looking, removed), by name."""

    containers: list[str] = field(default_factory=list)
    networks: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    in_use: list[str] = field(default_factory=list)
    """Images and networks of a dead owner that a living one still uses; left alone."""

    def __bool__(self) -> bool:
        return bool(self.containers or self.networks or self.images)


def clean(*, dry_run: bool = False) -> Leftovers:
    """Remove what processes that no longer live left in the engine.

    Args:
        dry_run: Only look.

    Returns:
        Leftovers: Names of what was removed, or would be.
    """
    api = client()
    found = Leftovers()
    mine = _owner.id if _owner else None
    gone: dict[str, bool] = {}
    locks: set[str] = set()

    def dead(labels: dict[str, str] | None) -> bool:
        labels = labels or {}
        identity = labels.get(OWNER_LABEL)
        if identity is None or identity == mine:
            return False
        if identity not in gone:
            gone[identity] = _owner_is_gone(labels)
            if gone[identity]:
                locks.add(labels[LOCK_LABEL])
        return gone[identity]

    def drop(name: str, into: list[str], remove: Callable[[], object]) -> None:
        if not dry_run:
            try:
                remove()
            except NotFound:
                return
            except APIError as error:
                # 409: a container of a living process uses it; 403: the network has endpoints.
                if error.status_code in (403, 409):
                    found.in_use.append(name)
                    return
                raise
        into.append(name)

    query: Filters = {"label": OWNER_LABEL}
    projects: set[str] = set()
    for container in api.containers.list(all=True, filters=query, ignore_removed=True):
        if dead(container.labels):
            if project := container.labels.get(COMPOSE_PROJECT_LABEL):
                projects.add(project)
            drop(
                container.name or container.id or "",
                found.containers,
                partial(container.remove, force=True, v=True),
            )
    # Compose makes sidecars and networks that carry no label of ours, only its project's.
    for project in sorted(projects):
        of_project: Filters = {"label": f"{COMPOSE_PROJECT_LABEL}={project}"}
        for container in api.containers.list(all=True, filters=of_project, ignore_removed=True):
            drop(
                container.name or "",
                found.containers,
                partial(container.remove, force=True, v=True),
            )
        for network in api.networks.list(filters=of_project):
            drop(network.name or "", found.networks, network.remove)
    for image in api.images.list(filters=query):
        if dead(image.labels):
            drop(_image_name(image), found.images, partial(remove_image, image))
    if not dry_run:
        _drop_network()
        for lock in locks:
            Path(lock).unlink(missing_ok=True)
    return found


def _image_name(image: Image) -> str:
    return image.tags[0] if image.tags else str(image.short_id)


def remove_image(image: Image) -> None:
    """Remove an image with all its tags, unless a container uses it (``APIError`` 409)."""
    for name in image.tags or [str(image.id)]:
        client().images.remove(name)


def release() -> None:
    """Remove what this process made: its containers, then its images where nobody uses them.

    Called when a command ends. The shared network stays while another process uses it.
    """
    if _owner is None:
        return
    api = client()
    query: Filters = {"label": f"{OWNER_LABEL}={_owner.id}"}
    for container in api.containers.list(all=True, filters=query, ignore_removed=True):
        remove_container(container)
    for image in api.images.list(filters=query):
        try:
            remove_image(image)
        except APIError as error:
            if error.status_code not in (404, 409):
                raise
    _drop_network()


def _drop_network() -> None:
    """Remove the shared network unless a container uses it; whoever needs it next makes it."""
    try:
        client().networks.get(NETWORK).remove()
    except APIError as error:
        if error.status_code not in (403, 404):
            raise


def remove_container(container: Container) -> None:
    """Kill and remove a container with its anonymous volumes; one already gone is fine."""
    try:
        container.remove(force=True, v=True)
    except APIError as error:
        # 404: gone already; 409: another removal is in progress.
        if error.status_code not in (404, 409):
            raise


def public_network() -> str:
    """Name of the shared bridge network, made at the first call."""
    api = client()
    try:
        api.networks.get(NETWORK)
    except NotFound:
        try:
            api.networks.create(
                NETWORK,
                driver="bridge",
                check_duplicate=True,
                labels={"depthkit.network": "shared"},
                options={"com.docker.network.bridge.enable_icc": "false"},
            )
        except APIError as error:
            if error.status_code != 409:  # Another process was quicker.
                raise
    return NETWORK
