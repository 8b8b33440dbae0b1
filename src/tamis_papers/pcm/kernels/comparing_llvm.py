"""The code of LLVM for :mod:`tamis_papers.pcm.kernels.comparing`."""

from __future__ import annotations

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
