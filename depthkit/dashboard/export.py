"""The dashboard as files that open from disk, for publication.

Pages are made by the same functions as those of the server and followed from link to link, so a
page is there if and only if another leads to it. Browsers fetch nothing from disk, so data are
script files.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qs

from depthkit.dashboard import colours
from depthkit.dashboard.html import Context, Site
from depthkit.dashboard.pages import PAGES
from depthkit.dashboard.playback import playback
from depthkit.dashboard.plots import plots_json
from depthkit.dashboard.server import STATIC, Sources
from depthkit.dashboard.source import Source
from depthkit.dashboard.trial import Trial
from depthkit.errors import DepthkitError

_EXPORTED = ("overview", "tasks", "task", "runs", "run", "file")


@dataclass(frozen=True)
class StaticSite(Site):
    """Addresses as files, relative to the directory of a corpus; notes what it was asked for."""

    static: bool = True
    wanted: deque[tuple[str, str, str]] = field(default_factory=deque)
    """Corpus, page and query of pages that were linked."""
    data_wanted: set[tuple[str, str, str]] = field(default_factory=set)

    def page(self, key: str, page: str, query: str = "") -> str:
        """File of a page."""
        if page not in _EXPORTED:
            return ""
        self.wanted.append((key, page, query))
        return f"../{key}/{page_file(page, query)}"

    def data(self, key: str, what: str, query: str = "") -> str:
        """File of data: a style sheet, or a script that holds them."""
        self.data_wanted.add((key, what, query))
        return f"../{key}/{_data_file(what, query)}"

    def asset(self, name: str) -> str:
        """File that comes with the package, or Bokeh itself."""
        return f"../assets/{name}"


def page_file(page: str, query: str) -> str:
    """Name of the file of a page: readable, and another for each query."""
    if not query:
        return f"{page}.html"
    given = parse_qs(query)
    said = (given.get("id") or given.get("task") or given.get("dataset") or [""])[0]
    slug = re.sub(r"[^A-Za-z0-9]+", "-", said)[:60].strip("-")
    return "-".join(filter(None, (page, slug, _short(query)))) + ".html"


def _data_file(what: str, query: str) -> str:
    stem, _, suffix = what.partition(".")
    return f"{stem}{f'-{_short(query)}' if query else ''}.{'css' if suffix == 'css' else 'js'}"


def _short(query: str) -> str:
    return sha256(query.encode("utf-8", "replace")).hexdigest()[:10]


def export(
    sources: Sequence[Source], target: Path, progress: Callable[[int], None] = lambda _: None
) -> int:
    """Write the dashboard of corpora into a directory.

    Args:
        sources: The corpora.
        target: A new or empty directory, or one that an earlier export made, which is replaced.
        progress: Called with how many pages are written.

    Returns:
        How many pages there are.

    Raises:
        DepthkitError: The directory holds something else, or a corpus cannot be read.
    """
    marker = target / "depthkit-dashboard.json"
    if target.exists() and any(target.iterdir()) and not marker.is_file():
        raise DepthkitError(
            f"{target}: holds something else; name a new or empty directory, or an earlier export."
        )
    shared = Sources(sources)
    for source in sources:
        snapshot = source.load()
        if not snapshot.digest:
            raise DepthkitError(" ".join(snapshot.problems))
    made = target.with_name(f".{target.name}.new")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    site = StaticSite(shared.site().names)
    contexts = {
        key: Context(site, key, source, source.snapshot()) for key, source in shared.by_key.items()
    }
    pages = _write_pages(site, contexts, made, progress)
    for key, what, query in sorted(site.data_wanted):
        text = _data(contexts[key], what, query)
        if text is not None:
            (made / key / _data_file(what, query)).write_text(text, "utf-8")
    _write_assets(made)
    first = f"{next(iter(contexts))}/overview.html"
    (made / "index.html").write_text(
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>depthkit</title>'
        f'<meta http-equiv="refresh" content="0; url={first}"><a href="{first}">Overview</a>\n'
    )
    (made / marker.name).write_text(json.dumps({"corpora": list(contexts), "pages": pages}) + "\n")
    if target.exists():
        shutil.rmtree(target)
    made.rename(target)
    return pages


def _write_pages(
    site: StaticSite,
    contexts: dict[str, Context],
    made: Path,
    progress: Callable[[int], None],
) -> int:
    known: set[tuple[str, str, str]] = set()
    for key in contexts:
        site.wanted.append((key, "overview", ""))
    while site.wanted:
        item = site.wanted.popleft()
        key, page, query = item
        if item in known or key not in contexts:
            continue
        known.add(item)
        text = PAGES[page](contexts[key], parse_qs(query, errors="replace"))
        if text is not None:
            path = made / key / page_file(page, query)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text.encode("utf-8", "replace"))
        progress(len(known))
    return len(known)


def _data(context: Context, what: str, query: str) -> str | None:
    if what == "colours.css":
        return colours.sheet(context.snapshot.datasets)
    if what == "plots.json":
        return f"window.depthkitPlots = {json.dumps(plots_json(context))};\n"
    if what == "recording":
        run_id = parse_qs(query)["id"][0]
        assert context.source.corpus is not None
        trial = Trial(context.source.corpus, run_id)
        cast = playback(trial).cast().decode()
        name, text = json.dumps(run_id), json.dumps(cast)
        return f"(window.depthkitRecordings ??= {{}})[{name}] = {text};\n"
    return None


def _write_assets(made: Path) -> None:
    import bokeh

    assets = made / "assets"
    shutil.copytree(STATIC, assets)
    with (assets / "app.css").open("a", encoding="utf-8") as out:
        out.write(colours.palette())
    library = Path(bokeh.__file__).parent / "server/static/js/bokeh.min.js"
    shutil.copyfile(library, assets / "bokeh.min.js")
