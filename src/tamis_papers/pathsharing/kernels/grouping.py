"""OuterJoin-Select and GroupBy: tuples become lists of groups."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import called, inlined
from tamis.core.kernel.record import int32s, int64s
from tamis.documents.batch import ELEMENT, KIND_BITS
from tamis.transform.layout import DONE, NONE
from tamis_papers.pathsharing.kernels.tables import add_to_chain, empty_table, first_of_chain
from tamis_papers.pathsharing.kernels.tuples import list_end, list_start, node_of
from tamis_papers.pathsharing.layout import (
    ARGUMENT,
    BOUND_USED,
    DOCUMENT,
    FULL,
    GROUPED,
    HASHED,
    LEFT,
    LEVELS,
    LISTED_USED,
    LISTS_USED,
    MODE,
    NO_ROOM,
    NODES_USED,
    OPERATOR,
    PATHS_USED,
    PLANS,
    QUERIES,
    RIGHT,
    WORK,
)

# -- writing groups --------------------------------------------------------------------------------


@called
def write_bound(state: Int64, left: int) -> int:
    """Write the groups of all plans that read a list: one for each of its tuples."""
    bound, pool = int64s(state, WORK.bound), int64s(state, WORK.pool)
    stamps = int64s(state, WORK.bound_stamp)
    if stamps[left] == state[DOCUMENT]:
        return DONE
    used = state[BOUND_USED]
    first, last = list_start(state, left), list_end(state, left)
    if used + last - first > len(bound):
        state[FULL] = WORK.bound
        return NO_ROOM
    stamps[left] = state[DOCUMENT]
    int64s(state, WORK.bound_from)[left] = used
    for place in range(first, last):
        bound[used] = node_of(state, pool[place], 0)
        used += 1
    int64s(state, WORK.bound_to)[left] = used
    state[BOUND_USED] = used
    return DONE


@called
def refer(state: Int64, path: int) -> bool:
    """Append a path to those of a plan's groups; False if there is no room."""
    paths = int32s(state, WORK.paths)
    used = state[LISTED_USED]
    if used == len(paths):
        state[FULL] = WORK.paths
        return False
    paths[used] = path
    state[LISTED_USED] = used + 1
    return True


@called
def open_path(state: Int64) -> bool:
    """A path that has no lists yet; False if there is no room."""
    of_path = int64s(state, WORK.of_path)
    used = state[PATHS_USED]
    if used + 1 == len(of_path):
        state[FULL] = WORK.of_path
        return False
    of_path[used] = of_path[used + 1] = state[LISTS_USED]
    state[PATHS_USED] = used + 1
    return True


@called
def begin_path(state: Int64) -> bool:
    """A path of the plan's own."""
    return refer(state, state[PATHS_USED]) and open_path(state)


@inlined
def add_node(state: Int64, event: int) -> bool:
    """Append a node to a list; False if there is no room."""
    nodes = int64s(state, WORK.nodes)
    used = state[NODES_USED]
    if used == len(nodes):
        state[FULL] = WORK.nodes
        return False
    nodes[used] = event << KIND_BITS | ELEMENT
    state[NODES_USED] = used + 1
    return True


@called
def end_group_list(state: Int64, bound: int, count: int) -> bool:
    """The nodes added last are the list of a bound node; False if there is no room."""
    list_bound = int64s(state, WORK.list_bound)
    used = state[LISTS_USED]
    if used == len(list_bound):
        state[FULL] = WORK.list_bound
        return False
    list_bound[used] = bound
    int64s(state, WORK.list_starts)[used] = state[NODES_USED] - count
    int64s(state, WORK.list_ends)[used] = state[NODES_USED]
    state[LISTS_USED] = used + 1
    int64s(state, WORK.of_path)[state[PATHS_USED]] = used + 1
    return True


# -- operators -------------------------------------------------------------------------------------


@called
def outer_join(state: Int64, operator: int) -> int:
    """OuterJoin-Select: a group for each tuple of the left, with a list of each input.

    Where the inputs are GroupBys, there is nothing to join: their lists are there, by bound node.
    """
    operators, inputs = int32s(state, PLANS.operators), int32s(state, PLANS.inputs)
    row = operator * OPERATOR
    left = np.int64(operators[row + LEFT])
    at = np.int64(operators[row + ARGUMENT])
    status = write_bound(state, left)
    if operators[row + MODE] == GROUPED:
        return status
    int64s(state, WORK.listed_from)[operators[row + QUERIES]] = state[LISTED_USED]
    while status == DONE and inputs[at] != NONE:
        stream, levels = np.int64(inputs[at]), np.int64(inputs[at + 1])
        at += 2
        if not begin_path(state):
            status = NO_ROOM
        elif operators[row + MODE] == HASHED:
            status = list_by_hashing(state, left, stream, levels)
        else:
            status = list_by_merging(state, left, stream, levels)
    return status


@called
def group(state: Int64, operator: int) -> int:
    """GroupBy: the lists of a path, of all bound nodes, for all plans that have it.

    It is run with every document, so its path has the same number in all of them.
    """
    operators = int32s(state, PLANS.operators)
    row = operator * OPERATOR
    if not open_path(state):
        return NO_ROOM
    stream, levels = np.int64(operators[row + LEFT]), np.int64(operators[row + LEVELS])
    binding = np.int64(operators[row + RIGHT])
    if operators[row + MODE] == HASHED:
        return list_by_hashing(state, binding, stream, levels)
    return list_by_merging(state, binding, stream, levels)


@called
def list_by_merging(state: Int64, left: int, stream: int, levels: int) -> int:
    """The lists of the left's nodes, of a stream that ascends by bound node."""
    pool = int64s(state, WORK.pool)
    other, end = list_start(state, stream), list_end(state, stream)
    last = np.int64(NONE)
    for place in range(list_start(state, left), list_end(state, left)):
        bound = node_of(state, pool[place], 0)
        if bound == last:
            continue  # a stream of tuples, of which several have this node
        last = bound
        while other < end and node_of(state, pool[other], levels) < bound:
            other += 1
        count, node = 0, np.int64(NONE)
        while other < end and node_of(state, pool[other], levels) == bound:
            if node_of(state, pool[other], 0) != node:
                node = node_of(state, pool[other], 0)
                count += 1
                if not add_node(state, node):
                    return NO_ROOM
            other += 1
        if count > 0 and not end_group_list(state, bound, count):
            return NO_ROOM
    return DONE


@called
def list_by_hashing(state: Int64, left: int, stream: int, levels: int) -> int:
    """The same, of a stream without order."""
    pool, chain = int64s(state, WORK.pool), int64s(state, WORK.chain)
    empty_table(state)
    for place in range(list_start(state, stream), list_end(state, stream)):
        if not add_to_chain(state, node_of(state, pool[place], levels), pool[place]):
            return NO_ROOM
    last = np.int64(NONE)
    for place in range(list_start(state, left), list_end(state, left)):
        bound = node_of(state, pool[place], 0)
        if bound == last:
            continue
        last = bound
        link = first_of_chain(state, bound)
        count, node = 0, np.int64(NONE)
        while link >= 0:
            if node_of(state, chain[2 * link], 0) != node:
                node = node_of(state, chain[2 * link], 0)
                count += 1
                if not add_node(state, node):
                    return NO_ROOM
            link = chain[2 * link + 1]
        if count > 0 and not end_group_list(state, bound, count):
            return NO_ROOM
    return DONE
