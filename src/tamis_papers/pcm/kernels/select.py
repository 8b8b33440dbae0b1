"""Filter selection and constraint selection: from an event to the lines of ``Input``.

Whether an event's value satisfies a constraint: one function, for processors and for GPUs.

It is made of those in ``tamis.events.kernels``, compiled for what it is to run on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tamis.core.arrays import Bytes, Int64
from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.bits import first, ones
from tamis.core.kernel.record import int32s, int64s, prefetch, uint64s
from tamis.core.kernel.table import find_pair
from tamis.events.kernels import values as kernels
from tamis.events.model import BOOLEAN, EQ, EXISTS, FLOAT, GE, IN, STRING
from tamis_papers.pcm import layout as at
from tamis_papers.pcm.kernels.words import covered
from tamis_papers.pcm.program import KIND_SHIFT, PADDING

# -- which tables and lines ------------------------------------------------------------------------


_SCANNED_FOR_A_LOOK_UP = 16
"""So many NameVectors are compared in the time that one is looked up."""

_LOW = 0xFFFFFFFF


@inlined
def name_bits(state: Int64, event: int) -> tuple[int, int]:
    """The NameVector of an event, and its Bloom filter; its attributes are listed by their bits."""
    event_starts = int64s(state, at.EVENTS.event_starts)
    event_names = int32s(state, at.EVENTS.event_names)
    vector_bits = uint64s(state, at.TABLES.vector_bits)
    bloom_bits = uint64s(state, at.TABLES.bloom_bits)
    of_bit, next_of_bit = int32s(state, at.INPUT.of_bit), int32s(state, at.INPUT.next_of_bit)
    vector, bloom = U(0), U(0)
    start = event_starts[event]
    for place in range(event_starts[event + 1] - start):
        name = event_names[start + place]
        bit = first(vector_bits[name])
        next_of_bit[place] = of_bit[bit] if vector & vector_bits[name] != U(0) else np.int32(-1)
        of_bit[bit] = place
        vector |= vector_bits[name]
        bloom |= bloom_bits[name]
    return vector, bloom


@inlined
def is_scanned(vector: int, tables: int) -> bool:
    """Whether to go over all NameVectors: fewer than the subsets of one that were looked up."""
    bits = ones(vector)
    return bits >= 40 or (np.int64(_SCANNED_FOR_A_LOOK_UP) << bits) > tables


@inlined
def first_way(state: Int64, vector: int) -> int:
    """What ``choose_tables`` begins with."""
    state[at.TURN] = 0
    tables = state[at.TABLE_COUNT]
    return U(tables) if is_scanned(vector, tables) else vector


@called
def choose_tables(state: Int64, vector: int, way: int) -> int:
    """Note tables of which the NameVector is included in an event's, as many as there is room for.

    Of those of an event, the threads that share it take turns.

    Args:
        way: how many NameVectors are left to be compared, or the next one to be looked up, at
            first, then what this returned.

    Returns:
        The same, for the next call; 0 when nothing is left.
    """
    tables = state[at.TABLE_COUNT]
    if not is_scanned(vector, tables):
        return _look_up(state, vector, way)
    vectors = uint64s(state, at.TABLES.vectors)
    row_first = int32s(state, at.TABLES.row_first)
    count = np.int64(0)
    left = np.int64(way)
    while left > 0 and count <= at.CHOSEN - PADDING:
        block = tables - left
        mask = covered(vectors, block, ~vector)
        if left < PADDING:
            mask &= (U(1) << U(left)) - U(1)
        left = max(left - PADDING, 0)
        while mask != U(0):
            table = block + first(mask)
            rows = U(row_first[table]) << U(32) | U(row_first[table + 1])
            count = _choose(state, vectors[table], rows, count)
            mask &= mask - U(1)
    state[at.CHOSEN_COUNT] = count
    return U(left)


@inlined
def _look_up(state: Int64, vector: int, way: int) -> int:
    """Do so by looking up each subset of the event's NameVector."""
    slots = uint64s(state, at.TABLES.slots)
    count = np.int64(0)
    while way != U(0) and count < at.CHOSEN:
        slot = find_pair(slots, way)
        if slots[slot] != U(0):
            count = _choose(state, way, slots[slot + 1], count)
        way = (way - U(1)) & vector
    state[at.CHOSEN_COUNT] = count
    return way


@inlined
def _choose(state: Int64, vector: int, rows: int, count: int) -> int:
    """Note a table if it is this thread's turn; how many there are then."""
    turn = state[at.TURN]
    state[at.TURN] = turn + 1 if turn + 1 < state[at.PARTS] else np.int64(0)
    if turn != state[at.PART]:
        return count
    chosen = uint64s(state, at.INPUT.chosen)
    chosen[2 * count] = vector
    chosen[2 * count + 1] = rows
    prefetch(int64s(state, at.TABLES.rows), np.int64(rows >> U(32)))
    return count + 1


