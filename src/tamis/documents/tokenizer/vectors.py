"""Blocks of 64 bytes, compared all at once: what Numba does not offer, said in LLVM's own terms.

Each function reads memory at an address, unchecked. A mask has bit ``i`` set where byte ``i`` of
the block is what was asked for. LLVM makes of it what the processor has: one comparison with
AVX-512, two with AVX2, four with SSE2 or NEON.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types as numba_types
from numba.core import cgutils as numba_cgutils
from numba.extending import intrinsic as numba_intrinsic
from numba.np import arrayobj

# Numba has types that are none to mypy.
types: Any = numba_types
cgutils: Any = numba_cgutils
populate_array: Any = arrayobj.populate_array

_BYTE = ir.IntType(8)
_WORD = ir.IntType(64)


def intrinsic(function: Callable[..., Any]) -> Any:
    """Make a function that Numba compiles by calling this one for its LLVM code."""
    return numba_intrinsic(function)


Vector = Any
"""A value of LLVM's."""


class _Block:
    """A block while code for it is made."""

    def __init__(self, builder: Any, address: Vector, size: int = 64) -> None:
        self.builder = builder
        self.size = size
        self.type = ir.VectorType(_BYTE, size)
        self.bytes = builder.load(builder.inttoptr(address, self.type.as_pointer()), align=1)

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
    """An intrinsic that returns masks of the block at its first argument, an address."""
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
    """Of a block: ``<`` and ``&``; ``]``; controls that no document has; beyond ASCII."""
    return _masks(4, 1, _structure)


@intrinsic
def not_ascii(_typing: Any, _address: Any) -> Any:
    """Of a block: beyond ASCII."""
    return _masks(1, 1, lambda block: [block.not_ascii()])


def _returns(block: _Block) -> list[Vector]:
    return [block.equal(ord("\r"))]


@intrinsic
def returns(_typing: Any, _address: Any) -> Any:
    """Of a block: carriage returns."""
    return _masks(1, 1, _returns)


def _name_ends(block: _Block) -> list[Vector]:
    return [
        block.any_of(
            block.below(0x21), block.equal(ord("/")), block.equal(ord(">")), block.equal(ord("="))
        )
    ]


@intrinsic
def name_ends(_typing: Any, _address: Any) -> Any:
    """Of a block: whatever ends a name in a tag: whitespace, ``/``, ``>``, ``=``, and controls."""
    return _masks(1, 1, _name_ends)


@intrinsic
def near_name_ends(_typing: Any, _address: Any) -> Any:
    """``name_ends`` of 32 bytes: enough for most names, and less to load."""
    return _masks(1, 1, _name_ends, 32)


def _value_ends(block: _Block, quote: Vector) -> list[Vector]:
    quotes = block.equal(block.builder.trunc(quote, _BYTE))
    return [
        block.any_of(quotes, block.equal(ord("<")), block.equal(ord("&")), block.below(0x20)),
    ]


@intrinsic
def value_ends(_typing: Any, _address: Any, _quote: Any) -> Any:
    """Of a block: what ends the part of a value that is just copied: a quote, for one."""
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
    """Of a block: ``=``; ``"``; ``'``; what a value cannot be copied over."""
    return _masks(4, 1, _attribute)


def _found(block: _Block, byte: Vector) -> list[Vector]:
    return [block.any_of(block.equal(block.builder.trunc(byte, _BYTE)), block.below(1))]


@intrinsic
def found(_typing: Any, _address: Any, _byte: Any) -> Any:
    """Of a block: a byte, and NUL."""
    return _masks(1, 2, _found)


def _line_ends(block: _Block) -> list[Vector]:
    tails = block.builder.icmp_signed("<", block.bytes, block._splat(-0x40))
    return [block.equal(ord("\n")), block.equal(ord("\r")), tails]


@intrinsic
def line_ends(_typing: Any, _address: Any) -> Any:
    """Of a block: newlines; carriage returns; continuations of characters."""
    return _masks(3, 1, _line_ends)


def _leads(block: _Block) -> list[Vector]:
    builder = block.builder

    def between(low: int, high: int) -> Vector:
        shifted = builder.sub(block.bytes, block._splat(low))
        return builder.icmp_unsigned("<=", shifted, block._splat(high - low))

    return [
        between(0x80, 0xBF),
        between(0xC2, 0xF4),
        between(0xE0, 0xF4),
        between(0xF0, 0xF4),
    ]


@intrinsic
def utf8_leads(_typing: Any, _address: Any) -> Any:
    """Of a block: continuations; leads of characters of 2 to 4 bytes; of 3 and 4; of 4."""
    return _masks(4, 1, _leads)


