"""HTML pages that need nothing from outside: the frame around reports and exported tables."""

from __future__ import annotations

import functools
import re
from html import escape, unescape
from importlib.resources import files

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:; font-src data:"
)
"""Content security policy of every page: a browser refuses any outside address, even a forgotten
one, and any script from a file."""

_LIBRARY = re.compile(r'<script data-library="([^"]+)">.*?</script>', re.DOTALL)


class Fragment(str):
    """HTML that notebooks and Panel display as it is."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        # Notebooks keep this beside the HTML; the text itself would double their size.
        return f"<HTML of {len(self):,} characters>"


_ADDRESS = re.compile(r"""https?://(?!www\.w3\.org/)[^\s"'`<>)\\]+""")
_REACHES_OUT = re.compile(
    r"""(?:\b(?:src|href|srcset|action|poster|data)\s*=\s*["']?|url\(\s*["']?|@import\s+["']?"""
    r"""|\bimport\s*\(?\s*["'])(?:https?:)?//[\w.-]+""",
    re.IGNORECASE,
)


def outside_addresses(html: str) -> list[str]:
    """Whatever a browser could fetch, or lead to, from outside; empty for a page of ours."""
    # No address has < or > in it, so a page may be looked through in parts between those.
    found, place = list[str](), 0
    for script in _LIBRARY.finditer(html):
        found += _addresses(html[place : script.start()])
        found += _of_library(script[0])
        place = script.end()
    return found + _addresses(html[place:])


def _addresses(html: str) -> list[str]:
    return [match[0] for match in _REACHES_OUT.finditer(html) if "www.w3.org" not in match[0]]


@functools.lru_cache(maxsize=4)  # most of a page is the same library, again in the next page
def _of_library(script: str) -> tuple[str, ...]:
    return tuple(_addresses(script))


def library(name: str, script: str) -> str:
    """A script element that :func:`only_first_library` recognizes.

    Outside addresses in it (of optional extras and of its makers) are blanked; names of XML
    namespaces stay.
    """
    script = _ADDRESS.sub("about:blank", script)
    return f'<script data-library="{escape(name)}">{script}</script>'


def only_first_library(html: str) -> str:
    """Keep the first copy of each library; figures bring their own so that each can stand alone."""
    seen: set[str] = set()

    def keep(match: re.Match[str]) -> str:
        if match[1] in seen:
            return ""
        seen.add(match[1])
        return match[0]

    return _LIBRARY.sub(keep, html)


MEANINGS = {
    "measured": "runs of a real model.",
    "imported": "runs that somebody else made.",
    "scripted": "real runs of a fixed script in the model's place: no model's results.",
    "fitted": "made to agree with the numbers that a paper prints: no data, nothing was run.",
}
"""Of each word for where a row comes from."""

_SAID = {"scripted": "scripted, no model's results", "fitted": "fitted, not data"}
_LINE = re.compile(r'<p class="provenance">([^<]*)</p>')


def stamp(*lines: str) -> str:
    """What must still stand on a number that has left its page: ``fitted, not data``.

    Args:
        lines: Provenance, as artifacts have it.

    Returns:
        Every word of :data:`MEANINGS` that they say, names of corpora and logs aside; empty for
        what rests on no rows.
    """
    parts = [part for line in lines for part in line.split(" · ")]
    said = " ".join(p for p in parts if not p.startswith(("corpus ", "generation log ")))
    return "; ".join(_SAID.get(w, w) for w in MEANINGS if re.search(rf"\b{w}\b", said))


def document(title: str, body: str) -> str:
    """A whole page; title and banner say what its provenance lines say, and what that means.

    Args:
        title: Plain text.
        body: HTML, escaped by whoever made it.
    """
    said = stamp(*(unescape(line) for line in _LINE.findall(body)))
    if said:
        meanings = "".join(
            f"<dt>{word}</dt><dd>{escape(meaning)}</dd>"
            for word, meaning in MEANINGS.items()
            if re.search(rf"\b{word}\b", said)
        )
        title = f"{title} ({said})"
        body = (
            f'<p class="stamp"><a href="#provenance">{escape(said)}</a></p>\n{body}\n'
            f'<dl class="about" id="provenance">{meanings}</dl>'
        )
    css = files("depthkit.artifacts").joinpath("page.css").read_text("utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escape(title)}</title>\n<link rel="icon" href="data:,">\n'
        f"<style>\n{css}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )
