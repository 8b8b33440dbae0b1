"""The end of an element: what it derives for the one around it, and which queries are true by it.

Counters, whose values are facts, and the chains of stages that positions are, belong to that.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.bits import first, ones
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.matching.engines.automaton import layout as at
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels import answers
from tamis.matching.engines.automaton.kernels import facts as sets
from tamis.matching.engines.automaton.kernels.starts import turn_to

SEARCH = 8
"""To search for a word costs about as much as to look at so many."""


@called
def close(state: Int64, current: int, child_facts: int) -> int:
    """The result and answer of an element, which become known: DONE, or a status, negated."""
    if sets.is_crowded(state, at.CACHE.closes):
        return -at.FULL_CLOSES
    info = int32s(state, at.CACHE.state_info)
    row = current * at.STATE_COLUMNS
    state[at.TAKEN] = 0
    load_facts(state, current, child_facts)
    derive_unconditional(state, np.int64(info[row + at.UNCONDITIONAL_FACTS]))
    follow_rules(state, current, child_facts)
    queries = taken = state[at.TAKEN]
    if child_facts != at.EMPTY and len(int32s(state, at.PROGRAM.sliced)):
        taken = answers.take_slices(state, current, taken)
    if child_facts != at.EMPTY:
        pass_on(state, child_facts, np.int64(info[row + at.INHERITED]))
    unload_facts(state, current, child_facts)
    result, answer = sets.intern_derived(state), at.NOTHING
    if taken:
        answer = answers.intern_sliced(state, queries, taken)
        if answer < 0:
            return -at.FULL_ANSWERS
    if result < 0:
        return -at.FULL_FACTS
    if child_facts == at.EMPTY:
        info[row + at.RESULT] = result
        info[row + at.RESULT_ANSWER] = answer
    else:
        value = result | (answer + 1) << 32
        sets.put(state, at.CACHE.closes, sets.pair(current, child_facts), value)
    return at.DONE


@called
def closed(state: Int64, current: int, child_facts: int) -> int:
    """The result of an element, and from bit 32 on 1 and its answer; or a status, negated."""
    if child_facts == at.EMPTY:
        info, row = int32s(state, at.CACHE.state_info), current * at.STATE_COLUMNS
        if info[row + at.RESULT] == at.NO_RESULT:
            status = close(state, current, child_facts)
            if status < 0:
                return status
        return np.int64(info[row + at.RESULT]) | (np.int64(info[row + at.RESULT_ANSWER]) + 1) << 32
    keys, key = uint64s(state, at.CACHE.closes.keys), sets.pair(current, child_facts)
    slot = sets.slot_of(keys, key)
    if keys[slot] == U(0):
        status = close(state, current, child_facts)
        if status < 0:
            return status
        slot = sets.slot_of(keys, key)
    return int64s(state, at.CACHE.closes.values)[slot]


@called
def load_facts(state: Int64, current: int, child_facts: int) -> None:
    """Set the bits of all facts that hold at an element, and its counters.

    Of what is unconditional, facts about the element itself hold there; others it derives.
    """
    facts, info = uint64s(state, at.SCRATCH.child_facts), int32s(state, at.CACHE.state_info)
    sets.add_set(state, facts, child_facts)
    offsets, places, words = sets.fact_sets(state)
    last = int64s(state, at.PROGRAM.fact_ends)[pr.OF_ITSELF]
    unconditional = info[current * at.STATE_COLUMNS + at.UNCONDITIONAL_FACTS]
    i = offsets[unconditional]
    while i < offsets[unconditional + 1] and places[i] < last:
        facts[U(places[i])] |= words[i]
        i += 1
    if state[at.HAS_COUNTERS]:
        set_counts(state, child_facts, True)


@called
def unload_facts(state: Int64, current: int, child_facts: int) -> None:
    """Clear all that ``load_facts`` set."""
    clear_facts(state, child_facts)
    info = int32s(state, at.CACHE.state_info)
    clear_facts(state, info[current * at.STATE_COLUMNS + at.UNCONDITIONAL_FACTS])
    if state[at.HAS_COUNTERS]:
        set_counts(state, child_facts, False)


@called
def clear_facts(state: Int64, number: int) -> None:
    """Clear the words of the facts that hold, where a set has some."""
    offsets, places, _ = sets.fact_sets(state)
    facts = uint64s(state, at.SCRATCH.child_facts)
    for i in range(offsets[number], offsets[number + 1]):
        facts[U(places[i])] = U(0)


@called
def derive_unconditional(state: Int64, unconditional: int) -> None:
    """Derive what is unconditional, but for facts about the element itself."""
    offsets, places, words = sets.fact_sets(state)
    end = int64s(state, at.PROGRAM.fact_ends)[pr.OF_ITSELF]
    for i in range(offsets[unconditional], offsets[unconditional + 1]):
        if places[i] >= end:
            sets.derive_word(state, np.int64(places[i]), words[i])


@called
def pass_on(state: Int64, child_facts: int, inherited: int) -> None:
    """Derive the child facts about descendants that pending nodes need."""
    offsets, places, words = sets.fact_sets(state)
    ends, needed = int64s(state, at.PROGRAM.fact_ends), uint64s(state, at.SCRATCH.needed)
    i, end = offsets[child_facts], offsets[child_facts + 1]
    while i < end and places[i] < ends[pr.OF_CHILD]:
        i += 1
    if i < end:
        turn_to(state, inherited)
    while i < end and places[i] < ends[pr.OF_DESCENDANT]:
        word = words[i] & needed[U(places[i])]
        if word != U(0):
            sets.derive_word(state, np.int64(places[i]), word)
        i += 1


# -- rules -----------------------------------------------------------------------------------------


@called
def follow_rules(state: Int64, current: int, child_facts: int) -> None:
    """Do what the rules say that hold at the nodes of a state.

    Which of them hold is what a processor cannot guess, so all are written down first, in vain
    where they do not.
    """
    offsets, members = sets.lists(state, at.CACHE.states)
    nodes, rules = int32s(state, at.PROGRAM.nodes), int32s(state, at.PROGRAM.rules)
    facts = uint64s(state, at.SCRATCH.child_facts)
    start = offsets[current]
    end = start + int32s(state, at.CACHE.state_info)[current * at.STATE_COLUMNS + at.RULED]
    passed = int32s(state, at.SCRATCH.rules)
    count = 0
    for i in range(start, end):
        row = members[i] * pr.NODE_COLUMNS
        rule = np.int64(nodes[row + pr.RULES])
        rule_end = np.int64(nodes[row + pr.NODE_COLUMNS + pr.RULES])
        while rule < rule_end and rules[rule * pr.RULE_COLUMNS + pr.WATCHED] < 0:
            follow(state, rules, rule * pr.RULE_COLUMNS)
            rule += 1
        if child_facts == at.EMPTY:
            continue
        if nodes[row + pr.WATCHES] < nodes[row + pr.NODE_COLUMNS + pr.WATCHES]:
            count = pass_watched(state, row, child_facts, count)
            continue
        for place in range(rule * pr.RULE_COLUMNS, rule_end * pr.RULE_COLUMNS, pr.RULE_COLUMNS):
            passed[U(count)] = place
            count += (
                sets.holds_fact(facts, rules[U(place + pr.WATCHED)])
                & sets.holds_fact(facts, rules[U(place + pr.ALSO)])
                & sets.holds_fact(facts, rules[U(place + pr.THIRD)])
            )
    for i in range(count):
        follow(state, rules, np.int64(passed[i]))


@called
def pass_watched(state: Int64, node_row: int, child_facts: int, count: int) -> int:
    """Write down the rules of a node with many that pass: how many there are then.

    What its rules watch are words of facts, as the child facts are. Where these are few words, each
    is searched for among those that are watched.
    """
    nodes, offsets = int32s(state, at.PROGRAM.nodes), int64s(state, at.CACHE.facts.starts)
    places, found = int32s(state, at.PROGRAM.watch_places), int32s(state, at.CACHE.facts.places)
    facts = uint64s(state, at.SCRATCH.child_facts)
    low = np.int64(nodes[node_row + pr.WATCHES])
    end = np.int64(nodes[node_row + pr.NODE_COLUMNS + pr.WATCHES])
    total = count
    if SEARCH * (offsets[child_facts + 1] - offsets[child_facts]) > end - low:
        for i in range(low, end):
            total = pass_word(state, i, facts[U(places[i])], total)
        return total
    for i in range(offsets[child_facts], offsets[child_facts + 1]):
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
def pass_word(state: Int64, number: int, child_facts: np.uint64, count: int) -> int:
    """What ``pass_watched`` does for one word of what is watched."""
    rules, runs = int32s(state, at.PROGRAM.rules), int32s(state, at.PROGRAM.runs)
    facts, passed = uint64s(state, at.SCRATCH.child_facts), int32s(state, at.SCRATCH.rules)
    watched = uint64s(state, at.PROGRAM.watch_words)[number]
    rank = int32s(state, at.PROGRAM.watch_ranks)
    left = watched & child_facts
    total = count
    while left != U(0):
        lowest = left & (U(0) - left)
        left ^= lowest
        run = rank[number] + ones(watched & (lowest - U(1)))
        for rule in range(runs[run], runs[run + 1]):
            place = rule * pr.RULE_COLUMNS
            passed[U(total)] = place
            has_also = sets.holds_fact(facts, rules[place + pr.ALSO])
            total += has_also & sets.holds_fact(facts, rules[place + pr.THIRD])
    return total


@inlined
def follow(state: Int64, rules: Int32, row: int) -> None:
    """Do what a rule says, unless there is more to its formula, and that does not hold."""
    formula = rules[row + pr.FORMULA]
    if formula < 0 or holds(state, formula):
        action, target = rules[row + pr.ACTION], np.int64(rules[row + pr.TARGET])
        if action == pr.ACCEPTS:
            bits = uint8s(state, at.SCRATCH.answer_bits)
            is_open = sets.is_set(uint8s(state, at.SCRATCH.open_queries), target)
            if is_open and not sets.is_set(bits, target):
                sets.set_bit(bits, target)
                int32s(state, at.SCRATCH.answers)[state[at.TAKEN]] = target
                state[at.TAKEN] += 1
        elif action == pr.COUNTS:
            derive_count(state, target, rules[row + pr.SOURCE])
        else:
            sets.derive(state, target)


@called
def holds(state: Int64, formula: int) -> bool:
    """Whether a formula holds of the facts that hold."""
    code, offsets = int32s(state, at.PROGRAM.formula_code), int64s(state, at.PROGRAM.formula_starts)
    facts = uint64s(state, at.SCRATCH.child_facts)
    i, end = offsets[formula], offsets[formula + 1]
    if uint8s(state, at.PROGRAM.formula_kinds)[formula] == pr.CONJUNCTION:
        while i < end and sets.holds_fact(facts, code[i]):
            i += 1
        return i == end
    stack = U(0)  # the last bit is the top
    while i < end:
        operator = code[i]
        i += 1
        if operator >= 0:
            stack = stack << U(1) | U(sets.holds_fact(facts, operator))
        elif operator == pr.NOT:
            stack ^= U(1)
        elif operator == pr.AND:
            stack = stack >> U(1) & (stack | ~U(1))
        elif operator == pr.OR:
            stack = stack >> U(1) | stack & U(1)
        elif operator == pr.COUNT:
            value = int32s(state, at.SCRATCH.counter_values)[code[i]]
            stack = stack << U(1) | U(code[i + 1] <= value <= code[i + 2])
            i += 3
        else:
            stack = stack << U(1) | U(1)
    return stack & U(1) != U(0)


# -- merging ---------------------------------------------------------------------------------------


@inlined
def merge_facts(state: Int64, child_facts: int, result: int, is_plain: bool) -> int:
    """The child facts with a child's result, or with facts of a value; or a status, negated.

    Where nothing is counted, it ``is_plain``: a union of sets.
    """
    if is_plain and child_facts in (at.EMPTY, result):
        return result
    known = uint64s(state, at.CACHE.merges.keys)
    slot = sets.slot_of(known, sets.pair(child_facts, result))
    if known[slot]:
        return int64s(state, at.CACHE.merges.values)[slot]
    return merge(state, child_facts, result, is_plain)


@called
def merge(state: Int64, child_facts: int, result: int, is_plain: bool) -> int:
    """What ``merge_facts`` returns, which becomes known."""
    if sets.is_crowded(state, at.CACHE.merges):
        return -at.FULL_MERGES
    if is_plain:
        merged = sets.union(state, child_facts, result)
    else:
        merged = merge_counts(state, child_facts, result)
    if merged < 0:
        return -at.FULL_FACTS
    sets.put(state, at.CACHE.merges, sets.pair(child_facts, result), merged)
    return merged


# -- counting and positions ----------------------------------------


@inlined
def counter_of(state: Int64, fact: int) -> int:
    """The counter whose value a fact says."""
    start = 64 * int64s(state, at.PROGRAM.fact_ends)[pr.OF_DESCENDANT]
    return np.int64(int32s(state, at.PROGRAM.fact_counters)[fact - start])


@called
def set_counts(state: Int64, number: int, is_adding: bool) -> None:
    """Add what the facts of a set say to their counters, up to the limits; or set these to 0."""
    offsets, places, words = sets.fact_sets(state)
    ends, values = int64s(state, at.PROGRAM.fact_ends), int32s(state, at.SCRATCH.counter_values)
    limits = int32s(state, at.PROGRAM.counter_limits)
    bases = int32s(state, at.PROGRAM.counter_bases)
    for i in range(offsets[number], offsets[number + 1]):
        word = words[i] if places[i] >= ends[pr.OF_DESCENDANT] else U(0)
        while word != U(0):
            fact = 64 * np.int64(places[i]) + first(word)
            word &= word - U(1)
            counter = counter_of(state, fact)
            value = values[counter] + fact - bases[counter]
            values[counter] = min(value, np.int64(limits[counter])) if is_adding else 0


@called
def derive_count(state: Int64, counter: int, source: int) -> None:
    """Derive the fact that says how much an element adds to a counter, if it does."""
    value = np.int64(int32s(state, at.SCRATCH.counter_values)[source]) if source >= 0 else 1
    if value:
        limit = np.int64(int32s(state, at.PROGRAM.counter_limits)[counter])
        sets.derive(state, int32s(state, at.PROGRAM.counter_bases)[counter] + min(value, limit))


@called
def merge_counts(state: Int64, child_facts: int, result: int) -> int:
    """The child facts with a child's result where something is counted, or -1."""
    facts = uint64s(state, at.SCRATCH.child_facts)
    set_counts(state, child_facts, True)
    set_counts(state, result, True)
    sets.add_set(state, facts, result)
    lead_through_chains(state, result, True)
    sets.remove_set(state, facts, result)
    collect(state, child_facts)
    collect(state, result)
    set_counts(state, child_facts, False)
    set_counts(state, result, False)
    lead_through_chains(state, result, False)
    return sets.intern_derived(state)


