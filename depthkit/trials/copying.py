"""Files into and out of containers, over the engine's archive API.

The engine's host reads and writes them, so nothing in the container can pretend. What comes out is
not trusted all the same.
"""

from __future__ import annotations

import tarfile
import tempfile
import time
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Any

from docker.models.containers import Container
from docker.utils import decode_json_header

from depthkit.trials import engine

_SPOOL_BYTES = 64 << 20
MOST_BYTES = 1 << 30
"""Of one file or folder that comes out of a container; what is beyond memory's share is on disk."""
MOST_READ = _SPOOL_BYTES
"""The same of a folder whose files are read whole, such as the verifier's with the reward."""
FOLDER, LINK = 1 << 31, 1 << 27
"""Bits of a mode as :func:`mode_of` gives it."""


class TooLargeError(RuntimeError):
    """What is to come out of a container is larger than its bound; the message says what."""


def mode_of(container: Container, path: PurePosixPath) -> int | None:
    """Kind and permissions of a path, as Go has them; ``None`` if nothing is there.

    A command in the container would take twenty times as long.

    Raises:
        APIError: If the container is gone.
    """
    api: Any = container.client.api  # type: ignore[union-attr]
    answer = api.head(api._url("/containers/{0}/archive", container.id), params={"path": str(path)})
    if answer.status_code == HTTPStatus.NOT_FOUND:
        container.reload()  # or it is the container that is not found
        return None
    api._raise_for_status(answer)
    return int(decode_json_header(answer.headers["X-Docker-Container-Path-Stat"])["mode"])


def put(container: Container, folder: str, members: list[tuple[Path, str]]) -> None:
    """Put files and folders of this machine into a folder, as root's.

    Args:
        container: A running container.
        folder: Made, with those above it, where it is not there.
        members: Paths here, and names in the folder.

    Raises:
        APIError: If the engine cannot.
    """
    wanted = PurePosixPath(folder)
    above = (wanted, *wanted.parents)
    there = next(
        each for each in above if each == above[-1] or mode_of(container, each) is not None
    )
    missing = wanted.relative_to(there)
    with tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as spool:
        with tarfile.open(fileobj=spool, mode="w") as archive:
            for made in reversed((missing, *missing.parents)):
                if made.parts:
                    archive.addfile(_folder(str(made)))
            for path, name in members:
                archive.add(path, str(missing / name), recursive=False, filter=_as_root)
        spool.seek(0)
        container.put_archive(str(there), spool)


def get(container: Container, path: str, most: int) -> tarfile.TarFile:
    """A file or folder of a container, packed; to be closed.

    Raises:
        NotFound: If it is not there, or the container is not.
        TooLargeError: If it has more than ``most`` bytes; no more are fetched.
    """
    chunks, _ = container.get_archive(path)
    spool = tempfile.SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115 - the archive owns it
    for chunk in chunks:
        spool.write(chunk)
        if spool.tell() > most:
            engine.response_of(chunks).close()  # or the engine holds the container for it
            spool.close()
            raise TooLargeError(
                f"{path} in the container has more than {most >> 20} MB, which is the most that is "
                "taken out of it; have less written there."
            )
    spool.seek(0)
    return tarfile.open(fileobj=spool)


def contents(member: tarfile.TarInfo, target: str) -> tarfile.TarInfo | None:
    """Filter for extraction: strip the folder's own name; keep plain files and folders only.

    Links and devices are left behind, and the standard data filter refuses names that would leave
    the target.
    """
    _, _, inside = member.name.partition("/")
    if not inside or not (member.isreg() or member.isdir()):
        return None
    return tarfile.data_filter(member.replace(name=inside), target)


def _folder(name: str) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.mode, made.mtime = tarfile.DIRTYPE, 0o755, int(time.time())
    return made


def _as_root(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if member.isdev():
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member
