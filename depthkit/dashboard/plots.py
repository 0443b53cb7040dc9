"""The plots of the overview: tasks on the plane of depth and work, and histograms of D, N and W.

They are Bokeh models as JSON; ``overview.js`` draws and links them in the browser, so that a brush
answers at once and still does when the server has gone to sleep. No model here holds code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from depthkit.artifacts.datasets import styles
from depthkit.artifacts.figures import cap_position, cap_ticks
from depthkit.dashboard.marked import marks_by_target
from depthkit.protocol import ABOVE, depth_text

if TYPE_CHECKING:
    from depthkit.dashboard.html import Context

INK, RULE, SURFACE = "#010101", "#020202", "#030303"
"""Stand for colours of the theme; the page puts them in."""

BAR, CHOSEN = "#040404", "#050505"

_BINS = 24
_RATES = ("#b2543b", "#d08a5c", "#d9b98a", "#9fb8c4", "#5f9bc4", "#1f77b4")
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
        "said": [depth_text(row["D"], caps) or "not solved" for row in rows],
        "href": [
            context.site.page(context.key, "task", _task_query(row["dataset"], row["task_id"]))
            for row in rows
        ],
    }


def _task_query(dataset: str, task_id: str) -> str:
    from urllib.parse import urlencode

    return urlencode({"dataset": dataset, "task": task_id}, errors="replace")


def _rate_colour(share: float | None) -> str:
    return _UNKNOWN if share is None else _RATES[min(len(_RATES) - 1, int(share * len(_RATES)))]


def histogram(values: Sequence[float | None], edges: Sequence[float]) -> list[int]:
    """How many values lie between each two edges; the last is included."""
    known = np.array([value for value in values if value is not None], dtype=float)
    return [int(n) for n in np.histogram(known, bins=np.asarray(edges, dtype=float))[0]]


def edges_of(values: Sequence[int | None]) -> list[float]:
    """Edges of bins of equal width on a logarithmic axis."""
    known = [value for value in values if value]
    low, top = min(known, default=1) * 0.9, max(known, default=1) * 1.05
    return [float(e) for e in np.geomspace(low, max(2 * low, top), _BINS + 1)]


@dataclass(frozen=True)
class Plots:
    """The models of the overview.

    Attributes:
        tasks: As :func:`tasks_on_plane`.
        source: The data source of the marks; its selection is what is chosen.
        figures: ``plane``, ``D``, ``N`` and ``W``.
        bins: The data source of each histogram, with ``all`` and ``chosen``.
        edges: Of the bins of each histogram.
    """

    tasks: dict[str, list[Any]]
    source: Any
    figures: dict[str, Any]
    bins: dict[str, Any]
    edges: dict[str, list[float]]


def plot_models(context: Context, theme: Mapping[str, str] | None = None) -> Plots:
    """The plots as Bokeh models.

    Args:
        context: The corpus.
        theme: Colours to put in for those that stand for a theme's; as they are if ``None``.
    """
    from bokeh.models import ColumnDataSource

    shade = _Shade(theme or {})
    data = tasks_on_plane(context)
    caps = context.snapshot.caps
    source = ColumnDataSource(data=data, name="tasks")
    places = [None if d is None else p for d, p in zip(data["D"], data["place"], strict=True)]
    edges = {
        "D": [i - 0.5 for i in range(len(caps) + 2)],
        "N": edges_of(data["N"]),
        "W": edges_of(data["W"]),
    }
    values = {"D": places, "N": data["N"], "W": data["W"]}
    figures, bins = {"plane": _plane(source, caps, shade)}, {}
    for key in ("D", "N", "W"):
        ticks = cap_ticks(caps) if key == "D" else None
        figures[key], bins[key] = _bars(key, values[key], edges[key], shade, ticks)
    return Plots(data, source, figures, bins, edges)


def plots_json(context: Context) -> str:
    """The plots as a Bokeh document item each, for ``overview.js``."""
    from bokeh.embed import json_item

    made = plot_models(context)
    count = context.snapshot.value("SELECT count(*) FROM tasks")
    return json.dumps(
        {
            "items": {name: json_item(figure) for name, figure in made.figures.items()},
            "caps": list(context.snapshot.caps),
            "edges": made.edges,
            "above": ABOVE,
            "left_out": count - len(made.tasks["task"]),
            "marks": _marks(context, made.tasks),
        },
        ensure_ascii=True,
        default=str,
    )


def _marks(context: Context, tasks: dict[str, list[Any]]) -> dict[int, dict[str, list[str]]]:
    """Labels and notes of tasks and their runs, by place among the tasks; of those with some."""
    places = {key: n for n, key in enumerate(zip(tasks["dataset"], tasks["task"], strict=True))}
    found: dict[int, dict[str, list[str]]] = {}
    for target, marks in marks_by_target(context.snapshot).items():
        place = places.get((target.dataset, target.task_id))
        if place is not None:
            kept = found.setdefault(place, {"labels": [], "notes": []})
            kept["labels"] += marks.labels
            kept["notes"] += [note.lower() for note in marks.notes]
    return found


class _Shade:
    """Colours of a theme by what stands for them."""

    def __init__(self, theme: Mapping[str, str]) -> None:
        self._theme = theme

    def __call__(self, colour: str) -> str:
        return self._theme.get(colour, colour)


def _frame(title: str, shade: _Shade, **options: Any) -> Any:
    from bokeh.models.annotations import Title
    from bokeh.plotting import figure

    made = figure(
        toolbar_location=None,
        sizing_mode="stretch_both",
        background_fill_color=shade(SURFACE),
        border_fill_color=shade(SURFACE),
        outline_line_color=None,
        min_border=4,
        title=Title(
            text=title, text_color=shade(INK), text_font_size="12px", text_font_style="normal"
        ),
        **options,
    )
    for axis in made.axis:
        axis.axis_line_color = shade(RULE)
        axis.major_tick_line_color = shade(RULE)
        axis.minor_tick_line_color = None
        axis.major_label_text_color = shade(INK)
        axis.axis_label_text_color = shade(INK)
        axis.major_label_text_font_size = "11px"
        axis.axis_label_text_font_size = "12px"
        axis.axis_label_text_font_style = "normal"
    made.grid.grid_line_color = shade(RULE)
    made.grid.grid_line_alpha = 0.5
    return made


def _plane(source: Any, caps: Sequence[int], shade: _Shade) -> Any:
    from bokeh.models import BoxSelectTool, HoverTool, TapTool

    made = _frame(
        "",
        shade,
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
        line_color=shade(INK),
        line_width=0.4,
        fill_alpha=0.85,
        line_alpha=0.7,
        selection_fill_color="by_dataset",
        nonselection_fill_color="by_dataset",
        nonselection_fill_alpha=0.2,
        nonselection_line_alpha=0.12,
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
    shade: _Shade,
    ticks: Sequence[tuple[float, str]] | None = None,
) -> tuple[Any, Any]:
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
        shade,
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
        fill_color=shade(BAR),
        line_color=shade(SURFACE),
    )
    chosen = made.quad(
        left="left",
        right="right",
        top="chosen",
        bottom=0,
        source=source,
        fill_color=shade(CHOSEN),
        line_color=shade(SURFACE),
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
    return made, source


def _plain_numbers() -> Any:
    from bokeh.models import NumeralTickFormatter

    return NumeralTickFormatter(format="0,0")


def _set_ticks(axis: Any, ticks: Sequence[tuple[float, str]]) -> None:
    from bokeh.models import FixedTicker

    axis.ticker = FixedTicker(ticks=[place for place, _ in ticks])
    axis.major_label_overrides = {
        int(place) if float(place).is_integer() else place: text for place, text in ticks
    }
