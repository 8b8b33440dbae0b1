"""Matches events: a table look-up at the start of an element, one or two at its end.

What the tables do not have yet is computed, once, and added: ``advance`` for a start, ``close``
and ``merge`` for an end. These take time in proportion to what is known at that place, at most to
the size of the program.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.arrays import int32s, int64s, uint8s, uint64s
from tamis.documents.batch import Int32, Int64
from tamis.jit import called, inlined, kernel
from tamis.matching.automaton.layout import (
    ATTRIBUTE_AT,
    CURRENT,
    DEPTH,
    DOCUMENT,
    EPOCH,
    EVENT,
    EVENTS,
    FOUND_COUNT,
    GATHERED,
    HAS_COUNTERS,
    HAS_LEAVES,
    HAS_NOTES,
    IS_OPEN,
    MEMO,
    MISC_AT,
    PROGRAM,
    PROGRESS,
    REGAINED,
    SCRATCH,
    STAMP,
    TEXT_AT,
    WIDTH,
)
from tamis.matching.automaton.memo import (
    ANSWER,
    COUNT,
    DEAD,
    EMPTY,
    INFO_COLUMNS,
    INHERITED,
    NO_RESULT,
    NOTHING,
    OWN,
    RESULT,
    RESULT_ANSWER,
    START,
    UNKNOWN,
    USED,
)
from tamis.matching.automaton.program import (
    ACCEPTS,
    ACTION,
    AND,
    CONJUNCTION,
    COUNTS,
    FORMULA,
    MISC,
    NOT,
    NOTES,
    OF_COUNTER,
    OF_DESCENDANT,
    OF_STAGE,
    OR,
    RULE_COLUMNS,
    SOURCE,
    TARGET,
    TEXT,
)
from tamis.matching.automaton.program import (
    COUNT as COUNT_OPERATOR,
)

Words = NDArray[np.uint64]

U = np.uint64
GOLDEN = U(0x9E3779B97F4A7C15)
MIXER = U(0xBF58476D1CE4E5B9)
EPOCH_MAX = 2**31 - 1
NARROW = 8
"""So many children of a node are tried one after the other."""
ALL_MARKS = tuple(range(SCRATCH.node_marks, SCRATCH.counter_values, 2))

# What ``scan`` returns; and, negated, what the functions that add to the memo do.
(DONE, FULL_STATES, FULL_PENDINGS, FULL_NEEDED, FULL_FACTS, FULL_ANSWERS, FULL_CLOSES, FULL_MERGES,
 FULL_FOUND, FULL_DEPTH) = range(10)  # fmt: skip


# -- tables ----------------------------------------------------------------------------------------


@inlined
def pair(first: int, second: int) -> np.uint64:
    """The key of two numbers."""
    return U(first) << U(32) | U(second)


@inlined
def slot_of(keys: Words, key: np.uint64) -> int:
    """Where a key is, or would be."""
    mask = U(len(keys) - 1)
    hash = key * GOLDEN
    slot = (hash ^ hash >> U(29)) & mask
    while keys[slot] != U(0) and keys[slot] != key:
        slot = (slot + U(1)) & mask
    return np.int64(slot)


@inlined
def is_crowded(state: Int64, pairs: Any) -> bool:
    """Whether no more pairs can be added."""
    return 2 * int64s(state, pairs.counts)[0] >= len(uint64s(state, pairs.keys))


@called
def put(state: Int64, pairs: Any, key: np.uint64, value: int) -> None:
    """Add a key that is not there; there must be room."""
    slot = slot_of(uint64s(state, pairs.keys), key)
    uint64s(state, pairs.keys)[slot] = key
    int64s(state, pairs.values)[slot] = value
    int64s(state, pairs.counts)[0] += 1


@inlined
def mixed(number: int) -> np.uint64:
    """A hash; sums of these are hashes of sets."""
    value = (U(number) + U(1)) * GOLDEN
    value = (value ^ value >> U(32)) * MIXER
    return value ^ value >> U(29)


@called
def next_epoch(state: Int64) -> int:
    """A number that no mark has."""
    if state[EPOCH] >= EPOCH_MAX:
        state[EPOCH] = 0
        for place in ALL_MARKS:
            int32s(state, place)[:] = 0
    state[EPOCH] += 1
    return state[EPOCH]


@inlined
def has_room(state: Int64, lists: Any, count: int) -> bool:
    """Whether one more list can be added, of so many members."""
    used = int64s(state, lists.counts)
    return used[COUNT] < len(uint64s(state, lists.hashes)) and used[USED] + count <= len(
        int32s(state, lists.members)
    )


@called
def append(state: Int64, lists: Any, source: Int32, count: int, hash: np.uint64) -> int:
    """Add a list; there must be room."""
    used = int64s(state, lists.counts)
    number, start = used[COUNT], used[USED]
    into = int32s(state, lists.members)
    for i in range(count):
        into[start + i] = source[i]
    int64s(state, lists.starts)[number + 1] = start + count
    uint64s(state, lists.hashes)[number] = hash
    used[COUNT] = number + 1
    used[USED] = start + count
    table = int32s(state, lists.slots)
    mask = U(len(table) - 1)
    slot = hash & mask
    while table[slot]:
        slot = (slot + U(1)) & mask
    table[slot] = number + 1
    return number


@inlined
def all_marked(marks: Int32, numbers: Int32, start: int, end: int, epoch: int) -> bool:
    """Whether all of some numbers are marked."""
    i = start
    while i < end and marks[numbers[i]] == epoch:
        i += 1
    return i == end


@called
def intern(state: Int64, lists: Any, source: Int32, count: int, marks: Int32, epoch: int) -> int:
    """The number of a set, of which just the members are marked; -1 if there is no room."""
    hash = U(0)
    for i in range(count):
        hash += mixed(source[i])
    table, offsets, numbers = (
        int32s(state, lists.slots),
        int64s(state, lists.starts),
        int32s(state, lists.members),
    )
    mask = U(len(table) - 1)
    slot = hash & mask
    while table[slot]:
        number = np.int64(table[slot] - 1)
        start, end = offsets[number], offsets[number + 1]
        if (
            uint64s(state, lists.hashes)[number] == hash
            and end - start == count
            and all_marked(marks, numbers, start, end, epoch)
        ):
            return number
        slot = (slot + U(1)) & mask
    if not has_room(state, lists, count):
        return -1
    return append(state, lists, source, count, hash)


@kernel
def rehash(hashes: Words, count: int, slots: Int32) -> None:
    """Fill the empty slots of lists that have grown."""
    mask = U(len(slots) - 1)
    for number in range(count):
        slot = hashes[number] & mask
        while slots[slot]:
            slot = (slot + U(1)) & mask
        slots[slot] = number + 1


@kernel
def copy_pairs(keys: Words, values: Int64, into_keys: Words, into_values: Int64) -> None:
    """Put pairs into an empty table, which must be larger."""
    for i in range(len(keys)):
        if keys[i] != U(0):
            slot = slot_of(into_keys, keys[i])
            into_keys[slot] = keys[i]
            into_values[slot] = values[i]


# -- the start of an element -----------------------------------------------------------------------


@called
def take(state: Int64, start: int, end: int, symbol: int, count: int, epoch: int) -> int:
    """Note which of some nodes a symbol reaches: how many are noted then.

    Their tests ascend, and so wildcards come first.
    """
    tests, wildcards = int32s(state, PROGRAM.tests), uint8s(state, PROGRAM.wildcards)
    marks, noted = int32s(state, SCRATCH.node_marks), int32s(state, SCRATCH.nodes)
    row = symbol * (len(wildcards) // state[WIDTH])
    node = start
    taken = count
    while node < end and tests[node] < 0:
        if wildcards[row - 1 - tests[node]] and marks[node] != epoch:
            marks[node] = epoch
            noted[taken] = node
            taken += 1
        node += 1
    high = end
    while high - node > NARROW:
        middle = (node + high) // 2
        if tests[middle] < symbol:
            node = middle + 1
        else:
            high = middle + 1
    while node < high:
        if tests[node] == symbol and marks[node] != epoch:
            marks[node] = epoch
            noted[taken] = node
            taken += 1
        node += 1
    return taken


@called
def advance(state: Int64, outer: int, symbol: int) -> int:
    """The state of a child with a symbol, which becomes known; or a status, negated.

    Args:
        outer: the state of its parent.
    """
    epoch = next_epoch(state)
    children, descendants = int32s(state, PROGRAM.children), int32s(state, PROGRAM.descendants)
    inherited = np.int64(int32s(state, MEMO.info)[outer * INFO_COLUMNS + OWN])
    count = 0
    offsets, nodes = (
        int64s(state, MEMO.states.starts),
        int32s(state, MEMO.states.members),
    )
    for i in range(offsets[outer], offsets[outer + 1]):
        node = nodes[i]
        if children[node] < descendants[node]:
            count = take(state, children[node], descendants[node], symbol, count, epoch)
    offsets, nodes = (
        int64s(state, MEMO.pendings.starts),
        int32s(state, MEMO.pendings.members),
    )
    marks = int32s(state, SCRATCH.source_marks)
    pending = inherited
    while pending:
        for i in range(offsets[pending], offsets[pending + 1]):
            node = nodes[i]
            marks[node] = epoch
            count = take(state, descendants[node], children[node + 1], symbol, count, epoch)
        pending = int64s(state, MEMO.pending_info)[2 * pending]
    next = DEAD
    if count or inherited:
        next = find_state(state, count, inherited, epoch)
    if next >= 0:
        int32s(state, MEMO.table)[outer * state[WIDTH] + symbol] = next
    return next


@called
def find_state(state: Int64, count: int, inherited: int, epoch: int) -> int:
    """The state that reaches the nodes that were noted; or a status, negated."""
    nodes, info = int32s(state, SCRATCH.nodes), int32s(state, MEMO.info)
    hash = mixed(inherited) * MIXER
    for i in range(count):
        hash += mixed(nodes[i])
    table, offsets, reached = (
        int32s(state, MEMO.states.slots),
        int64s(state, MEMO.states.starts),
        int32s(state, MEMO.states.members),
    )
    mask = U(len(table) - 1)
    slot = hash & mask
    while table[slot]:
        number = np.int64(table[slot] - 1)
        start, end = offsets[number], offsets[number + 1]
        if (
            uint64s(state, MEMO.states.hashes)[number] == hash
            and end - start == count
            and info[number * INFO_COLUMNS + INHERITED] == inherited
            and all_marked(int32s(state, SCRATCH.node_marks), reached, start, end, epoch)
        ):
            return number
        slot = (slot + U(1)) & mask
    if not has_room(state, MEMO.states, count):
        return -FULL_STATES
    own = find_pending(state, count, inherited, epoch)
    if own < 0:
        return own
    answer = accepted_at_once(state, count, epoch)
    if answer < NOTHING:
        return -FULL_ANSWERS
    has_rules = False
    rules = int64s(state, PROGRAM.rule_starts)
    for i in range(count):
        has_rules |= rules[nodes[i]] < rules[nodes[i] + 1]
    row = append(state, MEMO.states, nodes, count, hash) * INFO_COLUMNS
    info[row + ANSWER] = answer
    info[row + RESULT] = NO_RESULT if has_rules else EMPTY
    info[row + RESULT_ANSWER] = NOTHING
    info[row + INHERITED] = inherited
    info[row + OWN] = own
    return row // INFO_COLUMNS


@called
def accepted_at_once(state: Int64, count: int, epoch: int) -> int:
    """The answer of the nodes that were noted, NOTHING, or less if there is no room."""
    nodes, offsets = int32s(state, SCRATCH.nodes), int64s(state, PROGRAM.accept_starts)
    accepted, answers = int32s(state, PROGRAM.accepts), int32s(state, SCRATCH.answers)
    marks = int32s(state, SCRATCH.answer_marks)
    found = 0
    for i in range(count):
        for j in range(offsets[nodes[i]], offsets[nodes[i] + 1]):
            query = accepted[j]
            if marks[query] != epoch:
                marks[query] = epoch
                answers[found] = query
                found += 1
    if found == 0:
        return NOTHING
    number = intern(state, MEMO.answers, answers, found, marks, epoch)
    return number if number >= 0 else NOTHING - 1


@called
def find_pending(state: Int64, count: int, inherited: int, epoch: int) -> int:
    """What is pending inside of an element that reaches nodes; or a status, negated."""
    children, descendants = int32s(state, PROGRAM.children), int32s(state, PROGRAM.descendants)
    nodes, sources = int32s(state, SCRATCH.nodes), int32s(state, SCRATCH.sources)
    marks, info = int32s(state, SCRATCH.source_marks), int64s(state, MEMO.pending_info)
    added = 0
    hash = uint64s(state, MEMO.pendings.hashes)[inherited]
    for i in range(count):
        node = nodes[i]
        if descendants[node] < children[node + 1] and marks[node] != epoch:
            marks[node] = epoch
            sources[added] = node
            added += 1
            hash += mixed(node)
    if added == 0:
        return inherited
    total = info[2 * inherited + 1] + added
    table = int32s(state, MEMO.pendings.slots)
    mask = U(len(table) - 1)
    slot = hash & mask
    while table[slot]:
        number = np.int64(table[slot] - 1)
        if (
            uint64s(state, MEMO.pendings.hashes)[number] == hash
            and info[2 * number + 1] == total
            and all_pending_are_marked(state, number, epoch)
        ):
            return number
        slot = (slot + U(1)) & mask
    if not has_room(state, MEMO.pendings, added):
        return -FULL_PENDINGS
    needed = needed_facts(state, added, inherited, epoch)
    if not has_room(state, MEMO.needed, needed):
        return -FULL_NEEDED
    append(
        state,
        MEMO.needed,
        int32s(state, SCRATCH.facts),
        needed,
        mixed(int64s(state, MEMO.needed.counts)[COUNT]),
    )
    number = append(state, MEMO.pendings, sources, added, hash)
    info[2 * number] = inherited
    info[2 * number + 1] = total
    return number


@called
def all_pending_are_marked(state: Int64, pending: int, epoch: int) -> bool:
    """Whether all pending nodes are marked as sources."""
    offsets, nodes = (
        int64s(state, MEMO.pendings.starts),
        int32s(state, MEMO.pendings.members),
    )
    number = pending
    while number:
        start, end = offsets[number], offsets[number + 1]
        if not all_marked(int32s(state, SCRATCH.source_marks), nodes, start, end, epoch):
            return False
        number = int64s(state, MEMO.pending_info)[2 * number]
    return True


@called
def needed_facts(state: Int64, added: int, inherited: int, epoch: int) -> int:
    """Note the facts that new sources need and those around them do not: how many."""
    offsets, facts = (
        int64s(state, MEMO.needed.starts),
        int32s(state, MEMO.needed.members),
    )
    marks, noted = int32s(state, SCRATCH.fact_marks), int32s(state, SCRATCH.facts)
    pending = inherited
    while pending:
        for i in range(offsets[pending], offsets[pending + 1]):
            marks[facts[i]] = epoch
        pending = int64s(state, MEMO.pending_info)[2 * pending]
    sources = int32s(state, SCRATCH.sources)
    offsets, facts = int64s(state, PROGRAM.needs_starts), int32s(state, PROGRAM.needs)
    count = 0
    for i in range(added):
        for j in range(offsets[sources[i]], offsets[sources[i] + 1]):
            if marks[facts[j]] != epoch:
                marks[facts[j]] = epoch
                noted[count] = facts[j]
                count += 1
    return count


# -- the end of an element -------------------------------------------------------------------------


@called
def load(state: Int64, gathered: int, epoch: int) -> bool:
    """Mark the facts of a set, and note the values of counters: whether any is of descendants."""
    offsets, facts = (
        int64s(state, MEMO.facts.starts),
        int32s(state, MEMO.facts.members),
    )
    kinds, marks = uint8s(state, PROGRAM.fact_kinds), int32s(state, SCRATCH.fact_marks)
    found = False
    for i in range(offsets[gathered], offsets[gathered + 1]):
        fact = facts[i]
        marks[fact] = epoch
        found |= kinds[fact] == OF_DESCENDANT
        if kinds[fact] == OF_COUNTER:
            counter = int32s(state, PROGRAM.fact_counters)[fact]
            set_count(state, counter, fact - int32s(state, PROGRAM.counter_bases)[counter], epoch)
    return found


@called
def set_count(state: Int64, counter: int, value: int, epoch: int) -> None:
    """Note the value of a counter, at most its limit."""
    int32s(state, SCRATCH.counter_marks)[counter] = epoch
    limit = int32s(state, PROGRAM.counter_limits)[counter]
    int32s(state, SCRATCH.counter_values)[counter] = min(value, limit)


@called
def counted(state: Int64, counter: int, epoch: int) -> int:
    """The value of a counter."""
    if int32s(state, SCRATCH.counter_marks)[counter] != epoch:
        return 0
    return np.int64(int32s(state, SCRATCH.counter_values)[counter])


@called
def holds(state: Int64, formula: int, epoch: int) -> bool:
    """Whether a formula holds of the facts that are marked."""
    code, offsets = int32s(state, PROGRAM.formula_code), int64s(state, PROGRAM.formula_starts)
    marks = int32s(state, SCRATCH.fact_marks)
    i, end = offsets[formula], offsets[formula + 1]
    if uint8s(state, PROGRAM.formula_kinds)[formula] == CONJUNCTION:
        return all_marked(marks, code, i, end, epoch)
    stack = U(0)  # the last bit is the top
    while i < end:
        operator = code[i]
        i += 1
        if operator >= 0:
            stack = stack << U(1) | U(marks[operator] == epoch)
        elif operator == NOT:
            stack ^= U(1)
        elif operator == AND:
            stack = stack >> U(1) & (stack | ~U(1))
        elif operator == OR:
            stack = stack >> U(1) | stack & U(1)
        elif operator == COUNT_OPERATOR:
            value = counted(state, code[i], epoch)
            stack = stack << U(1) | U(code[i + 1] <= value <= code[i + 2])
            i += 3
        else:
            stack = stack << U(1) | U(1)
    return stack & U(1) != U(0)


@called
def close(state: Int64, current: int, gathered: int) -> int:
    """The result and answer of an element, which become known: DONE, or a status, negated."""
    if is_crowded(state, MEMO.closes):
        return -FULL_CLOSES
    epoch = next_epoch(state)
    has_descendants = load(state, gathered, epoch)
    if state[HAS_NOTES]:
        note_what_it_is(state, current, epoch)
    counted_rules = follow_rules(state, current, epoch)
    told, accepted = counted_rules >> 32, counted_rules & 0xFFFFFFFF
    if has_descendants:
        inherited = int32s(state, MEMO.info)[current * INFO_COLUMNS + INHERITED]
        told = pass_on(state, inherited, told, epoch)
    result = EMPTY
    if told:
        room, marks = int32s(state, SCRATCH.facts), int32s(state, SCRATCH.result_marks)
        result = intern(state, MEMO.facts, room, told, marks, epoch)
        if result < 0:
            return -FULL_FACTS
    answer = NOTHING
    if accepted:
        room, marks = int32s(state, SCRATCH.answers), int32s(state, SCRATCH.answer_marks)
        answer = intern(state, MEMO.answers, room, accepted, marks, epoch)
        if answer < 0:
            return -FULL_ANSWERS
    if gathered == EMPTY:
        info = int32s(state, MEMO.info)
        info[current * INFO_COLUMNS + RESULT] = result
        info[current * INFO_COLUMNS + RESULT_ANSWER] = answer
    else:
        put(state, MEMO.closes, pair(current, gathered), result | (answer + 1) << 32)
    return DONE


@called
def note_what_it_is(state: Int64, current: int, epoch: int) -> None:
    """Mark the facts about the element itself, which its other rules may ask for."""
    offsets, rules = int64s(state, PROGRAM.rule_starts), int32s(state, PROGRAM.rules)
    marks = int32s(state, SCRATCH.fact_marks)
    reached = int64s(state, MEMO.states.starts)
    for i in range(reached[current], reached[current + 1]):
        node = int32s(state, MEMO.states.members)[i]
        for j in range(offsets[node], offsets[node + 1]):
            if rules[j * RULE_COLUMNS + ACTION] == NOTES:
                marks[rules[j * RULE_COLUMNS + TARGET]] = epoch


@called
def follow_rules(state: Int64, current: int, epoch: int) -> int:
    """Do what the rules say: how many facts were told, from bit 32 on, and queries accepted."""
    offsets, rules = int64s(state, PROGRAM.rule_starts), int32s(state, PROGRAM.rules)
    watches, marks = int32s(state, PROGRAM.watches), int32s(state, SCRATCH.fact_marks)
    told_marks, told_room = int32s(state, SCRATCH.result_marks), int32s(state, SCRATCH.facts)
    answer_marks, answers = int32s(state, SCRATCH.answer_marks), int32s(state, SCRATCH.answers)
    nodes, reached = (
        int32s(state, MEMO.states.members),
        int64s(state, MEMO.states.starts),
    )
    told, accepted = 0, 0
    for i in range(reached[current], reached[current + 1]):
        for j in range(offsets[nodes[i]], offsets[nodes[i] + 1]):
            row = j * RULE_COLUMNS
            formula = rules[row + FORMULA]
            watched = watches[formula]
            if watched >= 0 and marks[watched] != epoch:
                continue
            action, target = rules[row + ACTION], np.int64(rules[row + TARGET])
            if action == NOTES or not holds(state, formula, epoch):
                continue
            if action == ACCEPTS:
                if answer_marks[target] != epoch:
                    answer_marks[target] = epoch
                    answers[accepted] = target
                    accepted += 1
                continue
            if action == COUNTS:
                target = told_count(state, target, rules[row + SOURCE], epoch)
            if target >= 0 and told_marks[target] != epoch:
                told_marks[target] = epoch
                told_room[told] = target
                told += 1
    return told << 32 | accepted


@called
def told_count(state: Int64, counter: int, source: int, epoch: int) -> int:
    """The fact that says how much an element adds to a counter, or -1 where that is nothing."""
    value = 1 if source < 0 else counted(state, source, epoch)
    if value == 0:
        return -1
    limit = np.int64(int32s(state, PROGRAM.counter_limits)[counter])
    return int32s(state, PROGRAM.counter_bases)[counter] + min(value, limit)


@called
def pass_on(state: Int64, pending: int, told: int, epoch: int) -> int:
    """Tell the gathered facts of descendants that pending nodes need: how many were told then."""
    offsets, facts = (
        int64s(state, MEMO.needed.starts),
        int32s(state, MEMO.needed.members),
    )
    marks, told_marks = int32s(state, SCRATCH.fact_marks), int32s(state, SCRATCH.result_marks)
    room = int32s(state, SCRATCH.facts)
    count = told
    number = np.int64(pending)
    while number:
        for i in range(offsets[number], offsets[number + 1]):
            fact = facts[i]
            if marks[fact] == epoch and told_marks[fact] != epoch:
                told_marks[fact] = epoch
                room[count] = fact
                count += 1
        number = int64s(state, MEMO.pending_info)[2 * number]
    return count


@called
def merge(state: Int64, gathered: int, result: int) -> int:
    """What is gathered with a child's result, which becomes known; or a status, negated."""
    if is_crowded(state, MEMO.merges):
        return -FULL_MERGES
    epoch = next_epoch(state)
    count = 0
    if state[HAS_COUNTERS]:
        load(state, gathered, epoch)
        count = count_child(state, result, epoch)
    count = collect(state, gathered, count, epoch)
    count = collect(state, result, count, epoch)
    room, marks = int32s(state, SCRATCH.facts), int32s(state, SCRATCH.merged_marks)
    merged = intern(state, MEMO.facts, room, count, marks, epoch)
    if merged < 0:
        return -FULL_FACTS
    put(state, MEMO.merges, pair(gathered, result), merged)
    return merged


