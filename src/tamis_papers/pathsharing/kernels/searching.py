"""Where-Filter and Return-Select: paths are searched for in the tree below each bound node.

One walk over the events of a subtree follows all steps of a path at once: a bit of a word says that
the steps up to one lead to an element. So nodes are found in document order, and none twice.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import called
from tamis.core.kernel.record import int32s, int64s
from tamis.language.filters import ANY
from tamis.transform.kernels import holds, node_passes, tests_before
from tamis.transform.layout import DONE, NODES, NONE, READ
from tamis_papers.pathsharing.kernels.grouping import (
    add_node,
    begin_path,
    end_group_list,
    write_bound,
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
    ARGUMENT,
    LEFT,
    LISTED_USED,
    NO_ROOM,
    OPERATOR,
    PLANS,
    QUERIES,
    SEARCH,
    SEARCH_CODES,
    SEARCH_COMPARISON,
    SEARCH_STEPS,
    SEARCH_TESTS,
    WORK,
)


@called
def filter_where(state: Int64, operator: int) -> int:
    """Where-Filter: the tuples below whose bound node all searches find something."""
    operators, pool = int32s(state, PLANS.operators), int64s(state, WORK.pool)
    searched = int32s(state, PLANS.searched)
    row = operator * OPERATOR
    left = np.int64(operators[row + LEFT])
    begin_list(state, operator)
    for place in range(list_start(state, left), list_end(state, left)):
        at = np.int64(operators[row + ARGUMENT])
        found = 1
        while found > 0 and searched[at] != NONE:
            found = search(state, np.int64(searched[at]), node_of(state, pool[place], 0), False)
            at += 1
        if found < 0:
            return -found
        if found > 0 and not emit(state, pool[place]):
            return NO_ROOM
    end_list(state, operator)
    return DONE


@called
def select_return(state: Int64, operator: int) -> int:
    """Return-Select: a group for each tuple, and its lists, path after path."""
    operators, pool = int32s(state, PLANS.operators), int64s(state, WORK.pool)
    searched = int32s(state, PLANS.searched)
    row = operator * OPERATOR
    left = np.int64(operators[row + LEFT])
    at = np.int64(operators[row + ARGUMENT])
    status = write_bound(state, left)
    int64s(state, WORK.listed_from)[operators[row + QUERIES]] = state[LISTED_USED]
    while status == DONE and searched[at] != NONE:
        if not begin_path(state):
            return NO_ROOM
        for place in range(list_start(state, left), list_end(state, left)):
            bound = node_of(state, pool[place], 0)
            found = search(state, np.int64(searched[at]), bound, True)
            if found < 0:
                return -found
            if found > 0 and not end_group_list(state, bound, found):
                return NO_ROOM
        at += 1
    return status


@called
def search(state: Int64, number: int, bound: int, is_listed: bool) -> int:
    """Search below a bound node, for the first node alone or to list them all.

    Returns:
        How many there are (1 if they are not listed), or a status, negated.
    """
    searches = int32s(state, PLANS.searches)
    row = number * SEARCH
    steps, tests = np.int64(searches[row + SEARCH_STEPS]), np.int64(searches[row + SEARCH_TESTS])
    passed = own_passes(state, bound, tests, steps)
    if passed <= 0:
        return passed
    own, open = int64s(state, WORK.own_states), int64s(state, WORK.open_states)
    ends, parents = int64s(state, NODES.ends), int64s(state, NODES.parents)
    tags = int32s(state, READ.tags)
    descending = descending_states(state, row, steps)
    own[bound], open[bound] = 1, 1 & descending
    found = take(state, row, bound, is_listed) if steps == 0 else 0
    event = bound + 1
    while event < ends[bound] and steps > 0 and found >= 0 and (is_listed or found == 0):
        if tags[event] >= 0:
            around = parents[event]
            states = step_states(state, row, event, own[around], open[around])
            if states < 0:
                return states
            own[event] = states
            open[event] = open[around] | states & descending
            if states >> steps & 1:
                taken = take(state, row, event, is_listed)
                found = taken if taken < 0 else found + taken
            if own[event] == 0 and open[event] == 0:
                event = ends[event]
        event += 1
    return found


@called
def own_passes(state: Int64, bound: int, tests: int, steps: int) -> int:
    """Whether the bound node passes its own tests, which are behind those of all steps."""
    if tests == NONE:
        return 1
    for _step in range(steps):
        tests = tests_before(state, tests)
    return node_passes(state, bound, tests)


@called
def descending_states(state: Int64, row: int, steps: int) -> int:
    """The states from which a step leads to descendants."""
    codes = int32s(state, PLANS.codes)
    first = np.int64(int32s(state, PLANS.searches)[row + SEARCH_CODES])
    found = np.int64(0)
    for step in range(steps):
        if codes[first + step] & 1:
            found |= np.int64(1) << step
    return found


@called
def step_states(state: Int64, row: int, event: int, own: int, open: int) -> int:
    """The states that an element reaches from those around it, or a status, negated."""
    searches, codes = int32s(state, PLANS.searches), int32s(state, PLANS.codes)
    first, steps = np.int64(searches[row + SEARCH_CODES]), np.int64(searches[row + SEARCH_STEPS])
    tests = np.int64(searches[row + SEARCH_TESTS])
    tag = int32s(state, READ.tags)[event]
    label, of_all = int32s(state, PLANS.labels)[tag], int32s(state, PLANS.namespace_labels)[tag]
    found = np.int64(0)
    for back in range(steps):  # tests are listed from the last step on
        step = steps - 1 - back
        code = np.int64(codes[first + step])
        wanted = code >> 1
        states = open if code & 1 else own
        is_named = wanted == ANY or wanted == label or wanted == of_all  # noqa: PLR1714
        if states >> step & 1 and is_named:
            passed = node_passes(state, event, tests) if tests != NONE else 1
            if passed < 0:
                return passed
            found |= np.int64(passed) << (step + 1)
        if tests != NONE:
            tests = tests_before(state, tests)
    return found


@called
def take(state: Int64, row: int, event: int, is_listed: bool) -> int:
    """Take a node that was found: 1, or 0 if it does not compare so, or a status, negated."""
    comparison = np.int64(int32s(state, PLANS.searches)[row + SEARCH_COMPARISON])
    passed = holds(state, comparison, event) if comparison != NONE else 1
    if passed > 0 and is_listed and not add_node(state, event):
        return -NO_ROOM
    return passed
