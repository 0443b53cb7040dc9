"""The page Search: what stands in any trajectory, with links to the turns."""

from __future__ import annotations

from urllib.parse import urlencode

from depthkit.artifacts.model_styles import label as model_label
from depthkit.corpus.files import counted
from depthkit.dashboard import html
from depthkit.dashboard.html import Context
from depthkit.dashboard.listing import RUNS, Query, View
from depthkit.dashboard.pages.marks import mark_fields
from depthkit.dashboard.search import MOST_NEEDLE, Hit, run_ids, search_runs
from depthkit.dashboard.text import exact, plain

_PLACES = 5


def search_page(context: Context, query: Query) -> str:
    """Search for ``find`` in the runs of the view that the rest of the query gives."""
    needle = (query.get("find") or [""])[0][:MOST_NEEDLE]
    after = (query.get("after") or ["0"])[0]
    start = int(after) if after.isdigit() and len(after) < 10 else 0
    view = View.parse(RUNS, query)
    body = f"<h1>Search</h1>{_form(context, view, needle)}"
    if needle and context.source.corpus is not None:
        ids = run_ids(context.snapshot, view)
        found = search_runs(context.source.corpus, ids, needle, start=start)
        matches = sum(hit.matches for hit in found.hits)
        looked = f"Searched {found.searched - start:,} of {found.total:,} runs"
        if start:
            looked += f", beginning with number {start + 1:,}"
        if found.without_files:
            looked += f"; {found.without_files:,} of them have no trajectory here"
        body += (
            f'<p class="found" role="status"><b>{matches:,}</b> '
            f"match{'' if matches == 1 else 'es'} in {counted(len(found.hits), 'run')}. "
            f"{looked}.</p>"
        )
        body += html.problems(found.problems, "remark")
        body += f'<ol class="hits">{"".join(_hit(context, hit, needle) for hit in found.hits)}</ol>'
        if not found.done:
            pairs = [("find", needle), *view.pairs(), ("after", str(found.searched))]
            href = context.page("search", urlencode(pairs, errors="replace"))
            left = found.total - found.searched
            text = f"Search the other {left:,} runs"
            body += f'<p><a class="tool" rel="next" href="{href}">{text}</a></p>'
    elif not needle:
        body += (
            '<p class="hint">Finds text in everything the agents were told, said, typed and were '
            "shown, in any letter case. Filter the runs first on the page "
            f'<a href="{context.page("runs")}">Runs</a> if you like; its filters can be taken '
            "along in the address.</p>"
        )
    return html.document(context, "search", f"Search {needle}".strip(), body)


def _form(context: Context, view: View, needle: str) -> str:
    own = ("dataset", "model", "label", "note")
    hidden = html.hidden(view.pairs(), "page", "size", "sort", "columns", *own)

    def select(key: str, title: str, values: tuple[str, ...]) -> str:
        chosen = view.choices.get(key, ())
        options = "".join(
            f'<option value="{exact(value)}"{" selected" if value in chosen else ""}>'
            f"{plain(model_label(value) if key == 'model' else value)}</option>"
            for value in values
        )
        return (
            f'<select name="{key}" aria-label="{title}"><option value="">{title}: all</option>'
            f"{options}</select>"
        )

    return (
        f'<form class="search wide" action="{context.page("search")}" role="search">'
        f'<input id="q" type="search" name="find" value="{exact(needle)}" required '
        f'maxlength="{MOST_NEEDLE}" aria-label="Find in all trajectories" '
        'placeholder="text in any trajectory" autofocus>'
        f"{select('dataset', 'data set', context.snapshot.datasets)}"
        f"{select('model', 'model', context.snapshot.models)}"
        f"{mark_fields(context, view.marked)}{hidden}<button>Search</button></form>"
    )


def _hit(context: Context, hit: Hit, needle: str) -> str:
    run = context.snapshot.run(hit.run_id)
    assert run is not None
    cap = "no cap" if run["cap"] is None else f"cap {run['cap']}"
    places = "".join(
        f'<li><a href="{context.run(hit.run_id, q=needle)}#turn-{place.turn}">turn {place.turn}, '
        f"{plain(place.where)}</a> <small>{place.matches}</small> <q>{place.excerpt}</q></li>"
        for place in hit.places[:_PLACES]
    )
    rest = len(hit.places) - _PLACES
    more = (
        f'<li><a href="{context.run(hit.run_id, q=needle)}">{rest} more places</a></li>'
        if rest > 0
        else ""
    )
    return (
        f'<li class="hit"><h2><a class="row" href="{context.run(hit.run_id, q=needle)}">'
        f"{plain(run['task_id'])}</a> <small>{html.dataset(context, run['dataset'])} "
        f"{plain(model_label(run['model']))}, {cap}</small> {html.ending(run['ending'])} "
        f"<small>{hit.matches:,} match{'' if hit.matches == 1 else 'es'}</small></h2>"
        f"<ul>{places}{more}</ul></li>"
    )
