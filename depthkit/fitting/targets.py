"""The printed numbers that a fit must meet, by the id of their claim."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

from depthkit.errors import DepthkitError
from depthkit.published import published


@dataclass(frozen=True)
class Target:
    """A printed number: shares are of 1; ``half`` is half a unit of its last digit."""

    value: float
    half: float

    def counts(self, of: int) -> range:
        """The whole numbers whose share of ``of`` is printed like this; may be empty."""
        least = ceil((self.value - self.half) * of - 1e-9)
        most = floor((self.value + self.half) * of + 1e-9)
        return range(least, most + 1)

    def count(self, of: int) -> int:
        """The one of :meth:`counts` that is nearest to the printed share.

        Raises:
            DepthkitError: No whole number has such a share.
        """
        if not (counts := self.counts(of)):
            raise DepthkitError(f"no whole number out of {of} rounds to {self.value:.4g}.")
        return min(max(round(self.value * of), counts[0]), counts[-1])

    def __int__(self) -> int:
        return round(self.value)


class Targets:
    """The numbers of a paper.

    Args:
        paper: Name of a file in ``published/``.
    """

    def __init__(self, paper: str = "depth") -> None:
        self._claims = {claim.id: claim for claim in published(paper)}

    def __call__(self, claim_id: str) -> Target:
        """The printed number of a claim.

        Raises:
            DepthkitError: There is no such claim.
        """
        if claim_id not in self._claims:
            raise DepthkitError(f"published numbers: there is no claim {claim_id}.")
        claim = self._claims[claim_id]
        scale = 100 if claim.percent else 1
        return Target(float(claim.number) / scale, float(claim.half_unit) / scale)

    def number(self, claim_id: str) -> float:
        """Its value alone."""
        return self(claim_id).value
