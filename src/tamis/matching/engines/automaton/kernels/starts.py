"""The start of an element: which nodes it reaches, the state that this is, and what is pending.

*Pending* nodes are those around an element of which descendants are sought.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.core.kernel.table import slot_finder
from tamis.matching.engines.automaton import layout as at
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels import facts as sets


@called
def advance(state: Int64, outer: int, symbol: int) -> int:
    """The state of a child, by its parent's and a symbol, which is new; or a status, negated."""
    inherited = np.int64(int32s(state, at.CACHE.state_info)[outer * at.STATE_COLUMNS + at.OWN])
    count = find_reached_nodes(state, outer, inherited, symbol)
    next = at.DEAD
    if count or inherited:
        next = find_state(state, count, inherited)
    if next >= 0:
        int32s(state, at.CACHE.table)[outer * state[at.WIDTH] + symbol] = next
    return next


@called
def find_reached_nodes(state: Int64, outer: int, inherited: int, symbol: int) -> int:
    """List the nodes that a child reaches, each of them once: how many.

    Each is behind one step from one node, so no two ways lead to it.
    """
    tests, nodes = int32s(state, at.PROGRAM.tests), int32s(state, at.PROGRAM.nodes)
    wildcards = uint8s(state, at.PROGRAM.wildcards)
    row = len(wildcards) // state[at.WIDTH]
    passed = wildcards[symbol * row : (symbol + 1) * row]
    reached = int32s(state, at.SCRATCH.nodes)
    count = 0
    offsets, members = sets.lists(state, at.CACHE.states)
    for i in range(offsets[outer], offsets[outer + 1]):
        row = members[i] * pr.NODE_COLUMNS
        start, end = nodes[row + pr.CHILDREN], nodes[row + pr.DESCENDANTS]
        count = reach(tests, start, end, symbol, passed, reached, count)
    offsets, members = sets.lists(state, at.CACHE.pendings)
    pending = inherited
    while pending:
        for i in range(offsets[pending], offsets[pending + 1]):
            row = members[i] * pr.NODE_COLUMNS
            start, end = nodes[row + pr.DESCENDANTS], nodes[row + pr.NODE_COLUMNS + pr.CHILDREN]
            count = reach(tests, start, end, symbol, passed, reached, count)
        pending = int64s(state, at.CACHE.pending_info)[pending * at.PENDING_COLUMNS + at.AROUND]
    return only_open(state, count) if state[at.HAS_RETIRED] else count


@called
def only_open(state: Int64, count: int) -> int:
    """Of the nodes that are listed, list those that still matter: how many."""
    reached, open = int32s(state, at.SCRATCH.nodes), uint8s(state, at.SCRATCH.open_nodes)
    kept = 0
    for i in range(count):
        reached[kept] = reached[i]
        kept += np.int64(sets.is_set(open, reached[i]))
    return kept


@inlined
def reach(
    tests: Int32, start: int, end: int, symbol: int, passed: Bytes, reached: Int32, count: int
) -> int:
    """List which of some nodes a symbol reaches: how many are listed then.

    Instead of a branch that a processor would have to guess, each node is written down, in vain
    where it is not reached. The tests of nodes that follow each other ascend, no two of them equal;
    wildcards come first.
    """
    node = start
    taken = count
    while node < end and tests[U(node)] < 0:
        reached[U(taken)] = node
        taken += np.int64(passed[-1 - tests[U(node)]])
        node += 1
    length = end - node
    if length > 0:
        while length > 1:
            half = length >> 1
            node += half if tests[U(node + half)] <= symbol else 0
            length -= half
        reached[U(taken)] = node
        taken += np.int64(tests[U(node)] == symbol)
    return taken


