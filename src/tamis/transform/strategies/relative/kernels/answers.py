"""Writes down the groups of all transformations of a document; lists are shared by reference."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import U, called, kernel
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.transform.strategies.relative.kernels.hits import find_hits, mark_bound
from tamis.transform.strategies.relative.kernels.rules import select
from tamis.transform.strategies.relative.layout import (
    ANSWERS_USED,
    BOUND_USED,
    DOCUMENT,
    HITS_USED,
    IS_UNORDERED,
    LIST_KEYS,
    MATCHED_USED,
    NODES_USED,
    PAIRS_USED,
    PLANS,
    WORK,
)
from tamis.transform.strings.kernels.events import index_events
from tamis.transform.strings.layout import CONSTANTS, DONE, EVENTS, FULL, NO_ROOM, NONE, SOURCE


@kernel
def find_groups(state: Int64) -> int:
    """Find the groups of all transformations in the document; a status of ``layout``."""
    for counted in range(HITS_USED, IS_UNORDERED + 1):
        state[counted] = 0
    state[DOCUMENT] += 1
    index_events(state)
    mark_bound(state)
    status = find_hits(state)
    if status == DONE:
        status = select(state)
    if status == DONE:
        mark_answers(state)
        status = write_answers(state)
    if status == DONE and state[ANSWERS_USED] > 0:
        status = write_lists(state)
    return status


@called
def mark_answers(state: Int64) -> None:
    """Set the bits of the queries that have groups, and write the bound nodes of selections."""
    matched, queries = int32s(state, WORK.matched), int32s(state, PLANS.selection_queries)
    groups, bound = int64s(state, WORK.groups), int64s(state, WORK.bound)
    starts, counts = int64s(state, PLANS.query_starts), int64s(state, PLANS.query_counts)
    bits = uint64s(state, WORK.is_answer)
    used = 0
    for place in range(state[MATCHED_USED]):
        selection = np.int64(matched[place])
        start = starts[selection]
        for at in range(start, start + counts[selection]):
            query = np.int64(queries[at])
            bits[query >> 6] |= U(1) << U(query & 63)
        int64s(state, WORK.bound_from)[selection] = used
        group = int64s(state, WORK.selection_first)[selection]
        while group >= 0:
            bound[used] = groups[2 * group]  # there is as much room as for groups
            used += 1
            group = groups[2 * group + 1]
        int64s(state, WORK.bound_to)[selection] = used
    state[BOUND_USED] = used


@called
def write_answers(state: Int64) -> int:
    """Write an answer for each bit that is set, ascending, and clear them."""
    bits, live = uint64s(state, WORK.is_answer), uint64s(state, PLANS.is_live)
    answers, answer_paths = int32s(state, WORK.answers), int64s(state, WORK.answer_paths)
    group_starts, group_ends = int64s(state, WORK.group_starts), int64s(state, WORK.group_ends)
    selections, paths = int32s(state, PLANS.selection_of), int64s(state, PLANS.path_starts)
    bound_from, bound_to = int64s(state, WORK.bound_from), int64s(state, WORK.bound_to)
    answer = 0
    status = DONE
    for word in range(len(bits)):
        left = bits[word] & live[word]
        bits[word] = U(0)
        if answer + 64 > len(answers):
            state[FULL] = WORK.answers
            status = NO_ROOM
        while left != U(0) and status == DONE:
            query = 64 * word + first(left)
            left &= left - U(1)
            selection = np.int64(selections[query])
            answers[answer], answer_paths[answer] = query, paths[query]
            group_starts[answer], group_ends[answer] = bound_from[selection], bound_to[selection]
            answer += 1
    state[ANSWERS_USED] = answer
    return status


@called
def write_lists(state: Int64) -> int:
    """Write all lists, path after path, and for each by bound node."""
    slots = int64s(state, WORK.lists_of)
    first_list, is_bound = int64s(state, WORK.first_list), uint8s(state, WORK.is_bound)
    of_path, path_at = int64s(state, WORK.of_path), int64s(state, WORK.path_at)
    list_bound = int64s(state, WORK.list_bound)
    sources = len(int32s(state, CONSTANTS.sources)) // SOURCE
    if state[LIST_KEYS] > len(list_bound):
        state[FULL] = WORK.list_bound
        return NO_ROOM
    if state[PAIRS_USED] > len(int64s(state, WORK.nodes)):
        state[FULL] = WORK.nodes
        return NO_ROOM
    for source in range(sources + 1):
        of_path[source] = 0
    for event in range(state[EVENTS]):
        slot = first_list[event] if is_bound[event] else np.int64(NONE)
        while slot >= 0:
            of_path[slots[slot + 4] + 1] += 1
            slot = slots[slot + 5]
    for source in range(sources):
        path_at[source] = of_path[source]
        of_path[source + 1] += of_path[source]
    for event in range(state[EVENTS]):
        slot = first_list[event] if is_bound[event] else np.int64(NONE)
        while slot >= 0:
            number = path_at[slots[slot + 4]]
            path_at[slots[slot + 4]] += 1
            list_bound[number] = event
            write_list(state, number, slots[slot + 2])
            slot = slots[slot + 5]
    return DONE


@called
def write_list(state: Int64, number: int, pair: int) -> None:
    """Write the nodes of a list, which are chained from a pair on; there is room for all pairs.

    They are in document order, but for the text of elements in each other.
    """
    pairs, nodes = int64s(state, WORK.pairs), int64s(state, WORK.nodes)
    begin = used = state[NODES_USED]
    while pair >= 0:
        nodes[used] = pairs[2 * pair]
        if used > begin and nodes[used - 1] > nodes[used]:
            state[IS_UNORDERED] = 1
        used += 1
        pair = pairs[2 * pair + 1]
    int64s(state, WORK.list_starts)[number], int64s(state, WORK.list_ends)[number] = begin, used
    state[NODES_USED] = used
