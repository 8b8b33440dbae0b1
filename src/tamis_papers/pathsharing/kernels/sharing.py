"""Shared selections: which outputs a pair of tuples belongs to, by the constants that it meets."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import called
from tamis.core.kernel.record import int32s, int64s
from tamis.core.kernel.table import find_pair, pair
from tamis.transform.kernels import find_leaves
from tamis.transform.layout import DONE, NODES, NONE
from tamis_papers.pathsharing.kernels.tables import link
from tamis_papers.pathsharing.kernels.tuples import (
    begin_list,
    emit,
    end_list,
    list_end,
    list_start,
    node_of,
)
from tamis_papers.pathsharing.layout import (
    ARGUMENT,
    DOCUMENT,
    FULL,
    JOIN,
    KIND,
    LEFT,
    LEVELS,
    NO_ROOM,
    OPERATOR,
    PLANS,
    READY_USED,
    RIGHT,
    UNCONDITIONAL,
    WORK,
)


@called
def select_shared(state: Int64, operator: int) -> int:
    """Shared selection: each tuple, or pair, goes to the outputs whose constants it meets."""
    operators, pool = int32s(state, PLANS.operators), int64s(state, WORK.pool)
    row = operator * OPERATOR
    source = np.int64(operators[row + LEFT])
    width = 2 if operators[source * OPERATOR + KIND] == JOIN else 1
    first, last = list_start(state, source), list_end(state, source)
    for place in range(first, last, width):
        found = find_right(state, operator, pool[place + width - 1])
        if found >= 0:
            found = add_to_outputs(state, operator, pool[place], found)
        if found < 0:
            return -found
    return DONE


@called
def find_right(state: Int64, operator: int, tuple: int) -> int:
    """List the leaves that a right tuple makes true, plus one: how many, or a status, negated.

    Where nothing is asked of it there is one, 0.
    """
    right_leaves = int32s(state, WORK.right_leaves)
    source = np.int64(int32s(state, PLANS.operators)[operator * OPERATOR + ARGUMENT])
    if source == NONE:
        right_leaves[0] = 0
        return 1
    count = find_leaves(state, source, node_of(state, tuple, 0))
    if count > len(right_leaves):
        state[FULL] = WORK.right_leaves
        return -NO_ROOM
    leaves = int32s(state, NODES.found_leaves)
    for place in range(count):
        right_leaves[place] = leaves[place] + 1
    return count


@called
def add_to_outputs(state: Int64, operator: int, tuple: int, rights: int) -> int:
    """Add a binding's tuple to the outputs of its leaves and so many right ones.

    Returns:
        0, or a status, negated.
    """
    row = operator * OPERATOR
    operators, outputs = int32s(state, PLANS.operators), int64s(state, PLANS.outputs)
    source = np.int64(operators[row + RIGHT])
    leaves, right_leaves = int32s(state, NODES.found_leaves), int32s(state, WORK.right_leaves)
    lefts = 1
    if source != NONE and rights > 0:
        lefts = find_leaves(state, source, node_of(state, tuple, np.int64(operators[row + LEVELS])))
    if lefts < 0:
        return lefts
    for left in range(lefts):
        one = 0 if source == NONE else np.int64(leaves[left]) + 1
        for right in range(rights):
            other = np.int64(right_leaves[right])
            key = pair(one, other) if one + other > 0 else pair(UNCONDITIONAL, operator)
            index = find_pair(outputs, key)
            if outputs[index] == key and not add_to_output(state, outputs[index + 1], tuple):
                return -NO_ROOM
    return 0


@called
def add_to_output(state: Int64, output: int, tuple: int) -> bool:
    """Add a tuple to an output, unless its node was the last one; False if there is no room.

    An output begins when its first tuple comes, and is then one of those to be run.
    """
    stamps, last = int64s(state, WORK.list_stamp), int64s(state, WORK.last_out)
    chain = int64s(state, WORK.chain)
    is_new = stamps[output] != state[DOCUMENT]
    if not is_new:
        tail = last[output]
        if node_of(state, chain[2 * tail], 0) == node_of(state, tuple, 0):
            return True
    place = link(state, tuple)
    if place == NONE:
        return False
    if is_new:
        stamps[output] = state[DOCUMENT]
        int64s(state, WORK.first_out)[output] = place
        int32s(state, WORK.ready)[state[READY_USED]] = output
        state[READY_USED] += 1
    else:
        chain[2 * last[output] + 1] = place
    last[output] = place
    return True


@called
def write_output(state: Int64, output: int) -> int:
    """Write the list of an output."""
    chain = int64s(state, WORK.chain)
    place = int64s(state, WORK.first_out)[output]
    begin_list(state, output)
    while place != NONE:
        if not emit(state, chain[2 * place]):
            return NO_ROOM
        place = chain[2 * place + 1]
    end_list(state, output)
    return DONE
