"""What all parts do with arrays."""

from __future__ import annotations

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


def freeze(*arrays: NDArray[Any]) -> None:
    """Make arrays read-only, as all are that cross from one part of Tamis to another."""
    for values in arrays:
        values.flags.writeable = False
