"""Grids: rules of two facts, one of rows and one of columns, that many queries have.

Of subscriptions like ``//article[year > 1999][pages < 20]``, with many numbers for each, a document
makes a large part true, and nearly each document another one. What is true in a row of the grid is
where its columns are true: the facts of a value that is compared with numbers follow each other, so
that is a slice of the row's queries or a few, found by their ends and never listed.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.matching.engines.automaton.cache import RULED, STATE_COLUMNS, USED, Words
from tamis.matching.engines.automaton.kernels.facts import holds_fact
from tamis.matching.engines.automaton.kernels.tables import (
    UNSLICED,
    add_list,
    clear,
    has_room,
    intern,
    joined,
)
from tamis.matching.engines.automaton.layout import CACHE, PROGRAM, SCRATCH
from tamis.matching.engines.automaton.program import (
    CELLS,
    COLUMNS,
    FIRST_COLUMN,
    FIRST_ROW,
    GRID_COLUMNS,
    GRIDS,
    NODE_COLUMNS,
)


@called
def take_slices(state: Int64, current: int, taken: int) -> int:
    """Note the slices of all grids of a state behind what was noted: how much it is then.

    A slice is minus one minus where it begins among the ``sliced`` queries, and where it ends.
    """
    nodes, members = int32s(state, PROGRAM.nodes), int32s(state, CACHE.states.members)
    start = int64s(state, CACHE.states.starts)[current]
    end = start + int32s(state, CACHE.state_info)[current * STATE_COLUMNS + RULED]
    for i in range(start, end):
        row = members[i] * NODE_COLUMNS
        for grid in range(nodes[row + GRIDS], nodes[row + NODE_COLUMNS + GRIDS]):
            taken = take_columns(state, grid * GRID_COLUMNS, taken)
    return taken


@called
def take_columns(state: Int64, at: int, taken: int) -> int:
    """Note the slices of a grid."""
    grids, facts = int32s(state, PROGRAM.grids), uint64s(state, SCRATCH.gathered)
    column = np.int64(grids[at + FIRST_COLUMN])
    end = column + grids[at + COLUMNS]
    while True:
        column = next_fact(facts, column, end, U(0))
        if column == end:
            return taken
        last = next_fact(facts, column, end, ~U(0))
        taken = take_rows(state, at, column, last, taken)
        column = last


@inlined
def next_fact(facts: Words, fact: int, end: int, inverted: np.uint64) -> int:
    """The first fact from one on that holds, or (``inverted``) does not; or the end."""
    while fact < end:
        word = (facts[fact >> 6] ^ inverted) >> U(fact & 63)
        if word != U(0):
            return min(end, fact + first(word))
        fact = (fact | 63) + 1
    return end


@called
def take_rows(state: Int64, at: int, column: int, last: int, taken: int) -> int:
    """Note the slices of a grid's rows from one column up to another."""
    grids, cells = int32s(state, PROGRAM.grids), int32s(state, PROGRAM.grid_cells)
    rows, into = int32s(state, PROGRAM.grid_rows), int32s(state, SCRATCH.answers)
    facts = uint64s(state, SCRATCH.gathered)
    before = np.int64(grids[at + FIRST_COLUMN])
    width = np.int64(grids[at + COLUMNS]) + 1
    cell = np.int64(grids[at + CELLS])
    for row in range(grids[at + FIRST_ROW], grids[at + GRID_COLUMNS + FIRST_ROW]):
        start, end = cells[U(cell + column - before)], cells[U(cell + last - before)]
        into[U(taken)], into[U(taken + 1)] = -1 - start, end
        taken += 2 * (holds_fact(facts, rows[U(row)]) & (start < end))
        cell += width
    return taken


@called
def intern_answer(state: Int64, queries: int, taken: int) -> int:
    """The number of an answer of so many queries, and of slices behind them; -1 for no room."""
    answers, bits = int32s(state, SCRATCH.answers), uint8s(state, SCRATCH.answer_bits)
    if queries == taken:
        return intern(state, CACHE.answers, answers, taken, bits)
    clear(bits, answers, 0, queries)
    return intern_sliced(state, taken)


@called
def intern_sliced(state: Int64, taken: int) -> int:
    """The number of an answer with slices; -1 if there is no room.

    The same queries in another order, or in other slices, are another answer.
    """
    source = int32s(state, SCRATCH.answers)
    hash = U(0)
    for i in range(taken):
        hash = joined(hash, source[i])
    hash |= ~UNSLICED
    table, offsets = int32s(state, CACHE.answers.slots), int64s(state, CACHE.answers.starts)
    members, hashes = int32s(state, CACHE.answers.members), uint64s(state, CACHE.answers.hashes)
    mask = U(len(table) - 1)
    slot = hash & mask
    while table[slot]:
        number = np.int64(table[slot] - 1)
        start = offsets[number]
        is_as_long = offsets[number + 1] - start == taken
        if hashes[number] == hash and is_as_long and are_equal(members, start, source, taken):
            return number
        slot = (slot + U(1)) & mask
    if not has_room(state, CACHE.answers, members, taken):
        return -1
    start = int64s(state, CACHE.answers.counts)[USED]
    for i in range(taken):
        members[start + i] = source[i]
    return add_list(state, CACHE.answers, taken, hash)


@inlined
def are_equal(members: Int32, start: int, source: Int32, count: int) -> bool:
    """Whether some numbers are others."""
    i = 0
    while i < count and members[start + i] == source[i]:
        i += 1
    return i == count
