"""The page Compare: two runs of a task turn by turn, or two models over a data set."""

from __future__ import annotations

from typing import Any

from depthkit.artifacts.model_styles import in_order
from depthkit.artifacts.model_styles import label as model_label
from depthkit.dashboard import html
from depthkit.dashboard.compare import Pair, align, contest, difference, typed
from depthkit.dashboard.html import Context
from depthkit.dashboard.listing import Query
from depthkit.dashboard.marked import Marked
from depthkit.dashboard.pages.marks import mark_fields
from depthkit.dashboard.text import block, exact, plain, terminal, without_blank_end
from depthkit.dashboard.turns import ShownTurn, course

_MOST = 500
_OUTPUT = 3000


def compare_page(context: Context, query: Query) -> str:
    """``a`` and ``b`` name two runs; else ``x`` and ``y`` two models."""
    given = {key: (query.get(key) or [""])[0] for key in ("a", "b", "x", "y", "dataset", "cap")}
    if given["a"]:
        return _runs(context, given["a"], given["b"])
    return _models(context, given, Marked.parse(query))


# --- two runs ---


def _runs(context: Context, a: str, b: str) -> str:
    run = context.snapshot.run(a)
    if run is None or context.source.corpus is None:
        body = f'<h1>Compare</h1><p class="empty">This corpus has no such run: {plain(a)}.</p>'
        return html.document(context, "compare", "Compare", body)
    others = context.snapshot.rows(
        "SELECT * EXCLUDE (sought) FROM runs WHERE dataset = ? AND task_id = ? AND run_id <> ? "
        "ORDER BY model, cap NULLS LAST, attempt, place",
        [run["dataset"], run["task_id"], a],
    )
    other = next((row for row in others if row["run_id"] == b), None)
    options = "".join(
        f'<option value="{exact(row["run_id"])}"{" selected" if row is other else ""}>'
        f"{plain(_name(row))}: {plain(row['ending'])}</option>"
        for row in others
    )
    form = (
        f'<form class="search wide" action="{context.page("compare")}">'
        f'<input type="hidden" name="a" value="{exact(a)}"><label>{plain(_name(run))} with '
        f'<select name="b" required><option value="">another run of this task</option>{options}'
        "</select></label><button>Compare</button></form>"
    )
    task = context.task(run["dataset"], run["task_id"])
    body = (
        f'<p class="crumbs">{html.dataset(context, run["dataset"])} / '
        f'<a href="{task}">{plain(run["task_id"])}</a></p><h1>Two runs</h1>{form}'
    )
    if other is not None:
        body += _aligned(context, run, other)
    elif b:
        body += f'<p class="empty">No run {plain(b)} of this task.</p>'
    return html.document(context, "compare", f"Two runs of {run['task_id']}", body)


def _name(run: dict[str, Any]) -> str:
    cap = "no cap" if run["cap"] is None else f"cap {run['cap']}"
    return f"{model_label(run['model'])}, {cap}, try {run['attempt']}"


