"""OuterJoin-Select and GroupBy: tuples become lists of groups.

Where-Filter and Return-Select: paths are searched for in the tree below each bound node.

One walk over the events of a subtree follows all steps of a path at once: a bit of a word says that
the steps up to one lead to an element. So nodes are found in document order, and none twice.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import called, inlined
from tamis.core.kernel.record import int32s, int64s
from tamis.documents.batch import ELEMENT, KIND_BITS
from tamis.language.filters import WILDCARD
from tamis.transform import layout as base
from tamis.transform.kernels.strings import holds, node_passes, tests_before
from tamis_papers.pathsharing import layout as at
from tamis_papers.pathsharing.kernels.join import (
    add_to_chain,
    begin_list,
    emit,
    empty_table,
    end_list,
    first_of_chain,
    list_end,
    list_start,
    node_of,
)

# -- groups ----------------------------------------------------------------------------------------


# -- writing groups --------------------------------------------------------------------------------


@called
def write_bound(state: Int64, left: int) -> int:
    """Write the groups of all plans that read a list: one for each of its tuples."""
    bound, pool = int64s(state, at.WORK.bound), int64s(state, at.WORK.pool)
    stamps = int64s(state, at.WORK.bound_stamp)
    if stamps[left] == state[at.DOCUMENT]:
        return base.DONE
    used = state[at.BOUND_USED]
    first, last = list_start(state, left), list_end(state, left)
    if used + last - first > len(bound):
        state[at.FULL] = at.WORK.bound
        return at.NO_ROOM
    stamps[left] = state[at.DOCUMENT]
    int64s(state, at.WORK.bound_from)[left] = used
    for place in range(first, last):
        bound[used] = node_of(state, pool[place], 0)
        used += 1
    int64s(state, at.WORK.bound_to)[left] = used
    state[at.BOUND_USED] = used
    return base.DONE


@called
def refer(state: Int64, path: int) -> bool:
    """Append a path to those of a plan's groups; False if there is no room."""
    paths = int32s(state, at.WORK.paths)
    used = state[at.LISTED_USED]
    if used == len(paths):
        state[at.FULL] = at.WORK.paths
        return False
    paths[used] = path
    state[at.LISTED_USED] = used + 1
    return True


@called
def open_path(state: Int64) -> bool:
    """A path that has no lists yet; False if there is no room."""
    of_path = int64s(state, at.WORK.of_path)
    used = state[at.PATHS_USED]
    if used + 1 == len(of_path):
        state[at.FULL] = at.WORK.of_path
        return False
    of_path[used] = of_path[used + 1] = state[at.LISTS_USED]
    state[at.PATHS_USED] = used + 1
    return True


@called
def begin_path(state: Int64) -> bool:
    """A path of the plan's own."""
    return refer(state, state[at.PATHS_USED]) and open_path(state)


@inlined
def add_node(state: Int64, event: int) -> bool:
    """Append a node to a list; False if there is no room."""
    nodes = int64s(state, at.WORK.nodes)
    used = state[at.NODES_USED]
    if used == len(nodes):
        state[at.FULL] = at.WORK.nodes
        return False
    nodes[used] = event << KIND_BITS | ELEMENT
    state[at.NODES_USED] = used + 1
    return True


@called
def end_group_list(state: Int64, bound: int, count: int) -> bool:
    """The nodes added last are the list of a bound node; False if there is no room."""
    list_bound = int64s(state, at.WORK.list_bound)
    used = state[at.LISTS_USED]
    if used == len(list_bound):
        state[at.FULL] = at.WORK.list_bound
        return False
    list_bound[used] = bound
    int64s(state, at.WORK.list_starts)[used] = state[at.NODES_USED] - count
    int64s(state, at.WORK.list_ends)[used] = state[at.NODES_USED]
    state[at.LISTS_USED] = used + 1
    int64s(state, at.WORK.of_path)[state[at.PATHS_USED]] = used + 1
    return True


# -- operators -------------------------------------------------------------------------------------


