"""Asking for memory before it is needed."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from tamis.arrays import intrinsic, types

Value = Any
"""A value of LLVM's."""


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
