"""Formulas of facts, each stored once: made of others by "all", "any" and "not".

A formula is a number. Most are conjunctions of facts, which ascend; the others are small trees,
written as programs for a stack.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.compile import layout as at
from tamis.matching.engines.automaton.kernels.build import add_formula


@called
def all_hold(state: Int64, first: int, last: int) -> int:
    """The formula of: all of some pending formulas hold."""
    pending, kinds = int32s(state, at.TABLES.pending), uint8s(state, at.TABLES.formula_kinds)
    if last - first == 1:
        return np.int64(pending[first])
    starts, code = int64s(state, at.TABLES.formula_starts), int32s(state, at.TABLES.formula_code)
    work, others = int32s(state, at.TABLES.work), int32s(state, at.TABLES.others)
    facts = several = 0
    for i in range(first, last):
        formula = np.int64(pending[i])
        if formula == at.FALSE:
            return at.FALSE
        if kinds[formula] == pr.CONJUNCTION:
            for place in range(starts[formula], starts[formula + 1]):
                facts = insert(work, facts, code[place])
        else:
            several = insert(others, several, formula)
    conjunction = add_formula(state, pr.CONJUNCTION, work, facts, min(facts, 2) if facts else 1)
    if several == 0:
        return conjunction
    if facts == 0 and several == 1:
        return np.int64(others[0])
    deepest_first(state, several)
    if facts > 0:
        # A conjunction in front can be watched, but takes a place on the stack from all others.
        depths = uint8s(state, at.TABLES.formula_depths)
        place = 0 if depths[np.int64(others[0])] < at.DEPTH_MAX // 2 else several
        for i in range(several, place, -1):
            others[i] = others[i - 1]
        others[place] = conjunction
        several += 1
    return join(state, several, pr.AND)


@called
def some_hold(state: Int64, first: int, last: int) -> int:
    """The formula of: one of some pending formulas holds, or several."""
    pending, others = int32s(state, at.TABLES.pending), int32s(state, at.TABLES.others)
    several = 0
    for i in range(first, last):
        if pending[i] == at.TRUE:
            return at.TRUE
        if pending[i] != at.FALSE:
            several = insert(others, several, pending[i])
    if several == 0:
        return at.FALSE
    if several == 1:
        return np.int64(others[0])
    deepest_first(state, several)
    return join(state, several, pr.OR)


@called
def negation(state: Int64, formula: int) -> int:
    """The formula of: another does not hold."""
    if formula in (at.TRUE, at.FALSE):
        return at.FALSE if formula == at.TRUE else at.TRUE
    work = int32s(state, at.TABLES.work)
    length = write(state, formula, work, 0)
    work[length] = pr.NOT
    return add_formula(state, pr.GENERAL, work, length + 1, depth(work, length + 1))


@called
def insert(numbers: Int32, count: int, number: int) -> int:
    """How many ascending numbers there are with one more, if it is new."""
    place = count
    while place > 0 and numbers[place - 1] > number:
        place -= 1
    if place > 0 and numbers[place - 1] == number:
        return count
    for i in range(count, place, -1):
        numbers[i] = numbers[i - 1]
    numbers[place] = number
    return count + 1


@called
def deepest_first(state: Int64, several: int) -> None:
    """Put formulas into the order that needs the smallest stack: no number of nested ones fills it.

    They ascend, and go on to where they are equally deep.
    """
    others, depths = int32s(state, at.TABLES.others), uint8s(state, at.TABLES.formula_depths)
    for i in range(1, several):
        formula = np.int64(others[i])
        place = i
        while place > 0 and depths[np.int64(others[place - 1])] < depths[formula]:
            others[place] = others[place - 1]
            place -= 1
        others[place] = formula


@called
def join(state: Int64, several: int, operator: int) -> int:
    """The formula of others, with an operator between."""
    work, others = int32s(state, at.TABLES.work), int32s(state, at.TABLES.others)
    length = write(state, others[0], work, 0)
    for i in range(1, several):
        length = write(state, others[i], work, length)
        work[length] = operator
        length += 1
    return add_formula(state, pr.GENERAL, work, length, depth(work, length))


@called
def write(state: Int64, formula: int, into: Int32, end: int) -> int:
    """Write a formula as a program for a stack behind others: where it ends."""
    starts, code = int64s(state, at.TABLES.formula_starts), int32s(state, at.TABLES.formula_code)
    first, last = starts[formula], starts[formula + 1]
    if first == last:
        into[end] = pr.CONSTANT_TRUE
        return end + 1
    is_conjunction = uint8s(state, at.TABLES.formula_kinds)[formula] == pr.CONJUNCTION
    for place in range(first, last):
        into[end] = code[place]
        end += 1
        if is_conjunction and place > first:
            into[end] = pr.AND
            end += 1
    return end


@inlined
def depth(code: Int32, length: int) -> int:
    """How much a program has on its stack, at most."""
    now = most = place = 0
    while place < length:
        operator = code[place]
        if operator in (pr.AND, pr.OR):
            now -= 1
        elif operator != pr.NOT:
            now += 1
        most = max(most, now)
        place += 4 if operator == pr.COUNT else 1
    return most


# -- for Python ------------------------------------------------------------------------------------


@kernel
def all_of(state: Int64, count: int) -> int:
    """See ``all_hold``; of the first pending formulas."""
    return all_hold(state, 0, count)


@kernel
def any_of(state: Int64, count: int) -> int:
    """See ``some_hold``; of the first pending formulas."""
    return some_hold(state, 0, count)


@kernel
def negation_of(state: Int64, formula: int) -> int:
    """See ``negation``."""
    return negation(state, formula)


@kernel
def formula_of(state: Int64, kind: int, length: int) -> int:
    """The number of the formula that is written as work."""
    work = int32s(state, at.TABLES.work)
    return add_formula(state, kind, work, length, depth(work, length))


# -- what stands with rules ------------------------------------------------------------------------


@kernel
def weigh(state: Int64, weights: Int64) -> None:
    """By fact: how many facts it rests on. Those that it rests on have smaller numbers."""
    kinds, starts = uint8s(state, at.TABLES.formula_kinds), int64s(state, at.TABLES.formula_starts)
    facts, code = int32s(state, at.TABLES.facts), int32s(state, at.TABLES.formula_code)
    for fact in range(len(weights)):
        formula = np.int64(facts[fact * at.FACT_ROW + at.FACT_FORMULA])
        if facts[fact * at.FACT_ROW + at.KIND] == pr.OF_ITSELF:
            weights[fact] = 0
        elif formula < 0 or kinds[formula] != pr.CONJUNCTION:
            weights[fact] = 1
        else:
            total = 1
            for place in range(starts[formula], starts[formula + 1]):
                total += weights[np.int64(code[place])]
            weights[fact] = total


@kernel
def count_uses(kinds: Bytes, starts: Int64, code: Int32, uses: Int64) -> None:
    """By fact: in how many conjunctions it is."""
    for formula in range(len(kinds)):
        if kinds[formula] == pr.CONJUNCTION:
            for place in range(starts[formula], starts[formula + 1]):
                uses[np.int64(code[place])] += 1


@kernel
def finish(
    kinds: Bytes,
    starts: Int64,
    code: Int32,
    facts: Int32,
    is_child_fact: Bytes,
    ranks: Int32,
    watches: Int32,
) -> None:
    """Put facts' numbers into formulas, in place, the least likely first in conjunctions.

    Args:
        facts: the number of each fact in the program.
        ranks: facts ascend by these from the least likely on.
        watches: filled; four numbers for each formula that stand with its rules: three facts that
            it needs, and the formula, or -1 if that is all.
    """
    for formula in range(len(kinds)):
        start, end = starts[formula], starts[formula + 1]
        is_conjunction = kinds[formula] == pr.CONJUNCTION
        if is_conjunction:
            sort_by_rank(code, start, end, ranks)
        watched = -1
        can_be = start < end and code[start] >= 0
        if can_be and (is_conjunction or needs_first(code, start, end)):
            watched = np.int64(code[start])
        if watched >= 0 and is_child_fact[watched] == 0:
            watched = -1
        place = start
        while place < end:
            if code[place] == pr.COUNT:
                place += 4
                continue
            if code[place] >= 0:
                code[place] = facts[np.int64(code[place])]
            place += 1
        row = 4 * formula
        if watched < 0:
            watches[row] = watches[row + 1] = watches[row + 2] = -1
            watches[row + 3] = -1 if formula == at.TRUE else formula
        elif not is_conjunction:
            watches[row] = watches[row + 1] = watches[row + 2] = code[start]
            watches[row + 3] = formula
        else:
            watches[row] = code[start]
            watches[row + 1] = code[start + 1] if end - start > 1 else code[start]
            watches[row + 2] = code[start + 2] if end - start > 2 else code[start]
            watches[row + 3] = formula if end - start > 3 else -1


@called
def sort_by_rank(code: Int32, start: int, end: int, ranks: Int32) -> None:
    """Sort a few facts."""
    for i in range(start + 1, end):
        fact = np.int64(code[i])
        place = i
        while place > start and ranks[np.int64(code[place - 1])] > ranks[fact]:
            code[place] = code[place - 1]
            place -= 1
        code[place] = fact


@called
def needs_first(code: Int32, start: int, end: int) -> bool:
    """Whether the first operand of a program takes part in nothing but conjunctions."""
    depth, place = 0, start
    while place < end:
        operator = code[place]
        if operator == pr.COUNT:
            depth, place = depth + 1, place + 4
            continue
        if operator in (pr.AND, pr.OR):
            depth -= 1
            if depth == 1 and operator != pr.AND:
                return False
        elif operator == pr.NOT:
            if depth == 1:
                return False
        else:
            depth += 1
        place += 1
    return True
