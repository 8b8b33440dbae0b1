"""The code of LLVM for :mod:`tamis.core.kernel.bits`."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from tamis.core.kernel.record_llvm import intrinsic, types

Value = Any
"""A value of LLVM's."""


@intrinsic
def first(_typing: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        return builder.cttz(values[0], ir.IntType(1)(0))

    return types.int64(types.uint64), generate


@intrinsic
def ones(_typing: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        return builder.ctpop(values[0])

    return types.int64(types.uint64), generate


@intrinsic
def last(_typing: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        return builder.sub(ir.IntType(64)(63), builder.ctlz(values[0], ir.IntType(1)(1)))

    return types.int64(types.uint64), generate


@intrinsic
def big_endian(_typing: Any, array: Any, _place: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        data = context.make_array(array)(context, builder, values[0]).data
        address = builder.gep(data, [values[1]])
        word = builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()), align=1)
        return builder.bswap(word)

    return types.uint64(array, types.int64), generate


@intrinsic
def if_less(_typing: Any, _one: Any, _other: Any, _value: Any, _otherwise: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        chosen = builder.select(builder.icmp_unsigned("<", *values[:2]), *values[2:])
        chosen.set_metadata("unpredictable", builder.module.add_metadata([]))
        return chosen

    of = (types.uint64, types.uint64, types.int64, types.int64)
    return types.int64(*of), generate
