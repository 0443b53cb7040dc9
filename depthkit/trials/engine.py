"""The Docker engine: connection, ownership of what trials make, and removal of what is left.

Every container, image and network made here carries labels that name its *owner*, one
``depthkit`` process, and the lock file that this process holds for as long as it lives. The
kernel releases the lock when the process is gone, however it went; so whoever can take the lock
of an owner knows that its leftovers belong to nobody (:func:`clean`).
"""

from __future__ import annotations

import inspect
import json
import os
import re
import secrets
import socket
import struct
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, ContextNotFound, DockerException, NotFound
from docker.models.containers import Container
from docker.models.images import Image
from docker.models.networks import Network
from docker.utils.socket import STDERR, STDOUT
from requests.exceptions import RequestException

from depthkit.corpus.lines import open_alone
from depthkit.errors import DepthkitError, DepthkitWarning

OWNER_LABEL = "depthkit.owner"
LOCK_LABEL = "depthkit.lock"
HOST_LABEL = "depthkit.host"
COMPOSE_PROJECT_LABEL = "com.docker.compose.project"
_PROJECT = re.compile(r"__([0-9a-f]{8})[0-9a-f]{6}__")
"""An owner's identity within a run's name, from which compose makes its project's."""

type Filters = dict[str, str | list[str] | bool]

NETWORK = "depthkit"
"""The one bridge network of all trials with network access: one, because an engine has address
space for about thirty, and without traffic between its containers."""


ANSWER_SECONDS = 20
"""Longest wait for an engine's first answer."""


@cache
def client() -> docker.DockerClient:
    """The engine's client, one a process, safe for many threads.

    ``DOCKER_HOST`` or else the Docker context chosen on the command line says which engine.

    Raises:
        DepthkitError: If no engine answers.
    """
    try:
        made = _Client.from_env(timeout=ANSWER_SECONDS, max_pool_size=128)
        made.ping()
    except (DockerException, ContextNotFound, RequestException) as error:
        if "timed out" in str(error).lower():
            raise DepthkitError(
                f"The Docker engine at {os.environ.get('DOCKER_HOST') or 'its usual socket'} takes "
                f"connections but has not answered for {ANSWER_SECONDS} s. Restart it, or set "
                "DOCKER_HOST to one that answers."
            ) from error
        raise DepthkitError(
            "No Docker engine answers. Start Docker, or, on Debian as root, run "
            f"env/engine.sh up. (The client said: {error})"
        ) from error
    # From here on without a limit: a verifier may be silent for as long as its own allows.
    made.api.timeout = None  # type: ignore[assignment]
    return made


class _API(docker.APIClient):
    """docker-py's, without losing output of commands.

    http.client reads the headers of an answer through a buffer; what arrived together with them is
    then in that buffer, while docker-py (``APIClient._get_raw_response_socket``) goes on with the
    bare socket below it. So ``exec_run`` gives status 0 and no output, and ``attach`` lacks its
    beginning: more often the busier the process and the slower the way to the engine. Here the
    frames are read through that same buffer, over whatever the engine is reached.
    """

    def _read_from_socket(
        self, response: Any, stream: bool, tty: bool = True, demux: bool = False
    ) -> Any:
        self._raise_for_status(response)  # type: ignore[attr-defined]
        if tty:
            raise NotImplementedError("nothing here executes or attaches with a terminal")
        frames = _frames(response)
        if stream:
            return (
                ((data, None) if number == STDOUT else (None, data)) if demux else data
                for number, data in frames
            )
        outputs = {STDOUT: _End(), STDERR: _End()}
        for number, data in frames:
            outputs[number if demux else STDOUT].add(data)
        if not demux:
            return outputs[STDOUT].kept() or b""
        return outputs[STDOUT].kept(), outputs[STDERR].kept()


MOST_OUTPUT = 16 << 20
"""Bytes of a command's output, and as many of its errors, that are kept: the last ones."""


