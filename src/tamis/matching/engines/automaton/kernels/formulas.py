"""Formulas of facts, made of others by "all", "any" and "not".

A formula is a number. Most are conjunctions of facts, which ascend; the others are small trees,
written as programs for a stack.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.core.kernel.table import free_slot, slot_finder
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels import build as at
from tamis.matching.engines.automaton.kernels.facts import MIXER, are_equal, joined


@inlined
def hash_code(kind: int, code: Int32, start: int, end: int) -> np.uint64:
    """The hash of a formula."""
    hash = joined(MIXER, kind)
    for i in range(start, end):
        hash = joined(hash, code[i])
    return hash ^ hash >> U(32)


@inlined
def is_formula(known: Any, number: int, searched: Any) -> bool:
    """Whether a known formula is of a kind, and of a code of some length."""
    kinds, starts, codes = known
    kind, code, length = searched
    start = starts[number]
    return (
        kinds[number] == kind
        and starts[number + 1] - start == length
        and are_equal(codes, start, code, length)
    )


find_formula = slot_finder(is_formula)


@called
def add_formula(state: Int64, kind: int, code: Int32, length: int, depth: int) -> int:
    """The number of a formula, which is added where it is new; there must be room."""
    slots, starts = int32s(state, at.TABLES.formula_slots), int64s(state, at.TABLES.formula_starts)
    kinds, known = uint8s(state, at.TABLES.formula_kinds), int32s(state, at.TABLES.formula_code)
    hash = hash_code(kind, code, 0, length)
    slot = find_formula(slots, hash, (kinds, starts, known), (kind, code, length))
    if slots[slot] != 0:
        return np.int64(slots[slot]) - 1
    number, start = state[at.FORMULAS], state[at.CODE]
    slots[slot] = number + 1
    kinds[number] = kind
    uint8s(state, at.TABLES.formula_depths)[number] = depth
    for i in range(length):
        known[start + i] = code[i]
    starts[number + 1] = start + length
    state[at.FORMULAS] += 1
    state[at.CODE] += length
    return number


@kernel
def add_holds(state: Int64, fact: int) -> int:
    """The formula of: a fact holds."""
    work = int32s(state, at.TABLES.work)
    work[0] = fact
    return add_formula(state, pr.CONJUNCTION, work, 1, 1)


@kernel
def rehash_formulas(state: Int64) -> None:
    """Enter all formulas into their slots, which are empty."""
    slots, starts = int32s(state, at.TABLES.formula_slots), int64s(state, at.TABLES.formula_starts)
    kinds, known = uint8s(state, at.TABLES.formula_kinds), int32s(state, at.TABLES.formula_code)
    for number in range(state[at.FORMULAS]):
        hash = hash_code(kinds[number], known, starts[number], starts[number + 1])
        slots[free_slot(slots, hash)] = number + 1


# -- of other formulas ---------------------------------------------------------------------------


@kernel
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


@kernel
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


@kernel
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
