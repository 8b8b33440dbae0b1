"""The rank of a value among the constants of a key."""

from __future__ import annotations

import numpy as np

from tamis.arrays import int32s, int64s, uint8s, uint64s
from tamis.events import kernels as shared
from tamis.events.model import FLOAT, INTEGER, STRING, Bytes, Int64
from tamis.events.signature.kernels.constants import string_hash, value_hash
from tamis.events.signature.kernels.words import U
from tamis.events.signature.layout import EVENTS, RANKS
from tamis.events.signature.program import DENSE, HASHED, SEARCHED
from tamis.jit import called, inlined

order_of_numbers = inlined(shared.order_of_numbers)
order_of_strings = called(shared.order_of_strings)


@inlined
def rank_of(state: Int64, key: int, kind: int, value: int) -> int:
    """The rank of a value in a key that accepts its kind."""
    mode = uint8s(state, RANKS.modes)[key]
    if kind == STRING:
        starts = int64s(state, EVENTS.string_starts)
        start, end = starts[value], starts[value + 1]
        if mode == HASHED:
            return hashed_string(state, key, start, end)
        if mode == SEARCHED:
            return searched_string(state, key, start, end)
        return 0
    if mode == DENSE and kind == INTEGER:
        starts = int64s(state, RANKS.table_starts)
        start, size = starts[key], starts[key + 1] - starts[key]
        base = int64s(state, RANKS.table_bases)[key]
        if value < base:
            return 0
        if value > base + size - 1:
            counts = int64s(state, RANKS.starts)
            return 2 * (counts[key + 1] - counts[key])
        return int32s(state, RANKS.tables)[start + value - base]
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
def head_of(string: Bytes, start: int, end: int) -> np.uint64:
    """The first eight bytes, as a number that is ordered alike."""
    head = U(0)
    for place in range(start, min(end, start + 8)):
        head |= U(string[place]) << U(8 * (7 - (place - start)))
    return head


@called
def searched_string(state: Int64, key: int, start: int, end: int) -> int:
    """The rank of a string, by binary search."""
    starts, values = int64s(state, RANKS.starts), int64s(state, RANKS.values)
    heads, bounds = uint64s(state, RANKS.string_heads), int64s(state, RANKS.string_starts)
    strings, given = uint8s(state, RANKS.string_bytes), uint8s(state, EVENTS.string_bytes)
    head = head_of(given, start, end)
    low, high = starts[key], starts[key + 1]
    while low < high:
        middle = (low + high) >> 1
        string = values[middle]
        if heads[string] != head:
            order = -1 if head < heads[string] else 1
        else:
            order = order_of_strings(given, start, end, strings, bounds[string], bounds[string + 1])
        if order == 0:
            return 2 * (middle - starts[key]) + 1
        if order < 0:
            high = middle
        else:
            low = middle + 1
    return 2 * (low - starts[key])
