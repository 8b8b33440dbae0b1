"""Queries, from their words (see ``tamis.language.table``) to rows and formulas."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import called, inlined, kernel
from tamis.core.kernel.record import float64s, int32s, uint8s
from tamis.language import table as words
from tamis.matching.engines.automaton.kernels import build as at
from tamis.matching.engines.automaton.kernels import rows
from tamis.matching.engines.automaton.kernels.formulas import all_hold, negation, some_hold

# Columns of levels and groups that are open: the word that began it, and the place behind that; the
# node and the cover around it; where its pending formulas begin; PASS; how many positions there
# were, each of which is two numbers among the pending ones; whether a step leads on from it.
BEGUN, PLACE, AROUND, COVER, HELD, PASS, POSITIONS, LEADS, LEVEL_ROW = range(9)
ONLY, ITSELF_PASS, BELOW_PASS = range(3)
"""A step to where it begins and to descendants is read twice: once for each of both."""
# Operators, by number.
EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST = range(6)
OPERATOR_MASK = (1 << words.FUNCTION_SHIFT) - 1
COUNT_MAX = 4096
"""The largest position; counts are compared with less."""
NO_COUNTER, NEVER_COUNTED = -1, -2


@kernel
def add_queries(
    state: Int64, starts: Int64, answered: Int32, rooms: Int64, code_rooms: Int64, first: int
) -> int:
    """Add queries from the first one on: the one that there is no room for, or how many there are.

    Args:
        answered: the query that each of them answers.
        rooms, code_rooms: rows, and numbers of formulas, that each may need.
    """
    query = first
    while query < len(answered) and has_room(state, rooms[query], code_rooms[query]):
        add_query(state, starts[query], starts[query + 1], np.int64(answered[query]))
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
def add_query(state: Int64, start: int, end: int, query: int) -> None:
    """Add one query; where one of several items is enough, each is accepted by itself."""
    code = int32s(state, at.TABLES.code)
    if code[start] & words.KIND_MASK != words.ANY or end_of(code, start) != end:
        add_items(state, start, end, query)
        return
    start += 1
    while start < end - 1:
        behind = end_of(code, start)
        add_items(state, start, behind, query)
        start = behind


@inlined
def end_of(code: Int32, place: int) -> int:
    """The place behind the item that begins at a place."""
    depth = 0
    while True:
        kind = code[place] & words.KIND_MASK
        place += 1
        if kind == words.END:
            depth -= 1
        elif kind <= words.NOT:
            depth += 1
        if depth == 0:
            return place + (kind == words.COMPARE)


@called
def add_items(state: Int64, start: int, end: int, query: int) -> None:
    """Have a query accepted where items hold of the document."""
    code, levels = int32s(state, at.TABLES.code), int32s(state, at.TABLES.levels)
    outer = outer_levels(code, start, end)
    for level in range(outer):
        levels[level * LEVEL_ROW + PASS] = ONLY
    state[at.NODE] = state[at.LEVEL] = state[at.HELD] = state[at.COUNTING] = 0
    state[at.COVER], state[at.PLACE], state[at.OUTER] = at.ALL_COVERED, start, outer
    while True:
        place = state[at.PLACE]
        is_end = place == end
        if not is_end:
            state[at.PLACE] = place + 1
            kind = code[place] & words.KIND_MASK
            word = np.int64(code[place])
            if kind == words.STEP:
                begin_step(state, word)
            elif kind == words.COMPARE:
                ask(state, word >> words.KIND_BITS, np.int64(code[place + 1]) >> words.KIND_BITS)
            elif kind == words.NTH:
                add_position(state, word >> words.KIND_BITS)
            elif kind != words.END:
                begin(state, word)
            elif state[at.LEVEL] == state[at.OUTER]:
                is_end = True
            else:
                end_level(state)
        if is_end:
            accept(state, query)
            if not goes_below(state, outer):
                return


@called
def outer_levels(code: Int32, place: int, end: int) -> int:
    """How many levels there are around what is left to be asked at the node of a step.

    That is the last step which is all that is asked of the ones before: where ``//a[b]`` is true,
    so is ``//a/b``, and what is true of b need not be a fact of a.
    """
    leading = 0
    while is_outer(code[place]):
        leading += 1
        place += 1
    depth = lowest = leading
    while place < end:
        kind = code[place] & words.KIND_MASK
        if kind == words.END:
            depth -= 1
        elif kind == words.NTH:  # it is the parent that counts
            lowest = min(lowest, depth - 1)
        else:
            lowest = min(lowest, depth)
            depth += kind <= words.NOT
        place += 1
    return min(leading, lowest)


@inlined
def is_outer(word: int) -> bool:
    """Whether a step may lead on to where a query is accepted."""
    flags = word >> words.KIND_BITS
    is_self = flags & words.SELF and not flags & words.DESCENDANT
    return word & words.KIND_MASK == words.STEP and not is_self and not flags & words.COUNTED


@called
def accept(state: Int64, query: int) -> None:
    """Accept a query where all holds that is pending in the innermost level."""
    first = 0
    if state[at.LEVEL] > 0:
        first = content(state)
        read_leaves(state)
    rows.add_accept(state, state[at.NODE], all_hold(state, first, state[at.HELD]), query)


@called
def goes_below(state: Int64, outer: int) -> bool:
    """Read an outer level once more, for the descendants, if one of them asks for that."""
    levels = int32s(state, at.TABLES.levels)
    for level in range(outer - 1, -1, -1):
        if levels[level * LEVEL_ROW + PASS] == ITSELF_PASS:
            state[at.LEVEL], state[at.OUTER] = level + 1, outer
            state[at.HELD] = levels[level * LEVEL_ROW + HELD]
            begin_below(state)
            return True
    return False


# -- levels and groups -----------------------------------------------------------------------------


@inlined
def top(state: Int64) -> int:
    """Where the row of the innermost level or group begins."""
    return (state[at.LEVEL] - 1) * LEVEL_ROW


@inlined
def push(state: Int64, formula: int) -> None:
    """Have one more formula wait."""
    int32s(state, at.TABLES.pending)[state[at.HELD]] = formula
    state[at.HELD] += 1


@inlined
def content(state: Int64) -> int:
    """Where the formulas begin that are left of the innermost level."""
    levels, row = int32s(state, at.TABLES.levels), top(state)
    is_second = levels[row + PASS] == BELOW_PASS and state[at.LEVEL] > state[at.OUTER]
    return np.int64(levels[row + HELD]) + 2 * np.int64(levels[row + POSITIONS]) + is_second


@called
def begin(state: Int64, word: int) -> None:
    """Begin a level or group."""
    levels = int32s(state, at.TABLES.levels)
    state[at.LEVEL] += 1
    row = top(state)
    levels[row + BEGUN], levels[row + PLACE] = word, state[at.PLACE]
    levels[row + AROUND], levels[row + COVER] = state[at.NODE], state[at.COVER]
    levels[row + HELD], levels[row + PASS] = state[at.HELD], ONLY
    levels[row + POSITIONS] = levels[row + LEADS] = 0


@called
def begin_step(state: Int64, word: int) -> None:
    """Begin the level of a step."""
    levels = int32s(state, at.TABLES.levels)
    flags = word >> words.KIND_BITS
    test = np.int64(int32s(state, at.TABLES.tests_of_words)[flags >> words.TEST_SHIFT])
    if not flags & words.SELF:
        if state[at.LEVEL] > 0 and not flags & words.COUNTED:
            levels[top(state) + LEADS] = 1
        begin(state, word)
        go(state, flags & words.DESCENDANT, test)
        return
    begin(state, word)
    here = rows.is_itself(state, state[at.NODE], test)
    if here == at.FALSE and not flags & words.DESCENDANT:
        state[at.PLACE] = end_of(int32s(state, at.TABLES.code), state[at.PLACE] - 1)
        state[at.LEVEL] -= 1
        push(state, here)
        return
    if here == at.FALSE:
        if state[at.LEVEL] > state[at.OUTER]:
            push(state, here)
        begin_below(state)
        return
    if flags & words.DESCENDANT:
        levels[top(state) + PASS] = ITSELF_PASS
        if here != at.TRUE:  # then it is a fact of what is around
            state[at.OUTER] = min(state[at.OUTER], state[at.LEVEL] - 1)
    if here != at.TRUE:
        push(state, here)
    state[at.COVER] = rows.cover_of(state, test, state[at.COVER])


@called
def go(state: Int64, is_below: int, test: int) -> None:
    """Go to the node that a step leads to."""
    if rows.kind_of(state, test) == at.TEXT_NODE:
        uint8s(state, at.TABLES.reads_text)[state[at.COVER]] = 1
    state[at.NODE] = rows.add_node(state, state[at.NODE], is_below, test)
    state[at.COVER] = rows.cover_of(state, test, state[at.COVER])


@called
def begin_below(state: Int64) -> None:
    """Read the innermost level for the descendants."""
    levels, code = int32s(state, at.TABLES.levels), int32s(state, at.TABLES.code)
    row = top(state)
    levels[row + PASS] = BELOW_PASS
    state[at.NODE], state[at.COVER] = levels[row + AROUND], levels[row + COVER]
    place = state[at.PLACE] = np.int64(levels[row + PLACE])
    flags = np.int64(levels[row + BEGUN]) >> words.KIND_BITS
    test = np.int64(int32s(state, at.TABLES.tests_of_words)[flags >> words.TEST_SHIFT])
    is_step = code[place] & words.KIND_MASK == words.STEP
    leads_on = is_step and not code[place] >> words.KIND_BITS & (words.SELF | words.COUNTED)
    if leads_on and rows.kind_of(state, test) == at.ANY_CHILD:
        test = rows.add_test(state, at.ELEMENT, -1, -1)  # only elements have children
    go(state, words.DESCENDANT, test)


@called
def read_leaves(state: Int64) -> None:
    """Note what has to be read where the innermost level may be at text or a comment."""
    levels, row = int32s(state, at.TABLES.levels), top(state)
    flags = np.int64(levels[row + BEGUN]) >> words.KIND_BITS
    has_moved = not flags & words.SELF or levels[row + PASS] == BELOW_PASS
    leads = levels[row + LEADS] and not levels[row + POSITIONS]
    kind = rows.kind_of(state, rows.test_of(state, state[at.NODE]))
    if has_moved and not leads and kind == at.ANY_CHILD:
        uint8s(state, at.TABLES.reads_text)[np.int64(levels[row + COVER])] = 1
        state[at.READS_MISC] = 1


@called
def end_level(state: Int64) -> None:
    """End a level or group: its formula is one more of what is around."""
    levels, pending = int32s(state, at.TABLES.levels), int32s(state, at.TABLES.pending)
    row = top(state)
    begun, first = np.int64(levels[row + BEGUN]), np.int64(levels[row + HELD])
    kind = begun & words.KIND_MASK
    if kind == words.STEP:
        if end_step(state, begun >> words.KIND_BITS):
            return
    elif kind == words.ANY:
        pending[first] = some_hold(state, first, state[at.HELD])
    else:
        holds = all_hold(state, first, state[at.HELD])
        pending[first] = holds if kind == words.ALL else negation(state, holds)
    state[at.HELD] = first + (state[at.COUNTING] == 0)
    state[at.NODE], state[at.COVER] = np.int64(levels[row + AROUND]), np.int64(levels[row + COVER])
    state[at.LEVEL] -= 1


@called
def end_step(state: Int64, flags: int) -> bool:
    """Put the formula of a level where its own began; True where it is read once more instead."""
    levels, pending = int32s(state, at.TABLES.levels), int32s(state, at.TABLES.pending)
    row, start, node = top(state), content(state), state[at.NODE]
    first, which = np.int64(levels[row + HELD]), levels[row + PASS]
    read_leaves(state)
    holds = all_hold(state, start, state[at.HELD])
    if state[at.COUNTING]:
        end_counted(state, holds, first)
    elif levels[row + POSITIONS]:
        pending[first] = at_position(state, holds, first, np.int64(levels[row + POSITIONS]))
    elif which == BELOW_PASS:
        pending[first + 1] = rows.add_derived(state, node, words.DESCENDANT, holds)
        pending[first] = some_hold(state, first, first + 2)
    elif flags & words.SELF:
        pending[first] = holds
        if which == ITSELF_PASS:
            state[at.HELD] = first + 1
            begin_below(state)
            return True
    else:
        pending[first] = rows.add_derived(state, node, flags & words.DESCENDANT, holds)
    return False


# -- values, positions and numbers of nodes --------------------------------------------------------


@called
def ask(state: Int64, asked: int, literal: int) -> None:
    """Ask for the value of what the innermost level is at."""
    state[at.PLACE] += 1
    operator, functions = asked & OPERATOR_MASK, asked >> words.FUNCTION_SHIFT
    if functions & words.COUNT:
        begin_count(state, operator, float64s(state, at.TABLES.number_values)[-1 - literal])
        return
    if literal >= 0:
        number = np.int64(int32s(state, at.TABLES.strings_of_words)[literal])
    else:
        number = -1 - np.int64(int32s(state, at.TABLES.numbers_of_words)[-1 - literal])
    uint8s(state, at.TABLES.reads_text)[state[at.COVER]] = 1
    if operator == UNEQUAL and literal >= 0:
        equal = rows.add_value(state, state[at.NODE], functions, EQUAL, number)
        push(state, negation(state, equal))
    else:
        push(state, rows.add_value(state, state[at.NODE], functions, operator, number))


@called
def add_position(state: Int64, position: int) -> None:
    """Let those children through for which all before holds, and that are the n-th of them."""
    levels, pending = int32s(state, at.TABLES.levels), int32s(state, at.TABLES.pending)
    start = content(state)
    holds = all_hold(state, start, state[at.HELD])
    pending[start] = -1 if holds == at.FALSE else rows.add_stage(state, state[at.NODE], holds)
    pending[start + 1] = position
    state[at.HELD] = start + 2
    levels[top(state) + POSITIONS] += 1


@called
def at_position(state: Int64, holds: int, first: int, positions: int) -> int:
    """The formula, around a level, of: the child at its positions is as asked.

    Args:
        first: where the stages are among what is pending: a fact and a number for each.
    """
    pending = int32s(state, at.TABLES.pending)
    stage = -1
    for place in range(first, first + 2 * positions, 2):
        if pending[place] < 0:
            return at.FALSE
        if positions > 1 or pending[place + 1] > 1:
            fact, number = np.int64(pending[place]), np.int64(pending[place + 1])
            stage = rows.add_stage_of_chain(state, stage, fact, number)
    if holds == at.FALSE:
        return at.FALSE
    chain = rows.add_chain(state, -1 - stage if stage >= 0 else np.int64(pending[first]))
    return rows.add_passed(state, state[at.NODE], chain, holds)


@called
def begin_count(state: Int64, operator: int, number: float) -> None:
    """Have what leads to the innermost level counted, and the count compared with a number."""
    number = max(min(number, COUNT_MAX + 0.5), -1.0)  # all above, and all below, count as this
    lowest, highest = 0, COUNT_MAX + 1
    if operator <= UNEQUAL:
        lowest = highest = int(number) if number == np.floor(number) else -1
    elif operator == LESS:
        highest = int(np.ceil(number)) - 1
    elif operator == AT_MOST:
        highest = int(np.floor(number))
    elif operator == MORE:
        lowest = int(np.floor(number)) + 1
    else:
        lowest = int(np.ceil(number))
    lowest = max(lowest, 0)
    limit = int(max(number, 0.0)) + 1
    if number > COUNT_MAX and operator in (LESS, AT_MOST):
        highest = limit
    is_constant = lowest > min(highest, COUNT_MAX) or (lowest == 0 and highest >= limit)
    state[at.COUNTING], state[at.LIMIT] = 1, limit
    state[at.LOWEST], state[at.HIGHEST] = lowest, highest
    state[at.IS_NEGATED] = operator == UNEQUAL
    state[at.COUNTER] = NEVER_COUNTED if is_constant else NO_COUNTER


@inlined
def is_end_of_counted(state: Int64) -> bool:
    """Whether what ends the innermost level is the last step of the path of the one around it."""
    around = np.int64(int32s(state, at.TABLES.levels)[top(state) - LEVEL_ROW + BEGUN])
    is_last = int32s(state, at.TABLES.code)[state[at.PLACE]] & words.KIND_MASK == words.END
    is_step = around & words.KIND_MASK == words.STEP
    return is_last and is_step and around >> words.KIND_BITS & words.COUNTED != 0


@called
def end_counted(state: Int64, holds: int, first: int) -> None:
    """End a level of which the nodes are counted; around the first one, a formula is left."""
    pending = int32s(state, at.TABLES.pending)
    counter = state[at.COUNTER]
    if holds == at.FALSE:
        counter = NEVER_COUNTED
    if counter != NEVER_COUNTED:
        counter = rows.add_counter_of(state, state[at.NODE], holds, counter, state[at.LIMIT])
    state[at.COUNTER] = counter
    if state[at.LEVEL] > 1 and is_end_of_counted(state):
        return
    state[at.COUNTING] = 0
    lowest, highest = state[at.LOWEST], state[at.HIGHEST]
    if lowest > min(highest, COUNT_MAX):
        formula = at.FALSE
    elif counter == NEVER_COUNTED:
        formula = at.TRUE if lowest == 0 else at.FALSE
    else:
        formula = rows.add_between(state, counter, lowest, highest)
    pending[first] = negation(state, formula) if state[at.IS_NEGATED] else formula
