"""Which cells there may be for the events of a tile, and where these are."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.record import int32s, int64s, prefetch, uint8s, uint64s
from tamis.events.engines.signature.kernels.ranks import find_ranks
from tamis.events.engines.signature.layout import (
    BLOOM_SHIFT,
    CANDIDATE_COUNT,
    CELLS,
    ENUMERATED_KEYS_MAX,
    ENUMERATED_MAX,
    EVENTS,
    FEW_KEYS,
    NO_CELL,
    RANKS,
    SIZE_MAX,
    TABLE_SHIFT,
    WORK,
)
from tamis.events.engines.signature.program import ANYTHING, UInt64


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
