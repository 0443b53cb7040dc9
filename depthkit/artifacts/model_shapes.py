"""Elements of the figures about models: lines, bars and error bars in the colours of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from depthkit.artifacts import figures
from depthkit.artifacts.datasets import Style


class Bar(NamedTuple):
    """A rectangle between two corners, with what hovering over it says."""

    x0: float
    y0: float
    x1: float
    y1: float
    said: str


def bars(
    rectangles: Sequence[Bar], fill: str, backend: figures.Backend, *, name: str | None = None
) -> Any:
    """Rectangles of one colour, named in the legend if there is a name."""
    import holoviews as hv

    # Neither backend puts rectangles into a legend; a mark out of sight stands for them there.
    shown = hv.Rectangles(list(rectangles), vdims=["said"])
    if backend == "matplotlib":
        shown = shown.opts(backend=backend, color=fill, edgecolor=figures.DARK, linewidth=0.5)
    else:
        shown = shown.opts(
            backend=backend,
            color=fill,
            line_color=figures.DARK,
            line_width=0.8,
            tools=["hover"],
            hover_tooltips=[("", "@said")],
        )
    if name is None or not rectangles:
        return hv.Overlay([shown])
    key = hv.Points([(float("nan"), float("nan"))], label=name)
    look: dict[str, Any] = {"color": fill, "marker": "s", "s": 22, "edgecolors": figures.DARK}
    look |= {"linewidth": 0.5}
    if backend == "bokeh":
        look = {"color": fill, "marker": "square", "size": 11, "line_color": figures.DARK}
    return hv.Overlay([shown, key.opts(backend=backend, **look)])


def line(
    places: Sequence[tuple[float, float]],
    style: Style,
    backend: figures.Backend,
    *,
    name: str,
    said: Sequence[str],
) -> Any:
    """A line through marks, with the marks' look named in the legend."""
    import holoviews as hv
    import pandas as pd

    width = {"linewidth": 1.0} if backend == "matplotlib" else {"line_width": 2}
    path = hv.Curve(list(places)).opts(backend=backend, color=style.colour, **width)
    cloud = pd.DataFrame(places, columns=["x", "y"]).assign(said=list(said))
    return path * figures.points(cloud, "x", "y", style, backend, label=name)


def spans(segments: Sequence[tuple[float, float, float, float]], backend: figures.Backend) -> Any:
    """Thin dark lines from (x0, y0) to (x1, y1), such as error bars."""
    import holoviews as hv

    width = {"linewidth": 0.8} if backend == "matplotlib" else {"line_width": 1.5}
    return hv.Segments(list(segments)).opts(backend=backend, color=figures.DARK, **width)


def marks(
    places: Sequence[tuple[float, float, str]],
    style: Style,
    backend: figures.Backend,
    *,
    filled: bool,
) -> Any:
    """Marks of a model, filled or open; hovering says the third of each."""
    import holoviews as hv

    cloud = hv.Points(list(places), vdims=["said"])
    face = style.colour if filled else "#FFFFFF"
    if backend == "matplotlib":
        edge = figures.DARK if filled else style.colour
        look: dict[str, Any] = {"marker": style.mpl, "s": 22, "edgecolors": edge}
        return cloud.opts(backend=backend, color=face, linewidth=0.4 if filled else 1.2, **look)
    return cloud.opts(
        backend=backend,
        color=face,
        marker=style.bokeh,
        size=10,
        line_color=figures.DARK if filled else style.colour,
        line_width=0.8 if filled else 2,
        tools=["hover"],
        hover_tooltips=[("", "@said")],
    )


def texts(places: Sequence[tuple[float, float, str]], ink: str, backend: figures.Backend) -> Any:
    """Small texts centred at their places."""
    import holoviews as hv

    labels = hv.Labels(list(places))
    if backend == "matplotlib":
        return labels.opts(backend=backend, color=ink, size=5.5)
    return labels.opts(backend=backend, text_color=ink, text_font_size="9pt")
