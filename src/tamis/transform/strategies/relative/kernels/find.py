"""Which nodes a document has for whom: kernels in the order in which they look at it.

Functions that return a number or a truth value return a status negated where an array is full.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import called, inlined, kernel
from tamis.core.kernel.record import borrow, int32s, int64s, uint8s
from tamis.core.kernel.table import find_pair, pair
from tamis.documents import batch
from tamis.matching.engines.nfa import layout as nfa
from tamis.transform import layout as shared
from tamis.transform.kernels import strings
from tamis.transform.layout import CONSTANTS, DONE, LEAF, NODES, NONE, READ, SOURCE
from tamis.transform.shapes import ATTRIBUTE, VALUE
from tamis.transform.strategies.relative import layout as at
from tamis.transform.strategies.relative.kernels import lists
from tamis.transform.strategies.relative.layout import PLANS, WORK


@kernel
def find_groups(state: Int64) -> int:
    """Find the groups of all transformations in the document; returns a status."""
    for counted in range(at.HITS_USED, at.IS_UNORDERED + 1):
        state[counted] = 0
    state[at.DOCUMENT] += 1
    strings.index_events(state)
    status = find_hits(state)
    if status == DONE:
        status = select(state)
    if status == DONE:
        lists.mark_answers(state)
        status = lists.write_answers(state)
    if status == DONE and state[at.ANSWERS_USED] > 0:
        status = lists.write_lists(state)
    return status


@kernel
def find_one(state: Int64) -> int:
    """The same for a document that is borrowed; it returns ``REFUSED`` where Python is needed."""
    borrow(state, at.ONE.recorded, at.ONE.places)
    borrow(state, at.ONE.nfa, at.ONE.nfa_places)
    events, rows = state[READ.tags + 1], int64s(state, at.ONE.nfa)[nfa.OCCURRENCES_USED]
    has_room = events + 2 <= len(int64s(state, NODES.ends))
    if not has_room or rows > len(int64s(state, WORK.row_stamp)):
        return at.REFUSED
    state[shared.EVENTS], state[at.ROWS], state[shared.LONG_KNOWN] = events, rows, 0
    status = find_groups(state)
    is_unread = state[shared.LONG_FOUND] > 0 or state[at.IS_UNORDERED]
    return at.REFUSED if status != DONE or is_unread else DONE


@inlined
def start_of(rows: Int64, row: int) -> int:
    """The start event of an occurrence's element."""
    return rows[row * nfa.OCCURRENCE + nfa.START]


@inlined
def state_of(rows: Int64, row: int) -> int:
    """The NFA's state that an occurrence is of."""
    return rows[row * nfa.OCCURRENCE + nfa.STATE]


# -- from an occurrence back to those of a path's earlier steps ------------------------------------


@called
def climb(state: Int64, row: int, tests: int, levels: int) -> int:
    """Follow an occurrence back, to the first step of its path or ``levels`` steps: to how many.

    All on the way have to pass the tests. The occurrences that it leads to are in ``frontier``,
    from ``FRONTIER_FROM`` on, innermost first. Tuples of all steps may be exponentially many; the
    occurrences of each step are at most as many as there are elements around.
    """
    rows, records = int64s(state, READ.rows), int32s(state, READ.records)
    frontier = int64s(state, WORK.frontier)
    state[at.SERIAL] += 1
    first, last = 0, 1
    frontier[0] = row
    if tests != NONE:
        found = strings.node_passes(state, start_of(rows, row), tests)
        if found <= 0:
            return found
        tests = strings.tests_before(state, tests)
    reached = state_of(rows, row)
    while levels > 0 and last > first and records[reached * nfa.RECORD + nfa.PARENT] > 0:
        descends = records[reached * nfa.RECORD + nfa.CODE] & 1
        end = last
        for index in range(first, last):
            above = rows[frontier[index] * nfa.OCCURRENCE + nfa.ABOVE]
            end = climb_from(state, above, descends, tests, end)
            if end < 0:
                return end
        first, last = last, end
        reached = np.int64(records[reached * nfa.RECORD + nfa.PARENT])
        levels -= 1
        if tests != NONE:
            tests = strings.tests_before(state, tests)
    state[at.FRONTIER_FROM] = first
    return last - first


