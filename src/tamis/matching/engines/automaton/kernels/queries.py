"""Formulas of facts, made of others by "all", "any" and "not"; and plain queries, added in bulk.

A formula is a number. Most are conjunctions of facts, which ascend; the others are small trees,
written as programs for a stack. Plain queries come as words (see ``tamis.language.table``).
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.language import table as plain
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels import build as at
from tamis.matching.engines.automaton.kernels.build import add_formula

KIND_MASK = (1 << plain.KIND_BITS) - 1
"""The bits of a word that say what it is; flags are behind them."""


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


@kernel
def formula_of(state: Int64, kind: int, length: int) -> int:
    """The number of the formula that is written as work."""
    work = int32s(state, at.TABLES.work)
    return add_formula(state, kind, work, length, depth(work, length))


# -- plain queries ---------------------------------------------------------------------------------

# Columns of levels: what began, the node around it, where its formulas begin among those pending,
# and elements in which all lies that was reached.
BEGUN, AROUND, HELD, COVER, LEVEL_ROW = range(5)
EQUAL_TO, UNEQUAL_TO = 0, 1
"""Operators, by number."""


@kernel
def add_plain(
    state: Int64,
    code: Int32,
    starts: Int64,
    tests: Int32,
    strings: Int32,
    numbers: Int32,
    answered: Int32,
    first: int,
    room: int,
    code_room: int,
) -> int:
    """Add queries from the first one on: the one that there is no room for, or how many there are.

    Args:
        tests, strings, numbers: what those of the plain queries are called here.
        answered: the query that each of them answers.
        room, code_room: rows, and numbers of formulas, that one of them may need.
    """
    query = first
    while query < len(starts) - 1 and has_room(state, room, code_room):
        start, end = starts[query], starts[query + 1]
        add_query(state, code, start, end, tests, strings, numbers, answered[query])
        query += 1
    return query


@called
def has_room(state: Int64, room: int, code_room: int) -> bool:
    """Whether every table has room for some more."""
    for table in at.ROW_TABLES:
        if (state[table.used] + room) * table.width > len(int32s(state, table.rows)):
            return False
    has_formulas = state[at.FORMULAS] + room < len(uint8s(state, at.TABLES.formula_kinds))
    return has_formulas and state[at.CODE] + code_room <= len(int32s(state, at.TABLES.formula_code))


@called
def add_query(
    state: Int64,
    code: Int32,
    index: int,
    end: int,
    tests: Int32,
    strings: Int32,
    numbers: Int32,
    query: int,
) -> None:
    """Add one query: a stack of its open levels, and one of the formulas that wait in them."""
    levels, pending = int32s(state, at.TABLES.levels), int32s(state, at.TABLES.pending)
    covers = int32s(state, at.TABLES.test_covers)
    depth = outer_levels(code, index, end)
    level = held = node = 0
    cover = at.ALL_COVERED
    while index < end:
        word = np.int64(code[index])
        kind = word & KIND_MASK
        index += 1
        if kind == plain.ASKS:
            literal = np.int64(code[index])
            index += 1
            number = strings[literal] if literal >= 0 else -1 - np.int64(numbers[-1 - literal])
            pending[held] = asked(state, node, word >> plain.KIND_BITS, number)
            held += 1
            uint8s(state, at.TABLES.reads_text)[cover] = 1
        elif kind != plain.END:
            row = level * LEVEL_ROW
            levels[row + BEGUN], levels[row + AROUND] = word, node
            levels[row + HELD], levels[row + COVER] = held, cover
            level += 1
            if kind == plain.STEP:
                test = np.int64(tests[word >> plain.KIND_BITS + plain.TEST_SHIFT])
                node = at.add_node(state, node, word >> plain.KIND_BITS & plain.BELOW, test)
                if uint8s(state, at.TABLES.test_kinds)[test] == at.TEXT_NODE:
                    uint8s(state, at.TABLES.reads_text)[cover] = 1
                if covers[test] >= 0:
                    cover = np.int64(covers[test])
        else:
            level -= 1
            row = level * LEVEL_ROW
            begun, first = np.int64(levels[row + BEGUN]), np.int64(levels[row + HELD])
            if level == depth:
                at.add_accept(state, node, all_hold(state, first, held), query)
                return
            pending[first] = closed(state, begun, node, first, held)
            held = first + 1
            node, cover = np.int64(levels[row + AROUND]), np.int64(levels[row + COVER])


@inlined
def outer_levels(code: Int32, index: int, end: int) -> int:
    """How many levels there are around the step at whose node a query is accepted.

    That is the last step which is all that is asked of the ones before: where ``//a[b]`` is true,
    so is ``//a/b``, and what is true of b need not be a fact of a.
    """
    leading = 0
    while is_step(code[index]):
        leading += 1
        index += 1
    depth = lowest = leading
    while index < end:
        kind = code[index] & KIND_MASK
        if kind == plain.END:
            depth -= 1
        else:
            lowest = min(lowest, depth)
            if kind == plain.ASKS:
                index += 1
            else:
                depth += 1
        index += 1
    return min(leading, lowest) - 1


@inlined
def is_step(word: int) -> bool:
    """Whether a word begins a level, of any of the nodes that pass."""
    return word & KIND_MASK == plain.STEP and not word >> plain.KIND_BITS & plain.FIRST


@inlined
def closed(state: Int64, begun: int, node: int, first: int, held: int) -> int:
    """The formula of a level that ends, around it."""
    kind = begun & KIND_MASK
    if kind == plain.ANY:
        return some_hold(state, first, held)
    holds = all_hold(state, first, held)
    if kind == plain.ALL:
        return holds
    if kind != plain.STEP:
        return negation(state, holds)
    flags = begun >> plain.KIND_BITS
    test = np.int64(int32s(state, at.TABLES.nodes)[node * at.NODE_ROW + at.TEST])
    is_one = uint8s(state, at.TABLES.test_kinds)[test] == at.ATTRIBUTE
    if flags & plain.FIRST and not is_one:
        chain = at.add_chain(state, at.add_stage(state, node, at.TRUE))
        return at.add_passed(state, node, chain, holds)
    return at.add_derived(state, node, flags & plain.BELOW, holds)


@inlined
def asked(state: Int64, node: int, operator: int, literal: int) -> int:
    """The formula of: the string value of what a node stands for is as asked."""
    if operator == UNEQUAL_TO and literal >= 0:
        return negation(state, at.add_value(state, node, 0, EQUAL_TO, literal))
    return at.add_value(state, node, 0, operator, literal)
