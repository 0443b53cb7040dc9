"""HTML pages that need nothing from outside: the frame around reports and exported tables."""

from __future__ import annotations

import functools
import re
from html import escape
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


def document(title: str, body: str) -> str:
    """A whole page.

    Args:
        title: Plain text.
        body: HTML, escaped by whoever made it.
    """
    css = files("depthkit.artifacts").joinpath("page.css").read_text("utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escape(title)}</title>\n<link rel="icon" href="data:,">\n'
        f"<style>\n{css}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )
