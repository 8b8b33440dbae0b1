"""Events, a tile at a time: which cells there may be, where they are, which filters match."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.events import kernels as shared
from tamis.events.engines.signature.kernels.candidates import cell_of, gather, look_up
from tamis.events.engines.signature.kernels.words import (
    ALL,
    LANES,
    constant_hash,
    is_within,
    key_bit,
    within,
    within_wide,
)
from tamis.events.engines.signature.layout import (
    ABSENT,
    ALWAYS,
    ARE_INTERFACES,
    BLOOM_SHIFT,
    CELLS,
    DONE,
    END,
    EVENT,
    EVENTS,
    FOUND_COUNT,
    FULL_FOUND,
    KEYS_END,
    KEYS_START,
    LEFT,
    OWNERS,
    RANKS,
    REPORTED,
    STAMP,
    TESTS,
    TILE,
    WORK,
)
from tamis.events.engines.signature.program import (
    HAS_EQUALS,
    HAS_TESTS,
    HOLE,
    IS_WIDE,
    KEYS_MAX,
)
from tamis.events.model import IN

SINGLE_KEYS = 5
"""A filter alone in its cell is compared in so many keys at once."""

has_part = called(shared.has_part)


@kernel
def match_events(state: Int64) -> int:
    """Match events from ``EVENT`` on; each tile has matched whole, or else is begun again.

    What waits for memory is asked for in one step and used in the next one, so that the misses of
    all events of a tile overlap.
    """
    found_starts = int64s(state, WORK.found_starts)
    is_bad = uint8s(state, EVENTS.is_bad)
    while state[EVENT] < state[END]:
        start, before = state[EVENT], state[FOUND_COUNT]
        end = gather(state, start, min(start + TILE, state[END]))
        look_up(state)
        for event in range(start, end):
            if not is_bad[event] and not evaluate(state, event - start):
                state[FOUND_COUNT] = before
                return FULL_FOUND
            found_starts[event + 1] = state[FOUND_COUNT]
        state[EVENT] = end
    return DONE


@called
def evaluate(state: Int64, tile: int) -> bool:
    """Report what matches an event of the tile; False if there is no room for it."""
    tile_starts, tile_keys = int64s(state, WORK.tile_starts), int32s(state, WORK.tile_keys)
    tile_ranks, ranks = int32s(state, WORK.tile_ranks), int32s(state, WORK.ranks)
    state[STAMP] += 1
    state[LEFT] = state[OWNERS]
    start, end = tile_starts[tile], tile_starts[tile + 1]
    state[KEYS_START], state[KEYS_END] = start, end
    for place in range(start, end):
        ranks[tile_keys[place]] = tile_ranks[place]
    has_room = report_always(state)
    if has_room and uint8s(state, WORK.is_wide)[tile]:
        has_room = evaluate_listed(state, start, end)
    elif has_room:
        cells, starts = int32s(state, WORK.found_cells), int64s(state, WORK.candidate_starts)
        for candidate in range(starts[tile], starts[tile + 1]):
            cell = np.int64(cells[candidate])
            if cell >= 0 and has_room and state[LEFT] > 0:
                has_room = evaluate_cell(state, cell)
    for place in range(start, end):
        ranks[tile_keys[place]] = ABSENT
    return has_room


@inlined
def report_always(state: Int64) -> bool:
    """Report the filter without constraints, if there is one, and room."""
    if state[ALWAYS] < 0:
        return True
    return report(state, state[ALWAYS])


@called
def evaluate_listed(state: Int64, start: int, end: int) -> bool:
    """Report what matches of the cells that are listed under the event's keys."""
    tile_keys, key_hashes = int32s(state, WORK.tile_keys), uint64s(state, CELLS.key_hashes)
    constant_starts = int64s(state, RANKS.starts)
    missing = ~U(0)
    for place in range(start, end):
        missing &= ~key_bit(key_hashes[tile_keys[place]])
    keys, tile_ranks = len(key_hashes), int32s(state, WORK.tile_ranks)
    for place in range(start, end):
        key, rank = np.int64(tile_keys[place]), np.int64(tile_ranks[place])
        if not evaluate_list(state, key, missing):
            return False
        constant = keys + constant_starts[key] + (rank >> 1)
        is_constant = rank & 1 and constant < keys + constant_starts[key + 1]
        if is_constant and not evaluate_list(state, constant, missing):
            return False
    return True


