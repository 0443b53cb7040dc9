"""A container's files without its processes, for a second verdict that nothing can disturb.

A snapshot holds names, contents, owners, permissions and capabilities of files, and their times to
the second. What else a container may have is told by :func:`other_processes` and
:func:`not_in_a_snapshot`.
"""

from __future__ import annotations

import base64
import copy
import re
import shlex
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import PurePosixPath

from docker.errors import APIError
from docker.models.images import Image
from harbor.environments.base import BaseEnvironment

from depthkit.tasks.text import printable
from depthkit.trials import engine, tools
from depthkit.trials.environment import DockerEnvironment
from depthkit.trials.recorder import COPY
from depthkit.trials.threads import in_thread

_ADDED = 1
"""Kind of a change, as the engine tells it."""

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

    Host name, network, limits, variables, mounts and user are those of the environment. Folders
    that Harbor expects are not made: where the environment still has them, the snapshot does.
    """
    if not isinstance(environment, DockerEnvironment):
        raise TypeError("only depthkit's own environment has snapshots")
    other = copy.copy(environment)
    other._container = None
    other.hostname = environment.container.attrs["Config"]["Hostname"]
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


_DEVICES = (
    "console|core|fd|full|mqueue|null|ptmx|pts|random|shm|stderr|stdin|stdout|tty|urandom|zero"
)
"""What the engine puts into /dev."""

_NOT_HELD = f"""\
box={tools.FOLDER}/libexec/busybox getfattr={tools.FOLDER}/libexec/getfattr
[ -x $box ] || box= getfattr=getfattr
say() {{ while read -r name; do printf '%s\\n' "$1 $name"; done; }}
for kind in msg sem shm; do
    [ "$($box wc -l </proc/sysvipc/$kind)" -le 1 ] || echo "System V IPC ($kind)"
done
$box find /dev -xdev -mindepth 1 | $box grep -vE '^/dev/({_DEVICES})$' | say file
$box find /dev/shm /dev/mqueue -mindepth 1 | say file
$box find / -xdev -type s ! -path '/tmp/tmux-*' | say socket
$box find / -xdev \\( -type f -o -type d \\) -exec $getfattr -h --absolute-names \
    -m '^(user|system.posix_acl_.*)' {{}} + | $box sed -n 's/^# file: //p' | say 'attributes of'
$box find / -xdev -type f -size +128 -exec $box stat -c '%b %s %n' {{}} + |
    while read -r blocks size name; do
        [ $((blocks * 1024)) -ge $size ] || echo "sparse file $name"
    done
[ -z "$address" ] || $box find / -xdev -type f -size -2048 -exec $box grep -lwF "$address" {{}} + |
    say 'its own address in'
"""


_ASKED = re.compile(r"\btmux\b|\s-[no]t\s|-newer|\b(?:st_|get)?mtime")
"""What tests ask for that no look at the files tells: of tmux, or times finer than seconds."""


async def not_in_a_snapshot(environment: DockerEnvironment, tests: Iterable[str] = ()) -> list[str]:
    """What a container has beside its processes that no snapshot holds, or not as it is.

    Files in memory, sockets, IPC, extended attributes (access lists are some), holes, and what
    refers to an address that no other container has. It takes a look at every file.

    Args:
        environment: A running environment.
        tests: Texts of the verifier, which may depend on what cannot be seen.
    """
    address = _address(environment)
    asked = sorted({word.strip() for text in tests for word in _ASKED.findall(text)})
    said = await environment.exec_guarded(f"exec 2>/dev/null; address={address}\n{_NOT_HELD}")
    found = [printable(line) for line in (said.stdout or "").splitlines()]
    return found + [f"tests that ask for {word}" for word in asked]


async def removal_of_added(environment: BaseEnvironment, folder: str) -> str:
    """A command that removes a folder, or what was added to it where the image has one."""
    if not isinstance(environment, DockerEnvironment):
        return ""
    changes = await in_thread(environment.container.diff)
    added = {str(change["Path"]) for change in changes or [] if change["Kind"] == _ADDED}
    inside = f"{folder}/"
    found = [
        shlex.quote(path)
        for path in sorted(added)
        if path == folder or (path.startswith(inside) and path.rpartition("/")[0] not in added)
    ]
    return f"rm -rf {' '.join(found)}" if found else ""


_ENGINE_FILES = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")
"""What the engine makes for each container, beside its image."""

SHOW_ENGINE_FILES = "\n".join(f"base64 -w0 {name} || :; echo" for name in _ENGINE_FILES)
"""A command whose output :func:`engine_files` takes."""


def engine_files(shown: str, live: DockerEnvironment, twin: DockerEnvironment) -> str:
    """A command that gives the twin the live container's files, with its own address in them."""
    here, there = _address(live).encode(), _address(twin).encode()
    lines = []
    for name, encoded in zip(_ENGINE_FILES, shown.split("\n"), strict=False):
        content = base64.b64decode(encoded)
        if here and there:
            content = content.replace(here, there)
        if content:
            lines.append(f"echo {base64.b64encode(content).decode()} | base64 -d > {name}")
    return "\n".join(lines)


def _address(environment: DockerEnvironment) -> str:
    """The container's address in its network; empty without one."""
    networks = environment.container.attrs["NetworkSettings"]["Networks"]
    return next((each["IPAddress"] for each in networks.values() if each["IPAddress"]), "")


async def other_processes(environment: DockerEnvironment) -> list[str]:
    """Command lines of the processes beside the idle terminal and what keeps a container alive.

    Of several idle terminals one is the harness's; the others are named.

    The engine's host lists them, so nothing in the container can hide one.

    Raises:
        APIError: If the engine cannot list them.
    """
    container = environment.container
    listed = await in_thread(lambda: container.top(ps_args="-eo pid,ppid,args"))
    table = {pid: (above, args) for pid, above, args in listed["Processes"]}
    others = [args for pid, (_, args) in table.items() if not is_idle(pid, table)]
    terminals = [
        f"another terminal ({args})"
        for above, args in table.values()
        if _is_shell(args) and above in table and _of_terminal(table[above][1])
    ]
    return [*others, *terminals[1:]]


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
    return _is_shell(args) and (_of_terminal(above) or above.startswith("sh -c /"))


def _is_shell(args: str) -> bool:
    program, *rest = args.split()
    return PurePosixPath(program).name.lstrip("-") in _SHELLS and all(
        word.startswith("-") and word != "-c" for word in rest
    )


def _of_terminal(args: str) -> bool:
    # The second or third word where an interpreter or a loader stands first.
    return any(PurePosixPath(word).name in _TERMINAL for word in args.split()[:3])
