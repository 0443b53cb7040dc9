"""Average ranks and rank partial correlations of many resamples at once, without sorting any.

A resample is a count for each row of the sample: how often it was drawn. With the rows sorted once,
the ranks in a resample follow from cumulative counts, and their moments are integers, which floats
add up exactly. So a constant or collinear column is found for certain, not guessed from rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from depthkit.stats.sample import Floats

BLOCK = 2**18
"""Numbers in a working array: small enough for the cache, where the speed comes from."""

COLLINEAR = 1e-10
"""A column is determined by the covariates when they leave less than this share of its variance.

Rounding leaves about 1e-16, while exchanging two neighbours in an order of n rows leaves
24 / n^3: up to some 6,000 rows, nothing but an exact relation falls below."""


class Ranks:
    """The columns of a sample, ready to be ranked in any resample of its rows."""

    def __init__(self, columns: Sequence[Floats]) -> None:
        self._orders = [np.argsort(values, kind="stable") for values in columns]
        in_order = [values[order] for values, order in zip(columns, self._orders, strict=True)]
        pairs = list(zip(in_order, columns, strict=True))
        self._below = [np.searchsorted(ordered, values, side="left") for ordered, values in pairs]
        self._upto = [np.searchsorted(ordered, values, side="right") for ordered, values in pairs]

    def doubled(self, counts: Floats) -> list[Floats]:
        """Twice the average ranks, less their mean; one array for each column.

        Args:
            counts: How often each row (first axis) was drawn in each resample (second axis);
                all resamples of one size.

        Returns:
            Arrays of the shape of ``counts``: whole numbers, of mean 0 over each resample.
        """
        whole = counts.astype(np.int32)  # add up faster than floats
        size = whole[:, 0].sum()
        drawn = np.zeros((len(counts) + 1, counts.shape[1]), dtype=np.int32)
        found = []
        for order, below, upto in zip(self._orders, self._below, self._upto, strict=True):
            np.cumsum(whole[order], axis=0, out=drawn[1:])
            # With b rows drawn below and u up to it, a rank is (b + 1 + u) / 2 on average
            ranks = drawn[below]
            ranks += drawn[upto]
            ranks -= size
            found.append(ranks.astype(np.float64))
        return found

    def correlations(self, counts: Floats) -> Floats:
        """The correlation of the first two columns' ranks, given those of the others.

        One number for each resample; ``nan`` where it is degenerate, see ``partial``.
        """
        ranks = self.doubled(counts)
        moments = np.empty((len(ranks), len(ranks), counts.shape[1]))
        for i, mine in enumerate(ranks):
            weighted = counts * mine
            for j in range(i, len(ranks)):
                moments[i, j] = moments[j, i] = np.einsum("nb,nb->b", weighted, ranks[j])
        return partial(moments)

    def whole(self) -> Floats:
        """The counts of the sample itself: each row once."""
        return np.ones((len(self._orders[0]), 1))

    def left_out(self) -> Iterator[Floats]:
        """The counts of the samples with one row left out, in blocks, row after row."""
        rows = len(self._orders[0])
        for start, size in blocks(rows, rows):
            counts = np.ones((rows, size))
            counts[np.arange(start, start + size), np.arange(size)] = 0
            yield counts


def partial(moments: Floats) -> Floats:
    """The correlation of the first two variables with the linear effect of the others removed.

    Args:
        moments: Sums of products of centred variables, (variables, variables, cases).

    Returns:
        One number a case; ``nan`` in a degenerate one: a variable is constant, a covariate is
        determined by other covariates, or one of the first two by the covariates.
    """
    left = moments.copy()
    least = COLLINEAR * np.einsum("iib->ib", moments)
    defined = np.ones(moments.shape[2], dtype=bool)
    for c in range(len(left) - 1, 1, -1):
        defined &= left[c, c] > least[c]
        share = left[c, :c] / np.where(defined, left[c, c], 1)
        left[:c, :c] -= left[:c, c, None] * share[None]
    defined &= (left[0, 0] > least[0]) & (left[1, 1] > least[1])
    scale = np.sqrt(np.where(defined, left[0, 0] * left[1, 1], 1))
    return np.where(defined, np.clip(left[0, 1] / scale, -1, 1), np.nan)


def resampled(rows: int, size: int, rng: np.random.Generator) -> Floats:
    """Counts of ``size`` resamples, each of ``rows`` draws with replacement: (rows, size)."""
    drawn = rng.integers(0, rows, size=(size, rows))
    drawn *= size
    drawn += np.arange(size)[:, None]
    flat = np.bincount(drawn.ravel(), minlength=rows * size)
    return flat.reshape(rows, size).astype(np.float64)


def blocks(rows: int, total: int) -> Iterator[tuple[int, int]]:
    """Start and size of the blocks in which ``total`` cases of ``rows`` numbers are worked off."""
    step = max(1, BLOCK // rows)
    for start in range(0, total, step):
        yield start, min(step, total - start)
