"""Blocks of 64 bytes, compared all at once: what Numba does not offer, said in LLVM's own terms.

The code is in ``vectors_llvm``; here stands what it does, in Python. Most functions read memory at
an address, unchecked. A mask has bit ``i`` set where byte ``i`` of the block is what was asked for.
LLVM makes of it what the processor has: one comparison with AVX-512, two with AVX2, four with SSE2
or NEON.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from tamis.core.kernel import U
from tamis.core.kernel.declare import intrinsic

ALL = U(0xFFFFFFFFFFFFFFFF)
ONE = U(1)
ZERO = U(0)
BLOCK = 64

Masks = tuple[np.uint64, ...]


def _mask(address: int, is_found: Callable[[int], bool], size: int = BLOCK) -> np.uint64:
    found = enumerate(ctypes.string_at(int(address), size))
    return U(sum(1 << place for place, byte in found if is_found(byte)))


@intrinsic
def structure(address: int) -> Masks:
    """Of a block: ``<`` and ``&``; ``]``; controls that no document has; beyond ASCII."""
    return (
        _mask(address, lambda byte: byte in b"<&"),
        _mask(address, lambda byte: byte == ord("]")),
        _mask(address, lambda byte: byte < 0x20 and byte not in b"\t\n\r"),
        _mask(address, lambda byte: byte >= 0x80),
    )


@intrinsic
def returns(address: int) -> np.uint64:
    """Of a block: carriage returns."""
    return _mask(address, lambda byte: byte == ord("\r"))


def _ends_name(byte: int) -> bool:
    return byte < 0x21 or byte in b"/>="


@intrinsic
def name_ends(address: int) -> np.uint64:
    """Of a block: whatever ends a name in a tag: whitespace, ``/``, ``>``, ``=``, and controls."""
    return _mask(address, _ends_name)


@intrinsic
def near_name_ends(address: int) -> np.uint64:
    """``name_ends`` of 32 bytes: enough for most names, and less to load."""
    return _mask(address, _ends_name, 32)


@intrinsic
def value_ends(address: int, quote: int) -> np.uint64:
    """Of a block: what ends the part of a value that is just copied: a quote, for one."""
    return _mask(address, lambda byte: byte < 0x20 or byte in (quote, ord("<"), ord("&")))


@intrinsic
def attribute(address: int) -> Masks:
    """Of a block: ``=``; ``"``; ``'``; what a value cannot be copied over."""
    return (
        _mask(address, lambda byte: byte == ord("=")),
        _mask(address, lambda byte: byte == ord('"')),
        _mask(address, lambda byte: byte == ord("'")),
        _mask(address, lambda byte: byte < 0x20 or byte in b"<&"),
    )


@intrinsic
def found(address: int, byte: int) -> np.uint64:
    """Of a block: a byte, and NUL."""
    return _mask(address, lambda each: each in (byte, 0))


@intrinsic
def line_ends(address: int) -> Masks:
    """Of a block: newlines; carriage returns; continuations of characters."""
    return (
        _mask(address, lambda byte: byte == ord("\n")),
        _mask(address, lambda byte: byte == ord("\r")),
        _mask(address, lambda byte: 0x80 <= byte < 0xC0),
    )


@intrinsic
def utf8_faults(address: int, before: int) -> np.uint64:
    """Of a block, where it is not UTF-8, or U+FFFE or U+FFFF.

    The second address is that of the 64 bytes before it. Characters that are not complete at the
    end of the block are faults of the next one.
    """
    data = ctypes.string_at(int(before), BLOCK)[-3:] + ctypes.string_at(int(address), BLOCK)
    return U(sum(1 << place for place in range(BLOCK) if _is_fault(*data[place : place + 4])))


def _is_fault(third: int, second: int, first: int, byte: int) -> bool:
    """Whether a byte cannot follow the three before it."""
    is_expected = first >= 0xC0 or second >= 0xE0 or third >= 0xF0
    return (
        is_expected != (0x80 <= byte < 0xC0)
        or (first == 0xE0 and byte < 0xA0)  # longer than need be
        or (first == 0xF0 and byte < 0x90)
        or (first == 0xED and byte >= 0xA0)  # surrogates
        or (first == 0xF4 and byte >= 0x90)  # beyond Unicode
        or byte in (0xC0, 0xC1)
        or byte >= 0xF5
        or (second == 0xEF and first == 0xBF and byte >= 0xBE)
    )


@intrinsic
def word(address: int) -> np.uint64:
    """The 8 bytes at an address, the first one lowest."""
    return U(int.from_bytes(ctypes.string_at(int(address), 8), "little"))


@intrinsic
def byte(address: int) -> int:
    """The byte at an address."""
    return ctypes.string_at(int(address), 1)[0]


@intrinsic
def copy(target: int, source: int, size: int) -> None:
    """Copy bytes from one address to another; they do not overlap."""
    ctypes.memmove(int(target), int(source), int(size))
