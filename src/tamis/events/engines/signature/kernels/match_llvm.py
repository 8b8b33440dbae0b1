"""The code of LLVM for :mod:`tamis.events.engines.signature.kernels.match`."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from tamis.core.kernel.record_llvm import Value, intrinsic, types
from tamis.events.engines.signature.kernels.match import LANES

_INT = ir.IntType(32)
_VECTOR = ir.VectorType(_INT, LANES)


def _splat(builder: Any, value: Value) -> Value:
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(undefined, value, _INT(0))
    places = ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES)
    return builder.shuffle_vector(one, undefined, places)


def _load(context: Any, builder: Any, array: Any, value: Value, offset: Value) -> Value:
    data = context.make_array(array)(context, builder, value).data
    address = builder.gep(data, [offset])
    return builder.load(builder.bitcast(address, _VECTOR.as_pointer()), align=4)


def _mask(builder: Any, condition: Value) -> Value:
    return builder.zext(builder.bitcast(condition, ir.IntType(LANES)), ir.IntType(64))


@intrinsic
def within(_typing: Any, array: Any, _place: Any, _rank: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        low_half = ir.Constant(_VECTOR, [0xFFFF] * LANES)
        half = ir.Constant(_VECTOR, [16] * LANES)
        bounds = _load(context, builder, array, values[0], values[1])
        rank = _splat(builder, builder.trunc(values[2], _INT))
        above = builder.and_(builder.sub(rank, bounds), low_half)
        return _mask(builder, builder.icmp_unsigned("<=", above, builder.lshr(bounds, half)))

    return types.uint64(array, types.int64, types.int64), generate


@intrinsic
def within_wide(_typing: Any, array: Any, _low: Any, _width: Any, _rank: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        low = _load(context, builder, array, values[0], values[1])
        width = _load(context, builder, array, values[0], values[2])
        above = builder.sub(_splat(builder, builder.trunc(values[3], _INT)), low)
        return _mask(builder, builder.icmp_unsigned("<=", above, width))

    return types.uint64(array, types.int64, types.int64, types.int64), generate
