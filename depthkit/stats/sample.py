"""What a sample must be before anything is computed from it."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from depthkit.errors import DepthkitError

type Floats = NDArray[np.float64]
type Codes = NDArray[np.intp]


class SampleError(DepthkitError, ValueError):
    """The sample does not determine the statistic; the message names the argument and the mend."""


class ArgumentError(DepthkitError, ValueError):
    """What the caller asks for can be had of no sample: a negative count, a seed that is a word."""


def column(values: ArrayLike, name: str, length: int | None = None) -> Floats:
    """``values`` as floats, one a task, none missing.

    Infinities are let through: ranks are defined with them.

    Raises:
        SampleError: not numbers, not one dimension, not ``length`` of them, or some missing.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SampleError(f"{name} must hold one number a task ({error}).") from None
    if array.ndim != 1:
        raise SampleError(f"{name} must hold one number a task; it has {array.ndim} dimensions.")
    check_length(len(array), name, length)
    if missing := int(np.isnan(array).sum()):
        raise SampleError(
            f"{name} is missing (NaN) in {missing} of {len(array)} rows; leave those rows out of "
            "every argument, and say so, before calling."
        )
    return array


def labels(values: ArrayLike, name: str, length: int | None = None) -> tuple[Codes, list[Any]]:
    """A code from 0 for each row, and the distinct labels in order of appearance.

    Raises:
        SampleError: not one dimension, not ``length`` labels, or some missing.
    """
    array = np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise SampleError(f"{name} must hold one label a task; it has {array.ndim} dimensions.")
    check_length(len(array), name, length)
    codes, distinct = pd.factorize(array)
    if missing := int((codes < 0).sum()):
        raise SampleError(f"{name} has no label in {missing} of {len(array)} rows.")
    return codes.astype(np.intp), list(distinct)


def check_length(found: int, name: str, length: int | None) -> None:
    """Raise unless the argument is as long as the others."""
    if length is not None and found != length:
        raise SampleError(f"{name} has {found} rows where the other arguments have {length}.")


def count(value: int, name: str, least: int = 0) -> int:
    """``value`` as an int of at least ``least``, or a clear error."""
    try:
        whole = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} is {value!r}; it must be a whole number.") from None
    if whole < least:
        raise ArgumentError(f"{name} is {whole}; it must be at least {least}.")
    return whole


def fraction(value: float, name: str) -> float:
    """``value`` strictly between 0 and 1, or a clear error."""
    if not 0 < value < 1:
        raise ArgumentError(f"{name} is {value!r}; it must lie between 0 and 1, such as 0.95.")
    return float(value)
