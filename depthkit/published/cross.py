"""Whether printed numbers can hold together: arithmetic among claims, with their rounding.

A printed number stands for the interval that rounds to it (``94%`` for 0.935 to 0.945), a whole
number for itself. A relation holds when the intervals of both sides leave room for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Self

from pydantic import model_validator

from depthkit.published.claim import Claim, Strict

Operation = Literal["sum", "difference", "product", "ratio", "power", "rounded"]
Term = str | int | dict[Operation, list[Any]]
"""A claim's id, an exact number, or an operation on terms.

``difference`` and ``ratio`` take the first term less, or over, the later ones; ``power`` has a
whole exponent; ``rounded`` says of one claim that its whole number is no count but was rounded.
Percentages enter as shares of 1.
"""


class CrossCheck(Strict):
    """A relation among printed numbers.

    Either ``left`` and ``right`` with the relation between them, or ``share`` and ``of``: a share
    printed of so many, for which a whole number must exist.
    """

    id: str
    about: str
    left: Term | None = None
    right: Term | None = None
    relation: Literal["equal", "at_most", "at_least"] = "equal"
    share: str | None = None
    of: int | None = None
    holds: bool = True
    """Whether it does, as printed; a test computes it again."""
    note: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        sides = self.left is not None and self.right is not None
        if sides == (self.share is not None and self.of is not None):
            raise ValueError(f"cross-check {self.id} needs left and right, or share and of")
        return self


@dataclass(frozen=True)
class Checked:
    """A cross-check, worked out.

    Attributes:
        check: What was checked.
        left: Interval of the left side, or of the share.
        right: Interval of the right side; ``None`` for a share.
        counts: For a share: the whole numbers that round to it.
        holds: Whether the printed numbers can hold together.
    """

    check: CrossCheck
    left: tuple[Fraction, Fraction]
    right: tuple[Fraction, Fraction] | None
    counts: range | None
    holds: bool


def work_out(check: CrossCheck, claims: Mapping[str, Claim]) -> Checked:
    """Work out a cross-check.

    Args:
        check: What to check.
        claims: All claims of the paper, by id.

    Raises:
        ValueError: a term is neither a claim's id, nor a number, nor an operation.
    """
    if check.share is not None and check.of is not None:
        low, high = _interval(check.share, claims)
        counts = range(math.ceil(low * check.of), math.floor(high * check.of) + 1)
        return Checked(check, (low, high), None, counts, len(counts) > 0)
    assert check.left is not None and check.right is not None
    left, right = _interval(check.left, claims), _interval(check.right, claims)
    holds = {
        "equal": left[0] <= right[1] and right[0] <= left[1],
        "at_most": left[0] <= right[1],
        "at_least": left[1] >= right[0],
    }[check.relation]
    return Checked(check, left, right, None, holds)


def _interval(term: Any, claims: Mapping[str, Claim]) -> tuple[Fraction, Fraction]:
    if isinstance(term, dict):
        ((operation, parts),) = term.items()
        if operation == "rounded":
            claim = claims[parts[0]]
            return _around(claim, Fraction(claim.half_unit))
        return _apply(operation, [_interval(part, claims) for part in parts])
    if isinstance(term, str) and term in claims:
        claim = claims[term]
        count = claim.decimals == 0 and not claim.percent
        return _around(claim, Fraction(0) if count else Fraction(claim.half_unit))
    try:
        exact = Fraction(str(term))
    except ValueError:
        raise ValueError(f"{term!r} is neither a claim's id nor a number") from None
    return exact, exact


def _around(claim: Claim, half: Fraction) -> tuple[Fraction, Fraction]:
    number, scale = Fraction(claim.number), 100 if claim.percent else 1
    return (number - half) / scale, (number + half) / scale


def _apply(operation: str, parts: list[tuple[Fraction, Fraction]]) -> tuple[Fraction, Fraction]:
    first, *rest = parts
    for low, high in rest:
        match operation:
            case "sum":
                first = first[0] + low, first[1] + high
            case "difference":
                first = first[0] - high, first[1] - low
            case "product":
                corners = [a * b for a in first for b in (low, high)]
                first = min(corners), max(corners)
            case "ratio":
                corners = [a / b for a in first for b in (low, high)]
                first = min(corners), max(corners)
            case "power":
                ends = [a ** int(low) for a in first]
                first = min(ends), max(ends)
    return first
