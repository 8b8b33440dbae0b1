"""The code of LLVM for :mod:`tamis.documents.tokenizer.vectors`: comparisons of whole blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types as numba_types
from numba.core import cgutils as numba_cgutils

from tamis.core.kernel.record_llvm import intrinsic

# Numba has types that are none to mypy.
types: Any = numba_types
cgutils: Any = numba_cgutils

_BYTE = ir.IntType(8)
_WORD = ir.IntType(64)


Vector = Any
"""A value of LLVM's."""


class _Block:
    """A block while code for it is made."""

    def __init__(self, builder: Any, address: Vector | None, size: int = 64) -> None:
        self.builder = builder
        self.size = size
        self.type = ir.VectorType(_BYTE, size)
        if address is not None:
            pointer = builder.inttoptr(address, self.type.as_pointer())
            self.bytes = builder.load(pointer, align=1)

    def shifted(self, before: _Block, count: int) -> _Block:
        """The block that begins ``count`` bytes earlier."""
        result = _Block(self.builder, None, self.size)
        places = [self.size - count + i for i in range(self.size)]
        chosen = ir.Constant(ir.VectorType(ir.IntType(32), self.size), places)
        result.bytes = self.builder.shuffle_vector(before.bytes, self.bytes, chosen)
        return result

    def _splat(self, value: Vector | int) -> Vector:
        if isinstance(value, int):
            return ir.Constant(self.type, [value] * self.size)
        undefined = ir.Constant(self.type, ir.Undefined)
        one = self.builder.insert_element(undefined, value, ir.IntType(32)(0))
        places = ir.Constant(ir.VectorType(ir.IntType(32), self.size), [0] * self.size)
        return self.builder.shuffle_vector(one, undefined, places)

    def equal(self, value: Vector | int) -> Vector:
        return self.builder.icmp_unsigned("==", self.bytes, self._splat(value))

    def below(self, value: int) -> Vector:
        return self.builder.icmp_unsigned("<", self.bytes, self._splat(value))

    def at_least(self, value: int) -> Vector:
        return self.builder.icmp_unsigned(">=", self.bytes, self._splat(value))

    def not_ascii(self) -> Vector:
        return self.builder.icmp_signed("<", self.bytes, self._splat(0))

    def any_of(self, *conditions: Vector) -> Vector:
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.builder.or_(result, condition)
        return result

    def mask(self, condition: Vector) -> Vector:
        bits = self.builder.bitcast(condition, ir.IntType(self.size))
        return bits if self.size == 64 else self.builder.zext(bits, _WORD)


def _masks(count: int, arguments: int, make: Callable[..., list[Vector]], size: int = 64) -> Any:
    result = types.UniTuple(types.uint64, count) if count > 1 else types.uint64
    signature = result(*[types.int64] * arguments)

    def generate(context: Any, builder: Any, _signature: Any, values: list[Vector]) -> Vector:
        block = _Block(builder, values[0], size)
        masks = [block.mask(condition) for condition in make(block, *values[1:])]
        return context.make_tuple(builder, result, masks) if count > 1 else masks[0]

    return signature, generate


def _structure(block: _Block) -> list[Vector]:
    white = block.any_of(*(block.equal(ord(character)) for character in "\t\n\r"))
    return [
        block.any_of(block.equal(ord("<")), block.equal(ord("&"))),
        block.equal(ord("]")),
        block.builder.and_(block.below(0x20), block.builder.not_(white)),
        block.not_ascii(),
    ]


@intrinsic
def structure(_typing: Any, _address: Any) -> Any:
    return _masks(4, 1, _structure)


def _returns(block: _Block) -> list[Vector]:
    return [block.equal(ord("\r"))]


@intrinsic
def returns(_typing: Any, _address: Any) -> Any:
    return _masks(1, 1, _returns)


def _name_ends(block: _Block) -> list[Vector]:
    return [
        block.any_of(
            block.below(0x21), block.equal(ord("/")), block.equal(ord(">")), block.equal(ord("="))
        )
    ]


