"""The order of difficulty labels, from easiest to hardest."""

from __future__ import annotations

import re

_WORDS = ("very easy", "easy", "medium", "hard", "very hard")
_NUMBERED = re.compile(r"(?:\D*\D)?(\d+)$")

HARD = _WORDS.index("hard")


def level(label: str) -> float:
    """Place of a difficulty label among those of its data set; greater is harder.

    Known are labels that end in a number (``level 3``) or in one of five words, in any letter case
    (``hard``, ``evolve hard``). ``nan`` for any other.
    """
    name = level_name(label)
    if name in _WORDS:
        return float(_WORDS.index(name))
    found = _NUMBERED.fullmatch(name)
    return float(found[1]) if found else float("nan")


def level_name(label: str) -> str:
    """What a label says of difficulty: ``hard`` of ``evolve hard``, otherwise the label itself."""
    text = " ".join(label.casefold().split())
    ends = [word for word in _WORDS if text == word or text.endswith(f" {word}")]
    return max(ends, key=len, default=text)
