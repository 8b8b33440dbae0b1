"""The start of an element: which nodes it reaches, and the state that this is."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.matching.engines.automaton.cache import (
    ANSWER,
    AROUND,
    COUNT,
    DEAD,
    EMPTY,
    INHERITED,
    NO_RESULT,
    NOTHING,
    OWN,
    PENDING_COLUMNS,
    READS,
    RESULT,
    RESULT_ANSWER,
    RULED,
    START,
    STATE_COLUMNS,
    SURE_FACTS,
    Bytes,
)
from tamis.matching.engines.automaton.kernels.facts import known_told, tell
from tamis.matching.engines.automaton.kernels.pending import find_pending
from tamis.matching.engines.automaton.kernels.tables import (
    MIXER,
    add_list,
    all_set,
    append,
    clear,
    has_room,
    intern,
    is_set,
    mixed,
    set_bit,
)
from tamis.matching.engines.automaton.layout import (
    CACHE,
    DONE,
    FULL_ANSWERS,
    FULL_FACTS,
    FULL_STATES,
    PROGRAM,
    SCRATCH,
    WIDTH,
)
from tamis.matching.engines.automaton.program import (
    ACCEPTED,
    CHILDREN,
    DESCENDANTS,
    GRIDS,
    NODE_COLUMNS,
    OF_GROUP,
    OF_ITSELF,
    RULES,
    SURE,
)


@called
def advance(state: Int64, outer: int, symbol: int) -> int:
    """The state of a child with a symbol, which becomes known; or a status, negated.

    Args:
        outer: the state of its parent.
    """
    inherited = np.int64(int32s(state, CACHE.state_info)[outer * STATE_COLUMNS + OWN])
    count = note_reached(state, outer, inherited, symbol)
    next = DEAD
    if count or inherited:
        next = find_state(state, count, inherited)
    if next >= 0:
        int32s(state, CACHE.table)[outer * state[WIDTH] + symbol] = next
    return next


@called
def note_reached(state: Int64, outer: int, inherited: int, symbol: int) -> int:
    """Note the nodes that a child reaches, each of them once: how many.

    Each is behind one step from one node, so no two ways lead to it.
    """
    tests, nodes = int32s(state, PROGRAM.tests), int32s(state, PROGRAM.nodes)
    wildcards = uint8s(state, PROGRAM.wildcards)
    row = len(wildcards) // state[WIDTH]
    passed = wildcards[symbol * row : (symbol + 1) * row]
    noted = int32s(state, SCRATCH.nodes)
    count = 0
    offsets, members = int64s(state, CACHE.states.starts), int32s(state, CACHE.states.members)
    for i in range(offsets[outer], offsets[outer + 1]):
        row = members[i] * NODE_COLUMNS
        start, end = nodes[row + CHILDREN], nodes[row + DESCENDANTS]
        count = reach(tests, start, end, symbol, passed, noted, count)
    offsets, members = int64s(state, CACHE.pendings.starts), int32s(state, CACHE.pendings.members)
    pending = inherited
    while pending:
        for i in range(offsets[pending], offsets[pending + 1]):
            row = members[i] * NODE_COLUMNS
            start, end = nodes[row + DESCENDANTS], nodes[row + NODE_COLUMNS + CHILDREN]
            count = reach(tests, start, end, symbol, passed, noted, count)
        pending = int64s(state, CACHE.pending_info)[pending * PENDING_COLUMNS + AROUND]
    return count


@inlined
def reach(
    tests: Int32, start: int, end: int, symbol: int, passed: Bytes, noted: Int32, count: int
) -> int:
    """Note which of some nodes a symbol reaches: how many are noted then.

    What a processor would have to guess is noted in vain instead.

    Args:
        tests: those of nodes that follow each other ascend, no two of them equal; wildcards first.
        passed: which wildcards the symbol passes.
    """
    node = start
    taken = count
    while node < end and tests[U(node)] < 0:
        noted[U(taken)] = node
        taken += np.int64(passed[-1 - tests[U(node)]])
        node += 1
    length = end - node
    if length > 0:
        while length > 1:
            half = length >> 1
            node += half if tests[U(node + half)] <= symbol else 0
            length -= half
        noted[U(taken)] = node
        taken += np.int64(tests[U(node)] == symbol)
    return taken


@called
def find_state(state: Int64, count: int, inherited: int) -> int:
    """The state that reaches the nodes that were noted; or a status, negated."""
    answer = accepted_at_once(state, count)
    if answer < NOTHING:
        return -FULL_ANSWERS
    members, others = int32s(state, SCRATCH.members), int32s(state, SCRATCH.others)
    bits = uint8s(state, SCRATCH.node_bits)
    nodes, noted = int32s(state, PROGRAM.nodes), int32s(state, SCRATCH.nodes)
    facts, sparse = int32s(state, PROGRAM.sure), uint8s(state, PROGRAM.sparse_nodes)
    ruled = unruled = sources = 0
    hash = U(0)
    for i in range(count):
        node = noted[i]
        row = node * NODE_COLUMNS
        for j in range(nodes[row + SURE], nodes[row + NODE_COLUMNS + SURE]):
            tell(state, facts[j])
        if (
            nodes[row + RULES] < nodes[row + NODE_COLUMNS + RULES]
            or nodes[row + GRIDS] < nodes[row + NODE_COLUMNS + GRIDS]
            or is_set(sparse, node)
        ):
            members[ruled] = node
            ruled += 1
        elif nodes[row + CHILDREN] < nodes[row + NODE_COLUMNS + CHILDREN]:
            others[unruled] = node
            unruled += 1
        else:
            continue
        hash += mixed(node)
        set_bit(bits, node)
        int32s(state, SCRATCH.sources)[sources] = node
        sources += nodes[row + DESCENDANTS] < nodes[row + NODE_COLUMNS + CHILDREN]
    for i in range(unruled):
        members[ruled + i] = others[i]
    sure = known_told(state)
    next = -FULL_FACTS
    if sure >= 0:
        hash += (mixed(inherited) ^ mixed(answer + 1) * MIXER) * MIXER + mixed(sure) * MIXER
        next = known_state(state, ruled + unruled, hash, inherited, sure, answer)
        if next < 0:
            next = add_state(state, ruled, unruled, sources, hash, inherited, sure, answer)
    clear(bits, members, 0, ruled + unruled)
    return next


@called
def known_state(
    state: Int64, count: int, hash: np.uint64, inherited: int, sure: int, answer: int
) -> int:
    """The state of the members whose bits are set, or -1."""
    table, offsets, members = (
        int32s(state, CACHE.states.slots),
        int64s(state, CACHE.states.starts),
        int32s(state, CACHE.states.members),
    )
    info = int32s(state, CACHE.state_info)
    mask = U(len(table) - 1)
    slot = hash & mask
    while table[slot]:
        number = np.int64(table[slot] - 1)
        start, end, row = offsets[number], offsets[number + 1], number * STATE_COLUMNS
        if (
            uint64s(state, CACHE.states.hashes)[number] == hash
            and end - start == count
            and info[row + INHERITED] == inherited
            and info[row + SURE_FACTS] == sure
            and info[row + ANSWER] == answer
            and all_set(uint8s(state, SCRATCH.node_bits), members, start, end)
        ):
            return number
        slot = (slot + U(1)) & mask
    return -1


@called
def add_state(
    state: Int64,
    ruled: int,
    unruled: int,
    sources: int,
    hash: np.uint64,
    inherited: int,
    sure: int,
    answer: int,
) -> int:
    """Add the state of the members that were noted; or a status, negated."""
    members = int32s(state, SCRATCH.members)
    count = ruled + unruled
    if not has_room(state, CACHE.states, int32s(state, CACHE.states.members), count):
        return -FULL_STATES
    own = find_pending(state, sources, inherited)
    if own < 0:
        return own
    row = append(state, CACHE.states, members, count, hash) * STATE_COLUMNS
    info = int32s(state, CACHE.state_info)
    needs_no_close = ruled == 0 and int64s(state, PROGRAM.fact_ends)[OF_ITSELF] == 0
    info[row + ANSWER] = answer
    info[row + SURE_FACTS] = sure
    info[row + RESULT] = sure if needs_no_close else NO_RESULT
    info[row + RESULT_ANSWER] = NOTHING
    info[row + RULED] = ruled
    info[row + INHERITED] = inherited
    info[row + OWN] = own
    facts = int64s(state, CACHE.facts.starts)
    info[row + READS] = (
        facts[sure] < facts[sure + 1]
        and int32s(state, CACHE.facts.places)[facts[sure]]
        < int64s(state, PROGRAM.fact_ends)[OF_GROUP]
    )
    return row // STATE_COLUMNS


@called
def accepted_at_once(state: Int64, count: int) -> int:
    """The answer of the nodes that were noted, NOTHING, or less if there is no room."""
    nodes, noted = int32s(state, PROGRAM.nodes), int32s(state, SCRATCH.nodes)
    accepted, answers = int32s(state, PROGRAM.accepts), int32s(state, SCRATCH.answers)
    bits = uint8s(state, SCRATCH.answer_bits)
    found = 0
    for i in range(count):
        row = noted[i] * NODE_COLUMNS
        for j in range(nodes[row + ACCEPTED], nodes[row + NODE_COLUMNS + ACCEPTED]):
            if not is_set(bits, accepted[j]):
                set_bit(bits, accepted[j])
                answers[found] = accepted[j]
                found += 1
    if found == 0:
        return NOTHING
    number = intern(state, CACHE.answers, answers, found, bits)
    return number if number >= 0 else NOTHING - 1


@called
def begin(state: Int64) -> int:
    """Put into an empty cache what is always there: DONE, or a status."""
    noted = int32s(state, SCRATCH.nodes)
    info = int32s(state, CACHE.state_info)
    if int64s(state, CACHE.facts.counts)[COUNT] == 0:
        add_list(state, CACHE.facts, 0, U(EMPTY))
    if int64s(state, CACHE.states.counts)[COUNT] == 0:
        append(state, CACHE.pendings, noted, 0, U(0))
        append(state, CACHE.states, noted, 0, U(0))  # UNKNOWN
        append(state, CACHE.states, noted, 0, U(0))  # DEAD
        info[DEAD * STATE_COLUMNS + ANSWER] = NOTHING
        info[DEAD * STATE_COLUMNS + RESULT_ANSWER] = NOTHING
    if int64s(state, CACHE.states.counts)[COUNT] == START:
        noted[0] = 0
        next = find_state(state, 1, 0)
        if next < 0:
            return -next
    return DONE
