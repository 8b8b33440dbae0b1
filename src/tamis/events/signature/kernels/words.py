"""What the kernels need of the processor, and hashes."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from tamis.arrays import intrinsic, types
from tamis.jit import inlined

U = np.uint64
_LANES = 8
_INT = ir.IntType(32)
_WORD = ir.IntType(64)
_VECTOR = ir.VectorType(_INT, _LANES)

Value = Any
"""A value of LLVM's."""


def _address(context: Any, builder: Any, array_type: Any, array: Value, place: Value) -> Value:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [place])


@intrinsic
def prefetch(_typing: Any, array: Any, _place: Any) -> Any:
    """Begin to load the cache line that an item of an array is in."""

    def generate(context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        address = _address(context, builder, array, *values)
        pointer = builder.bitcast(address, ir.IntType(8).as_pointer())
        flags = [_INT(0), _INT(3), _INT(1)]
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, *(flag.type for flag in flags)])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        builder.call(function, [pointer, *flags])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _splat(builder: Any, value: Value) -> Value:
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(undefined, value, _INT(0))
    places = ir.Constant(ir.VectorType(_INT, _LANES), [0] * _LANES)
    return builder.shuffle_vector(one, undefined, places)


@intrinsic
def within(_typing: Any, array: Any, _low: Any, _width: Any, _rank: Any) -> Any:
    """Bit i: whether a rank is within ``low`` and ``low + width`` of the i-th of eight ranges.

    Args:
        array: int32[]; has eight of each from places ``low`` and ``width`` on.
    """

    def generate(context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        def load(place: Value) -> Value:
            address = _address(context, builder, array, values[0], place)
            return builder.load(builder.bitcast(address, _VECTOR.as_pointer()), align=4)

        rank = _splat(builder, builder.trunc(values[3], _INT))
        above = builder.sub(rank, load(values[1]))
        is_within = builder.icmp_unsigned("<=", above, load(values[2]))
        return builder.zext(builder.bitcast(is_within, ir.IntType(_LANES)), _WORD)

    return types.uint64(array, types.int64, types.int64, types.int64), generate


@inlined
def is_within(low: int, width: int, rank: int) -> bool:
    """The same of one range."""
    return ((rank - low) & 0xFFFFFFFF) <= (width & 0xFFFFFFFF)


@inlined
def mixed(word: np.uint64) -> np.uint64:
    """Another word, each bit of which depends on all of this one (SplitMix64's last steps)."""
    word = (word ^ (word >> U(30))) * U(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> U(27))) * U(0x94D049BB133111EB)
    return word ^ (word >> U(31))


@inlined
def constant_hash(signature: np.uint64, key: int, rank: int) -> np.uint64:
    """The hash of a cell for a constant of a key, from the sum for its signature."""
    return mixed(signature + mixed((U(key) << U(32)) | U(rank)))


@inlined
def name_bit(key_hash: np.uint64) -> np.uint64:
    """The bit of a key in a set of 64 bits."""
    return U(1) << (key_hash >> U(58))
