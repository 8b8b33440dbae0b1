"""Ranks of values among the constants of keys, and the cells that may exist for an event."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.bits import big_endian, if_less
from tamis.core.kernel.record import int32s, int64s, prefetch, uint8s, uint64s
from tamis.core.kernel.table import mixed, prober, slot_finder
from tamis.events import kernels as shared
from tamis.events.engines.signature import program as at
from tamis.events.engines.signature.program import UInt64
from tamis.events.model import FLOAT, INTEGER, STRING

SIZE_MASK = (1 << at.SIZE_BITS) - 1
_FNV_PRIME = U(0x100000001B3)

order_of_numbers = inlined(shared.order_of_numbers)
order_of_strings = called(shared.order_of_strings)


@inlined
def value_hash(key: int, kind: int, value: int) -> np.uint64:
    """The hash of a number, or of a constant's kind and value, in a key."""
    return mixed(U(value) + mixed((U(key) << U(8)) | U(kind)))


@inlined
def string_hash(string: Bytes, start: int, end: int) -> np.uint64:
    """The hash of a string (FNV-1a), a step a byte less than ``hash_bytes``: events have many."""
    hash = U(end - start)
    for place in range(start, end):
        hash = (hash ^ U(string[place])) * _FNV_PRIME
    return mixed(hash)


@inlined
def is_constant(known: tuple[Int32, Bytes, Int64, Int32], number: int, constant: int) -> bool:
    """Whether a constant equals a distinct one."""
    keys, kinds, values, firsts = known
    first = firsts[number]
    is_same = keys[first] == keys[constant] and kinds[first] == kinds[constant]
    return is_same and values[first] == values[constant]


find_constant = slot_finder(is_constant)


@kernel
def intern_constants(
    keys: Int32, kinds: Bytes, values: Int64, slots: Int32, firsts: Int32, numbers: Int32
) -> int:
    """Number the distinct constants in the order of their first occurrence; how many there are.

    ``firsts`` gets the first occurrence of each distinct one, and ``numbers`` the number of each.
    """
    count = 0
    for constant in range(len(keys)):
        hash = value_hash(keys[constant], kinds[constant], values[constant])
        slot = find_constant(slots, hash, (keys, kinds, values, firsts), constant)
        if slots[slot] == 0:
            firsts[count] = constant
            count += 1
            slots[slot] = count
        numbers[constant] = slots[slot] - 1
    return count


@inlined
def _is_free(table: tuple[Int32, int], slot: np.uint64, _searched: int) -> bool:
    tables, start = table
    return tables[start + np.int64(slot)] < 0


_find_free = prober(_is_free)


@kernel
def fill_tables(ranks: at.Ranks, are_strings: Bytes) -> None:
    """Fill the tables of dense and hashed keys, which are -1 at first."""
    for key in range(len(ranks.modes)):
        start, end = ranks.starts[key], ranks.starts[key + 1]
        table, size = ranks.table_starts[key], ranks.table_starts[key + 1] - ranks.table_starts[key]
        if ranks.modes[key] == at.DENSE:
            constant = start
            for index in range(size):
                value = ranks.table_bases[key] + index
                while constant < end and ranks.values[constant] < value:
                    constant += 1
                is_equal = constant < end and ranks.values[constant] == value
                ranks.tables[table + index] = 2 * (constant - start) + is_equal
        elif ranks.modes[key] == at.HASHED:
            for constant in range(start, end):
                value = ranks.values[constant]
                if are_strings[key]:
                    first, last = ranks.string_starts[value], ranks.string_starts[value + 1]
                    hash = string_hash(ranks.string_bytes, first, last)
                else:
                    hash = value_hash(0, ranks.kinds[constant], value)
                slot = _find_free(size, hash, (ranks.tables, table), 0)
                ranks.tables[table + np.int64(slot)] = constant - start


# -- ranks of values ---------------------------------------------------------------------------


