"""What is true of bound nodes, and what is in their lists: each end is looked at once for all."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import called
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.documents.batch import ATTRIBUTE as ATTRIBUTE_NODE
from tamis.documents.batch import ELEMENT, KIND_BITS
from tamis.documents.batch import TEXT as TEXT_NODE
from tamis.matching.engines.nfa.layout import OCCURRENCE, START, STATE
from tamis.transform.shapes import ATTRIBUTE, VALUE
from tamis.transform.strategies.relative.kernels.climbing import ALL_LEVELS, climb
from tamis.transform.strategies.relative.layout import (
    DOCUMENT,
    FRONTIER_FROM,
    HITS_USED,
    LIST_KEYS,
    LIST_SLOT,
    PAIRS_USED,
    PLANS,
    ROWS,
    SOURCE_LISTED,
    SOURCE_NEXT,
    SOURCE_TESTS,
    WORK,
)
from tamis.transform.strings.kernels.tables import pair_key, slot_of_key
from tamis.transform.strings.kernels.values import (
    find_leaves,
    first_string,
    name_of,
    next_string,
)
from tamis.transform.strings.layout import (
    CONSTANTS,
    DONE,
    EVENTS,
    FULL,
    NO_ROOM,
    NODES,
    NONE,
    READ,
    SOURCE,
    SOURCE_KIND,
    SOURCE_NAME,
)


@called
def mark_bound(state: Int64) -> None:
    """Mark the elements that some binding path leads to."""
    rows, is_binding = int64s(state, READ.rows), uint8s(state, PLANS.is_binding)
    is_bound, first_hit = uint8s(state, WORK.is_bound), int64s(state, WORK.first_hit)
    first_list = int64s(state, WORK.first_list)
    for event in range(state[EVENTS]):
        is_bound[event] = 0
        first_hit[event] = first_list[event] = NONE
    for row in range(state[ROWS]):
        if is_binding[rows[row * OCCURRENCE + STATE]]:
            is_bound[rows[row * OCCURRENCE + START]] = 1


@called
def find_hits(state: Int64) -> int:
    """Look at the ends of all paths: what is true of which bound nodes, and what is listed."""
    rows, source_of = int64s(state, READ.rows), int32s(state, PLANS.source_of)
    sources = int32s(state, CONSTANTS.sources)
    for row in range(state[ROWS]):
        source = np.int64(source_of[rows[row * OCCURRENCE + STATE]])
        has_climbed, count = False, 0
        while source >= 0:
            tests = np.int64(sources[source * SOURCE + SOURCE_TESTS])
            if tests != NONE or not has_climbed:
                count = climb(state, row, tests, ALL_LEVELS)
                count = keep_bound(state, count)
                has_climbed = tests == NONE
            if count > 0:
                count_or_status = look_at(state, source, rows[row * OCCURRENCE + START], count)
                if count_or_status < 0:
                    return -count_or_status
            elif count < 0:
                return -count
            source = np.int64(sources[source * SOURCE + SOURCE_NEXT])
    return DONE


@called
def keep_bound(state: Int64, count: int) -> int:
    """Keep those of the frontier that are bound: how many there are."""
    rows, frontier = int64s(state, READ.rows), int64s(state, WORK.frontier)
    is_bound = uint8s(state, WORK.is_bound)
    first = state[FRONTIER_FROM]
    end = first
    for place in range(first, first + count):
        row = frontier[place]
        if is_bound[rows[row * OCCURRENCE + START]]:
            frontier[end] = row
            end += 1
    return end - first if count > 0 else count


@called
def look_at(state: Int64, source: int, event: int, count: int) -> int:
    """Note what an end tells of the bound nodes in the frontier; 0, or a status, negated."""
    rows, frontier = int64s(state, READ.rows), int64s(state, WORK.frontier)
    found = find_leaves(state, source, event)
    if found < 0:
        return found
    first = state[FRONTIER_FROM]
    if found > 0:
        for place in range(first, first + count):
            if not add_hits(state, rows[frontier[place] * OCCURRENCE + START], found):
                return -NO_ROOM
    if int32s(state, CONSTANTS.sources)[source * SOURCE + SOURCE_LISTED]:
        for place in range(first, first + count):
            if not add_nodes(state, source, event, rows[frontier[place] * OCCURRENCE + START]):
                return -NO_ROOM
    return 0


@called
def add_hits(state: Int64, bound: int, count: int) -> bool:
    """Note that the leaves that were found are true of a bound node; False if there is no room."""
    hits, first_hit = int64s(state, WORK.hits), int64s(state, WORK.first_hit)
    leaves = int32s(state, NODES.found_leaves)
    used = state[HITS_USED]
    if 2 * (used + count) > len(hits):
        state[FULL] = WORK.hits
        return False
    for place in range(count):
        hits[2 * used], hits[2 * used + 1] = np.int64(leaves[place]), first_hit[bound]
        first_hit[bound] = used
        used += 1
    state[HITS_USED] = used
    return True


@called
def add_nodes(state: Int64, source: int, event: int, bound: int) -> bool:
    """Append the nodes of an end to a list of a bound node; False if there is no room."""
    sources = int32s(state, CONSTANTS.sources)
    kind = np.int64(sources[source * SOURCE + SOURCE_KIND])
    if kind == VALUE:
        return add_node(state, source, bound, event << KIND_BITS | ELEMENT)
    name = name_of(state, np.int64(sources[source * SOURCE + SOURCE_NAME]))
    if name == -2:
        return True
    node_kind = ATTRIBUTE_NODE if kind == ATTRIBUTE else TEXT_NODE
    number = next_string(state, kind, name, event, first_string(state, kind, event))
    while number != NONE:
        if not add_node(state, source, bound, number << KIND_BITS | node_kind):
            return False
        number = next_string(state, kind, name, event, number + 1)
    return True


@called
def add_node(state: Int64, source: int, bound: int, place: int) -> bool:
    """Append a node to a list; False if there is no room."""
    pairs, slots = int64s(state, WORK.pairs), int64s(state, WORK.lists_of)
    used = state[PAIRS_USED]
    if 2 * used + 2 > len(pairs):
        state[FULL] = WORK.pairs
        return False
    slot = slot_of_key(slots, LIST_SLOT, pair_key(bound, source), state[DOCUMENT])
    pairs[2 * used], pairs[2 * used + 1] = place, NONE
    if slots[slot + 1] == state[DOCUMENT]:
        pairs[2 * slots[slot + 3] + 1] = used
    else:
        if 2 * LIST_SLOT * (state[LIST_KEYS] + 1) > len(slots):
            state[FULL] = WORK.lists_of
            return False
        state[LIST_KEYS] += 1
        slots[slot], slots[slot + 1] = pair_key(bound, source), state[DOCUMENT]
        slots[slot + 2], slots[slot + 4] = used, source
        slots[slot + 5] = int64s(state, WORK.first_list)[bound]
        int64s(state, WORK.first_list)[bound] = slot
    slots[slot + 3] = used
    state[PAIRS_USED] = used + 1
    return True
