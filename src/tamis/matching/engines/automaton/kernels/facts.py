"""Sets of facts: in the cache, words of bits with their places; at work, all words of a program."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import int32s, int64s, uint64s
from tamis.matching.engines.automaton.cache import USED, Words
from tamis.matching.engines.automaton.kernels.tables import GOLDEN, MIXER, add_list, has_room
from tamis.matching.engines.automaton.layout import CACHE, SCRATCH


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
    offsets = int64s(state, CACHE.facts.starts)
    places, words = int32s(state, CACHE.facts.places), uint64s(state, CACHE.facts.words)
    for i in range(offsets[number], offsets[number + 1]):
        facts[U(places[i])] |= words[i]


@called
def remove_set(state: Int64, facts: Words, number: int) -> None:
    """Take the facts of a set from those of all words."""
    offsets = int64s(state, CACHE.facts.starts)
    places, words = int32s(state, CACHE.facts.places), uint64s(state, CACHE.facts.words)
    for i in range(offsets[number], offsets[number + 1]):
        facts[U(places[i])] &= ~words[i]


@inlined
def tell(state: Int64, fact: int) -> None:
    """Add a fact to those that follow."""
    add_fact(uint64s(state, SCRATCH.told), fact)
    add_fact(uint64s(state, SCRATCH.told_words), fact >> 6)


@inlined
def tell_word(state: Int64, place: int, word: np.uint64) -> None:
    """Add some facts, a word that is not 0, to those that follow."""
    uint64s(state, SCRATCH.told)[U(place)] |= word
    add_fact(uint64s(state, SCRATCH.told_words), place)


@inlined
def mixed_word(place: int, word: np.uint64) -> np.uint64:
    """A hash of one word of a set; sums of these are hashes of sets."""
    value = (word ^ (U(place) + U(1)) * MIXER) * GOLDEN
    value = (value ^ value >> U(32)) * MIXER
    return value ^ value >> U(29)


@called
def known_told(state: Int64) -> int:
    """The number of the set of the facts that follow, -1 if there is no room.

    It is then empty.
    """
    told, summary = uint64s(state, SCRATCH.told), uint64s(state, SCRATCH.told_words)
    places, words = int32s(state, SCRATCH.set_places), uint64s(state, SCRATCH.set_words)
    count = 0
    hash = U(0)
    for i in range(len(summary)):
        which = summary[i]
        summary[i] = U(0)
        while which != U(0):
            place = 64 * i + first(which)
            which &= which - U(1)
            places[count] = place
            words[count] = told[place]
            hash += mixed_word(place, told[place])
            told[place] = U(0)
            count += 1
    return known(state, count, hash)


@called
def union(state: Int64, one: int, other: int) -> int:
    """The number of the set of the facts of two, -1 if there is no room."""
    offsets = int64s(state, CACHE.facts.starts)
    places, words = int32s(state, CACHE.facts.places), uint64s(state, CACHE.facts.words)
    into_places, into_words = int32s(state, SCRATCH.set_places), uint64s(state, SCRATCH.set_words)
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
    new_places, new_words = int32s(state, SCRATCH.set_places), uint64s(state, SCRATCH.set_words)
    table, offsets = int32s(state, CACHE.facts.slots), int64s(state, CACHE.facts.starts)
    places, words = int32s(state, CACHE.facts.places), uint64s(state, CACHE.facts.words)
    hashes = uint64s(state, CACHE.facts.hashes)
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
    if not has_room(state, CACHE.facts, words, count):
        return -1
    start = int64s(state, CACHE.facts.counts)[USED]
    for i in range(count):
        places[start + i] = new_places[i]
        words[start + i] = new_words[i]
    return add_list(state, CACHE.facts, count, hash)


@kernel
def known_facts(state: Int64, places: Int32, words: Words) -> int:
    """The number of a set of facts of another cache, or -1 if there is no room."""
    for i in range(len(places)):
        tell_word(state, places[i], words[i])
    return known_told(state)