@called
def count_child(state: Int64, result: int, epoch: int) -> int:
    """Add what a child tells to counters, and lead it through stages: how many facts follow."""
    offsets, facts = (
        int64s(state, MEMO.facts.starts),
        int32s(state, MEMO.facts.members),
    )
    kinds = uint8s(state, PROGRAM.fact_kinds)
    for i in range(offsets[result], offsets[result + 1]):
        fact = facts[i]
        if kinds[fact] == OF_COUNTER:
            counter = int32s(state, PROGRAM.fact_counters)[fact]
            value = fact - int32s(state, PROGRAM.counter_bases)[counter]
            set_count(state, counter, value + counted(state, counter, epoch), epoch)
        elif kinds[fact] == OF_STAGE:
            int32s(state, SCRATCH.result_marks)[fact] = epoch
    chains = int64s(state, PROGRAM.chain_starts)
    count = 0
    for i in range(offsets[result], offsets[result + 1]):
        if kinds[facts[i]] == OF_STAGE:
            for j in range(chains[facts[i]], chains[facts[i] + 1]):
                count = lead(state, int32s(state, PROGRAM.chain_numbers)[j], count, epoch)
    return count


@called
def lead(state: Int64, chain: int, count: int, epoch: int) -> int:
    """Lead a child through the stages of a chain: how many facts are collected then."""
    offsets, stages = int64s(state, PROGRAM.stage_starts), int32s(state, PROGRAM.stages)
    collected = count
    for i in range(offsets[chain], offsets[chain + 1]):
        fact, counter, number = stages[3 * i], stages[3 * i + 1], stages[3 * i + 2]
        if int32s(state, SCRATCH.result_marks)[fact] != epoch:
            break
        if counter < 0:
            return add(state, int32s(state, PROGRAM.chain_facts)[chain], collected, epoch)
        value = counted(state, counter, epoch) + 1
        if value > number:
            break
        set_count(state, counter, value, epoch)
        collected = add(
            state, int32s(state, PROGRAM.counter_bases)[counter] + value, collected, epoch
        )
        if value < number:
            break
    return collected


