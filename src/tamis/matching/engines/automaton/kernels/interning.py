"""Tables that have each row once: rows of a few numbers, programs of formulas, and strings."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.matching.engines.automaton.building import (
    AT,
    BYTES,
    CODE,
    FORMULAS,
    STRINGS,
)
from tamis.matching.engines.automaton.kernels.tables import GOLDEN, MIXER, joined

# -- rows ------------------------------------------------------------------------------------------


@inlined
def hash_row(keys: int, a: int, b: int, c: int, d: int, e: int) -> np.uint64:
    """The hash of a row's first numbers."""
    hash = joined(MIXER, a)
    if keys > 1:
        hash = joined(hash, b)
    if keys > 2:
        hash = joined(hash, c)
    if keys > 3:
        hash = joined(joined(hash, d), e)
    return hash ^ hash >> U(32)


@inlined
def find_row(
    rows: Int32, slots: Int32, width: int, keys: int, a: int, b: int, c: int, d: int, e: int
) -> int:
    """The number of the row with these first numbers; or minus one minus the slot it would have."""
    mask = U(len(slots) - 1)
    slot = hash_row(keys, a, b, c, d, e) & mask
    while slots[slot] != 0:
        number = np.int64(slots[slot]) - 1
        row = number * width
        if (
            rows[row] == a
            and (keys < 2 or rows[row + 1] == b)
            and (keys < 3 or rows[row + 2] == c)
            and (keys < 4 or (rows[row + 3] == d and rows[row + 4] == e))
        ):
            return number
        slot = (slot + U(1)) & mask
    return -1 - np.int64(slot)


@inlined
def add_row(
    state: Int64,
    place: int,
    slots_place: int,
    count: int,
    width: int,
    keys: int,
    a: int,
    b: int,
    c: int,
    d: int,
    e: int,
) -> int:
    """The number of a row, which is added where it is new; there must be room.

    Args:
        count: the scalar that says how many rows there are.
        keys: how many of the numbers say which row it is: 1, 2, 3 or 5.
    """
    rows, slots = int32s(state, place), int32s(state, slots_place)
    number = find_row(rows, slots, width, keys, a, b, c, d, e)
    if number >= 0:
        return number
    slot = -1 - number
    number = state[count]
    state[count] += 1
    slots[slot] = number + 1
    row = number * width
    rows[row] = a
    if keys > 1:
        rows[row + 1] = b
    if keys > 2:
        rows[row + 2] = c
    if keys > 3:
        rows[row + 3] = d
        rows[row + 4] = e
    return number


@kernel
def rehash_rows(rows: Int32, width: int, keys: int, count: int, slots: Int32) -> None:
    """Put all rows into an empty hash table."""
    mask = U(len(slots) - 1)
    for number in range(count):
        row = number * width
        b = rows[row + 1] if keys > 1 else 0
        c = rows[row + 2] if keys > 2 else 0
        d = rows[row + 3] if keys > 3 else 0
        e = rows[row + 4] if keys > 3 else 0
        slot = hash_row(keys, rows[row], b, c, d, e) & mask
        while slots[slot] != 0:
            slot = (slot + U(1)) & mask
        slots[slot] = number + 1


# -- programs of formulas --------------------------------------------------------------------------


@inlined
def hash_code(kind: int, code: Int32, start: int, end: int) -> np.uint64:
    """The hash of a formula."""
    hash = joined(MIXER, kind)
    for i in range(start, end):
        hash = joined(hash, code[i])
    return hash ^ hash >> U(32)


@called
def find_formula(state: Int64, kind: int, code: Int32, length: int) -> int:
    """The number of a formula; or minus one minus the slot that it would have."""
    slots, starts = int32s(state, AT.formula_slots), int64s(state, AT.formula_starts)
    kinds, known = uint8s(state, AT.formula_kinds), int32s(state, AT.formula_code)
    mask = U(len(slots) - 1)
    slot = hash_code(kind, code, 0, length) & mask
    while slots[slot] != 0:
        number = np.int64(slots[slot]) - 1
        start = starts[number]
        if kinds[number] == kind and starts[number + 1] - start == length:
            i = 0
            while i < length and known[start + i] == code[i]:
                i += 1
            if i == length:
                return number
        slot = (slot + U(1)) & mask
    return -1 - np.int64(slot)


