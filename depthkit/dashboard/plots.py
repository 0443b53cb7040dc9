"""The plots of the overview: tasks on the plane of depth and work, and histograms of D, N and W.

They are Bokeh models as JSON; ``overview.js`` draws and links them in the browser, so that a brush
answers at once and still does when the server has gone to sleep. No model here holds code.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from depthkit.artifacts.datasets import styles
from depthkit.artifacts.figures import cap_position, cap_ticks
from depthkit.protocol import ABOVE

if TYPE_CHECKING:
    from depthkit.dashboard.html import Context

INK, RULE, SURFACE = "#010101", "#020202", "#030303"
"""Stand for colours of the theme; the page puts them in."""

BAR, CHOSEN = "#040404", "#050505"

_BINS = 24
_RATES = ("#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#fde725")
_OUTCOMES = {"solved": "#0072B2", "not solved": "#E69F00", "not known": "#999999"}
_UNKNOWN = "#bbbbbb"


def tasks_on_plane(context: Context, seed: int = 0) -> dict[str, list[Any]]:
    """One item a task with W, in columns: names, D, N, W, places on the plane, colours, address.

    A task that is not solved has no D; it stands in a row of its own above the caps.
    """
    rows = context.snapshot.rows(
        "SELECT dataset, task_id, D, N, W, outcome, pass_share, final FROM tasks "
        "WHERE W IS NOT NULL AND (D IS NOT NULL OR outcome = 'not solved') ORDER BY place"
    )
    caps = context.snapshot.caps
    look = styles(context.snapshot.datasets)
    depths = np.array([np.nan if row["D"] is None else row["D"] for row in rows], dtype=float)
    places = np.array(cap_position(depths, caps)) if len(rows) else depths
    places = np.where(np.isnan(depths), len(caps) + 1.0, places)
    jitter = np.random.default_rng(seed).uniform(-0.3, 0.3, len(rows))
    shares = [row["pass_share"] for row in rows]
    return {
        "dataset": [row["dataset"] for row in rows],
        "task": [row["task_id"] for row in rows],
        "D": [row["D"] for row in rows],
        "N": [row["N"] for row in rows],
        "W": [row["W"] for row in rows],
        "place": places.tolist(),
        "x": [max(1, row["W"]) for row in rows],
        "y": (places + jitter).tolist(),
        "by_dataset": [look[row["dataset"]].colour for row in rows],
        "by_outcome": [_OUTCOMES[row["outcome"]] for row in rows],
        "by_rate": [_rate_colour(share) for share in shares],
        "marker": [look[row["dataset"]].bokeh for row in rows],
        "rate": [None if share is None else round(share, 3) for share in shares],
        "said": [_said(row["D"], caps) for row in rows],
        "href": [
            context.site.page(context.key, "task", _task_query(row["dataset"], row["task_id"]))
            for row in rows
        ],
    }


def _task_query(dataset: str, task_id: str) -> str:
    from urllib.parse import urlencode

    return urlencode({"dataset": dataset, "task": task_id}, errors="replace")


def _said(depth: int | None, caps: Sequence[int]) -> str:
    if depth is None:
        return "not solved"
    return f">{caps[-1]}" if depth >= ABOVE else str(depth)


def _rate_colour(share: float | None) -> str:
    return _UNKNOWN if share is None else _RATES[min(len(_RATES) - 1, int(share * len(_RATES)))]


def histogram(values: Sequence[float | None], edges: Sequence[float]) -> list[int]:
    """How many values lie between each two edges; the last is included."""
    known = np.array([value for value in values if value is not None], dtype=float)
    return [int(n) for n in np.histogram(known, bins=np.asarray(edges, dtype=float))[0]]


def edges_of(values: Sequence[int | None]) -> list[float]:
    """Edges of bins of equal width on a logarithmic axis."""
    known = [value for value in values if value is not None]
    top = max(known, default=1)
    return [float(e) for e in np.geomspace(0.9, max(2.0, top * 1.05), _BINS + 1)]


def plots_json(context: Context) -> str:
    """The plots as a Bokeh document item each, with the tasks, for ``overview.js``."""
    from bokeh.embed import json_item
    from bokeh.models import ColumnDataSource

    data = tasks_on_plane(context)
    caps = context.snapshot.caps
    source = ColumnDataSource(data=data, name="tasks")
    bins = [i - 0.5 for i in range(len(caps) + 3)]
    places = [None if d is None else p for d, p in zip(data["D"], data["place"], strict=True)]
    work_edges, turn_edges = edges_of(data["W"]), edges_of(data["N"])
    made = {
        "plane": _plane(source, caps),
        "D": _bars("D", places, bins[: len(caps) + 2], ticks=cap_ticks(caps)),
        "N": _bars("N", data["N"], turn_edges),
        "W": _bars("W", data["W"], work_edges),
    }
    items = {name: json_item(figure) for name, figure in made.items()}
    edges = {"D": bins[: len(caps) + 2], "N": turn_edges, "W": work_edges}
    left_out = context.snapshot.value("SELECT count(*) FROM tasks") - len(data["task"])
    return json.dumps(
        {"items": items, "caps": list(caps), "edges": edges, "above": ABOVE, "left_out": left_out},
        ensure_ascii=True,
        default=str,
    )


def _frame(title: str, **options: Any) -> Any:
    from bokeh.models.annotations import Title
    from bokeh.plotting import figure

    made = figure(
        toolbar_location=None,
        sizing_mode="stretch_both",
        background_fill_color=SURFACE,
        border_fill_color=SURFACE,
        outline_line_color=None,
        min_border=4,
        title=Title(text=title, text_color=INK, text_font_size="12px", text_font_style="normal"),
        **options,
    )
    for axis in made.axis:
        axis.axis_line_color = RULE
        axis.major_tick_line_color = RULE
        axis.minor_tick_line_color = None
        axis.major_label_text_color = INK
        axis.axis_label_text_color = INK
        axis.major_label_text_font_size = "11px"
        axis.axis_label_text_font_size = "12px"
        axis.axis_label_text_font_style = "normal"
    made.grid.grid_line_color = RULE
    made.grid.grid_line_alpha = 0.5
    return made


def _plane(source: Any, caps: Sequence[int]) -> Any:
    from bokeh.models import BoxSelectTool, HoverTool, TapTool

    made = _frame(
        "",
        x_axis_type="log",
        y_range=(-0.6, len(caps) + 1.6),
        tools=[],
        name="plane",
    )
    box = BoxSelectTool()
    made.add_tools(
        box,
        TapTool(),
        HoverTool(
            tooltips=[
                ("task", "@dataset/@task"),
                ("D", "@said"),
                ("N", "@N"),
                ("W", "@W"),
                ("passes", "@rate{0%}"),
            ]
        ),
    )
    made.toolbar.active_drag = box
    made.scatter(
        "x",
        "y",
        source=source,
        marker="marker",
        size=7,
        fill_color="by_dataset",
        line_color=INK,
        line_width=0.4,
        fill_alpha=0.85,
        line_alpha=0.7,
        selection_fill_color="by_dataset",
        nonselection_fill_color="by_dataset",
        nonselection_fill_alpha=0.08,
        nonselection_line_alpha=0.05,
        name="marks",
    )
    made.xaxis.axis_label = "W (lines of the reference solution)"
    made.yaxis.axis_label = "D (turns)"
    made.xaxis.formatter = _plain_numbers()
    ticks = [*cap_ticks(caps), (len(caps) + 1.0, "unsolved")]
    _set_ticks(made.yaxis[0], ticks)
    made.grid.grid_line_alpha = 0.35
    return made


def _bars(
    name: str,
    values: Sequence[float | None],
    edges: Sequence[float],
    ticks: Sequence[tuple[float, str]] | None = None,
) -> Any:
    from bokeh.models import BoxSelectTool, ColumnDataSource, HoverTool

    counts = histogram(values, edges)
    source = ColumnDataSource(
        data={
            "left": list(edges[:-1]),
            "right": list(edges[1:]),
            "all": counts,
            "chosen": list(counts),
        },
        name=f"bins-{name}",
    )
    titles = {"D": "D, depth in turns", "N": "N, turns of the free run", "W": "W, lines"}
    made = _frame(
        titles[name],
        x_axis_type="linear" if ticks else "log",
        x_range=(edges[0], edges[-1]),
        y_range=(0, max(1, *counts) * 1.08 if counts else 1),
        tools=[],
        name=f"bars-{name}",
    )
    box = BoxSelectTool(dimensions="width")
    bars = made.quad(
        left="left",
        right="right",
        top="all",
        bottom=0,
        source=source,
        fill_color=BAR,
        line_color=SURFACE,
    )
    chosen = made.quad(
        left="left",
        right="right",
        top="chosen",
        bottom=0,
        source=source,
        fill_color=CHOSEN,
        line_color=SURFACE,
        name="chosen",
    )
    for renderer in (bars, chosen):
        renderer.nonselection_glyph = None
        renderer.selection_glyph = None
    made.add_tools(
        box, HoverTool(tooltips=[("tasks", "@all"), ("chosen", "@chosen")], renderers=[bars])
    )
    made.toolbar.active_drag = box
    made.xgrid.grid_line_color = None
    made.yaxis.ticker.desired_num_ticks = 3
    if ticks:
        _set_ticks(made.xaxis[0], ticks)
    else:
        made.xaxis.formatter = _plain_numbers()
    return made


def _plain_numbers() -> Any:
    from bokeh.models import NumeralTickFormatter

    return NumeralTickFormatter(format="0,0")


def _set_ticks(axis: Any, ticks: Sequence[tuple[float, str]]) -> None:
    from bokeh.models import FixedTicker

    axis.ticker = FixedTicker(ticks=[place for place, _ in ticks])
    axis.major_label_overrides = {
        int(place) if float(place).is_integer() else place: text for place, text in ticks
    }