def _traps(block: _Block) -> list[Vector]:
    return [
        block.equal(0xE0),
        block.equal(0xED),
        block.equal(0xF0),
        block.equal(0xF4),
        block.equal(0xEF),
        block.below(0x90),
        block.below(0xA0),
        block.equal(0xBF),
        block.any_of(block.equal(0xBE), block.equal(0xBF)),
    ]


@intrinsic
def utf8_traps(_typing: Any, _address: Any) -> Any:
    """Of a block, what restricts the byte behind it, and what is restricted.

    E0, ED, F0, F4, EF; bytes below 90, and below A0; BF; BE and BF.
    """
    return _masks(9, 1, _traps)


@intrinsic
def word(_typing: Any, _address: Any) -> Any:
    """The 8 bytes at an address, the first one lowest."""

    def generate(_context: Any, builder: Any, _signature: Any, values: list[Vector]) -> Vector:
        return builder.load(builder.inttoptr(values[0], _WORD.as_pointer()), align=1)

    return types.uint64(types.int64), generate


@intrinsic
def byte(_typing: Any, _address: Any) -> Any:
    """The byte at an address."""

    def generate(_context: Any, builder: Any, _signature: Any, values: list[Vector]) -> Vector:
        loaded = builder.load(builder.inttoptr(values[0], _BYTE.as_pointer()))
        return builder.zext(loaded, _WORD)

    return types.int64(types.int64), generate


@intrinsic
def first(_typing: Any, _mask: Any) -> Any:
    """The number of the lowest bit that is set, 64 for none."""

    def generate(_context: Any, builder: Any, _signature: Any, values: list[Vector]) -> Vector:
        return builder.cttz(values[0], ir.IntType(1)(0))

    return types.int64(types.uint64), generate


@intrinsic
def ones(_typing: Any, _mask: Any) -> Any:
    """How many bits are set."""

    def generate(_context: Any, builder: Any, _signature: Any, values: list[Vector]) -> Vector:
        return builder.ctpop(values[0])

    return types.int64(types.uint64), generate


@intrinsic
def last(_typing: Any, _mask: Any) -> Any:
    """The number of the highest bit that is set; the mask is not 0."""

    def generate(_context: Any, builder: Any, _signature: Any, values: list[Vector]) -> Vector:
        return builder.sub(_WORD(63), builder.ctlz(values[0], ir.IntType(1)(1)))

    return types.int64(types.uint64), generate


@intrinsic
def bits(_typing: Any, _mask: Any) -> Any:
    """How many bits are set."""

    def generate(_context: Any, builder: Any, _signature: Any, values: list[Vector]) -> Vector:
        return builder.ctpop(values[0])

    return types.int64(types.uint64), generate


@intrinsic
def copy(_typing: Any, _target: Any, _source: Any, _size: Any) -> Any:
    """Copy bytes from one address to another; they do not overlap."""

    def generate(context: Any, builder: Any, _signature: Any, values: list[Vector]) -> Vector:
        pointers = [builder.inttoptr(value, _BYTE.as_pointer()) for value in values[:2]]
        cgutils.raw_memcpy(builder, *pointers, values[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _array(of: Any) -> Any:
    """An intrinsic that makes an array of an address and a length."""
    result = types.Array(of, 1, "C")

    def generate(context: Any, builder: Any, _signature: Any, values: list[Vector]) -> Vector:
        array = context.make_array(result)(context, builder)
        item = context.get_data_type(of)
        size = context.get_constant(types.intp, context.get_abi_sizeof(item))
        populate_array(
            array,
            data=builder.inttoptr(values[0], item.as_pointer()),
            shape=[values[1]],
            strides=[size],
            itemsize=size,
            meminfo=None,
        )
        return array._getvalue()

    return result(types.int64, types.int64), generate


@intrinsic
def bytes_at(_typing: Any, _address: Any, _length: Any) -> Any:
    """The array of uint8 at an address."""
    return _array(types.uint8)


@intrinsic
def int32s_at(_typing: Any, _address: Any, _length: Any) -> Any:
    """The array of int32 at an address."""
    return _array(types.int32)


@intrinsic
def int64s_at(_typing: Any, _address: Any, _length: Any) -> Any:
    """The array of int64 at an address."""
    return _array(types.int64)


@intrinsic
def words_at(_typing: Any, _address: Any, _length: Any) -> Any:
    """The array of uint64 at an address."""
    return _array(types.uint64)
