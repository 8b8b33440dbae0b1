"""Selection and DupElim: they leave tuples out.

Shared selections: which outputs a pair of tuples belongs to, by the constants that it meets.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import called
from tamis.core.kernel.record import int32s, int64s
from tamis.core.kernel.table import find_pair, pair
from tamis.transform import layout as base
from tamis.transform.kernels.strings import find_leaves, node_passes, tests_before
from tamis_papers.pathsharing import layout as at
from tamis_papers.pathsharing.kernels.join import (
    begin_list,
    emit,
    empty_table,
    end_list,
    link,
    list_end,
    list_start,
    node_of,
    put_key,
)

# -- selections ------------------------------------------------------------------------------------


@called
def select_tuples(state: Int64, operator: int) -> int:
    """Selection: the tuples whose nodes pass the tests of their steps."""
    operators, pool = int32s(state, at.PLANS.operators), int64s(state, at.WORK.pool)
    row = operator * at.OPERATOR
    tests, levels = np.int64(operators[row + at.ARGUMENT]), np.int64(operators[row + at.LEVELS])
    left = np.int64(operators[row + at.LEFT])
    begin_list(state, operator)
    for place in range(list_start(state, left), list_end(state, left)):
        found = passes(state, pool[place], tests, levels)
        if found < 0:
            return -found
        if found and not emit(state, pool[place]):
            return at.NO_ROOM
    end_list(state, operator)
    return base.DONE


@called
def passes(state: Int64, tuple: int, tests: int, levels: int) -> int:
    """Whether the last nodes of a tuple pass tests: 1, 0, or a status, negated."""
    tuples = int64s(state, at.WORK.tuples)
    for _level in range(levels):
        found = node_passes(state, tuples[2 * tuple], tests)
        if found <= 0:
            return found
        tests = tests_before(state, tests)
        tuple = tuples[2 * tuple + 1]
    return 1


@called
def eliminate_duplicates(state: Int64, operator: int) -> int:
    """DupElim: one tuple of those with the same last node and bound node.

    Scanning compares with the tuple before alone: the list ascends by bound node, and in any case
    by last node.
    """
    operators, pool = int32s(state, at.PLANS.operators), int64s(state, at.WORK.pool)
    row = operator * at.OPERATOR
    left, levels = np.int64(operators[row + at.LEFT]), np.int64(operators[row + at.LEVELS])
    is_hashed = operators[row + at.MODE] == at.HASHED
    if is_hashed:
        empty_table(state)
    last_node = last_bound = np.int64(-1)
    begin_list(state, operator)
    for place in range(list_start(state, left), list_end(state, left)):
        node, bound = node_of(state, pool[place], 0), node_of(state, pool[place], levels)
        if is_hashed:
            is_new = put_key(state, pair(bound, node))
            if is_new < 0:
                return at.NO_ROOM
        else:
            is_new = np.int64(node != last_node or bound != last_bound)
            last_node, last_bound = node, bound
        if is_new and not emit(state, pool[place]):
            return at.NO_ROOM
    end_list(state, operator)
    return base.DONE


# -- shared selections -----------------------------------------------------------------------------


@called
def select_shared(state: Int64, operator: int) -> int:
    """Shared selection: each tuple, or pair, goes to the outputs whose constants it meets."""
    operators, pool = int32s(state, at.PLANS.operators), int64s(state, at.WORK.pool)
    row = operator * at.OPERATOR
    source = np.int64(operators[row + at.LEFT])
    width = 2 if operators[source * at.OPERATOR + at.KIND] == at.JOIN else 1
    first, last = list_start(state, source), list_end(state, source)
    for place in range(first, last, width):
        found = find_right(state, operator, pool[place + width - 1])
        if found >= 0:
            found = add_to_outputs(state, operator, pool[place], found)
        if found < 0:
            return -found
    return base.DONE


@called
def find_right(state: Int64, operator: int, tuple: int) -> int:
    """List the leaves that a right tuple makes true, plus one: how many, or a status, negated.

    Where nothing is asked of it there is one, 0.
    """
    right_leaves = int32s(state, at.WORK.right_leaves)
    source = np.int64(int32s(state, at.PLANS.operators)[operator * at.OPERATOR + at.ARGUMENT])
    if source == base.NONE:
        right_leaves[0] = 0
        return 1
    count = find_leaves(state, source, node_of(state, tuple, 0))
    if count > len(right_leaves):
        state[at.FULL] = at.WORK.right_leaves
        return -at.NO_ROOM
    leaves = int32s(state, base.NODES.found_leaves)
    for place in range(count):
        right_leaves[place] = leaves[place] + 1
    return count


@called
def add_to_outputs(state: Int64, operator: int, tuple: int, rights: int) -> int:
    """Add a binding's tuple to the outputs of its leaves and so many right ones.

    Returns:
        0, or a status, negated.
    """
    row = operator * at.OPERATOR
    operators, outputs = int32s(state, at.PLANS.operators), int64s(state, at.PLANS.outputs)
    source = np.int64(operators[row + at.RIGHT])
    leaves = int32s(state, base.NODES.found_leaves)
    right_leaves = int32s(state, at.WORK.right_leaves)
    lefts = 1
    if source != base.NONE and rights > 0:
        lefts = find_leaves(
            state, source, node_of(state, tuple, np.int64(operators[row + at.LEVELS]))
        )
    if lefts < 0:
        return lefts
    for left in range(lefts):
        one = 0 if source == base.NONE else np.int64(leaves[left]) + 1
        for right in range(rights):
            other = np.int64(right_leaves[right])
            key = pair(one, other) if one + other > 0 else pair(at.UNCONDITIONAL, operator)
            index = find_pair(outputs, key)
            if outputs[index] == key and not add_to_output(state, outputs[index + 1], tuple):
                return -at.NO_ROOM
    return 0


@called
def add_to_output(state: Int64, output: int, tuple: int) -> bool:
    """Add a tuple to an output, unless its node was the last one; False if there is no room.

    An output begins when its first tuple comes, and is then one of those to be run.
    """
    stamps, last = int64s(state, at.WORK.list_stamp), int64s(state, at.WORK.last_out)
    chain = int64s(state, at.WORK.chain)
    is_new = stamps[output] != state[at.DOCUMENT]
    if not is_new:
        tail = last[output]
        if node_of(state, chain[2 * tail], 0) == node_of(state, tuple, 0):
            return True
    place = link(state, tuple)
    if place == base.NONE:
        return False
    if is_new:
        stamps[output] = state[at.DOCUMENT]
        int64s(state, at.WORK.first_out)[output] = place
        int32s(state, at.WORK.ready)[state[at.READY_USED]] = output
        state[at.READY_USED] += 1
    else:
        chain[2 * last[output] + 1] = place
    last[output] = place
    return True


@called
def write_output(state: Int64, output: int) -> int:
    """Write the list of an output."""
    chain = int64s(state, at.WORK.chain)
    place = int64s(state, at.WORK.first_out)[output]
    begin_list(state, output)
    while place != base.NONE:
        if not emit(state, chain[2 * place]):
            return at.NO_ROOM
        place = chain[2 * place + 1]
    end_list(state, output)
    return base.DONE