@called
def find_state(state: Int64, count: int, inherited: int) -> int:
    """The state of the nodes that are reached; or a status, negated."""
    answer = accepted_at_once(state, count)
    if answer < at.NOTHING:
        return -at.FULL_ANSWERS
    members, others = int32s(state, at.SCRATCH.members), int32s(state, at.SCRATCH.others)
    bits = uint8s(state, at.SCRATCH.node_bits)
    nodes, reached = int32s(state, at.PROGRAM.nodes), int32s(state, at.SCRATCH.nodes)
    facts, sparse = int32s(state, at.PROGRAM.unconditional), uint8s(state, at.PROGRAM.sparse_nodes)
    ruled = unruled = sources = 0
    hash = U(0)
    for i in range(count):
        node = reached[i]
        row = node * pr.NODE_COLUMNS
        next = row + pr.NODE_COLUMNS
        for j in range(nodes[row + pr.UNCONDITIONAL], nodes[next + pr.UNCONDITIONAL]):
            sets.derive(state, facts[j])
        if (
            nodes[row + pr.RULES] < nodes[next + pr.RULES]
            or nodes[row + pr.GRIDS] < nodes[next + pr.GRIDS]
            or sets.is_set(sparse, node)
        ):
            members[ruled] = node
            ruled += 1
        elif nodes[row + pr.CHILDREN] < nodes[next + pr.CHILDREN]:
            others[unruled] = node
            unruled += 1
        else:
            continue
        hash += sets.mixed(node)
        sets.set_bit(bits, node)
        int32s(state, at.SCRATCH.sources)[sources] = node
        sources += nodes[row + pr.DESCENDANTS] < nodes[next + pr.CHILDREN]
    for i in range(unruled):
        members[ruled + i] = others[i]
    unconditional = sets.intern_derived(state)
    found = -at.FULL_FACTS
    if unconditional >= 0:
        hash += (sets.mixed(inherited) ^ sets.mixed(answer + 1) * sets.MIXER) * sets.MIXER
        hash += sets.mixed(unconditional) * sets.MIXER
        found = known_state(state, ruled + unruled, hash, inherited, unconditional, answer)
        if found < 0:
            found = add_state(
                state, ruled, unruled, sources, hash, inherited, unconditional, answer
            )
    sets.clear(bits, members, 0, ruled + unruled)
    return found


@inlined
def _is_state(state: Int64, number: int, searched: Any) -> bool:
    hash, count, inherited, unconditional, answer = searched
    info, row = int32s(state, at.CACHE.state_info), number * at.STATE_COLUMNS
    offsets, members = sets.lists(state, at.CACHE.states)
    start, end = offsets[number], offsets[number + 1]
    return (
        uint64s(state, at.CACHE.states.hashes)[number] == hash
        and end - start == count
        and info[row + at.INHERITED] == inherited
        and info[row + at.UNCONDITIONAL_FACTS] == unconditional
        and info[row + at.ANSWER] == answer
        and sets.all_set(uint8s(state, at.SCRATCH.node_bits), members, start, end)
    )


_find_state = slot_finder(_is_state)


@called
def known_state(
    state: Int64, count: int, hash: np.uint64, inherited: int, unconditional: int, answer: int
) -> int:
    """The state of the members whose bits are set, or -1."""
    slots = int32s(state, at.CACHE.states.slots)
    searched = (hash, count, inherited, unconditional, answer)
    return np.int64(slots[_find_state(slots, hash, state, searched)]) - 1


@called
def add_state(
    state: Int64, ruled: int, unruled: int, sources: int, hash: np.uint64,
    inherited: int, unconditional: int, answer: int,
) -> int:  # fmt: skip
    """Add the state of the members that are listed; or a status, negated."""
    members = int32s(state, at.SCRATCH.members)
    count = ruled + unruled
    if not sets.has_room(state, at.CACHE.states, int32s(state, at.CACHE.states.members), count):
        return -at.FULL_STATES
    own = find_pending(state, sources, inherited)
    if own < 0:
        return own
    row = sets.append(state, at.CACHE.states, members, count, hash) * at.STATE_COLUMNS
    info = int32s(state, at.CACHE.state_info)
    needs_no_close = ruled == 0 and int64s(state, at.PROGRAM.fact_ends)[pr.OF_ITSELF] == 0
    info[row + at.ANSWER] = answer
    info[row + at.UNCONDITIONAL_FACTS] = unconditional
    info[row + at.RESULT] = unconditional if needs_no_close else at.NO_RESULT
    info[row + at.RESULT_ANSWER] = at.NOTHING
    info[row + at.RULED] = ruled
    info[row + at.INHERITED] = inherited
    info[row + at.OWN] = own
    starts, places, _ = sets.fact_sets(state)
    first, groups = starts[unconditional], int64s(state, at.PROGRAM.fact_ends)[pr.OF_GROUP]
    info[row + at.READS] = first < starts[unconditional + 1] and places[first] < groups
    return row // at.STATE_COLUMNS