@called
def outer_join(state: Int64, operator: int) -> int:
    """OuterJoin-Select: a group for each tuple of the left, with a list of each input.

    Where the inputs are GroupBys, there is nothing to join: their lists are there, by bound node.
    """
    operators, inputs = int32s(state, at.PLANS.operators), int32s(state, at.PLANS.inputs)
    row = operator * at.OPERATOR
    left = np.int64(operators[row + at.LEFT])
    position = np.int64(operators[row + at.ARGUMENT])
    status = write_bound(state, left)
    if operators[row + at.MODE] == at.GROUPED:
        return status
    int64s(state, at.WORK.listed_from)[operators[row + at.QUERIES]] = state[at.LISTED_USED]
    while status == base.DONE and inputs[position] != base.NONE:
        stream, levels = np.int64(inputs[position]), np.int64(inputs[position + 1])
        position += 2
        if not begin_path(state):
            status = at.NO_ROOM
        elif operators[row + at.MODE] == at.HASHED:
            status = list_by_hashing(state, left, stream, levels)
        else:
            status = list_by_merging(state, left, stream, levels)
    return status


@called
def group(state: Int64, operator: int) -> int:
    """GroupBy: the lists of a path, of all bound nodes, for all plans that have it.

    It is run with every document, so its path has the same number in all of them.
    """
    operators = int32s(state, at.PLANS.operators)
    row = operator * at.OPERATOR
    if not open_path(state):
        return at.NO_ROOM
    stream, levels = np.int64(operators[row + at.LEFT]), np.int64(operators[row + at.LEVELS])
    binding = np.int64(operators[row + at.RIGHT])
    if operators[row + at.MODE] == at.HASHED:
        return list_by_hashing(state, binding, stream, levels)
    return list_by_merging(state, binding, stream, levels)


@called
def list_by_merging(state: Int64, left: int, stream: int, levels: int) -> int:
    """The lists of the left's nodes, of a stream that ascends by bound node."""
    pool = int64s(state, at.WORK.pool)
    other, end = list_start(state, stream), list_end(state, stream)
    last = np.int64(base.NONE)
    for place in range(list_start(state, left), list_end(state, left)):
        bound = node_of(state, pool[place], 0)
        if bound == last:
            continue  # a stream of tuples, of which several have this node
        last = bound
        while other < end and node_of(state, pool[other], levels) < bound:
            other += 1
        count, node = 0, np.int64(base.NONE)
        while other < end and node_of(state, pool[other], levels) == bound:
            if node_of(state, pool[other], 0) != node:
                node = node_of(state, pool[other], 0)
                count += 1
                if not add_node(state, node):
                    return at.NO_ROOM
            other += 1
        if count > 0 and not end_group_list(state, bound, count):
            return at.NO_ROOM
    return base.DONE


@called
def list_by_hashing(state: Int64, left: int, stream: int, levels: int) -> int:
    """The same, of a stream without order."""
    pool, chain = int64s(state, at.WORK.pool), int64s(state, at.WORK.chain)
    empty_table(state)
    for place in range(list_start(state, stream), list_end(state, stream)):
        if not add_to_chain(state, node_of(state, pool[place], levels), pool[place]):
            return at.NO_ROOM
    last = np.int64(base.NONE)
    for place in range(list_start(state, left), list_end(state, left)):
        bound = node_of(state, pool[place], 0)
        if bound == last:
            continue
        last = bound
        link = first_of_chain(state, bound)
        count, node = 0, np.int64(base.NONE)
        while link >= 0:
            if node_of(state, chain[2 * link], 0) != node:
                node = node_of(state, chain[2 * link], 0)
                count += 1
                if not add_node(state, node):
                    return at.NO_ROOM
            link = chain[2 * link + 1]
        if count > 0 and not end_group_list(state, bound, count):
            return at.NO_ROOM
    return base.DONE


# -- searches in the tree --------------------------------------------------------------------------


@called
def filter_where(state: Int64, operator: int) -> int:
    """Where-Filter: the tuples below whose bound node all searches find something."""
    operators, pool = int32s(state, at.PLANS.operators), int64s(state, at.WORK.pool)
    searched = int32s(state, at.PLANS.searched)
    row = operator * at.OPERATOR
    left = np.int64(operators[row + at.LEFT])
    begin_list(state, operator)
    for place in range(list_start(state, left), list_end(state, left)):
        position = np.int64(operators[row + at.ARGUMENT])
        found = 1
        while found > 0 and searched[position] != base.NONE:
            found = search(
                state, np.int64(searched[position]), node_of(state, pool[place], 0), False
            )
            position += 1
        if found < 0:
            return -found
        if found > 0 and not emit(state, pool[place]):
            return at.NO_ROOM
    end_list(state, operator)
    return base.DONE