@called
def climb_from(state: Int64, above: int, descends: int, tests: int, end: int) -> int:
    """Append an occurrence, and for a descendant step all further out: where the frontier ends."""
    rows, stamps = int64s(state, READ.rows), int64s(state, WORK.row_stamp)
    frontier = int64s(state, WORK.frontier)
    serial = state[at.SERIAL]
    while above >= 0 and stamps[above] != serial:  # else all further out are stamped, too
        stamps[above] = serial
        found = 1 if tests == NONE else strings.node_passes(state, start_of(rows, above), tests)
        if found < 0:
            return found
        if found:
            if end == len(frontier):
                return -WORK.frontier
            frontier[end] = above
            end += 1
        if not descends:
            break
        above = rows[above * nfa.OCCURRENCE + nfa.OUTER]
    return end


# -- what is true of bound nodes, and what is in their lists ---------------------------------------


@called
def find_hits(state: Int64) -> int:
    """Mark the elements that binding paths lead to, and look at the ends of all relative paths."""
    rows, source_of = int64s(state, READ.rows), int32s(state, PLANS.source_of)
    is_bound, is_binding = uint8s(state, WORK.is_bound), uint8s(state, PLANS.is_binding)
    first_hit, first_list = int64s(state, WORK.first_hit), int64s(state, WORK.first_list)
    sources = int32s(state, CONSTANTS.sources)
    for event in range(state[shared.EVENTS]):
        is_bound[event] = 0
        first_hit[event] = first_list[event] = NONE
    for row in range(state[at.ROWS]):
        if is_binding[state_of(rows, row)]:
            is_bound[start_of(rows, row)] = 1
    for row in range(state[at.ROWS]):
        source = np.int64(source_of[state_of(rows, row)])
        has_climbed, count = False, 0
        while source >= 0:
            tests = np.int64(sources[source * SOURCE + at.SOURCE_TESTS])
            if tests != NONE or not has_climbed:
                count = climb(state, row, tests, at.ALL_LEVELS)
                if count < 0:
                    return -count
                count = keep_bound(state, count)
                has_climbed = tests == NONE
            if count > 0:
                status = look_at(state, source, start_of(rows, row), count)
                if status != DONE:
                    return status
            source = np.int64(sources[source * SOURCE + at.SOURCE_NEXT])
    return DONE


@called
def keep_bound(state: Int64, count: int) -> int:
    """Keep the bound nodes of the ``count`` in the frontier: how many there are."""
    rows, frontier = int64s(state, READ.rows), int64s(state, WORK.frontier)
    is_bound = uint8s(state, WORK.is_bound)
    begin = end = state[at.FRONTIER_FROM]
    for index in range(begin, begin + count):
        frontier[end] = frontier[index]
        end += is_bound[start_of(rows, frontier[index])]
    return end - begin


@called
def look_at(state: Int64, source: int, event: int, count: int) -> int:
    """Add hits and nodes of an end to the bound nodes in the frontier; returns a status."""
    rows, frontier = int64s(state, READ.rows), int64s(state, WORK.frontier)
    found = strings.find_leaves(state, source, event)
    if found < 0:
        return -found
    is_listed = int32s(state, CONSTANTS.sources)[source * SOURCE + at.SOURCE_LISTED] > 0
    if found == 0 and not is_listed:
        return DONE
    first = state[at.FRONTIER_FROM]
    status = DONE
    for index in range(first, first + count):
        bound = start_of(rows, frontier[index])
        if status == DONE:
            status = add_hits(state, bound, found)
        if is_listed and status == DONE:
            status = add_nodes(state, source, event, bound)
    return status


@called
def add_hits(state: Int64, bound: int, count: int) -> int:
    """Add the ``count`` leaves that were found to those of a bound node; returns a status."""
    if count < 0:
        return -count
    hits, first_hit = int64s(state, WORK.hits), int64s(state, WORK.first_hit)
    leaves = int32s(state, NODES.found_leaves)
    used = state[at.HITS_USED]
    if 2 * (used + count) > len(hits):
        return WORK.hits
    for index in range(count):
        hits[2 * used], hits[2 * used + 1] = np.int64(leaves[index]), first_hit[bound]
        first_hit[bound] = used
        used += 1
    state[at.HITS_USED] = used
    return DONE


