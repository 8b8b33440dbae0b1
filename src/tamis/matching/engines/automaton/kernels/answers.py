"""Answers: which queries a state or an end makes true, reported once a document; and grids."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.core.arrays import Int32, Int64, Words
from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.core.kernel.table import slot_finder
from tamis.matching.engines.automaton import layout as at
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels import facts as sets


@inlined
def report(state: Int64, answer: int) -> None:
    """Report an answer of the document, once; there must be room."""
    seen = int64s(state, at.PROGRESS.seen)
    if answer >= 0 and seen[answer] != state[at.STAMP]:
        seen[answer] = state[at.STAMP]
        int32s(state, at.PROGRESS.found)[state[at.FOUND_COUNT]] = answer
        state[at.FOUND_COUNT] += 1
        starts = int64s(state, at.CACHE.answers.starts)
        state[at.TRUE_AT_MOST] += starts[answer + 1] - starts[answer]
        if state[at.TRUE_AT_MOST] >= state[at.LOOK_AT]:
            state[at.IS_SETTLED] = are_all_true(state)
            state[at.LOOK_AT] = 2 * state[at.TRUE_AT_MOST]


@inlined
def add_occurrence(state: Int64, answer: int, place: int) -> None:
    """List the node at which a state has an answer, if that is asked for, before it is reported."""
    if state[at.OCCURRENCES] != at.OCCURRENCES_NONE and answer >= 0:
        is_new = int64s(state, at.PROGRESS.seen)[answer] != state[at.STAMP]
        if is_new or state[at.OCCURRENCES] == at.OCCURRENCES_ALL:
            int32s(state, at.PROGRESS.occurrence_answers)[state[at.OCCURRENCE_COUNT]] = answer
            int64s(state, at.PROGRESS.occurrence_nodes)[state[at.OCCURRENCE_COUNT]] = place
            state[at.OCCURRENCE_COUNT] += 1


@called
def are_all_true(state: Int64) -> bool:
    """Whether all queries are true of the document by now."""
    starts, members = sets.lists(state, at.CACHE.answers)
    found, bits = int32s(state, at.PROGRESS.found), uint8s(state, at.SCRATCH.answer_bits)
    sliced = int32s(state, at.PROGRAM.sliced)
    count = 0
    for i in range(state[at.COUNTED_FROM], state[at.FOUND_COUNT]):
        j, end = starts[found[i]], starts[found[i] + 1]
        while j < end:
            if members[j] >= 0:
                count += not sets.is_set(bits, members[j])
                sets.set_bit(bits, members[j])
                j += 1
                continue
            for place in range(-1 - members[j], members[j + 1]):
                count += not sets.is_set(bits, sliced[place])
                sets.set_bit(bits, sliced[place])
            j += 2
    bits[:] = 0
    return count == state[at.QUERIES]


@inlined
def can_report(state: Int64) -> bool:
    """Whether there is room for three answers: one event has no more, but for sparse facts."""
    answers = int64s(state, at.CACHE.answers.counts)[at.COUNT]
    return (
        state[at.FOUND_COUNT] + 3 <= len(int32s(state, at.PROGRESS.found))
        and answers + 3 <= len(int64s(state, at.PROGRESS.seen))
        and state[at.OCCURRENCE_COUNT] + 3 <= len(int32s(state, at.PROGRESS.occurrence_answers))
    )


# -- grids -----------------------------------------------------------------------------------------

# Grids are rules of two facts, one of rows and one of columns, that many queries have. Of
# subscriptions like ``//article[year > 1999][pages < 20]``, with many numbers for each, a document
# makes a large part true, and nearly each document another part. The facts of a value that is
# compared with numbers follow each other. So what is true in a row of the grid is one slice of the
# row's queries, or a few. A slice is found by its ends and never listed.


@called
def take_slices(state: Int64, current: int, taken: int) -> int:
    """List the slices of all grids of a state behind what is listed: how much it is then.

    A slice is minus one minus where it begins among the ``sliced`` queries, and where it ends.
    """
    nodes, members = int32s(state, at.PROGRAM.nodes), int32s(state, at.CACHE.states.members)
    start = int64s(state, at.CACHE.states.starts)[current]
    end = start + int32s(state, at.CACHE.state_info)[current * at.STATE_COLUMNS + at.RULED]
    for i in range(start, end):
        row = members[i] * pr.NODE_COLUMNS
        for grid in range(nodes[row + pr.GRIDS], nodes[row + pr.NODE_COLUMNS + pr.GRIDS]):
            taken = take_columns(state, grid * pr.GRID_COLUMNS, taken)
    return taken


@called
def take_columns(state: Int64, index: int, taken: int) -> int:
    """List the slices of a grid."""
    grids, facts = int32s(state, at.PROGRAM.grids), uint64s(state, at.SCRATCH.child_facts)
    column = np.int64(grids[index + pr.FIRST_COLUMN])
    end = column + grids[index + pr.COLUMNS]
    while True:
        column = next_fact(facts, column, end, U(0))
        if column == end:
            return taken
        last = next_fact(facts, column, end, ~U(0))
        taken = take_rows(state, index, column, last, taken)
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
def take_rows(state: Int64, index: int, column: int, last: int, taken: int) -> int:
    """List the slices of a grid's rows from one column up to another."""
    grids, cells = int32s(state, at.PROGRAM.grids), int32s(state, at.PROGRAM.grid_cells)
    rows, into = int32s(state, at.PROGRAM.grid_rows), int32s(state, at.SCRATCH.answers)
    facts, open = uint64s(state, at.SCRATCH.child_facts), int32s(state, at.SCRATCH.open_sliced)
    before = np.int64(grids[index + pr.FIRST_COLUMN])
    width = np.int64(grids[index + pr.COLUMNS]) + 1
    cell = np.int64(grids[index + pr.CELLS])
    for row in range(grids[index + pr.FIRST_ROW], grids[index + pr.GRID_COLUMNS + pr.FIRST_ROW]):
        start, end = cells[U(cell + column - before)], cells[U(cell + last - before)]
        into[U(taken)], into[U(taken + 1)] = -1 - start, end
        taken += 2 * (sets.holds_fact(facts, rows[U(row)]) & (open[U(start)] < open[U(end)]))
        cell += width
    return taken


@inlined
def _is_list(known: Any, number: int, searched: tuple[np.uint64, Int32, int]) -> bool:
    (hashes, starts, members), (hash, source, count) = known, searched
    start = starts[number]
    is_as_long = starts[number + 1] - start == count
    return hashes[number] == hash and is_as_long and sets.are_equal(members, start, source, count)


_find_list = slot_finder(_is_list)


@called
def intern_sliced(state: Int64, queries: int, taken: int) -> int:
    """The number of an answer of so many queries and of slices behind them; -1 if no room.

    The same queries in another order, or in other slices, are another answer.
    """
    answers, source = at.CACHE.answers, int32s(state, at.SCRATCH.answers)
    if queries == taken:
        return sets.intern_answer(state, source, taken)
    sets.clear(uint8s(state, at.SCRATCH.answer_bits), source, 0, queries)
    hash = U(0)
    for i in range(taken):
        hash = sets.joined(hash, source[i])
    hash |= ~sets.UNSLICED
    slots, known = (
        int32s(state, answers.slots),
        (uint64s(state, answers.hashes), *sets.lists(state, answers)),
    )
    found = np.int64(slots[_find_list(slots, hash, known, (hash, source, taken))]) - 1
    return found if found >= 0 else sets.append(state, answers, source, taken, hash)
