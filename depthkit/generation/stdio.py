"""An author that is a person or another program: messages on stdin, answers on stdout."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any, TextIO

from depthkit.generation.session import Session


async def drive(session: Session, source: TextIO, target: TextIO) -> None:
    """Answer messages until the task is over or the input ends."""
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
    """Lines of a stream, read in a daemon thread: it must not keep a process from ending."""

    def __init__(self, source: TextIO) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        threading.Thread(target=self._read, args=(source,), daemon=True).start()

    def _read(self, source: TextIO) -> None:
        try:
            for line in iter(source.readline, ""):
                self._loop.call_soon_threadsafe(self._queue.put_nowait, line)
            self._loop.call_soon_threadsafe(self._queue.put_nowait, None)
        except RuntimeError:
            return  # The loop is gone.

    async def next(self) -> str | None:
        """The next line; ``None`` at the end."""
        return await self._queue.get()
