"""Ranks of values among the constants of keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.bits import big_endian, if_less
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.core.kernel.table import mixed, prober, slot_finder
from tamis.events.engines.signature import program as at
from tamis.events.kernels import values as shared
from tamis.events.model import FLOAT, INTEGER, STRING

SIZE_MASK = (1 << at.SIZE_BITS) - 1
_FNV_PRIME = U(0x100000001B3)

order_of_numbers = inlined(shared.order_of_numbers)
order_of_strings = called(shared.order_of_strings)


@inlined
def value_hash(key: int, kind: int, value: int) -> np.uint64:
    """The hash of a number, or of a constant's kind and value, in a key."""
    return mixed(U(value) + mixed((U(key) << U(8)) | U(kind)))


@inlined
def string_hash(string: Bytes, start: int, end: int) -> np.uint64:
    """The hash of a string (FNV-1a), a step a byte less than ``hash_bytes``: events have many."""
    hash = U(end - start)
    for place in range(start, end):
        hash = (hash ^ U(string[place])) * _FNV_PRIME
    return mixed(hash)


@inlined
def is_constant(known: tuple[Int32, Bytes, Int64, Int32], number: int, constant: int) -> bool:
    """Whether a constant equals a distinct one."""
    keys, kinds, values, firsts = known
    first = firsts[number]
    is_same = keys[first] == keys[constant] and kinds[first] == kinds[constant]
    return is_same and values[first] == values[constant]


find_constant = slot_finder(is_constant)


@kernel
def intern_constants(
    keys: Int32, kinds: Bytes, values: Int64, slots: Int32, firsts: Int32, numbers: Int32
) -> int:
    """Number the distinct constants in the order of their first occurrence; how many there are.

    ``firsts`` gets the first occurrence of each distinct one, and ``numbers`` the number of each.
    """
    count = 0
    for constant in range(len(keys)):
        hash = value_hash(keys[constant], kinds[constant], values[constant])
        slot = find_constant(slots, hash, (keys, kinds, values, firsts), constant)
        if slots[slot] == 0:
            firsts[count] = constant
            count += 1
            slots[slot] = count
        numbers[constant] = slots[slot] - 1
    return count


@inlined
def _is_free(table: tuple[Int32, int], slot: np.uint64, _searched: int) -> bool:
    tables, start = table
    return tables[start + np.int64(slot)] < 0


_find_free = prober(_is_free)


@kernel
def fill_tables(ranks: at.Ranks, are_strings: Bytes) -> None:
    """Fill the tables of dense and hashed keys, which are -1 at first."""
    for key in range(len(ranks.modes)):
        start, end = ranks.starts[key], ranks.starts[key + 1]
        table, size = ranks.table_starts[key], ranks.table_starts[key + 1] - ranks.table_starts[key]
        if ranks.modes[key] == at.DENSE:
            constant = start
            for index in range(size):
                value = ranks.table_bases[key] + index
                while constant < end and ranks.values[constant] < value:
                    constant += 1
                is_equal = constant < end and ranks.values[constant] == value
                ranks.tables[table + index] = 2 * (constant - start) + is_equal
        elif ranks.modes[key] == at.HASHED:
            for constant in range(start, end):
                value = ranks.values[constant]
                if are_strings[key]:
                    first, last = ranks.string_starts[value], ranks.string_starts[value + 1]
                    hash = string_hash(ranks.string_bytes, first, last)
                else:
                    hash = value_hash(0, ranks.kinds[constant], value)
                slot = _find_free(size, hash, (ranks.tables, table), 0)
                ranks.tables[table + np.int64(slot)] = constant - start


# -- ranks of values ---------------------------------------------------------------------------


@inlined
def find_ranks(state: Int64, start: int, end: int) -> None:
    """Find the ranks of the values in some keys of a tile.

    Strings that have to be compared as a whole come last: until then the processor can go on with
    the next search while one waits for memory.
    """
    kinds, values = uint8s(state, at.EVENTS.kinds), int64s(state, at.EVENTS.values)
    strings, modes = int64s(state, at.EVENTS.string_starts), uint8s(state, at.RANKS.modes)
    tile_keys, attributes = int32s(state, at.WORK.tile_keys), int64s(state, at.WORK.tile_attributes)
    ranks = int32s(state, at.WORK.tile_ranks)
    for i in range(start, end):
        key, attribute = np.int64(tile_keys[i]), attributes[i]
        rank = 0
        if attribute >= 0:  # or the key accepts anything
            mode, kind, value = modes[key], np.int64(kinds[attribute]), values[attribute]
            if kind != STRING:
                rank = rank_of(state, key, kind, value)
            elif mode == at.SEARCHED:
                rank = searched_string(state, key, strings[value], strings[value + 1])
            elif mode == at.HASHED:
                rank = hashed_string(state, key, strings[value], strings[value + 1])
        ranks[i] = rank
    for i in range(start, end):
        if ranks[i] < 0:
            value = values[attributes[i]]
            key, rank = np.int64(tile_keys[i]), ~np.int64(ranks[i])
            ranks[i] = checked_rank(state, key, strings[value], strings[value + 1], rank)


