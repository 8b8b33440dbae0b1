"""Events, a tile at a time: which cells there may be, where they are, which filters match."""

from __future__ import annotations

import numpy as np

from tamis.arrays import int32s, int64s, prefetch, uint8s, uint64s
from tamis.events import kernels as shared
from tamis.events.model import IN, Int64
from tamis.events.signature.kernels.ranks import find_ranks
from tamis.events.signature.kernels.words import (
    ALL,
    LANES,
    U,
    constant_hash,
    is_within,
    key_bit,
    within,
    within_wide,
)
from tamis.events.signature.layout import (
    ABSENT,
    ALWAYS,
    ARE_INTERFACES,
    BLOOM_SHIFT,
    CANDIDATE_COUNT,
    CELLS,
    DONE,
    END,
    ENUMERATED_KEYS_MAX,
    ENUMERATED_MAX,
    EVENT,
    EVENTS,
    FEW_KEYS,
    FOUND_COUNT,
    FULL_FOUND,
    KEYS_END,
    KEYS_START,
    LEFT,
    NO_CELL,
    OWNERS,
    RANKS,
    REPORTED,
    SIZE_MAX,
    STAMP,
    TABLE_SHIFT,
    TESTS,
    TILE,
    WORK,
)
from tamis.events.signature.program import (
    ANYTHING,
    HAS_EQUALS,
    HAS_TESTS,
    HOLE,
    IS_WIDE,
    KEYS_MAX,
    UInt64,
)
from tamis.jit import called, inlined, kernel
from tamis.words import first

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
def gather(state: Int64, start: int, end: int) -> int:
    """The keys and ranks of some events, and the cells that there may be for them.

    Returns the first event that there was no room for, or the end.
    """
    event_starts = int64s(state, EVENTS.event_starts)
    tile_keys, tile_starts = int32s(state, WORK.tile_keys), int64s(state, WORK.tile_starts)
    candidate_starts = int64s(state, WORK.candidate_starts)
    is_wide, room = uint8s(state, WORK.is_wide), len(uint64s(state, WORK.candidates))
    state[CANDIDATE_COUNT] = 0
    count = 0
    tile_starts[0] = candidate_starts[0] = 0
    for event in range(start, end):
        tile = event - start
        most = 2 * (event_starts[event + 1] - event_starts[event])
        if count + most > len(tile_keys) or state[CANDIDATE_COUNT] + ENUMERATED_MAX > room:
            return event
        before = count
        count = find_keys(state, event, before)
        is_wide[tile] = is_listed(state, before, count)
        if not is_wide[tile]:
            enumerate_subsets(state, before, count - before)
        if is_wide[tile] or state[CANDIDATE_COUNT] > candidate_starts[tile]:
            find_ranks(state, before, count)
        else:
            count = before  # nobody will ask for its values
        tile_starts[tile + 1] = count
        candidate_starts[tile + 1] = state[CANDIDATE_COUNT]
    return end


@inlined
def find_keys(state: Int64, event: int, count: int) -> int:
    """Note the keys of an event behind so many; how many there are then."""
    event_starts, names = int64s(state, EVENTS.event_starts), int32s(state, EVENTS.names)
    kinds, key_of = uint8s(state, EVENTS.kinds), int32s(state, RANKS.key_of)
    tile_keys, tile_places = int32s(state, WORK.tile_keys), int64s(state, WORK.tile_places)
    for place in range(event_starts[event], event_starts[event + 1]):
        kind, name = np.int64(kinds[place]), 4 * np.int64(names[place])
        key = np.int64(key_of[name + (kind >> 1) + (kind == 3)])
        if key >= 0:
            tile_keys[count], tile_places[count] = key, place
            count += 1
        key = np.int64(key_of[name + ANYTHING])
        if key >= 0:
            tile_keys[count], tile_places[count] = key, ~place
            count += 1
    return count


@inlined
def is_listed(state: Int64, start: int, end: int) -> bool:
    """Whether to go over the lists of an event's keys takes less than to look up their subsets."""
    tile_keys, under_starts = int32s(state, WORK.tile_keys), int64s(state, CELLS.under_starts)
    looked_up = int64s(state, WORK.subsets)[min(end - start, ENUMERATED_KEYS_MAX)]
    # To look up a subset takes a little longer than to hold a listed signature against it.
    if looked_up <= 64:
        return False
    listed = 0
    for at in range(start, end):
        listed += under_starts[tile_keys[at] + 1] - under_starts[tile_keys[at]]
    return looked_up > ENUMERATED_MAX or looked_up > 64 + listed // 2


