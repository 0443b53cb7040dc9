"""Ctrl-C, SIGTERM and a terminal that is closed (SIGHUP) while a schedule runs."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator

_STOP_NOW = {signal.SIGINT: False, signal.SIGTERM: True, signal.SIGHUP: True}


@contextlib.contextmanager
def interruptible(on_interrupt: Callable[[bool], object]) -> Iterator[None]:
    """Handle signals of the running loop; elsewhere than in the main thread there are none.

    Args:
        on_interrupt: Called with whether to stop at once: not for Ctrl-C.
    """
    loop = asyncio.get_running_loop()
    handled = []
    for number, stop_now in _STOP_NOW.items():
        if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
            continue  # nohup: it is to outlive its terminal
        with contextlib.suppress(RuntimeError, ValueError):
            loop.add_signal_handler(number, on_interrupt, stop_now)
            handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