@called
def collect(state: Int64, number: int) -> None:
    """Tell the facts of a set, counters with their present value, but not the stages."""
    offsets, places, words = sets.fact_sets(state)
    ends, bases = int64s(state, at.PROGRAM.fact_ends), int32s(state, at.PROGRAM.counter_bases)
    values = int32s(state, at.SCRATCH.counter_values)
    for i in range(offsets[number], offsets[number + 1]):
        place, word = np.int64(places[i]), words[i]
        if place >= ends[pr.OF_DESCENDANT]:
            while word != U(0):
                counter = counter_of(state, 64 * place + first(word))
                sets.derive(state, np.int64(bases[counter]) + values[counter])
                word &= word - U(1)
        elif place >= ends[pr.OF_STAGE]:
            sets.derive_word(state, place, word)


@called
def lead_through_chains(state: Int64, result: int, is_forward: bool) -> None:
    """Lead a child through the chains that begin with one of its facts, or set these back to 0."""
    offsets, places, words = sets.fact_sets(state)
    ends, starts = int64s(state, at.PROGRAM.fact_ends), int64s(state, at.PROGRAM.chain_starts)
    numbers = int32s(state, at.PROGRAM.chain_numbers)
    for i in range(offsets[result], offsets[result + 1]):
        word = words[i] if ends[pr.OF_VALUE] <= places[i] < ends[pr.OF_STAGE] else U(0)
        while word != U(0):
            fact = 64 * (places[i] - ends[pr.OF_VALUE]) + first(word)
            word &= word - U(1)
            for j in range(starts[fact], starts[fact + 1]):
                if not is_forward:
                    set_back(state, numbers[j])
                elif lead(state, numbers[j]):
                    derive_numbered(state, result, numbers[j])


