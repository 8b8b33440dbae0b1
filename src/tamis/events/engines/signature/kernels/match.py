"""Events, a tile at a time: the cells of candidates, and the filters that match."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.index.kernels import PART, hand_over
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.bits import first
from tamis.core.kernel.declare import intrinsic
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.events.engines.signature import program as at
from tamis.events.engines.signature.kernels.candidates import cell_of, gather, look_up
from tamis.events.engines.signature.kernels.cells import constant_hash, key_bit
from tamis.events.kernels import values as shared
from tamis.events.model import IN

LANES = 16
"""The filters that are compared at a time."""
ALL = U((1 << LANES) - 1)
SINGLE_KEYS = 5
"""A filter alone in its cell is compared in so many keys at once."""

has_part = called(shared.has_part)


@kernel
def match_events(state: Int64) -> int:
    """Match events from ``EVENT`` on, tile by tile; a tile without room is begun again.

    Each step prefetches the memory that the next one reads, so that the cache misses of all events
    of a tile overlap.

    Returns 0, or the field of ``found``, if it is full.
    """
    found_starts = int64s(state, at.WORK.found_starts)
    is_bad = uint8s(state, at.EVENTS.is_bad)
    while state[at.EVENT] < state[at.END]:
        start, before = state[at.EVENT], state[at.FOUND_COUNT]
        end = gather(state, start, min(start + at.TILE, state[at.END]))
        look_up(state)
        for event in range(start, end):
            if not is_bad[event] and not evaluate(state, event - start):
                state[at.FOUND_COUNT] = before
                return at.WORK.found
            found_starts[event + 1] = state[at.FOUND_COUNT]
        state[at.EVENT] = end
    return 0


@kernel
def match_one(state: Int64) -> int:
    """Match the one event that is registered, and say so to a listing: 0, or a field that is full.

    Subscriptions are reported, not interfaces.
    """
    state[at.EVENT] = state[at.FOUND_COUNT] = int64s(state, at.WORK.found_starts)[0] = 0
    state[at.END] = 1
    status = match_events(state)
    if status:
        return status
    listing, part = int64s(state, at.ONE.listing), state[at.PART]
    hand_over(state, at.WORK.found_starts, 2, listing, part + PART.document_starts)
    hand_over(state, at.WORK.found, state[at.FOUND_COUNT], listing, part + PART.set_ids)
    starts, numbers = at.REPORTED.starts, at.REPORTED.numbers
    hand_over(state, starts, state[starts + 1], listing, part + PART.set_starts)
    hand_over(state, numbers, state[numbers + 1], listing, part + PART.members)
    hand_over(state, numbers, 0, listing, part + PART.sliced)
    return 0


@called
def evaluate(state: Int64, tile: int) -> bool:
    """Report the matches of an event of the tile; False if there is no room for them."""
    tile_starts, tile_keys = int64s(state, at.WORK.tile_starts), int32s(state, at.WORK.tile_keys)
    tile_ranks, ranks = int32s(state, at.WORK.tile_ranks), int32s(state, at.WORK.ranks)
    state[at.STAMP] += 1
    state[at.UNREPORTED] = state[at.OWNERS]
    start, end = tile_starts[tile], tile_starts[tile + 1]
    state[at.KEYS_START], state[at.KEYS_END] = start, end
    for i in range(start, end):
        ranks[tile_keys[i]] = tile_ranks[i]
    has_room = state[at.ALWAYS] < 0 or report(state, state[at.ALWAYS])
    if has_room and uint8s(state, at.WORK.is_wide)[tile]:
        has_room = evaluate_listed(state, start, end)
    elif has_room:
        cells, starts = int32s(state, at.WORK.found_cells), int64s(state, at.WORK.candidate_starts)
        for candidate in range(starts[tile], starts[tile + 1]):
            cell = np.int64(cells[candidate])
            if cell >= 0 and has_room and state[at.UNREPORTED] > 0:
                has_room = evaluate_cell(state, cell)
    for i in range(start, end):
        ranks[tile_keys[i]] = at.ABSENT
    return has_room


# -- cells -------------------------------------------------------------------------------------


@called
def evaluate_listed(state: Int64, start: int, end: int) -> bool:
    """Report the matches in the cells that are listed under the event's keys and constants."""
    tile_keys, key_hashes = int32s(state, at.WORK.tile_keys), uint64s(state, at.CELLS.key_hashes)
    constant_starts = int64s(state, at.RANKS.starts)
    missing = ~U(0)
    for i in range(start, end):
        missing &= ~key_bit(key_hashes[tile_keys[i]])
    keys, tile_ranks = len(key_hashes), int32s(state, at.WORK.tile_ranks)
    for i in range(start, end):
        key, rank = np.int64(tile_keys[i]), np.int64(tile_ranks[i])
        if not evaluate_list(state, key, missing):
            return False
        constant = keys + constant_starts[key] + (rank >> 1)
        is_constant = rank & 1 and constant < keys + constant_starts[key + 1]
        if is_constant and not evaluate_list(state, constant, missing):
            return False
    return True


