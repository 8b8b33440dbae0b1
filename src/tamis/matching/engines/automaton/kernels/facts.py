"""Sets that are stored once, above all sets of facts, and tables by pairs of numbers.

In the cache, a set of facts is words of bits with their indices. At work, it is all words of a
program.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64, Words
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import int32s, int64s, uint64s
from tamis.core.kernel.table import GOLDEN, free_slot
from tamis.matching.engines.automaton import layout as at

MIXER = U(0xBF58476D1CE4E5B9)
UNSLICED = U((1 << 63) - 1)
"""The bits of hashes of sets; lists with slices have one more (see ``grids.py``)."""


# -- pairs -----------------------------------------------------------------------------------------


@inlined
def pair(first: int, second: int) -> np.uint64:
    """The key of two numbers."""
    return U(first) << U(32) | U(second)


@inlined
def slot_of(keys: Words, key: np.uint64) -> int:
    """Where a key is, or would be."""
    mask = U(len(keys) - 1)
    hash = key * GOLDEN
    slot = (hash ^ hash >> U(29)) & mask
    while keys[slot] != U(0) and keys[slot] != key:
        slot = (slot + U(1)) & mask
    return np.int64(slot)


@inlined
def is_crowded(state: Int64, pairs: Any) -> bool:
    """Whether no more pairs can be added."""
    return 2 * int64s(state, pairs.counts)[0] >= len(uint64s(state, pairs.keys))


@called
def put(state: Int64, pairs: Any, key: np.uint64, value: int) -> None:
    """Add a key that is not there; there must be room."""
    slot = slot_of(uint64s(state, pairs.keys), key)
    uint64s(state, pairs.keys)[slot] = key
    int64s(state, pairs.values)[slot] = value
    int64s(state, pairs.counts)[0] += 1


@kernel
def copy_pairs(keys: Words, values: Int64, into_keys: Words, into_values: Int64) -> None:
    """Put pairs into an empty table, which must be larger."""
    for i in range(len(keys)):
        if keys[i] != U(0):
            slot = slot_of(into_keys, keys[i])
            into_keys[slot] = keys[i]
            into_values[slot] = values[i]


# -- bits ------------------------------------------------------------------------------------------


@inlined
def is_set(bits: Bytes, number: int) -> bool:
    """Whether the bit of a number is set."""
    return bits[number >> 3] >> (number & 7) & 1 != 0


@inlined
def set_bit(bits: Bytes, number: int) -> None:
    """Set the bit of a number."""
    bits[number >> 3] |= np.uint8(1 << (number & 7))


@inlined
def clear_bit(bits: Bytes, number: int) -> None:
    """Take the bit of a number away."""
    bits[number >> 3] &= np.uint8(~(1 << (number & 7)) & 0xFF)


@inlined
def all_set(bits: Bytes, numbers: Int32, start: int, end: int) -> bool:
    """Whether the bits of some numbers are all set."""
    i = start
    while i < end and is_set(bits, numbers[i]):
        i += 1
    return i == end


@called
def clear(bits: Bytes, numbers: Int32, start: int, end: int) -> None:
    """Take the bits of some numbers away; no others are set."""
    for i in range(start, end):
        bits[numbers[i] >> 3] = 0


@inlined
def joined(hash: np.uint64, number: int) -> np.uint64:
    """The hash of a list with one more number."""
    hash = (hash ^ U(number)) * GOLDEN
    return hash ^ hash >> U(29)


# -- sets of numbers -------------------------------------------------------------------------------


@inlined
def mixed(number: int) -> np.uint64:
    """A hash; sums of these are hashes of sets."""
    value = (U(number) + U(1)) * GOLDEN
    value = (value ^ value >> U(32)) * MIXER
    return value ^ value >> U(29)


@inlined
def has_room(state: Int64, lists: Any, members: NDArray[Any], count: int) -> bool:
    """Whether one more list can be added, of so many members."""
    used = int64s(state, lists.counts)
    has_number = used[at.COUNT] < len(uint64s(state, lists.hashes))
    return has_number and used[at.USED] + count <= len(members)


@inlined
def add_list(state: Int64, lists: Any, count: int, hash: np.uint64) -> int:
    """The number of one more list, whose members the caller puts at its start."""
    used = int64s(state, lists.counts)
    number = used[at.COUNT]
    end = used[at.USED] + count
    int64s(state, lists.starts)[number + 1] = end
    uint64s(state, lists.hashes)[number] = hash
    used[at.COUNT] = number + 1
    used[at.USED] = end
    slots = int32s(state, lists.slots)
    slots[free_slot(slots, hash)] = number + 1
    return number


@called
def append(state: Int64, lists: Any, source: Int32, count: int, hash: np.uint64) -> int:
    """Add a list; there must be room."""
    into, start = int32s(state, lists.members), int64s(state, lists.counts)[at.USED]
    for i in range(count):
        into[start + i] = source[i]
    return add_list(state, lists, count, hash)


@called
def intern(state: Int64, lists: Any, source: Int32, count: int, bits: Bytes) -> int:
    """The number of a set, of which just the members have their bits set; -1 if there is no room.

    The bits are then cleared.
    """
    number = find_set(state, lists, source, count, bits)
    clear(bits, source, 0, count)
    return number


@called
def find_set(state: Int64, lists: Any, source: Int32, count: int, bits: Bytes) -> int:
    """What ``intern`` does, but for the bits."""
    hash = U(0)
    for i in range(count):
        hash += mixed(source[i])
    hash &= UNSLICED
    table, offsets = int32s(state, lists.slots), int64s(state, lists.starts)
    numbers, hashes = int32s(state, lists.members), uint64s(state, lists.hashes)
    mask = U(len(table) - 1)
    slot = hash & mask
    while table[slot]:
        number = np.int64(table[slot] - 1)
        start, end = offsets[number], offsets[number + 1]
        if hashes[number] == hash and end - start == count and all_set(bits, numbers, start, end):
            return number
        slot = (slot + U(1)) & mask
    if not has_room(state, lists, numbers, count):
        return -1
    return append(state, lists, source, count, hash)


@inlined
def are_equal(members: Int32, start: int, source: Int32, count: int) -> bool:
    """Whether some numbers are others."""
    i = 0
    while i < count and members[start + i] == source[i]:
        i += 1
    return i == count


@inlined
def holds_fact(facts: Words, fact: int) -> int:
    """1 if a fact is among those of all words, or 0."""
    return np.int64(facts[U(fact) >> U(6)] >> (U(fact) & U(63)) & U(1))


@inlined
def add_fact(facts: Words, fact: int) -> None:
    """Add a fact to those of all words."""
    facts[U(fact) >> U(6)] |= U(1) << (U(fact) & U(63))


@called
def add_set(state: Int64, facts: Words, number: int) -> None:
    """Add the facts of a set to those of all words."""
    offsets = int64s(state, at.CACHE.facts.starts)
    places, words = int32s(state, at.CACHE.facts.places), uint64s(state, at.CACHE.facts.words)
    for i in range(offsets[number], offsets[number + 1]):
        facts[U(places[i])] |= words[i]


@called
def remove_set(state: Int64, facts: Words, number: int) -> None:
    """Take the facts of a set from those of all words."""
    offsets = int64s(state, at.CACHE.facts.starts)
    places, words = int32s(state, at.CACHE.facts.places), uint64s(state, at.CACHE.facts.words)
    for i in range(offsets[number], offsets[number + 1]):
        facts[U(places[i])] &= ~words[i]


@inlined
def derive(state: Int64, fact: int) -> None:
    """Add a fact to those that follow."""
    add_fact(uint64s(state, at.SCRATCH.derived), fact)
    add_fact(uint64s(state, at.SCRATCH.derived_words), fact >> 6)


@inlined
def derive_word(state: Int64, place: int, word: np.uint64) -> None:
    """Add some facts, a word that is not 0, to those that follow."""
    uint64s(state, at.SCRATCH.derived)[U(place)] |= word
    add_fact(uint64s(state, at.SCRATCH.derived_words), place)


@inlined
def mixed_word(place: int, word: np.uint64) -> np.uint64:
    """A hash of one word of a set; sums of these are hashes of sets."""
    value = (word ^ (U(place) + U(1)) * MIXER) * GOLDEN
    value = (value ^ value >> U(32)) * MIXER
    return value ^ value >> U(29)


@called
def intern_derived(state: Int64) -> int:
    """The number of the set of the facts that follow, -1 if there is no room.

    It is then empty.
    """
    derived, summary = uint64s(state, at.SCRATCH.derived), uint64s(state, at.SCRATCH.derived_words)
    places, words = int32s(state, at.SCRATCH.set_places), uint64s(state, at.SCRATCH.set_words)
    count = 0
    hash = U(0)
    for i in range(len(summary)):
        which = summary[i]
        summary[i] = U(0)
        while which != U(0):
            place = 64 * i + first(which)
            which &= which - U(1)
            places[count] = place
            words[count] = derived[place]
            hash += mixed_word(place, derived[place])
            derived[place] = U(0)
            count += 1
    return known(state, count, hash)


@called
def union(state: Int64, one: int, other: int) -> int:
    """The number of the set of the facts of two, -1 if there is no room."""
    offsets = int64s(state, at.CACHE.facts.starts)
    places, words = int32s(state, at.CACHE.facts.places), uint64s(state, at.CACHE.facts.words)
    into_places = int32s(state, at.SCRATCH.set_places)
    into_words = uint64s(state, at.SCRATCH.set_words)
    i, end = offsets[one], offsets[one + 1]
    j, other_end = offsets[other], offsets[other + 1]
    count = 0
    hash = U(0)
    while i < end or j < other_end:
        mine = places[i] if i < end else np.int32(0x7FFFFFFF)
        its = places[j] if j < other_end else np.int32(0x7FFFFFFF)
        word = U(0)
        place = min(mine, its)
        if mine == place:
            word = words[i]
            i += 1
        if its == place:
            word |= words[j]
            j += 1
        into_places[count] = place
        into_words[count] = word
        hash += mixed_word(place, word)
        count += 1
    return known(state, count, hash)


@called
def known(state: Int64, count: int, hash: np.uint64) -> int:
    """The number of the set that may be new, -1 if there is no room."""
    new_places = int32s(state, at.SCRATCH.set_places)
    new_words = uint64s(state, at.SCRATCH.set_words)
    table, offsets = int32s(state, at.CACHE.facts.slots), int64s(state, at.CACHE.facts.starts)
    places, words = int32s(state, at.CACHE.facts.places), uint64s(state, at.CACHE.facts.words)
    hashes = uint64s(state, at.CACHE.facts.hashes)
    mask = U(len(table) - 1)
    slot = hash & mask
    while table[slot]:
        number = np.int64(table[slot] - 1)
        start = offsets[number]
        if hashes[number] == hash and offsets[number + 1] - start == count:
            i = 0
            while (
                i < count
                and places[start + i] == new_places[i]
                and words[start + i] == new_words[i]
            ):
                i += 1
            if i == count:
                return number
        slot = (slot + U(1)) & mask
    if not has_room(state, at.CACHE.facts, words, count):
        return -1
    start = int64s(state, at.CACHE.facts.counts)[at.USED]
    for i in range(count):
        places[start + i] = new_places[i]
        words[start + i] = new_words[i]
    return add_list(state, at.CACHE.facts, count, hash)


@kernel
def known_facts(state: Int64, places: Int32, words: Words) -> int:
    """The number of a set of facts of another cache, or -1 if there is no room."""
    for i in range(len(places)):
        derive_word(state, places[i], words[i])
    return intern_derived(state)
