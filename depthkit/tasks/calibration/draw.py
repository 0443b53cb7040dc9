"""Seeded draws and the tables made from them, the same bytes on every Python version."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

ROWS = 400
"""Rows of each data file."""

_BIRDS = (
    *("avocet", "bittern", "bunting", "curlew", "dunlin", "fulmar", "gannet", "godwit"),
    *("heron", "kestrel", "lapwing", "merlin", "osprey", "petrel", "plover", "redwing"),
    *("sandpiper", "shrike", "siskin", "skua", "teal", "tern", "wheatear", "whimbrel"),
)
_ZONES = ("amber", "cobalt", "coral", "indigo", "jade", "ochre", "scarlet", "slate")
_LOOKS_NUMERIC = re.compile(r"\d+(e\d+)?")


class Draw:
    """Random draws from a seed.

    Only ``random.Random.random`` keeps its sequence across Python versions, so all else is
    built on it.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 (repeatable on purpose)

    def below(self, limit: int) -> int:
        """A whole number from 0 to ``limit - 1``."""
        return int(self._random.random() * limit)

    def one[T](self, items: Sequence[T]) -> T:
        """One item."""
        return items[self.below(len(items))]

    def shuffled[T](self, items: Sequence[T]) -> list[T]:
        """All items in another order."""
        result = list(items)
        for last in range(len(result) - 1, 0, -1):
            other = self.below(last + 1)
            result[last], result[other] = result[other], result[last]
        return result

    def distinct(self, count: int, limit: int) -> list[int]:
        """Different whole numbers from 0 to ``limit - 1``, in the order drawn."""
        drawn: dict[int, None] = {}
        while len(drawn) < count:
            drawn[self.below(limit)] = None
        return list(drawn)

    def seal(self) -> str:
        """16 lowercase hex digits that no tool takes for a number, such as 12e4567890123456."""
        while True:
            seal = "".join(self.one("0123456789abcdef") for _ in range(16))
            if not _LOOKS_NUMERIC.fullmatch(seal):
                return seal


@dataclass(frozen=True)
class Row:
    """One line of a data file."""

    name: str
    zone: str
    weight: int
    seal: str


def table(draw: Draw, names: Sequence[str] | None = None) -> list[Row]:
    """A data file of :data:`ROWS` rows: names, weights and seals are unique within it.

    Args:
        draw: Where the randomness comes from.
        names: Names of the rows, shuffled here; bird names with a number unless given.
    """
    if names is None:
        names = draw.shuffled([f"{bird}-{number}" for bird in _BIRDS for number in range(10, 100)])
    weights = draw.distinct(ROWS, 90_000)
    return [
        Row(name=name, zone=draw.one(_ZONES), weight=10_000 + weights[number], seal=draw.seal())
        for number, name in enumerate(draw.shuffled(names[:ROWS]))
    ]


def tsv(rows: Sequence[Row]) -> str:
    """The data file: name, zone, weight and seal, separated by tabs, without a header."""
    return "".join(f"{r.name}\t{r.zone}\t{r.weight}\t{r.seal}\n" for r in rows)
