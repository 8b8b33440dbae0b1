"""The hash table of the operators that rely on no order: chains of tuples, by key.

Path-tuples, their streams, and the lists of tuples that operators leave to each other.

A tuple is its last node and the tuple of the steps before, so that paths share the tuples of what
they have in common. There may be exponentially many, as there are in the paper: of ``//a//a//a``
one for each choice of three nested elements.

Semijoin and Join, on the bound node: by merging, where both sides ascend, or by hashing.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import called, inlined
from tamis.core.kernel.record import int32s, int64s
from tamis.matching.engines.nfa import layout as nfa
from tamis.transform import layout as base
from tamis.transform.kernels.strings import find_stamped
from tamis_papers.pathsharing import layout as at

# -- hash tables -----------------------------------------------------------------------------------


@inlined
def empty_table(state: Int64) -> None:
    """Forget all keys; chains are kept."""
    state[at.SERIAL] += 1
    state[at.TABLE_USED] = 0


@called
def put_key(state: Int64, key: int) -> int:
    """Put a key: 1 if it is new, 0 if it was there, or -1 if there is no room."""
    table = int64s(state, at.WORK.table)
    slot = find_stamped(table, at.TABLE_SLOT, key, state[at.SERIAL])
    if table[slot + 1] == state[at.SERIAL]:
        return 0
    if 2 * at.TABLE_SLOT * (state[at.TABLE_USED] + 1) > len(table):
        state[at.FULL] = at.WORK.table
        return -1
    table[slot], table[slot + 1], table[slot + 2] = key, state[at.SERIAL], base.NONE
    state[at.TABLE_USED] += 1
    return 1


@called
def has_key(state: Int64, key: int) -> bool:
    """Whether a key was put."""
    table = int64s(state, at.WORK.table)
    return table[find_stamped(table, at.TABLE_SLOT, key, state[at.SERIAL]) + 1] == state[at.SERIAL]


@called
def add_to_chain(state: Int64, key: int, tuple: int) -> bool:
    """Append a tuple to the chain of a key; False if there is no room."""
    if put_key(state, key) < 0:
        return False
    place = link(state, tuple)
    if place == base.NONE:
        return False
    table = int64s(state, at.WORK.table)
    slot = find_stamped(table, at.TABLE_SLOT, key, state[at.SERIAL])
    if table[slot + 2] == base.NONE:
        table[slot + 2] = place
    else:
        int64s(state, at.WORK.chain)[2 * table[slot + 3] + 1] = place
    table[slot + 3] = place
    return True


@called
def first_of_chain(state: Int64, key: int) -> int:
    """Where the chain of a key begins, or ``NONE``."""
    table = int64s(state, at.WORK.table)
    slot = find_stamped(table, at.TABLE_SLOT, key, state[at.SERIAL])
    return table[slot + 2] if table[slot + 1] == state[at.SERIAL] else base.NONE


@inlined
def link(state: Int64, tuple: int) -> int:
    """A new end of some chain, or ``NONE`` if there is no room."""
    chain = int64s(state, at.WORK.chain)
    used = state[at.CHAIN_USED]
    if 2 * used + 2 > len(chain):
        state[at.FULL] = at.WORK.chain
        return base.NONE
    chain[2 * used], chain[2 * used + 1] = tuple, base.NONE
    state[at.CHAIN_USED] = used + 1
    return used


# -- tuples ----------------------------------------------------------------------------------------


@called
def make_tuples(state: Int64) -> int:
    """Make the tuples of all occurrences, in their order."""
    rows, records = int64s(state, base.READ.rows), int32s(state, base.READ.records)
    row_tuples = int64s(state, at.WORK.row_tuples)
    for row in range(state[at.ROWS]):
        row_tuples[row] = state[at.TUPLES_USED]
        position = rows[row * nfa.OCCURRENCE + nfa.STATE]
        event = rows[row * nfa.OCCURRENCE + nfa.START]
        if records[position * nfa.RECORD + nfa.PARENT] <= 0:
            if not add_tuple(state, event, base.NONE):
                return at.NO_ROOM
            continue
        descends = records[position * nfa.RECORD + nfa.CODE] & 1
        above = rows[row * nfa.OCCURRENCE + nfa.ABOVE]
        while above >= 0:
            for before in range(row_tuples[above], row_tuples[above + 1]):
                if not add_tuple(state, event, before):
                    return at.NO_ROOM
            if not descends:
                break
            above = rows[above * nfa.OCCURRENCE + nfa.OUTER]
    row_tuples[state[at.ROWS]] = state[at.TUPLES_USED]
    return base.DONE


@inlined
def add_tuple(state: Int64, event: int, before: int) -> bool:
    """Append a tuple; False if there is no room."""
    tuples = int64s(state, at.WORK.tuples)
    used = state[at.TUPLES_USED]
    if 2 * used + 2 > len(tuples):
        state[at.FULL] = at.WORK.tuples
        return False
    tuples[2 * used], tuples[2 * used + 1] = event, before
    state[at.TUPLES_USED] = used + 1
    return True


@called
def write_streams(state: Int64) -> int:
    """Write the list of each stream, in the order of its tuples' last nodes."""
    rows, row_tuples = int64s(state, base.READ.rows), int64s(state, at.WORK.row_tuples)
    counts, stream_of = int64s(state, at.WORK.state_counts), int32s(state, at.PLANS.stream_of)
    begins, ends = int64s(state, at.WORK.list_from), int64s(state, at.WORK.list_to)
    stamps, pool = int64s(state, at.WORK.list_stamp), int64s(state, at.WORK.pool)
    if state[at.TUPLES_USED] > len(pool):
        state[at.FULL] = at.WORK.pool
        return at.NO_ROOM
    for row in range(state[at.ROWS]):
        counts[rows[row * nfa.OCCURRENCE + nfa.STATE]] = 0
    for row in range(state[at.ROWS]):
        counts[rows[row * nfa.OCCURRENCE + nfa.STATE]] += row_tuples[row + 1] - row_tuples[row]
    used = 0
    for row in range(state[at.ROWS]):
        position = rows[row * nfa.OCCURRENCE + nfa.STATE]
        stream = stream_of[position]
        if stream == base.NONE:
            continue
        if stamps[stream] != state[at.DOCUMENT]:
            stamps[stream] = state[at.DOCUMENT]
            begins[stream] = ends[stream] = used
            used += counts[position]
        for tuple in range(row_tuples[row], row_tuples[row + 1]):
            pool[ends[stream]] = tuple
            ends[stream] += 1
    state[at.POOL_USED] = used
    return base.DONE