@called
def evaluate_list(state: Int64, number: int, missing: np.uint64) -> bool:
    """Report the matches in the cells of a list."""
    starts, listed = int64s(state, at.CELLS.list_starts), int32s(state, at.CELLS.listed)
    listed_keys = uint64s(state, at.CELLS.listed_keys)
    for i in range(starts[number], starts[number + 1]):
        if state[at.UNREPORTED] == 0:
            return True
        if listed_keys[i] & missing:
            continue
        if not evaluate_cell(state, np.int64(listed[i])):
            return False
    return True


@inlined
def evaluate_cell(state: Int64, cell: int) -> bool:
    """Report the matches in a cell, and in its further cells for the event's values."""
    arena = int32s(state, at.CELLS.arena)
    if not evaluate_filters(state, cell):
        return False
    if arena[cell] & at.HAS_EQUALS:
        return evaluate_equals(state, cell)
    return True


@called
def evaluate_equals(state: Int64, cell: int) -> bool:
    """Report the matches in the further cells for the event's values."""
    arena, ranks = int32s(state, at.CELLS.arena), int32s(state, at.WORK.ranks)
    key_hashes, bloom = uint64s(state, at.CELLS.key_hashes), uint64s(state, at.CELLS.bloom)
    keys = arena[cell] & at.KEYS_MAX
    signature = U(0)
    for i in range(keys):
        if ranks[arena[cell + 2 + i]] < 0:
            return True
        signature += key_hashes[arena[cell + 2 + i]]
    mask = U(arena[cell + 2 + keys])
    while mask != U(0):
        key = np.int64(arena[cell + 2 + first(mask)])
        mask &= mask - U(1)
        rank = np.int64(ranks[key])
        if not rank & 1:
            continue
        hash = constant_hash(signature, key, rank)
        word = bloom[hash >> U(state[at.BLOOM_SHIFT])]
        if not (word >> (hash & U(63))) & (word >> ((hash >> U(6)) & U(63))) & U(1):
            continue
        further = cell_of(state, hash)
        if further >= 0 and not evaluate_filters(state, further):
            return False
    return True


# -- filters of a cell -------------------------------------------------------------------------


def _bits(conditions: np.ndarray) -> np.uint64:
    return U(sum(1 << lane for lane, holds in enumerate(conditions.tolist()) if holds))


@intrinsic
def within(arena: Int32, offset: int, rank: int) -> np.uint64:
    """Bit i: whether a rank is within the i-th of LANES ranges of 16 bits; see ``Cells.arena``."""
    bounds = arena[offset : offset + LANES].view(np.uint32)
    return _bits(((U(rank) - bounds) & 0xFFFF) <= bounds >> 16)


@intrinsic
def within_wide(arena: Int32, low: int, width: int, rank: int) -> np.uint64:
    """The same for ranges of 32 bits, whose parts are from two offsets on."""
    lows, widths = (arena[start : start + LANES].view(np.uint32) for start in (low, width))
    return _bits(((U(rank) - lows) & 0xFFFFFFFF) <= widths)


@inlined
def is_within(bounds: int, rank: int) -> bool:
    """The same for one range of 16 bits."""
    return ((rank - bounds) & 0xFFFF) <= ((bounds >> 16) & 0xFFFF)


@inlined
def block_of(count: int, row: int) -> np.uint64:
    """The bits of LANES filters from a row on, as far as there are filters."""
    return ALL if count - row >= LANES else (U(1) << U(count - row)) - U(1)


@called
def evaluate_filters(state: Int64, cell: int) -> bool:
    """Report the matches among a cell's own filters."""
    arena, ranks = int32s(state, at.CELLS.arena), int32s(state, at.WORK.ranks)
    own = int32s(state, at.WORK.own_ranks)
    head, count = np.int64(arena[cell]), np.int64(arena[cell + 1])
    keys = head & at.KEYS_MAX
    if count == 1 and keys <= SINGLE_KEYS and not head & (at.HAS_EQUALS | at.IS_WIDE):
        return evaluate_single(state, cell, keys)
    offset = cell + 2
    for i in range(keys):
        own[i] = ranks[arena[offset + i]]
        if own[i] == at.ABSENT:
            return True
    offset += keys
    if head & at.HAS_EQUALS:
        offset += 1
    if head & at.IS_WIDE:
        return evaluate_wide(state, offset, head, count)
    numbers = offset + keys * count
    if count <= 2:
        for row in range(count):
            i = 0
            column = offset + row
            while i < keys and is_within(np.int64(arena[column]), np.int64(own[i])):
                i += 1
                column += count
            if i == keys and not report(state, np.int64(arena[numbers + row])):
                return False
        return True
    has_tests = head & at.HAS_TESTS
    for row in range(0, count, LANES):
        matching = block_of(count, row)
        column = offset + row
        for i in range(keys):
            matching &= within(arena, column, np.int64(own[i]))
            column += count
        if matching != U(0) and not report_block(state, numbers + row, matching, has_tests):
            return False
    return True