@inlined
def find_ranks(state: Int64, start: int, end: int) -> None:
    """Find the ranks of the values in some keys of a tile.

    Strings that have to be compared as a whole come last: until then the processor can go on with
    the next search while one waits for memory.
    """
    kinds, values = uint8s(state, at.EVENTS.kinds), int64s(state, at.EVENTS.values)
    strings, modes = int64s(state, at.EVENTS.string_starts), uint8s(state, at.RANKS.modes)
    tile_keys, attributes = int32s(state, at.WORK.tile_keys), int64s(state, at.WORK.tile_attributes)
    ranks = int32s(state, at.WORK.tile_ranks)
    for i in range(start, end):
        key, attribute = np.int64(tile_keys[i]), attributes[i]
        rank = 0
        if attribute >= 0:  # or the key accepts anything
            mode, kind, value = modes[key], np.int64(kinds[attribute]), values[attribute]
            if kind != STRING:
                rank = rank_of(state, key, kind, value)
            elif mode == at.SEARCHED:
                rank = searched_string(state, key, strings[value], strings[value + 1])
            elif mode == at.HASHED:
                rank = hashed_string(state, key, strings[value], strings[value + 1])
        ranks[i] = rank
    for i in range(start, end):
        if ranks[i] < 0:
            value = values[attributes[i]]
            key, rank = np.int64(tile_keys[i]), ~np.int64(ranks[i])
            ranks[i] = checked_rank(state, key, strings[value], strings[value + 1], rank)


@inlined
def rank_of(state: Int64, key: int, kind: int, value: int) -> int:
    """The rank of a number or a boolean in a key that accepts its kind."""
    mode = uint8s(state, at.RANKS.modes)[key]
    if mode == at.DENSE and kind == INTEGER:
        starts = int64s(state, at.RANKS.table_starts)
        start, size = starts[key], starts[key + 1] - starts[key]
        base = int64s(state, at.RANKS.table_bases)[key]
        if value < base:
            return 0
        if value > base + (size - 1):  # base + size may be beyond 64 bits
            counts = int64s(state, at.RANKS.starts)
            return 2 * (counts[key + 1] - counts[key])
        return int32s(state, at.RANKS.tables)[start + (value - base)]
    if mode in (at.DENSE, at.SEARCHED):
        return searched_number(state, key, kind, value)
    if mode == at.HASHED:
        return hashed_number(state, key, kind, value)
    return 2 * value + 1  # a boolean


@called
def searched_number(state: Int64, key: int, kind: int, value: int) -> int:
    """The rank of a number, by binary search."""
    starts = int64s(state, at.RANKS.starts)
    kinds, values = uint8s(state, at.RANKS.kinds), int64s(state, at.RANKS.values)
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


@inlined
def hashed_rank(tables: Int32, index: int) -> int:
    """The rank of the constant in a slot of a hashed key, 0 where there is none."""
    return 2 * tables[index] + 1 if tables[index] >= 0 else 0


@inlined
def _is_number(table: Any, slot: np.uint64, searched: tuple[int, int]) -> bool:
    (tables, start, first, state), (kind, value) = table, searched
    constant = np.int64(tables[start + np.int64(slot)])
    return constant < 0 or (
        int64s(state, at.RANKS.values)[first + constant] == value
        and uint8s(state, at.RANKS.kinds)[first + constant] == kind
    )


@inlined
def _is_string(table: Any, slot: np.uint64, searched: tuple[Bytes, int, int]) -> bool:
    (tables, start, first, state), (given, begin, end) = table, searched
    constant = np.int64(tables[start + np.int64(slot)])
    if constant < 0:
        return True
    string = int64s(state, at.RANKS.values)[first + constant]
    strings, bounds = uint8s(state, at.RANKS.string_bytes), int64s(state, at.RANKS.string_starts)
    return order_of_strings(given, begin, end, strings, bounds[string], bounds[string + 1]) == 0


_find_number, _find_string = prober(_is_number), prober(_is_string)


@called
def hashed_number(state: Int64, key: int, kind: int, value: int) -> int:
    """The rank of a number that is a constant, or 0."""
    if kind == FLOAT and np.isnan(np.int64(value).view(np.float64)):
        return 0  # as others that are no constants: such a key is asked for equality alone
    tables, table_starts = int32s(state, at.RANKS.tables), int64s(state, at.RANKS.table_starts)
    table, size = table_starts[key], table_starts[key + 1] - table_starts[key]
    known = (tables, table, int64s(state, at.RANKS.starts)[key], state)
    slot = _find_number(size, value_hash(0, kind, value), known, (kind, value))
    return hashed_rank(tables, table + np.int64(slot))


@called
def hashed_string(state: Int64, key: int, start: int, end: int) -> int:
    """The rank of a string that is a constant, or 0."""
    tables, table_starts = int32s(state, at.RANKS.tables), int64s(state, at.RANKS.table_starts)
    table, size = table_starts[key], table_starts[key + 1] - table_starts[key]
    known = (tables, table, int64s(state, at.RANKS.starts)[key], state)
    given = uint8s(state, at.EVENTS.string_bytes)
    slot = _find_string(size, string_hash(given, start, end), known, (given, start, end))
    return hashed_rank(tables, table + np.int64(slot))


