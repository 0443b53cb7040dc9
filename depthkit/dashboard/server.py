"""Addresses for the pages and their data."""

from __future__ import annotations

import asyncio
import json
import mimetypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

from tornado import web

from depthkit.corpus.files import UnreadableError, is_plain_name, read_inside
from depthkit.dashboard import colours, pages
from depthkit.dashboard.building import Builder
from depthkit.dashboard.guard import DRAWN, PLAYED, POLICY, REPORT
from depthkit.dashboard.html import Context, Site
from depthkit.dashboard.labels import Kind, Target
from depthkit.dashboard.pages import PAGES
from depthkit.dashboard.playback import playback
from depthkit.dashboard.source import Source
from depthkit.dashboard.text import terminal, without_blank_end
from depthkit.dashboard.trial import Trial
from depthkit.errors import DepthkitError
from depthkit.reports import find_project

STATIC = Path(str(files("depthkit.dashboard"))) / "static"
_MAX_FORM = 64 * 1024
_POLICIES = {"overview": DRAWN, "run": PLAYED}


RESERVED = ("assets", "static", "panel", "components", "built")
"""What no corpus is called in addresses."""


class Sources:
    """The corpora of a server, by the key in their addresses."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.by_key: dict[str, Source] = {}
        for source in sources:
            source.open()
            name = source.name if is_plain_name(source.name) else "corpus"
            key, number = name, 1
            while key in self.by_key or key in RESERVED:
                number += 1
                key = f"{name}-{number}"
            self.by_key[key] = source

        self.builder = Builder()

    def site(self) -> Site:
        """Where the pages are."""
        return Site({key: source.name for key, source in self.by_key.items()})

    def context(self, key: str, wait: float = 0.0) -> Context | None:
        """What a page of a corpus is made from.

        Args:
            key: Of the corpus.
            wait: Seconds to wait for a corpus that has not been read yet.
        """
        source = self.by_key.get(key)
        if source is None:
            return None
        snapshot = source.snapshot()
        if not snapshot.digest and not snapshot.problems:
            snapshot = source.snapshot(wait=wait)
        return Context(self.site(), key, source, snapshot)


class Handler(web.RequestHandler):
    """What the handlers here share: the corpora, and work off the event loop."""

    sources: Sources
    executor: ThreadPoolExecutor

    def initialize(self, sources: Sources, executor: ThreadPoolExecutor) -> None:
        """Take what they share."""
        self.sources, self.executor = sources, executor

    def context(self, key: str, wait: float = 0.0) -> Context:
        """The corpus of this key, or an answer that there is none."""
        context = self.sources.context(key, wait)
        if context is None:
            raise web.HTTPError(404)
        return context

    def query(self) -> dict[str, list[str]]:
        """The query of the address."""
        return parse_qs(self.request.query, errors="replace")

    async def off_loop[T](self, work: Callable[[], T]) -> T:
        """Do something in a thread, so that others are answered meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self.executor, work)

    def write_error(self, status_code: int, **_: Any) -> None:
        """A sentence instead of a traceback."""
        said = {404: "There is no such page.", 400: "This cannot be understood."}
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(said.get(status_code, "Something went wrong; the server's output says what."))


class HomeHandler(Handler):
    """The first page: the first corpus."""

    def get(self, key: str = "") -> None:
        """Go to an overview."""
        keys = self.sources.by_key
        if key and key not in keys:
            raise web.HTTPError(404)
        self.redirect(f"/{key or next(iter(keys))}/overview")


class PageHandler(Handler):
    """A page."""

    async def get(self, key: str, page: str) -> None:
        """Make it from the corpus as it is now."""
        make: Callable[[Context, dict[str, list[str]]], str | None] | None = PAGES.get(page)
        if page == "reports":
            make = partial(pages.reports_page, job=self.sources.builder.job)
        if make is None:
            raise web.HTTPError(404)
        query = self.query()
        # A page that says "reading" comes within a second; most corpora are read by then.
        text = await self.off_loop(lambda: make(self.context(key, wait=0.6), query))
        if text is None:
            raise web.HTTPError(404)
        self.set_header("Content-Security-Policy", _POLICIES.get(page, POLICY))
        self.set_header("Cache-Control", "no-store")
        self.finish(text.encode("utf-8", "replace"))


