"""The ranks of values among the constants of keys."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int64
from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.events import kernels as shared
from tamis.events.engines.signature.kernels.constants import string_hash, value_hash
from tamis.events.engines.signature.kernels.words import big_endian, if_less
from tamis.events.engines.signature.layout import EVENTS, RANKS, WORK
from tamis.events.engines.signature.program import DENSE, HASHED, HEAD_BYTES, SEARCHED, SIZE_BITS
from tamis.events.model import FLOAT, INTEGER, STRING

SIZE_MASK = (1 << SIZE_BITS) - 1

order_of_numbers = inlined(shared.order_of_numbers)
order_of_strings = called(shared.order_of_strings)


@inlined
def find_ranks(state: Int64, start: int, end: int) -> None:
    """Note the ranks of the values in some keys of a tile.

    What has to be compared as a whole comes at the end: until then the processor can go on with the
    next search while one waits for memory.
    """
    kinds, values = uint8s(state, EVENTS.kinds), int64s(state, EVENTS.values)
    strings, modes = int64s(state, EVENTS.string_starts), uint8s(state, RANKS.modes)
    tile_keys, tile_places = int32s(state, WORK.tile_keys), int64s(state, WORK.tile_places)
    ranks = int32s(state, WORK.tile_ranks)
    for at in range(start, end):
        key, place = np.int64(tile_keys[at]), tile_places[at]
        rank = 0
        if place >= 0:  # or the key accepts anything
            mode, kind, value = modes[key], np.int64(kinds[place]), values[place]
            if kind != STRING:
                rank = rank_of(state, key, kind, value)
            elif mode == SEARCHED:
                rank = searched_string(state, key, strings[value], strings[value + 1])
            elif mode == HASHED:
                rank = hashed_string(state, key, strings[value], strings[value + 1])
        ranks[at] = rank
    for at in range(start, end):
        if ranks[at] < 0:
            value = values[tile_places[at]]
            key, rank = np.int64(tile_keys[at]), ~np.int64(ranks[at])
            ranks[at] = checked_rank(state, key, strings[value], strings[value + 1], rank)


@inlined
def rank_of(state: Int64, key: int, kind: int, value: int) -> int:
    """The rank of a number or a boolean in a key that accepts its kind."""
    mode = uint8s(state, RANKS.modes)[key]
    if mode == DENSE and kind == INTEGER:
        starts = int64s(state, RANKS.table_starts)
        start, size = starts[key], starts[key + 1] - starts[key]
        base = int64s(state, RANKS.table_bases)[key]
        if value < base:
            return 0
        if value > base + (size - 1):  # base + size may be beyond 64 bits
            counts = int64s(state, RANKS.starts)
            return 2 * (counts[key + 1] - counts[key])
        return int32s(state, RANKS.tables)[start + (value - base)]
    if mode in (DENSE, SEARCHED):
        return searched_number(state, key, kind, value)
    if mode == HASHED:
        return hashed_number(state, key, kind, value)
    return 2 * value + 1  # a boolean


@called
def searched_number(state: Int64, key: int, kind: int, value: int) -> int:
    """The rank of a number, by binary search."""
    starts = int64s(state, RANKS.starts)
    kinds, values = uint8s(state, RANKS.kinds), int64s(state, RANKS.values)
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


@called
def hashed_number(state: Int64, key: int, kind: int, value: int) -> int:
    """The rank of a number that is a constant, or 0."""
    if kind == FLOAT and np.isnan(np.int64(value).view(np.float64)):
        return 0  # as others that are no constants: such a key is asked for equality alone
    tables, starts = int32s(state, RANKS.tables), int64s(state, RANKS.starts)
    kinds, values = uint8s(state, RANKS.kinds), int64s(state, RANKS.values)
    table_starts = int64s(state, RANKS.table_starts)
    table, mask = table_starts[key], table_starts[key + 1] - table_starts[key] - 1
    place = np.int64(value_hash(0, kind, value) & U(mask))
    while tables[table + place] >= 0:
        constant = starts[key] + tables[table + place]
        if values[constant] == value and kinds[constant] == kind:
            return 2 * tables[table + place] + 1
        place = (place + 1) & mask
    return 0


@called
def hashed_string(state: Int64, key: int, start: int, end: int) -> int:
    """The rank of a string that is a constant, or 0."""
    tables, starts = int32s(state, RANKS.tables), int64s(state, RANKS.starts)
    values, bounds = int64s(state, RANKS.values), int64s(state, RANKS.string_starts)
    strings, given = uint8s(state, RANKS.string_bytes), uint8s(state, EVENTS.string_bytes)
    table_starts = int64s(state, RANKS.table_starts)
    table, mask = table_starts[key], table_starts[key + 1] - table_starts[key] - 1
    place = np.int64(string_hash(given, start, end) & U(mask))
    while tables[table + place] >= 0:
        string = values[starts[key] + tables[table + place]]
        if order_of_strings(given, start, end, strings, bounds[string], bounds[string + 1]) == 0:
            return 2 * tables[table + place] + 1
        place = (place + 1) & mask
    return 0


@inlined
def searched_string(state: Int64, key: int, start: int, end: int) -> int:
    """The rank of a string, or ``~rank`` if it has more bytes that are to be compared.

    It is a binary search of the string's head, and has no branches: each would be foretold wrongly
    half of the time.
    """
    starts, heads = int64s(state, RANKS.starts), uint64s(state, RANKS.string_heads)
    first, end_of_key = starts[key], starts[key + 1]
    skip = np.int64(int32s(state, RANKS.string_skips)[key])
    if first == end_of_key:
        return 0
    if skip > 0:
        order = order_of_beginnings(state, first, start, end, skip)
        if order != 0:
            return 0 if order < 0 else 2 * (end_of_key - first)
    head = head_of(uint8s(state, EVENTS.string_bytes), start + skip, end)
    low, size = first, end_of_key - first
    while size > 1:
        half = size >> 1
        low = if_less(head, heads[U(low + half)], low, low + half)
        size -= half
    found = heads[U(low)]
    rank = 2 * (low - first) + (found == head) + 2 * (found < head)
    return rank ^ -np.int64((found == head) & (head & U(SIZE_MASK) > U(HEAD_BYTES)))


@called
def order_of_beginnings(state: Int64, constant: int, start: int, end: int, size: int) -> int:
    """The order of a string and the first bytes of a constant, as far as there are so many."""
    place = int64s(state, RANKS.string_starts)[int64s(state, RANKS.values)[constant]]
    given, strings = uint8s(state, EVENTS.string_bytes), uint8s(state, RANKS.string_bytes)
    return order_of_strings(given, start, min(end, start + size), strings, place, place + size)


@called
def checked_rank(state: Int64, key: int, start: int, end: int, rank: int) -> int:
    """The rank of a string by all of it, if this one is of the last constant that has its head."""
    values, heads = int64s(state, RANKS.values), uint64s(state, RANKS.string_heads)
    strings, given = uint8s(state, RANKS.string_bytes), uint8s(state, EVENTS.string_bytes)
    bounds, first = int64s(state, RANKS.string_starts), int64s(state, RANKS.starts)[key]
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
        start += HEAD_BYTES
        other_start += HEAD_BYTES
    return True


@inlined
def head_of(string: Bytes, start: int, end: int) -> np.uint64:
    """The first HEAD_BYTES bytes from a place on, and how many there are, or that there are more.

    As numbers, heads are ordered as the strings are, and equal ones are of equal strings, if there
    are not more bytes.
    """
    size = end - start
    head = U(0)
    if start + 8 <= len(string):
        head = big_endian(string, start) >> U(8)
    else:  # at the end of all strings
        for place in range(min(size, HEAD_BYTES)):
            head |= U(string[start + place]) << U(8 * (HEAD_BYTES - 1 - place))
    others = U(8 * max(HEAD_BYTES - size, 0))
    return ((head >> others) << (others + U(SIZE_BITS))) | U(min(size, HEAD_BYTES + 1))