def _aligned(context: Context, run: dict[str, Any], other: dict[str, Any]) -> str:
    assert context.source.corpus is not None
    left, right = (
        course(context.source.corpus, each["run_id"], playback=False) for each in (run, other)
    )
    pairs = align(left, right)
    parts = next((n for n, pair in enumerate(pairs, start=1) if pair.parts), None)
    said = (
        f'They part at <a href="#place-{parts}">turn {parts}</a>.' if parts else "They do the same."
    )
    heads = "".join(
        f'<th scope=col><a href="{context.run(each["run_id"])}">{plain(_name(each))}</a> '
        f"{html.ending(each['ending'])} <small>{html.written(each['turns'], 'number')} turns, "
        f"{html.written(each['cost_usd'], 'cost')}</small></th>"
        for each in (run, other)
    )
    rows: list[str] = []
    segment = 0
    several = len({pair.segment for pair in pairs}) > 1
    for number, pair in enumerate(pairs, start=1):
        if several and pair.segment != segment:
            segment = pair.segment
            rows.append(f'<tr class="segment"><th colspan=3>Segment {segment}</th></tr>')
        rows.append(_pair(context, run["run_id"], other["run_id"], number, pair))
    problems = html.problems([*left.problems, *right.problems], "remark")
    return (
        f'{problems}<p class="found">{said}</p><div class="scroll" tabindex="0" role="region" '
        'aria-label="Turns of both runs"><table class="pairs"><thead><tr><th scope=col>Turn</th>'
        f"{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _pair(context: Context, a: str, b: str, number: int, pair: Pair) -> str:
    sides = []
    both = pair.left is not None and pair.right is not None and not pair.same
    pieces = difference(typed(pair.left), typed(pair.right)) if both else []  # type: ignore[arg-type]
    for run_id, turn, kind in ((a, pair.left, "left"), (b, pair.right, "right")):
        if turn is None:
            sides.append('<td class="gone">has ended</td>')
            continue
        keys = "".join(
            f"<ins>{terminal(piece.text)}</ins>" if piece.kind == kind else terminal(piece.text)
            for piece in pieces
            if piece.kind in ("same", kind)
        ) or terminal(typed(turn))
        sides.append(f"<td>{_side(context, run_id, turn, keys)}</td>")
    mark = ' class="parts"' if pair.parts else ' class="same"' if pair.same else ""
    return f'<tr id="place-{number}"{mark}><th scope=row>{number}</th>{"".join(sides)}</tr>'


def _side(context: Context, run_id: str, turn: ShownTurn, keys: str) -> str:
    flags = "".join(f'<span class="flag">{flag}</span> ' for flag in turn.flags)
    shown, _ = without_blank_end(turn.output or "")
    rest = f"\n… {len(shown) - _OUTPUT:,} more characters" if len(shown) > _OUTPUT else ""
    output = (
        f"<details><summary>output <small>{len(shown):,} characters</small></summary>"
        f'<pre class="term">{terminal(shown[:_OUTPUT])}{rest}</pre></details>'
        if shown
        else ""
    )
    prose = turn.plan or turn.analysis or turn.message
    plan = f'<p class="plan">{block(prose[:600])}{"…" if len(prose) > 600 else ""}</p>'
    typed_ = f'<pre class="typed">{keys}</pre>' if keys.strip() else ""
    return (
        f'<a href="{context.run(run_id)}#turn-{turn.number}">turn {turn.number}</a> {flags}'
        f"{plan if prose else ''}{typed_}{output}"
    )


# --- two models ---


def _models(context: Context, given: dict[str, str], marked: Marked) -> str:
    snapshot = context.snapshot
    models = [*snapshot.model_set, *in_order(set(snapshot.models) - set(snapshot.model_set))]
    models = [model for model in models if model in snapshot.models]
    x, y = given["x"] or (models[0] if models else ""), given["y"]
    y = y or _rival(context, x) or next((model for model in models if model != x), "")
    caps = [row["cap_name"] for row in snapshot.rows("SELECT DISTINCT cap_name FROM runs")]
    caps.sort(key=lambda cap: int(cap) if cap.isdigit() else 0)
    cap = given["cap"] or _shared_cap(context, x, y)

    def select(key: str, title: str, values: list[tuple[str, str]], chosen: str) -> str:
        options = "".join(
            f'<option value="{exact(value)}"{" selected" if value == chosen else ""}>'
            f"{plain(text)}</option>"
            for value, text in values
        )
        return f'<label>{title} <select name="{key}">{options}</select></label>'

    named = [(model, model_label(model)) for model in models]
    form = (
        f'<form class="search wide" action="{context.page("compare")}">'
        f"{select('x', 'Model', named, x)}{select('y', 'with', named, y)}"
        + select("cap", "under", [(c, "no cap" if c == "none" else f"cap {c}") for c in caps], cap)
        + select(
            "dataset",
            "in",
            [("", "all data sets"), *((d, d) for d in snapshot.datasets)],
            given["dataset"],
        )
        + f"{mark_fields(context, marked)}<button>Compare</button></form>"
    )
    body = f"<h1>Two models</h1>{form}"
    if len(models) < 2:
        body += '<p class="empty">This corpus has runs of fewer than two models.</p>'
        return html.document(context, "compare", "Compare", body)
    found = contest(snapshot, x, y, cap=cap, dataset=given["dataset"], marked=marked)
    if not found.outcomes:
        body += (
            '<p class="empty">Both models have results on no such task under this cap; choose '
            "another cap, or more tasks.</p>"
        )
        return html.document(context, "compare", "Compare", body)
    left, right = plain(model_label(x)), plain(model_label(y))
    counts = [
        ("Tasks", len(found.outcomes)),
        ("Both pass", found.both),
        (f"Only {left}", found.only_left),
        (f"Only {right}", found.only_right),
        ("Neither", found.neither),
    ]
    numbers = "".join(f"<div><dt>{name}</dt><dd>{n:,}</dd></div>" for name, n in counts)
    test = f'<p class="found">{plain(found.test)}.</p>' if found.test else ""
    rows = [
        [
            f'<a class="row" href="{context.task(each.dataset, each.task_id)}">'
            f"{plain(each.task_id)}</a>",
            html.dataset(context, each.dataset),
            _passes(context, each.left, each.left_run, each.left_apart),
            _passes(context, each.right, each.right_run, each.right_apart),
            f"{each.gap:+.0%}" if each.gap else "0",
            f'<a href="{context.page("compare", a=each.left_run, b=each.right_run)}">turns</a>',
        ]
        for each in found.outcomes[:_MOST]
    ]
    heads = ["Task", "Data set", left, right, "Difference", "Compare"]
    more = len(found.outcomes) - _MOST
    if cap != "none":
        test += (
            '<p class="hint">Runs under a cap are no sample of tasks: the protocol starts a later '
            "model only under caps that the models before it do not pass.</p>"
        )
    body += f'<dl class="numbers">{numbers}</dl>{test}'
    body += html.table(heads, rows, numeric=(2, 3, 4), label="Tasks, largest difference first")
    if more > 0:
        body += (
            f'<p class="hint">{more:,} more tasks with smaller differences; choose a data set.</p>'
        )
    return html.document(context, "compare", "Compare", body)


def _passes(context: Context, passes: tuple[int, int], run_id: str, apart: str) -> str:
    return f'<a href="{context.run(run_id)}">{passes[0]} of {passes[1]}</a>{apart}'


def _rival(context: Context, model: str) -> str:
    """The model that has runs without a cap on most tasks on which this one has some."""
    rows = context.snapshot.rows(
        """
        SELECT b.model, count(DISTINCT (b.dataset, b.task_id)) AS n
        FROM runs a JOIN runs b USING (dataset, task_id)
        WHERE a.model = ? AND b.model <> a.model AND a.cap IS NULL AND b.cap IS NULL
        GROUP BY b.model ORDER BY n DESC, b.model LIMIT 1
        """,
        [model],
    )
    return str(rows[0]["model"]) if rows else ""


def _shared_cap(context: Context, x: str, y: str) -> str:
    """No cap if both models have such runs of a task, else the largest with most tasks of both."""
    rows = context.snapshot.rows(
        """
        SELECT cap_name, count(*) AS n FROM (
            SELECT cap_name, dataset, task_id FROM runs
            WHERE verdict <> 'none' AND model IN (?, ?)
            GROUP BY ALL HAVING count(DISTINCT model) = 2
        ) GROUP BY cap_name
        ORDER BY cap_name = 'none' DESC, n DESC, try_cast(cap_name AS INTEGER) DESC LIMIT 1
        """,
        [x, y],
    )
    return str(rows[0]["cap_name"]) if rows else "none"
