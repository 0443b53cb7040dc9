"""Lists of runs and tasks of any size: filtered, searched, sorted and paged in the database.

The state of a list is what its address says: :class:`View` reads it from a query string and writes
it back, so that an address restores a page as it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlencode

from depthkit.dashboard.marked import Marked
from depthkit.dashboard.source import ENDINGS, Snapshot

Query = Mapping[str, Sequence[str]]
"""Query of an address: the values of each name, in order."""

PAGE_SIZES = (25, 50, 100, 200)
MOST_CHOICES = 400
_MOST_TEXT = 200

Format = Literal["text", "number", "share", "cost", "time", "tokens", "flag"]


@dataclass(frozen=True)
class Column:
    """A column of a list.

    Attributes:
        key: Its name in addresses.
        title: Its heading.
        sql: What it is in the database.
        form: How a value is written.
        filter: ``choice``: by values; ``range``: between two numbers; ``None``: not.
        shown: Whether it is shown unless asked.
        about: A sentence for those who point at the heading.
    """

    key: str
    title: str
    sql: str
    form: Format = "text"
    filter: Literal["choice", "range"] | None = None
    shown: bool = True
    about: str = ""


@dataclass(frozen=True)
class Listing:
    """A table of the snapshot as a list.

    Attributes:
        table: Its name there.
        columns: In order.
        identity: Columns that a row is found again by, always read.
    """

    table: str
    columns: tuple[Column, ...]
    identity: tuple[str, ...]

    def column(self, key: str) -> Column | None:
        """The column of this name, if there is one."""
        return next((column for column in self.columns if column.key == key), None)


RUNS = Listing(
    "runs",
    (
        Column("task", "Task", "task_id"),
        Column("dataset", "Data set", "dataset", filter="choice"),
        Column("model", "Model", "model", filter="choice"),
        Column("cap", "Cap", "cap", "number", about="Stated turn cap; empty if none was stated"),
        Column("attempt", "Try", "attempt", "number", shown=False),
        Column("purpose", "Purpose", "purpose", filter="choice"),
        Column("ending", "Ending", "ending", filter="choice", about="Classes of Figure 14"),
        Column("verdict", "Verdict", "verdict", filter="choice", shown=False),
        Column("stop", "Stop", "stop", filter="choice"),
        Column("suspect", "Suspect", "suspect", "flag", shown=False),
        Column("segments", "Segments passed", "segments_passed", "number", shown=False),
        Column("turns", "Turns", "turns", "number", filter="range"),
        Column("minutes", "Minutes", "agent_minutes", "number", filter="range"),
        Column("context", "Context", "context_tokens", "tokens", about="Tokens at the end"),
        Column("output", "Output", "output_tokens", "tokens", shown=False),
        Column("cost", "Cost", "cost_usd", "cost", filter="range"),
        Column("started", "Started", "started", "time"),
        Column("provenance", "Provenance", "provenance", filter="choice"),
    ),
    identity=("run_id", "dataset", "task_id", "detail", "suspect", "standing"),
)

TASKS = Listing(
    "tasks",
    (
        Column("task", "Task", "task_id"),
        Column("dataset", "Data set", "dataset", filter="choice"),
        Column("group", "Group", "family", filter="choice", shown=False),
        Column("outcome", "Solved", "outcome", filter="choice"),
        Column("D", "D", "D", "number", filter="range", about="Depth: turns, the smallest cap"),
        Column(
            "N", "N", "N", "number", filter="range", about="Turns of the shorter passing free run"
        ),
        Column("W", "W", "W", "number", filter="range", about="Work: lines of the solution"),
        Column("R", "R", "R", "share", filter="range", about="Share of the free runs that pass"),
        Column("k", "Segments", "k", "number", filter="range", shown=False),
        Column("rate", "Pass rate", "public_pass_rate", "share", about="As released by others"),
        Column("passes", "Passes", "passes", "number"),
        Column("unconfirmed", "Unconfirmed", "unconfirmed", "number", shown=False),
        Column("suspect", "Suspect", "suspect", "number", shown=False),
        Column("valid", "Results", "valid", "number", filter="range"),
        Column("state", "Estimate", "state", filter="choice"),
        Column("rating", "Rating", "author_rating", filter="choice", shown=False),
        Column("category", "Category", "category", filter="choice", shown=False),
        Column("cost", "Cost", "cost_usd", "cost", shown=False),
        Column("last", "Last run", "last", "time", shown=False),
        Column("provenance", "Provenance", "provenance", filter="choice"),
    ),
    identity=("dataset", "task_id", "family"),
)

CAP = Column("caps", "Cap", "cap_name", filter="choice")
"""A choice of runs that is no column of its own: a cap, or ``none``."""


@dataclass(frozen=True)
class View:
    """What of a list is shown.

    Attributes:
        listing: The list.
        q: What is searched.
        choices: Values by column; a row passes if it has one of them.
        ranges: Bounds by column, both inclusive; ``None`` for no bound.
        marked: Labels and notes that rows must have.
        task: Only runs of this task (data set, task).
        sort: Column to sort by; the order of the corpus if none.
        descending: Largest first.
        page: From 1.
        size: Rows a page.
        columns: Columns to show; ``None`` for those that are shown unless asked.
    """

    listing: Listing
    q: str = ""
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    marked: Marked = field(default_factory=Marked)
    task: tuple[str, str] | None = None
    sort: str = ""
    descending: bool = False
    page: int = 1
    size: int = 50
    columns: tuple[str, ...] | None = None

    @classmethod
    def parse(cls, listing: Listing, query: Query) -> View:
        """The view of an address; what makes no sense there is left out."""
        choices: dict[str, tuple[str, ...]] = {}
        ranges: dict[str, tuple[float | None, float | None]] = {}
        for column in _filters(listing):
            given = query.get(column.key, ())
            if column.filter == "choice":
                if given := tuple(dict.fromkeys(v for v in given if v))[:MOST_CHOICES]:
                    choices[column.key] = given
                continue
            low, high = (_number(_first(query, f"{column.key}_{end}")) for end in ("min", "max"))
            if low is not None or high is not None:
                ranges[column.key] = (low, high)
        sort = _first(query, "sort")
        descending = sort.startswith("-")
        sort = sort.removeprefix("-")
        shown = tuple(key for key in query.get("columns", ()) if listing.column(key))
        size = _number(_first(query, "size"))
        page = _number(_first(query, "page"))
        dataset, task_id = _first(query, "of_dataset"), _first(query, "of_task")
        return cls(
            listing,
            q=_first(query, "q")[:_MOST_TEXT].strip(),
            choices=choices,
            ranges=ranges,
            marked=Marked.parse(query),
            task=(dataset, task_id) if listing is RUNS and dataset and task_id else None,
            sort=sort if listing.column(sort) else "",
            descending=descending and listing.column(sort) is not None,
            page=max(1, int(min(page or 1, 1e9))),
            size=int(size) if size in PAGE_SIZES else 50,
            columns=shown or None,
        )

    def pairs(self) -> list[tuple[str, str]]:
        """Names and values for an address; what is as it would be anyway is left out."""
        pairs = [("q", self.q)] if self.q else []
        pairs += [(key, value) for key, values in self.choices.items() for value in values]
        for key, bounds in self.ranges.items():
            pairs += [
                (f"{key}_{end}", f"{bound:g}" if bound % 1 else f"{bound:.0f}")
                for end, bound in zip(("min", "max"), bounds, strict=True)
                if bound is not None
            ]
        pairs += self.marked.pairs()
        if self.task:
            pairs += [("of_dataset", self.task[0]), ("of_task", self.task[1])]
        pairs += [("columns", key) for key in self.columns or ()]
        if self.sort:
            pairs.append(("sort", f"{'-' if self.descending else ''}{self.sort}"))
        if self.size in PAGE_SIZES and self.size != 50:
            pairs.append(("size", str(self.size)))
        if self.page > 1:
            pairs.append(("page", str(self.page)))
        return pairs

    def query(self, **changes: Any) -> str:
        """Query string of this view with some of its attributes changed."""
        return urlencode(replace(self, **changes).pairs())

    def toggled(self, key: str, value: str) -> str:
        """Query string with a choice made, or taken back."""
        values = self.choices.get(key, ())
        values = tuple(v for v in values if v != value) if value in values else (*values, value)
        choices = {**self.choices, key: values} if values else _without(self.choices, key)
        return self.query(choices=choices, page=1)

    @property
    def shown(self) -> list[Column]:
        """The columns to show, in order."""
        keys = self.columns
        return [c for c in self.listing.columns if (c.shown if keys is None else c.key in keys)]

    @property
    def filtered(self) -> bool:
        """Whether anything is left out."""
        return bool(self.q or self.choices or self.ranges or self.marked or self.task)

    def where(self, leave_out: str = "") -> tuple[str, list[Any]]:
        """SQL condition and its parameters.

        Args:
            leave_out: A column whose own filter is not applied.
        """
        parts, values = ["true"], list[Any]()
        for word in self.q.split():
            parts.append("contains(sought, lower(?))")
            values.append(word)
        for column in _filters(self.listing):
            if column.key == leave_out:
                continue
            if chosen := self.choices.get(column.key):
                known = [value for value in chosen if value != UNKNOWN]
                options = []
                if known:
                    options.append(f"{column.sql} IN ({', '.join('?' * len(known))})")
                if len(known) < len(chosen):
                    options.append(f"{column.sql} IS NULL")
                parts.append(f"({' OR '.join(options)})")
                values += known
            low, high = self.ranges.get(column.key, (None, None))
            for bound, sign in ((low, ">="), (high, "<=")):
                if bound is not None:
                    parts.append(f"{column.sql} {sign} ?")
                    values.append(bound)
        conditions, wanted = self.marked.where(self.listing.table)
        parts += conditions
        values += wanted
        if self.task:
            parts.append("dataset = ? AND task_id = ?")
            values += self.task
        return " AND ".join(parts), values


UNKNOWN = "(none)"
"""A choice: rows that have no value."""


@dataclass(frozen=True)
class Page:
    """One page of a list.

    Attributes:
        rows: By column key and identity.
        matched: Rows that pass the filters.
        total: All rows.
    """

    rows: list[dict[str, Any]]
    matched: int
    total: int
    view: View

    @property
    def pages(self) -> int:
        """How many pages there are; at least one."""
        return max(1, math.ceil(self.matched / self.view.size))

    @property
    def first(self) -> int:
        """Number of the first row shown, from 1."""
        return (self.view.page - 1) * self.view.size + 1


def page(snapshot: Snapshot, view: View) -> Page:
    """The rows of a view; a page beyond the last is the last."""
    where, values = view.where()
    table = view.listing.table
    counts = f"SELECT count(*) AS total, count(*) FILTER ({where}) AS matched FROM {table}"  # noqa: S608
    (found,) = snapshot.rows(counts, values)
    last = max(1, math.ceil(found["matched"] / view.size))
    view = replace(view, page=min(view.page, last))
    limits = f"LIMIT {view.size} OFFSET {(view.page - 1) * view.size}"
    return Page(
        snapshot.rows(f"{_select(view)} WHERE {where} {_order(view)} {limits}", values),
        found["matched"],
        found["total"],
        view,
    )


def every(snapshot: Snapshot, view: View, batch: int = 5000) -> Iterator[list[dict[str, Any]]]:
    """All rows of a view, page after page, for an export."""
    where, values = view.where()
    cursor = snapshot.tables.cursor().execute(
        f"{_select(view)} WHERE {where} {_order(view)}", values
    )
    names = [column[0] for column in cursor.description or []]
    while rows := cursor.fetchmany(batch):
        yield [dict(zip(names, row, strict=True)) for row in rows]


def facets(snapshot: Snapshot, view: View, keys: Sequence[str]) -> dict[str, list[tuple[str, int]]]:
    """Values of columns with how many rows have each, a column's own filter not applied to it.

    Most frequent first; endings in the order of Figure 14, caps by number. Of a column with more
    than 400 values the most frequent ones.
    """
    columns = {key: CAP if key == CAP.key else view.listing.column(key) for key in keys}
    found: dict[str, list[tuple[str, int]]] = {key: [] for key in keys}
    # Columns without a filter of their own are counted over the same rows, in one pass.
    free = [key for key in keys if key not in view.choices]
    for group in [free, *([key] for key in keys if key in view.choices)]:
        if not group:
            continue
        where, values = view.where(leave_out=group[0] if group[0] in view.choices else "")
        names = [f'{column.sql} AS "{key}"' for key in group if (column := columns[key])]
        sets = ", ".join(f'("{key}")' for key in group)
        which = ", ".join(f'grouping("{key}")' for key in group)
        query = (
            f"SELECT {', '.join(f'"{key}"' for key in group)}, [{which}] AS off, count(*) AS n "  # noqa: S608
            f"FROM (SELECT {', '.join(names)} FROM {view.listing.table} WHERE {where}) "
            f"GROUP BY GROUPING SETS ({sets})"
        )
        for row in snapshot.rows(query, values):
            key = group[row["off"].index(0)]
            value = UNKNOWN if row[key] is None else str(row[key])
            found[key].append((value, int(row["n"])))
    for key, counts in found.items():
        if key == "ending":
            counts.sort(key=lambda pair: list(ENDINGS).index(pair[0]))
        elif key == CAP.key:
            counts.sort(key=lambda pair: int(pair[0]) if pair[0].isdigit() else 10**9)
        else:
            counts.sort(key=lambda pair: (-pair[1], pair[0]))
        del counts[MOST_CHOICES:]
    return found


def _filters(listing: Listing) -> list[Column]:
    columns = [column for column in listing.columns if column.filter]
    return [*columns, CAP] if listing is RUNS else columns


def _select(view: View) -> str:
    columns = [f'{column.sql} AS "{column.key}"' for column in view.listing.columns]
    keys = {column.key for column in view.listing.columns}
    columns += [f'"{name}"' for name in view.listing.identity if name not in keys]
    return f"SELECT {', '.join(columns)} FROM {view.listing.table}"  # noqa: S608


def _order(view: View) -> str:
    column = view.listing.column(view.sort)
    if column is None:
        # What came last is what a person looks for among runs; tasks stand as in the corpus.
        return "ORDER BY place DESC" if view.listing is RUNS else "ORDER BY place"
    direction = "DESC" if view.descending else "ASC"
    return f"ORDER BY {column.sql} {direction} NULLS LAST, place"


def _first(query: Query, name: str) -> str:
    values = query.get(name, ())
    return values[0] if values else ""


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _without(choices: Mapping[str, tuple[str, ...]], key: str) -> dict[str, tuple[str, ...]]:
    return {name: values for name, values in choices.items() if name != key}
