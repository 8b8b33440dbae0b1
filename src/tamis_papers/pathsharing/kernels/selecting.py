"""Selection and DupElim: they leave tuples out."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import called
from tamis.core.kernel.record import int32s, int64s
from tamis.core.kernel.table import pair
from tamis.transform.kernels import node_passes, tests_before
from tamis.transform.layout import DONE
from tamis_papers.pathsharing.kernels.tables import empty_table, put_key
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
    HASHED,
    LEFT,
    LEVELS,
    MODE,
    NO_ROOM,
    OPERATOR,
    PLANS,
    WORK,
)


@called
def select_tuples(state: Int64, operator: int) -> int:
    """Selection: the tuples whose nodes pass the tests of their steps."""
    operators, pool = int32s(state, PLANS.operators), int64s(state, WORK.pool)
    row = operator * OPERATOR
    tests, levels = np.int64(operators[row + ARGUMENT]), np.int64(operators[row + LEVELS])
    left = np.int64(operators[row + LEFT])
    begin_list(state, operator)
    for place in range(list_start(state, left), list_end(state, left)):
        found = passes(state, pool[place], tests, levels)
        if found < 0:
            return -found
        if found and not emit(state, pool[place]):
            return NO_ROOM
    end_list(state, operator)
    return DONE


@called
def passes(state: Int64, tuple: int, tests: int, levels: int) -> int:
    """Whether the last nodes of a tuple pass tests: 1, 0, or a status, negated."""
    tuples = int64s(state, WORK.tuples)
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
    operators, pool = int32s(state, PLANS.operators), int64s(state, WORK.pool)
    row = operator * OPERATOR
    left, levels = np.int64(operators[row + LEFT]), np.int64(operators[row + LEVELS])
    is_hashed = operators[row + MODE] == HASHED
    if is_hashed:
        empty_table(state)
    last_node = last_bound = np.int64(-1)
    begin_list(state, operator)
    for place in range(list_start(state, left), list_end(state, left)):
        node, bound = node_of(state, pool[place], 0), node_of(state, pool[place], levels)
        if is_hashed:
            is_new = put_key(state, pair(bound, node))
            if is_new < 0:
                return NO_ROOM
        else:
            is_new = np.int64(node != last_node or bound != last_bound)
            last_node, last_bound = node, bound
        if is_new and not emit(state, pool[place]):
            return NO_ROOM
    end_list(state, operator)
    return DONE