class _End:
    """The end of what was added."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._lost = 0

    def add(self, data: bytes) -> None:
        self._bytes += data
        if len(self._bytes) > 2 * MOST_OUTPUT:
            self._shorten()

    def _shorten(self) -> None:
        if (over := len(self._bytes) - MOST_OUTPUT) > 0:
            self._lost += over
            del self._bytes[:over]

    def kept(self) -> bytes | None:
        """The end, after a line that says what is not there; ``None`` if nothing was added."""
        self._shorten()
        if not self._lost:
            return bytes(self._bytes) or None
        said = f"[depthkit: {self._lost} bytes before this were left out; {MOST_OUTPUT} are kept]\n"
        return said.encode() + self._bytes


def _frames(response: Any) -> Iterator[tuple[int, bytes]]:
    """Number of the stream and what was written to it, until the end; then closes the response."""
    reader = response.raw._fp.fp
    try:
        while len(header := reader.read(8)) == 8:
            number, size = struct.unpack(">BxxxL", header)
            while size and (data := reader.read(min(size, _CHUNK))):
                size -= len(data)
                yield number, data
    finally:
        response.close()


_CHUNK = 1 << 20


def response_of(stream: Any) -> Any:
    """The response that a stream of docker-py's reads; it has no other word to end one early."""
    return inspect.getgeneratorlocals(stream)["response"]


class _Client(docker.DockerClient):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.api = _API(*args, **kwargs)


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
    """The owner that stands for this process, until :func:`release`; its lock is held from here."""
    global _owner
    with _owner_guard:
        while _owner is None:
            identity = secrets.token_hex(4)
            path = _lock_folder() / f"{identity}.lock"
            held = open_alone(path, "w")
            held.write(f"{os.getpid()}\n")
            held.flush()
            # A clean elsewhere may have taken the file away before it was locked.
            if path.exists() and path.stat().st_ino == os.fstat(held.fileno()).st_ino:
                _owner = Owner(identity, path, held)
        return _owner


def _is_free(path: Path) -> bool:
    """Whether nobody holds a lock file; one that cannot be opened is taken to be held."""
    try:
        open_alone(path, "r+", wait=False).close()
    except (OSError, DepthkitError):
        return False
    return True


class _Dead:
    """Which owners have ended; each lock is tried once."""

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}
        self.locks = {path.stem: path for path in _lock_folder().glob("*.lock")}

    def __call__(self, identity: str) -> bool:
        """Whether the process behind an owner's lock file is gone."""
        if identity not in self._known:
            mine = _owner is not None and identity == _owner.id
            path = self.locks.get(identity)
            self._known[identity] = not mine and path is not None and _is_free(path)
        return self._known[identity]

    def labelled(self, labels: dict[str, str] | None) -> bool:
        """Whether what carries these labels belongs to nobody any more.

        An owner on another host (a shared engine) is taken to live.
        """
        labels = labels or {}
        if labels.get(HOST_LABEL) != socket.gethostname():
            return False
        identity = labels.get(OWNER_LABEL, "")
        lock = Path(labels.get(LOCK_LABEL, ""))
        return self(identity) or (bool(identity) and not lock.exists())

    def project(self, labels: dict[str, str] | None) -> bool:
        """The same for what Harbor's compose environment made, by the name of its project."""
        found = _PROJECT.search((labels or {}).get(COMPOSE_PROJECT_LABEL, ""))
        return found is not None and self(found[1])


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
    dead = _Dead()

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

    for label, is_left in ((OWNER_LABEL, dead.labelled), (COMPOSE_PROJECT_LABEL, dead.project)):
        query: Filters = {"label": label}
        for container in api.containers.list(all=True, filters=query, ignore_removed=True):
            if is_left(container.labels):
                name = container.name or str(container.id)
                drop(name, found.containers, partial(remove_container, container))
        for network in api.networks.list(filters=query):
            if is_left(network.attrs.get("Labels")):
                drop(network.name or str(network.id), found.networks, network.remove)
        for image in _images(query):
            if is_left(image.labels):
                drop(_image_name(image), found.images, partial(remove_image, image))
    if not dry_run:
        _drop_network()
        for identity, lock in dead.locks.items():
            if dead(identity):
                lock.unlink(missing_ok=True)
    return found


