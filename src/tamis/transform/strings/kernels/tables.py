"""Hash tables, of pairs of integers and of strings."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int64
from tamis.core.kernel import U, called, inlined, kernel

_GOLDEN = U(0x9E3779B97F4A7C15)
_MIXER = U(0xBF58476D1CE4E5B9)


@inlined
def mixed(number: np.uint64) -> np.uint64:
    """A hash of an integer (the finalizer of SplitMix64: Steele, Lea and Flood, OOPSLA 2014)."""
    number = (number ^ number >> U(30)) * _MIXER
    number = (number ^ number >> U(27)) * U(0x94D049BB133111EB)
    return number ^ number >> U(31)


@inlined
def pair_key(one: int, other: int) -> int:
    """Two numbers below 2³¹ as one, which is not 0."""
    return (np.int64(one) + 1) << 32 | np.int64(other)


@called
def hash_of_text(values: Bytes, start: int, end: int, source: int) -> int:
    """A hash of a string and a source; not 0."""
    hash = mixed(U(source) + _GOLDEN)
    word, size = U(0), 0
    for place in range(start, end):
        word = word << U(8) | U(values[place])
        size += 1
        if size == 8:
            hash = mixed(hash ^ word) + _GOLDEN
            word, size = U(0), 0
    hash = mixed(hash ^ word) + U(end - start)
    return np.int64(mixed(hash) | U(1))


@called
def hash_of_number(bits: int, source: int) -> int:
    """A hash of a number, by its bits, and a source; not 0."""
    return np.int64(mixed(mixed(U(bits)) ^ U(source) + _GOLDEN) | U(1))


@kernel
def text_hash(values: Bytes, source: int) -> int:
    """``hash_of_text`` for Python."""
    return hash_of_text(values, 0, len(values), source)


@kernel
def number_hash(bits: int, source: int) -> int:
    """``hash_of_number`` for Python."""
    return hash_of_number(bits, source)


@inlined
def next_slot(table: Int64, hash: int, slot: int) -> int:
    """The next slot behind one (or ``-1``) that has a hash, or is empty; slots are pairs."""
    mask = (len(table) >> 1) - 1
    slot = slot + 1 & mask if slot >= 0 else np.int64(U(hash) >> U(17)) & mask
    while table[2 * slot] != hash and table[2 * slot] != 0:
        slot = slot + 1 & mask
    return slot


@kernel
def put(table: Int64, hash: int, value: int) -> None:
    """Add a value for a hash, beside others that have it; there must be room."""
    mask = (len(table) >> 1) - 1
    slot = np.int64(U(hash) >> U(17)) & mask
    while table[2 * slot] != 0:
        slot = slot + 1 & mask
    table[2 * slot], table[2 * slot + 1] = hash, value


@kernel
def put_all(table: Int64, into: Int64) -> None:
    """Add all of a table to another one."""
    mask = (len(into) >> 1) - 1
    for old in range(0, len(table), 2):
        if table[old] != 0:
            slot = np.int64(U(table[old]) >> U(17)) & mask
            while into[2 * slot] != 0:
                slot = slot + 1 & mask
            into[2 * slot], into[2 * slot + 1] = table[old], table[old + 1]


@inlined
def hash_of_key(key: int) -> int:
    """A hash of a key of ``pair_key``; not 0."""
    return np.int64(mixed(U(key)) | U(1))


@kernel
def key_hash(one: int, other: int) -> int:
    """``hash_of_key`` of a pair, for Python."""
    return hash_of_key(pair_key(one, other))


@called
def slot_of_key(table: Int64, width: int, key: int, document: int) -> int:
    """Where a key of this document is, or would be, in a table of slots of some width.

    A slot begins with the key and the document; those of other documents are empty.
    """
    mask = len(table) // width - 1
    slot = np.int64(mixed(U(key)) >> U(17)) & mask
    while table[slot * width + 1] == document and table[slot * width] != key:
        slot = slot + 1 & mask
    return slot * width