@called
def lead(state: Int64, chain: int) -> bool:
    """Lead a child through the stages of a chain: whether it passes them all."""
    offsets, stages = int64s(state, at.PROGRAM.stage_starts), int32s(state, at.PROGRAM.stages)
    facts, values = uint64s(state, at.SCRATCH.child_facts), int32s(state, at.SCRATCH.counter_values)
    for i in range(offsets[chain], offsets[chain + 1]):
        fact, counter, number = stages[3 * i], stages[3 * i + 1], stages[3 * i + 2]
        if not sets.holds_fact(facts, fact) or values[counter] >= number:
            return False
        values[counter] += 1
        sets.derive(state, int32s(state, at.PROGRAM.counter_bases)[counter] + values[counter])
        if values[counter] < number:
            return False
    return True


@called
def derive_numbered(state: Int64, result: int, chain: int) -> None:
    """Derive what follows of a child that passed a chain, by what else holds of it."""
    offsets, places, words = sets.fact_sets(state)
    ends = int64s(state, at.PROGRAM.fact_ends)
    starts, lasts = int64s(state, at.PROGRAM.last_starts), int32s(state, at.PROGRAM.lasts)
    for i in range(offsets[result], offsets[result + 1]):
        word = words[i] if ends[pr.OF_VALUE] <= places[i] < ends[pr.OF_STAGE] else U(0)
        while word != U(0):
            fact = 64 * (places[i] - ends[pr.OF_VALUE]) + first(word)
            word &= word - U(1)
            for j in range(starts[fact], starts[fact + 1]):
                if lasts[2 * j] == chain:
                    sets.derive(state, np.int64(lasts[2 * j + 1]))


@called
def set_back(state: Int64, chain: int) -> None:
    """Set the counters of a chain to 0."""
    offsets, stages = int64s(state, at.PROGRAM.stage_starts), int32s(state, at.PROGRAM.stages)
    for i in range(offsets[chain], offsets[chain + 1]):
        int32s(state, at.SCRATCH.counter_values)[stages[3 * i + 1]] = 0
