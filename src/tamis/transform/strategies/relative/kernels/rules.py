"""From what is true of each bound node to the selections that hold there."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import called
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.matching.engines.nfa.layout import OCCURRENCE, START, STATE
from tamis.transform.strategies.relative.kernels.climbing import ALL_LEVELS, climb
from tamis.transform.strategies.relative.kernels.hits import add_hits
from tamis.transform.strategies.relative.layout import (
    DOCUMENT,
    FRONTIER_FROM,
    GROUPS_USED,
    LEAF_COUNT,
    LEAF_FIRST,
    MATCHED_USED,
    PLANS,
    ROWS,
    RULE,
    RULE_BINDING,
    RULE_LEAVES,
    RULE_NEXT,
    RULE_NEXT_OF_LEAF,
    RULE_SELECTION,
    RULE_TESTS,
    SERIAL,
    SOURCE_LEVEL,
    SOURCE_NEXT,
    WORK,
)
from tamis.transform.strings.kernels.tables import hash_of_key, next_slot, pair_key
from tamis.transform.strings.kernels.values import find_leaves
from tamis.transform.strings.layout import CONSTANTS, DONE, FULL, LEAF, NO_ROOM, NONE, READ, SOURCE


@called
def select(state: Int64) -> int:
    """Find the selections that hold at each bound node, node after node."""
    rows = int64s(state, READ.rows)
    is_bound = uint8s(state, WORK.is_bound)
    row, last = 0, state[ROWS]
    while row < last:
        event = rows[row * OCCURRENCE + START]
        end = row + 1
        while end < last and rows[end * OCCURRENCE + START] == event:
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
    binding_stamp, binding_row = (
        int64s(state, WORK.binding_stamp),
        int64s(state, WORK.binding_row),
    )
    state[SERIAL] += 1
    stamp = state[SERIAL]
    bindings = 0
    status = DONE
    for row in range(first, end):
        binding = rows[row * OCCURRENCE + STATE]
        if is_binding[binding] and status == DONE:
            binding_stamp[binding], binding_row[binding] = stamp, row
            bindings += 1
            status = look_above(state, event, row, binding)
    if status == DONE:
        stamp_leaves(state, event, stamp)
        for row in range(first, end):
            binding = rows[row * OCCURRENCE + STATE]
            if is_binding[binding] and status == DONE:
                rule = np.int64(int32s(state, PLANS.first_rule)[binding])
                status = try_rules(state, event, stamp, rule, RULE_NEXT)
    if status == DONE:
        status = follow_leaves(state, event, stamp, bindings, first, end)
    return status


@called
def look_above(state: Int64, event: int, row: int, binding: int) -> int:
    """Note what is true of a bound node because of tests of elements around it."""
    rows, frontier = int64s(state, READ.rows), int64s(state, WORK.frontier)
    sources = int32s(state, CONSTANTS.sources)
    source = np.int64(int32s(state, PLANS.first_above)[binding])
    while source >= 0:
        count = climb(state, row, NONE, np.int64(sources[source * SOURCE + SOURCE_LEVEL]))
        if count < 0:
            return -count
        first = state[FRONTIER_FROM]
        for place in range(first, first + count):
            above = rows[frontier[place] * OCCURRENCE + START]
            found = find_leaves(state, source, above)
            if found < 0:
                return -found
            if found > 0 and not add_hits(state, event, found):
                return NO_ROOM
        source = np.int64(sources[source * SOURCE + SOURCE_NEXT])
    return DONE


@called
def stamp_leaves(state: Int64, event: int, stamp: int) -> None:
    """Stamp the leaves that are true of a node."""
    hits, stamps = int64s(state, WORK.hits), int64s(state, WORK.leaf_stamp)
    hit = int64s(state, WORK.first_hit)[event]
    while hit >= 0:
        stamps[hits[2 * hit]] = 2 * stamp
        hit = hits[2 * hit + 1]


@called
def follow_leaves(state: Int64, event: int, stamp: int, bindings: int, first: int, end: int) -> int:
    """Try the rules of the leaves that are true of a node, each leaf once."""
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
        if leaves[leaf * LEAF + LEAF_COUNT] <= bindings:
            rule = np.int64(leaves[leaf * LEAF + LEAF_FIRST])
            status = try_rules(state, event, stamp, rule, RULE_NEXT_OF_LEAF)
            continue
        for row in range(first, end):
            binding = rows[row * OCCURRENCE + STATE]
            if is_binding[binding] and status == DONE:
                key = hash_of_key(pair_key(binding, leaf))
                slot = next_slot(pairs, key, NONE)
                if pairs[2 * slot] != 0:
                    status = try_rules(state, event, stamp, pairs[2 * slot + 1], RULE_NEXT)
    return status


@called
def try_rules(state: Int64, event: int, stamp: int, rule: int, following: int) -> int:
    """Try a chain of rules at a node."""
    rules = int32s(state, PLANS.rules)
    while rule >= 0:
        found = applies(state, stamp, rule)
        if found < 0:
            return -found
        if found and not add_group(state, np.int64(rules[rule * RULE + RULE_SELECTION]), event):
            return NO_ROOM
        rule = np.int64(rules[rule * RULE + following])
    return DONE


@called
def applies(state: Int64, stamp: int, rule: int) -> int:
    """Whether all of a rule is true of the present node: 1, 0, or a status, negated."""
    rules, listed = int32s(state, PLANS.rules), int32s(state, PLANS.rule_leaves)
    binding = np.int64(rules[rule * RULE + RULE_BINDING])
    if int64s(state, WORK.binding_stamp)[binding] != stamp:
        return 0
    place = np.int64(rules[rule * RULE + RULE_LEAVES])
    if place != NONE:
        stamps = int64s(state, WORK.leaf_stamp)
        while listed[place] != NONE:
            if stamps[listed[place]] < 2 * stamp:
                return 0
            place += 1
    tests = np.int64(rules[rule * RULE + RULE_TESTS])
    if tests == NONE:
        return 1
    found = climb(state, int64s(state, WORK.binding_row)[binding], tests, ALL_LEVELS)
    return min(found, 1)


@called
def add_group(state: Int64, selection: int, event: int) -> bool:
    """A selection holds at a node; False if there is no room to note it."""
    groups = int64s(state, WORK.groups)
    stamps, nodes = int64s(state, WORK.selection_stamp), int64s(state, WORK.selection_node)
    last = int64s(state, WORK.selection_last)
    used = state[GROUPS_USED]
    if stamps[selection] != state[DOCUMENT]:
        if 2 * used + 2 > len(groups):
            state[FULL] = WORK.groups
            return False
        stamps[selection] = state[DOCUMENT]
        int32s(state, WORK.matched)[state[MATCHED_USED]] = selection  # there are as many places
        state[MATCHED_USED] += 1
        int64s(state, WORK.selection_first)[selection] = used
    elif nodes[selection] == event:
        return True
    else:
        if 2 * used + 2 > len(groups):
            state[FULL] = WORK.groups
            return False
        groups[2 * last[selection] + 1] = used
    nodes[selection] = event
    groups[2 * used], groups[2 * used + 1] = event, NONE
    last[selection] = used
    state[GROUPS_USED] = used + 1
    return True