@called
def enumerate_subsets(state: Int64, start: int, keys: int) -> None:
    """Note the hashes of the subsets of an event's keys that may have cells."""
    table, candidates = uint64s(state, CELLS.table), uint64s(state, WORK.candidates)
    few = np.int64(-1)
    if keys <= FEW_KEYS:
        few = int64s(state, WORK.few_counts)[keys]
    before = state[CANDIDATE_COUNT]
    if few > 0:
        add_all_sums(state, start, keys, few)
    elif few < 0:
        add_sums(state, start, keys)
    for candidate in range(before, state[CANDIDATE_COUNT]):
        prefetch(table, np.int64(candidates[candidate] >> U(state[TABLE_SHIFT])))


@inlined
def add_all_sums(state: Int64, start: int, keys: int, few: int) -> None:
    """The same of few keys: the sums of all subsets, and then those whose sizes there are."""
    tile_keys, key_hashes = int32s(state, WORK.tile_keys), uint64s(state, CELLS.key_hashes)
    sums, subsets = uint64s(state, WORK.sums), uint8s(state, WORK.few_subsets)
    sums[0] = U(0)
    size = 1
    for place in range(keys):
        own = key_hashes[tile_keys[start + place]]
        for subset in range(size):
            sums[size + subset] = sums[subset] + own
        size *= 2
    bloom, candidates = uint64s(state, CELLS.bloom), uint64s(state, WORK.candidates)
    shift, count = U(state[BLOOM_SHIFT]), state[CANDIDATE_COUNT]
    for place in range(few):
        count = add_candidate(bloom, shift, candidates, count, sums[subsets[place]])
    state[CANDIDATE_COUNT] = count


@called
def add_sums(state: Int64, start: int, keys: int) -> None:
    """The same of any number of keys, depth first, without the subsets that are too large."""
    tile_keys, key_hashes = int32s(state, WORK.tile_keys), uint64s(state, CELLS.key_hashes)
    sums, chosen = uint64s(state, WORK.sums), int32s(state, WORK.chosen)
    sizes, size_max = uint8s(state, WORK.sizes), state[SIZE_MAX]
    bloom, candidates = uint64s(state, CELLS.bloom), uint64s(state, WORK.candidates)
    shift, count = U(state[BLOOM_SHIFT]), state[CANDIDATE_COUNT]
    size = place = 0
    sums[0] = U(0)
    while True:
        if place < keys and size < size_max:
            found = sums[size] + key_hashes[tile_keys[start + place]]
            size += 1
            sums[size], chosen[size] = found, place
            place += 1
            if sizes[size]:
                count = add_candidate(bloom, shift, candidates, count, found)
        elif size > 0:
            place = chosen[size] + 1
            size -= 1
        else:
            break
    state[CANDIDATE_COUNT] = count


@inlined
def add_candidate(
    bloom: UInt64, shift: np.uint64, candidates: UInt64, count: int, found: np.uint64
) -> int:
    """Note a hash behind so many, if the Bloom filter has it; how many there are then."""
    word = bloom[found >> shift]
    candidates[U(count)] = found  # nobody can foretell whether: it is kept, or not
    bits = (word >> (found & U(63))) & (word >> ((found >> U(6)) & U(63)))
    return count + np.int64(bits & U(1))


@called
def look_up(state: Int64) -> None:
    """Where the cells of the candidates are, if there are any."""
    candidates, found = uint64s(state, WORK.candidates), int32s(state, WORK.found_cells)
    arena = int32s(state, CELLS.arena)
    for candidate in range(state[CANDIDATE_COUNT]):
        cell = cell_of(state, candidates[candidate])
        found[candidate] = cell
        if cell >= 0:
            prefetch(arena, cell)


@inlined
def cell_of(state: Int64, found: np.uint64) -> int:
    """Where the cell of a hash is, or NO_CELL. It may be one of other keys."""
    table = uint64s(state, CELLS.table)
    mask = U(len(table) - 1)
    slot = found >> U(state[TABLE_SHIFT])
    while table[slot] != 0:
        if (table[slot] >> U(32)) == (found & U(0xFFFFFFFF)):
            return np.int64(table[slot] & U(0xFFFFFFFF)) - 1
        slot = (slot + U(1)) & mask
    return NO_CELL


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