@inlined
def node_of(state: Int64, tuple: int, levels: int) -> int:
    """The node of a tuple's field so many steps before its last."""
    tuples = int64s(state, at.WORK.tuples)
    for _level in range(levels):
        tuple = tuples[2 * tuple + 1]
    return tuples[2 * tuple]


@inlined
def list_start(state: Int64, operator: int) -> int:
    """Where the list of an operator begins."""
    is_here = int64s(state, at.WORK.list_stamp)[operator] == state[at.DOCUMENT]
    return int64s(state, at.WORK.list_from)[operator] if is_here else 0


@inlined
def list_end(state: Int64, operator: int) -> int:
    """Where it ends: of one that was not run, where it begins."""
    is_here = int64s(state, at.WORK.list_stamp)[operator] == state[at.DOCUMENT]
    return int64s(state, at.WORK.list_to)[operator] if is_here else 0


@inlined
def begin_list(state: Int64, operator: int) -> None:
    """An operator's list begins."""
    int64s(state, at.WORK.list_stamp)[operator] = state[at.DOCUMENT]
    int64s(state, at.WORK.list_from)[operator] = state[at.POOL_USED]
    int64s(state, at.WORK.list_to)[operator] = state[at.POOL_USED]


@inlined
def end_list(state: Int64, operator: int) -> None:
    """An operator's list ends."""
    int64s(state, at.WORK.list_to)[operator] = state[at.POOL_USED]


