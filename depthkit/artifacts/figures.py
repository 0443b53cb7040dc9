"""How figures are drawn: elements shared by all of them, and the two ways to put them out.

A figure is a HoloViews layout of panels, made for one of two backends. Bokeh draws it for the
screen, a panel a plot, so that panels can wrap on a narrow page; Matplotlib draws it for print,
all panels in one drawing of the paper's text width.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from depthkit.artifacts.datasets import Style
from depthkit.protocol import ABOVE

Backend = Literal["bokeh", "matplotlib"]

TEXT_WIDTH = 5.5
"""Width of the papers' text, in inches."""

COLUMN_WIDTH = 2.7
"""Width of a figure of which two stand side by side, in inches."""

DPI = 300
"""Of figures as PNG."""

HEIGHT = 2.5
"""Height of a figure in print, in inches."""

DARK = "#333333"


def load_backends() -> None:
    """Register both plotting backends, without HoloViews' notebook extension.

    The extension would write scripts with outside addresses into the page.
    """
    hv = _registered()
    if hv.Store.current_backend != "bokeh":  # setting it again makes all of ``hv.opts`` anew
        hv.Store.set_current_backend("bokeh")


@functools.cache
def _registered() -> Any:
    """HoloViews, with both backends."""
    import holoviews as hv
    import holoviews.plotting.bokeh
    import holoviews.plotting.mpl

    hv.Store.set_current_backend("bokeh")
    return hv


# --- elements ---


def cap_position(depth: Any, caps: Sequence[int]) -> Any:
    """Place of D on an axis where caps are evenly spaced: 0 for the first, one a cap.

    Values between two caps (percentiles) lie between their places; everything above the largest
    cap has the place after it.

    Args:
        depth: A number or an array of them, ``nan`` allowed.
        caps: The scale, in increasing order.
    """
    return np.interp(depth, [*caps, ABOVE], np.arange(len(caps) + 1))


def cap_ticks(caps: Sequence[int]) -> list[tuple[float, str]]:
    """Ticks for :func:`cap_position`."""
    names = [str(cap) for cap in caps] + [f">{caps[-1]}"]
    return [(float(place), name) for place, name in enumerate(names)]


