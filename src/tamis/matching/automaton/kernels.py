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
    TAKEN,
    TEXT_AT,
    TOLD,
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
    ALSO,
    AND,
    CONJUNCTION,
    COUNTS,
    FORMULA,
    IS_LONG,
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
    TELLS,
    TEXT,
    THIRD,
    WATCH_COLUMNS,
    WATCHING,
)
from tamis.matching.automaton.program import (
    COUNT as COUNT_OPERATOR,
)

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]

U = np.uint64
GOLDEN = U(0x9E3779B97F4A7C15)
MIXER = U(0xBF58476D1CE4E5B9)
NARROW = 8
"""So many children of a node are tried one after the other."""
ALWAYS = 0
"""The formula that always holds."""
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


@inlined
def is_set(bits: Bytes, number: int) -> bool:
    """Whether the bit of a number is set."""
    return bits[number >> 3] >> (number & 7) & 1 != 0


@inlined
def bit(bits: Bytes, number: int) -> int:
    """The bit of a number, which is not negative."""
    return np.int64(bits[U(number) >> U(3)]) >> (number & 7) & 1


@inlined
def set_bit(bits: Bytes, number: int) -> None:
    """Set the bit of a number."""
    bits[number >> 3] |= np.uint8(1 << (number & 7))


@inlined
def all_set(bits: Bytes, numbers: Int32, start: int, end: int) -> bool:
    """Whether the bits of some numbers are all set."""
    i = start
    while i < end and is_set(bits, numbers[i]):
        i += 1
    return i == end


@called
def clear(bits: Bytes, numbers: Int32, start: int, end: int) -> None:
    """Take the bits of some numbers away; no others are set."""
    for i in range(start, end):
        bits[numbers[i] >> 3] = 0


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


@called
def intern(state: Int64, lists: Any, source: Int32, count: int, bits: Bytes) -> int:
    """The number of a set, of which just the members have their bits set; -1 if there is no room.

    The bits are then cleared.
    """
    number = find_set(state, lists, source, count, bits)
    clear(bits, source, 0, count)
    return number


@called
def find_set(state: Int64, lists: Any, source: Int32, count: int, bits: Bytes) -> int:
    """What ``intern`` does, but for the bits."""
    hash = U(0)
    for i in range(count):
        hash += mixed(source[i])
    table, offsets = int32s(state, lists.slots), int64s(state, lists.starts)
    numbers, hashes = int32s(state, lists.members), uint64s(state, lists.hashes)
    mask = U(len(table) - 1)
    slot = hash & mask
    while table[slot]:
        number = np.int64(table[slot] - 1)
        start, end = offsets[number], offsets[number + 1]
        if hashes[number] == hash and end - start == count and all_set(bits, numbers, start, end):
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


@inlined
def take(
    tests: Int32,
    start: int,
    end: int,
    symbol: int,
    passed: Bytes,
    bits: Bytes,
    noted: Int32,
    count: int,
) -> int:
    """Note which of some nodes a symbol reaches: how many are noted then.

    Args:
        tests: those of nodes that follow each other ascend, and so wildcards come first.
        passed: which wildcards the symbol passes.
    """
    node = start
    taken = count
    while node < end and tests[node] < 0:
        if passed[-1 - tests[node]] and not is_set(bits, node):
            set_bit(bits, node)
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
        if tests[node] == symbol and not is_set(bits, node):
            set_bit(bits, node)
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
    inherited = np.int64(int32s(state, MEMO.info)[outer * INFO_COLUMNS + OWN])
    count = note_reached(state, outer, inherited, symbol)
    next = DEAD
    if count or inherited:
        next = find_state(state, count, inherited)
    clear(uint8s(state, SCRATCH.node_bits), int32s(state, SCRATCH.nodes), 0, count)
    if next >= 0:
        int32s(state, MEMO.table)[outer * state[WIDTH] + symbol] = next
    return next