@inlined
def emit(state: Int64, tuple: int) -> bool:
    """Append a tuple to the list that was begun; False if there is no room."""
    pool = int64s(state, at.WORK.pool)
    used = state[at.POOL_USED]
    if used == len(pool):
        state[at.FULL] = at.WORK.pool
        return False
    pool[used] = tuple
    state[at.POOL_USED] = used + 1
    return True


# -- joins -----------------------------------------------------------------------------------------


@called
def semijoin(state: Int64, operator: int) -> int:
    """The tuples of the left whose node is the bound node of one of the right."""
    operators, pool = int32s(state, at.PLANS.operators), int64s(state, at.WORK.pool)
    row = operator * at.OPERATOR
    left, right = np.int64(operators[row + at.LEFT]), np.int64(operators[row + at.RIGHT])
    levels = np.int64(operators[row + at.LEVELS])
    is_hashed = operators[row + at.MODE] == at.HASHED
    other, end = list_start(state, right), list_end(state, right)
    if is_hashed:
        empty_table(state)
        for place in range(other, end):
            if put_key(state, node_of(state, pool[place], levels)) < 0:
                return at.NO_ROOM
    begin_list(state, operator)
    for place in range(list_start(state, left), list_end(state, left)):
        node = node_of(state, pool[place], 0)
        if is_hashed:
            is_found = has_key(state, node)
        else:
            while other < end and node_of(state, pool[other], levels) < node:
                other += 1
            is_found = other < end and node_of(state, pool[other], levels) == node
        if is_found and not emit(state, pool[place]):
            return at.NO_ROOM
    end_list(state, operator)
    return base.DONE


@called
def join(state: Int64, operator: int) -> int:
    """Pairs of tuples, of the left and the right, with the same bound node."""
    operators, pool = int32s(state, at.PLANS.operators), int64s(state, at.WORK.pool)
    row = operator * at.OPERATOR
    left = np.int64(operators[row + at.LEFT])
    if operators[row + at.MODE] == at.HASHED:
        return hash_join(state, operator)
    right, levels = np.int64(operators[row + at.RIGHT]), np.int64(operators[row + at.LEVELS])
    other, end = list_start(state, right), list_end(state, right)
    begin_list(state, operator)
    for place in range(list_start(state, left), list_end(state, left)):
        node = node_of(state, pool[place], 0)
        while other < end and node_of(state, pool[other], levels) < node:
            other += 1
        same = other
        while same < end and node_of(state, pool[same], levels) == node:
            if not (emit(state, pool[place]) and emit(state, pool[same])):
                return at.NO_ROOM
            same += 1
    end_list(state, operator)
    return base.DONE


@called
def hash_join(state: Int64, operator: int) -> int:
    """The same, where the right has no order."""
    operators, pool = int32s(state, at.PLANS.operators), int64s(state, at.WORK.pool)
    row = operator * at.OPERATOR
    left, right = np.int64(operators[row + at.LEFT]), np.int64(operators[row + at.RIGHT])
    levels = np.int64(operators[row + at.LEVELS])
    chain = int64s(state, at.WORK.chain)
    empty_table(state)
    for place in range(list_start(state, right), list_end(state, right)):
        if not add_to_chain(state, node_of(state, pool[place], levels), pool[place]):
            return at.NO_ROOM
    begin_list(state, operator)
    for place in range(list_start(state, left), list_end(state, left)):
        link = first_of_chain(state, node_of(state, pool[place], 0))
        while link >= 0:
            if not (emit(state, pool[place]) and emit(state, chain[2 * link])):
                return at.NO_ROOM
            link = chain[2 * link + 1]
    end_list(state, operator)
    return base.DONE
