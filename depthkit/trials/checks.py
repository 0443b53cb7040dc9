"""Check scripts of this project: fed to the container, answered over the exec stream.

Such a script never is a file in the container, nor are its results (Section 2, Appendix F). It
goes in over the standard input of one ``exec`` and is held in the memory of the bash that runs
it; it does not stand on a command line either. Results come back over the same exec's output.

A result is a line written by the functions ``pass NAME`` and ``fail NAME REASON`` (or by a
library through ``report``, which both use). These are defined before the script and put a random
word, new for every call, in front of each line; only such lines count. The word is neither
exported nor on a command line, so a program that a check runs, or one that the agent left
running and that finds a way to this stream (root may open ``/proc/PID/fd/1`` of another process),
cannot add a result. Everything else that the script and its programs print is kept as a log. The
last line, which says that the end was reached, is part of the script itself: one that exits
early, is killed or does not parse has no last line, and fails.

A root agent can still read another root process's memory, or have replaced bash itself; see
``docs/verdicts.md``.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from docker.models.containers import Container
from docker.utils.socket import STDOUT, frames_iter

from depthkit.trials.environment import ContainerDiedError, DockerEnvironment
from depthkit.trials.threads import in_thread
from depthkit.trials.traces import no_traces

CHECK_SECONDS = 600.0
"""A check script must finish within ten minutes (Appendix F)."""

LOG_BYTES = 64 << 10
"""How much of what a script prints is kept: its end."""

# The script is read whole before it runs, so that a command that reads its standard input does
# not read the script.
_READ_AND_RUN = "IFS= read -r -d '' script; exec </dev/null; eval \"$script\""

_BEFORE = """\
exec 9>&1 1>&2
report() {{ printf '\\n{word} %s\\n' "${{*//$'\\n'/ }}" >&9; }}
pass() {{ report "PASS $1"; }}
fail() {{ report "FAIL $1: ${{*:2}}"; }}
"""
_END = "\nreport END\n"


@dataclass(frozen=True)
class CheckResult:
    """One check: its name, whether it passed, and the reason where it did not."""

    name: str
    passed: bool
    reason: str | None = None


@dataclass(frozen=True)
class CheckOutcome:
    """What a check script said.

    Attributes:
        results: Checks in the order in which they reported.
        finished: Whether the script reached its last line within its time.
        log: The end of everything else that was printed; untrusted text.
    """

    results: tuple[CheckResult, ...]
    finished: bool
    log: str

    @property
    def passed(self) -> bool:
        """Whether the script finished and every check of it passed, of at least one (Eq. 1).

        Two checks of one name are a fault of the script: one may hide the other.
        """
        names = [result.name for result in self.results]
        passed = all(result.passed for result in self.results)
        return self.finished and passed and 0 < len(names) == len(set(names))


async def run_checks(
    environment: DockerEnvironment,
    script: str,
    *,
    user: str | int | None = None,
    seconds: float = CHECK_SECONDS,
) -> CheckOutcome:
    """Run a check script in a container and read its results.

    What the script leaves running is ended afterwards and its temporary files are removed.

    Args:
        environment: A running environment.
        script: Bash. It reports with ``pass``, ``fail`` or ``report``.
        user: The container's user to run it as; by default the environment's.
        seconds: Its time limit.

    Raises:
        ContainerDiedError: If the container dies.
        ValueError: If the script has a NUL character, which bash cannot hold.
    """
    if "\0" in script:
        raise ValueError("a check script must not have a NUL character")
    word = secrets.token_hex(16)
    payload = (_BEFORE.format(word=word) + script + _END).encode() + b"\0"
    stream = _Stream()
    as_user = _resolve(environment, user)
    # Root makes its own temporary folder: one command less.
    by_root = (as_user or environment.container.attrs["Config"]["User"] or "0") in ("0", "root")
    async with no_traces(environment, prepare=None if by_root else "") as marked:
        run = f"{marked.first} || exit\n{_READ_AND_RUN}" if by_root else _READ_AND_RUN

        def feed() -> None:
            _feed(environment.container, run, payload, marked.variables, as_user, stream)

        try:
            await asyncio.wait_for(in_thread(lambda: environment._api_call(feed)), seconds)
            in_time = True
        except TimeoutError:
            in_time = False
    outcome = stream.outcome(word, in_time=in_time)
    if not outcome.finished and not await environment.is_alive():
        raise ContainerDiedError(f"{environment.session_id}: the container died during checks")
    return outcome


def _resolve(environment: DockerEnvironment, user: str | int | None) -> str:
    wanted = environment.default_user if user is None else user
    # By number, since an image need not have a list of users.
    return "" if wanted is None else "0" if wanted == "root" else str(wanted)


class _Stream:
    """What came back: results whole, the rest by its end."""

    def __init__(self) -> None:
        self.results = bytearray()
        self._log: deque[bytes] = deque()
        self._size = 0

    def add(self, kind: int, data: bytes) -> None:
        if kind == STDOUT:
            self.results += data
            return
        self._log.append(data)
        self._size += len(data)
        while self._size - len(self._log[0]) >= LOG_BYTES:
            self._size -= len(self._log.popleft())

    def outcome(self, word: str, *, in_time: bool) -> CheckOutcome:
        results, finished, stray = [], False, []
        for line in self.results.decode("utf-8", errors="replace").split("\n"):
            mark, _, said = line.partition(" ")
            kind, _, rest = said.partition(" ")
            if mark != word:
                stray.append(line)
            elif said == "END":
                finished = in_time
            elif kind == "PASS":
                results.append(CheckResult(rest, passed=True))
            else:
                # Whatever a library reports that is no pass must not be lost.
                name, _, reason = rest.partition(": ")
                results.append(CheckResult(name, passed=False, reason=reason))
        log = b"".join(self._log)[-LOG_BYTES:].decode("utf-8", errors="replace")
        return CheckOutcome(tuple(results), finished, log + "\n".join(filter(None, stray)))


def _feed(
    container: Container,
    run: str,
    payload: bytes,
    variables: dict[str, str],
    user: str,
    stream: _Stream,
) -> None:
    """Run bash on the payload, until its output ends."""
    api = container.client.api  # type: ignore[union-attr]
    made = api.exec_create(
        container.id, ["bash", "-c", run], stdin=True, environment=variables, user=user
    )
    connection: Any = api.exec_start(made["Id"], socket=True)
    with closing(getattr(connection, "_response", connection)):
        getattr(connection, "_sock", connection).sendall(payload)
        for kind, data in frames_iter(connection, tty=False):  # type: ignore[no-untyped-call]
            stream.add(kind, data)