class DataHandler(Handler):
    """Data of a page."""

    slow = ThreadPoolExecutor(max_workers=1, thread_name_prefix="slow")

    async def get(self, key: str, what: str) -> None:
        """Give it."""
        give: Mapping[str, Callable[[Context, dict[str, list[str]]], Any]] = {
            "state": self._state,
            "colours.css": self._colours,
            "recording": self._recording,
            "file": self._file,
            "output": self._output,
            "plots.json": self._plots,
            "claims": self._claims,
            "job": self._job,
        }
        context, query = self.context(key), self.query()
        self.set_header("Cache-Control", "no-store")
        if what in ("runs.csv", "tasks.csv"):
            await self._csv(context, what.removesuffix(".csv"), query)
            return
        if what not in give:
            raise web.HTTPError(404)
        # What takes long has a thread of its own, so that pages do not wait for it.
        executor = self.slow if what == "claims" else self.executor
        loop = asyncio.get_running_loop()
        data = await loop.run_in_executor(executor, lambda: give[what](context, query))
        if data is None:
            raise web.HTTPError(404)
        self.finish(data)

    def _state(self, context: Context, _: Any) -> bytes:
        snapshot = context.snapshot
        read = bool(snapshot.digest or snapshot.problems)
        self.set_header("Content-Type", "application/json")
        return json.dumps({"digest": snapshot.digest, "read": read}).encode()

    def _job(self, _: Context, __: Any) -> bytes | None:
        job = self.sources.builder.job
        self.set_header("Content-Type", "application/json")
        if job is None:
            return None
        said = {"lines": job.lines, "cells": job.cells, "status": job.status}
        return json.dumps(said).encode()

    def _colours(self, context: Context, _: Any) -> str:
        self.set_header("Content-Type", "text/css; charset=utf-8")
        return colours.sheet(context.snapshot.datasets)

    def _plots(self, context: Context, _: Any) -> bytes:
        from depthkit.dashboard.plots import plots_json

        self.set_header("Content-Type", "application/json")
        made = context.snapshot.once("plots", lambda: plots_json(context))
        return made.encode("utf-8", "replace")

    def _claims(self, context: Context, _: Any) -> bytes:
        self.set_header("Content-Type", "text/html; charset=utf-8")
        return pages.claims_part(context).encode("utf-8", "replace")

    def _output(self, context: Context, query: dict[str, list[str]]) -> bytes | None:
        text = pages.whole_output(context, query)
        if text is None:
            return None
        if query.get("raw"):
            self._attach("output.txt")
            return text.encode("utf-8", "replace")
        self.set_header("Content-Type", "text/html; charset=utf-8")
        shown = terminal(without_blank_end(text)[0])
        return f"<pre class=term>{shown}</pre>".encode("utf-8", "replace")

    def _trial(self, context: Context, query: dict[str, list[str]]) -> Trial | None:
        run_id = query.get("id", [""])[0]
        if context.source.corpus is None or context.snapshot.run(run_id) is None:
            return None
        return Trial(context.source.corpus, run_id)

    def _recording(self, context: Context, query: dict[str, list[str]]) -> bytes | None:
        trial = self._trial(context, query)
        if trial is None or not (play := playback(trial)).parts:
            return None
        self.set_header("Content-Type", "application/x-asciicast")
        return play.cast()

    def _file(self, context: Context, query: dict[str, list[str]]) -> bytes | None:
        trial = self._trial(context, query)
        name = query.get("name", [""])[0]
        if trial is None:
            return None
        try:
            data = trial.read(name)
        except (FileNotFoundError, UnreadableError):
            return None
        self._attach(name.split("/")[-1])
        return data

    def _attach(self, name: str) -> None:
        """Let the browser save it: never a type that it would run or draw."""
        self.set_header("Content-Type", "application/octet-stream")
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')

    async def _csv(self, context: Context, page: str, query: dict[str, list[str]]) -> None:
        self.set_header("Content-Type", "text/csv; charset=utf-8")
        self.set_header("Content-Disposition", f'attachment; filename="{context.key}-{page}.csv"')
        parts = pages.export_csv(context, page, query)
        while (part := await self.off_loop(lambda: next(parts, None))) is not None:
            self.write(part)
            await self.flush()

    async def post(self, key: str, what: str) -> None:
        """Change labels, or make a report."""
        if what == "report":
            await self._report(key)
            return
        if what != "labels" or len(self.request.body) > _MAX_FORM:
            raise web.HTTPError(404)
        source = self.context(key).source
        form = {name: self.get_body_argument(name, "") for name in ("dataset", "task", "run")}
        kind: Kind = "note" if self.get_body_argument("kind", "") == "note" else "label"
        target = Target(form["dataset"], form["task"], form["run"] or None)
        text = self.get_body_argument("text", "", strip=False)
        removes = self.get_body_argument("action", "") == "remove"

        def change() -> None:
            snapshot = source.snapshot()
            known = (
                snapshot.task(target.dataset, target.task_id)
                if target.run_id is None
                else snapshot.run(target.run_id)
            )
            if source.labels is None or known is None:
                raise DepthkitError("There is no such task or run.")
            if removes:
                source.labels.remove(target, kind, text)
            else:
                source.labels.add(target, kind, text)
            source.load()

        try:
            await self.off_loop(change)
        except DepthkitError as error:
            self.set_status(400)
            self.set_header("Content-Type", "text/plain; charset=utf-8")
            self.finish(f"{error}\n")
            return
        if target.run_id is None:
            page, back = "task", {"dataset": target.dataset, "task": target.task_id}
        else:
            page, back = "run", {"id": target.run_id}
        self.redirect(f"/{key}/{page}?{urlencode(back, errors='replace')}", status=303)

    async def _report(self, key: str) -> None:
        self.context(key)
        given = {name: self.get_body_argument(name) for name in self.request.body_arguments}
        name = given.pop("name", "")
        texts = {n.removeprefix("p_"): text for n, text in given.items() if n.startswith("p_")}
        query = ""
        try:
            await self.off_loop(lambda: self.sources.builder.start(name, texts))
        except DepthkitError as error:
            query = "?" + urlencode({"error": str(error)}, errors="replace")
        anchor = f"#report-{name}" if is_plain_name(name) else ""
        self.redirect(f"/{key}/reports{query}{anchor}", status=303)