@intrinsic
def name_ends(_typing: Any, _address: Any) -> Any:
    return _masks(1, 1, _name_ends)


@intrinsic
def near_name_ends(_typing: Any, _address: Any) -> Any:
    return _masks(1, 1, _name_ends, 32)


def _value_ends(block: _Block, quote: Vector) -> list[Vector]:
    quotes = block.equal(block.builder.trunc(quote, _BYTE))
    return [
        block.any_of(quotes, block.equal(ord("<")), block.equal(ord("&")), block.below(0x20)),
    ]


@intrinsic
def value_ends(_typing: Any, _address: Any, _quote: Any) -> Any:
    return _masks(1, 2, _value_ends)


def _attribute(block: _Block) -> list[Vector]:
    return [
        block.equal(ord("=")),
        block.equal(ord('"')),
        block.equal(ord("'")),
        block.any_of(block.equal(ord("<")), block.equal(ord("&")), block.below(0x20)),
    ]


@intrinsic
def attribute(_typing: Any, _address: Any) -> Any:
    return _masks(4, 1, _attribute)


def _found(block: _Block, byte: Vector) -> list[Vector]:
    return [block.any_of(block.equal(block.builder.trunc(byte, _BYTE)), block.below(1))]


@intrinsic
def found(_typing: Any, _address: Any, _byte: Any) -> Any:
    return _masks(1, 2, _found)


def _line_ends(block: _Block) -> list[Vector]:
    tails = block.builder.icmp_signed("<", block.bytes, block._splat(-0x40))
    return [block.equal(ord("\n")), block.equal(ord("\r")), tails]


@intrinsic
def line_ends(_typing: Any, _address: Any) -> Any:
    return _masks(3, 1, _line_ends)


def _utf8_faults(block: _Block, before: _Block) -> Vector:
    """Where a byte cannot follow those before it (U+FFFE and U+FFFF are characters of nobody)."""
    builder = block.builder
    after_1, after_2, after_3 = (block.shifted(before, count) for count in (1, 2, 3))
    expected = block.any_of(after_1.at_least(0xC0), after_2.at_least(0xE0), after_3.at_least(0xF0))
    continues = builder.and_(block.at_least(0x80), block.below(0xC0))
    low = block.any_of(
        builder.and_(after_1.equal(0xE0), block.below(0xA0)),  # longer than need be
        builder.and_(after_1.equal(0xF0), block.below(0x90)),
    )
    high = block.any_of(
        builder.and_(after_1.equal(0xED), block.at_least(0xA0)),  # surrogates
        builder.and_(after_1.equal(0xF4), block.at_least(0x90)),  # beyond Unicode
    )
    never = block.any_of(block.equal(0xC0), block.equal(0xC1), block.at_least(0xF5))
    last_two = builder.and_(
        builder.and_(after_2.equal(0xEF), after_1.equal(0xBF)), block.at_least(0xBE)
    )
    return block.any_of(builder.xor(expected, continues), low, high, never, last_two)


@intrinsic
def utf8_faults(_typing: Any, _address: Any, _before: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, values: list[Vector]) -> Vector:
        block, before = (_Block(builder, address) for address in values)
        return block.mask(_utf8_faults(block, before))

    return types.uint64(types.int64, types.int64), generate


@intrinsic
def word(_typing: Any, _address: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, values: list[Vector]) -> Vector:
        return builder.load(builder.inttoptr(values[0], _WORD.as_pointer()), align=1)

    return types.uint64(types.int64), generate


@intrinsic
def byte(_typing: Any, _address: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, values: list[Vector]) -> Vector:
        loaded = builder.load(builder.inttoptr(values[0], _BYTE.as_pointer()))
        return builder.zext(loaded, _WORD)

    return types.int64(types.int64), generate


@intrinsic
def copy(_typing: Any, _target: Any, _source: Any, _size: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, values: list[Vector]) -> Vector:
        pointers = [builder.inttoptr(value, _BYTE.as_pointer()) for value in values[:2]]
        cgutils.raw_memcpy(builder, *pointers, values[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate
