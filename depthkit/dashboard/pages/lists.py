"""The pages Tasks and Runs: filters beside a table, every row a link."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from depthkit.dashboard import html, listing
from depthkit.dashboard.following import measuring_now
from depthkit.dashboard.html import Context
from depthkit.dashboard.labels import Target
from depthkit.dashboard.listing import RUNS, TASKS, UNKNOWN, Listing, Query, View
from depthkit.dashboard.marked import Marks, marks_by_target
from depthkit.dashboard.pages.marks import chips, mark_filters
from depthkit.dashboard.source import ENDINGS
from depthkit.dashboard.text import exact, plain

_FACETS = {
    "tasks": ("dataset", "outcome", "state", "group", "category", "rating", "provenance"),
    "runs": ("dataset", "model", "ending", "purpose", "caps", "verdict", "stop", "provenance"),
}
_RANGES = {"tasks": ("D", "N", "W", "valid"), "runs": ("turns", "minutes", "cost")}
_SHOWN_CHOICES = 8
_STATIC_SIZE = 1000
_LISTINGS = {"tasks": TASKS, "runs": RUNS}


def list_page(context: Context, page: str, query: Query) -> str:
    """The page ``tasks`` or ``runs``."""
    view = View.parse(_LISTINGS[page], query)
    if context.site.static:
        view = replace(view, size=_STATIC_SIZE)
    found = listing.page(context.snapshot, view)
    view = found.view
    title = page.capitalize()
    live = page == "runs" and bool(query.get("live"))
    counts = listing.facets(context.snapshot, view, _FACETS[page])
    ends = ending_bar(counts["ending"]) if page == "runs" else ""
    if context.site.static:
        body = (
            f"{_heading(context, page, title, found, live)}{ends}"
            '<p class="sieve"><input id="q" type="search" data-sieve aria-label="Show rows with" '
            'placeholder="show rows with …" autocomplete="off"></p>'
            f"{_table(context, page, found)}{html.pager(context, page, view, found.pages)}"
        )
        return html.document(context, page, title, body)
    filters = _filters(context, page, view, counts, live)
    if live:
        ends = f"{measuring_now(context)}{ends}"
    body = (
        f'<div class="with-side"><aside class="side">{filters}</aside>'
        f'<div class="content" id="list" data-live="{int(live)}" '
        f'data-digest="{plain(context.snapshot.digest)}">'
        f"{_heading(context, page, title, found, live)}"
        f"{_chosen(context, page, view)}"
        f"{ends}"
        f"{_table(context, page, found)}"
        f"{html.pager(context, page, view, found.pages)}</div></div>"
    )
    return html.document(context, page, title, body)


def export_csv(context: Context, page: str, query: Query) -> Iterator[str]:
    """All rows of a view as CSV, with the columns that are shown; no text is a formula."""
    view = View.parse(_LISTINGS[page], query)
    columns = view.shown
    keys = ["run_id"] * (page == "runs") + [column.key for column in columns]
    keys += [] if "provenance" in keys else ["provenance"]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(keys)
    for rows in listing.every(context.snapshot, view):
        writer.writerows([_safe(row[key]) for key in keys] for row in rows)
        yield out.getvalue()
        out.seek(0)
        out.truncate()
    yield out.getvalue()


def _safe(value: Any) -> Any:
    """A value that no spreadsheet takes for a formula."""
    if isinstance(value, str):
        value = value.encode("utf-8", "replace").decode()
        return f"'{value}" if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
    return value


def _heading(context: Context, page: str, title: str, found: listing.Page, live: bool) -> str:
    view = found.view
    total = f"{found.matched:,} of {found.total:,}" if view.filtered else f"{found.total:,}"
    tools = ""
    if not context.site.static:
        href = context.data(f"{page}.csv") + plain(f"?{view.query(page=1)}")
        tools = f'<a class="tool" href="{href}" download>Export CSV</a>'
    if page == "runs" and not context.site.static:
        query = view.query() if live else "&".join(filter(None, (view.query(), "live=1")))
        word = "Stop following" if live else "Follow live"
        state = ' <span class="live" role="status">live</span>' if live else ""
        tools += f'<a class="tool" href="{context.page(page, query)}">{word}</a>{state}'
    heading = f"<h1>{title} <small>{total}</small></h1>"
    if view.task:
        dataset, task_id = view.task
        href = context.task(dataset, task_id)
        heading += f'<p class="of">of task <a href="{href}">{plain(task_id)}</a></p>'
    return f'<div class="heading">{heading}<p class="tools">{tools}</p></div>'


def _chosen(context: Context, page: str, view: View) -> str:
    """What is filtered, each with a link that takes it back."""
    parts: list[tuple[str, str]] = []
    if view.q:
        parts.append((f"“{view.q}”", view.query(q="", page=1)))
    for key, values in view.choices.items():
        parts += [(_choice_text(key, value), view.toggled(key, value)) for value in values]
    for key, (low, high) in view.ranges.items():
        column = view.listing.column(key)
        name = column.title if column else key
        text = f"{name} {'' if low is None else f'{low:g}'}…{'' if high is None else f'{high:g}'}"
        ranges = {k: v for k, v in view.ranges.items() if k != key}
        parts.append((text, view.query(ranges=ranges, page=1)))
    marked = view.marked
    if marked.label:
        left = replace(marked, label="")
        parts.append((f"label {marked.label}", view.query(marked=left, page=1)))
    if marked.note:
        left = replace(marked, note="")
        parts.append((marked.note_text, view.query(marked=left, page=1)))
    if view.task:
        parts.append((f"task {view.task[1]}", view.query(task=None, page=1)))
    if not parts:
        return ""
    items = "".join(
        f'<li><a href="{context.page(page, query)}" aria-label="Take back {plain(text)}">'
        f"{plain(text)} <span aria-hidden=true>&times;</span></a></li>"
        for text, query in parts
    )
    clear = f'<li><a class="clear" href="{context.page(page)}">Clear all</a></li>'
    return f'<ul class="chosen" aria-label="Filters">{items}{clear}</ul>'


def _choice_text(key: str, value: str) -> str:
    if key == "ending":
        return ENDINGS.get(value, value)
    if key == "caps":
        return "no cap" if value == "none" else f"cap {value}"
    return value


def _filters(
    context: Context,
    page: str,
    view: View,
    counts: dict[str, list[tuple[str, int]]],
    live: bool,
) -> str:
    hidden = _hidden(view, live)
    what = "task, data set, category" if page == "tasks" else "task, run, model"
    parts = [
        f'<form class="search" action="{context.page(page)}" role="search">'
        f'<label for="q">Search</label><input id="q" type="search" name="q" '
        f'value="{exact(view.q)}" placeholder="{what}" autocomplete="off">'
        f"{html.hidden(hidden, 'q')}<button>Search</button></form>"
    ]
    for key in _FACETS[page]:
        values = [pair for pair in counts[key] if pair[0] != UNKNOWN or key in view.choices]
        chosen = view.choices.get(key, ())
        if len(values) < 2 and not chosen:
            continue
        parts.append(_facet(context, page, view, key, values, chosen))
    parts.append(mark_filters(context, page, view, hidden))
    fields = "".join(_range(view, key) for key in _RANGES[page])
    parts.append(
        f'<form class="ranges" action="{context.page(page)}">{fields}'
        f"{html.hidden(hidden, *(f'{k}_{e}' for k in _RANGES[page] for e in ('min', 'max')))}"
        "<button>Apply</button></form>"
    )
    parts.append(_columns(context, page, view, hidden))
    open_ = "".join(parts)
    return f'<details class="filters" open><summary>Filters</summary>{open_}</details>'


def _facet(
    context: Context,
    page: str,
    view: View,
    key: str,
    values: list[tuple[str, int]],
    chosen: tuple[str, ...],
) -> str:
    column = listing.CAP if key == "caps" else view.listing.column(key)
    title = column.title if column else key
    known = dict(values)
    values = [*values, *((value, 0) for value in chosen if value not in known)]

    def item(value: str, n: int) -> str:
        text = plain(_choice_text(key, value))
        if key == "dataset":
            text = html.dataset(context, value)
        elif key == "ending":
            text = html.ending(value)
        href = context.page(page, view.toggled(key, value))
        mark = html.pressed(value in chosen)
        return f'<li><a href="{href}"{mark}>{text} <small>{n:,}</small></a></li>'

    first = [pair for n, pair in enumerate(values) if n < _SHOWN_CHOICES or pair[0] in chosen]
    rest = [pair for pair in values if pair not in first]
    items = "".join(item(*pair) for pair in first)
    more = "".join(item(*pair) for pair in rest)
    if more:
        items += f"<li><details><summary>{len(rest)} more</summary><ul>{more}</ul></details></li>"
    opened = " open" if chosen or key in ("dataset", "model", "ending", "outcome") else ""
    return f"<details{opened}><summary>{plain(title)}</summary><ul>{items}</ul></details>"


def _range(view: View, key: str) -> str:
    column = view.listing.column(key)
    assert column is not None
    low, high = view.ranges.get(key, (None, None))

    def field(end: str, value: float | None, word: str) -> str:
        shown = "" if value is None else f"{value:g}"
        return (
            f'<input name="{key}_{end}" value="{shown}" inputmode="decimal" size="5" '
            f'aria-label="{column.title}, {word}" placeholder="{word}">'
        )

    return (
        f"<fieldset><legend>{plain(column.title)}</legend>{field('min', low, 'from')}"
        f"<span>to</span>{field('max', high, 'to')}</fieldset>"
    )


def _columns(context: Context, page: str, view: View, hidden: list[tuple[str, str]]) -> str:
    shown = {column.key for column in view.shown}
    boxes = "".join(
        f'<label><input type="checkbox" name="columns" value="{column.key}"'
        f"{' checked' if column.key in shown else ''}> {plain(column.title)}</label>"
        for column in view.listing.columns
    )
    sizes = "".join(
        f"<option{' selected' if size == view.size else ''}>{size}</option>"
        for size in listing.PAGE_SIZES
    )
    return (
        f'<details><summary>Columns</summary><form class="columns" action="{context.page(page)}">'
        f'{boxes}<label>Rows a page <select name="size">{sizes}</select></label>'
        f"{html.hidden(hidden, 'columns', 'size')}<button>Apply</button></form></details>"
    )


def _hidden(view: View, live: bool) -> list[tuple[str, str]]:
    pairs = [pair for pair in view.pairs() if pair[0] != "page"]
    return [*pairs, ("live", "1")] if live else pairs


def _table(context: Context, page: str, found: listing.Page) -> str:
    view = found.view
    if not found.rows:
        return _empty(context, page, view)
    numeric = [n for n, c in enumerate(view.shown) if c.form not in ("text", "flag", "time")]
    heads = []
    for column in view.shown:
        mark = ""
        descending = column.form != "text"
        if view.sort == column.key:
            mark = ' <span aria-hidden="true">' + ("▼" if view.descending else "▲") + "</span>"
            descending = not view.descending
        query = view.query(sort=column.key, descending=descending, page=1)
        about = f' title="{plain(column.about)}"' if column.about else ""
        if context.site.static:
            heads.append(f"<span{about}>{plain(column.title)}</span>")
            continue
        heads.append(
            f'<a href="{context.page(page, query)}"{about}>{plain(column.title)}{mark}</a>'
        )
    marks = marks_by_target(context.snapshot)
    rows = [_row(context, page, view, row, marks) for row in found.rows]
    label = f"{page.capitalize()}, {found.first:,} to {found.first + len(rows) - 1:,}"
    return html.table(heads, rows, numeric=numeric, label=label)


def _row(
    context: Context, page: str, view: View, row: dict[str, Any], marks: Mapping[Target, Marks]
) -> list[str]:
    own = marks.get(Target(row["dataset"], row["task_id"], row.get("run_id")), Marks())
    if page == "runs":
        href = context.run(row["run_id"])
        about = f' title="{plain(row["run_id"])}"'
    else:
        href, about = context.task(row["dataset"], row["task_id"]), ""
    cells = []
    for number, column in enumerate(view.shown):
        value = html.cell(context, column, row[column.key])
        if column.key == "ending":
            value += html.doubt(row, ' <span class="flag">{}</span>')
        elif column.key == "passes":
            value = html.passes(row)
        # The first cell, whichever it is, leads on.
        if number == 0:
            value = f'<a class="row" href="{href}"{about}>{value}</a>{chips(context, page, own)}'
        cells.append(value)
    return cells


def _empty(context: Context, page: str, view: View) -> str:
    if view.filtered:
        clear = f'<a href="{context.page(page)}">Clear all filters</a>'
        return f'<p class="empty">No {page} match. {clear}.</p>'
    if not context.snapshot.digest and not context.snapshot.problems:
        return '<p class="empty" data-reading>Reading the corpus …</p>'
    if context.snapshot.problems:
        return f'<p class="empty">No {page} could be read.</p>'
    return (
        f'<p class="empty">This corpus has no {page} yet. Measure some with '
        "<code>depthkit ladder TASK_DIR… --with-free --corpus DIR</code>, or take in trials that "
        "others ran with <code>depthkit ingest SRC… --corpus DIR</code>.</p>"
    )


def ending_bar(counts: list[tuple[str, int]]) -> str:
    """How runs end, as one bar of the classes of Figure 14."""
    total = sum(n for _, n in counts)
    if not total:
        return ""
    at = 0.0
    bars = []
    for value, n in counts:
        width = 100 * n / total
        said = f"{ENDINGS.get(value, value)}: {n:,} ({n / total:.0%})"
        bars.append(
            f'<rect class="end-{plain(value.replace(" ", "-"))}" x="{at:.3f}" y="0" '
            f'width="{width:.3f}" height="10"><title>{plain(said)}</title></rect>'
        )
        at += width
    names = ", ".join(f"{ENDINGS.get(v, v)} {n / total:.0%}" for v, n in counts)
    legend = "".join(f"<li>{html.ending(value)} <b>{n / total:.0%}</b></li>" for value, n in counts)
    return (
        '<figure class="endings"><svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" '
        f'aria-label="How these runs end: {plain(names)}">{"".join(bars)}</svg>'
        f"<ul>{legend}</ul></figure>"
    )


def listing_of(page: str) -> Listing:
    """The list of a page."""
    return _LISTINGS[page]
