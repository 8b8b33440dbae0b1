"""What all parts do with arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]
Item = TypeVar("Item", bound=np.generic)


def distinct(values: NDArray[Item]) -> NDArray[Item]:
    """The values that are in an array, ascending, each once.

    NumPy's own ``unique`` imports its masked arrays first, which takes longer than a small match.

    >>> distinct(np.array([3, 1, 3]))
    array([1, 3])
    """
    ordered = np.sort(values, axis=None)
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def dtype_of(annotation: Any) -> np.dtype[Any]:
    """The type of the items of ``NDArray[…]``; NumPy's versions write that in two ways.

    >>> dtype_of(NDArray[np.int32])
    dtype('int32')
    """
    *_, last = get_args(annotation)
    (item,) = get_args(last) or (last,)
    found: np.dtype[Any] = np.dtype(item)
    return found


def starts_of(sizes: NDArray[Any] | Sequence[int]) -> Int64:
    """Where each of some lists begins when they follow each other, and where the last one ends.

    >>> starts_of([2, 0, 3])
    array([0, 2, 2, 5])
    """
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def flat_indices(starts: Int64, sizes: NDArray[Any]) -> Int64:
    """The indices of the items of some lists, list after list.

    >>> flat_indices(np.array([10, 5]), np.array([2, 3]))
    array([10, 11,  5,  6,  7])
    """
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    indices: Int64 = np.arange(total) + np.repeat(starts - ends + sizes, sizes)
    return indices


def freeze(*arrays: NDArray[Any]) -> None:
    """Make arrays read-only, as all are that cross from one part of Tamis to another."""
    for values in arrays:
        values.flags.writeable = False