@called
def note_reached(state: Int64, outer: int, inherited: int, symbol: int) -> int:
    """Note the nodes that a child reaches: how many."""
    tests = int32s(state, PROGRAM.tests)
    children, descendants = int32s(state, PROGRAM.children), int32s(state, PROGRAM.descendants)
    wildcards = uint8s(state, PROGRAM.wildcards)
    row = len(wildcards) // state[WIDTH]
    passed = wildcards[symbol * row : (symbol + 1) * row]
    bits, noted = uint8s(state, SCRATCH.node_bits), int32s(state, SCRATCH.nodes)
    count = 0
    offsets, nodes = int64s(state, MEMO.states.starts), int32s(state, MEMO.states.members)
    for i in range(offsets[outer], offsets[outer + 1]):
        start, end = children[nodes[i]], descendants[nodes[i]]
        count = take(tests, start, end, symbol, passed, bits, noted, count)
    offsets, nodes = int64s(state, MEMO.pendings.starts), int32s(state, MEMO.pendings.members)
    pending = inherited
    while pending:
        for i in range(offsets[pending], offsets[pending + 1]):
            start, end = descendants[nodes[i]], children[nodes[i] + 1]
            count = take(tests, start, end, symbol, passed, bits, noted, count)
        pending = int64s(state, MEMO.pending_info)[2 * pending]
    return count


@called
def find_state(state: Int64, count: int, inherited: int) -> int:
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
            and all_set(uint8s(state, SCRATCH.node_bits), reached, start, end)
        ):
            return number
        slot = (slot + U(1)) & mask
    if not has_room(state, MEMO.states, count):
        return -FULL_STATES
    own = find_pending(state, count, inherited)
    if own < 0:
        return own
    answer = accepted_at_once(state, count)
    if answer < NOTHING:
        return -FULL_ANSWERS
    has_rules = False
    rules = int64s(state, PROGRAM.base_starts)
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
def accepted_at_once(state: Int64, count: int) -> int:
    """The answer of the nodes that were noted, NOTHING, or less if there is no room."""
    nodes, offsets = int32s(state, SCRATCH.nodes), int64s(state, PROGRAM.accept_starts)
    accepted, answers = int32s(state, PROGRAM.accepts), int32s(state, SCRATCH.answers)
    bits = uint8s(state, SCRATCH.answer_bits)
    found = 0
    for i in range(count):
        for j in range(offsets[nodes[i]], offsets[nodes[i] + 1]):
            if not is_set(bits, accepted[j]):
                set_bit(bits, accepted[j])
                answers[found] = accepted[j]
                found += 1
    if found == 0:
        return NOTHING
    number = intern(state, MEMO.answers, answers, found, bits)
    return number if number >= 0 else NOTHING - 1


@called
def find_pending(state: Int64, count: int, inherited: int) -> int:
    """What is pending inside of an element that reaches nodes; or a status, negated."""
    mark_pending(state, inherited, True)
    children, descendants = int32s(state, PROGRAM.children), int32s(state, PROGRAM.descendants)
    nodes, sources = int32s(state, SCRATCH.nodes), int32s(state, SCRATCH.sources)
    bits = uint8s(state, SCRATCH.source_bits)
    added = 0
    hash = uint64s(state, MEMO.pendings.hashes)[inherited]
    for i in range(count):
        node = nodes[i]
        if descendants[node] < children[node + 1] and not is_set(bits, node):
            set_bit(bits, node)
            sources[added] = node
            added += 1
            hash += mixed(node)
    found = inherited
    if added:
        found = find_pending_set(state, added, inherited, hash)
    clear(bits, sources, 0, added)
    mark_pending(state, inherited, False)
    return found


@called
def mark_pending(state: Int64, pending: int, is_marked: bool) -> None:
    """Set the bits of all pending nodes, or clear them."""
    offsets, nodes = int64s(state, MEMO.pendings.starts), int32s(state, MEMO.pendings.members)
    bits = uint8s(state, SCRATCH.source_bits)
    number = pending
    while number:
        start, end = offsets[number], offsets[number + 1]
        if is_marked:
            for i in range(start, end):
                set_bit(bits, nodes[i])
        else:
            clear(bits, nodes, start, end)
        number = int64s(state, MEMO.pending_info)[2 * number]


