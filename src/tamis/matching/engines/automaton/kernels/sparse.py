"""Which facts are sparse: they stay outside of sets, in an overlay (see ``overlay.py``)."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.compile import layout as at

DENSE, LARGE, SMALL, SPARSE, PURE, QUIET = 1, 2, 4, 8, 16, 32
"""What is known of a fact: it has to be in sets; it is about one of many constants, or of a few; it
may stay outside of sets; it never holds without others that do; and it is only asked for together
with those, so that nobody needs to be told."""


@kernel
def classify(state: Int64, flags: Bytes) -> None:
    """Find which facts are SPARSE and PURE.

    What is counted, and what a formula denies, has to be in sets: whoever only looks at what holds
    does not notice it. What such facts rest on, has to be as well.

    Args:
        flags: by fact; DENSE and LARGE are given.
    """
    begins = int32s(state, at.TABLES.others)
    for formula in range(state[at.FORMULAS]):
        force_denied(state, formula, begins, flags)
    rules = int32s(state, at.TABLES.rules)
    for row in range(0, state[at.RULES] * at.RULE_ROW, at.RULE_ROW):
        if rules[row + at.RULE_ACTION] == pr.COUNTS:
            force_formula(state, np.int64(rules[row + at.RULE_FORMULA]), flags)
    for fact in range(state[at.FACTS] - 1, -1, -1):
        if flags[fact] & DENSE:
            stage, formula = rests_on(state, fact)
            if stage >= 0:
                flags[stage] |= np.uint8(DENSE)
            elif formula >= 0:
                force_formula(state, formula, flags)
    for fact in range(state[at.FACTS]):
        if flags[fact] & DENSE == 0:
            stage, formula = rests_on(state, fact)
            if flags[fact] & LARGE:
                flags[fact] |= np.uint8(SPARSE | PURE)
            elif stage >= 0:
                flags[fact] |= flags[stage] & np.uint8(SPARSE | PURE)
            elif formula >= 0 and has_any(state, formula, flags, SPARSE):
                is_pure = not holds_without(state, formula, flags, PURE)
                flags[fact] |= np.uint8(SPARSE | PURE if is_pure else SPARSE)


@kernel
def add_companions(state: Int64, flags: Bytes) -> None:
    """Find which facts are QUIET, and SPARSE by that.

    Like the years of ``//article[author = "A" and year > 1999]``: to have them in sets would have
    these differ, and nobody asks for the year of an article that is by nobody who is sought.

    Args:
        flags: by fact; SMALL is given, and what ``classify`` found.
    """
    for fact in range(state[at.FACTS]):
        if flags[fact] & (DENSE | SPARSE) == 0:
            stage, formula = rests_on(state, fact)
            if (
                flags[fact] & SMALL
                or (stage >= 0 and flags[stage] & QUIET)
                or (formula >= 0 and has_any(state, formula, flags, QUIET))
            ):
                flags[fact] |= np.uint8(QUIET)
    rules = int32s(state, at.TABLES.rules)
    for row in range(0, state[at.RULES] * at.RULE_ROW, at.RULE_ROW):
        if rules[row + at.RULE_ACTION] == pr.ACCEPTS:
            ask_for(state, np.int64(rules[row + at.RULE_FORMULA]), flags)
    for fact in range(state[at.FACTS] - 1, -1, -1):
        if flags[fact] & QUIET == 0:
            stage, formula = rests_on(state, fact)
            if stage >= 0 and flags[stage] & SPARSE == 0:
                flags[stage] &= np.uint8(~QUIET & 0xFF)
            if stage < 0 and formula >= 0:
                ask_for(state, formula, flags)
    for fact in range(state[at.FACTS]):
        if flags[fact] & QUIET:
            stage, formula = rests_on(state, fact)
            if flags[fact] & SMALL:
                flags[fact] |= np.uint8(SPARSE | PURE)
            elif stage >= 0:
                flags[fact] |= flags[stage] & np.uint8(SPARSE | PURE)
            elif has_any(state, formula, flags, SPARSE):
                is_pure = not holds_without(state, formula, flags, PURE)
                flags[fact] |= np.uint8(SPARSE | PURE if is_pure else SPARSE)


@called
def ask_for(state: Int64, formula: int, flags: Bytes) -> None:
    """Note that whoever looks at a formula has to be told, unless it has other sparse facts."""
    if holds_without(state, formula, flags, PURE):
        starts = int64s(state, at.TABLES.formula_starts)
        code = int32s(state, at.TABLES.formula_code)
        place, end = starts[formula], starts[formula + 1]
        while place < end:
            if code[place] >= 0:
                flags[np.int64(code[place])] &= np.uint8(~QUIET & 0xFF)
            place += 4 if code[place] == pr.COUNT else 1


@inlined
def rests_on(state: Int64, fact: int) -> tuple[int, int]:
    """The fact OF_STAGE that a fact rests on, or else the formula; -1 for none.

    All that a fact rests on has smaller numbers, so to go through facts once, up or down, will do.
    """
    facts, lasts = int32s(state, at.TABLES.facts), int32s(state, at.TABLES.lasts)
    kind = facts[fact * at.FACT_ROW + at.KIND]
    formula = np.int64(facts[fact * at.FACT_ROW + at.FACT_FORMULA])
    stage = np.int64(-1)
    if kind < pr.OF_STAGE:
        formula = np.int64(-1)
    elif formula < 0:
        stage = np.int64(lasts[(-2 - formula) * at.LAST_ROW + at.LAST_STAGE])
    return stage, formula


@called
def force_denied(state: Int64, formula: int, begins: Int32, flags: Bytes) -> None:
    """Note that the facts that a formula denies have to be in sets.

    Args:
        begins: room for where the operands begin that are on the stack.
    """
    if uint8s(state, at.TABLES.formula_kinds)[formula] == pr.CONJUNCTION:
        return
    starts, code = int64s(state, at.TABLES.formula_starts), int32s(state, at.TABLES.formula_code)
    top, place = -1, starts[formula]
    while place < starts[formula + 1]:
        operator = code[place]
        if operator == pr.NOT:
            force(code, np.int64(begins[top]), place, flags)
        elif operator in (pr.AND, pr.OR):
            top -= 1
        else:
            top += 1
            begins[top] = place
        place += 4 if operator == pr.COUNT else 1


@called
def force_formula(state: Int64, formula: int, flags: Bytes) -> None:
    """Note that the facts of a formula have to be in sets."""
    starts, code = int64s(state, at.TABLES.formula_starts), int32s(state, at.TABLES.formula_code)
    force(code, starts[formula], starts[formula + 1], flags)


@called
def force(code: Int32, place: int, end: int, flags: Bytes) -> None:
    """Likewise those of a part of a program."""
    while place < end:
        if code[place] == pr.COUNT:
            place += 4
            continue
        if code[place] >= 0:
            flags[np.int64(code[place])] |= np.uint8(DENSE)
        place += 1


@called
def has_any(state: Int64, formula: int, flags: Bytes, flag: int) -> bool:
    """Whether there is a fact in a formula of which something is known."""
    starts, code = int64s(state, at.TABLES.formula_starts), int32s(state, at.TABLES.formula_code)
    place, end = starts[formula], starts[formula + 1]
    while place < end:
        if code[place] >= 0 and flags[np.int64(code[place])] & flag:
            return True
        place += 4 if code[place] == pr.COUNT else 1
    return False


@called
def holds_without(state: Int64, formula: int, flags: Bytes, mask: int) -> bool:
    """Whether a formula may hold where no PURE fact does: what is not known may hold.

    Args:
        mask: PURE; or with QUIET, where just those facts do not hold that are PURE and not QUIET.
    """
    starts, code = int64s(state, at.TABLES.formula_starts), int32s(state, at.TABLES.formula_code)
    place, end = starts[formula], starts[formula + 1]
    if uint8s(state, at.TABLES.formula_kinds)[formula] == pr.CONJUNCTION:
        while place < end and flags[np.int64(code[place])] & mask != PURE:
            place += 1
        return place == end
    stack = U(0)
    while place < end:
        operator = code[place]
        if operator >= 0:
            stack = stack << U(1) | U(flags[np.int64(operator)] & mask != PURE)
        elif operator == pr.NOT:
            stack |= U(1)
        elif operator == pr.AND:
            stack = stack >> U(1) & (stack | ~U(1))
        elif operator == pr.OR:
            stack = stack >> U(1) | stack & U(1)
        else:
            stack = stack << U(1) | U(1)
        place += 4 if operator == pr.COUNT else 1
    return stack & U(1) != U(0)


@kernel
def find_triggers(
    state: Int64,
    flags: Bytes,
    uses: Int64,
    asked: Int64,
    starts: Int64,
    triggers: Int32,
    is_only: Bytes,
) -> None:
    """By formula: the sparse facts of which one has to hold, where it comes to hold by them.

    Args:
        flags: what is known of facts.
        uses: in how many conjunctions a fact is: of those that must all hold, one is enough.
        asked: filled; in how many formulas a fact is.
        starts, triggers: filled.
        is_only: filled; whether the formula does not hold without them.
    """
    offsets, code = int64s(state, at.TABLES.formula_starts), int32s(state, at.TABLES.formula_code)
    kinds = uint8s(state, at.TABLES.formula_kinds)
    count = 0
    for formula in range(state[at.FORMULAS]):
        starts[formula] = count
        is_only[formula] = not holds_without(state, formula, flags, PURE)
        mask = wanted = PURE if is_only[formula] else SPARSE
        if not holds_without(state, formula, flags, PURE | QUIET):
            mask = PURE | QUIET
        is_one_enough = is_only[formula] and kinds[formula] == pr.CONJUNCTION
        place, end = offsets[formula], offsets[formula + 1]
        while place < end:
            fact = np.int64(code[place])
            if fact >= 0:
                asked[fact] += 1
            if fact >= 0 and flags[fact] & mask == wanted:
                if not is_one_enough or count == starts[formula]:
                    triggers[count] = fact
                    count += 1
                elif uses[fact] < uses[np.int64(triggers[count - 1])]:
                    triggers[count - 1] = fact
            place += 4 if fact == pr.COUNT else 1
    starts[state[at.FORMULAS]] = count
