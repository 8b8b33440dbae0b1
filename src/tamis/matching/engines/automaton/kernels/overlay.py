"""The overlay: the sparse facts of the open elements, and what follows where one ends.

Sets of facts, and the cache, hold no sparse facts: each is on a stack, with the level of the
element whose child has it. Where that element ends, the set answers for all other facts; then the
rules of each sparse fact are looked at, one by one.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.matching.engines.automaton import layout as at
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels import answers
from tamis.matching.engines.automaton.kernels import facts as sets
from tamis.matching.engines.automaton.kernels.ends import holds, load_facts, unload_facts

PENDING = 1 << 31
"""In a key of what is reached: the first number is of pending nodes."""


@inlined
def is_overlaid(state: Int64, level: int) -> bool:
    """Whether an element has sparse facts, the innermost one that is open, at a level."""
    count = state[at.OVERLAID]
    return count > 0 and int32s(state, at.PROGRESS.overlay_levels)[count - 1] == level


@inlined
def is_sparse(state: Int64, fact: int) -> bool:
    """Whether a fact stays outside of sets."""
    sparse = uint64s(state, at.PROGRAM.sparse)
    return len(sparse) > 0 and sets.holds_fact(sparse, fact) != 0


@inlined
def lay_over(state: Int64, level: int, fact: int) -> int:
    """Put a sparse fact on the overlay of an element, unless it is consumed: DONE, or a status."""
    if sets.holds_fact(uint64s(state, at.SCRATCH.consumed), fact):
        return at.DONE
    count = state[at.OVERLAID]
    facts = int32s(state, at.PROGRESS.overlay_facts)
    if count == len(facts):
        return at.FULL_OVERLAY
    facts[count] = fact
    int32s(state, at.PROGRESS.overlay_levels)[count] = level
    state[at.OVERLAID] = count + 1
    return at.DONE


@called
def lay_derived(state: Int64, level: int) -> int:
    """Put sparse facts that follow on the overlay of an element instead.

    Where there is no room, that is the status, and no facts follow.
    """
    sparse = uint64s(state, at.PROGRAM.sparse)
    derived, summary = uint64s(state, at.SCRATCH.derived), uint64s(state, at.SCRATCH.derived_words)
    status = at.DONE
    for i in range(len(summary) if len(sparse) else 0):
        which = summary[i]
        while which != U(0):
            place = 64 * i + first(which)
            lowest = which & (U(0) - which)
            which ^= lowest
            word = derived[place] & sparse[place]
            derived[place] ^= word
            while word != U(0) and not status:
                status = lay_over(state, level, 64 * place + first(word))
                word &= word - U(1)
            if status:
                derived[place] = U(0)
            if derived[place] == U(0):
                summary[i] ^= lowest
    return status


# -- the end of an element -------------------------------------------------------------------------


@called
def close_overlay(
    state: Int64, current: int, child_facts: int, around: int, result: int, level: int
) -> int:
    """Follow the rules of the sparse facts of an element: DONE; or a status, and all is done again.

    What was reported by then is not reported twice.

    Args:
        child_facts: with what is true of its value.
        around: the child facts of the element around it before.
        result: what it derives for that.
    """
    facts = int32s(state, at.PROGRESS.overlay_facts)
    levels = int32s(state, at.PROGRESS.overlay_levels)
    known, derived = uint64s(state, at.SCRATCH.child_facts), uint64s(state, at.SCRATCH.derived)
    end = state[at.OVERLAID]
    start = end
    while start > 0 and levels[start - 1] == level:
        start -= 1
    last = start
    for i in range(start, end):  # each once
        if not sets.holds_fact(known, facts[i]):
            sets.add_fact(known, facts[i])
            facts[last] = facts[i]
            last += 1
    state[at.OVERLAID] = last
    status = follow_sparse(state, start, last, current, child_facts, around, result)
    for i in range(start, last):
        known[facts[i] >> 6] = U(0)
    count = state[at.OVERLAID] - last
    for i in range(last, last + count):
        derived[facts[i] >> 6] = U(0)
    if status:
        state[at.OVERLAID] = last
        return status
    for i in range(count):
        facts[start + i] = facts[last + i]
        levels[start + i] = level - 1
    state[at.OVERLAID] = start + count
    return at.DONE


@called
def follow_sparse(
    state: Int64, start: int, end: int, current: int, child_facts: int, around: int, result: int
) -> int:
    """Do what the rules of some sparse facts say that hold: DONE, or a status.

    What an element derives is put behind what is on the overlay; each fact once.
    """
    facts = int32s(state, at.PROGRESS.overlay_facts)
    starts = int32s(state, at.PROGRAM.sparse_starts)
    rules, info = int32s(state, at.PROGRAM.sparse_rules), int32s(state, at.CACHE.state_info)
    row_of_state = current * at.STATE_COLUMNS
    is_loaded = False
    status = at.DONE
    i = start
    while i < end and not status:
        fact = np.int64(facts[i])
        i += 1
        rule, rule_end = np.int64(starts[fact]), np.int64(starts[fact + 1])
        while rule < rule_end and not status:
            row = rule * pr.RULE_COLUMNS
            rule += 1
            action, target = rules[row + pr.ACTION], np.int64(rules[row + pr.TARGET])
            if rules[row + pr.FORMULA] >= 0 or rules[row + pr.WATCHED] != rules[row + pr.ALSO]:
                if not is_loaded:
                    load_facts(state, current, child_facts)
                    is_loaded = True
                if not does_hold(state, row):
                    continue
            if action == pr.PASSES:
                where = PENDING | np.int64(info[row_of_state + at.INHERITED])
            else:
                where = np.int64(current)
            is_here = reaches(state, where, np.int64(rules[row + pr.SOURCE]))
            if is_here <= 0:
                status = -is_here
                continue
            if action == pr.ACCEPTS:
                status = accept(state, target)
                if rules[row + pr.CONSUMES] and not status:
                    consume(state, fact)
            else:
                status = derive_sparse(state, target, around, result)
    if is_loaded:
        unload_facts(state, current, child_facts)
    return status


@inlined
def consume(state: Int64, fact: int) -> None:
    """Mark a fact whose only query is true of the document by now."""
    consumed = uint64s(state, at.SCRATCH.consumed)
    if not sets.holds_fact(consumed, fact):
        sets.add_fact(consumed, fact)
        int32s(state, at.SCRATCH.consumed_facts)[state[at.CONSUMED]] = fact
        state[at.CONSUMED] += 1


@called
def begin_overlay(state: Int64) -> None:
    """Begin a document: nothing is on the overlay, and no fact is consumed."""
    consumed, facts = uint64s(state, at.SCRATCH.consumed), int32s(state, at.SCRATCH.consumed_facts)
    for i in range(state[at.CONSUMED]):
        consumed[facts[i] >> 6] = U(0)
    state[at.CONSUMED] = state[at.OVERLAID] = 0


@inlined
def does_hold(state: Int64, row: int) -> bool:
    """Whether all that a sparse rule asks for holds."""
    rules, known = int32s(state, at.PROGRAM.sparse_rules), uint64s(state, at.SCRATCH.child_facts)
    watched, formula = np.int64(rules[row + pr.WATCHED]), np.int64(rules[row + pr.FORMULA])
    if watched >= 0 and not (
        sets.holds_fact(known, watched)
        and sets.holds_fact(known, rules[row + pr.ALSO])
        and sets.holds_fact(known, rules[row + pr.THIRD])
    ):
        return False
    return formula < 0 or holds(state, formula)


@inlined
def accept(state: Int64, query: int) -> int:
    """Report an answer of one query: DONE, or a status."""
    known = int32s(state, at.CACHE.query_answers)
    if known[query] == 0:
        queries = int32s(state, at.SCRATCH.answers)
        sets.set_bit(uint8s(state, at.SCRATCH.answer_bits), query)
        queries[0] = query
        answer = sets.intern_answer(state, queries, 1)
        if answer < 0:
            return at.FULL_ANSWERS
        known[query] = answer + 1
    if not answers.can_report(state):
        return at.FULL_FOUND
    answers.report(state, np.int64(known[query] - 1))
    return at.DONE


@called
def derive_sparse(state: Int64, fact: int, around: int, result: int) -> int:
    """Derive a sparse fact for the element around, once: DONE, or a status.

    A fact OF_STAGE says what follows of a child that is the first of its kind: chains of several
    stages have no sparse facts.
    """
    ends = int64s(state, at.PROGRAM.fact_ends)
    number = fact - 64 * ends[pr.OF_VALUE]
    if number < 0 or fact >> 6 >= ends[pr.OF_STAGE]:
        return derive_once(state, fact)
    starts, lasts = int64s(state, at.PROGRAM.last_starts), int32s(state, at.PROGRAM.lasts)
    of_chain, stages = int64s(state, at.PROGRAM.stage_starts), int32s(state, at.PROGRAM.stages)
    bases = int32s(state, at.PROGRAM.counter_bases)
    status = at.DONE
    for i in range(starts[number], starts[number + 1]):
        chain, follows = np.int64(lasts[2 * i]), np.int64(lasts[2 * i + 1])
        kind, counter = stages[3 * of_chain[chain]], stages[3 * of_chain[chain] + 1]
        is_first = in_set(state, result, kind) and not in_set(state, around, bases[counter] + 1)
        if is_first and not status:
            status = derive_once(state, follows)
    return status


@inlined
def derive_once(state: Int64, fact: int) -> int:
    """Put a sparse fact behind the overlay, unless it is there, or consumed: DONE, or a status.

    Only facts that are put there are marked as derived: ``close_overlay`` takes these marks away.
    """
    derived, before = uint64s(state, at.SCRATCH.derived), state[at.OVERLAID]
    if sets.holds_fact(derived, fact):
        return at.DONE
    status = lay_over(state, -1, fact)
    if state[at.OVERLAID] > before:
        sets.add_fact(derived, fact)
    return status


@inlined
def in_set(state: Int64, number: int, fact: int) -> bool:
    """Whether a fact is in a set."""
    offsets, places, words = sets.fact_sets(state)
    place = fact >> 6
    low, high = offsets[number], offsets[number + 1]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if places[middle] < place:
            low = middle + 1
        else:
            high = middle
    if low == end or places[low] != place:
        return False
    return words[low] >> (U(fact) & U(63)) & U(1) != U(0)


# -- where rules are -------------------------------------------------------------------------------


@inlined
def reaches(state: Int64, where: int, node: int) -> int:
    """1 if a state reaches a node, or pending nodes have it; 0 if not; or a status, negated."""
    keys, key = uint64s(state, at.CACHE.reached.keys), sets.pair(where, node)
    slot = sets.slot_of(keys, key)
    if keys[slot] != U(0):
        return int64s(state, at.CACHE.reached.values)[slot]
    return find_reached(state, where, node)


@called
def find_reached(state: Int64, where: int, node: int) -> int:
    """What ``reaches`` returns, which becomes known."""
    if sets.is_crowded(state, at.CACHE.reached):
        return -at.FULL_REACHED
    is_here = False
    if where & PENDING:
        offsets, members = sets.lists(state, at.CACHE.pendings)
        pending = where ^ PENDING
        while pending:
            for i in range(offsets[pending], offsets[pending + 1]):
                is_here |= members[i] == node
            pending = int64s(state, at.CACHE.pending_info)[pending * at.PENDING_COLUMNS + at.AROUND]
    else:
        offsets, members = sets.lists(state, at.CACHE.states)
        ruled = np.int64(int32s(state, at.CACHE.state_info)[where * at.STATE_COLUMNS + at.RULED])
        for i in range(offsets[where], offsets[where] + ruled):
            is_here |= members[i] == node
    sets.put(state, at.CACHE.reached, sets.pair(where, node), np.int64(is_here))
    return np.int64(is_here)


@kernel
def compact_overlay(state: Int64) -> None:
    """Drop what is twice on the overlay of an element."""
    facts = int32s(state, at.PROGRESS.overlay_facts)
    levels, derived = int32s(state, at.PROGRESS.overlay_levels), uint64s(state, at.SCRATCH.derived)
    last = index = 0
    while index < state[at.OVERLAID]:
        level, start = levels[index], last
        while index < state[at.OVERLAID] and levels[index] == level:
            if not sets.holds_fact(derived, facts[index]):
                sets.add_fact(derived, facts[index])
                facts[last], levels[last] = facts[index], level
                last += 1
            index += 1
        for i in range(start, last):
            derived[facts[i] >> 6] = U(0)
    state[at.OVERLAID] = last
