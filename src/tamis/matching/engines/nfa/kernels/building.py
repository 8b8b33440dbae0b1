"""Filters become states: what is there already is shared, what is missing is added."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import called, inlined, kernel
from tamis.core.kernel.table import add_pair, find_pair, pair
from tamis.language.filters import ANY
from tamis.matching.engines.nfa.layout import (
    ACCEPTS,
    BELOW,
    CODE,
    DONE,
    MASK,
    NO_ROOM,
    PARENT,
    RECORD,
    STAR,
    WATCHED,
)

STATES, PAIRS, ADDED = range(3)
"""What is counted: states, transitions in the table, and filters added of those that are given."""


@called
def add_state(counts: Int64, records: Int32, parent: int, code: int) -> int:
    """A new state, with nothing behind it; there must be room."""
    state = counts[STATES]
    row = state * RECORD
    records[row + STAR] = records[row + BELOW] = records[row + ACCEPTS] = -1
    records[row + WATCHED] = records[row + MASK] = records[row + MASK + 1] = 0
    records[row + PARENT] = parent
    records[row + CODE] = code
    counts[STATES] += 1
    return state


@inlined
def mark(records: Int32, state: int, label: int) -> None:
    """Note in the mask of a state that a transition is there."""
    place = state * RECORD + MASK + (label >> 5 & 1)
    records[place] = np.int32(records[place] | np.int32(1) << np.int32(label & 31))


@called
def state_behind(counts: Int64, records: Int32, table: Int64, state: int, code: int) -> int:
    """The state that a step leads to from another one; there must be room for two states."""
    origin = state
    if code & 1:
        origin = np.int64(records[state * RECORD + BELOW])
        if origin < 0:
            origin = add_state(counts, records, state, -1)
            records[state * RECORD + BELOW] = origin
    label = code >> 1
    if label == ANY:
        target = np.int64(records[origin * RECORD + STAR])
        if target < 0:
            target = add_state(counts, records, state, code)
            records[origin * RECORD + STAR] = target
        return target
    key = pair(origin, label)
    slot = find_pair(table, key)
    if table[slot] == key:
        return table[slot + 1]
    target = add_state(counts, records, state, code)
    add_pair(table, key, target)
    mark(records, origin, label)
    counts[PAIRS] += 1
    return target


@inlined
def has_room(counts: Int64, records: Int32, table: Int64, steps: int) -> bool:
    """Whether so many steps can be added, to a table that stays at most half full."""
    return (counts[STATES] + 2 * steps) * RECORD <= len(records) and 4 * (
        counts[PAIRS] + steps
    ) <= len(table)


@kernel
def add_step(counts: Int64, records: Int32, table: Int64, state: int, code: int) -> int:
    """The state that a step leads to from another one, or -1 if there is no room."""
    if not has_room(counts, records, table, 1):
        return -1
    return state_behind(counts, records, table, state, code)


@kernel
def add_filters(
    counts: Int64, records: Int32, table: Int64, starts: Int64, codes: Int32, ends: Int32
) -> int:
    """Add filters, from number ``counts[ADDED]`` on; each one's state is noted in ``ends``."""
    for number in range(counts[ADDED], len(starts) - 1):
        if not has_room(counts, records, table, starts[number + 1] - starts[number]):
            return NO_ROOM
        state = 0
        for place in range(starts[number], starts[number + 1]):
            state = state_behind(counts, records, table, state, codes[place])
        ends[number] = state
        counts[ADDED] = number + 1
    return DONE