class BuiltHandler(Handler):
    """Files of reports that were made."""

    async def get(self, name: str, file: str) -> None:
        """Give one of them, or the index of all."""
        try:
            folder = find_project() / "reports/build" / name
            data = await self.off_loop(lambda: read_inside(folder / file, folder))
        except (DepthkitError, FileNotFoundError, UnreadableError, IsADirectoryError):
            raise web.HTTPError(404) from None
        page = file.endswith(".html")
        kind = "text/html; charset=utf-8" if page else "application/octet-stream"
        self.set_header("Content-Type", kind)
        self.set_header("Content-Security-Policy", REPORT)
        self.finish(data)


class AssetHandler(web.RequestHandler):
    """Files that come with the package."""

    def get(self, name: str) -> None:
        """Give one of them."""
        parts = name.split("/")
        path = STATIC.joinpath(*parts)
        if not all(is_plain_name(part) for part in parts) or not path.is_file():
            raise web.HTTPError(404)
        kind = "text/javascript" if path.suffix == ".js" else mimetypes.guess_type(path.name)[0]
        text = "; charset=utf-8" if path.suffix in (".js", ".css") else ""
        self.set_header("Content-Type", f"{kind or 'application/octet-stream'}{text}")
        self.set_header("Cache-Control", "no-cache")
        data = path.read_bytes()
        if name == "app.css":
            data += colours.palette().encode()
        self.set_etag_header()
        self.finish(data)


def routes(sources: Sources, executor: ThreadPoolExecutor) -> Iterator[tuple[Any, ...]]:
    """Handlers by address."""
    shared = {"sources": sources, "executor": executor}
    kept = "|".join(RESERVED)
    name = r"([A-Za-z0-9][A-Za-z0-9._+@=-]*)"
    yield r"/assets/(.*)", AssetHandler
    yield rf"/built/{name}/{name}", BuiltHandler, shared
    yield r"/built/()(index\.html)", BuiltHandler, shared
    yield r"/?", HomeHandler, shared
    yield rf"/{name}/data/([a-z.]+)", DataHandler, shared
    # Bokeh's and Panel's own addresses come after these; a corpus has no such key.
    yield rf"/(?!(?:{kept})/){name}/([a-z]+)", PageHandler, shared
    yield rf"/(?!(?:{kept})/?$){name}/?", HomeHandler, shared
