"""Hash tables for kernels: open addressing with linear probing, at most half full.

There are three kinds. A *pair table* is an int64 array of keys and values; ``pair`` makes a key of
two numbers. *Slots* are an int32 array that refers to things stored elsewhere: 0 where a slot is
empty, else the number of the thing plus one; ``slot_finder`` makes the search in slots, of what
says whether two things are equal. A table of any other layout is searched by what ``prober`` makes
of a function that says where a search ends. Lengths are powers of two.

A slot is an unsigned number, to index with and not to calculate with: for signed ones, each access
would ask whether they count from the end, which made searches up to 20 % slower. So written, a
search is as fast as a loop by hand.

When not to use slots: where the hash itself is compared first, and most searches end there, a table
that holds hashes touches less memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tamis.core.arrays import Int32, Int64, Words
from tamis.core.kernel.declare import U, called, inlined, kernel

GOLDEN = U(0x9E3779B97F4A7C15)
"""Odd, with bits without a pattern: 2**64 divided by the golden ratio."""


@inlined
def mixed(number: np.uint64) -> np.uint64:
    """A hash of an integer (the finalizer of SplitMix64: Steele, Lea and Flood, OOPSLA 2014)."""
    number = (number ^ number >> U(30)) * U(0xBF58476D1CE4E5B9)
    number = (number ^ number >> U(27)) * U(0x94D049BB133111EB)
    return number ^ number >> U(31)


def prober(ends_at: Callable[..., bool]) -> Callable[..., Any]:
    """A function for kernels that goes along the slots of a table to the one where it ends.

    It is called with the number of slots, the hash, the table, and what is searched; the last two,
    which may be tuples, go to ``ends_at``, with the slot between. This says whether the slot is
    empty or has what is searched:

    >>> @inlined
    ... def is_key(keys: Words, slot: np.uint64, key: np.uint64) -> bool:
    ...     return keys[slot] == 0 or keys[slot] == key
    >>> find_key = prober(is_key)
    """

    @inlined
    def probe(count: int, hash: np.uint64, table: Any, searched: Any) -> np.uint64:
        mask = U(count - 1)
        slot = hash & mask
        while not ends_at(table, slot, searched):
            slot = (slot + U(1)) & mask
        return slot

    return probe


# -- pair tables ---------------------------------------------------------------------------------


def pair_table(count: int) -> Int64:
    """An empty pair table for so many keys, and as many again.

    >>> len(pair_table(3))
    16
    """
    return np.zeros(1 << max(4, (4 * count).bit_length()), np.int64)


@inlined
def pair(first: int, second: int) -> int:
    """The key of two numbers below 2**31, which are not both 0."""
    return np.int64(first) << 32 | np.int64(second)


@inlined
def _is_pair(table: Int64, slot: np.uint64, key: int) -> bool:
    return table[slot << U(1)] == key or table[slot << U(1)] == 0


_find_pair = prober(_is_pair)


@inlined
def find_pair(table: Int64, key: int) -> int:
    """The index of a key in a pair table, or where it would be; 0 is no key.

    Where ``table[index] == key``, its value is ``table[index + 1]``.
    """
    hash = U(key) * GOLDEN
    return np.int64(_find_pair(len(table) >> 1, hash ^ hash >> U(32), table, key) << U(1))


@called
def add_pair(table: Int64, key: int, value: int) -> None:
    """Add a key that is not there; there must be room."""
    index = find_pair(table, key)
    table[index] = key
    table[index + 1] = value


@kernel
def copy_pairs(table: Int64, into: Int64) -> None:
    """Put all pairs into an empty table, which must be larger."""
    for index in range(0, len(table), 2):
        if table[index] != 0:
            add_pair(into, table[index], table[index + 1])


# -- slots ---------------------------------------------------------------------------------------


def slots_for(count: int) -> Int32:
    """Empty slots for so many things, and as many again."""
    return np.zeros(1 << max(4, (4 * count).bit_length()), np.int32)


def slot_finder(is_equal: Callable[..., bool]) -> Callable[..., Any]:
    """A function for kernels that finds a thing in slots: the slot where it is, or would be.

    The search is called with slots, the hash, the things that are known, and what is searched; the
    last two, which may be tuples, go to ``is_equal``, with the number of a known thing between:

    >>> @inlined
    ... def is_row(rows: Int64, number: int, row: tuple[int, int]) -> bool:
    ...     return rows[2 * number] == row[0] and rows[2 * number + 1] == row[1]
    >>> find_row = slot_finder(is_row)

    In a kernel, ``slot = find_row(slots, hash, rows, (5, 6))`` finds a row, and
    ``slots[slot] = number + 1`` enters it where ``slots[slot] == 0``.
    """

    @inlined
    def ends_at(table: Any, slot: np.uint64, searched: Any) -> bool:
        slots, known = table
        number = np.int64(slots[slot]) - 1
        return number < 0 or is_equal(known, number, searched)

    probe = prober(ends_at)

    @inlined
    def find_slot(slots: Int32, hash: np.uint64, known: Any, searched: Any) -> np.uint64:
        return probe(len(slots), hash, (slots, known), searched)

    return find_slot


@inlined
def _is_empty(slots: Int32, slot: np.uint64, _searched: int) -> bool:
    return slots[slot] == 0


_find_free = prober(_is_empty)


@inlined
def free_slot(slots: Int32, hash: np.uint64) -> np.uint64:
    """The slot for a thing that is not there yet."""
    return _find_free(len(slots), hash, slots, 0)


@kernel
def fill_slots(hashes: Words, count: int, slots: Int32) -> None:
    """Enter the first things, whose hashes are kept, into empty slots that are more."""
    for number in range(count):
        slots[free_slot(slots, hashes[number])] = number + 1
