"""What is stored once in a cache: sets of facts, answers, and tables by pairs of numbers.

In the cache, a set of facts is words of bits with their indices. At work, it is all words of a
program. An answer is a set of queries, which a document has once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64, Words
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.core.kernel.table import GOLDEN, free_slot, prober, slot_finder
from tamis.matching.engines.automaton import layout as at

MIXER = U(0xBF58476D1CE4E5B9)
UNSLICED = U((1 << 63) - 1)
"""The bits of hashes of sets; lists with slices have one more (see ``intern_sliced``)."""


@inlined
def pair(first: int, second: int) -> np.uint64:
    """The key of two numbers."""
    return U(first) << U(32) | U(second)


@inlined
def _is_key(keys: Words, slot: np.uint64, key: np.uint64) -> bool:
    return keys[slot] == U(0) or keys[slot] == key


_find_key = prober(_is_key)


@inlined
def slot_of(keys: Words, key: np.uint64) -> int:
    """Where a key is, or would be."""
    hash = key * GOLDEN
    return np.int64(_find_key(len(keys), hash ^ hash >> U(29), keys, key))


@inlined
def is_crowded(state: Int64, pairs: Any) -> bool:
    """Whether a table of pairs is half full, so that none can be added."""
    return 2 * int64s(state, pairs.counts)[0] >= len(uint64s(state, pairs.keys))


@called
def put(state: Int64, pairs: Any, key: np.uint64, value: int) -> None:
    """Add a key that is not there; there must be room."""
    slot = slot_of(uint64s(state, pairs.keys), key)
    uint64s(state, pairs.keys)[slot], int64s(state, pairs.values)[slot] = key, value
    int64s(state, pairs.counts)[0] += 1


@kernel
def copy_pairs(keys: Words, values: Int64, into_keys: Words, into_values: Int64) -> None:
    """Put pairs into an empty table, which must be larger."""
    for i in range(len(keys)):
        if keys[i] != U(0):
            slot = slot_of(into_keys, keys[i])
            into_keys[slot], into_values[slot] = keys[i], values[i]


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
    used[at.COUNT] += 1
    used[at.USED] += count
    int64s(state, lists.starts)[number + 1] = used[at.USED]
    uint64s(state, lists.hashes)[number] = hash
    slots = int32s(state, lists.slots)
    slots[free_slot(slots, hash)] = number + 1
    return number


@called
def append(state: Int64, lists: Any, source: Int32, count: int, hash: np.uint64) -> int:
    """The number of one more list, -1 if there is no room."""
    into, start = int32s(state, lists.members), int64s(state, lists.counts)[at.USED]
    if not has_room(state, lists, into, count):
        return -1
    for i in range(count):
        into[start + i] = source[i]
    return add_list(state, lists, count, hash)


@inlined
def _is_set(known: Any, number: int, searched: tuple[np.uint64, int]) -> bool:
    (hashes, starts, members, bits), (hash, count) = known, searched
    start, end = starts[number], starts[number + 1]
    return hashes[number] == hash and end - start == count and all_set(bits, members, start, end)


_find_set = slot_finder(_is_set)


@called
def intern_answer(state: Int64, source: Int32, count: int) -> int:
    """The number of a set of queries, -1 if there is no room.

    Just these queries have their bits set, which are then cleared.
    """
    answers, bits = at.CACHE.answers, uint8s(state, at.SCRATCH.answer_bits)
    hash = U(0)
    for i in range(count):
        hash += mixed(source[i])
    hash &= UNSLICED
    slots = int32s(state, answers.slots)
    known = (uint64s(state, answers.hashes), *lists(state, answers), bits)
    found = np.int64(slots[_find_set(slots, hash, known, (hash, count))]) - 1
    if found < 0:
        found = append(state, answers, source, count, hash)
    clear(bits, source, 0, count)
    return found


@kernel
def are_sets(starts: Int64, members: Int32, stamps: Int32) -> bool:
    """Whether no list has a number twice, up to the first below 0; ``stamps`` are as many zeros."""
    for number in range(len(starts) - 1):
        i, end = starts[number], starts[number + 1]
        while i < end and members[i] >= 0:
            if stamps[members[i]] == number + 1:
                return False
            stamps[members[i]] = number + 1
            i += 1
    return True


@inlined
def are_equal(items: NDArray[Any], start: int, others: NDArray[Any], count: int) -> bool:
    """Whether some items are others."""
    i = 0
    while i < count and items[start + i] == others[i]:
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


@inlined
def fact_sets(state: Int64) -> tuple[Int64, Int32, Words]:
    """Of the sets of facts in the cache: where each begins, and the places and words of all."""
    facts = at.CACHE.facts
    return int64s(state, facts.starts), int32s(state, facts.places), uint64s(state, facts.words)


@inlined
def lists(state: Int64, kind: Any) -> tuple[Int64, Int32]:
    """Where each list of a kind in the cache begins, and the members of all."""
    return int64s(state, kind.starts), int32s(state, kind.members)


@called
def add_set(state: Int64, facts: Words, number: int) -> None:
    """Add the facts of a set to those of all words."""
    offsets, places, words = fact_sets(state)
    for i in range(offsets[number], offsets[number + 1]):
        facts[U(places[i])] |= words[i]


@called
def remove_set(state: Int64, facts: Words, number: int) -> None:
    """Take the facts of a set from those of all words."""
    offsets, places, words = fact_sets(state)
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
    """The number of the set of the facts that follow, -1 if there is no room. None follow then."""
    derived, summary = uint64s(state, at.SCRATCH.derived), uint64s(state, at.SCRATCH.derived_words)
    places, words = int32s(state, at.SCRATCH.set_places), uint64s(state, at.SCRATCH.set_words)
    open = uint64s(state, at.SCRATCH.open_facts)
    count, hash = 0, U(0)
    for i in range(len(summary)):
        which = summary[i]
        summary[i] = U(0)
        while which != U(0):
            place = 64 * i + first(which)
            which &= which - U(1)
            word = derived[place] & open[place]
            derived[place] = U(0)
            if word != U(0):
                places[count], words[count] = place, word
                hash += mixed_word(place, word)
                count += 1
    return intern_set(state, count, hash)


@called
def union(state: Int64, one: int, other: int) -> int:
    """The number of the set of the facts of two, -1 if there is no room."""
    offsets, places, words = fact_sets(state)
    into_places = int32s(state, at.SCRATCH.set_places)
    into_words = uint64s(state, at.SCRATCH.set_words)
    i, end = offsets[one], offsets[one + 1]
    j, other_end = offsets[other], offsets[other + 1]
    count, hash = 0, U(0)
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
        into_places[count], into_words[count] = place, word
        hash += mixed_word(place, word)
        count += 1
    return intern_set(state, count, hash)


@inlined
def _is_facts(known: Any, number: int, searched: Any) -> bool:
    (hashes, starts, places, words), (hash, count, new_places, new_words) = known, searched
    start = starts[number]
    return (
        hashes[number] == hash
        and starts[number + 1] - start == count
        and are_equal(places, start, new_places, count)
        and are_equal(words, start, new_words, count)
    )


_find_facts = slot_finder(_is_facts)


@called
def intern_set(state: Int64, count: int, hash: np.uint64) -> int:
    """The number of the set that may be new, -1 if there is no room."""
    new_places = int32s(state, at.SCRATCH.set_places)
    new_words = uint64s(state, at.SCRATCH.set_words)
    slots, (offsets, places, words) = int32s(state, at.CACHE.facts.slots), fact_sets(state)
    known = (uint64s(state, at.CACHE.facts.hashes), offsets, places, words)
    found = slots[_find_facts(slots, hash, known, (hash, count, new_places, new_words))]
    if found != 0:
        return np.int64(found) - 1
    if not has_room(state, at.CACHE.facts, words, count):
        return -1
    start = int64s(state, at.CACHE.facts.counts)[at.USED]
    for i in range(count):
        places[start + i], words[start + i] = new_places[i], new_words[i]
    return add_list(state, at.CACHE.facts, count, hash)


@kernel
def known_facts(state: Int64, places: Int32, words: Words) -> int:
    """The number of a set of facts of another cache, or -1 if there is no room."""
    for i in range(len(places)):
        derive_word(state, places[i], words[i])
    return intern_derived(state)
