"""A corpus in a cell of JupyterLab, as a Panel application of its own."""

from __future__ import annotations

import contextlib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from depthkit.dashboard import html
from depthkit.dashboard.html import Context, Site
from depthkit.dashboard.plots import histogram, plot_models
from depthkit.dashboard.source import Source
from depthkit.dashboard.text import plain
from depthkit.protocol import depth_text

if TYPE_CHECKING:
    from depthkit.corpus import Corpus

_MOST = 20
_SHEET = """
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 12px 3px 0; border-bottom: 1px solid #d9dee3; }
th { text-align: left; } th.n, td.n { text-align: right; }
ul { list-style: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: 2px 16px; }
li span { display: inline-block; width: 9px; height: 9px; border-radius: 50%; margin-right: 6px; }
"""
_LIGHT = {
    "#010101": "#1a1f24",
    "#020202": "#d9dee3",
    "#030303": "#ffffff",
    "#040404": "#c9d1d8",
    "#050505": "#0072b2",
}


def corpus_view(source: Source) -> Any:
    """The plane of depth and work with histograms and the tasks that are chosen in it.

    A brush in any plot chooses tasks in all; here Python answers it, so a notebook's kernel must
    be running.

    Returns:
        A Panel viewable.
    """
    pn: Any = import_module("panel")  # late: it takes seconds

    snapshot = source.load()
    context = Context(Site({"corpus": source.name}), "corpus", source, snapshot)
    if snapshot.problems and not snapshot.digest:
        return pn.pane.HTML(html.problems(snapshot.problems))
    models = plot_models(context, _LIGHT)
    tasks, edges = models.tasks, models.edges
    table = pn.pane.HTML(sizing_mode="stretch_width", min_height=120, stylesheets=[_SHEET])
    panes: list[Any] = []

    def show() -> None:
        chosen = models.source.selected.indices or range(len(tasks["task"]))
        for key, bins in models.bins.items():
            values = tasks["place" if key == "D" else key]
            known = [values[i] for i in chosen if key != "D" or tasks["D"][i] is not None]
            bins.data = {**bins.data, "chosen": histogram(known, edges[key])}
        table.object = _table(context, tasks, list(chosen))
        # A notebook's kernel, unlike a server, does not send by itself what changed in a plot.
        pn.io.push_notebook(*panes)

    def brushed(key: str) -> Any:
        def on(_name: str, _old: Any, new: list[int]) -> None:
            """Tasks that lie in the chosen bars."""
            values = tasks["place" if key == "D" else key]
            spans = [(edges[key][i], edges[key][i + 1]) for i in new]
            models.source.selected.indices = [
                i
                for i, value in enumerate(values)
                if value is not None and any(low <= value <= high for low, high in spans)
            ]
            show()  # In a notebook a change made in a callback calls no other.

        return on

    models.source.selected.on_change("indices", lambda attr, old, new: show())  # noqa: ARG005
    for key, bins in models.bins.items():
        bins.selected.on_change("indices", brushed(key))
    wide = {"sizing_mode": "stretch_width"}
    for key, figure in models.figures.items():
        # In a cell there is no height to stretch to.
        figure.update(sizing_mode="stretch_width", height=470 if key == "plane" else 150)
    bars = [pn.pane.Bokeh(models.figures[key], height=150, **wide) for key in ("D", "N", "W")]
    plane = pn.pane.Bokeh(models.figures["plane"], height=470, **wide)
    panes += [plane, *bars]
    show()
    heading = f"<p><b>{plain(source.name)}</b> {plain(snapshot.provenance)}</p>"
    # Side by side where there is room, else one above the other.
    sides = (
        pn.Column(plane, styles={"flex": "17 1 320px"}),
        pn.Column(*bars, styles={"flex": "10 1 320px"}),
    )
    return pn.Column(
        pn.pane.HTML(heading + html.problems(snapshot.problems), **wide),
        pn.FlexBox(*sides, **wide),
        pn.pane.HTML(_legend(tasks), stylesheets=[_SHEET], **wide),
        table,
        **wide,
    )


def _legend(tasks: dict[str, list[Any]]) -> str:
    colours = dict(zip(tasks["dataset"], tasks["by_dataset"], strict=True))
    items = "".join(
        f'<li><span style="background: {colour}"></span>{plain(name)}</li>'
        for name, colour in colours.items()
    )
    return f"<ul>{items}</ul>"


def _table(context: Context, tasks: dict[str, list[Any]], chosen: list[int]) -> str:
    order = sorted(chosen, key=lambda i: (-(tasks["D"][i] or 0), -tasks["W"][i]))
    caps = context.snapshot.caps
    rows = [
        [
            plain(tasks["task"][i]),
            plain(tasks["dataset"][i]),
            plain(depth_text(tasks["D"][i], caps) or "not solved"),
            plain(html.written(tasks["N"][i], "number")),
            plain(html.written(tasks["W"][i], "number")),
        ]
        for i in order[:_MOST]
    ]
    count = f"<p>{len(chosen):,} of {len(tasks['task']):,} tasks chosen"
    more = f"; the deepest {_MOST} are shown" if len(order) > _MOST else ""
    heads = ("Task", "Data set", "D", "N", "W")
    return f"{count}{more}.</p>" + html.table(heads, rows, numeric=(2, 3, 4), label="Tasks")


def app(corpus: Corpus | str | Path) -> Any:
    """The overview of a corpus for a cell of a notebook.

    Args:
        corpus: A corpus, or the name or directory of one.

    Returns:
        A Panel viewable; the last line of a cell shows it.
    """
    pn: Any = import_module("panel")  # late: it takes seconds

    with contextlib.suppress(AttributeError):  # outside a notebook there is nothing to prepare
        pn.extension()
    return corpus_view(Source(corpus))
