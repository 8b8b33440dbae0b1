"""The hash table of the operators that rely on no order: chains of tuples, by key."""

from __future__ import annotations

from tamis.core.arrays import Int64
from tamis.core.kernel import called, inlined
from tamis.core.kernel.record import int64s
from tamis.transform.kernels import find_stamped
from tamis.transform.layout import NONE
from tamis_papers.pathsharing.layout import CHAIN_USED, FULL, SERIAL, TABLE_SLOT, TABLE_USED, WORK


@inlined
def empty_table(state: Int64) -> None:
    """Forget all keys; chains are kept."""
    state[SERIAL] += 1
    state[TABLE_USED] = 0


@called
def put_key(state: Int64, key: int) -> int:
    """Put a key: 1 if it is new, 0 if it was there, or -1 if there is no room."""
    table = int64s(state, WORK.table)
    slot = find_stamped(table, TABLE_SLOT, key, state[SERIAL])
    if table[slot + 1] == state[SERIAL]:
        return 0
    if 2 * TABLE_SLOT * (state[TABLE_USED] + 1) > len(table):
        state[FULL] = WORK.table
        return -1
    table[slot], table[slot + 1], table[slot + 2] = key, state[SERIAL], NONE
    state[TABLE_USED] += 1
    return 1


@called
def has_key(state: Int64, key: int) -> bool:
    """Whether a key was put."""
    table = int64s(state, WORK.table)
    return table[find_stamped(table, TABLE_SLOT, key, state[SERIAL]) + 1] == state[SERIAL]


@called
def add_to_chain(state: Int64, key: int, tuple: int) -> bool:
    """Append a tuple to the chain of a key; False if there is no room."""
    if put_key(state, key) < 0:
        return False
    place = link(state, tuple)
    if place == NONE:
        return False
    table = int64s(state, WORK.table)
    slot = find_stamped(table, TABLE_SLOT, key, state[SERIAL])
    if table[slot + 2] == NONE:
        table[slot + 2] = place
    else:
        int64s(state, WORK.chain)[2 * table[slot + 3] + 1] = place
    table[slot + 3] = place
    return True


@called
def first_of_chain(state: Int64, key: int) -> int:
    """Where the chain of a key begins, or ``NONE``."""
    table = int64s(state, WORK.table)
    slot = find_stamped(table, TABLE_SLOT, key, state[SERIAL])
    return table[slot + 2] if table[slot + 1] == state[SERIAL] else NONE


@inlined
def link(state: Int64, tuple: int) -> int:
    """A new end of some chain, or ``NONE`` if there is no room."""
    chain = int64s(state, WORK.chain)
    used = state[CHAIN_USED]
    if 2 * used + 2 > len(chain):
        state[FULL] = WORK.chain
        return NONE
    chain[2 * used], chain[2 * used + 1] = tuple, NONE
    state[CHAIN_USED] = used + 1
    return used
