"""The code of LLVM for :mod:`tamis.core.kernel.blocks`."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.extending import models as numba_models
from numba.extending import register_model

from tamis.core.kernel.record_llvm import intrinsic, types

Value = Any
"""A value of LLVM's."""

models: Any = numba_models

_VECTOR = ir.VectorType(ir.IntType(64), 8)
_ALIGNMENT = 8
"""Of arrays: NumPy aligns words alone."""


class _BlockType(types.Type):  # type: ignore[misc]
    """Numba's type of a block."""


_BLOCK = _BlockType("Block")


@register_model(_BlockType)
class _BlockModel(models.PrimitiveModel):  # type: ignore[misc]
    """A block is a vector to LLVM."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _address(context: Any, builder: Any, array: Any, values: list[Value]) -> Value:
    data = context.make_array(array)(context, builder, values[0]).data
    return builder.bitcast(builder.gep(data, [values[1]]), _VECTOR.as_pointer())


@intrinsic
def load(_typing: Any, words: Any, _index: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        return builder.load(_address(context, builder, words, values), align=_ALIGNMENT)

    return _BLOCK(words, types.int64), generate


@intrinsic
def store(_typing: Any, words: Any, _index: Any, _block: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        builder.store(values[2], _address(context, builder, words, values), align=_ALIGNMENT)
        return context.get_dummy_value()

    return types.void(words, types.int64, _BLOCK), generate


@intrinsic
def and_(_typing: Any, _one: Any, _other: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        return builder.and_(*values)

    return _BLOCK(_BLOCK, _BLOCK), generate


@intrinsic
def or_(_typing: Any, _one: Any, _other: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        return builder.or_(*values)

    return _BLOCK(_BLOCK, _BLOCK), generate


@intrinsic
def xor(_typing: Any, _one: Any, _other: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, values: list[Value]) -> Value:
        return builder.xor(*values)

    return _BLOCK(_BLOCK, _BLOCK), generate
