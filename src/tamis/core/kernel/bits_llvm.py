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