@called
def find_pending_set(state: Int64, added: int, inherited: int, hash: np.uint64) -> int:
    """The set of the pending nodes that are marked; or a status, negated."""
    info, sources = int64s(state, MEMO.pending_info), int32s(state, SCRATCH.sources)
    total = info[2 * inherited + 1] + added
    table = int32s(state, MEMO.pendings.slots)
    mask = U(len(table) - 1)
    slot = hash & mask
    while table[slot]:
        number = np.int64(table[slot] - 1)
        if (
            uint64s(state, MEMO.pendings.hashes)[number] == hash
            and info[2 * number + 1] == total
            and all_pending_are_marked(state, number)
        ):
            return number
        slot = (slot + U(1)) & mask
    if not has_room(state, MEMO.pendings, added):
        return -FULL_PENDINGS
    needed = needed_facts(state, added, inherited)
    if not has_room(state, MEMO.needed, needed):
        return -FULL_NEEDED
    room = int32s(state, SCRATCH.facts)
    append(state, MEMO.needed, room, needed, mixed(int64s(state, MEMO.needed.counts)[COUNT]))
    number = append(state, MEMO.pendings, sources, added, hash)
    info[2 * number] = inherited
    info[2 * number + 1] = total
    return number


@called
def all_pending_are_marked(state: Int64, pending: int) -> bool:
    """Whether all pending nodes are marked as sources."""
    offsets, nodes = int64s(state, MEMO.pendings.starts), int32s(state, MEMO.pendings.members)
    number = pending
    while number:
        start, end = offsets[number], offsets[number + 1]
        if not all_set(uint8s(state, SCRATCH.source_bits), nodes, start, end):
            return False
        number = int64s(state, MEMO.pending_info)[2 * number]
    return True


@called
def needed_facts(state: Int64, added: int, inherited: int) -> int:
    """Note the facts that new sources need and those around them do not: how many."""
    around, facts = int64s(state, MEMO.needed.starts), int32s(state, MEMO.needed.members)
    info = int64s(state, MEMO.pending_info)
    bits, noted = uint8s(state, SCRATCH.fact_bits), int32s(state, SCRATCH.facts)
    pending = inherited
    while pending:
        for i in range(around[pending], around[pending + 1]):
            set_bit(bits, facts[i])
        pending = info[2 * pending]
    sources = int32s(state, SCRATCH.sources)
    offsets, needs = int64s(state, PROGRAM.needs_starts), int32s(state, PROGRAM.needs)
    count = 0
    for i in range(added):
        for j in range(offsets[sources[i]], offsets[sources[i] + 1]):
            if not is_set(bits, needs[j]):
                set_bit(bits, needs[j])
                noted[count] = needs[j]
                count += 1
    clear(bits, noted, 0, count)
    pending = inherited
    while pending:
        clear(bits, facts, around[pending], around[pending + 1])
        pending = info[2 * pending]
    return count


# -- the end of an element -------------------------------------------------------------------------


@called
def load(state: Int64, gathered: int) -> bool:
    """Set the bits of a set of facts, and the values of counters: whether any is of descendants."""
    offsets, facts = int64s(state, MEMO.facts.starts), int32s(state, MEMO.facts.members)
    kinds, bits = uint8s(state, PROGRAM.fact_kinds), uint8s(state, SCRATCH.fact_bits)
    found = False
    for i in range(offsets[gathered], offsets[gathered + 1]):
        fact = facts[i]
        set_bit(bits, fact)
        found |= kinds[fact] == OF_DESCENDANT
        if kinds[fact] == OF_COUNTER:
            add_count(state, fact)
    return found


@called
def unload(state: Int64, gathered: int) -> None:
    """Clear the bits of a set of facts, and its counters."""
    offsets, facts = int64s(state, MEMO.facts.starts), int32s(state, MEMO.facts.members)
    clear(uint8s(state, SCRATCH.fact_bits), facts, offsets[gathered], offsets[gathered + 1])
    if state[HAS_COUNTERS]:
        for i in range(offsets[gathered], offsets[gathered + 1]):
            counter = int32s(state, PROGRAM.fact_counters)[facts[i]]
            if counter >= 0:
                int32s(state, SCRATCH.counter_values)[counter] = 0


