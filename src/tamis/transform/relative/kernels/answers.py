"""Writes down the groups of all transformations of a document; lists are shared by reference."""

from __future__ import annotations

import numpy as np

from tamis.arrays import int32s, int64s, uint64s
from tamis.documents.batch import Int64
from tamis.jit import called, kernel
from tamis.transform.relative.kernels.events import index_events
from tamis.transform.relative.kernels.hits import find_hits, mark_bound
from tamis.transform.relative.kernels.rules import select
from tamis.transform.relative.kernels.tables import pair_key, slot_of_key
from tamis.transform.relative.layout import (
    ANSWERS_USED,
    BOUND_USED,
    COLUMN_KEYS,
    COLUMN_SLOT,
    COLUMNS_USED,
    DOCUMENT,
    DONE,
    FULL,
    HITS_USED,
    LIST_COUNT,
    LIST_SLOT,
    LISTS_USED,
    MATCHED_USED,
    NO_ROOM,
    NODES_USED,
    NONE,
    PLANS,
    QUERY,
    QUERY_IS_LIVE,
    QUERY_NEXT,
    QUERY_PATHS,
    QUERY_PATHS_END,
    QUERY_SELECTION,
    WORK,
    Work,
)
from tamis.words import first

U = np.uint64
_FIELDS = {name: number for number, name in enumerate(Work._fields)}
_ANSWERS, _COLUMNS, _COLUMNS_OF = (
    _FIELDS["answers"],
    _FIELDS["columns"],
    _FIELDS["columns_of"],
)
_LISTS, _LIST_STARTS, _NODES = _FIELDS["lists"], _FIELDS["list_starts"], _FIELDS["nodes"]


@kernel
def find_groups(state: Int64) -> int:
    """Find the groups of all transformations in the document; a status of ``layout``."""
    for counted in range(HITS_USED, FULL):
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
    return status


@called
def mark_answers(state: Int64) -> None:
    """Set the bits of the queries that have groups, and write the bound nodes of selections."""
    matched, queries = int32s(state, WORK.matched), int32s(state, PLANS.queries)
    groups, bound = int64s(state, WORK.groups), int64s(state, WORK.bound)
    bits = uint64s(state, WORK.is_answer)
    for place in range(state[MATCHED_USED]):
        selection = np.int64(matched[place])
        query = np.int64(int32s(state, PLANS.first_query)[selection])
        is_asked = False
        while query >= 0:
            if queries[query * QUERY + QUERY_IS_LIVE]:
                is_asked = True
                bits[query >> 6] |= U(1) << U(query & 63)
            query = np.int64(queries[query * QUERY + QUERY_NEXT])
        used = state[BOUND_USED]
        int64s(state, WORK.bound_from)[selection] = used
        group = int64s(state, WORK.selection_first)[selection] if is_asked else NONE
        while group >= 0:
            bound[used] = groups[2 * group]  # there is as much room as for groups
            used += 1
            group = groups[2 * group + 1]
        int64s(state, WORK.bound_to)[selection] = used
        state[BOUND_USED] = used


@called
def write_answers(state: Int64) -> int:
    """Write an answer for each bit that is set, ascending, and clear them."""
    bits = uint64s(state, WORK.is_answer)
    state[LIST_COUNT] = 1  # list 0 is empty
    int64s(state, WORK.list_starts)[0] = int64s(state, WORK.list_starts)[1] = 0
    status = DONE
    for word in range(len(bits)):
        left = bits[word]
        bits[word] = U(0)
        while left != U(0) and status == DONE:
            status = write_answer(state, 64 * word + first(left))
            left &= left - U(1)
    return status


@called
def write_answer(state: Int64, query: int) -> int:
    """Write the groups of a transformation."""
    queries, paths = int32s(state, PLANS.queries), int32s(state, PLANS.paths)
    columns = int64s(state, WORK.columns)
    answer, column = state[ANSWERS_USED], state[COLUMNS_USED]
    selection = np.int64(queries[query * QUERY + QUERY_SELECTION])
    begin = np.int64(queries[query * QUERY + QUERY_PATHS])
    end = np.int64(queries[query * QUERY + QUERY_PATHS_END])
    if answer == len(int32s(state, WORK.answers)):
        state[FULL] = _ANSWERS
        return NO_ROOM
    if column + end - begin > len(columns):
        state[FULL] = _COLUMNS
        return NO_ROOM
    int32s(state, WORK.answers)[answer] = query
    int64s(state, WORK.column_starts)[answer] = column
    int64s(state, WORK.group_starts)[answer] = int64s(state, WORK.bound_from)[selection]
    int64s(state, WORK.group_ends)[answer] = int64s(state, WORK.bound_to)[selection]
    for place in range(begin, end):
        found = column_of(state, selection, np.int64(paths[place]))
        if found < 0:
            return NO_ROOM
        columns[column] = found
        column += 1
    state[ANSWERS_USED], state[COLUMNS_USED] = answer + 1, column
    return DONE


@called
def column_of(state: Int64, selection: int, source: int) -> int:
    """Where the lists of a source for a selection's nodes are; -1 if there is no room."""
    slots, lists = int64s(state, WORK.columns_of), int32s(state, WORK.lists)
    slot = slot_of_key(slots, COLUMN_SLOT, pair_key(selection, source), state[DOCUMENT])
    if slots[slot + 1] == state[DOCUMENT]:
        return slots[slot + 2]
    used = state[LISTS_USED]
    begin = int64s(state, WORK.bound_from)[selection]
    end = int64s(state, WORK.bound_to)[selection]
    if used + end - begin > len(lists):
        state[FULL] = _LISTS
        return -1
    if 2 * COLUMN_SLOT * (state[COLUMN_KEYS] + 1) > len(slots):
        state[FULL] = _COLUMNS_OF
        return -1
    state[COLUMN_KEYS] += 1
    slots[slot], slots[slot + 1] = pair_key(selection, source), state[DOCUMENT]
    slots[slot + 2] = used
    bound = int64s(state, WORK.bound)
    for group in range(begin, end):
        number = list_of(state, bound[group], source)
        if number < 0:
            return -1
        lists[used] = number
        used += 1
    column = state[LISTS_USED]
    state[LISTS_USED] = used
    return column


@called
def list_of(state: Int64, bound: int, source: int) -> int:
    """The number of a bound node's list, which is written if it is not; -1 if there is no room."""
    slots, pairs = int64s(state, WORK.lists_of), int64s(state, WORK.pairs)
    starts, nodes = int64s(state, WORK.list_starts), int64s(state, WORK.nodes)
    slot = slot_of_key(slots, LIST_SLOT, pair_key(bound, source), state[DOCUMENT])
    if slots[slot + 1] != state[DOCUMENT]:
        return 0
    if slots[slot + 4] > 0:
        return slots[slot + 4]
    number, used = state[LIST_COUNT], state[NODES_USED]
    if number + 1 >= len(starts):
        state[FULL] = _LIST_STARTS
        return -1
    pair = slots[slot + 2]
    begin = used
    while pair >= 0:
        if used == len(nodes):
            state[FULL] = _NODES
            return -1
        node = pairs[2 * pair]
        place = used
        while place > begin and nodes[place - 1] > node:  # text of elements in each other
            nodes[place] = nodes[place - 1]
            place -= 1
        nodes[place] = node
        used += 1
        pair = pairs[2 * pair + 1]
    starts[number + 1] = used
    slots[slot + 4] = number
    state[LIST_COUNT], state[NODES_USED] = number + 1, used
    return number
