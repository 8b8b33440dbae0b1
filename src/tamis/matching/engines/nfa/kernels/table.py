"""The transitions: one hash table, from a state and a label to a state."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.matching.engines.nfa.layout import MASK, RECORD

_GOLDEN = U(0x9E3779B97F4A7C15)


@inlined
def key_of(state: int, label: int) -> int:
    """The key of a state, which is below 2³¹, and a label; it is not 0, since no label is."""
    return np.int64(state) << 32 | np.int64(label)


@inlined
def slot_of(table: Int64, key: int) -> int:
    """Where a key is, or would be: the place of its pair."""
    mask = U((len(table) >> 1) - 1)
    hash = U(key) * _GOLDEN
    slot = (hash ^ hash >> U(32)) & mask
    while table[slot << U(1)] != key and table[slot << U(1)] != 0:
        slot = (slot + U(1)) & mask
    return np.int64(slot << U(1))


@inlined
def mark(records: Int32, state: int, label: int) -> None:
    """Note in the mask of a state that a transition is there."""
    place = state * RECORD + MASK + (label >> 5 & 1)
    records[place] = np.int32(records[place] | np.int32(1) << np.int32(label & 31))


@called
def put(table: Int64, key: int, target: int) -> None:
    """Add a key that is not there; there must be room."""
    slot = slot_of(table, key)
    table[slot] = key
    table[slot + 1] = target


@kernel
def copy_pairs(table: Int64, into: Int64) -> None:
    """Put all pairs into an empty table, which must be larger."""
    for slot in range(0, len(table), 2):
        if table[slot] != 0:
            put(into, table[slot], table[slot + 1])
