"""The author's hands in the work container: commands, and a terminal with a screen."""

from __future__ import annotations

import asyncio
import re
import shlex
import time
from dataclasses import dataclass

from depthkit.errors import DepthkitError
from depthkit.tasks.text import printable
from depthkit.trials.environment import ContainerDiedError, DockerEnvironment

OUTPUT_CHARS = 16_000
"""How much of a command's output an author is told: its two ends."""

MOST_SECONDS = 1800

_MOST_BYTES = 4 << 20
_SESSION = "author"
_COLUMNS, _ROWS = 160, 40
_KEY = re.compile(r"[A-Za-z0-9-]{1,20}")
_LONGEST_WAIT = 60.0


@dataclass(frozen=True)
class Ran:
    """A command that was run: exit status (``None``: ended after its time) and what it printed."""

    status: int | None
    output: str
    seconds: float


class Terminal:
    """What an author does in a container."""

    def __init__(self, environment: DockerEnvironment) -> None:
        self._environment = environment
        self._started = False

    async def run(self, command: str, seconds: float) -> Ran:
        """Run bash, without a terminal and without input.

        Raises:
            ContainerDiedError: If the container dies.
        """
        file = "/tmp/.author-output"  # noqa: S108 - in the container
        began = time.monotonic()
        # Into a file, so that a daemon that keeps its output open holds nobody up.
        wrapped = f"exec >{file} 2>&1 </dev/null\n{command}"
        try:
            done = await self._environment.exec(
                f"rm -f {file}; bash -c {shlex.quote(wrapped)}", timeout_sec=max(1, int(seconds))
            )
            status: int | None = done.return_code
        except RuntimeError as error:
            if isinstance(error, ContainerDiedError) or "timed out" not in str(error):
                raise
            status = None
        told = await self._environment.exec(
            f"head -c {_MOST_BYTES} {file}; rm -f {file}", user="root"
        )
        return Ran(status, _ends(told.stdout or ""), round(time.monotonic() - began, 2))

    async def keys(self, text: str | None, key: str | None, wait: float) -> str:
        """Type text, or one key by tmux' name, wait a little, and read the screen.

        Raises:
            DepthkitError: There is no such key, or no tmux.
        """
        await self._start()
        if key is not None:
            if not _KEY.fullmatch(key):
                raise DepthkitError('key must be a key as tmux names it, such as "C-c" or "Enter".')
            await self._tmux(f"send-keys -t {_SESSION} {key}")
        elif text is not None:
            for number, line in enumerate(text.split("\n")):
                if number:
                    await self._tmux(f"send-keys -t {_SESSION} Enter")
                for at in range(0, len(line), 4000):
                    part = shlex.quote(line[at : at + 4000])
                    # A semicolon at the end would be tmux' own.
                    part = part[:-2] + "\\;'" if part.endswith(";'") else part
                    await self._tmux(f"send-keys -t {_SESSION} -l -- {part}")
        await asyncio.sleep(min(max(wait, 0.0), _LONGEST_WAIT))
        return await self.screen()

    async def screen(self) -> str:
        """What the terminal shows."""
        await self._start()
        shown = await self._tmux(f"capture-pane -p -t {_SESSION}")
        return "\n".join(printable(line) for line in shown.rstrip().split("\n"))

    async def _start(self) -> None:
        if not self._started:
            await self._tmux(f"new-session -d -s {_SESSION} -x {_COLUMNS} -y {_ROWS} bash")
            self._started = True

    async def _tmux(self, command: str) -> str:
        done = await self._environment.exec(f"tmux {command}")
        if done.return_code != 0:
            raise DepthkitError(f"the terminal does not answer: {(done.stderr or '').strip()}")
        return done.stdout or ""


def _ends(text: str) -> str:
    text = "\n".join(printable(line.expandtabs()) for line in text.split("\n"))
    if len(text) <= OUTPUT_CHARS:
        return text
    half = OUTPUT_CHARS // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"
