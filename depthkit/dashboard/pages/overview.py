"""The overview of a corpus: its data sets, the plane of depth and work, and published numbers."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from depthkit.artifacts.tables import MISSING
from depthkit.dashboard import html
from depthkit.dashboard.html import Context
from depthkit.dashboard.listing import Query
from depthkit.dashboard.marked import Marked
from depthkit.dashboard.pages.marks import mark_fields
from depthkit.dashboard.source import is_large
from depthkit.dashboard.text import exact, plain
from depthkit.errors import DepthkitError
from depthkit.stats import depth_quantile, quantile

if TYPE_CHECKING:
    from depthkit.artifacts.claims import Claims

_COLOURS = {"dataset": "data set", "outcome": "verdict", "rate": "pass rate"}


def overview_page(context: Context, query: Query) -> str:
    """The overview; ``D``, ``N`` and ``W`` with ``_min`` and ``_max`` are the brush.

    ``label`` and ``note`` choose tasks like a brush.
    """
    snapshot = context.snapshot
    tasks = snapshot.value("SELECT count(*) FROM tasks")
    scripts: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    static = context.site.static
    if not tasks:
        body = f"<h1>{plain(context.source.name)}</h1>{_nothing(context)}"
    else:
        scripts = ("bokeh.min.js", "overview.js")
        data = (context.data("plots.json"),) if static else ()
        later = (
            "Comparing this corpus with the numbers that the papers print …"
            if not is_large(context.source.path)
            else '<button type="button">Compare with what the papers print</button> Takes a minute '
            "or more with so many runs."
        )
        later = f'<p class="hint" data-claims="{context.data("claims")}">{later}</p>'
        body = (
            f"<h1>{plain(context.source.name)}</h1>{_datasets(context)}"
            f"{_plots(context, query)}"
            '<section class="claims" id="claims" aria-live="polite">'
            f"<h2>Published numbers</h2>{claims_part(context) if static else later}</section>"
        )
    return html.document(context, "overview", context.source.name, body, scripts=scripts, data=data)


def _nothing(context: Context) -> str:
    if context.snapshot.problems:
        return '<p class="empty">Nothing could be read; the sentence above says what to do.</p>'
    if not context.snapshot.digest:
        return '<p class="empty" data-reading>Reading the corpus …</p>'
    return (
        '<p class="empty">This corpus is empty. Measure tasks into it with <code>depthkit ladder '
        "TASK_DIR… --with-free --corpus DIR</code>, or take in trials that others ran with "
        "<code>depthkit ingest SRC… --corpus DIR</code>; this page follows by itself.</p>"
    )


def _datasets(context: Context) -> str:
    rows = context.snapshot.rows(
        """
        SELECT dataset, any_value(family) AS family, count(*) AS tasks,
            count(*) FILTER (solved) AS solved, count(*) FILTER (solved IS NOT NULL) AS known,
            list(D) FILTER (solved AND final) AS D,
            list(N) FILTER (solved) AS N, list(W) FILTER (solved) AS W, sum(runs) AS runs,
            count(*) FILTER (final) AS final, min(place) AS place
        FROM tasks GROUP BY dataset ORDER BY place
        """
    )
    caps = context.snapshot.caps
    cells = [
        [
            f'<a class="row" href="{context.page("tasks", dataset=row["dataset"])}">'
            f"{html.dataset(context, row['dataset'])}</a>",
            plain(row["family"] or ""),
            f"{row['tasks']:,}",
            f"{row['solved']:,} <small>of {row['known']:,}</small>" if row["known"] else MISSING,
            plain(depth_quantile(row["D"] or [], 0.5, caps=caps)),
            *(plain(html.written(quantile(row[name] or [], 0.5), "number")) for name in "NW"),
            f'<a href="{context.page("runs", dataset=row["dataset"])}">{int(row["runs"]):,}</a>',
            f"{row['final']:,}",
        ]
        for row in rows
    ]
    heads = [
        "Data set",
        "Group",
        "Tasks",
        "Solved",
        '<span title="Median over solved tasks">D</span>',
        '<span title="Median over solved tasks">N</span>',
        '<span title="Median over solved tasks, lines">W</span>',
        "Runs",
        '<span title="Tasks whose estimate no further run could change">Final</span>',
    ]
    return html.table(heads, cells, numeric=range(2, 9), label="Data sets")


def _plots(context: Context, query: Query) -> str:
    def field(key: str, end: str) -> str:
        value = (query.get(f"{key}_{end}") or [""])[0][:12]
        word = "from" if end == "min" else "to"
        return (
            f'<input name="{key}_{end}" value="{exact(value)}" inputmode="decimal" size="5" '
            f'aria-label="{key} {word}" placeholder="{word}">'
        )

    ranges = "".join(
        f"<fieldset><legend>{key}</legend>{field(key, 'min')}<span>to</span>{field(key, 'max')}"
        "</fieldset>"
        for key in ("D", "N", "W")
    )
    colour = (query.get("colour") or ["dataset"])[0]
    options = "".join(
        f'<option value="{key}"{" selected" if key == colour else ""}>{text}</option>'
        for key, text in _COLOURS.items()
    )
    source = context.data("plots.json")
    return (
        '<h2>Depth and work <small id="chosen" role="status"></small></h2>'
        f'<form class="brush" id="brush" action="{context.page("overview")}">'
        f'<label>Colour by <select name="colour">{options}</select></label>{ranges}'
        f"{mark_fields(context, Marked.parse(query))}"
        '<button>Apply</button><button type="reset" class="quiet">Clear</button>'
        f'<a class="tool" id="open-tasks" href="{context.page("tasks")}">open in Tasks</a></form>'
        f'<div class="plots" id="plots" data-source="{source}">'
        '<div class="plot plane" id="plot-plane"></div>'
        + "".join(f'<div class="plot bars" id="plot-{key}"></div>' for key in ("D", "N", "W"))
        + '</div><ul class="legend" id="legend"></ul>'
        '<p class="hint" id="left-out">Drag in any plot to choose tasks; click a mark to open its '
        "task.</p>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Chosen tasks">'
        '<table id="chosen-tasks"><thead><tr><th scope=col>Task<th scope=col>Data set'
        "<th scope=col class=n>D<th scope=col class=n>N<th scope=col class=n>W"
        "<th scope=col class=n>Passes</tr></thead><tbody></tbody></table></div>"
    )


def claims_part(context: Context) -> str:
    """How many published numbers this corpus gives, and those it does not; worked out once."""
    from depthkit.artifacts.claims import claims

    corpus, digest = context.source.corpus, context.snapshot.digest.split(":")[0]
    assert corpus is not None
    with _CLAIMS_LOCK:
        kept = _CLAIMS.get(context.key)
        if kept is None or kept[0] != digest:
            try:
                part = (
                    _in_a_process(corpus.path)
                    if is_large(corpus.path)
                    else claims_html(claims(corpus))
                )
            except DepthkitError as error:
                return html.problems([str(error)])
            _CLAIMS[context.key] = kept = (digest, part)
    return kept[1]


_CLAIMS: dict[str, tuple[str, str]] = {}
_CLAIMS_LOCK = threading.Lock()

_COMPARE = """
import sys
from depthkit.artifacts.claims import claims
from depthkit.dashboard.pages.overview import claims_html
sys.stdout.buffer.write(claims_html(claims(sys.argv[1])).encode("utf-8", "replace"))
"""


def _in_a_process(corpus: Path) -> str:
    """Pages stay quick meanwhile, and the memory is free again afterwards.

    Raises:
        DepthkitError: It failed.
    """
    command = [sys.executable, "-c", _COMPARE, str(corpus.absolute())]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise DepthkitError(f"The comparison could not be made: {' '.join(said)}")
    return done.stdout.decode()


def claims_html(found: Claims) -> str:
    """The comparison: its score, a bar for each section, and what differs."""
    counted = [result for result in found.results if result.counted]
    totals = Counter(result.claim.section.split(",")[0] for result in counted)
    agree = Counter(r.claim.section.split(",")[0] for r in counted if r.agrees)
    bars = "".join(
        f'<li><span class="section">{escape(section)}</span>'
        f'<meter min="0" max="{n}" value="{agree[section]}" aria-label="{escape(section)}: '
        f'{agree[section]} of {n} agree">{agree[section]} of {n}</meter>'
        f"<span>{agree[section]} of {n}</span></li>"
        for section, n in totals.items()
    )
    differ = [result for result in counted if not result.agrees]
    rows = [
        [
            plain(result.claim.section),
            plain(result.claim.claim),
            plain(result.claim.value),
            plain(result.computed_text),
        ]
        for result in differ[:200]
    ]
    table = html.table(
        ["Section", "Number", "Published", "Computed"], rows, numeric=(2, 3), label="Differences"
    )
    differences = (
        f"<details><summary>{len(differ)} differ</summary>{table}</details>" if differ else ""
    )
    return (
        f'<p class="score">{plain(found.score)}.</p><ul class="sections">{bars}</ul>{differences}'
        f'<p class="rests">{plain(found.provenance)}</p>'
    )