@called
def add(state: Int64, fact: int, count: int, epoch: int) -> int:
    """Collect a fact once: how many there are then."""
    marks = int32s(state, SCRATCH.merged_marks)
    if marks[fact] == epoch:
        return count
    marks[fact] = epoch
    int32s(state, SCRATCH.facts)[count] = fact
    return count + 1


@called
def collect(state: Int64, facts: int, count: int, epoch: int) -> int:
    """Collect the facts of a set, counters with their present value: how many there are then."""
    offsets, numbers = (
        int64s(state, MEMO.facts.starts),
        int32s(state, MEMO.facts.members),
    )
    kinds = uint8s(state, PROGRAM.fact_kinds)
    collected = count
    for i in range(offsets[facts], offsets[facts + 1]):
        fact = np.int64(numbers[i])
        if kinds[fact] == OF_STAGE:
            continue
        if kinds[fact] == OF_COUNTER:
            counter = int32s(state, PROGRAM.fact_counters)[fact]
            fact = int32s(state, PROGRAM.counter_bases)[counter] + counted(state, counter, epoch)
        collected = add(state, fact, collected, epoch)
    return collected


# -- an empty memo ---------------------------------------------------------------------------------


@called
def begin(state: Int64) -> None:
    """Put into an empty memo what is always there, for which there is room."""
    nodes, facts = int32s(state, SCRATCH.nodes), int32s(state, SCRATCH.facts)
    append(state, MEMO.pendings, nodes, 0, U(0))
    append(state, MEMO.needed, facts, 0, U(0))
    if int64s(state, MEMO.facts.counts)[COUNT] == 0:  # EMPTY
        append(state, MEMO.facts, facts, 0, U(0))
    append(state, MEMO.states, nodes, 0, U(0))  # UNKNOWN
    append(state, MEMO.states, nodes, 0, U(0))  # DEAD
    info = int32s(state, MEMO.info)
    info[DEAD * INFO_COLUMNS + ANSWER] = NOTHING
    info[DEAD * INFO_COLUMNS + RESULT_ANSWER] = NOTHING
    epoch = next_epoch(state)
    nodes[0] = 0
    int32s(state, SCRATCH.node_marks)[0] = epoch
    find_state(state, 1, 0, epoch)