@called
def select_return(state: Int64, operator: int) -> int:
    """Return-Select: a group for each tuple, and its lists, path after path."""
    operators, pool = int32s(state, at.PLANS.operators), int64s(state, at.WORK.pool)
    searched = int32s(state, at.PLANS.searched)
    row = operator * at.OPERATOR
    left = np.int64(operators[row + at.LEFT])
    position = np.int64(operators[row + at.ARGUMENT])
    status = write_bound(state, left)
    int64s(state, at.WORK.listed_from)[operators[row + at.QUERIES]] = state[at.LISTED_USED]
    while status == base.DONE and searched[position] != base.NONE:
        if not begin_path(state):
            return at.NO_ROOM
        for place in range(list_start(state, left), list_end(state, left)):
            bound = node_of(state, pool[place], 0)
            found = search(state, np.int64(searched[position]), bound, True)
            if found < 0:
                return -found
            if found > 0 and not end_group_list(state, bound, found):
                return at.NO_ROOM
        position += 1
    return status


@called
def search(state: Int64, number: int, bound: int, is_listed: bool) -> int:
    """Search below a bound node, for the first node alone or to list them all.

    Returns:
        How many there are (1 if they are not listed), or a status, negated.
    """
    searches = int32s(state, at.PLANS.searches)
    row = number * at.SEARCH
    steps = np.int64(searches[row + at.SEARCH_STEPS])
    tests = np.int64(searches[row + at.SEARCH_TESTS])
    passed = own_passes(state, bound, tests, steps)
    if passed <= 0:
        return passed
    own, open = int64s(state, at.WORK.own_states), int64s(state, at.WORK.open_states)
    ends, parents = int64s(state, base.NODES.ends), int64s(state, base.NODES.parents)
    tags = int32s(state, base.READ.tags)
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
    if tests == base.NONE:
        return 1
    for _step in range(steps):
        tests = tests_before(state, tests)
    return node_passes(state, bound, tests)


@called
def descending_states(state: Int64, row: int, steps: int) -> int:
    """The states from which a step leads to descendants."""
    codes = int32s(state, at.PLANS.codes)
    first = np.int64(int32s(state, at.PLANS.searches)[row + at.SEARCH_CODES])
    found = np.int64(0)
    for step in range(steps):
        if codes[first + step] & 1:
            found |= np.int64(1) << step
    return found


@called
def step_states(state: Int64, row: int, event: int, own: int, open: int) -> int:
    """The states that an element reaches from those around it, or a status, negated."""
    searches, codes = int32s(state, at.PLANS.searches), int32s(state, at.PLANS.codes)
    first = np.int64(searches[row + at.SEARCH_CODES])
    steps = np.int64(searches[row + at.SEARCH_STEPS])
    tests = np.int64(searches[row + at.SEARCH_TESTS])
    tag = int32s(state, base.READ.tags)[event]
    label = int32s(state, at.PLANS.labels)[tag]
    of_all = int32s(state, at.PLANS.namespace_labels)[tag]
    found = np.int64(0)
    for back in range(steps):  # tests are listed from the last step on
        step = steps - 1 - back
        code = np.int64(codes[first + step])
        wanted = code >> 1
        states = open if code & 1 else own
        is_named = wanted == WILDCARD or wanted == label or wanted == of_all  # noqa: PLR1714
        if states >> step & 1 and is_named:
            passed = node_passes(state, event, tests) if tests != base.NONE else 1
            if passed < 0:
                return passed
            found |= np.int64(passed) << (step + 1)
        if tests != base.NONE:
            tests = tests_before(state, tests)
    return found


@called
def take(state: Int64, row: int, event: int, is_listed: bool) -> int:
    """Take a node that was found: 1, or 0 if it does not compare so, or a status, negated."""
    comparison = np.int64(int32s(state, at.PLANS.searches)[row + at.SEARCH_COMPARISON])
    passed = holds(state, comparison, event) if comparison != base.NONE else 1
    if passed > 0 and is_listed and not add_node(state, event):
        return -at.NO_ROOM
    return passed