@called
def accepted_at_once(state: Int64, count: int) -> int:
    """The answer of the nodes that are reached, NOTHING, or less if there is no room."""
    nodes, reached = int32s(state, at.PROGRAM.nodes), int32s(state, at.SCRATCH.nodes)
    accepted, answers = int32s(state, at.PROGRAM.accepts), int32s(state, at.SCRATCH.answers)
    bits, open = uint8s(state, at.SCRATCH.answer_bits), uint8s(state, at.SCRATCH.open_queries)
    found = 0
    for i in range(count):
        row = reached[i] * pr.NODE_COLUMNS
        for j in range(nodes[row + pr.ACCEPTED], nodes[row + pr.NODE_COLUMNS + pr.ACCEPTED]):
            if sets.is_set(open, accepted[j]) and not sets.is_set(bits, accepted[j]):
                sets.set_bit(bits, accepted[j])
                answers[found] = accepted[j]
                found += 1
    if found == 0:
        return at.NOTHING
    number = sets.intern_answer(state, answers, found)
    return number if number >= 0 else at.NOTHING - 1


@called
def begin(state: Int64) -> int:
    """Put into an empty cache what is always there: DONE, or a status."""
    reached, info = int32s(state, at.SCRATCH.nodes), int32s(state, at.CACHE.state_info)
    if int64s(state, at.CACHE.facts.counts)[at.COUNT] == 0:
        sets.add_list(state, at.CACHE.facts, 0, U(at.EMPTY))
    if int64s(state, at.CACHE.states.counts)[at.COUNT] == 0:
        sets.append(state, at.CACHE.pendings, reached, 0, U(0))
        sets.append(state, at.CACHE.states, reached, 0, U(0))  # UNKNOWN
        sets.append(state, at.CACHE.states, reached, 0, U(0))  # DEAD
        info[at.DEAD * at.STATE_COLUMNS + at.ANSWER] = at.NOTHING
        info[at.DEAD * at.STATE_COLUMNS + at.RESULT_ANSWER] = at.NOTHING
    if int64s(state, at.CACHE.states.counts)[at.COUNT] == at.START:
        reached[0] = 0
        next = find_state(state, 1, 0)
        if next < 0:
            return -next
    return at.DONE


@called
def turn_to(state: Int64, pending: int) -> None:
    """Have the bits of some pending nodes set, and of the facts that they need, and no others.

    From what was set before: documents go up and down by one element at a time.
    """
    info, before = int64s(state, at.CACHE.pending_info), state[at.TURNED_TO]
    mine, its = before, pending
    while mine != its:  # those around have smaller numbers
        if mine > its:
            mine = info[mine * at.PENDING_COLUMNS + at.AROUND]
        else:
            its = info[its * at.PENDING_COLUMNS + at.AROUND]
    offsets, nodes = sets.lists(state, at.CACHE.pendings)
    bits, needed = uint8s(state, at.SCRATCH.pending_bits), uint64s(state, at.SCRATCH.needed)
    number = before
    while number != mine:
        for i in range(offsets[number], offsets[number + 1]):
            sets.clear_bit(bits, nodes[i])
        sets.remove_set(state, needed, info[number * at.PENDING_COLUMNS + at.NEEDED])
        number = info[number * at.PENDING_COLUMNS + at.AROUND]
    number = pending
    while number != mine:
        for i in range(offsets[number], offsets[number + 1]):
            sets.set_bit(bits, nodes[i])
        sets.add_set(state, needed, info[number * at.PENDING_COLUMNS + at.NEEDED])
        number = info[number * at.PENDING_COLUMNS + at.AROUND]
    state[at.TURNED_TO] = pending


