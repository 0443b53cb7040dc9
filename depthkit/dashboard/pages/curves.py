"""Curves over the turns of a run: context tokens, cost and seconds, as drawings in the page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from depthkit.dashboard import html
from depthkit.dashboard.text import plain
from depthkit.dashboard.turns import ShownTurn

_WIDTH, _HEIGHT = 320, 64


def curves(turns: Sequence[ShownTurn]) -> str:
    """Context tokens, output tokens, dollars so far and seconds of each turn, where known."""
    records = [turn.record for turn in turns]
    context = [
        None if r is None or r.input_tokens is None else r.input_tokens + (r.output_tokens or 0)
        for r in records
    ]
    spent = [None if r is None else r.cost_usd for r in records]
    known = all(cost is not None for cost in spent) and bool(spent)
    so_far: list[float | None] = list(accumulate(c or 0.0 for c in spent)) if known else []
    waits = [
        None
        if r is None or (r.model_seconds is None and r.terminal_seconds is None)
        else (r.model_seconds or 0) + (r.terminal_seconds or 0)
        for r in records
    ]
    charts = [
        _chart("Context tokens", turns, context, "tokens"),
        _chart("Cost so far", turns, so_far, "cost"),
        _chart("Seconds a turn", turns, waits, "number", bars=True),
    ]
    drawn = "".join(chart for chart in charts if chart)
    return (
        f'<section class="curves" aria-label="Curves over turns">{drawn}</section>' if drawn else ""
    )


def _chart(
    title: str,
    turns: Sequence[ShownTurn],
    values: Sequence[float | None],
    form: str,
    *,
    bars: bool = False,
) -> str:
    points = [(t.number, v) for t, v in zip(turns, values, strict=False) if v is not None]
    if len(points) < 2:
        return ""
    top = max(value for _, value in points) or 1.0
    step = _WIDTH / max(turn.number for turn in turns)
    places = [(step * (n - 0.5), _HEIGHT - _HEIGHT * 0.94 * v / top) for n, v in points]
    if bars:
        shape = "".join(
            f'<rect x="{x - step * 0.4:.1f}" y="{y:.1f}" width="{step * 0.8:.1f}" '
            f'height="{_HEIGHT - y:.1f}"/>'
            for x, y in places
        )
    else:
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        shape = f'<polyline points="{line}"/>'
    # A link a turn, as wide as its step: points out the value and leads to the turn.
    links = "".join(
        f'<a href="#turn-{n}" tabindex="-1"><rect class="hit" x="{step * (n - 1):.1f}" y="0" '
        f'width="{step:.1f}" height="{_HEIGHT}"><title>turn {n}: '
        f"{plain(html.written(v, form))}</title></rect></a>"
        for n, v in points
    )
    return (
        f"<figure><figcaption>{title} <b>{plain(html.written(points[-1][1], form))}</b>"
        f"<small>max {plain(html.written(top, form))}</small></figcaption>"
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="group" '
        f'aria-label="{title} over {len(points)} turns, at most {plain(html.written(top, form))}">'
        f'<rect class="turn-now" x="0" y="0" width="{step:.1f}" height="{_HEIGHT}" '
        f'data-step="{step:.3f}"/>{shape}{links}</svg></figure>'
    )
