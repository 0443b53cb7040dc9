"""The tool set: what a trial needs of an image that lacks it, and what nobody can replace.

terminus-2 drives a terminal in tmux, and every command goes through bash. An image without one of
them finds both in one read-only folder, from the image that ``env/tools/build.sh`` makes; its own
programs stay as they are and come first on PATH. Nothing is installed in a trial.

Every container has the folder where it has been built, also one that lacks nothing: what is done
around a verification is done with its programs (:data:`GUARD`), since an agent that is root may
have put others in the place of the image's. They are static, so ``/etc/ld.so.preload`` is nothing
to them, and look up users in ``/etc/passwd`` alone.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any, cast

from docker.errors import APIError, ImageNotFound, NotFound
from docker.models.containers import Container
from docker.models.images import Image

from depthkit.errors import DepthkitError
from depthkit.trials import engine

IMAGE = "depthkit/tools:1"
FOLDER = "/.dk"
"""Where containers find the tool set; built into its programs (``env/tools/assemble.sh``)."""

SESSION = ("tmux", "bash")
"""What a trial runs in a container; in ``FOLDER/bin``."""

BASICS = (
    "sh",
    "base64",
    "cat",
    "chmod",
    "chown",
    "dd",
    "find",
    "id",
    "ls",
    "mkdir",
    "mkfifo",
    "rm",
    "sleep",
)
"""What Harbor and this package expect beside; in ``FOLDER/box``, for images without even these."""

GUARD = (f"{FOLDER}/bin/bash", "-p")
"""The shell of the guards, and :data:`GUARD_VARIABLES` what it is to be started with."""

GUARD_VARIABLES = {
    "PATH": f"{FOLDER}/box",
    "LC_ALL": "C",
    "SHELL": GUARD[0],  # or bash would look it up, through the container's name service
}

_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PROBE = (
    f"for tool in {' '.join((*SESSION, *BASICS))}; do "
    "command -v $tool >/dev/null 2>&1 || echo $tool; done"
)
_NO_SHELL = (126, 127)
"""Statuses with which the engine and its init process say that a program is not there."""


@dataclass(frozen=True)
class Missing:
    """What an image lacks, and what its containers are given for that.

    Attributes:
        image: The image.
        tools: Names of the commands that are not on its PATH.
    """

    image: Image
    tools: frozenset[str] = field(default_factory=frozenset)

    def keep_alive(self) -> list[str]:
        """A command that runs for as long as a container may live."""
        if self.tools & {"sh", "sleep"}:
            return [f"{FOLDER}/box/sleep", "infinity"]
        # An agent that ends all that sleeps (`pkill sleep`) is not to end its container.
        return ["sh", "-c", "trap '' TERM; exec sleep infinity"]

    def run_options(self, variables: dict[str, str]) -> dict[str, Any]:
        """Arguments of docker-py's ``containers.run``: the environment, and the mounted tool set.

        Args:
            variables: The environment that the task asks for.

        Returns:
            dict: With ``volumes_from`` where there is a tool set.

        Raises:
            DepthkitError: If the tool set is needed and has not been built.
        """
        holder = _holder(self)
        mounted = {"volumes_from": [f"{holder}:ro"]} if holder else {}
        if not self.tools:
            return {"environment": variables, **mounted}
        folders = [f"{FOLDER}/bin"] if self.tools & set(SESSION) else []
        if self.tools & set(BASICS):
            folders.append(f"{FOLDER}/box")
        own = dict(line.split("=", 1) for line in self.image.attrs["Config"].get("Env") or [])
        before = {**own, **variables}
        # A snapshot of a container is an image whose PATH has the tool set already.
        path = before.get("PATH") or _DEFAULT_PATH
        kept = [folder for folder in path.split(":") if not folder.startswith(f"{FOLDER}/")]
        made = {**variables, "PATH": ":".join([*kept, *folders])}
        if "bash" in self.tools and not before.keys() & {"LANG", "LC_ALL", "LC_CTYPE"}:
            made["LC_CTYPE"] = "C.UTF-8"  # Or bash would show letters beyond ASCII as numbers.
        return {"environment": made, **mounted}


_guard = threading.Lock()
_missing: dict[str, Missing] = {}
_holders: dict[str, str] = {}


def known(image: Image) -> Missing | None:
    """What the image lacks, if that was found out in this process."""
    return _missing.get(str(image.id))


def inherit(image: Image, lacks: frozenset[str]) -> None:
    """Note what a snapshot lacks: what the image lacked that its container was started from."""
    _missing[str(image.id)] = Missing(image, lacks)


def forget(image: Image) -> None:
    """Forget an image that is removed."""
    _missing.pop(str(image.id), None)


def look(image: Image, container: Container) -> Missing:
    """Find out what the image lacks from a container that was started with its own programs only.

    Raises:
        APIError: If the container cannot be asked although its image has a shell.
    """
    try:
        status, answer = container.exec_run(["sh", "-c", _PROBE], user="0")
        output = cast("bytes", answer)
    except APIError as error:
        container.reload()
        ended = container.status != "running" and container.attrs["State"]["ExitCode"] in _NO_SHELL
        if not ended and "executable file not found" not in str(error):
            raise
        status, output = _NO_SHELL[0], b""
    everything = frozenset((*SESSION, *BASICS))
    lacks = everything if status in _NO_SHELL else frozenset(output.decode().split())
    found = Missing(image, lacks & everything)
    _missing[str(image.id)] = found
    return found


def _holder(missing: Missing) -> str | None:
    """The container, never started, whose volume is the tool set; one a process.

    ``None`` where the tool set has not been built and the image lacks nothing.

    It belongs to the process, so its volume goes with it, and no other process can meet the
    volume half filled. It lives in the engine, which may be on another host.
    """
    with _guard:
        owner = engine.owner()
        name = _holders.get(owner.id)
        if name is None or not _exists(name):
            try:
                # Created from the image, an empty volume is filled with what the image has there.
                made = engine.client().containers.create(
                    IMAGE, name=f"depthkit-tools-{owner.id}-{token_hex(2)}", labels=owner.labels
                )
            except ImageNotFound as error:
                if not missing.tools:
                    return None
                tools = ", ".join(tool for tool in SESSION if tool in missing.tools)
                image = (missing.image.tags or [str(missing.image.short_id)])[0]
                raise DepthkitError(
                    f"The image {image} has no {tools or 'shell'}, and a trial installs nothing; "
                    "build the tool set with env/tools/build.sh (make tools)."
                ) from error
            name = _holders[owner.id] = str(made.id)
        return name


def _exists(container: str) -> bool:
    try:
        engine.client().containers.get(container)
    except NotFound:
        return False
    return True
