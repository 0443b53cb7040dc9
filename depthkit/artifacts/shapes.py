"""Elements that several figures share: rows of estimates with intervals, and counts in a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from depthkit.artifacts import figures
from depthkit.artifacts.datasets import styles

SLATE = "#56606B"
"""The human-curated data sets together, for which the data sets' own colours do not stand."""


class Mark(NamedTuple):
    """One estimate of a row: its place, its interval (``nan`` for none) and its look."""

    row: int
    value: float
    low: float
    high: float
    colour: str
    filled: bool = True
    shift: float = 0.0
    said: str = ""


def colour(sample: str) -> str:
    """Of a sample: its data set's, and one for those that are several data sets together."""
    return SLATE if sample.startswith("human-curated") else styles([sample])[sample].colour


def ink(fill: str) -> str:
    """The same hue, dark enough for a thin line on white."""
    parts = [int(fill[start : start + 2], 16) for start in (1, 3, 5)]
    lightness = (0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]) / 255
    scale = min(1.0, 0.62 / max(lightness, 0.01))
    return "#" + "".join(f"{round(part * scale):02X}" for part in parts)


def forest(
    marks: Sequence[Mark],
    names: Sequence[str],
    backend: figures.Backend,
    *,
    xlabel: str,
    zero: bool = True,
) -> Any:
    """Rows of marks with their intervals, the first row at the top; a finished panel.

    Args:
        marks: What is drawn; one without a value is left out.
        names: Of the rows.
        backend: For which to draw.
        xlabel: What the marks measure.
        zero: Whether zero has a dashed line.
    """
    import holoviews as hv

    mpl = backend == "matplotlib"
    shown = figures.rules(0.0, None, backend) if zero else hv.Overlay([])
    known = [mark for mark in marks if not pd.isna(mark.value)]
    for mark in known:
        y, edge = _place(mark.row, names) + mark.shift, ink(mark.colour)
        if not pd.isna(mark.low):
            line = hv.Segments([(mark.low, y, mark.high, y)])
            width = {"linewidth": 1.1} if mpl else {"line_width": 2}
            shown *= line.opts(backend=backend, color=edge, **width)
        point = hv.Points([(mark.value, y, mark.said)], vdims=["said"])
        face = mark.colour if mark.filled else "#FFFFFF"
        if mpl:
            look: dict[str, Any] = {"s": 18, "edgecolors": edge, "linewidth": 1.0}
        else:
            look = {"size": 9, "line_color": edge, "line_width": 2, "tools": ["hover"]}
            look["hover_tooltips"] = [("", "@said")]
        shown *= point.opts(backend=backend, color=face, **look)
    edges = [v for m in known for v in (m.value, m.low, m.high) if not pd.isna(v)] or [1.0]
    low, high = min(0.0, *edges), max(0.0, *edges)
    margin = 0.06 * (high - low)
    return figures.panel(
        shown,
        backend,
        xlabel=xlabel,
        ylabel="",
        xlim=(low - margin, high + margin),
        yticks=[(_place(row, names), name) for row, name in enumerate(names)] or [(0.0, "")],
        ylim=(-0.6, max(1, len(names)) - 0.4),
    )