@called
def begin_again(state: Int64) -> int:
    """Find the states of the elements that are open, in a new memo: DONE, or a status."""
    outer_states, symbols = int32s(state, PROGRESS.outer_states), int32s(state, PROGRESS.symbols)
    while state[REGAINED] < state[DEPTH]:
        level = state[REGAINED]
        outer_states[level] = state[CURRENT]
        next = advance(state, state[CURRENT], symbols[level])
        if next < 0:
            return -next
        state[CURRENT] = next
        state[REGAINED] = level + 1
    return DONE


@kernel
def known_facts(state: Int64, facts: Int32) -> int:
    """The number of a set of facts, or -1 if there is no room."""
    epoch = next_epoch(state)
    marks = int32s(state, SCRATCH.fact_marks)
    for i in range(len(facts)):
        marks[facts[i]] = epoch
    return intern(state, MEMO.facts, facts, len(facts), marks, epoch)


# -- documents -------------------------------------------------------------------------------------


@inlined
def report(state: Int64, answer: int) -> None:
    """Note an answer of the document, once; there must be room."""
    seen = int64s(state, PROGRESS.seen)
    if answer >= 0 and seen[answer] != state[STAMP]:
        seen[answer] = state[STAMP]
        int32s(state, PROGRESS.found)[state[FOUND_COUNT]] = answer
        state[FOUND_COUNT] += 1


