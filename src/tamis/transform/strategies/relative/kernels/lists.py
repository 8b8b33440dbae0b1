"""Writes what was found as ``Groups``: answers, and lists that they share by reference."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import U, called
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import int32s, int64s, uint64s
from tamis.transform import layout as shared
from tamis.transform.layout import CONSTANTS, DONE, SOURCE
from tamis.transform.strategies.relative import layout as at
from tamis.transform.strategies.relative.layout import PLANS, WORK


@called
def mark_answers(state: Int64) -> None:
    """Set the bits of the queries that have groups, and write the bound nodes of selections."""
    matched, queries = int32s(state, WORK.matched), int32s(state, PLANS.selection_queries)
    groups, bound = int64s(state, WORK.groups), int64s(state, WORK.bound)
    starts, counts = int64s(state, PLANS.query_starts), int64s(state, PLANS.query_counts)
    bits = uint64s(state, WORK.is_answer)
    used = 0
    for index in range(state[at.MATCHED_USED]):
        selection = np.int64(matched[index])
        start = starts[selection]
        for listed in range(start, start + counts[selection]):
            query = np.int64(queries[listed])
            bits[query >> 6] |= U(1) << U(query & 63)
        int64s(state, WORK.bound_from)[selection] = used
        group = int64s(state, WORK.selection_first)[selection]
        while group >= 0:
            bound[used] = groups[2 * group]  # there is as much room as for groups
            used += 1
            group = groups[2 * group + 1]
        int64s(state, WORK.bound_to)[selection] = used
    state[at.BOUND_USED] = used


@called
def write_answers(state: Int64) -> int:
    """Write an answer for each bit that is set, ascending, and clear all; returns a status."""
    bits = uint64s(state, WORK.is_answer)
    answers, answer_paths = int32s(state, WORK.answers), int64s(state, WORK.answer_paths)
    group_starts, group_ends = int64s(state, WORK.group_starts), int64s(state, WORK.group_ends)
    selections, paths = int32s(state, PLANS.selection_of), int64s(state, PLANS.path_starts)
    bound_from, bound_to = int64s(state, WORK.bound_from), int64s(state, WORK.bound_to)
    answer = 0
    status = DONE
    for word in range(len(bits)):
        left = bits[word]
        bits[word] = U(0)
        if answer + 64 > len(answers):
            status = WORK.answers
        while left != U(0) and status == DONE:
            query = 64 * word + first(left)
            left &= left - U(1)
            selection = np.int64(selections[query])
            answers[answer], answer_paths[answer] = query, paths[query]
            group_starts[answer], group_ends[answer] = bound_from[selection], bound_to[selection]
            answer += 1
    state[at.ANSWERS_USED] = answer
    return status


@called
def write_lists(state: Int64) -> int:
    """Write all lists, path after path, and for each by bound node; returns a status.

    Lists are in document order, except for the text of elements in each other.
    """
    pairs, nodes = int64s(state, WORK.pairs), int64s(state, WORK.nodes)
    starts, ends = int64s(state, WORK.list_starts), int64s(state, WORK.list_ends)
    slots = int64s(state, WORK.lists_of)
    first_list, list_bound = int64s(state, WORK.first_list), int64s(state, WORK.list_bound)
    of_path, path_at = int64s(state, WORK.of_path), int64s(state, WORK.path_at)
    sources = len(int32s(state, CONSTANTS.sources)) // SOURCE
    if state[at.LIST_KEYS] > len(list_bound):
        return WORK.list_bound
    if state[at.PAIRS_USED] > len(nodes):
        return WORK.nodes
    of_path[: sources + 1] = 0
    for event in range(state[shared.EVENTS]):
        slot = first_list[event]
        while slot >= 0:
            of_path[slots[slot + 4] + 1] += 1
            slot = slots[slot + 5]
    for source in range(sources):
        path_at[source] = of_path[source]
        of_path[source + 1] += of_path[source]
    used = 0
    for event in range(state[shared.EVENTS]):
        slot = first_list[event]
        while slot >= 0:
            number = path_at[slots[slot + 4]]
            path_at[slots[slot + 4]] += 1
            list_bound[number] = event
            starts[number], link = used, slots[slot + 2]
            while link >= 0:
                nodes[used] = pairs[2 * link]
                if used > starts[number] and nodes[used - 1] > nodes[used]:
                    state[at.IS_UNORDERED] = 1
                used += 1
                link = pairs[2 * link + 1]
            ends[number] = used
            slot = slots[slot + 5]
    state[at.NODES_USED] = used
    return DONE
