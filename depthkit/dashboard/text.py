"""Untrusted text as safe HTML: escaped, colours of terminals kept, everything else made visible.

Whatever comes out of a container passes through one of these functions, once, on its way into a
page. Nothing they give holds a link, a script, a style of the text's own or a character that
moves, hides or reorders what is around it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from html import escape

_HIDDEN = (
    "\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\U000e0000-\U000e0fff\ud800-\udfff"
)
"""Characters that reorder text, cannot be seen, or cannot be written as UTF-8."""

_ODD = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_HIDDEN}]")
_ODD_BUT_ESCAPE = re.compile(f"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f{_HIDDEN}]")
_SEQUENCE = re.compile(
    r"\x1b\[(?P<parameters>[0-?]*)(?P<between>[ -/]*)(?P<final>[@-~])"
    # Strings to the terminal: titles, links, clipboard. Ended by BEL or ST, within one line.
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]*[0-~]?"
)
_COLOURS = re.compile(r"[0-9;:]*")


@dataclass(frozen=True)
class _Look:
    """How text looks: numbers of the 256 colours, and switches."""

    ink: int | None = None
    ground: int | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False


@functools.lru_cache(4096)
def _classes(look: _Look) -> str:
    names = [n for n in ("bold", "dim", "italic", "underline", "reverse") if getattr(look, n)]
    if look.ink is not None:
        names.append(f"f{look.ink}")
    if look.ground is not None:
        names.append(f"b{look.ground}")
    return " ".join(f"t-{name}" for name in names)


class _State:
    """A look with its tags, and those of its text that were reached from it."""

    def __init__(self, look: _Look, known: dict[_Look, _State]) -> None:
        classes = _classes(look)
        self._look, self._known = look, known
        known[look] = self
        self._next: dict[str, _State] = {}
        self.opens = f'<span class="{classes}">' if classes else ""
        self.closes = "</span>" if classes else ""

    def after(self, parameters: str) -> _State:
        """The state after a sequence that selects colours."""
        found = self._next.get(parameters)
        if found is None:
            look = _look(self._look, parameters)
            found = self._next[parameters] = self._known.get(look) or _State(look, self._known)
        return found


def plain(value: object) -> str:
    """Text on one line, escaped; control and hidden characters are shown as what they are.

    It holds no element, and so may stand in an attribute too.
    """
    text = escape(str(value)).replace("\n", "\u240a").replace("\t", " ")
    return _ODD.sub(_name, text) if _ODD.search(text) else text


def exact(value: object) -> str:
    """Text for the value of a field, escaped but for nothing else changed: a form sends it back."""
    text = escape(str(value))
    return text.replace("\r", "&#13;").replace("\n", "&#10;").replace("\t", "&#9;")


def block(text: str, needle: str = "") -> str:
    """Text of several lines, escaped; no colours.

    Args:
        text: Anything.
        needle: Each place where this stands, in any letter case, is marked.
    """
    text = text.replace("\r\n", "\n")
    if not needle:
        return _visible(text)
    return "".join(
        f"<mark>{_visible(part)}</mark>" if found else _visible(part)
        for part, found in pieces(text, needle)
    )


def terminal(text: str, needle: str = "") -> str:
    """What a terminal printed, escaped: colours become classes, other sequences are shown.

    Args:
        text: With or without escape sequences; lines may end in CR LF.
        needle: Each place where this stands, in any letter case, is marked; a place that a change
            of colour divides is not.

    Returns:
        HTML of ``span`` and ``mark`` elements only, for a ``pre``.
    """
    text = text.replace("\r\n", "\n")
    if "\x1b" not in text:
        return block(text, needle)
    # Texts of many colours are of many short pieces: what holds of all is looked for once.
    write: Callable[[str], str] = functools.partial(block, needle=needle)
    if not needle:
        write = _visible if _ODD_BUT_ESCAPE.search(text) else escape
    out: list[str] = []
    state = _State(_Look(), {})
    at = 0
    for match in _SEQUENCE.finditer(text):
        start, end = match.span()
        if start > at:
            out += (state.opens, write(text[at:start]), state.closes)
        at = end
        parameters, between, final = match.groups()
        if final == "m" and not between and _COLOURS.fullmatch(parameters):
            state = state.after(parameters)
        else:
            out.append(f'<span class="t-esc">{_visible(match[0])}</span>')
    if at < len(text):
        out += (state.opens, write(text[at:]), state.closes)
    return "".join(out)


def pieces(text: str, needle: str) -> Iterator[tuple[str, bool]]:
    """The text in parts, each with whether it is what was looked for."""
    if not needle:
        yield text, False
        return
    at = 0
    for match in re.finditer(re.escape(needle), text, re.IGNORECASE):
        if match.start() > at:
            yield text[at : match.start()], False
        yield match[0], True
        at = match.end()
    if at < len(text):
        yield text[at:], False


def count(text: str, needle: str) -> int:
    """How often something stands in a text, in any letter case."""
    return len(re.findall(re.escape(needle), text, re.IGNORECASE)) if needle else 0


def excerpt(text: str, needle: str, around: int = 60) -> str:
    """The line in which something first stands, shortened around it and escaped."""
    match = re.search(re.escape(needle), text, re.IGNORECASE)
    if match is None:
        return ""
    start = max(text.rfind("\n", 0, match.start()) + 1, match.start() - around)
    end = text.find("\n", match.end())
    end = min(len(text) if end < 0 else end, match.end() + around)
    return block(text[start:end].strip(), needle)


def without_blank_end(text: str) -> tuple[str, int]:
    """Text without the empty lines below it, as a screen has them, and how many there were."""
    kept = text.rstrip()
    return kept, text.count("\n", len(kept))


def _visible(text: str) -> str:
    if _ODD.search(text) is None:
        return escape(text)
    return _ODD.sub(_shown, escape(text))


def _shown(match: re.Match[str]) -> str:
    return f'<span class="t-ctl">{_name(match)}</span>'


def _name(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"\u2039{code:04X}\u203a"


@functools.lru_cache(4096)
def _look(look: _Look, parameters: str) -> _Look:
    """The look after a sequence that selects colours."""
    codes = [int(code) if code else 0 for code in re.split("[;:]", parameters[:200])]
    while codes:
        code = codes.pop(0)
        if code == 0:
            look = _Look()
        elif code in (1, 2, 3, 4, 7):
            name = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse"}[code]
            look = replace(look, **{name: True})
        elif code == 22:
            look = replace(look, bold=False, dim=False)
        elif code in (23, 24, 27):
            look = replace(look, **{{23: "italic", 24: "underline", 27: "reverse"}[code]: False})
        elif code in (38, 48):
            colour = _extended(codes)
            if colour is not None:
                look = replace(look, ink=colour) if code == 38 else replace(look, ground=colour)
        elif code in (39, 49):
            look = replace(look, ink=None) if code == 39 else replace(look, ground=None)
        elif 30 <= code <= 37:
            look = replace(look, ink=code - 30)
        elif 40 <= code <= 47:
            look = replace(look, ground=code - 40)
        elif 90 <= code <= 97:
            look = replace(look, ink=code - 82)
        elif 100 <= code <= 107:
            look = replace(look, ground=code - 92)
    return look


def _extended(codes: list[int]) -> int | None:
    """One of the 256 colours, from the codes after 38 or 48, which are taken off the list."""
    kind = codes.pop(0) if codes else 0
    if kind == 5 and codes:
        number = codes.pop(0)
        return number if number < 256 else None
    if kind == 2 and len(codes) >= 3:
        red, green, blue = (min(255, codes.pop(0)) for _ in range(3))
        return 16 + 36 * round(red / 51) + 6 * round(green / 51) + round(blue / 51)
    return None


def palette_css() -> str:
    """Rules for the classes of the colours from 16 upwards; the first 16 follow the theme."""
    rules = []
    for number in range(16, 256):
        if number < 232:
            place = number - 16
            levels = [0, 95, 135, 175, 215, 255]
            parts = (levels[place // 36], levels[place // 6 % 6], levels[place % 6])
        else:
            parts = (8 + 10 * (number - 232),) * 3
        colour = "#{:02x}{:02x}{:02x}".format(*parts)
        rules.append(f".t-f{number}{{color:{colour}}}.t-b{number}{{background:{colour}}}")
    return "\n".join(rules)
