"""The frame of all pages and the small parts they are made of. Every value is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from depthkit.artifacts.page import MEANINGS, stamp
from depthkit.artifacts.tables import MISSING
from depthkit.dashboard.listing import Column, View
from depthkit.dashboard.source import ENDINGS, Snapshot, Source
from depthkit.dashboard.text import exact, plain
from depthkit.protocol import depth_text
from depthkit.protocol.verdict import Passes

PAGES = {
    "overview": "Overview",
    "tasks": "Tasks",
    "runs": "Runs",
    "search": "Search",
    "compare": "Compare",
    "reports": "Reports",
}
"""The pages that the navigation names."""


@dataclass(frozen=True)
class Site:
    """Where pages and files are.

    A static export has another; see :mod:`depthkit.dashboard.export`.

    Attributes:
        names: Corpora by their key in addresses.
        static: Whether nothing answers: no search, no label, no live list.
    """

    names: Mapping[str, str]
    static: bool = False

    def page(self, key: str, page: str, query: str = "") -> str:
        """Address of a page of a corpus."""
        return f"/{key}/{page}{'?' if query else ''}{query}"

    def data(self, key: str, what: str, query: str = "") -> str:
        """Address of data of a corpus."""
        return f"/{key}/data/{what}{'?' if query else ''}{query}"

    def asset(self, name: str) -> str:
        """Address of a file that comes with the package, or of Bokeh itself."""
        return "/static/js/bokeh.min.js" if name == "bokeh.min.js" else f"/assets/{name}"


@dataclass(frozen=True)
class Context:
    """What a page is made from: the corpus as it is now, and where everything is."""

    site: Site
    key: str
    source: Source
    snapshot: Snapshot

    def page(self, page: str, query: str = "", **pairs: Any) -> str:
        """Address of a page, escaped for an attribute."""
        return plain(self.site.page(self.key, page, query or _encode(pairs)))

    def data(self, what: str, **pairs: Any) -> str:
        """Address of data, escaped for an attribute."""
        return plain(self.site.data(self.key, what, _encode(pairs)))

    def task(self, dataset: str, task_id: str) -> str:
        """Address of a task's page."""
        return self.page("task", dataset=dataset, task=task_id)

    def run(self, run_id: str, **more: Any) -> str:
        """Address of a run's page."""
        return self.page("run", id=run_id, **more)


def _encode(pairs: Mapping[str, Any]) -> str:
    return urlencode({k: v for k, v in pairs.items() if v is not None}, errors="replace")


def document(
    context: Context,
    page: str,
    title: str,
    body: str,
    *,
    scripts: Sequence[str] = (),
    sheets: Sequence[str] = (),
    data: Sequence[str] = (),
) -> str:
    """A whole page.

    Args:
        context: Its corpus.
        page: Which of the pages it is, or belongs to.
        title: Plain text.
        body: HTML.
        scripts: Further assets that are scripts, in order.
        sheets: Further assets that are style sheets.
        data: Addresses, escaped, of scripts that hold data; in a static export only.
    """
    site, said = context.site, stamp(context.snapshot.provenance)
    nav = "".join(
        f'<a href="{context.page(name)}"{_current(name == page)}>{label}</a>'
        for name, label in PAGES.items()
        if not (site.static and name in ("search", "compare", "reports"))
    )
    if len(site.names) > 1:
        nav += (
            '<span class="corpora">'
            + "".join(
                f'<a href="{plain(site.page(key, "overview"))}"{_current(key == context.key)}>'
                f"{plain(name)}</a>"
                for key, name in site.names.items()
            )
            + "</span>"
        )
    links = "".join(
        f'<link rel="stylesheet" href="{plain(site.asset(name))}">' for name in ("app.css", *sheets)
    )
    held = "".join(f'<script src="{address}" defer></script>' for address in data)
    loads = held + "".join(
        f'<script src="{plain(site.asset(name))}" defer></script>' for name in ("app.js", *scripts)
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="same-origin">'
        '<meta name="color-scheme" content="light dark">'
        f"{_POLICY if site.static else ''}"
        f"<title>{plain(title)} · depthkit{f' ({plain(said)})' if said else ''}</title>"
        f'<link rel="icon" href="{plain(site.asset("icon.svg"))}" type="image/svg+xml">{links}'
        f'<link rel="stylesheet" href="{context.data("colours.css")}">{loads}</head>'
        f'<body data-page="{plain(page)}" data-home="{context.page("")}">'
        '<a class="skip" href="#main">Skip to the content</a>'
        f'<header class="top"><a class="brand" href="{context.page("overview")}">depthkit</a>'
        f'<nav aria-label="Pages">{nav}</nav>{provenance(context)}'
        '<button type="button" class="help-button" aria-label="Keyboard help" title="Keyboard '
        'help (?)">?</button></header>'
        f'<main id="main" tabindex="-1">{problems(context.snapshot.problems)}{body}</main>'
        f"{_HELP}</body></html>\n"
    )


# What a page from disk may do; "self" is no origin there, and a meta element cannot say more.
_POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "script-src file: 'self' 'wasm-unsafe-eval'; style-src file: 'self' 'unsafe-inline'; "
    "img-src file: 'self' data:; font-src data:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'\">"
)

_KEYS = (
    ("j, k", "next, previous turn or row"),
    ("Enter", "open the row"),
    ("n, p", "next, previous match; without a search, next or previous page or run"),
    ("/", "search"),
    ("Space", "play or pause the recording"),
    ("g, then o t r", "overview, tasks, runs"),
    ("g, then s c p", "search, compare, reports"),
    ("?", "this list"),
    ("Esc", "close it, or leave a field"),
)
_HELP = (
    '<dialog id="help" aria-labelledby="help-title"><h2 id="help-title">Keyboard</h2><dl>'
    + "".join(f"<dt><kbd>{keys}</kbd></dt><dd>{what}</dd>" for keys, what in _KEYS)
    + "</dl><h2>Where rows come from</h2><dl>"
    + "".join(f"<dt>{word}</dt><dd>{plain(what)}</dd>" for word, what in MEANINGS.items())
    + '</dl><form method="dialog"><button>Close</button></form></dialog>'
)


def _current(holds: bool) -> str:
    return ' aria-current="page"' if holds else ""


def provenance(context: Context) -> str:
    """What everything on the page rests on."""
    snapshot = context.snapshot
    if not snapshot.digest:
        return '<p class="provenance" role="status">reading the corpus …</p>'
    return (
        f'<p class="provenance"><b>{plain(context.source.name)}</b> '
        f"{plain(snapshot.provenance)} <b>{plain(stamp(snapshot.provenance))}</b></p>"
    )


def problems(sentences: Iterable[str], kind: str = "problem") -> str:
    """Sentences on what is wrong, or nothing."""
    items = "".join(f"<li>{plain(sentence)}</li>" for sentence in sentences)
    return f'<ul class="{kind}">{items}</ul>' if items else ""


def dataset(context: Context, name: str) -> str:
    """A data set with its colour."""
    names = context.snapshot.datasets
    number = names.index(name) if name in names else -1
    return f'<span class="ds ds-{number}">{plain(name)}</span>'


def ending(value: str) -> str:
    """How a run ended, with its colour."""
    name = plain(value.replace(" ", "-"))
    return f'<span class="end end-{name}">{plain(ENDINGS.get(value, value))}</span>'


def passes(row: Mapping[str, Any], of: str = "") -> str:
    """Passes of some runs, with those apart that rest on less (:class:`Passes`)."""
    found = Passes(row["passes"], row["unconfirmed"], row["suspect"])
    return f"{found.counted:,}{of}{found.apart}"


def doubt(run: Mapping[str, Any], form: str) -> str:
    """Why a run rests on less than others, in a form such as ``" ({})"``; empty if it does not."""
    unconfirmed = "unconfirmed" if run["standing"] == "unconfirmed" else ""
    word = "suspect" if run["suspect"] else unconfirmed
    return form.format(word) if word else ""


def cell(context: Context, column: Column, value: Any) -> str:
    """A value as its column writes it."""
    if value is None or value == "":
        return f'<span class="none">{MISSING}</span>'
    if column.key == "dataset":
        return dataset(context, str(value))
    if column.key == "ending":
        return ending(str(value))
    if column.key == "D":
        return plain(depth_text(value, context.snapshot.caps))
    return plain(written(value, column.form))


def written(value: Any, form: str) -> str:
    """A value as text."""
    if value is None or value != value:
        return MISSING
    if form == "time" and isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M")
    if form == "cost":
        return f"${value:.4f}" if value < 0.1 else f"${value:,.2f}"
    if form == "share":
        return f"{value:.0%}"
    if form == "tokens":
        return f"{value:,}" if value < 10_000 else f"{value / 1000:,.0f}k"
    if form == "flag":
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.1f}" if value % 1 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def seconds(value: float | None) -> str:
    """Seconds as people say them."""
    if value is None:
        return MISSING
    if value >= 90:
        return f"{value // 60:.0f}:{value % 60:02.0f} min"
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def size(number: float) -> str:
    """Bytes as people say them."""
    if number < 1000:
        return f"{number:,.0f} bytes"
    number, unit = (number / 1000, "kB") if number < 1e6 else (number / 1e6, "MB")
    return f"{number:.1f} {unit}" if number < 10 else f"{number:,.0f} {unit}"


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, numeric: Iterable[int] = (), label: str
) -> str:
    """A table of cells that are HTML already, in a box that scrolls where the page is narrow."""
    right = set(numeric)
    classes = [' class="n"' if number in right else "" for number in range(len(heads))]
    head = "".join(f"<th{c} scope=col>{h}</th>" for h, c in zip(heads, classes, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{c}>{v}</td>" for v, c in zip(row, classes, strict=True)) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{plain(label)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def pager(context: Context, page: str, view: View, pages: int) -> str:
    """Links to other pages of a list."""
    if pages < 2:
        return ""
    here = view.page
    near = sorted({1, here - 1, here, here + 1, pages} & set(range(1, pages + 1)))
    parts: list[str] = []
    before = 0
    for number in near:
        if number > before + 1:
            parts.append("<span>…</span>")
        current = number == here
        parts.append(
            f'<a href="{context.page(page, view.query(page=number))}"{_current(current)}>'
            f"{number:,}</a>"
        )
        before = number
    rel = {"prev": here - 1, "next": here + 1}
    ends = {
        name: f'<a rel="{name}" href="{context.page(page, view.query(page=number))}">{word}</a>'
        if 1 <= number <= pages
        else ""
        for (name, number), word in zip(rel.items(), ("Previous", "Next"), strict=True)
    }
    inner = f"{ends['prev']}{''.join(parts)}{ends['next']}"
    return f'<nav class="pager" aria-label="Pages of the list">{inner}</nav>'


def hidden(pairs: Iterable[tuple[str, str]], *left_out: str) -> str:
    """What a form takes along of an address, but for the fields that it has itself."""
    return "".join(
        f'<input type="hidden" name="{plain(name)}" value="{exact(value)}">'
        for name, value in pairs
        if name not in left_out
    )


def pressed(holds: bool) -> str:
    """An attribute of a filter's link: whether it is chosen."""
    return ' aria-current="true"' if holds else ""