def log_axis(values: pd.Series) -> tuple[tuple[float, float], list[tuple[float, str]]]:
    """Limits and ticks of a logarithmic axis for these values, with numbers written out.

    Ticks are the powers of ten, or 1, 2 and 5 of each decade where that gives fewer than three.
    """
    known = values[values > 0]
    low, high = (known.min() / 1.4, known.max() * 1.4) if len(known) else (1.0, 100.0)
    powers = [10.0**e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    ticks = [tick for tick in powers if low <= tick <= high]
    if len(ticks) < 3:
        ticks = [m * power for power in powers for m in (1, 2, 5) if low <= m * power <= high]
    return (float(low), float(high)), [(tick, f"{tick:,g}") for tick in ticks]


def points(
    frame: pd.DataFrame, x: str, y: str, style: Style, backend: Backend, *, label: str
) -> Any:
    """A cloud of points, one a row; hovering shows the frame's other columns."""
    import holoviews as hv

    cloud = hv.Points(frame, [x, y], [c for c in frame if c not in (x, y)], label=label)
    if backend == "matplotlib":
        return cloud.opts(
            backend=backend,
            color=style.colour,
            marker=style.mpl,
            s=11,
            edgecolors=DARK,
            linewidth=0.3,
            alpha=0.75,
        )
    return cloud.opts(
        backend=backend,
        color=style.colour,
        marker=style.bokeh,
        size=7,
        line_color=DARK,
        line_width=0.5,
        alpha=0.75,
        tools=["hover"],
        hover_tooltips=[(c, f"@{{{c}}}") for c in frame if c not in (x, y)],
    )


def rules(x: float | None, y: float | None, backend: Backend) -> Any:
    """Dashed lines across a panel, up at ``x`` and along at ``y``."""
    import holoviews as hv

    look = {"linestyle": "--", "linewidth": 0.8} if backend == "matplotlib" else {}
    if backend == "bokeh":
        look = {"line_dash": "dashed", "line_width": 1}
    lines = []
    if x is not None:
        lines.append(hv.VLine(x).opts(backend=backend, color=DARK, apply_ranges=True, **look))
    if y is not None:
        lines.append(hv.HLine(y).opts(backend=backend, color=DARK, apply_ranges=True, **look))
    return hv.Overlay(lines)


def boxes(frame: pd.DataFrame, styles: Mapping[str, Style], backend: Backend) -> Any:
    """Lying boxes from computed percentiles: 25th to 75th, whiskers 10th to 90th, median line.

    Args:
        frame: Columns ``dataset``, ``place`` (on the y axis) and ``p10``, ``p25``, ``p50``,
            ``p75``, ``p90`` in the units of the x axis.
        styles: Look of each data set.
        backend: For which to draw.
    """
    import holoviews as hv

    if frame.empty:
        return hv.Overlay([])
    mpl = backend == "matplotlib"
    edge = {"edgecolor" if mpl else "line_color": DARK}
    thin = {"linewidth" if mpl else "line_width": 0.8 if mpl else 1}
    thick = {"linewidth" if mpl else "line_width": 1.6 if mpl else 2.5}
    whiskers: list[tuple[float, ...]] = []
    rectangles, medians = [], []
    for row in frame.to_dict("records"):
        y = row["place"]
        whiskers += [
            (row["p10"], y, row["p25"], y),
            (row["p75"], y, row["p90"], y),
            (row["p10"], y - 0.14, row["p10"], y + 0.14),
            (row["p90"], y - 0.14, row["p90"], y + 0.14),
        ]
        colour = styles[row["dataset"]].colour
        rectangles.append((row["p25"], y - 0.28, row["p75"], y + 0.28, colour))
        medians.append((row["p50"], y - 0.28, row["p50"], y + 0.28))
    return hv.Overlay(
        [
            hv.Segments(whiskers).opts(backend=backend, color=DARK, **thin),
            hv.Rectangles(rectangles, vdims="colour").opts(
                backend=backend, color="colour", **edge, **thin
            ),
            hv.Segments(medians).opts(backend=backend, color=DARK, **thick),
        ]
    )


def bars(frame: pd.DataFrame, styles: Mapping[str, Style], backend: Backend) -> Any:
    """Lying bars from 0, each with its value behind it.

    Args:
        frame: Columns ``dataset``, ``place`` (on the y axis) and ``value``.
        styles: Look of each data set.
        backend: For which to draw.
    """
    import holoviews as hv

    if frame.empty:
        return hv.Overlay([])
    mpl = backend == "matplotlib"
    edge: dict[str, Any] = (
        {"edgecolor": DARK, "linewidth": 0.6} if mpl else {"line_color": DARK, "line_width": 1}
    )
    rectangles, labels = [], []
    for row in frame.to_dict("records"):
        y, value = row["place"], row["value"]
        rectangles.append((0.0, y - 0.32, value, y + 0.32, styles[row["dataset"]].colour))
        labels.append((value, y, f" {value:,.0f}"))
    text: dict[str, Any] = (
        {"size": 6, "horizontalalignment": "left", "verticalalignment": "center"}
        if mpl
        else {"text_font_size": "9pt", "text_align": "left", "text_baseline": "middle"}
    )
    text["color" if mpl else "text_color"] = DARK
    return hv.Overlay(
        [
            hv.Rectangles(rectangles, vdims="colour").opts(backend=backend, color="colour", **edge),
            hv.Labels(labels).opts(backend=backend, **text),
        ]
    )


def panel(overlay: Any, backend: Backend, *, names: int = 0, **options: Any) -> Any:
    """Finish a panel.

    Args:
        overlay: What is drawn.
        backend: For which.
        names: How many names its legend has; 0 for no legend. In print the legend of the first
            panel stands below all of them.
        options: Axis options that both backends know (``xlabel``, ``logx``, ``xlim`` …).
    """
    import holoviews as hv

    if not len(overlay):
        # Neither backend draws axes without anything on them.
        nothing = hv.Points([(1.0, 1.0)]).opts(backend=backend, alpha=0)
        overlay = hv.Overlay([nothing])
    if backend == "matplotlib":
        return overlay.opts(backend=backend, show_legend=False, title="", **options)
    columns = 4
    return overlay.opts(
        backend=backend,
        title="",
        responsive=True,
        height=400 + (44 + 24 * math.ceil(names / columns) if names else 0),
        show_grid=True,
        toolbar="above",
        default_tools=["pan", "wheel_zoom", "box_zoom", "save", "reset"],
        active_tools=[],  # scrolling over a figure scrolls the page
        autohide_toolbar=True,
        show_legend=bool(names),
        legend_position="bottom",
        legend_cols=columns,
        **options,
    )


# --- putting them out ---


def interactive_html(layout: Any, slug: str, widths: Sequence[float], stamp: str) -> str:
    """The panels as Bokeh plots side by side, with a legend, and with Bokeh itself inside.

    A page with several figures keeps the first copy of Bokeh only (see
    :func:`depthkit.artifacts.page.only_first_library`).

    Args:
        layout: HoloViews layout for Bokeh.
        slug: Unique on the page.
        widths: Of the panels, relative to each other.
        stamp: Stands below each panel, as each can be saved alone; may be empty.
    """
    import holoviews as hv
    from bokeh.core.types import ID
    from bokeh.embed import json_item
    from bokeh.models.annotations import Title

    renderer = hv.Store.renderers["bokeh"]
    divs, items = [], []
    for number, (element, width) in enumerate(zip(layout, widths, strict=True)):
        target = f"{slug}-panel-{number + 1}"
        plot = renderer.get_plot(element).state
        plot.toolbar.logo = None
        if stamp:
            note = Title(text=stamp, align="right", text_font_size="8pt", text_color=DARK)
            plot.add_layout(note, "below")
        items.append(json_item(plot, ID(target)))
        # Panels wrap where the page is narrow; the style is here because notebooks have no other.
        style = f"flex: {width:g} 1 {230 * width:g}px; min-width: 0"
        divs.append(f'<div class="panel" id="{escape(target)}" style="{style}"></div>')
    data = json.dumps(items, allow_nan=False).replace("<", "\\u003c")
    return (
        '<div class="panels" style="display: flex; flex-wrap: wrap; gap: 12px">'
        f"{''.join(divs)}</div>{_bokeh_itself()}"
        f"<script>for (const item of {data}) Bokeh.embed.embed_item(item);</script>"
    )


@functools.cache
def _bokeh_itself() -> str:
    from bokeh.resources import Resources

    from depthkit.artifacts import page

    return page.library("bokeh", "".join(Resources(mode="inline", components=["bokeh"]).js_raw))


def export(
    layout: Any, stem: Path, widths: Sequence[float], size: tuple[float, float], stamp: str
) -> list[Path]:
    """Draw the panels side by side with Matplotlib, as files of the same bytes each time.

    Args:
        layout: HoloViews layout for Matplotlib.
        stem: Path without suffix.
        widths: Of the panels, relative to each other.
        size: Of the figure, width and height in inches.
        stamp: Stands above the panels and in what each format says of itself; may be empty.

    Returns:
        SVG, PDF and PNG.
    """
    import holoviews as hv
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    look: Any = {
        "text.parse_math": False,  # names are text, dollars in them too
        "font.size": 7,
        "axes.labelsize": 7,
        "axes.titlesize": 7,
        "xtick.labelsize": 5.5,
        "ytick.labelsize": 6,
        "axes.linewidth": 0.6,
        "svg.hashsalt": stem.name,  # ids in the file would be random otherwise
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
    }
    renderer = hv.Store.renderers["matplotlib"]
    with mpl.rc_context(look):
        figure = Figure(figsize=size, dpi=DPI, layout="constrained")
        axes = figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)[0]
        for element, axis in zip(layout, axes, strict=True):
            renderer.get_plot(element, fig=figure, axis=axis)
            axis.set_box_aspect(None)
            axis.set_aspect("auto")
            axis.spines[["top", "right"]].set_visible(False)
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.yaxis.set_minor_formatter(NullFormatter())
        handles, names = axes[0].get_legend_handles_labels()
        if names:
            figure.legend(
                handles,
                names,
                loc="outside lower left",
                ncols=_legend_columns(names, size[0]),
                frameon=False,
                fontsize=6,
            )
        if stamp:
            figure.suptitle(stamp, x=0.995, ha="right", fontsize=6, color=DARK)
        # The layout takes longer than the drawing, and need not be found for each format.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        said = stamp or None
        signed = {
            ".svg": {"Date": None, "Creator": None, "Description": said},
            ".pdf": {"CreationDate": None, "Creator": None, "Producer": None, "Subject": said},
            ".png": {"Software": None, "Description": said},
        }
        for suffix, metadata in signed.items():
            figure.savefig(stem.with_suffix(suffix), metadata=metadata, dpi=DPI)
    return [stem.with_suffix(suffix) for suffix in signed]


def _legend_columns(names: Sequence[str], width: float) -> int:
    """How many names stand side by side in a legend of 6 points, ``width`` inches wide."""
    widest = 3.3 * max(len(name) for name in names) + 29  # points, with mark and gaps
    return max(1, min(7, int(72 * width / widest)))