@called
def add_count(state: Int64, fact: int) -> None:
    """Add what a fact says to its counter, up to the limit."""
    counter = int32s(state, PROGRAM.fact_counters)[fact]
    values, limits = int32s(state, SCRATCH.counter_values), int32s(state, PROGRAM.counter_limits)
    value = fact - int32s(state, PROGRAM.counter_bases)[counter]
    values[counter] = min(values[counter] + value, np.int64(limits[counter]))


@called
def holds(state: Int64, formula: int) -> bool:
    """Whether a formula holds of the facts whose bits are set."""
    code, offsets = int32s(state, PROGRAM.formula_code), int64s(state, PROGRAM.formula_starts)
    bits = uint8s(state, SCRATCH.fact_bits)
    i, end = offsets[formula], offsets[formula + 1]
    if uint8s(state, PROGRAM.formula_kinds)[formula] == CONJUNCTION:
        return all_set(bits, code, i, end)
    stack = U(0)  # the last bit is the top
    while i < end:
        operator = code[i]
        i += 1
        if operator >= 0:
            stack = stack << U(1) | U(is_set(bits, operator))
        elif operator == NOT:
            stack ^= U(1)
        elif operator == AND:
            stack = stack >> U(1) & (stack | ~U(1))
        elif operator == OR:
            stack = stack >> U(1) | stack & U(1)
        elif operator == COUNT_OPERATOR:
            value = int32s(state, SCRATCH.counter_values)[code[i]]
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
    has_descendants = load(state, gathered)
    if state[HAS_NOTES]:
        note_what_it_is(state, current, True)
    state[TOLD], state[TAKEN] = 0, 0
    follow_base(state, current)
    if gathered != EMPTY:
        follow_watches(state, current, gathered)
    if has_descendants:
        pass_on(state, int32s(state, MEMO.info)[current * INFO_COLUMNS + INHERITED])
    if state[HAS_NOTES]:
        note_what_it_is(state, current, False)
    unload(state, gathered)
    facts, answers = int32s(state, SCRATCH.facts), int32s(state, SCRATCH.answers)
    bits = uint8s(state, SCRATCH.told_bits)
    result = intern(state, MEMO.facts, facts, state[TOLD], bits) if state[TOLD] else EMPTY
    bits = uint8s(state, SCRATCH.answer_bits)
    answer = NOTHING
    if state[TAKEN]:
        answer = intern(state, MEMO.answers, answers, state[TAKEN], bits)
        if answer < 0:
            return -FULL_ANSWERS
    if result < 0:
        return -FULL_FACTS
    if gathered == EMPTY:
        info = int32s(state, MEMO.info)
        info[current * INFO_COLUMNS + RESULT] = result
        info[current * INFO_COLUMNS + RESULT_ANSWER] = answer
    else:
        put(state, MEMO.closes, pair(current, gathered), result | (answer + 1) << 32)
    return DONE


@called
def note_what_it_is(state: Int64, current: int, is_noted: bool) -> None:
    """Set, or clear, the bits of facts about the element itself, which its rules may ask for."""
    offsets, rules = int64s(state, PROGRAM.base_starts), int32s(state, PROGRAM.base_rules)
    bits = uint8s(state, SCRATCH.fact_bits)
    reached, nodes = int64s(state, MEMO.states.starts), int32s(state, MEMO.states.members)
    for i in range(reached[current], reached[current + 1]):
        for j in range(offsets[nodes[i]], offsets[nodes[i] + 1]):
            if rules[j * RULE_COLUMNS + ACTION] == NOTES:
                target = rules[j * RULE_COLUMNS + TARGET]
                if is_noted:
                    set_bit(bits, target)
                else:
                    bits[target >> 3] = 0


@called
def follow_base(state: Int64, current: int) -> None:
    """Follow the rules that may hold without any fact."""
    offsets, rules = int64s(state, PROGRAM.base_starts), int32s(state, PROGRAM.base_rules)
    reached, nodes = int64s(state, MEMO.states.starts), int32s(state, MEMO.states.members)
    for i in range(reached[current], reached[current + 1]):
        for j in range(offsets[nodes[i]], offsets[nodes[i] + 1]):
            formula = rules[j * RULE_COLUMNS + FORMULA]
            if formula == ALWAYS or holds(state, formula):
                follow(state, rules, j * RULE_COLUMNS)


