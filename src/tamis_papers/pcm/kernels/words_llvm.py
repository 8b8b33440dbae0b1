"""The code of LLVM for :mod:`tamis_papers.pcm.kernels.words`.

The code of LLVM for :mod:`tamis_papers.pcm.kernels.words`.
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir

from tamis.core.kernel.record_llvm import Value, intrinsic, types

_WORD = ir.IntType(64)
_EIGHT = ir.VectorType(_WORD, 8)


@intrinsic
def covered(_typing: Any, vectors: Any, _place: Any, _outside: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        data = context.make_array(vectors)(context, builder, values[0]).data
        start = builder.bitcast(builder.gep(data, [values[1]]), _EIGHT.as_pointer())
        eight = builder.load(start, align=8)
        undefined = ir.Constant(_EIGHT, ir.Undefined)
        one = builder.insert_element(undefined, values[2], ir.IntType(32)(0))
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8)
        splat = builder.shuffle_vector(one, undefined, everywhere)
        nothing = ir.Constant(_EIGHT, [0] * 8)
        is_covered = builder.icmp_unsigned("==", builder.and_(eight, splat), nothing)
        return builder.zext(builder.bitcast(is_covered, ir.IntType(8)), _WORD)

    return types.uint64(vectors, types.int64, types.uint64), generate


_PAUSE = {"x86_64": "llvm.x86.sse2.pause", "AMD64": "llvm.x86.sse2.pause"}
"""LLVM's names of the instruction to wait; elsewhere there may be none."""


def _word(context: Any, builder: Any, words: Any, values: list[Value]) -> Value:
    """The address of ``words[place]``."""
    data = context.make_array(words)(context, builder, values[0]).data
    return builder.gep(data, [values[1]])


def _call(builder: Any, name: str, result: Any) -> None:
    """Call a function without arguments that the linker knows, or LLVM."""
    known = builder.module.globals.get(name)
    kind = ir.FunctionType(result, [])
    builder.call(known or ir.Function(builder.module, kind, name), [])


@intrinsic
def add(_typing: Any, words: Any, _place: Any, _amount: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        word = _word(context, builder, words, values)
        return builder.atomic_rmw("add", word, values[2], "seq_cst")

    return types.int64(words, types.int64, types.int64), generate


@intrinsic
def look(_typing: Any, words: Any, _place: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        word = _word(context, builder, words, values)
        return builder.load_atomic(word, "seq_cst", align=8)

    return types.int64(words, types.int64), generate


@intrinsic
def put(_typing: Any, words: Any, _place: Any, _value: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        word = _word(context, builder, words, values)
        builder.store_atomic(values[2], word, "seq_cst", align=8)
        return context.get_dummy_value()

    return types.void(words, types.int64, types.int64), generate


@intrinsic
def pause(_typing: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, _values: list[Value]) -> Value:
        instruction = _PAUSE.get(platform.machine())
        if instruction is not None:
            _call(builder, instruction, ir.VoidType())
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def let_others(_typing: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, _values: list[Value]) -> Value:
        _call(builder, "sched_yield", ir.IntType(32))
        return context.get_dummy_value()

    return types.void(), generate