@called
def evaluate_list(state: Int64, access: int, missing: np.uint64) -> bool:
    """Report what matches of the cells that are listed under one thing."""
    starts, under = int64s(state, CELLS.under_starts), int32s(state, CELLS.under)
    under_keys = uint64s(state, CELLS.under_keys)
    for listed in range(starts[access], starts[access + 1]):
        if state[LEFT] == 0:
            return True
        if under_keys[listed] & missing:
            continue
        if not evaluate_cell(state, np.int64(under[listed])):
            return False
    return True


@inlined
def evaluate_cell(state: Int64, cell: int) -> bool:
    """Report what matches in a cell, and in those for the event's values beside it."""
    arena = int32s(state, CELLS.arena)
    if not evaluate_filters(state, cell):
        return False
    if arena[cell] & HAS_EQUALS:
        return evaluate_equals(state, cell)
    return True


@called
def evaluate_equals(state: Int64, cell: int) -> bool:
    """Report what matches in the cells for the event's values."""
    arena, ranks = int32s(state, CELLS.arena), int32s(state, WORK.ranks)
    key_hashes, bloom = uint64s(state, CELLS.key_hashes), uint64s(state, CELLS.bloom)
    keys = arena[cell] & KEYS_MAX
    signature = U(0)
    for place in range(keys):
        if ranks[arena[cell + 2 + place]] < 0:
            return True
        signature += key_hashes[arena[cell + 2 + place]]
    mask = U(arena[cell + 2 + keys])
    while mask != U(0):
        key = np.int64(arena[cell + 2 + first(mask)])
        mask &= mask - U(1)
        rank = np.int64(ranks[key])
        if not rank & 1:
            continue
        found = constant_hash(signature, key, rank)
        word = bloom[found >> U(state[BLOOM_SHIFT])]
        if not (word >> (found & U(63))) & (word >> ((found >> U(6)) & U(63))) & U(1):
            continue
        further = cell_of(state, found)
        if further >= 0 and not evaluate_filters(state, further):
            return False
    return True


@called
def evaluate_filters(state: Int64, cell: int) -> bool:
    """Report those of a cell's own filters that match."""
    arena, ranks = int32s(state, CELLS.arena), int32s(state, WORK.ranks)
    own = int32s(state, WORK.own_ranks)
    head, count = np.int64(arena[cell]), np.int64(arena[cell + 1])
    keys = head & KEYS_MAX
    if count == 1 and keys <= SINGLE_KEYS and not head & (HAS_EQUALS | IS_WIDE):
        return evaluate_single(state, cell, keys)
    at = cell + 2
    for place in range(keys):
        own[place] = ranks[arena[at + place]]
        if own[place] == ABSENT:
            return True
    at += keys
    if head & HAS_EQUALS:
        at += 1
    if head & IS_WIDE:
        return evaluate_wide(state, at, head, count)
    numbers = at + keys * count
    if count <= 2:
        for row in range(count):
            place = 0
            column = at + row
            while place < keys and is_within(np.int64(arena[column]), np.int64(own[place])):
                place += 1
                column += count
            if place == keys and not report(state, np.int64(arena[numbers + row])):
                return False
        return True
    for row in range(0, count, LANES):
        matching = ALL if count - row >= LANES else (U(1) << U(count - row)) - U(1)
        column = at + row
        for place in range(keys):
            matching &= within(arena, column, np.int64(own[place]))
            column += count
        if matching != U(0) and not report_block(state, numbers + row, matching, head & HAS_TESTS):
            return False
    return True


@inlined
def evaluate_single(state: Int64, cell: int, keys: int) -> bool:
    """The same of one filter, as most cells have: without branches, as its values are as random."""
    arena, ranks = int32s(state, CELLS.arena), int32s(state, WORK.ranks)
    matches = True
    for place in range(SINGLE_KEYS):
        at = cell + 2 + min(place, keys - 1)
        rank = np.int64(ranks[arena[at]])
        matches &= (rank != ABSENT) & is_within(np.int64(arena[at + keys]), rank)
    return not matches or report(state, np.int64(arena[cell + 2 + 2 * keys]))


@called
def evaluate_wide(state: Int64, at: int, head: int, count: int) -> bool:
    """The same of filters with ranges of 32 bits, from a place in the arena on."""
    arena, own = int32s(state, CELLS.arena), int32s(state, WORK.own_ranks)
    keys = head & KEYS_MAX
    numbers = at + 2 * keys * count
    for row in range(0, count, LANES):
        matching = ALL if count - row >= LANES else (U(1) << U(count - row)) - U(1)
        column = at + row
        for place in range(keys):
            matching &= within_wide(arena, column, column + count, np.int64(own[place]))
            column += 2 * count
        if matching != U(0) and not report_block(state, numbers + row, matching, head & HAS_TESTS):
            return False
    return True