@called
def add_formula(state: Int64, kind: int, code: Int32, length: int, depth: int) -> int:
    """The number of a formula, which is added where it is new; there must be room."""
    number = find_formula(state, kind, code, length)
    if number >= 0:
        return number
    slot = -1 - number
    number = state[FORMULAS]
    int32s(state, AT.formula_slots)[slot] = number + 1
    uint8s(state, AT.formula_kinds)[number] = kind
    uint8s(state, AT.formula_depths)[number] = depth
    start = state[CODE]
    known = int32s(state, AT.formula_code)
    for i in range(length):
        known[start + i] = code[i]
    int64s(state, AT.formula_starts)[number + 1] = start + length
    state[FORMULAS] += 1
    state[CODE] += length
    return number


@kernel
def rehash_formulas(state: Int64) -> None:
    """Put all formulas into their hash table, which is empty."""
    slots, starts = int32s(state, AT.formula_slots), int64s(state, AT.formula_starts)
    kinds, known = uint8s(state, AT.formula_kinds), int32s(state, AT.formula_code)
    mask = U(len(slots) - 1)
    for number in range(state[FORMULAS]):
        slot = hash_code(kinds[number], known, starts[number], starts[number + 1]) & mask
        while slots[slot] != 0:
            slot = (slot + U(1)) & mask
        slots[slot] = number + 1


# -- strings ---------------------------------------------------------------------------------------


@inlined
def hash_bytes(text: Bytes, start: int, end: int) -> np.uint64:
    """The hash of a string."""
    hash = MIXER
    for i in range(start, end):
        hash = (hash ^ U(text[i])) * GOLDEN
        hash ^= hash >> U(29)
    return hash ^ hash >> U(32)


@called
def add_string(state: Int64, text: Bytes, first: int, last: int) -> int:
    """The number of a string, which is added where it is new; there must be room."""
    slots, starts = int32s(state, AT.string_slots), int64s(state, AT.string_starts)
    known = uint8s(state, AT.string_bytes)
    mask = U(len(slots) - 1)
    slot = hash_bytes(text, first, last) & mask
    length = last - first
    while slots[slot] != 0:
        number = np.int64(slots[slot]) - 1
        start = starts[number]
        if starts[number + 1] - start == length:
            i = 0
            while i < length and known[start + i] == text[first + i]:
                i += 1
            if i == length:
                return number
        slot = (slot + U(1)) & mask
    number = state[STRINGS]
    slots[slot] = number + 1
    start = state[BYTES]
    for i in range(length):
        known[start + i] = text[first + i]
    starts[number + 1] = start + length
    state[STRINGS] += 1
    state[BYTES] += length
    return number


@kernel
def add_strings(state: Int64, starts: Int64, text: Bytes, numbers: Int32) -> None:
    """The numbers of many strings; there must be room for all."""
    for i in range(len(numbers)):
        numbers[i] = add_string(state, text, starts[i], starts[i + 1])


@kernel
def rehash_strings(state: Int64) -> None:
    """Put all strings into their hash table, which is empty."""
    slots, starts = int32s(state, AT.string_slots), int64s(state, AT.string_starts)
    known = uint8s(state, AT.string_bytes)
    mask = U(len(slots) - 1)
    for number in range(state[STRINGS]):
        slot = hash_bytes(known, starts[number], starts[number + 1]) & mask
        while slots[slot] != 0:
            slot = (slot + U(1)) & mask
        slots[slot] = number + 1


@kernel
def put_string(state: Int64, text: Bytes) -> int:
    """See ``add_string``."""
    return add_string(state, text, 0, len(text))
