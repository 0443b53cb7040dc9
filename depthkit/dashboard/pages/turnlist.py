"""The list of a run's turns: what was thought, typed and shown, and what stands between."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import islice

from depthkit.dashboard import html
from depthkit.dashboard.html import Context
from depthkit.dashboard.listing import Query
from depthkit.dashboard.text import block, plain, terminal, without_blank_end
from depthkit.dashboard.turns import Between, Course, ShownTurn, course

WHOLE = 12_000
"""Characters of an output that are shown at once; the rest is a click away, and its size said."""

_WHOLE_PAGE = 300_000
"""Characters of all outputs that are shown at once; of many long ones less of each is."""

_LEAST = 2_000
"""About what is in view of an output before it is scrolled."""

_MOST_AT_ONCE = 2_000_000
_MOST_MATCHES = 100
_AROUND = 300


def turn_items(context: Context, run_id: str, found: Course, needle: str) -> Iterable[str]:
    """The items of the list, in order; what is searched is marked."""
    before: dict[int, list[Between]] = defaultdict(list)
    for between in found.between:
        before[between.before].append(between)
    most = _shown_at_once(found)
    for turn in found.turns:
        for between in before.pop(turn.number, []):
            yield _between(context, run_id, between, needle)
        yield _turn(context, run_id, turn, needle, most)
    for rest in before.values():
        for between in rest:
            yield _between(context, run_id, between, needle)


def _shown_at_once(found: Course) -> int:
    """Characters of each output, so that a page of many long ones comes as quickly as others."""
    sizes = [min(len(turn.output or ""), WHOLE) for turn in found.turns]
    if sum(sizes) <= _WHOLE_PAGE:
        return WHOLE
    return max(_LEAST, _WHOLE_PAGE // len(sizes))


def _between(context: Context, run_id: str, between: Between, needle: str) -> str:
    if between.kind == "segment":
        name = f"Segment: {plain(between.text)}" if between.text else "Next segment"
        return f'<li class="segment">{name}</li>'
    names = {"message": "Message to the agent", "summarization": "Context summarized"}
    links = "".join(
        f' <a href="{context.page("file", id=run_id, name=name)}">{plain(name.split("/")[-1])}</a>'
        for name in between.files
    )
    opened = " open" if needle and needle.lower() in between.text.lower() else ""
    size = f"<small>{len(between.text):,} characters</small>" if between.text else ""
    return (
        f'<li class="between {between.kind}"><details{opened}><summary>{names[between.kind]} {size}'
        f"</summary><pre>{terminal(between.text, needle)}</pre></details>{links}</li>"
    )


def _turn(context: Context, run_id: str, turn: ShownTurn, needle: str, most: int) -> str:
    flags = "".join(
        f'<span class="flag flag-{flag.replace(" ", "-")}">{flag}</span>' for flag in turn.flags
    )
    record = turn.record
    facts: list[str] = []
    if record is not None:
        if record.model_seconds is not None:
            facts.append(
                f"<span title='Waiting for the model'>model "
                f"{html.seconds(record.model_seconds)}</span>"
            )
        if record.terminal_seconds is not None:
            facts.append(
                f"<span title='In the terminal'>terminal "
                f"{html.seconds(record.terminal_seconds)}</span>"
            )
        if record.input_tokens is not None:
            cached = f", {record.cached_tokens:,} cached" if record.cached_tokens else ""
            facts.append(f"{record.input_tokens:,} in{cached}")
        if record.output_tokens is not None:
            facts.append(f"{record.output_tokens:,} out")
        if record.cost_usd is not None:
            facts.append(html.written(record.cost_usd, "cost"))
    at = "" if turn.seconds is None else f' data-at="{turn.seconds}"'
    play = (
        ""
        if turn.seconds is None
        else (
            f'<button type="button" class="seek" aria-label="{turn.seconds:.0f} s, play from turn '
            f'{turn.number}" '
            f'title="Play from here">{turn.seconds:.0f} s</button>'
        )
    )
    parts = "".join(
        f"<div class=said><h3>{name}</h3><p>{block(said, needle)}</p></div>"
        for name, said in (
            ("Reasoning", turn.reasoning),
            ("Analysis", turn.analysis),
            ("Plan", turn.plan),
            ("Reply", turn.message),
        )
        if said
    )
    return (
        f'<li class="turn" id="turn-{turn.number}"{at} tabindex="-1">'
        f'<div class="turn-head"><a href="#turn-{turn.number}" class="number">'
        f"{turn.number}</a>{play}{flags}<span class=spent>{' · '.join(facts)}</span></div>"
        f"{parts}{_commands(turn, needle)}{_output(context, run_id, turn, needle, most)}</li>"
    )


def _commands(turn: ShownTurn, needle: str) -> str:
    if turn.commands is None:
        return '<p class="none">The reply did not parse; nothing was typed.</p>'
    if not turn.commands:
        return ""
    lines = []
    for keys, wait in turn.commands:
        waits = (
            "" if wait is None else f'<span class="wait" title="Seconds given">{wait:g} s</span>'
        )
        shown, _ = without_blank_end(keys)
        lines.append(
            f"<li><code>{terminal(shown, needle) or '<i>nothing typed</i>'}</code>{waits}</li>"
        )
    return f'<ol class="commands" aria-label="Commands">{"".join(lines)}</ol>'


def _output(context: Context, run_id: str, turn: ShownTurn, needle: str, most: int) -> str:
    if turn.output is None:
        return '<p class="none">What the terminal showed is not recorded.</p>'
    text, blank = without_blank_end(turn.output)
    if not text:
        return f'<p class="none">{blank} blank lines.</p>'
    below = f'<p class="none">{blank} blank lines below</p>' if blank > 3 else ""
    if len(text) <= most or (context.site.static and len(text) <= _MOST_AT_ONCE):
        return f'<pre class="term">{terminal(text, needle)}</pre>{below}'
    shown = "".join(
        f'<span class="gap">… {part:,} characters …</span>'
        if isinstance(part, int)
        else terminal(part, needle)
        for part in _windows(text, needle, most)
    )
    if context.site.static:
        more = f"{len(text):,} characters, of which these are shown"
    elif len(text) <= _MOST_AT_ONCE:
        link = context.data("output", id=run_id, turn=turn.number)
        more = f'<a class="whole" href="{link}">Show all {len(text):,} characters</a>'
    else:
        link = context.data("output", id=run_id, turn=turn.number, raw=1)
        more = f'<a href="{link}" download>Download all {len(text):,} characters</a>'
    return f'<pre class="term">{shown}</pre><p class="more">{more}</p>{below}'


def _windows(text: str, needle: str, most: int) -> list[str | int]:
    """The beginning of a long text and what is around matches further on; numbers are gaps."""
    spans = [(0, most)]
    if needle:
        for match in islice(re.finditer(re.escape(needle), text, re.IGNORECASE), _MOST_MATCHES):
            start, end = max(0, match.start() - _AROUND), min(len(text), match.end() + _AROUND)
            if start <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(spans[-1][1], end))
            else:
                spans.append((start, end))
    parts: list[str | int] = []
    at = 0
    for start, end in spans:
        parts += [start - at] * (start > at) + [text[start:end]]
        at = end
    return parts + [len(text) - at] * (len(text) > at)


def whole_output(context: Context, query: Query) -> str | None:
    """All of what one turn showed; ``None`` if there is no such turn."""
    run_id = (query.get("id") or [""])[0]
    number = (query.get("turn") or [""])[0]
    if context.source.corpus is None or context.snapshot.run(run_id) is None:
        return None
    for turn in course(context.source.corpus, run_id, playback=False).turns:
        if str(turn.number) == number and turn.output is not None:
            return turn.output
    return None