def grid(
    cells: pd.DataFrame,
    rows: Sequence[str],
    columns: Sequence[str],
    backend: figures.Backend,
    *,
    xlabel: str,
    ylabel: str = "",
    diagonal: bool = False,
) -> Any:
    """Counts in a grid, darker for a greater share of their row; a finished panel.

    Args:
        cells: ``row`` and ``column`` (names from the next two), ``tasks`` (count) and ``share``.
        rows: From the top.
        columns: From the left.
        backend: For which to draw.
        xlabel: What the columns are.
        ylabel: What the rows are.
        diagonal: Whether a dashed line goes up from the first column of the last row.
    """
    import holoviews as hv

    mpl = backend == "matplotlib"
    boxes: list[tuple[Any, ...]] = []
    dark: list[tuple[float, float, str]] = []
    light: list[tuple[float, float, str]] = []
    for cell in cells.to_dict("records"):
        if not cell["tasks"] or pd.isna(cell["share"]):
            continue
        x, y = float(columns.index(cell["column"])), _place(rows.index(cell["row"]), rows)
        boxes.append((x - 0.47, y - 0.42, x + 0.47, y + 0.42, _shade(cell["share"])))
        (light if cell["share"] > 0.55 else dark).append((x, y, f"{cell['tasks']:d}"))
    if not boxes:
        shown = hv.Overlay([])
    else:
        edge = {"linewidth": 0.3, "edgecolor": "#AAAAAA"} if mpl else {"line_color": "#AAAAAA"}
        drawn = hv.Rectangles(boxes, vdims="shade").opts(backend=backend, color="shade", **edge)
        line = [equal(-0.5, min(len(rows), len(columns)) - 0.5, backend)] if diagonal else []
        shown = hv.Overlay([*line, drawn])
    size = {"size": 6} if mpl else {"text_font_size": "9pt"}
    for texts, ink in ((dark, figures.DARK), (light, "#FFFFFF")):
        if texts:
            ink_option = {"color" if mpl else "text_color": ink}
            shown *= hv.Labels(texts).opts(backend=backend, **ink_option, **size)
    return figures.panel(
        shown,
        backend,
        xlabel=xlabel,
        ylabel=ylabel,
        xticks=[(float(place), name) for place, name in enumerate(columns)] or [(0.0, "")],
        xlim=(-0.6, max(1, len(columns)) - 0.4),
        yticks=[(_place(row, rows), name) for row, name in enumerate(rows)] or [(0.0, "")],
        ylim=(-0.6, max(1, len(rows)) - 0.4),
    )


def equal(low: float, high: float, backend: figures.Backend) -> Any:
    """A dashed line on which both axes have equal values, between two of them."""
    import holoviews as hv

    look: dict[str, Any] = {"line_dash": "dashed", "line_width": 1}
    if backend == "matplotlib":
        look = {"linestyle": "--", "linewidth": 0.8}
    return hv.Curve([(low, low), (high, high)]).opts(backend=backend, color=figures.DARK, **look)


def bars(
    heights: Sequence[float],
    names: Sequence[str],
    over: Sequence[str],
    fill: str,
    backend: figures.Backend,
    **options: Any,
) -> Any:
    """Standing bars from 0 on an axis from 0 to 1, each with a text over it; a finished panel."""
    import holoviews as hv

    mpl = backend == "matplotlib"
    shown = hv.Overlay([])
    known = [(float(x), y) for x, y in enumerate(heights) if not pd.isna(y)]
    if known:
        edge = {"edgecolor": figures.DARK, "linewidth": 0.5} if mpl else {}
        edge = edge or {"line_color": figures.DARK}
        boxes = hv.Rectangles([(x - 0.36, 0, x + 0.36, y) for x, y in known])
        shown *= boxes.opts(backend=backend, color=fill, **edge)
        texts = hv.Labels([(x, y + 0.05, over[int(x)]) for x, y in known])
        size: dict[str, Any] = {"size": 5.5} if mpl else {"text_font_size": "9pt"}
        size["color" if mpl else "text_color"] = figures.DARK
        shown *= texts.opts(backend=backend, **size)
    return figures.panel(
        shown,
        backend,
        xticks=[(float(x), name) for x, name in enumerate(names)] or [(0.0, "")],
        xlim=(-0.6, max(1, len(names)) - 0.4),
        ylim=(0, 1.1),
        **options,
    )


def _place(row: int, rows: Sequence[Any]) -> float:
    """Height of a row, the first at the top."""
    return float(len(rows) - 1 - row)


def _shade(share: float) -> str:
    """From near white to dark blue, monotone in lightness so that it also reads in grey."""
    ends = ((0xF0, 0xF4, 0xF8), (0x0B, 0x3C, 0x6F))
    mixed = (round(a + (b - a) * share) for a, b in zip(*ends, strict=True))
    return "#" + "".join(f"{part:02X}" for part in mixed)