@called
def follow_watches(state: Int64, current: int, gathered: int) -> None:
    """Follow the rules that watch one of the facts that were gathered.

    Which formulas and which nodes pass is what a processor cannot guess, so they are written down
    first, in vain where they do not.
    """
    reached, nodes = int64s(state, MEMO.states.starts), int32s(state, MEMO.states.members)
    bits, node_bits = uint8s(state, SCRATCH.fact_bits), uint8s(state, SCRATCH.node_bits)
    offsets, facts = int64s(state, MEMO.facts.starts), int32s(state, MEMO.facts.members)
    watched, watches = int64s(state, PROGRAM.watch_starts), int32s(state, PROGRAM.watches)
    noted = int32s(state, SCRATCH.watches)
    start, end = reached[current], reached[current + 1]
    for i in range(start, end):
        set_bit(node_bits, nodes[i])
    count = 0
    for i in range(offsets[gathered], offsets[gathered + 1]):
        for j in range(watched[facts[i]], watched[facts[i] + 1]):
            row = U(j * WATCH_COLUMNS)
            noted[U(count)] = j
            count += bit(bits, watches[row + U(ALSO)]) & bit(bits, watches[row + U(THIRD)])
    follow_noted(state, count)
    clear(node_bits, nodes, start, end)


@called
def follow_noted(state: Int64, count: int) -> None:
    """Follow the rules of formulas that were noted, at the nodes whose bits are set."""
    watches, noted = int32s(state, PROGRAM.watches), int32s(state, SCRATCH.watches)
    offsets, nodes = int64s(state, PROGRAM.rule_starts), int32s(state, PROGRAM.rule_nodes)
    rules, bits = int32s(state, SCRATCH.rules), uint8s(state, SCRATCH.node_bits)
    found = 0
    for i in range(count):
        row = noted[i] * WATCH_COLUMNS
        formula = watches[row + WATCHING]
        if watches[row + IS_LONG] and not holds(state, formula):
            continue
        for j in range(offsets[formula], offsets[formula + 1]):
            rules[U(found)] = j
            found += bit(bits, nodes[U(j)])
    for i in range(found):
        follow(state, int32s(state, PROGRAM.rules), rules[i] * RULE_COLUMNS)


@inlined
def follow(state: Int64, rules: Int32, row: int) -> None:
    """Do what a rule says."""
    action, target = rules[row + ACTION], np.int64(rules[row + TARGET])
    if action == ACCEPTS:
        bits = uint8s(state, SCRATCH.answer_bits)
        if not is_set(bits, target):
            set_bit(bits, target)
            int32s(state, SCRATCH.answers)[state[TAKEN]] = target
            state[TAKEN] += 1
    elif action == COUNTS:
        tell_count(state, target, rules[row + SOURCE])
    elif action == TELLS:
        tell(state, target)


@inlined
def tell(state: Int64, fact: int) -> None:
    """Note a fact, once."""
    bits = uint8s(state, SCRATCH.told_bits)
    if not is_set(bits, fact):
        set_bit(bits, fact)
        int32s(state, SCRATCH.facts)[state[TOLD]] = fact
        state[TOLD] += 1


@called
def tell_count(state: Int64, counter: int, source: int) -> None:
    """Note the fact that says how much an element adds to a counter, if it does."""
    value = np.int64(1)
    if source >= 0:
        value = np.int64(int32s(state, SCRATCH.counter_values)[source])
    if value:
        limit = np.int64(int32s(state, PROGRAM.counter_limits)[counter])
        tell(state, int32s(state, PROGRAM.counter_bases)[counter] + min(value, limit))


@called
def pass_on(state: Int64, inherited: int) -> None:
    """Tell the gathered facts of descendants that pending nodes need."""
    offsets, facts = int64s(state, MEMO.needed.starts), int32s(state, MEMO.needed.members)
    bits = uint8s(state, SCRATCH.fact_bits)
    number = inherited
    while number:
        for i in range(offsets[number], offsets[number + 1]):
            if is_set(bits, facts[i]):
                tell(state, facts[i])
        number = int64s(state, MEMO.pending_info)[2 * number]


