"""An author that is a person or another program: messages on stdin, answers on stdout."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from typing import Any, TextIO

from depthkit.generation.session import Session

_CHUNK = 1 << 16


async def drive(session: Session, source: int, target: TextIO) -> None:
    """Answer messages until the task is over or the input ends.

    Args:
        session: What answers.
        source: File descriptor of the messages.
        target: Where answers go.
    """
    lines = _Lines(source)

    def say(answer: dict[str, Any]) -> None:
        target.write(json.dumps(answer, ensure_ascii=False) + "\n")
        target.flush()

    say(session.hello())
    while session.over is None:
        line = await lines.next()
        if line is None:
            return
        if not line.strip():
            continue
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            say({"ok": False, "error": f"the line is no JSON: {error}"})
            continue
        say(await session.answer(message))


class _Lines:
    """Lines of a descriptor, read in a daemon thread: it must not keep a process from ending.

    Not of ``sys.stdin``, whose lock the thread would hold while the interpreter ends.
    """

    def __init__(self, source: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        threading.Thread(target=self._read, args=(source,), daemon=True).start()

    def _read(self, source: int) -> None:
        rest = b""
        try:
            while chunk := os.read(source, _CHUNK):
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    self._loop.call_soon_threadsafe(self._queue.put_nowait, line)
            for end in (rest, None):
                self._loop.call_soon_threadsafe(self._queue.put_nowait, end)
        except (OSError, RuntimeError):
            return  # The descriptor or the loop is gone.

    async def next(self) -> str | None:
        """The next line; ``None`` at the end."""
        line = await self._queue.get()
        return None if line is None else line.decode(errors="replace")