@called
def find_pending(state: Int64, count: int, inherited: int) -> int:
    """What is pending inside of an element, where ``inherited`` is around it; or a status, negated.

    So many sources are listed that the element reaches: nodes with steps to descendants.
    """
    turn_to(state, inherited)
    sources, bits = int32s(state, at.SCRATCH.sources), uint8s(state, at.SCRATCH.pending_bits)
    hash = uint64s(state, at.CACHE.pendings.hashes)[inherited]
    added = 0
    for i in range(count):
        node = sources[i]
        if not sets.is_set(bits, node):
            sources[added] = node
            added += 1
            hash += sets.mixed(node)
    if added == 0:
        return inherited
    for i in range(added):
        sets.set_bit(bits, sources[i])
    total = int64s(state, at.CACHE.pending_info)[inherited * at.PENDING_COLUMNS + at.TOTAL] + added
    found = known_pending(state, total, hash)
    for i in range(added):
        sets.clear_bit(bits, sources[i])
    if found < 0:
        found = add_pending(state, added, total, hash, inherited)
    return found


@inlined
def _is_pending(state: Int64, number: int, searched: tuple[np.uint64, int]) -> bool:
    hash, total = searched
    return (
        uint64s(state, at.CACHE.pendings.hashes)[number] == hash
        and int64s(state, at.CACHE.pending_info)[number * at.PENDING_COLUMNS + at.TOTAL] == total
        and all_have_bits(state, number)
    )


_find_pending = slot_finder(_is_pending)


@called
def known_pending(state: Int64, total: int, hash: np.uint64) -> int:
    """The pending nodes whose bits are set, or -1."""
    slots = int32s(state, at.CACHE.pendings.slots)
    return np.int64(slots[_find_pending(slots, hash, state, (hash, total))]) - 1


@called
def all_have_bits(state: Int64, pending: int) -> bool:
    """Whether the bits of all pending nodes are set."""
    offsets, nodes = sets.lists(state, at.CACHE.pendings)
    bits = uint8s(state, at.SCRATCH.pending_bits)
    number = pending
    while number and sets.all_set(bits, nodes, offsets[number], offsets[number + 1]):
        number = int64s(state, at.CACHE.pending_info)[number * at.PENDING_COLUMNS + at.AROUND]
    return number == 0


@called
def add_pending(state: Int64, added: int, total: int, hash: np.uint64, inherited: int) -> int:
    """Add the sources that are listed to those around them; or a status, negated."""
    sources, nodes = int32s(state, at.SCRATCH.sources), int32s(state, at.PROGRAM.nodes)
    if not sets.has_room(state, at.CACHE.pendings, int32s(state, at.CACHE.pendings.members), added):
        return -at.FULL_PENDINGS
    needs, around = int32s(state, at.PROGRAM.needs), uint64s(state, at.SCRATCH.needed)
    for i in range(added):
        row = sources[i] * pr.NODE_COLUMNS
        for j in range(nodes[row + pr.NEEDS], nodes[row + pr.NODE_COLUMNS + pr.NEEDS]):
            if not sets.holds_fact(around, needs[j]):
                sets.derive(state, needs[j])
    needed = sets.intern_derived(state)
    if needed < 0:
        return -at.FULL_FACTS
    number = sets.append(state, at.CACHE.pendings, sources, added, hash)
    info, row = int64s(state, at.CACHE.pending_info), number * at.PENDING_COLUMNS
    info[row + at.AROUND] = inherited
    info[row + at.TOTAL] = total
    info[row + at.NEEDED] = needed
    return number