@inlined
def searched_string(state: Int64, key: int, start: int, end: int) -> int:
    """The rank of a string, or ``~rank`` if it has more bytes to compare.

    This binary search of the string's head has no branches: the processor would mispredict half of
    them.
    """
    starts, heads = int64s(state, at.RANKS.starts), uint64s(state, at.RANKS.string_heads)
    first, end_of_key = starts[key], starts[key + 1]
    skip = np.int64(int32s(state, at.RANKS.string_skips)[key])
    if first == end_of_key:
        return 0
    if skip > 0:
        order = order_of_beginnings(state, first, start, end, skip)
        if order != 0:
            return 0 if order < 0 else 2 * (end_of_key - first)
    head = head_of(uint8s(state, at.EVENTS.string_bytes), start + skip, end)
    low, size = first, end_of_key - first
    while size > 1:
        half = size >> 1
        low = if_less(head, heads[U(low + half)], low, low + half)
        size -= half
    found = heads[U(low)]
    rank = 2 * (low - first) + (found == head) + 2 * (found < head)
    return rank ^ -np.int64((found == head) & (head & U(SIZE_MASK) > U(at.HEAD_BYTES)))


@called
def order_of_beginnings(state: Int64, constant: int, start: int, end: int, size: int) -> int:
    """The order of the first bytes of a string and of a constant, which has so many."""
    other = int64s(state, at.RANKS.string_starts)[int64s(state, at.RANKS.values)[constant]]
    given, strings = uint8s(state, at.EVENTS.string_bytes), uint8s(state, at.RANKS.string_bytes)
    return order_of_strings(given, start, min(end, start + size), strings, other, other + size)


@called
def checked_rank(state: Int64, key: int, start: int, end: int, rank: int) -> int:
    """The rank of a whole string; the given rank is that of the last constant with its head."""
    values, heads = int64s(state, at.RANKS.values), uint64s(state, at.RANKS.string_heads)
    strings, given = uint8s(state, at.RANKS.string_bytes), uint8s(state, at.EVENTS.string_bytes)
    bounds, first = int64s(state, at.RANKS.string_starts), int64s(state, at.RANKS.starts)[key]
    middle = last = first + (rank >> 1)
    string = values[last]
    if are_equal(given, start, end, strings, bounds[string], bounds[string + 1]):
        return rank
    low, high = first, last + 1
    while low < high:
        order = 1
        if heads[middle] == heads[last]:
            string = values[middle]
            order = order_of_strings(given, start, end, strings, bounds[string], bounds[string + 1])
        if order == 0:
            return 2 * (middle - first) + 1
        if order < 0:
            high = middle
        else:
            low = middle + 1
        middle = (low + high) >> 1
    return 2 * (low - first)


@inlined
def are_equal(
    string: Bytes, start: int, end: int, other: Bytes, other_start: int, other_end: int
) -> bool:
    """Whether strings are the same, some bytes at a time."""
    if end - start != other_end - other_start:
        return False
    while start < end:
        if head_of(string, start, end) != head_of(other, other_start, other_end):
            return False
        start += at.HEAD_BYTES
        other_start += at.HEAD_BYTES
    return True


@inlined
def head_of(string: Bytes, start: int, end: int) -> np.uint64:
    """The first HEAD_BYTES bytes of a string as a number; in its last SIZE_BITS their count.

    The count is HEAD_BYTES + 1 if the string has more. Heads are ordered as the strings are. Equal
    heads are of equal strings, unless the strings have more bytes.
    """
    size = end - start
    head = U(0)
    if start + 8 <= len(string):
        head = big_endian(string, start) >> U(8)
    else:  # at the end of all strings
        for i in range(min(size, at.HEAD_BYTES)):
            head |= U(string[start + i]) << U(8 * (at.HEAD_BYTES - 1 - i))
    others = U(8 * max(at.HEAD_BYTES - size, 0))
    return ((head >> others) << (others + U(at.SIZE_BITS))) | U(min(size, at.HEAD_BYTES + 1))


# -- candidates --------------------------------------------------------------------------------


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
        most = 2 * (event_starts[event + 1] - event_starts[event])
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
