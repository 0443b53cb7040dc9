"""A container's files without its processes, for a second verdict that nothing can disturb."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import PurePosixPath

from docker.errors import APIError
from docker.models.images import Image
from harbor.environments.base import BaseEnvironment

from depthkit.trials import engine, tools
from depthkit.trials.environment import DockerEnvironment
from depthkit.trials.recorder import COPY
from depthkit.trials.threads import in_thread

MOST_BYTES = 1 << 30
"""Containers that changed more than this are not copied: it would take longer than the run."""


class NoSnapshotError(Exception):
    """A container of which no snapshot is taken; the message says why."""


async def take_snapshot(environment: BaseEnvironment) -> Image:
    """An image of the container's files as they are now; the container is paused meanwhile.

    The caller removes the image.

    Raises:
        NoSnapshotError: If it could not hold all files, would be too large, or cannot be made.
    """
    if not isinstance(environment, DockerEnvironment):
        raise NoSnapshotError("the task runs in Harbor's compose environment")
    container = environment.container

    def take() -> Image:
        container.reload()
        mounts = [m["Destination"] for m in container.attrs["Mounts"] if m.get("RW")]
        if mounts:
            raise NoSnapshotError(f"{', '.join(mounts)} is a volume")
        size = engine.bytes_written(container)
        if size > MOST_BYTES:
            raise NoSnapshotError(f"the container has {size >> 20} MB of changes")
        try:
            image = container.commit(pause=True)
        except APIError as error:
            raise NoSnapshotError(f"docker commit failed: {error}") from error
        tools.inherit(image, environment.lacks)
        return image

    return await in_thread(take)


async def drop_snapshot(image: Image) -> None:
    """Remove a snapshot; one that something still uses goes when its owner is released."""

    def drop() -> None:
        tools.forget(image)
        try:
            engine.remove_image(image)
        except APIError as error:
            if error.status_code not in (404, 409):
                raise

    await in_thread(drop)


@asynccontextmanager
async def started_from(
    environment: BaseEnvironment, image: Image
) -> AsyncIterator[DockerEnvironment]:
    """A fresh container with the files of a snapshot, and with the environment's own settings.

    Network, limits, variables, mounts and user are those of the environment. Folders that Harbor
    expects are not made: where the environment still has them, the snapshot does.
    """
    if not isinstance(environment, DockerEnvironment):
        raise TypeError("only depthkit's own environment has snapshots")
    other = copy.copy(environment)
    other._container = None
    other.task_env_config = environment.task_env_config.model_copy(
        update={"docker_image": image.id}
    )
    try:
        await other.start_bare()
        yield other
    finally:
        await other.stop(delete=True)


_TERMINAL = ("tmux", "asciinema")
_SHELLS = ("bash", "sh", "dash", "ash", "zsh")
_COPIES = ("cat", COPY)
"""What takes the terminal's output to Harbor's log, and to the recording."""
_KEEP_ALIVE = (
    "sh -c trap '' TERM; exec sleep infinity",
    "sleep infinity",
    f"{tools.FOLDER}/box/sleep infinity",
)


async def other_processes(environment: DockerEnvironment) -> list[str]:
    """Command lines of the processes beside the idle terminal and what keeps a container alive.

    The engine's host lists them, so nothing in the container can hide one.

    Raises:
        APIError: If the engine cannot list them.
    """
    container = environment.container
    listed = await in_thread(lambda: container.top(ps_args="-eo pid,ppid,args"))
    table = {pid: (above, args) for pid, above, args in listed["Processes"]}
    return [args for pid, (_, args) in table.items() if not is_idle(pid, table)]


def is_idle(pid: str, table: dict[str, tuple[str, str]]) -> bool:
    """Whether a process is part of the idle terminal, or keeps the container alive.

    The names are the process's own claim. Claiming one falsely helps nobody: a pass that needs
    other processes is excused, one that needs the idle terminal is not.

    Args:
        pid: Its number.
        table: Number of the parent and command line, by number of the process.
    """
    parent, args = table[pid]
    if parent not in table or args in _KEEP_ALIVE or _of_terminal(args):
        return True
    above = table[parent][1]
    if args.startswith("sh -c ") and _of_terminal(above):
        return True  # What records the terminal, or starts the recorded shell.
    # Some shells become the last command they are given.
    if args in _COPIES and (above.startswith("sh -c cat > ") or _of_terminal(above)):
        return True
    program, *rest = args.split()
    plain = PurePosixPath(program).name.lstrip("-") in _SHELLS and all(
        word.startswith("-") and word != "-c" for word in rest
    )
    return plain and (_of_terminal(above) or above.startswith("sh -c /"))


def _of_terminal(args: str) -> bool:
    # The second or third word where an interpreter or a loader stands first.
    return any(PurePosixPath(word).name in _TERMINAL for word in args.split()[:3])
