"""A run's page: what the agent did, turn by turn, with its terminal played beside it."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from depthkit.artifacts.model_styles import label as model_label
from depthkit.dashboard import html
from depthkit.dashboard.html import Context
from depthkit.dashboard.listing import Query
from depthkit.dashboard.pages.curves import curves
from depthkit.dashboard.pages.files import file_list, verifier
from depthkit.dashboard.pages.marks import marks
from depthkit.dashboard.pages.turnlist import turn_items
from depthkit.dashboard.search import MOST_NEEDLE, Place, search_course
from depthkit.dashboard.text import exact, plain
from depthkit.dashboard.trial import Trial
from depthkit.dashboard.turns import Course, course


def run_page(context: Context, query: Query) -> str:
    """The page of the run that ``id`` names; ``turn`` and ``q`` are the turn shown and a search."""
    run_id = (query.get("id") or [""])[0]
    needle = (query.get("q") or [""])[0][:MOST_NEEDLE]
    run = context.snapshot.run(run_id)
    if run is None or context.source.corpus is None:
        body = (
            f"<h1>{plain(run_id or 'No run')}</h1><p class=empty>This corpus has no such run. "
            f'<a href="{context.page("runs")}">All runs</a>.</p>'
        )
        return html.document(context, "runs", "No such run", body)
    trial = Trial(context.source.corpus, run_id)
    found = course(context.source.corpus, run_id)
    places = search_course(found, needle)
    body = (
        f"{_head(context, run)}{marks(context, run['dataset'], run['task_id'], run_id)}"
        f"{html.problems(found.problems, 'remark')}"
    )
    if found.turns or found.between:
        body += _bar(context, run, found, needle, places)
        body += (
            f'<div class="trajectory"><ol class="turns" aria-label="Turns">'
            f"{''.join(turn_items(context, run_id, found, needle))}</ol>"
            f'<div class="beside">{_player(context, run_id, found)}{curves(found.turns)}'
            f"{verifier(trial, needle)}{file_list(context, trial)}</div></div>"
        )
    else:
        body += f"{verifier(trial, needle)}{file_list(context, trial)}"
    title = f"{run['task_id']} · {run['model']}"
    vendor = found.plays
    return html.document(
        context,
        "runs",
        title,
        body,
        scripts=(*(["vendor/asciinema-player.min.js"] if vendor else []), "run.js"),
        sheets=("vendor/asciinema-player.css",) if vendor else (),
        data=(context.data("recording", id=run_id),) if vendor and context.site.static else (),
    )


def _head(context: Context, run: dict[str, Any]) -> str:
    cap = "no cap" if run["cap"] is None else f"cap {run['cap']}"
    doubt = html.doubt(run, '<span class="flag">{}</span>')
    items: list[tuple[str, str]] = [
        ("Ending", f"{html.ending(run['ending'])} {doubt}"),
        ("Stop", plain(run["stop"].replace("_", " "))),
        ("Turns", plain(html.written(run["turns"], "number"))),
        ("Minutes", plain(html.written(run["agent_minutes"], "number"))),
        ("Context", plain(html.written(run["context_tokens"], "tokens"))),
        ("Input", plain(html.written(run["input_tokens"], "tokens"))),
        ("Cached", plain(html.written(run["cached_tokens"], "tokens"))),
        ("Output", plain(html.written(run["output_tokens"], "tokens"))),
        ("Cost", plain(html.written(run["cost_usd"], "cost"))),
        ("Started", plain(html.written(run["started"], "time"))),
    ]
    if run["segments_passed"] is not None:
        items.append(("Segments passed", plain(run["segments_passed"])))
    if run["rewards"] is not None:
        items.append(("Rewards", plain(run["rewards"])))
    numbers = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in items)
    detail = f'<p class="detail">{plain(run["detail"])}</p>' if run["detail"] else ""
    task = context.task(run["dataset"], run["task_id"])
    others = _neighbours(context, run)
    if not context.site.static:
        href = context.page("compare", a=run["run_id"])
        others += f' <a class="neighbours" href="{href}">compare</a>'
    return (
        f'<p class="crumbs"><a href="{context.page("tasks", dataset=run["dataset"])}">'
        f"{html.dataset(context, run['dataset'])}</a> / "
        f'<a href="{task}">{plain(run["task_id"])}</a>{others}</p>'
        f"<h1>{plain(model_label(run['model']))} "
        f"<small>{cap}, {plain(run['purpose'])}, try {run['attempt']}</small></h1>"
        f'<p class="id"><code>{plain(run["run_id"])}</code></p>'
        f'<dl class="numbers">{numbers}</dl>{detail}'
    )


def _neighbours(context: Context, run: dict[str, Any]) -> str:
    """Links to the runs before and after it on the ladder of its task."""
    rows = context.snapshot.rows(
        "SELECT run_id FROM runs WHERE dataset = ? AND task_id = ? "
        "ORDER BY model, cap NULLS LAST, attempt, place",
        [run["dataset"], run["task_id"]],
    )
    ids = [row["run_id"] for row in rows]
    here = ids.index(run["run_id"])
    parts = []
    if here:
        parts.append(f'<a rel="prev" href="{context.run(ids[here - 1])}">previous run</a>')
    if here + 1 < len(ids):
        parts.append(f'<a rel="next" href="{context.run(ids[here + 1])}">next run</a>')
    return f' <span class="neighbours">{" ".join(parts)}</span>' if parts else ""


def _bar(
    context: Context, run: dict[str, Any], found: Course, needle: str, places: tuple[Place, ...]
) -> str:
    flagged = [turn for turn in found.turns if turn.flags]
    counts: dict[str, list[int]] = defaultdict(list)
    for turn in flagged:
        for flag in turn.flags:
            counts[flag].append(turn.number)
    marks_ = "".join(
        f'<li><a href="#turn-{numbers[0]}" class="flag flag-{flag.replace(" ", "-")}">'
        f"{len(numbers)} {flag}{'s' if len(numbers) > 1 else ''}</a></li>"
        for flag, numbers in counts.items()
    )
    matches = sum(place.matches for place in places)
    turns = {place.turn for place in places}
    found_text = ""
    if needle:
        word = "match" if matches == 1 else "matches"
        found_text = (
            f'<output class="matches">{matches:,} {word} in {len(turns):,} '
            f"turn{'' if len(turns) == 1 else 's'}</output>"
        )
    search = (
        ""
        if context.site.static
        else (
            f'<form class="search inline" action="{context.page("run")}" role="search">'
            f'<input type="hidden" name="id" value="{exact(run["run_id"])}">'
            f'<input id="q" type="search" name="q" value="{exact(needle)}" '
            'aria-label="Search in this run" placeholder="search in this run">'
            f"<button>Search</button></form>{found_text}"
        )
    )
    listed = "".join(
        f'<li><a href="#turn-{place.turn}">turn {place.turn}, {plain(place.where)}</a> '
        f"<small>{place.matches}</small> <q>{place.excerpt}</q></li>"
        for place in places
    )
    places_list = (
        f'<details class="places"><summary>Where</summary><ol>{listed}</ol></details>'
        if listed
        else ""
    )
    return f'<div class="bar">{search}<ul class="flags">{marks_}</ul></div>{places_list}'


def _player(context: Context, run_id: str, found: Course) -> str:
    if not found.plays:
        return ""
    markers = [
        [turn.seconds, f"turn {turn.number}"] for turn in found.turns if turn.seconds is not None
    ]
    source = context.data("recording", id=run_id)
    return (
        f'<section class="player" aria-label="Terminal" data-source="{source}" '
        f'data-run="{plain(run_id)}" data-markers="{plain(json.dumps(markers))}">'
        '<div class="screen"></div><p class="now" role="status" aria-live="off"></p></section>'
    )
