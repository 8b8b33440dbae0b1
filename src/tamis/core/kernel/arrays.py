"""Arrays that kernels find by a number, their *place*, in one array of addresses: the state.

To hand over many arrays at each call takes Numba long, to compile and to run. So the caller notes
where they are, once; the arrays must stay alive as long as kernels may look for them. A tuple of
arrays has a namesake of their places, so that each array is listed once:

>>> from typing import NamedTuple
>>> class Output(NamedTuple):
...     tags: object
...     texts: object
>>> places(Output, 10)
Output(tags=10, texts=12)
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int64
from tamis.core.kernel.declare import WideArray, intrinsic
from tamis.core.kernel.library import address_of


def places(arrays: Any, start: int) -> Any:
    """The same tuple, of the places of arrays in a state, from ``start`` on."""
    return arrays(*range(start, start + 2 * len(arrays._fields), 2))


def note(state: Int64, place: int, arrays: Sequence[Any]) -> None:
    """Note addresses and lengths of a tuple's arrays, or of those in it, from a place on."""
    words: list[int] = []
    for array in _flat(arrays):
        if not array.flags.c_contiguous:
            raise TypeError("a kernel can only find contiguous arrays")
        words += (address_of(array), array.size)
    state[place : place + len(words)] = words


def _flat(arrays: Sequence[Any]) -> Iterator[NDArray[Any]]:
    for part in arrays:
        if isinstance(part, np.ndarray):
            yield part
        else:
            yield from part


@intrinsic
def uint8s(state: Int64, place: int) -> NDArray[np.uint8]:
    """The array of uint8 that was noted at a place."""
    return _noted(state, place, ctypes.c_uint8)


@intrinsic
def int32s(state: Int64, place: int) -> NDArray[np.int32]:
    """The array of int32 that was noted at a place."""
    return _noted(state, place, ctypes.c_int32)


@intrinsic
def int64s(state: Int64, place: int) -> Int64:
    """The array of int64 that was noted at a place."""
    return _noted(state, place, ctypes.c_int64)


@intrinsic
def uint64s(state: Int64, place: int) -> NDArray[np.uint64]:
    """The array of uint64 that was noted at a place."""
    return _noted(state, place, ctypes.c_uint64)


@intrinsic
def float64s(state: Int64, place: int) -> NDArray[np.float64]:
    """The array of float64 that was noted at a place."""
    return _noted(state, place, ctypes.c_double)


@intrinsic
def prefetch(_array: NDArray[Any], _place: int) -> None:
    """Have the line of memory fetched in which an item of an array is; no index is checked."""


def _noted(state: Int64, place: int, item: Any) -> NDArray[Any]:
    address, length = int(state[place]), int(state[place + 1])
    return np.ctypeslib.as_array((item * length).from_address(address)).view(WideArray)