@inlined
def can_report(state: Int64) -> bool:
    """Whether there is room for what one event may report."""
    answers = int64s(state, MEMO.answers.counts)[COUNT]
    return state[FOUND_COUNT] + 3 <= len(int32s(state, PROGRESS.found)) and answers + 3 <= len(
        int64s(state, PROGRESS.seen)
    )


@inlined
def gather(state: Int64, gathered: int, result: int, is_plain: bool) -> int:
    """What is gathered with a child's result; or a status, negated.

    Args:
        is_plain: whether nothing is counted.
    """
    if is_plain and gathered in (EMPTY, result):
        return result
    known = uint64s(state, MEMO.merges.keys)
    slot = slot_of(known, pair(gathered, result))
    if known[slot]:
        return int64s(state, MEMO.merges.values)[slot]
    return merge(state, gathered, result)


@called
def leaf(state: Int64, symbol: int) -> int:
    """Match an attribute or a leaf that is no element: DONE, or a status."""
    if not can_report(state):
        return FULL_FOUND
    current = state[CURRENT]
    next = np.int64(int32s(state, MEMO.table)[current * state[WIDTH] + symbol])
    if next == UNKNOWN:
        next = advance(state, current, symbol)
        if next < 0:
            return -next
    if next == DEAD:
        return DONE
    info = int32s(state, MEMO.info)
    if info[next * INFO_COLUMNS + RESULT] == NO_RESULT:
        status = close(state, next, EMPTY)
        if status < 0:
            return -status
    result = np.int64(info[next * INFO_COLUMNS + RESULT])
    if result != EMPTY:
        gathered = gather(state, state[GATHERED], result, state[HAS_COUNTERS] == 0)
        if gathered < 0:
            return -gathered
        state[GATHERED] = gathered
    report(state, info[next * INFO_COLUMNS + ANSWER])
    report(state, info[next * INFO_COLUMNS + RESULT_ANSWER])
    return DONE


