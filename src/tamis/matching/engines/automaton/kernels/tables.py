"""Tables by pairs of numbers, sets of numbers that are stored once, and bits that mark numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, uint64s
from tamis.matching.engines.automaton.cache import COUNT, USED, Bytes, Words

GOLDEN = U(0x9E3779B97F4A7C15)
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
    has_number = used[COUNT] < len(uint64s(state, lists.hashes))
    return has_number and used[USED] + count <= len(members)


@inlined
def add_list(state: Int64, lists: Any, count: int, hash: np.uint64) -> int:
    """The number of one more list, whose members the caller puts at its start."""
    used = int64s(state, lists.counts)
    number = used[COUNT]
    end = used[USED] + count
    int64s(state, lists.starts)[number + 1] = end
    uint64s(state, lists.hashes)[number] = hash
    used[COUNT] = number + 1
    used[USED] = end
    table = int32s(state, lists.slots)
    mask = U(len(table) - 1)
    slot = hash & mask
    while table[slot]:
        slot = (slot + U(1)) & mask
    table[slot] = number + 1
    return number


@called
def append(state: Int64, lists: Any, source: Int32, count: int, hash: np.uint64) -> int:
    """Add a list; there must be room."""
    into, start = int32s(state, lists.members), int64s(state, lists.counts)[USED]
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


@kernel
def rehash(hashes: Words, count: int, slots: Int32) -> None:
    """Fill the empty slots of lists that have grown."""
    mask = U(len(slots) - 1)
    for number in range(count):
        slot = hashes[number] & mask
        while slots[slot]:
            slot = (slot + U(1)) & mask
        slots[slot] = number + 1