@called
def add_nodes(state: Int64, source: int, event: int, bound: int) -> int:
    """Append the nodes of an end to a list of a bound node; returns a status."""
    sources = int32s(state, CONSTANTS.sources)
    kind = np.int64(sources[source * SOURCE + shared.SOURCE_KIND])
    if kind == VALUE:
        return add_node(state, source, bound, event << batch.KIND_BITS | batch.ELEMENT)
    name = strings.name_of(state, np.int64(sources[source * SOURCE + shared.SOURCE_NAME]))
    if name == shared.NO_NAME:
        return DONE
    node_kind = batch.ATTRIBUTE if kind == ATTRIBUTE else batch.TEXT
    number = strings.next_string(state, kind, name, event, strings.first_string(state, kind, event))
    status = DONE
    while number != NONE and status == DONE:
        status = add_node(state, source, bound, number << batch.KIND_BITS | node_kind)
        number = strings.next_string(state, kind, name, event, number + 1)
    return status


@called
def add_node(state: Int64, source: int, bound: int, node_ref: int) -> int:
    """Append a node to a list; returns a status."""
    pairs, slots = int64s(state, WORK.pairs), int64s(state, WORK.lists_of)
    used = state[at.PAIRS_USED]
    if 2 * used + 2 > len(pairs):
        return WORK.pairs
    key = pair(bound, source)
    slot = strings.find_stamped(slots, at.LIST_SLOT, key, state[at.DOCUMENT])
    pairs[2 * used], pairs[2 * used + 1] = node_ref, NONE
    if slots[slot + 1] == state[at.DOCUMENT]:
        pairs[2 * slots[slot + 3] + 1] = used
    else:
        if 2 * at.LIST_SLOT * (state[at.LIST_KEYS] + 1) > len(slots):
            return WORK.lists_of
        state[at.LIST_KEYS] += 1
        slots[slot], slots[slot + 1] = key, state[at.DOCUMENT]
        slots[slot + 2], slots[slot + 4] = used, source
        slots[slot + 5] = int64s(state, WORK.first_list)[bound]
        int64s(state, WORK.first_list)[bound] = slot
    slots[slot + 3] = used
    state[at.PAIRS_USED] = used + 1
    return DONE


# -- from what is true of a bound node to selections -----------------------------------------------


@called
def select(state: Int64) -> int:
    """Find the selections that hold at each bound node, node after node; returns a status."""
    rows = int64s(state, READ.rows)
    is_bound = uint8s(state, WORK.is_bound)
    row, last = 0, state[at.ROWS]
    while row < last:
        event = start_of(rows, row)
        end = row + 1
        while end < last and start_of(rows, end) == event:
            end += 1
        if event >= 0 and is_bound[event]:
            status = select_at(state, event, row, end)
            if status != DONE:
                return status
        row = end
    return DONE


@called
def select_at(state: Int64, event: int, first: int, end: int) -> int:
    """Find the selections that hold at a bound node, whose occurrences are some rows."""
    rows, is_binding = int64s(state, READ.rows), uint8s(state, PLANS.is_binding)
    binding_stamp, binding_row = int64s(state, WORK.binding_stamp), int64s(state, WORK.binding_row)
    state[at.SERIAL] += 1
    stamp = state[at.SERIAL]
    bindings, status = 0, DONE
    for row in range(first, end):
        binding = state_of(rows, row)
        if is_binding[binding] and status == DONE:
            binding_stamp[binding], binding_row[binding] = stamp, row
            bindings += 1
            status = look_above(state, event, row, binding)
            if status == DONE:
                rule = np.int64(int32s(state, PLANS.first_rule)[binding])
                status = try_rules(state, event, stamp, rule, at.RULE_NEXT)
    if status == DONE:
        hits, leaf_stamp = int64s(state, WORK.hits), int64s(state, WORK.leaf_stamp)
        hit = int64s(state, WORK.first_hit)[event]
        while hit >= 0:
            leaf_stamp[hits[2 * hit]] = 2 * stamp
            hit = hits[2 * hit + 1]
        status = follow_leaves(state, event, stamp, bindings, first, end)
    return status


@called
def look_above(state: Int64, event: int, row: int, binding: int) -> int:
    """Add what is true of a bound node by tests of elements around it; returns a status."""
    rows, frontier = int64s(state, READ.rows), int64s(state, WORK.frontier)
    sources = int32s(state, CONSTANTS.sources)
    source = np.int64(int32s(state, PLANS.first_above)[binding])
    while source >= 0:
        count = climb(state, row, NONE, np.int64(sources[source * SOURCE + at.SOURCE_LEVEL]))
        if count < 0:
            return -count
        first = state[at.FRONTIER_FROM]
        for index in range(first, first + count):
            found = strings.find_leaves(state, source, start_of(rows, frontier[index]))
            status = add_hits(state, event, found)
            if status != DONE:
                return status
        source = np.int64(sources[source * SOURCE + at.SOURCE_NEXT])
    return DONE


