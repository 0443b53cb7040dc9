"""Start the dashboard: Panel's server with the pages in it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from depthkit.corpus import Corpus
from depthkit.dashboard.guard import Access, Guard, PolicyHeaders, new_token
from depthkit.dashboard.server import Sources, routes
from depthkit.dashboard.source import Source
from depthkit.errors import DepthkitError

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Running:
    """A server that answers.

    Attributes:
        server: Panel's (a ``bokeh.server.server.Server``).
        url: Where to go, with the token where one is needed.
    """

    server: Any
    url: str

    def stop(self) -> None:
        """Stop answering."""
        self.server.stop()


def start(
    sources: Sequence[Source],
    *,
    port: int = 5007,
    host: str = "127.0.0.1",
    token: str | None = None,
) -> Running:
    """Serve corpora on the current event loop; does not block.

    Args:
        sources: The corpora.
        port: 0 for any that is free.
        host: Address to listen on. Any but loopback's needs a token; one is made if none is given.
        token: What a browser must show.

    Raises:
        DepthkitError: The port is taken.
    """
    # Late: it takes seconds.
    pn: Any = import_module("panel")  # late: it takes seconds
    from tornado.ioloop import IOLoop

    outside = host not in LOOPBACK
    if outside and token is None:
        token = new_token()
    shared = Sources(sources)
    for source in sources:
        source.snapshot()
    executor = ThreadPoolExecutor(max_workers=4, thread_name_prefix="page")
    logging.getLogger("bokeh.server.util").setLevel(logging.ERROR)
    try:
        server = pn.io.server.get_server(
            {"panel": lambda: _views(sources)},
            port=port,
            address=host,
            websocket_origin=["*"],  # the guard has checked where it comes from
            loop=IOLoop.current(),
            show=False,
            start=False,
            extra_patterns=list(routes(shared, executor)),
        )
    except OSError as error:
        raise DepthkitError(
            f"Port {port} of {host} is not to be had ({error.strerror}); name another with --port."
        ) from error
    answers = server.port or port
    names = None if outside else frozenset(f"{_bracketed(name)}:{answers}" for name in LOOPBACK)
    application = server._tornado
    application.add_transform(PolicyHeaders)
    server._http.request_callback = Guard(application, Access(names, token))
    server.start()
    logging.getLogger("tornado.access").setLevel(logging.ERROR)
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104 - only compared
    url = f"http://{_bracketed(shown)}:{answers}/{f'?token={token}' if token else ''}"
    return Running(server, url)


def _views(sources: Sequence[Source]) -> Any:
    """All corpora as a Panel application, a tab each."""
    pn: Any = import_module("panel")  # late: it takes seconds

    from depthkit.dashboard.view import corpus_view

    return pn.Tabs(*((source.name, corpus_view(source)) for source in sources), dynamic=True)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def serve(
    corpora: Sequence[str],
    *,
    port: int,
    host: str,
    token: str | None,
    tasks: Sequence[Path],
    say: Callable[[str], object],
) -> None:
    """Serve until interrupted; for the command line.

    Raises:
        DepthkitError: None of the corpora is there, or the port is taken.
    """
    sources = _opened(corpora, tasks)

    async def run() -> None:
        running = start(sources, port=port, host=host, token=token)
        say(f"The dashboard is at {running.url}")
        say("Stop it with Ctrl-C.")
        await asyncio.Event().wait()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run())


def export_site(corpora: Sequence[str], target: Path, *, tasks: Sequence[Path]) -> int:
    """Write the dashboard as files; for the command line.

    Returns:
        How many pages there are.

    Raises:
        DepthkitError: As :func:`depthkit.dashboard.export.export`.
    """
    from rich.console import Console

    from depthkit.dashboard.export import export

    with Console(stderr=True).status("Writing pages") as status:
        return export(
            _opened(corpora, tasks), target, lambda done: status.update(f"{done:,} pages")
        )


def _opened(corpora: Sequence[str], tasks: Sequence[Path]) -> list[Source]:
    for name in corpora:
        if not Path(name).is_dir():
            Corpus.open(name)  # raises: neither a directory nor bundled
    return [Source(name, tuple(tasks)) for name in dict.fromkeys(corpora)]