@called
def leaves(state: Int64) -> int:
    """Match the attributes of the event before, and the leaves behind it: DONE, or a status."""
    event = state[EVENT] - 1
    events, names = int64s(state, EVENTS.attribute_event), int32s(state, EVENTS.attribute_name)
    symbols = int32s(state, EVENTS.attributes)
    while state[ATTRIBUTE_AT] < len(events) and events[state[ATTRIBUTE_AT]] <= event:
        if events[state[ATTRIBUTE_AT]] == event:
            status = leaf(state, symbols[names[state[ATTRIBUTE_AT]]])
            if status:
                return status
        state[ATTRIBUTE_AT] += 1
    texts, miscs = int64s(state, EVENTS.text_event), int64s(state, EVENTS.misc_event)
    misc_end = int64s(state, EVENTS.misc_starts)[state[DOCUMENT] + 1]
    while True:
        text, misc = state[TEXT_AT], state[MISC_AT]
        has_text = text < len(texts) and texts[text] <= event
        has_misc = misc < misc_end and miscs[misc] <= event
        if has_misc and has_text:
            has_text = int64s(state, EVENTS.misc_text)[misc] > text
            has_misc = not has_text
        if has_misc:
            status = leaf(state, MISC) if miscs[misc] == event else DONE
        elif has_text:
            status = leaf(state, TEXT) if texts[text] == event else DONE
        else:
            return DONE
        if status:
            return status
        state[MISC_AT] += has_misc
        state[TEXT_AT] += has_text