@called
def follow_leaves(state: Int64, event: int, stamp: int, bindings: int, first: int, end: int) -> int:
    """Try the rules of the leaves that are true of a node, each leaf once; returns a status."""
    rows, is_binding = int64s(state, READ.rows), uint8s(state, PLANS.is_binding)
    hits, stamps = int64s(state, WORK.hits), int64s(state, WORK.leaf_stamp)
    leaves, pairs = int32s(state, CONSTANTS.leaves), int64s(state, PLANS.rule_pairs)
    hit = int64s(state, WORK.first_hit)[event]
    status = DONE
    while hit >= 0 and status == DONE:
        leaf = hits[2 * hit]
        hit = hits[2 * hit + 1]
        if stamps[leaf] != 2 * stamp:
            continue
        stamps[leaf] = 2 * stamp + 1
        if leaves[leaf * LEAF + at.LEAF_COUNT] <= bindings:
            rule = np.int64(leaves[leaf * LEAF + at.LEAF_FIRST])
            status = try_rules(state, event, stamp, rule, at.RULE_NEXT_OF_LEAF)
            continue
        for row in range(first, end):
            binding = state_of(rows, row)
            if is_binding[binding] and status == DONE:
                key = pair(binding, leaf)
                index = find_pair(pairs, key)
                if pairs[index] == key:
                    status = try_rules(state, event, stamp, pairs[index + 1], at.RULE_NEXT)
    return status


@called
def try_rules(state: Int64, event: int, stamp: int, rule: int, following: int) -> int:
    """Try a chain of rules at a node; returns a status."""
    rules = int32s(state, PLANS.rules)
    while rule >= 0:
        found = applies(state, stamp, rule)
        status = -found
        if found > 0:
            status = add_group(state, np.int64(rules[rule * at.RULE + at.RULE_SELECTION]), event)
        if status != DONE:
            return status
        rule = np.int64(rules[rule * at.RULE + following])
    return DONE


@called
def applies(state: Int64, stamp: int, rule: int) -> int:
    """Whether all of a rule is true of the present node."""
    rules, listed = int32s(state, PLANS.rules), int32s(state, PLANS.rule_leaves)
    binding = np.int64(rules[rule * at.RULE + at.RULE_BINDING])
    if int64s(state, WORK.binding_stamp)[binding] != stamp:
        return 0
    index = np.int64(rules[rule * at.RULE + at.RULE_LEAVES])
    if index != NONE:
        stamps = int64s(state, WORK.leaf_stamp)
        while listed[index] != NONE:
            if stamps[listed[index]] < 2 * stamp:
                return 0
            index += 1
    tests = np.int64(rules[rule * at.RULE + at.RULE_TESTS])
    if tests == NONE:
        return 1
    found = climb(state, int64s(state, WORK.binding_row)[binding], tests, at.ALL_LEVELS)
    return min(found, 1)


@called
def add_group(state: Int64, selection: int, event: int) -> int:
    """A selection holds at a node; returns a status."""
    groups = int64s(state, WORK.groups)
    stamps, nodes = int64s(state, WORK.selection_stamp), int64s(state, WORK.selection_node)
    last = int64s(state, WORK.selection_last)
    used = state[at.GROUPS_USED]
    is_first = stamps[selection] != state[at.DOCUMENT]
    if not is_first and nodes[selection] == event:
        return DONE
    if 2 * used + 2 > len(groups):
        return WORK.groups
    if is_first:
        stamps[selection] = state[at.DOCUMENT]
        int32s(state, WORK.matched)[state[at.MATCHED_USED]] = selection  # as long as selections
        state[at.MATCHED_USED] += 1
        int64s(state, WORK.selection_first)[selection] = used
    else:
        groups[2 * last[selection] + 1] = used
    nodes[selection] = event
    groups[2 * used], groups[2 * used + 1] = event, NONE
    last[selection] = used
    state[at.GROUPS_USED] = used + 1
    return DONE
