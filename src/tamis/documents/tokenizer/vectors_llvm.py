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
Vector = Any  # a value of LLVM's

_BYTE = ir.IntType(8)
_WORD = ir.IntType(64)


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
        places = range(self.size - count, 2 * self.size - count)
        result.bytes = self._shuffled(before.bytes, self.bytes, list(places))
        return result

    def _shuffled(self, low: Vector, high: Vector, places: list[int]) -> Vector:
        chosen = ir.Constant(ir.VectorType(ir.IntType(32), self.size), places)
        return self.builder.shuffle_vector(low, high, chosen)

    def _splat(self, value: Vector | int) -> Vector:
        if isinstance(value, int):
            return ir.Constant(self.type, [value] * self.size)
        undefined = ir.Constant(self.type, ir.Undefined)
        one = self.builder.insert_element(undefined, value, ir.IntType(32)(0))
        return self._shuffled(one, undefined, [0] * self.size)

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


def _masks(count: int, arguments: int = 1, size: int = 64) -> Callable[[Any], Any]:
    """Make an intrinsic of a function that gives ``count`` conditions of the block at an address.

    With two arguments, the function is also given a byte.
    """
    result = types.UniTuple(types.uint64, count) if count > 1 else types.uint64
    signature = result(*[types.int64] * arguments)

    def declare(conditions: Callable[..., list[Vector]]) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, values: list[Vector]) -> Vector:
            block = _Block(builder, values[0], size)
            given = [builder.trunc(value, _BYTE) for value in values[1:]]
            masks = [block.mask(condition) for condition in conditions(block, *given)]
            return context.make_tuple(builder, result, masks) if count > 1 else masks[0]

        if arguments == 1:
            return intrinsic(lambda _typing, _address: (signature, generate))
        return intrinsic(lambda _typing, _address, _byte: (signature, generate))

    return declare


@_masks(4)
def structure(block: _Block) -> list[Vector]:
    white = block.any_of(*(block.equal(ord(character)) for character in "\t\n\r"))
    return [
        block.any_of(block.equal(ord("<")), block.equal(ord("&"))),
        block.equal(ord("]")),
        block.builder.and_(block.below(0x20), block.builder.not_(white)),
        block.not_ascii(),
    ]


@_masks(1)
def returns(block: _Block) -> list[Vector]:
    return [block.equal(ord("\r"))]


def _name_ends(block: _Block) -> list[Vector]:
    ends = (block.equal(ord(character)) for character in "/>=")
    return [block.any_of(block.below(0x21), *ends)]


name_ends = _masks(1)(_name_ends)
near_name_ends = _masks(1, size=32)(_name_ends)


@_masks(1, arguments=2)
def value_ends(block: _Block, quote: Vector) -> list[Vector]:
    special = block.equal(ord("<")), block.equal(ord("&")), block.below(0x20)
    return [block.any_of(block.equal(quote), *special)]


@_masks(4)
def attribute(block: _Block) -> list[Vector]:
    return [
        *(block.equal(ord(character)) for character in "=\"'"),
        block.any_of(block.equal(ord("<")), block.equal(ord("&")), block.below(0x20)),
    ]


@_masks(1, arguments=2)
def found(block: _Block, byte: Vector) -> list[Vector]:
    return [block.any_of(block.equal(byte), block.below(1))]


@_masks(3)
def line_ends(block: _Block) -> list[Vector]:
    tails = block.builder.icmp_signed("<", block.bytes, block._splat(-0x40))
    return [block.equal(ord("\n")), block.equal(ord("\r")), tails]


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
