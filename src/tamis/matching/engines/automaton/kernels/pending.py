"""Pending nodes: those around an element of which descendants are sought, and what these need."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import U, called
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.matching.engines.automaton.cache import AROUND, NEEDED, PENDING_COLUMNS, TOTAL
from tamis.matching.engines.automaton.kernels.facts import (
    add_set,
    holds_fact,
    known_told,
    remove_set,
    tell,
)
from tamis.matching.engines.automaton.kernels.tables import (
    all_set,
    append,
    clear_bit,
    has_room,
    is_set,
    mixed,
    set_bit,
)
from tamis.matching.engines.automaton.layout import (
    CACHE,
    FULL_FACTS,
    FULL_PENDINGS,
    PROGRAM,
    SCRATCH,
    TURNED_TO,
)
from tamis.matching.engines.automaton.program import NEEDS, NODE_COLUMNS


@called
def turn_to(state: Int64, pending: int) -> None:
    """Have the bits of some pending nodes set, and of the facts that they need, and no others.

    From what was set before: documents go up and down by one element at a time.
    """
    info, before = int64s(state, CACHE.pending_info), state[TURNED_TO]
    mine, its = before, pending
    while mine != its:  # those around have smaller numbers
        if mine > its:
            mine = info[mine * PENDING_COLUMNS + AROUND]
        else:
            its = info[its * PENDING_COLUMNS + AROUND]
    offsets, nodes = int64s(state, CACHE.pendings.starts), int32s(state, CACHE.pendings.members)
    bits, needed = uint8s(state, SCRATCH.pending_bits), uint64s(state, SCRATCH.needed)
    number = before
    while number != mine:
        for i in range(offsets[number], offsets[number + 1]):
            clear_bit(bits, nodes[i])
        remove_set(state, needed, info[number * PENDING_COLUMNS + NEEDED])
        number = info[number * PENDING_COLUMNS + AROUND]
    number = pending
    while number != mine:
        for i in range(offsets[number], offsets[number + 1]):
            set_bit(bits, nodes[i])
        add_set(state, needed, info[number * PENDING_COLUMNS + NEEDED])
        number = info[number * PENDING_COLUMNS + AROUND]
    state[TURNED_TO] = pending


@called
def find_pending(state: Int64, count: int, inherited: int) -> int:
    """What is pending inside of an element that reaches some sources; or a status, negated.

    Args:
        count: how many sources were noted: nodes with steps to descendants.
        inherited: what is pending around it.
    """
    turn_to(state, inherited)
    sources, bits = int32s(state, SCRATCH.sources), uint8s(state, SCRATCH.pending_bits)
    hash = uint64s(state, CACHE.pendings.hashes)[inherited]
    added = 0
    for i in range(count):
        node = sources[i]
        if not is_set(bits, node):
            sources[added] = node
            added += 1
            hash += mixed(node)
    if added == 0:
        return inherited
    for i in range(added):
        set_bit(bits, sources[i])
    total = int64s(state, CACHE.pending_info)[inherited * PENDING_COLUMNS + TOTAL] + added
    found = known_pending(state, total, hash)
    for i in range(added):
        clear_bit(bits, sources[i])
    if found < 0:
        found = add_pending(state, added, total, hash, inherited)
    return found


@called
def known_pending(state: Int64, total: int, hash: np.uint64) -> int:
    """The pending nodes whose bits are set, or -1."""
    table, info = int32s(state, CACHE.pendings.slots), int64s(state, CACHE.pending_info)
    mask = U(len(table) - 1)
    slot = hash & mask
    while table[slot]:
        number = np.int64(table[slot] - 1)
        if (
            uint64s(state, CACHE.pendings.hashes)[number] == hash
            and info[number * PENDING_COLUMNS + TOTAL] == total
            and all_have_bits(state, number)
        ):
            return number
        slot = (slot + U(1)) & mask
    return -1


@called
def all_have_bits(state: Int64, pending: int) -> bool:
    """Whether the bits of all pending nodes are set."""
    offsets, nodes = int64s(state, CACHE.pendings.starts), int32s(state, CACHE.pendings.members)
    bits = uint8s(state, SCRATCH.pending_bits)
    number = pending
    while number and all_set(bits, nodes, offsets[number], offsets[number + 1]):
        number = int64s(state, CACHE.pending_info)[number * PENDING_COLUMNS + AROUND]
    return number == 0


@called
def add_pending(state: Int64, added: int, total: int, hash: np.uint64, inherited: int) -> int:
    """Add the sources that were noted to those around them; or a status, negated."""
    sources, nodes = int32s(state, SCRATCH.sources), int32s(state, PROGRAM.nodes)
    if not has_room(state, CACHE.pendings, int32s(state, CACHE.pendings.members), added):
        return -FULL_PENDINGS
    needs, around = int32s(state, PROGRAM.needs), uint64s(state, SCRATCH.needed)
    for i in range(added):
        row = sources[i] * NODE_COLUMNS
        for j in range(nodes[row + NEEDS], nodes[row + NODE_COLUMNS + NEEDS]):
            if not holds_fact(around, needs[j]):
                tell(state, needs[j])
    needed = known_told(state)
    if needed < 0:
        return -FULL_FACTS
    number = append(state, CACHE.pendings, sources, added, hash)
    info, row = int64s(state, CACHE.pending_info), number * PENDING_COLUMNS
    info[row + AROUND] = inherited
    info[row + TOTAL] = total
    info[row + NEEDED] = needed
    return number