@called
def fill_input(state: Int64, event: int, table: int) -> int:
    """Fill lines of ``Input``, from a chosen table on; the one to go on with.

    The caller made room for a line of each attribute.
    """
    event_starts = int64s(state, at.EVENTS.event_starts)
    event_names = int32s(state, at.EVENTS.event_names)
    rows = int64s(state, at.TABLES.rows)
    constr_bf = uint64s(state, at.TABLES.constr_bf)
    chosen = uint64s(state, at.INPUT.chosen)
    attributes = int32s(state, at.INPUT.attributes)
    starts, ends = int32s(state, at.INPUT.starts), int32s(state, at.INPUT.ends)
    of_bit, next_of_bit = int32s(state, at.INPUT.of_bit), int32s(state, at.INPUT.next_of_bit)
    event_start = event_starts[event]
    room = len(starts) - (event_starts[event + 1] - event_start)
    count = np.int64(0)
    while table < state[at.CHOSEN_COUNT] and count <= room:
        vector = chosen[2 * table]
        first_row = np.int64(chosen[2 * table + 1] >> U(32))
        end_row = np.int64(chosen[2 * table + 1]) & _LOW
        while vector != U(0):
            place = np.int64(of_bit[first(vector)])
            vector &= vector - U(1)
            while place >= 0:
                attribute = event_start + place
                row = _row_of(rows, first_row, end_row, np.int64(event_names[attribute]))
                if row >= 0:
                    attributes[count] = attribute
                    starts[count], ends[count] = rows[row] & _LOW, rows[row + 1] & _LOW
                    prefetch(constr_bf, np.int64(starts[count]))
                    count += 1
                place = np.int64(next_of_bit[place])
        table += 1
    state[at.LINE_COUNT] = count
    return table


@inlined
def _row_of(rows: Int64, first_row: int, end_row: int, name: int) -> int:
    """The row of a name in a table, which has some; or -1."""
    low, size = first_row, end_row - first_row
    above = (name + 1) << 32
    while size > 1:
        half = size >> 1
        low += half if rows[low + half] < above else np.int64(0)
        size -= half
    return low if rows[low] >> 32 == name else np.int64(-1)


# -- which constraints are satisfied ---------------------------------------------------------------


_OPERATOR = (1 << KIND_SHIFT) - 1


def covers(name_bits: int, constraint_bits: int) -> bool:
    """Whether the names of an event have all bits that those of a constraint's filter have."""
    return constraint_bits & ~name_bits == 0


def sat_with(compiled: Callable[..., Any]) -> Callable[..., bool]:
    """The paper's function ``sat``, not compiled, which calls functions that are.

    Args:
        compiled: what compiles those.
    """
    order_of_numbers = compiled(kernels.order_of_numbers)
    order_of_strings = compiled(kernels.order_of_strings)
    has_part = compiled(kernels.has_part)
    satisfies = compiled(kernels.satisfies)

    def sat(
        code: int,
        constant: int,
        kind: int,
        value: int,
        start: int,
        end: int,
        strings: Bytes,
        list_starts: Int64,
        list_kinds: Bytes,
        list_values: Int64,
        constant_starts: Int64,
        constant_bytes: Bytes,
    ) -> bool:
        """Whether a constraint is satisfied.

        Args:
            code, constant: of ``constr_op``, ``constr_val``.
            kind, value: what the event has.
            start, end: where it is in ``strings``, if it is a string.
        """
        operator = code & _OPERATOR
        if operator == EXISTS:
            return True
        constant_kind = code >> KIND_SHIFT
        if kind <= FLOAT:
            if constant_kind > FLOAT:
                return False
        elif kind != constant_kind:
            return False
        if operator != IN:
            if kind <= FLOAT:
                return satisfies(operator, order_of_numbers(kind, value, constant_kind, constant))
            if kind == BOOLEAN:
                return satisfies(operator, value - constant)
            first, last = constant_starts[constant], constant_starts[constant + 1]
            if operator <= GE:
                order = order_of_strings(strings, start, end, constant_bytes, first, last)
                return satisfies(operator, order)
            return has_part(operator, strings, start, end, constant_bytes, first, last)
        for item in range(list_starts[constant], list_starts[constant + 1]):
            one = list_values[item]
            order = np.int64(1)
            if kind <= FLOAT:
                order = order_of_numbers(kind, value, np.int64(list_kinds[item]), one)
            elif kind == STRING:
                first, last = constant_starts[one], constant_starts[one + 1]
                order = order_of_strings(strings, start, end, constant_bytes, first, last)
            elif value == one:
                order = np.int64(0)
            if satisfies(EQ, order):
                return True
        return False

    return sat
