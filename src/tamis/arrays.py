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

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types as numba_types
from numba.extending import intrinsic as numba_intrinsic
from numba.np import arrayobj
from numpy.typing import NDArray

# Numba has types that are none to mypy.
types: Any = numba_types
populate_array: Any = arrayobj.populate_array

_WORD = ir.IntType(64)

Value = Any
"""A value of LLVM's."""


def intrinsic(function: Callable[..., Any]) -> Any:
    """Make a function that Numba compiles by calling this one for its LLVM code."""
    return numba_intrinsic(function)


def places(arrays: Any, start: int) -> Any:
    """The same tuple, of the places of arrays in a state, from ``start`` on."""
    return arrays(*range(start, start + 2 * len(arrays._fields), 2))


def note(
    state: NDArray[np.int64],
    place: int,
    arrays: Sequence[Any],
    noted: list[NDArray[Any]] | None = None,
) -> None:
    """Note the address and length of each array of a tuple, which may hold tuples, from a place on.

    ``note_arrays`` is the same for kernels.

    Args:
        noted: those that were noted there before, or none; they are left out (to ask an array for
            its address takes a microsecond), and it is brought up to date.
    """
    for number, array in enumerate(_flat(arrays)):
        if noted is not None:
            if number == len(noted):
                noted.append(array)
            elif noted[number] is array:
                continue
            noted[number] = array
        assert array.flags.c_contiguous
        state[place + 2 * number] = array.__array_interface__["data"][0]
        state[place + 2 * number + 1] = array.size


def _flat(arrays: Sequence[Any]) -> Iterator[NDArray[Any]]:
    for part in arrays:
        if isinstance(part, np.ndarray):
            yield part
        else:
            yield from part


@intrinsic
def note_arrays(_typing: Any, state: Any, _place: Any, arrays: Any) -> Any:
    """Note the address and length of each array of a tuple, in an int64 array from a place on."""

    def generate(context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        noted = context.make_array(state)(context, builder, values[0]).data
        for number, of in enumerate(arrays):
            value = builder.extract_value(values[2], number)
            array = context.make_array(of)(context, builder, value)
            place = builder.gep(noted, [builder.add(values[1], _WORD(2 * number))])
            builder.store(builder.ptrtoint(array.data, _WORD), place)
            builder.store(array.nitems, builder.gep(place, [_WORD(1)]))
        return context.get_dummy_value()

    return types.void(state, types.int64, arrays), generate


def _noted_array(of: Any, state: Any) -> Any:
    """An intrinsic that makes an array of what ``note_arrays`` noted at a place."""
    result = types.Array(of, 1, "C")

    def generate(context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        noted = context.make_array(state)(context, builder, values[0]).data
        place = builder.gep(noted, [values[1]])
        item = context.get_data_type(of)
        size = context.get_constant(types.intp, context.get_abi_sizeof(item))
        array = context.make_array(result)(context, builder)
        populate_array(
            array,
            data=builder.inttoptr(builder.load(place), item.as_pointer()),
            shape=[builder.load(builder.gep(place, [_WORD(1)]))],
            strides=[size],
            itemsize=size,
            meminfo=None,
        )
        return array._getvalue()

    return result(state, types.int64), generate


@intrinsic
def uint8s(_typing: Any, state: Any, _place: Any) -> Any:
    """The array of uint8 that was noted at a place."""
    return _noted_array(types.uint8, state)


@intrinsic
def int32s(_typing: Any, state: Any, _place: Any) -> Any:
    """The array of int32 that was noted at a place."""
    return _noted_array(types.int32, state)


@intrinsic
def int64s(_typing: Any, state: Any, _place: Any) -> Any:
    """The array of int64 that was noted at a place."""
    return _noted_array(types.int64, state)


@intrinsic
def uint64s(_typing: Any, state: Any, _place: Any) -> Any:
    """The array of uint64 that was noted at a place."""
    return _noted_array(types.uint64, state)


@intrinsic
def float64s(_typing: Any, state: Any, _place: Any) -> Any:
    """The array of float64 that was noted at a place."""
    return _noted_array(types.float64, state)


@intrinsic
def prefetch(_typing: Any, array: Any, _place: Any) -> Any:
    """Have the line of memory fetched in which an item of an array is; no index is checked."""

    def generate(context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        data = context.make_array(array)(context, builder, values[0]).data
        item = builder.bitcast(builder.gep(data, [values[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [item.type, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [item.type], kind)
        builder.call(function, [item, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate
