"""The end of an element: what it tells the one around it, and which queries are true by it."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.bits import ones
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.matching.engines.automaton.cache import (
    EMPTY,
    INHERITED,
    NO_RESULT,
    NOTHING,
    RESULT,
    RESULT_ANSWER,
    RULED,
    STATE_COLUMNS,
    SURE_FACTS,
)
from tamis.matching.engines.automaton.kernels.counting import (
    forget_counts,
    merge_counts,
    set_counts,
    tell_count,
)
from tamis.matching.engines.automaton.kernels.facts import (
    add_set,
    holds_fact,
    known_told,
    tell,
    tell_word,
    union,
)
from tamis.matching.engines.automaton.kernels.grids import intern_answer, take_slices
from tamis.matching.engines.automaton.kernels.pending import turn_to
from tamis.matching.engines.automaton.kernels.tables import (
    is_crowded,
    is_set,
    pair,
    put,
    set_bit,
    slot_of,
)
from tamis.matching.engines.automaton.layout import (
    CACHE,
    DONE,
    FULL_ANSWERS,
    FULL_CLOSES,
    FULL_FACTS,
    FULL_MERGES,
    HAS_COUNTERS,
    PROGRAM,
    SCRATCH,
    TAKEN,
)
from tamis.matching.engines.automaton.program import (
    ACCEPTS,
    ACTION,
    ALSO,
    AND,
    CONJUNCTION,
    COUNTS,
    FORMULA,
    NODE_COLUMNS,
    NOT,
    OF_CHILD,
    OF_DESCENDANT,
    OF_ITSELF,
    OR,
    RULE_COLUMNS,
    RULES,
    SOURCE,
    TARGET,
    THIRD,
    WATCHED,
    WATCHES,
)
from tamis.matching.engines.automaton.program import (
    COUNT as COUNT_OPERATOR,
)

SEARCH = 8
"""To search for a word costs about as much as to look at so many."""


@called
def close(state: Int64, current: int, gathered: int) -> int:
    """The result and answer of an element, which become known: DONE, or a status, negated."""
    if is_crowded(state, CACHE.closes):
        return -FULL_CLOSES
    info = int32s(state, CACHE.state_info)
    row = current * STATE_COLUMNS
    state[TAKEN] = 0
    facts = uint64s(state, SCRATCH.gathered)
    add_set(state, facts, gathered)
    if state[HAS_COUNTERS]:
        set_counts(state, gathered)
    tell_sure(state, np.int64(info[row + SURE_FACTS]))
    follow_rules(state, current, gathered)
    queries = taken = state[TAKEN]
    if gathered != EMPTY and len(int32s(state, PROGRAM.sliced)):
        taken = take_slices(state, current, taken)
    if gathered != EMPTY:
        pass_on(state, gathered, np.int64(info[row + INHERITED]))
    forget_facts(state, gathered)
    forget_facts(state, np.int64(info[row + SURE_FACTS]))
    if state[HAS_COUNTERS]:
        forget_counts(state, gathered)
    result, answer = known_told(state), NOTHING
    if taken:
        answer = intern_answer(state, queries, taken)
        if answer < 0:
            return -FULL_ANSWERS
    if result < 0:
        return -FULL_FACTS
    if gathered == EMPTY:
        info[row + RESULT] = result
        info[row + RESULT_ANSWER] = answer
    else:
        put(state, CACHE.closes, pair(current, gathered), result | (answer + 1) << 32)
    return DONE


@called
def closed(state: Int64, current: int, gathered: int) -> int:
    """The result of an element, and from bit 32 on 1 and its answer; or a status, negated."""
    if gathered == EMPTY:
        info, row = int32s(state, CACHE.state_info), current * STATE_COLUMNS
        if info[row + RESULT] == NO_RESULT:
            status = close(state, current, gathered)
            if status < 0:
                return status
        return np.int64(info[row + RESULT]) | (np.int64(info[row + RESULT_ANSWER]) + 1) << 32
    keys, key = uint64s(state, CACHE.closes.keys), pair(current, gathered)
    slot = slot_of(keys, key)
    if keys[slot] == U(0):
        status = close(state, current, gathered)
        if status < 0:
            return status
        slot = slot_of(keys, key)
    return int64s(state, CACHE.closes.values)[slot]


@called
def forget_facts(state: Int64, number: int) -> None:
    """Clear the words of the facts that hold, where a set has some."""
    offsets, places = int64s(state, CACHE.facts.starts), int32s(state, CACHE.facts.places)
    facts = uint64s(state, SCRATCH.gathered)
    for i in range(offsets[number], offsets[number + 1]):
        facts[U(places[i])] = U(0)


@called
def tell_sure(state: Int64, sure: int) -> None:
    """Tell what is sure; facts about the element itself are not told, but hold there."""
    offsets = int64s(state, CACHE.facts.starts)
    places, words = int32s(state, CACHE.facts.places), uint64s(state, CACHE.facts.words)
    facts, end = uint64s(state, SCRATCH.gathered), int64s(state, PROGRAM.fact_ends)[OF_ITSELF]
    for i in range(offsets[sure], offsets[sure + 1]):
        if places[i] < end:
            facts[U(places[i])] = words[i]
        else:
            tell_word(state, np.int64(places[i]), words[i])


@called
def pass_on(state: Int64, gathered: int, inherited: int) -> None:
    """Tell the gathered facts of descendants that pending nodes need."""
    offsets, ends = int64s(state, CACHE.facts.starts), int64s(state, PROGRAM.fact_ends)
    places, words = int32s(state, CACHE.facts.places), uint64s(state, CACHE.facts.words)
    needed = uint64s(state, SCRATCH.needed)
    i, end = offsets[gathered], offsets[gathered + 1]
    while i < end and places[i] < ends[OF_CHILD]:
        i += 1
    if i < end:
        turn_to(state, inherited)
    while i < end and places[i] < ends[OF_DESCENDANT]:
        word = words[i] & needed[U(places[i])]
        if word != U(0):
            tell_word(state, np.int64(places[i]), word)
        i += 1


# -- rules -----------------------------------------------------------------------------------------


@called
def follow_rules(state: Int64, current: int, gathered: int) -> None:
    """Do what the rules say that hold at the nodes of a state.

    Which of them hold is what a processor cannot guess, so all are written down first, in vain
    where they do not.
    """
    offsets, members = int64s(state, CACHE.states.starts), int32s(state, CACHE.states.members)
    nodes, rules = int32s(state, PROGRAM.nodes), int32s(state, PROGRAM.rules)
    facts = uint64s(state, SCRATCH.gathered)
    start = offsets[current]
    end = start + int32s(state, CACHE.state_info)[current * STATE_COLUMNS + RULED]
    passed = int32s(state, SCRATCH.rules)
    count = 0
    for i in range(start, end):
        row = members[i] * NODE_COLUMNS
        rule, rule_end = np.int64(nodes[row + RULES]), np.int64(nodes[row + NODE_COLUMNS + RULES])
        while rule < rule_end and rules[rule * RULE_COLUMNS + WATCHED] < 0:
            follow(state, rules, rule * RULE_COLUMNS)
            rule += 1
        if gathered == EMPTY:
            continue
        if nodes[row + WATCHES] < nodes[row + NODE_COLUMNS + WATCHES]:
            count = pass_watched(state, row, gathered, count)
            continue
        for place in range(rule * RULE_COLUMNS, rule_end * RULE_COLUMNS, RULE_COLUMNS):
            passed[U(count)] = place
            count += (
                holds_fact(facts, rules[U(place + WATCHED)])
                & holds_fact(facts, rules[U(place + ALSO)])
                & holds_fact(facts, rules[U(place + THIRD)])
            )
    for i in range(count):
        follow(state, rules, np.int64(passed[i]))


@called
def pass_watched(state: Int64, node_row: int, gathered: int, count: int) -> int:
    """Write down the rules of a node with many that pass: how many there are then.

    What its rules watch are words of facts, as what was gathered is. Where that is few words, each
    is searched for among those that are watched.
    """
    nodes, offsets = int32s(state, PROGRAM.nodes), int64s(state, CACHE.facts.starts)
    places, found = int32s(state, PROGRAM.watch_places), int32s(state, CACHE.facts.places)
    facts = uint64s(state, SCRATCH.gathered)
    low = np.int64(nodes[node_row + WATCHES])
    end = np.int64(nodes[node_row + NODE_COLUMNS + WATCHES])
    total = count
    if SEARCH * (offsets[gathered + 1] - offsets[gathered]) > end - low:
        for i in range(low, end):
            total = pass_word(state, i, facts[U(places[i])], total)
        return total
    for i in range(offsets[gathered], offsets[gathered + 1]):
        high = end
        while low < high:
            middle = (low + high) >> 1
            if places[middle] < found[i]:
                low = middle + 1
            else:
                high = middle
        if low < end and places[low] == found[i]:
            total = pass_word(state, low, facts[U(found[i])], total)
    return total


@inlined
def pass_word(state: Int64, number: int, gathered: np.uint64, count: int) -> int:
    """What ``pass_watched`` does for one word of what is watched."""
    rules, runs = int32s(state, PROGRAM.rules), int32s(state, PROGRAM.runs)
    facts, passed = uint64s(state, SCRATCH.gathered), int32s(state, SCRATCH.rules)
    watched, rank = uint64s(state, PROGRAM.watch_words)[number], int32s(state, PROGRAM.watch_ranks)
    left = watched & gathered
    total = count
    while left != U(0):
        lowest = left & (U(0) - left)
        left ^= lowest
        run = rank[number] + ones(watched & (lowest - U(1)))
        for rule in range(runs[run], runs[run + 1]):
            place = rule * RULE_COLUMNS
            passed[U(total)] = place
            total += holds_fact(facts, rules[place + ALSO]) & holds_fact(
                facts, rules[place + THIRD]
            )
    return total


@inlined
def follow(state: Int64, rules: Int32, row: int) -> None:
    """Do what a rule says, unless there is more to its formula, and that does not hold."""
    formula = rules[row + FORMULA]
    if formula < 0 or holds(state, formula):
        action, target = rules[row + ACTION], np.int64(rules[row + TARGET])
        if action == ACCEPTS:
            bits = uint8s(state, SCRATCH.answer_bits)
            if not is_set(bits, target):
                set_bit(bits, target)
                int32s(state, SCRATCH.answers)[state[TAKEN]] = target
                state[TAKEN] += 1
        elif action == COUNTS:
            tell_count(state, target, rules[row + SOURCE])
        else:
            tell(state, target)


@called
def holds(state: Int64, formula: int) -> bool:
    """Whether a formula holds of the facts that hold."""
    code, offsets = int32s(state, PROGRAM.formula_code), int64s(state, PROGRAM.formula_starts)
    facts = uint64s(state, SCRATCH.gathered)
    i, end = offsets[formula], offsets[formula + 1]
    if uint8s(state, PROGRAM.formula_kinds)[formula] == CONJUNCTION:
        while i < end and holds_fact(facts, code[i]):
            i += 1
        return i == end
    stack = U(0)  # the last bit is the top
    while i < end:
        operator = code[i]
        i += 1
        if operator >= 0:
            stack = stack << U(1) | U(holds_fact(facts, operator))
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


# -- merging ---------------------------------------------------------------------------------------


@inlined
def gather(state: Int64, gathered: int, result: int, is_plain: bool) -> int:
    """What is gathered with a child's result, or with facts of a value; or a status, negated.

    Args:
        is_plain: whether nothing is counted.
    """
    if is_plain and gathered in (EMPTY, result):
        return result
    known = uint64s(state, CACHE.merges.keys)
    slot = slot_of(known, pair(gathered, result))
    if known[slot]:
        return int64s(state, CACHE.merges.values)[slot]
    return merge(state, gathered, result, is_plain)


@called
def merge(state: Int64, gathered: int, result: int, is_plain: bool) -> int:
    """What ``gather`` returns, which becomes known."""
    if is_crowded(state, CACHE.merges):
        return -FULL_MERGES
    merged = union(state, gathered, result) if is_plain else merge_counts(state, gathered, result)
    if merged < 0:
        return -FULL_FACTS
    put(state, CACHE.merges, pair(gathered, result), merged)
    return merged