@inlined
def rank_of(state: Int64, key: int, kind: int, value: int) -> int:
    """The rank of a number or a boolean in a key that accepts its kind."""
    mode = uint8s(state, at.RANKS.modes)[key]
    if mode == at.DENSE and kind == INTEGER:
        starts = int64s(state, at.RANKS.table_starts)
        start, size = starts[key], starts[key + 1] - starts[key]
        base = int64s(state, at.RANKS.table_bases)[key]
        if value < base:
            return 0
        if value > base + (size - 1):  # base + size may be beyond 64 bits
            counts = int64s(state, at.RANKS.starts)
            return 2 * (counts[key + 1] - counts[key])
        return int32s(state, at.RANKS.tables)[start + (value - base)]
    if mode in (at.DENSE, at.SEARCHED):
        return searched_number(state, key, kind, value)
    if mode == at.HASHED:
        return hashed_number(state, key, kind, value)
    return 2 * value + 1  # a boolean


@called
def searched_number(state: Int64, key: int, kind: int, value: int) -> int:
    """The rank of a number, by binary search."""
    starts = int64s(state, at.RANKS.starts)
    kinds, values = uint8s(state, at.RANKS.kinds), int64s(state, at.RANKS.values)
    low, high = starts[key], starts[key + 1]
    if kind == FLOAT and np.isnan(np.int64(value).view(np.float64)):
        return 2 * (high - low) + 1
    while low < high:
        middle = (low + high) >> 1
        order = order_of_numbers(kind, value, np.int64(kinds[middle]), values[middle])
        if order == 0:
            return 2 * (middle - starts[key]) + 1
        if order < 0:
            high = middle
        else:
            low = middle + 1
    return 2 * (low - starts[key])


@inlined
def hashed_rank(tables: Int32, index: int) -> int:
    """The rank of the constant in a slot of a hashed key, 0 where there is none."""
    return 2 * tables[index] + 1 if tables[index] >= 0 else 0


@inlined
def _is_number(table: Any, slot: np.uint64, searched: tuple[int, int]) -> bool:
    (tables, start, first, state), (kind, value) = table, searched
    constant = np.int64(tables[start + np.int64(slot)])
    return constant < 0 or (
        int64s(state, at.RANKS.values)[first + constant] == value
        and uint8s(state, at.RANKS.kinds)[first + constant] == kind
    )


@inlined
def _is_string(table: Any, slot: np.uint64, searched: tuple[Bytes, int, int]) -> bool:
    (tables, start, first, state), (given, begin, end) = table, searched
    constant = np.int64(tables[start + np.int64(slot)])
    if constant < 0:
        return True
    string = int64s(state, at.RANKS.values)[first + constant]
    strings, bounds = uint8s(state, at.RANKS.string_bytes), int64s(state, at.RANKS.string_starts)
    return order_of_strings(given, begin, end, strings, bounds[string], bounds[string + 1]) == 0


_find_number, _find_string = prober(_is_number), prober(_is_string)


@called
def hashed_number(state: Int64, key: int, kind: int, value: int) -> int:
    """The rank of a number that is a constant, or 0."""
    if kind == FLOAT and np.isnan(np.int64(value).view(np.float64)):
        return 0  # as others that are no constants: such a key is asked for equality alone
    tables, table_starts = int32s(state, at.RANKS.tables), int64s(state, at.RANKS.table_starts)
    table, size = table_starts[key], table_starts[key + 1] - table_starts[key]
    known = (tables, table, int64s(state, at.RANKS.starts)[key], state)
    slot = _find_number(size, value_hash(0, kind, value), known, (kind, value))
    return hashed_rank(tables, table + np.int64(slot))