@kernel
def scan(state: Int64) -> int:
    """Match documents from where the state is: DONE, or what has to grow first."""
    if int64s(state, MEMO.states.counts)[COUNT] == 0:
        begin(state)
    status = begin_again(state)
    documents = int64s(state, EVENTS.document_starts)
    while not status and state[DOCUMENT] < len(documents) - 1:
        document = state[DOCUMENT]
        start, end = documents[document], documents[document + 1]
        if start < end:
            if not state[IS_OPEN]:
                state[IS_OPEN] = 1
                state[EVENT] = start
                state[DEPTH] = 0
                state[CURRENT] = START
                state[GATHERED] = EMPTY
                state[MISC_AT] = int64s(state, EVENTS.misc_starts)[document]
                state[STAMP] += 1
            status = scan_document(state, end)
        if not status:
            state[IS_OPEN] = 0
            state[REGAINED] = state[DEPTH] = 0
            state[DOCUMENT] = document + 1
            int64s(state, PROGRESS.found_starts)[document + 1] = state[FOUND_COUNT]
    return status


@called
def scan_document(state: Int64, end: int) -> int:
    """Match one document from where the state is: DONE, or a status.

    This is the loop in which time goes. Each event is matched as a whole, or not at all where
    something is full. The last event, at ``end``, is the end of the document itself.
    """
    tags, elements = int32s(state, EVENTS.tags), int32s(state, EVENTS.elements)
    table, info = int32s(state, MEMO.table), int32s(state, MEMO.info)
    close_keys, close_values = (
        uint64s(state, MEMO.closes.keys),
        int64s(state, MEMO.closes.values),
    )
    outer_states, outer_gathered = (
        int32s(state, PROGRESS.outer_states),
        int32s(state, PROGRESS.outer_gathered),
    )
    symbols = int32s(state, PROGRESS.symbols)
    width = state[WIDTH]
    has_leaves = state[HAS_LEAVES] != 0
    is_plain = state[HAS_COUNTERS] == 0
    event, depth = state[EVENT], state[DEPTH]
    current, gathered = state[CURRENT], state[GATHERED]
    depth_max = len(outer_states)
    status = DONE
    while True:
        if has_leaves:
            state[EVENT], state[CURRENT], state[GATHERED] = event, current, gathered
            status = leaves(state)
            gathered = state[GATHERED]  # some leaves may be matched already
            if status:
                break
        tag = tags[event] if event < end else -1
        if tag >= 0:
            symbol = np.int64(elements[U(tag)])
            next = np.int64(table[U(current * width + symbol)])
            if next <= DEAD:
                if next == UNKNOWN:
                    next = advance(state, current, symbol)
                    if next < 0:
                        status = -next
                        break
                if next == DEAD:
                    event = behind(tags, event)
                    continue
            if depth >= depth_max:
                status = FULL_DEPTH
                break
            answer = np.int64(info[U(next * INFO_COLUMNS + ANSWER)])
            if answer >= 0:
                if not can_report(state):
                    status = FULL_FOUND
                    break
                report(state, answer)
            outer_states[U(depth)] = current
            outer_gathered[U(depth)] = gathered
            symbols[U(depth)] = symbol
            depth += 1
            event += 1
            current = next
            gathered = EMPTY
            continue
        if gathered == EMPTY:
            if info[U(current * INFO_COLUMNS + RESULT)] == NO_RESULT:
                status = -close(state, current, gathered)
                if status:
                    break
            result = np.int64(info[U(current * INFO_COLUMNS + RESULT)])
            answer = np.int64(info[U(current * INFO_COLUMNS + RESULT_ANSWER)])
        else:
            key = pair(current, gathered)
            slot = slot_of(close_keys, key)
            if close_keys[U(slot)] == U(0):
                status = -close(state, current, gathered)
                if status:
                    break
                slot = slot_of(close_keys, key)
            value = close_values[U(slot)]
            result = value & 0xFFFFFFFF
            answer = (value >> 32) - 1
        if (answer >= 0 or event == end) and not can_report(state):
            status = FULL_FOUND
            break
        if event == end:
            report(state, np.int64(info[START * INFO_COLUMNS + ANSWER]))
            report(state, answer)
            break
        outer = np.int64(outer_gathered[U(depth - 1)])
        if result != EMPTY:
            outer = gather(state, outer, result, is_plain)
            if outer < 0:
                status = -outer
                break
        if answer >= 0:
            report(state, answer)
        depth -= 1
        event += 1
        current = np.int64(outer_states[U(depth)])
        gathered = outer
    state[EVENT], state[DEPTH], state[REGAINED] = event, depth, depth
    state[CURRENT], state[GATHERED] = current, gathered
    return status


@called
def behind(tags: Int32, start: int) -> int:
    """The event behind an element."""
    event = start + 1
    open = 1
    while open:
        open += 1 if tags[event] >= 0 else -1
        event += 1
    return event