@inlined
def evaluate_single(state: Int64, cell: int, keys: int) -> bool:
    """The same for one filter, as most cells have: without branches, which are unpredictable."""
    arena, ranks = int32s(state, at.CELLS.arena), int32s(state, at.WORK.ranks)
    matches = True
    for i in range(SINGLE_KEYS):
        offset = cell + 2 + min(i, keys - 1)
        rank = np.int64(ranks[arena[offset]])
        matches &= (rank != at.ABSENT) & is_within(np.int64(arena[offset + keys]), rank)
    return not matches or report(state, np.int64(arena[cell + 2 + 2 * keys]))


@called
def evaluate_wide(state: Int64, offset: int, head: int, count: int) -> bool:
    """The same for filters with ranges of 32 bits, from an offset in the arena on."""
    arena, own = int32s(state, at.CELLS.arena), int32s(state, at.WORK.own_ranks)
    keys, has_tests = head & at.KEYS_MAX, head & at.HAS_TESTS
    numbers = offset + 2 * keys * count
    for row in range(0, count, LANES):
        matching = block_of(count, row)
        column = offset + row
        for i in range(keys):
            matching &= within_wide(arena, column, column + count, np.int64(own[i]))
            column += 2 * count
        if matching != U(0) and not report_block(state, numbers + row, matching, has_tests):
            return False
    return True


# -- reports -----------------------------------------------------------------------------------


@inlined
def report_block(state: Int64, numbers: int, matching: np.uint64, has_tests: int) -> bool:
    """Report those of LANES filters whose bits are set; their numbers are from an offset on."""
    arena = int32s(state, at.CELLS.arena)
    found, count = int32s(state, at.WORK.found), state[at.FOUND_COUNT]
    if not state[at.ARE_INTERFACES] and count + LANES > len(found):
        return False
    if not state[at.ARE_INTERFACES] and not has_tests:
        index, number = U(count), U(numbers)  # as words: Numba lets others be negative
        for lane in range(LANES):  # without branches, which are unpredictable
            found[index] = arena[number + U(lane)]
            index += (matching >> U(lane)) & U(1)
        state[at.FOUND_COUNT] = np.int64(index)
        return True
    while matching != U(0) and state[at.UNREPORTED] > 0:
        if not report(state, np.int64(arena[numbers + first(matching)])):
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
        number = np.int64(int32s(state, at.TESTS.filters)[tested])
    if state[at.ARE_INTERFACES]:
        return report_owners(state, number)
    found = int32s(state, at.WORK.found)
    count = state[at.FOUND_COUNT]
    if count == len(found):
        return False
    found[count] = number
    state[at.FOUND_COUNT] = count + 1
    return True


@inlined
def report_owners(state: Int64, number: int) -> bool:
    """Report the owners of a filter that were not yet; False without room."""
    only = np.int64(int32s(state, at.REPORTED.only)[number])
    if only >= 0:
        return report_owner(state, only)
    starts, numbers = int64s(state, at.REPORTED.starts), int32s(state, at.REPORTED.numbers)
    for i in range(starts[number], starts[number + 1]):
        if not report_owner(state, np.int64(numbers[i])):
            return False
    return True


@inlined
def report_owner(state: Int64, owner: int) -> bool:
    """Report an owner, if it was not yet; False without room."""
    reported_in, found = int64s(state, at.WORK.reported_in), int32s(state, at.WORK.found)
    if reported_in[owner] == state[at.STAMP]:
        return True
    if state[at.FOUND_COUNT] == len(found):
        return False
    reported_in[owner] = state[at.STAMP]
    found[state[at.FOUND_COUNT]] = owner
    state[at.FOUND_COUNT] += 1
    state[at.UNREPORTED] -= 1
    return True


# -- tests -------------------------------------------------------------------------------------


@called
def passes(state: Int64, tested: int) -> bool:
    """Whether an event passes the tests of a filter."""
    starts, keys = int64s(state, at.TESTS.starts), int32s(state, at.TESTS.keys)
    operators, values = uint8s(state, at.TESTS.operators), int64s(state, at.TESTS.values)
    ranks = int32s(state, at.WORK.ranks)
    for test in range(starts[tested], starts[tested + 1]):
        operator, value = np.int64(operators[test]), values[test]
        rank = np.int64(ranks[keys[test]])
        if operator == at.HOLE:
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
    starts, ranks = int64s(state, at.TESTS.list_starts), int32s(state, at.TESTS.list_ranks)
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
    """Whether the event's string in a key satisfies ``suffix`` or ``contains``."""
    tile_keys, attributes = int32s(state, at.WORK.tile_keys), int64s(state, at.WORK.tile_attributes)
    i = state[at.KEYS_START]
    while tile_keys[i] != key:
        i += 1
    value = int64s(state, at.EVENTS.values)[attributes[i]]
    starts, parts = int64s(state, at.EVENTS.string_starts), int64s(state, at.TESTS.string_starts)
    return has_part(
        operator,
        uint8s(state, at.EVENTS.string_bytes),
        starts[value],
        starts[value + 1],
        uint8s(state, at.TESTS.string_bytes),
        parts[string],
        parts[string + 1],
    )
