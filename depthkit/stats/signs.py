"""The sign test."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from depthkit.stats.bootstrap import Interval
from depthkit.stats.sample import SampleError, column, fraction


@dataclass(frozen=True)
class SignTest:
    """How many of ``n`` pairs that differ have the greater number first.

    ``value`` is their share, ``interval`` its exact (Clopper & Pearson) interval, ``ties`` the
    number of pairs left out because both numbers are equal.
    """

    value: float
    greater: int
    n: int
    ties: int
    method: str
    interval: Interval
    p_value: float

    def __str__(self) -> str:
        return f"{self.greater} of {self.n}, p = {self.p_value:.2g}"


def sign_test(a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95) -> SignTest:
    """Exact two-sided test that a number of ``a`` is as often above as below its pair in ``b``.

    Section 4.4 compares D of our tasks and of the original tasks so. Two tasks that are both above
    the largest cap (D = 99) count as a tie: which is deeper is not known.

    Args:
        a: One number a pair.
        b: The other number of each pair.
        confidence: Of the interval.

    Raises:
        SampleError: something is missing or of another length, or no pair differs.
    """
    from scipy.stats import binomtest  # Late: it takes most of a second to import

    first = column(a, "a")
    second = column(b, "b", len(first))
    greater, n = int((first > second).sum()), int((first != second).sum())
    if not n:
        raise SampleError(f"a and b are equal in all {len(first)} pairs: there is nothing to test.")
    test = binomtest(greater, n)
    exact = test.proportion_ci(fraction(confidence, "confidence"), method="exact")
    return SignTest(
        value=greater / n,
        greater=greater,
        n=n,
        ties=len(first) - n,
        method="sign test, exact binomial, two-sided",
        interval=Interval(float(exact.low), float(exact.high), confidence, "Clopper-Pearson"),
        p_value=float(test.pvalue),
    )