@called
def hashed_string(state: Int64, key: int, start: int, end: int) -> int:
    """The rank of a string that is a constant, or 0."""
    tables, table_starts = int32s(state, at.RANKS.tables), int64s(state, at.RANKS.table_starts)
    table, size = table_starts[key], table_starts[key + 1] - table_starts[key]
    known = (tables, table, int64s(state, at.RANKS.starts)[key], state)
    given = uint8s(state, at.EVENTS.string_bytes)
    slot = _find_string(size, string_hash(given, start, end), known, (given, start, end))
    return hashed_rank(tables, table + np.int64(slot))


@inlined
def searched_string(state: Int64, key: int, start: int, end: int) -> int:
    """The rank of a string, or ``~rank`` if it has more bytes to compare.

    This binary search of the string's head has no branches: the processor would mispredict half of
    them.
    """
    starts, heads = int64s(state, at.RANKS.starts), uint64s(state, at.RANKS.string_heads)
    first, end_of_key = starts[key], starts[key + 1]
    skip = np.int64(int32s(state, at.RANKS.string_skips)[key])
    if first == end_of_key:
        return 0
    if skip > 0:
        order = order_of_beginnings(state, first, start, end, skip)
        if order != 0:
            return 0 if order < 0 else 2 * (end_of_key - first)
    head = head_of(uint8s(state, at.EVENTS.string_bytes), start + skip, end)
    low, size = first, end_of_key - first
    while size > 1:
        half = size >> 1
        low = if_less(head, heads[U(low + half)], low, low + half)
        size -= half
    found = heads[U(low)]
    rank = 2 * (low - first) + (found == head) + 2 * (found < head)
    return rank ^ -np.int64((found == head) & (head & U(SIZE_MASK) > U(at.HEAD_BYTES)))


@called
def order_of_beginnings(state: Int64, constant: int, start: int, end: int, size: int) -> int:
    """The order of the first bytes of a string and of a constant, which has so many."""
    other = int64s(state, at.RANKS.string_starts)[int64s(state, at.RANKS.values)[constant]]
    given, strings = uint8s(state, at.EVENTS.string_bytes), uint8s(state, at.RANKS.string_bytes)
    return order_of_strings(given, start, min(end, start + size), strings, other, other + size)


@called
def checked_rank(state: Int64, key: int, start: int, end: int, rank: int) -> int:
    """The rank of a whole string; the given rank is that of the last constant with its head."""
    values, heads = int64s(state, at.RANKS.values), uint64s(state, at.RANKS.string_heads)
    strings, given = uint8s(state, at.RANKS.string_bytes), uint8s(state, at.EVENTS.string_bytes)
    bounds, first = int64s(state, at.RANKS.string_starts), int64s(state, at.RANKS.starts)[key]
    middle = last = first + (rank >> 1)
    string = values[last]
    if are_equal(given, start, end, strings, bounds[string], bounds[string + 1]):
        return rank
    low, high = first, last + 1
    while low < high:
        order = 1
        if heads[middle] == heads[last]:
            string = values[middle]
            order = order_of_strings(given, start, end, strings, bounds[string], bounds[string + 1])
        if order == 0:
            return 2 * (middle - first) + 1
        if order < 0:
            high = middle
        else:
            low = middle + 1
        middle = (low + high) >> 1
    return 2 * (low - first)


@inlined
def are_equal(
    string: Bytes, start: int, end: int, other: Bytes, other_start: int, other_end: int
) -> bool:
    """Whether strings are the same, some bytes at a time."""
    if end - start != other_end - other_start:
        return False
    while start < end:
        if head_of(string, start, end) != head_of(other, other_start, other_end):
            return False
        start += at.HEAD_BYTES
        other_start += at.HEAD_BYTES
    return True


@inlined
def head_of(string: Bytes, start: int, end: int) -> np.uint64:
    """The first HEAD_BYTES bytes of a string as a number; in its last SIZE_BITS their count.

    The count is HEAD_BYTES + 1 if the string has more. Heads are ordered as the strings are. Equal
    heads are of equal strings, unless the strings have more bytes.
    """
    size = end - start
    head = U(0)
    if start + 8 <= len(string):
        head = big_endian(string, start) >> U(8)
    else:  # at the end of all strings
        for i in range(min(size, at.HEAD_BYTES)):
            head |= U(string[start + i]) << U(8 * (at.HEAD_BYTES - 1 - i))
    others = U(8 * max(at.HEAD_BYTES - size, 0))
    return ((head >> others) << (others + U(at.SIZE_BITS))) | U(min(size, at.HEAD_BYTES + 1))