def _images(query: Filters) -> list[Image]:
    """Images that match; one that another process removes meanwhile is no longer there."""
    found = []
    for each in client().api.images(filters=query):
        try:
            found.append(client().images.get(each["Id"]))
        except NotFound:
            continue
    return found


def _image_name(image: Image) -> str:
    return image.tags[0] if image.tags else str(image.short_id)


def remove_image(image: Image) -> None:
    """Remove an image with all its tags, unless a container uses it (``APIError`` 409)."""
    for name in image.tags or [str(image.id)]:
        client().images.remove(name)


def release() -> None:
    """Remove what this process made: its containers, then its images where nobody uses them.

    Called when a command ends; the process is then no owner any more. The shared network stays
    while another process uses it.
    """
    global _owner
    if _owner is None:
        return
    api = client()
    query: Filters = {"label": f"{OWNER_LABEL}={_owner.id}"}
    for container in api.containers.list(all=True, filters=query, ignore_removed=True):
        remove_container(container)
    for image in _images(query):
        try:
            remove_image(image)
        except APIError as error:
            if error.status_code not in (404, 409):
                raise
    _drop_network()
    with _owner_guard:
        _owner.lock.unlink(missing_ok=True)
        _owner._held.close()
        _owner = None


def _networks() -> list[Network]:
    """The shared network; two of that name where two processes made it at once."""
    return [n for n in client().networks.list(names=[NETWORK]) if n.name == NETWORK]


def _drop_network() -> None:
    """Remove the shared network unless a container uses it; whoever needs it next makes it."""
    for network in _networks():
        try:
            network.remove()
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


def bytes_written(container: Container) -> int:
    """What a container has written beside its image, outside of volumes."""
    found = client().api.containers(all=True, size=True, filters={"id": container.id})
    return int(found[0].get("SizeRw") or 0) if found else 0


@cache
def _warn_of_network() -> None:
    # Only rules of the host's own, which are not ours to set, could close this.
    warnings.warn(
        DepthkitWarning(
            "Trials whose task has a network reach what listens on this machine and around it, and "
            "in a cloud the metadata address 169.254.169.254; docs/verdicts.md says how to close "
            "that."
        ),
        stacklevel=1,
    )


def ended_at_once(container: Container) -> str | None:
    """What is wrong with an image whose container ended before anything was done in it."""
    state = container.attrs.get("State", {})
    if state.get("Status") != "exited":
        return None
    entry = container.attrs["Config"].get("Entrypoint")
    why = f"ENTRYPOINT {json.dumps(entry)} does not" if entry else "first process did not"
    return (
        f"it ended at once with status {state['ExitCode']}: its {why} run the command that it is "
        'given (exec "$@"); mend the Dockerfile.'
    )


def ended_by_itself(container: Container) -> str | None:
    """How a container's first process ended, if nobody outside killed it; ``None`` if not known.

    A container that was removed, one that somebody killed or stopped, and one that went with its
    engine did not end by itself. The engine remembers few events, and none from before it was
    started; without the one of the end it cannot tell.
    """
    try:
        container.reload()
        state, api = container.attrs["State"], client()
        if state["Status"] != "exited":
            return None
        # Until the engine's own present, or it would wait for what is still to come.
        now = datetime.fromisoformat(api.info()["SystemTime"]).timestamp()
        seen = api.events(  # type: ignore[call-overload]
            since=1,
            until=f"{now:.9f}",
            filters={"container": container.id, "event": ["kill", "die"]},
            decode=True,
        )
        kinds = {event["Action"] for event in seen}
    except (APIError, OSError):
        return None
    if kinds != {"die"}:
        return None
    status = f"status {state['ExitCode']}{', out of memory' if state['OOMKilled'] else ''}"
    return f"the container's first process was ended from within ({status})"


def public_network() -> str:
    """Identity of the shared bridge network, made at the first call; warns once a process."""
    _warn_of_network()
    with open_alone(_lock_folder() / "network", "w"):
        for network in _networks():
            return str(network.id)
        made = client().networks.create(
            NETWORK,
            driver="bridge",
            labels={"depthkit.network": "shared"},
            options={"com.docker.network.bridge.enable_icc": "false"},
        )
        return str(made.id)