@inlined
def report_block(state: Int64, first_number: int, matching: np.uint64, has_tests: int) -> bool:
    """Report those of LANES filters whose bits are set."""
    arena = int32s(state, CELLS.arena)
    if state[ARE_INTERFACES]:
        while matching != U(0) and state[LEFT] > 0:
            if not report(state, np.int64(arena[first_number + first(matching)])):
                return False
            matching &= matching - U(1)
        return True
    found, count = int32s(state, WORK.found), state[FOUND_COUNT]
    if count + LANES > len(found):
        return False
    if not has_tests:
        place, numbers = U(count), U(first_number)  # as words: Numba lets others be negative
        for lane in range(LANES):  # nobody can foretell which: without a branch it is faster
            found[place] = arena[numbers + U(lane)]
            place += (matching >> U(lane)) & U(1)
        state[FOUND_COUNT] = np.int64(place)
        return True
    while matching != U(0):
        if not report(state, np.int64(arena[first_number + first(matching)])):
            return False
        matching &= matching - U(1)
    return True


@inlined
def report(state: Int64, number: int) -> bool:
    """Report a filter that is within all ranges, if it passes its tests; False without room."""
    if number < 0:
        tested = number & 0x7FFFFFFF
        if not passes(state, tested):
            return True
        number = np.int64(int32s(state, TESTS.filters)[tested])
    if state[ARE_INTERFACES]:
        return report_owners(state, number)
    found = int32s(state, WORK.found)
    count = state[FOUND_COUNT]
    if count == len(found):
        return False
    found[count] = number
    state[FOUND_COUNT] = count + 1
    return True


@inlined
def report_owners(state: Int64, number: int) -> bool:
    """Report the owners of a filter that were not yet; False without room."""
    only = np.int64(int32s(state, REPORTED.only)[number])
    if only >= 0:
        return report_owner(state, only)
    starts, numbers = int64s(state, REPORTED.starts), int32s(state, REPORTED.numbers)
    for place in range(starts[number], starts[number + 1]):
        if not report_owner(state, np.int64(numbers[place])):
            return False
    return True


@inlined
def report_owner(state: Int64, owner: int) -> bool:
    """Report an owner, if it was not yet; False without room."""
    reported_in, found = int64s(state, WORK.reported_in), int32s(state, WORK.found)
    if reported_in[owner] == state[STAMP]:
        return True
    if state[FOUND_COUNT] == len(found):
        return False
    reported_in[owner] = state[STAMP]
    found[state[FOUND_COUNT]] = owner
    state[FOUND_COUNT] += 1
    state[LEFT] -= 1
    return True


@called
def passes(state: Int64, tested: int) -> bool:
    """Whether an event passes the tests of a filter."""
    starts, keys = int64s(state, TESTS.starts), int32s(state, TESTS.keys)
    operators, values = uint8s(state, TESTS.operators), int64s(state, TESTS.values)
    ranks = int32s(state, WORK.ranks)
    for test in range(starts[tested], starts[tested + 1]):
        operator, value = np.int64(operators[test]), values[test]
        rank = np.int64(ranks[keys[test]])
        if operator == HOLE:
            if rank == value:
                return False
        elif operator == IN:
            if not is_in(state, value, rank):
                return False
        elif not has_tested_part(state, operator, keys[test], value):
            return False
    return True


@inlined
def is_in(state: Int64, number: int, rank: int) -> bool:
    """Whether a list of ranks has this one."""
    starts, ranks = int64s(state, TESTS.list_starts), int32s(state, TESTS.list_ranks)
    low, end = starts[number], starts[number + 1]
    high = end
    while low < high:
        middle = (low + high) >> 1
        if ranks[middle] < rank:
            low = middle + 1
        else:
            high = middle
    return low < end and ranks[low] == rank


@inlined
def has_tested_part(state: Int64, operator: int, key: int, string: int) -> bool:
    """Whether the event's string in a key has a suffix, or contains a string."""
    tile_keys, places = int32s(state, WORK.tile_keys), int64s(state, WORK.tile_places)
    at = state[KEYS_START]
    while tile_keys[at] != key:
        at += 1
    value = int64s(state, EVENTS.values)[places[at]]
    starts, parts = int64s(state, EVENTS.string_starts), int64s(state, TESTS.string_starts)
    return has_part(
        operator,
        uint8s(state, EVENTS.string_bytes),
        starts[value],
        starts[value + 1],
        uint8s(state, TESTS.string_bytes),
        parts[string],
        parts[string + 1],
    )
