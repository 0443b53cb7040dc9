"""What checks leave behind in a container, and its removal.

A verifier or check script runs among the agent's processes. What it starts carries a mark in its
environment and writes temporary files into a folder of its own, so that both can be told from the
agent's and be gone before the agent goes on.
"""

from __future__ import annotations

import shlex
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult

from depthkit.trials.environment import ContainerDiedError, DockerEnvironment

MARK = "DEPTHKIT_EXEC"
"""Variable by which the processes of one command are found."""

_END_MARKED = """\
mark=DEPTHKIT_EXEC={mark}
for round in 1 2 3 4 5; do
    found=
    for process in /proc/[0-9]*; do
        while IFS= read -r -d '' variable; do
            [ "$variable" = "$mark" ] && found=1 && kill -9 "${{process#/proc/}}"
        done 2>/dev/null <"$process/environ"
    done
    [ -n "$found" ] || break
done
"""
"""Repeated, since a process may have started another one meanwhile."""


class UnfitContainerError(RuntimeError):
    """The container lives, but its files are in a state in which nothing can be verified."""


async def _guarded(environment: BaseEnvironment, command: str) -> ExecResult:
    if isinstance(environment, DockerEnvironment):
        return await environment.exec_guarded(command)
    return await environment.exec(command, user="root")


async def as_root(environment: BaseEnvironment, command: str) -> str:
    """Standard output of a command run as root, with the programs of the tool set.

    Raises:
        UnfitContainerError: If it fails.
    """
    result = await _guarded(environment, command)
    if result.return_code != 0:
        raise UnfitContainerError(
            f"{environment.session_id}: {command.strip().splitlines()[0]!r} ended with status "
            f"{result.return_code}: {result.stderr or result.stdout or ''}"
        )
    return result.stdout or ""


@dataclass(frozen=True)
class Marked:
    """How a command is run of which nothing is to stay.

    Attributes:
        variables: Environment variables to run it with.
        first: A shell command for root that makes its temporary folder; where
            :func:`no_traces` has not run it, the first thing to do.
        said: What the commands of ``prepare`` printed.
    """

    variables: dict[str, str]
    first: str
    said: str = ""


@asynccontextmanager
async def no_traces(
    environment: BaseEnvironment, *, prepare: str | None = "", emptied: Iterable[str] = ()
) -> AsyncIterator[Marked]:
    """Run a command of which nothing is to stay; afterwards nothing has.

    Processes that carry its variables are ended, the temporary folder is removed and the folders
    of ``emptied`` are emptied. A process that drops its environment, or is started by a daemon on
    the command's behalf, is not found.

    Args:
        environment: A running environment.
        prepare: Shell commands to run as root before; ``None`` leaves all of that to the caller.
        emptied: Folders in the container; those that do not exist are passed over.

    Raises:
        UnfitContainerError: If what is to be done before fails.
    """
    mark = uuid.uuid4().hex
    folder = f"/tmp/dk-{mark[:12]}"  # noqa: S108 - in the container
    # Others may write into it (a verifier may change its user) but not see what is in it.
    marked = Marked({MARK: mark, "TMPDIR": folder}, f"mkdir -p {folder} && chmod 1733 {folder}")
    if prepare is not None:
        said = await as_root(environment, f"{prepare}\n{marked.first}")
        marked = replace(marked, said=said)
    try:
        yield marked
    finally:
        contents = " ".join(shlex.quote(name) for name in emptied)
        wipe = (
            f"find {contents} -mindepth 1 -maxdepth 1 -exec rm -rf {{}} + 2>/dev/null"
            if contents
            else ":"
        )
        with suppress(ContainerDiedError):  # Whatever was left is gone with it.
            await _guarded(environment, f"{_END_MARKED.format(mark=mark)}rm -rf {folder}; {wipe}")


class Threshold:
    """The environment as Harbor's verifier sees it, which tells when the script is about to start.

    Of the commands that the verifier executes, the script alone runs as the default user. What
    root is to do before it is held back until then, since each command takes its time: it is handed
    over with the word that the script starts.
    """

    def __init__(
        self, environment: BaseEnvironment, at_start: Callable[[str], Awaitable[None]]
    ) -> None:
        self._environment = environment
        self._at_start = at_start
        self._held: list[str] | None = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)

    async def exec(self, command: str, *, user: str | int | None = None, **kwargs: Any) -> Any:
        """Execute a command, or hold it back."""
        if user == "root" and not kwargs and self._held is not None:
            self._held.append(command)
            return ExecResult(return_code=0)
        if user is None and self._held is not None:
            first, self._held = "\n".join(self._held), None
            await self._at_start(first)
        return await self._environment.exec(command, user=user, **kwargs)