@called
def merge(state: Int64, gathered: int, result: int) -> int:
    """What is gathered with a child's result, which becomes known; or a status, negated."""
    if is_crowded(state, MEMO.merges):
        return -FULL_MERGES
    state[TOLD] = 0
    if state[HAS_COUNTERS]:
        merge_counts(state, gathered, result)
    else:
        collect(state, gathered)
        collect(state, result)
    room, bits = int32s(state, SCRATCH.facts), uint8s(state, SCRATCH.told_bits)
    merged = intern(state, MEMO.facts, room, state[TOLD], bits)
    if merged < 0:
        return -FULL_FACTS
    put(state, MEMO.merges, pair(gathered, result), merged)
    return merged


@called
def collect(state: Int64, facts: int) -> None:
    """Note the facts of a set, counters with their present value."""
    offsets, numbers = int64s(state, MEMO.facts.starts), int32s(state, MEMO.facts.members)
    kinds = uint8s(state, PROGRAM.fact_kinds)
    for i in range(offsets[facts], offsets[facts + 1]):
        fact = np.int64(numbers[i])
        if kinds[fact] == OF_STAGE:
            continue
        if kinds[fact] == OF_COUNTER:
            counter = int32s(state, PROGRAM.fact_counters)[fact]
            value = int32s(state, SCRATCH.counter_values)[counter]
            fact = np.int64(int32s(state, PROGRAM.counter_bases)[counter]) + value
        tell(state, fact)


@called
def merge_counts(state: Int64, gathered: int, result: int) -> None:
    """Note what is gathered with a child's result where something is counted."""
    offsets, facts = int64s(state, MEMO.facts.starts), int32s(state, MEMO.facts.members)
    kinds, bits = uint8s(state, PROGRAM.fact_kinds), uint8s(state, SCRATCH.fact_bits)
    chains, numbers = int64s(state, PROGRAM.chain_starts), int32s(state, PROGRAM.chain_numbers)
    start, end = offsets[result], offsets[result + 1]
    load(state, gathered)
    for i in range(start, end):
        if kinds[facts[i]] == OF_COUNTER:
            add_count(state, facts[i])
        elif kinds[facts[i]] == OF_STAGE:
            set_bit(bits, facts[i])
    for i in range(start, end):
        if kinds[facts[i]] == OF_STAGE:
            for j in range(chains[facts[i]], chains[facts[i] + 1]):
                lead(state, numbers[j])
    collect(state, gathered)
    collect(state, result)
    unload(state, gathered)
    unload(state, result)
    for i in range(state[TOLD]):
        fact = int32s(state, SCRATCH.facts)[i]
        if kinds[fact] == OF_COUNTER:
            counter = int32s(state, PROGRAM.fact_counters)[fact]
            int32s(state, SCRATCH.counter_values)[counter] = 0


@called
def lead(state: Int64, chain: int) -> None:
    """Lead a child through the stages of a chain, and note what follows."""
    offsets, stages = int64s(state, PROGRAM.stage_starts), int32s(state, PROGRAM.stages)
    bits, values = uint8s(state, SCRATCH.fact_bits), int32s(state, SCRATCH.counter_values)
    for i in range(offsets[chain], offsets[chain + 1]):
        fact, counter, number = stages[3 * i], stages[3 * i + 1], stages[3 * i + 2]
        if not is_set(bits, fact):
            return
        if counter < 0:
            tell(state, int32s(state, PROGRAM.chain_facts)[chain])
            return
        if values[counter] >= number:
            return
        values[counter] += 1
        tell(state, int32s(state, PROGRAM.counter_bases)[counter] + values[counter])
        if values[counter] < number:
            return


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
    nodes[0] = 0
    find_state(state, 1, 0)


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
    bits = uint8s(state, SCRATCH.told_bits)
    for i in range(len(facts)):
        set_bit(bits, facts[i])
    return intern(state, MEMO.facts, facts, len(facts), bits)


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
