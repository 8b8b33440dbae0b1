"""Kernels receive one int64 array, the state: addresses and lengths of arrays, and numbers.

A *field* is the index in the state at which an array's address is, and behind it the number of its
items. To pass many arrays at each call would take longer than a short kernel runs. A tuple of
arrays has a tuple of the same type that holds their fields, so each array is declared once:

>>> from typing import NamedTuple
>>> class Input(NamedTuple):
...     numbers: Int64
>>> class Work(NamedTuple):
...     found: Int64
...     places: Int64
>>> NEXT, FOUND, NUMBERS = range(3)
>>> INPUT, WORK, STATE_SIZE = lay_out(NUMBERS, Input, Work)
>>> INPUT, WORK, STATE_SIZE
(Input(numbers=2), Work(found=4, places=6), 8)
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int64
from tamis.core.kernel.declare import WideArray, inlined, intrinsic
from tamis.core.kernel.library import HEAD_BYTES, from_address


def fields(arrays: Any, start: int) -> Any:
    """The fields of a tuple's arrays in a state, from ``start`` on."""
    return arrays(*range(start, start + 2 * len(arrays._fields), 2))


def lay_out(start: int, *tuples: Any) -> tuple[Any, ...]:
    """The fields of some tuples' arrays, tuple after tuple from ``start`` on; and where they end.

    ``start`` is how many numbers the state begins with; the end is the size of the state.
    """
    found = []
    for each in tuples:
        found.append(fields(each, start))
        start += 2 * len(each._fields)
    return (*found, start)


def register(state: Int64, field: int, arrays: Sequence[Any]) -> None:
    """Write the addresses and lengths of a tuple's arrays, nested tuples too, from a field on.

    The caller keeps the arrays alive as long as kernels may use them. ``State`` of
    :mod:`.state` does that itself.

    Raises:
        TypeError: one is not an array, or is not contiguous.
    """
    words: list[int] = []
    _add_addresses(words, arrays)
    state[field : field + len(words)] = words


def _add_addresses(words: list[int], arrays: Sequence[Any]) -> None:
    for array in arrays:
        if isinstance(array, np.ndarray) and array.flags.c_contiguous:
            # As ``address_of``, whose call takes as long: most kernels get dozens of arrays.
            words += (from_address(id(array) + HEAD_BYTES).value, array.size)
        elif isinstance(array, tuple):
            _add_addresses(words, array)
        else:
            raise TypeError("kernels use contiguous arrays alone")


@intrinsic
def uint8s(state: Int64, field: int) -> NDArray[np.uint8]:
    """The array of uint8 of a field."""
    return _registered(state, field, ctypes.c_uint8)


@intrinsic
def int32s(state: Int64, field: int) -> NDArray[np.int32]:
    """The array of int32 of a field."""
    return _registered(state, field, ctypes.c_int32)


@intrinsic
def int64s(state: Int64, field: int) -> Int64:
    """The array of int64 of a field."""
    return _registered(state, field, ctypes.c_int64)


@intrinsic
def uint64s(state: Int64, field: int) -> NDArray[np.uint64]:
    """The array of uint64 of a field."""
    return _registered(state, field, ctypes.c_uint64)


@intrinsic
def float64s(state: Int64, field: int) -> NDArray[np.float64]:
    """The array of float64 of a field."""
    return _registered(state, field, ctypes.c_double)


@inlined
def borrow(state: Int64, source: int, places: int) -> None:
    """Have a state read arrays of another one, which is in its own field ``source``.

    ``places`` is the field of rows of four numbers, one for each array: its field here; its field
    there; the place there that says how many items it has; and how many more there are.
    """
    lender, rows = int64s(state, source), int64s(state, places)
    for row in range(0, len(rows), 4):
        state[rows[row]] = lender[rows[row + 1]]
        state[rows[row] + 1] = lender[rows[row + 2]] + rows[row + 3]


@intrinsic
def prefetch(_array: NDArray[Any], _field: int) -> None:
    """Have the line of memory fetched in which an item of an array is; no index is checked."""


def _registered(state: Int64, field: int, item: Any) -> NDArray[Any]:
    address, length = int(state[field]), int(state[field + 1])
    return np.ctypeslib.as_array((item * length).from_address(address)).view(WideArray)
