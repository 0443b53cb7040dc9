"""Blocking calls beside an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any


async def in_thread[T](call: Callable[[], T]) -> T:
    """Run a blocking call in a daemon thread of its own.

    Not the loop's pool: it is small, and a verifier may hold its thread for minutes; and its
    threads would keep a process from ending whose engine hangs.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(setter: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            setter(value)

    def work() -> None:
        try:
            value = call()
        except BaseException as error:
            outcome: tuple[Callable[[Any], None], Any] = (future.set_exception, error)
        else:
            outcome = (future.set_result, value)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=work, daemon=True).start()
    return await future
