"""The keys of events, and the cells that may exist for them."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.ahocorasick import next_output
from tamis.core.kernel.record import int32s, int64s, prefetch, uint8s, uint64s
from tamis.core.kernel.table import prober
from tamis.events.engines.signature import program as at
from tamis.events.engines.signature.kernels.ranks import find_ranks
from tamis.events.engines.signature.program import UInt64
from tamis.events.model import STRING


@called
def gather(state: Int64, start: int, end: int) -> int:
    """The keys and ranks of some events, and the cells that may exist for them.

    Returns the first event for which there was no room, or the end.
    """
    event_starts = int64s(state, at.EVENTS.event_starts)
    tile_keys, tile_starts = int32s(state, at.WORK.tile_keys), int64s(state, at.WORK.tile_starts)
    candidate_starts = int64s(state, at.WORK.candidate_starts)
    is_wide, room = uint8s(state, at.WORK.is_wide), len(uint64s(state, at.WORK.candidates))
    state[at.CANDIDATE_COUNT] = 0
    count = 0
    tile_starts[0] = candidate_starts[0] = 0
    for event in range(start, end):
        tile = event - start
        most = 2 * (event_starts[event + 1] - event_starts[event]) + state[at.TEXT_KEYS]
        if count + most > len(tile_keys) or state[at.CANDIDATE_COUNT] + at.ENUMERATED_MAX > room:
            return event
        before = count
        count = find_keys(state, event, before)
        is_wide[tile] = is_listed(state, before, count)
        if not is_wide[tile]:
            enumerate_subsets(state, before, count - before)
        if is_wide[tile] or state[at.CANDIDATE_COUNT] > candidate_starts[tile]:
            find_ranks(state, before, count)
        else:
            count = before  # nobody will ask for its values
        tile_starts[tile + 1] = count
        candidate_starts[tile + 1] = state[at.CANDIDATE_COUNT]
    return end


@inlined
def find_keys(state: Int64, event: int, count: int) -> int:
    """Append the keys of an event to so many; how many there are then."""
    event_starts, names = int64s(state, at.EVENTS.event_starts), int32s(state, at.EVENTS.names)
    kinds, key_of = uint8s(state, at.EVENTS.kinds), int32s(state, at.RANKS.key_of)
    tile_keys, attributes = int32s(state, at.WORK.tile_keys), int64s(state, at.WORK.tile_attributes)
    for attribute in range(event_starts[event], event_starts[event + 1]):
        kind, name = np.int64(kinds[attribute]), 4 * np.int64(names[attribute])
        key = np.int64(key_of[name + (kind >> 1) + (kind == 3)])
        if key >= 0:
            tile_keys[count], attributes[count] = key, attribute
            count += 1
        key = np.int64(key_of[name + at.ANYTHING])
        if key >= 0:
            tile_keys[count], attributes[count] = key, ~attribute
            count += 1
        if kind == STRING and state[at.TEXT_KEYS]:
            root = np.int64(int32s(state, at.TEXTS.roots)[name >> 2])
            if root:
                count = find_texts(state, root, attribute, count)
    return count


@called
def find_texts(state: Int64, root: int, attribute: int, count: int) -> int:
    """Append the keys of what a string contains and ends with; how many there are then."""
    value = int64s(state, at.EVENTS.values)[attribute]
    strings = int64s(state, at.EVENTS.string_starts)
    start, end = strings[value], strings[value + 1]
    contained, first = int32s(state, at.TEXTS.contained), int32s(state, at.TEXTS.first_contained)
    following, found_in = int32s(state, at.TEXTS.next_contained), int64s(state, at.WORK.found_in)
    tile_keys, attributes = int32s(state, at.WORK.tile_keys), int64s(state, at.WORK.tile_attributes)
    before = len(uint64s(state, at.CELLS.key_hashes)) - state[at.TEXT_KEYS]
    search, text = at.TEXTS.letters, at.EVENTS.string_bytes
    state[at.SEARCHES] += 1
    node, place = root, start
    while place < end:
        node, place = next_output(state, search, text, root, start, place, end, node)
        part = np.int64(first[node])
        # What a part that was found ends with was found with it.
        while part and found_in[contained[part] - before] != state[at.SEARCHES]:
            key = np.int64(contained[part])
            found_in[key - before] = state[at.SEARCHES]
            tile_keys[count], attributes[count] = key, ~attribute
            count += 1
            part = np.int64(following[part])
    ending, following = int32s(state, at.TEXTS.ending), int32s(state, at.TEXTS.next_ending)
    part = np.int64(int32s(state, at.TEXTS.first_ending)[node])
    while part:
        tile_keys[count], attributes[count] = ending[part], ~attribute
        count += 1
        part = np.int64(following[part])
    return count


@inlined
def is_listed(state: Int64, start: int, end: int) -> bool:
    """Whether going over the lists of an event's keys takes less than looking up their subsets."""
    tile_keys, list_starts = int32s(state, at.WORK.tile_keys), int64s(state, at.CELLS.list_starts)
    looked_up = int64s(state, at.WORK.subsets)[min(end - start, at.ENUMERATED_KEYS_MAX)]
    # Looking up a subset takes a little longer than comparing a listed signature.
    if looked_up <= 64:
        return False
    listed = 0
    for i in range(start, end):
        listed += list_starts[tile_keys[i] + 1] - list_starts[tile_keys[i]]
    return looked_up > at.ENUMERATED_MAX or looked_up > 64 + listed // 2


