"""What freezing needs of all tables: what stands with rules, which facts are sparse, constants."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64, Words
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.core.kernel.table import free_slot
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels import build as at
from tamis.matching.engines.automaton.kernels.values import TAG, bit_of, hashed, seed

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
    """Put facts' numbers in the program into formulas, in place; conjunctions ascend by ``ranks``.

    Four numbers for each formula stand with its rules, in ``watches``: three facts that it needs,
    and the formula, or -1 if that is all.
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
            if code[place] >= 0:
                code[place] = facts[np.int64(code[place])]
            place += 4 if code[place] == pr.COUNT else 1
        row = 4 * formula
        count = min(end - start, 3) if is_conjunction else 1
        for i in range(3):
            watches[row + i] = -1 if watched < 0 else code[start + (i if i < count else 0)]
        is_all = formula == at.TRUE if watched < 0 else is_conjunction and end - start <= 3
        watches[row + 3] = -1 if is_all else formula


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


# -- sparse facts ----------------------------------------------------------------------------------

DENSE, LARGE, SMALL, SPARSE, PURE, QUIET = 1, 2, 4, 8, 16, 32
"""What is known of a fact: it has to be in sets; it is about one of many constants, or of a few; it
may stay outside of sets; it never holds without others that do; and it is only asked for together
with those, so that it need not be in sets."""


@kernel
def classify(state: Int64, flags: Bytes) -> None:
    """Find which facts are SPARSE and PURE; DENSE and LARGE are given.

    What is counted, and what a formula denies, has to be in sets: whoever only looks at what holds
    does not notice it. What such facts rest on, has to be as well.
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
            inherit(state, fact, flags, LARGE)


@called
def inherit(state: Int64, fact: int, flags: Bytes, given: int) -> None:
    """Mark a fact as SPARSE, and PURE, by what it rests on; or if it is ``given``."""
    stage, formula = rests_on(state, fact)
    if flags[fact] & given:
        flags[fact] |= np.uint8(SPARSE | PURE)
    elif stage >= 0:
        flags[fact] |= flags[stage] & np.uint8(SPARSE | PURE)
    elif formula >= 0 and has_any(state, formula, flags, SPARSE):
        is_pure = not holds_without(state, formula, flags, PURE)
        flags[fact] |= np.uint8(SPARSE | PURE if is_pure else SPARSE)


@kernel
def add_companions(state: Int64, flags: Bytes) -> None:
    """Find which facts are QUIET, and SPARSE by that; SMALL is given, and what ``classify`` found.

    Like the years of ``//article[author = "A" and year > 1999]``: to have them in sets would have
    these differ, and no rule asks for the year of an article by an author that no rule asks for.
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
            inherit(state, fact, flags, SMALL)


@called
def ask_for(state: Int64, formula: int, flags: Bytes) -> None:
    """Mark the facts of a formula as needed in sets, unless it has other sparse facts."""
    if holds_without(state, formula, flags, PURE):
        code, place, end = code_of(state, formula)
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


@inlined
def code_of(state: Int64, formula: int) -> tuple[Int32, int, int]:
    """All code, and where that of a formula begins and ends."""
    starts = int64s(state, at.TABLES.formula_starts)
    return int32s(state, at.TABLES.formula_code), starts[formula], starts[formula + 1]


@called
def force_denied(state: Int64, formula: int, begins: Int32, flags: Bytes) -> None:
    """Mark the facts that a formula denies as DENSE; ``begins`` is room for a stack of operands."""
    if uint8s(state, at.TABLES.formula_kinds)[formula] == pr.CONJUNCTION:
        return
    code, place, end = code_of(state, formula)
    top = -1
    while place < end:
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
    """Mark the facts of a formula as DENSE."""
    code, start, end = code_of(state, formula)
    force(code, start, end, flags)


@called
def force(code: Int32, place: int, end: int, flags: Bytes) -> None:
    """Likewise those of a part of a program."""
    while place < end:
        if code[place] >= 0:
            flags[np.int64(code[place])] |= np.uint8(DENSE)
        place += 4 if code[place] == pr.COUNT else 1


@called
def has_any(state: Int64, formula: int, flags: Bytes, flag: int) -> bool:
    """Whether there is a fact in a formula of which something is known."""
    code, place, end = code_of(state, formula)
    while place < end:
        if code[place] >= 0 and flags[np.int64(code[place])] & flag:
            return True
        place += 4 if code[place] == pr.COUNT else 1
    return False


@called
def holds_without(state: Int64, formula: int, flags: Bytes, mask: int) -> bool:
    """Whether a formula may hold where no PURE fact does: what is not known may hold.

    With PURE and QUIET as mask, just those facts do not hold that are PURE and not QUIET.
    """
    code, place, end = code_of(state, formula)
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
        uses: in how many conjunctions a fact is: of those that must all hold, one is enough.
        asked: filled; in how many formulas a fact is.
        is_only: filled; whether the formula does not hold without its triggers.
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


# -- constants -------------------------------------------------------------------------------------


@kernel
def fill_slots(constants: Int32, texts: Bytes, slots: Words, bits: Words) -> None:
    """Put constants into an empty hash table, and prefixes into bits, as ``read_string`` looks."""
    for number in range(len(constants) // pr.CONSTANT_ROW - 1):
        row = number * pr.CONSTANT_ROW
        group = np.int64(constants[row + pr.ASKED_OF])
        hash = seed(group & ~1)
        next = row + pr.CONSTANT_ROW
        for place in range(constants[row + pr.FIRST_BYTE], constants[next + pr.FIRST_BYTE]):
            hash = hashed(hash, texts[place])
        if group & 1:
            bit = bit_of(hash, bits)
            bits[bit >> U(6)] |= U(1) << (bit & U(63))
        slots[free_slot(slots, hash ^ hash >> U(29))] = hash & TAG | U(number + 1)
