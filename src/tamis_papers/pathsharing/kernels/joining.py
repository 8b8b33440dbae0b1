"""Semijoin and Join, on the bound node: by merging, where both sides ascend, or by hashing."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import called
from tamis.core.kernel.record import int32s, int64s
from tamis.transform.layout import DONE
from tamis_papers.pathsharing.kernels.tables import (
    add_to_chain,
    empty_table,
    first_of_chain,
    has_key,
    put_key,
)
from tamis_papers.pathsharing.kernels.tuples import (
    begin_list,
    emit,
    end_list,
    list_end,
    list_start,
    node_of,
)
from tamis_papers.pathsharing.layout import (
    HASHED,
    LEFT,
    LEVELS,
    MODE,
    NO_ROOM,
    OPERATOR,
    PLANS,
    RIGHT,
    WORK,
)


@called
def semijoin(state: Int64, operator: int) -> int:
    """The tuples of the left whose node is the bound node of one of the right."""
    operators, pool = int32s(state, PLANS.operators), int64s(state, WORK.pool)
    row = operator * OPERATOR
    left, right = np.int64(operators[row + LEFT]), np.int64(operators[row + RIGHT])
    levels = np.int64(operators[row + LEVELS])
    is_hashed = operators[row + MODE] == HASHED
    other, end = list_start(state, right), list_end(state, right)
    if is_hashed:
        empty_table(state)
        for place in range(other, end):
            if put_key(state, node_of(state, pool[place], levels)) < 0:
                return NO_ROOM
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
            return NO_ROOM
    end_list(state, operator)
    return DONE


@called
def join(state: Int64, operator: int) -> int:
    """Pairs of tuples, of the left and the right, with the same bound node."""
    operators, pool = int32s(state, PLANS.operators), int64s(state, WORK.pool)
    row = operator * OPERATOR
    left = np.int64(operators[row + LEFT])
    if operators[row + MODE] == HASHED:
        return hash_join(state, operator)
    right, levels = np.int64(operators[row + RIGHT]), np.int64(operators[row + LEVELS])
    other, end = list_start(state, right), list_end(state, right)
    begin_list(state, operator)
    for place in range(list_start(state, left), list_end(state, left)):
        node = node_of(state, pool[place], 0)
        while other < end and node_of(state, pool[other], levels) < node:
            other += 1
        same = other
        while same < end and node_of(state, pool[same], levels) == node:
            if not (emit(state, pool[place]) and emit(state, pool[same])):
                return NO_ROOM
            same += 1
    end_list(state, operator)
    return DONE


@called
def hash_join(state: Int64, operator: int) -> int:
    """The same, where the right has no order."""
    operators, pool = int32s(state, PLANS.operators), int64s(state, WORK.pool)
    row = operator * OPERATOR
    left, right = np.int64(operators[row + LEFT]), np.int64(operators[row + RIGHT])
    levels = np.int64(operators[row + LEVELS])
    chain = int64s(state, WORK.chain)
    empty_table(state)
    for place in range(list_start(state, right), list_end(state, right)):
        if not add_to_chain(state, node_of(state, pool[place], levels), pool[place]):
            return NO_ROOM
    begin_list(state, operator)
    for place in range(list_start(state, left), list_end(state, left)):
        link = first_of_chain(state, node_of(state, pool[place], 0))
        while link >= 0:
            if not (emit(state, pool[place]) and emit(state, chain[2 * link])):
                return NO_ROOM
            link = chain[2 * link + 1]
    end_list(state, operator)
    return DONE
