"""Byte strings that are stored once: names, literals and the words of queries."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.language.plain.layout import MULTIPLIER, Bytes, Int32, Int64, Words


@inlined
def end_of(state: Int64, table: Any) -> int:
    """Where the next string is to be put."""
    return int64s(state, table.starts)[int64s(state, table.counts)[0]]


@called
def number_of(state: Int64, table: Any, length: int) -> int:
    """The number of the string that was put behind all others: of its equal, or else a new one."""
    data, starts = uint8s(state, table.data), int64s(state, table.starts)
    hashes, slots = uint64s(state, table.hashes), int32s(state, table.slots)
    count = int64s(state, table.counts)[0]
    start = starts[count]
    hash = hash_of(U(state[MULTIPLIER]), data, start, length)
    mask = U(len(slots) - 1)
    slot = hash & mask
    while slots[slot]:
        other = np.int64(slots[slot] - 1)
        there = starts[other]
        if hashes[other] == hash and starts[other + 1] - there == length:
            same = 0
            while same < length and data[there + same] == data[start + same]:
                same += 1
            if same == length:
                return other
        slot = (slot + U(1)) & mask
    slots[slot] = count + 1
    hashes[count] = hash
    starts[count + 1] = start + length
    int64s(state, table.counts)[0] = count + 1
    return count


@inlined
def hash_of(multiplier: np.uint64, data: Bytes, start: int, length: int) -> np.uint64:
    """A hash of bytes; the multiplier is odd."""
    mixed = U(length)
    for i in range(start, start + length):
        mixed = (mixed ^ U(data[i])) * multiplier
        mixed ^= mixed >> U(32)
    return mixed


@inlined
def has_room(state: Int64, table: Any, length: int, strings: int) -> bool:
    """Whether so many more strings can be added, of so many bytes together."""
    count = int64s(state, table.counts)[0] + strings
    return (
        end_of(state, table) + length <= len(uint8s(state, table.data))
        and count < len(int64s(state, table.starts))
        and 2 * count <= len(int32s(state, table.slots))
    )


@kernel
def rehash(hashes: Words, count: int, slots: Int32) -> None:
    """Fill the empty slots of a table that has grown."""
    mask = U(len(slots) - 1)
    for number in range(count):
        slot = hashes[number] & mask
        while slots[slot]:
            slot = (slot + U(1)) & mask
        slots[slot] = number + 1