@called
def enumerate_subsets(state: Int64, start: int, keys: int) -> None:
    """Append the hashes of the subsets of an event's keys that may have cells."""
    table, candidates = uint64s(state, at.CELLS.table), uint64s(state, at.WORK.candidates)
    few = np.int64(-1)
    if keys <= at.FEW_KEYS:
        few = int64s(state, at.WORK.few_counts)[keys]
    before = state[at.CANDIDATE_COUNT]
    if few > 0:
        add_all_sums(state, start, keys, few)
    elif few < 0:
        add_sums(state, start, keys)
    for candidate in range(before, state[at.CANDIDATE_COUNT]):
        prefetch(table, np.int64(candidates[candidate] >> U(state[at.TABLE_SHIFT])))


@inlined
def add_all_sums(state: Int64, start: int, keys: int, few: int) -> None:
    """The same for few keys: the sums of all subsets, then those that have a signature's size."""
    tile_keys, key_hashes = int32s(state, at.WORK.tile_keys), uint64s(state, at.CELLS.key_hashes)
    sums, subsets = uint64s(state, at.WORK.sums), uint8s(state, at.WORK.few_subsets)
    sums[0] = U(0)
    size = 1
    for place in range(keys):
        own = key_hashes[tile_keys[start + place]]
        for subset in range(size):
            sums[size + subset] = sums[subset] + own
        size *= 2
    bloom, candidates = uint64s(state, at.CELLS.bloom), uint64s(state, at.WORK.candidates)
    shift, count = U(state[at.BLOOM_SHIFT]), state[at.CANDIDATE_COUNT]
    for place in range(few):
        count = add_candidate(bloom, shift, candidates, count, sums[subsets[place]])
    state[at.CANDIDATE_COUNT] = count


@called
def add_sums(state: Int64, start: int, keys: int) -> None:
    """The same for any number of keys, depth first, without the subsets that are too large."""
    tile_keys, key_hashes = int32s(state, at.WORK.tile_keys), uint64s(state, at.CELLS.key_hashes)
    sums, chosen = uint64s(state, at.WORK.sums), int32s(state, at.WORK.chosen)
    sizes, size_max = uint8s(state, at.WORK.sizes), state[at.SIZE_MAX]
    bloom, candidates = uint64s(state, at.CELLS.bloom), uint64s(state, at.WORK.candidates)
    shift, count = U(state[at.BLOOM_SHIFT]), state[at.CANDIDATE_COUNT]
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
    state[at.CANDIDATE_COUNT] = count


@inlined
def add_candidate(
    bloom: UInt64, shift: np.uint64, candidates: UInt64, count: int, found: np.uint64
) -> int:
    """Append a hash to so many, if the Bloom filter has it; how many there are then."""
    word = bloom[found >> shift]
    candidates[U(count)] = found  # without a branch, which would be unpredictable
    bits = (word >> (found & U(63))) & (word >> ((found >> U(6)) & U(63)))
    return count + np.int64(bits & U(1))


@called
def look_up(state: Int64) -> None:
    """Find the cells of the candidates."""
    candidates, found = uint64s(state, at.WORK.candidates), int32s(state, at.WORK.found_cells)
    arena = int32s(state, at.CELLS.arena)
    for candidate in range(state[at.CANDIDATE_COUNT]):
        cell = cell_of(state, candidates[candidate])
        found[candidate] = cell
        if cell >= 0:
            prefetch(arena, cell)


@inlined
def _is_entry(table: UInt64, slot: np.uint64, tag: np.uint64) -> bool:
    return table[slot] == 0 or table[slot] >> U(32) == tag


find_entry = prober(_is_entry)


@inlined
def cell_of(state: Int64, found: np.uint64) -> int:
    """The offset of the cell of a hash, or NO_CELL. The cell may have other keys."""
    table = uint64s(state, at.CELLS.table)
    slot = find_entry(len(table), found >> U(state[at.TABLE_SHIFT]), table, found & U(0xFFFFFFFF))
    return np.int64(table[slot] & U(0xFFFFFFFF)) - 1  # NO_CELL in an empty slot
