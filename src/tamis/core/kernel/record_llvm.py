"""The code of LLVM for :mod:`tamis.core.kernel.record`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types as numba_types
from numba.extending import intrinsic as numba_intrinsic
from numba.np import arrayobj

# Numba has types that are none to mypy.
types: Any = numba_types


def intrinsic(function: Callable[..., Any]) -> Any:
    """Make a function that Numba compiles by calling this one for its LLVM code."""
    return numba_intrinsic(function)


populate_array: Any = arrayobj.populate_array

_WORD = ir.IntType(64)

Value = Any
"""A value of LLVM's."""


def _registered_array(of: Any, state: Any) -> Any:
    """An intrinsic that makes an array of a field."""
    result = types.Array(of, 1, "C")

    def generate(context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        state_data = context.make_array(state)(context, builder, values[0]).data
        field = builder.gep(state_data, [values[1]])
        item = context.get_data_type(of)
        size = context.get_constant(types.intp, context.get_abi_sizeof(item))
        array = context.make_array(result)(context, builder)
        populate_array(
            array,
            data=builder.inttoptr(builder.load(field), item.as_pointer()),
            shape=[builder.load(builder.gep(field, [_WORD(1)]))],
            strides=[size],
            itemsize=size,
            meminfo=None,
        )
        return array._getvalue()

    return result(state, types.int64), generate


@intrinsic
def uint8s(_typing: Any, state: Any, _field: Any) -> Any:
    return _registered_array(types.uint8, state)


@intrinsic
def int32s(_typing: Any, state: Any, _field: Any) -> Any:
    return _registered_array(types.int32, state)


@intrinsic
def int64s(_typing: Any, state: Any, _field: Any) -> Any:
    return _registered_array(types.int64, state)


@intrinsic
def uint64s(_typing: Any, state: Any, _field: Any) -> Any:
    return _registered_array(types.uint64, state)


@intrinsic
def float64s(_typing: Any, state: Any, _field: Any) -> Any:
    return _registered_array(types.float64, state)


@intrinsic
def prefetch(_typing: Any, array: Any, _field: Any) -> Any:

    def generate(context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        data = context.make_array(array)(context, builder, values[0]).data
        item = builder.bitcast(builder.gep(data, [values[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [item.type, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [item.type], kind)
        builder.call(function, [item, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate
