"""Formulas of facts, each stored once.

A formula is a number. Most are conjunctions of facts; the others are small trees, written as
programs for a stack.
"""

from __future__ import annotations

from collections.abc import Sequence

from tamis.matching.automaton.program import (
    AND,
    CONJUNCTION,
    CONSTANT_TRUE,
    COUNT,
    GENERAL,
    NOT,
    OR,
)

TRUE, FALSE = 0, -1
"""Numbers of formulas; FALSE is never in a program."""
DEPTH_MAX = 64
"""What a program may have on its stack, which is one word."""

Code = tuple[int, ...]


class Formulas:
    """All formulas of a program.

    >>> formulas = Formulas()
    >>> a, b = formulas.fact(5), formulas.fact(3)
    >>> formulas.codes[formulas.all([a, b, TRUE])]
    (3, 5)
    >>> formulas.all([b, a]) == formulas.all([a, b]), formulas.all([a, FALSE])
    (True, -1)
    """

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, Code], int] = {(CONJUNCTION, ()): TRUE}
        self.kinds: list[int] = [CONJUNCTION]
        self.codes: list[Code] = [()]
        self._depths: list[int] = [1]

    def fact(self, fact: int) -> int:
        """A fact holds."""
        return self._number(CONJUNCTION, (fact,))

    def all(self, formulas: Sequence[int]) -> int:
        """All of them hold."""
        facts: set[int] = set()
        others: set[int] = set()
        for formula in formulas:
            if formula == FALSE:
                return FALSE
            if self.kinds[formula] == CONJUNCTION:
                facts.update(self.codes[formula])
            else:
                others.add(formula)
        conjunction = self._number(CONJUNCTION, tuple(sorted(facts)))
        if not others:
            return conjunction
        if not facts and len(others) == 1:
            return others.pop()
        several = self._deepest_first(others)
        if not facts:
            return self._joined(several, AND)
        # A conjunction in front can be watched, but takes a place on the stack from all others.
        if self._depths[several[0]] < DEPTH_MAX // 2:
            return self._joined([conjunction, *several], AND)
        return self._joined([*several, conjunction], AND)

    def any(self, formulas: Sequence[int]) -> int:
        """One of them holds, or several."""
        some = {formula for formula in formulas if formula != FALSE}
        if not some or TRUE in some:
            return TRUE if some else FALSE
        return some.pop() if len(some) == 1 else self._joined(self._deepest_first(some), OR)

    def negation(self, formula: int) -> int:
        """It does not hold."""
        if formula in (TRUE, FALSE):
            return FALSE if formula == TRUE else TRUE
        return self._number(GENERAL, (*self._general(formula), NOT))

    def between(self, counter: int, lowest: int, highest: int) -> int:
        """The value of a counter is in a range; -1 is a counter that stays 0."""
        if lowest > highest or highest < 0:
            return FALSE
        if counter < 0:
            return TRUE if lowest <= 0 else FALSE
        return self._number(GENERAL, (COUNT, counter, lowest, highest))

    def _deepest_first(self, formulas: set[int]) -> list[int]:
        """The order that needs the smallest stack: so no number of nested formulas fills it."""
        return sorted(formulas, key=lambda formula: (-self._depths[formula], formula))

    def _joined(self, formulas: list[int], operator: int) -> int:
        code = [*self._general(formulas[0])]
        for formula in formulas[1:]:
            code += [*self._general(formula), operator]
        return self._number(GENERAL, tuple(code))

    def _general(self, formula: int) -> Code:
        """The program of a formula."""
        code = self.codes[formula]
        if self.kinds[formula] == GENERAL:
            return code
        if not code:
            return (CONSTANT_TRUE,)
        result = [code[0]]
        for fact in code[1:]:
            result += [fact, AND]
        return tuple(result)

    def _number(self, kind: int, code: Code) -> int:
        number = self.numbers.setdefault((kind, code), len(self.codes))
        if number == len(self.codes):
            self.kinds.append(kind)
            self.codes.append(code)
            self._depths.append(min(len(code), 2) if kind == CONJUNCTION else depth(code))
            assert self._depths[number] <= DEPTH_MAX
        return number


def depth(code: Code) -> int:
    """How much a program has on its stack, at most.

    >>> depth((7, 8, NOT, AND)), depth((7, 8, AND, 9, AND)), depth((7, 8, 9, AND, AND))
    (2, 2, 3)
    """
    now = most = place = 0
    while place < len(code):
        operator = code[place]
        if operator in (AND, OR):
            now -= 1
        elif operator != NOT:
            now += 1
        most = max(most, now)
        place += 4 if operator == COUNT else 1
    return most


def watch(kind: int, code: Code) -> int:
    """A fact without which a formula cannot hold, or -1; of a conjunction the first.

    >>> watch(GENERAL, (7, 8, NOT, AND)), watch(GENERAL, (7, NOT))
    (7, -1)
    """
    if kind == CONJUNCTION:
        return code[0] if code else -1
    return code[0] if code[0] >= 0 and _needs_first(code) else -1


def _needs_first(code: Code) -> bool:
    """Whether the first operand of a program takes part in nothing but conjunctions."""
    depth, place = 0, 0
    while place < len(code):
        operator = code[place]
        if operator == COUNT:
            depth, place = depth + 1, place + 4
            continue
        if operator in (AND, OR):
            depth -= 1
            if depth == 1 and operator != AND:
                return False
        elif operator == NOT:
            if depth == 1:
                return False
        else:
            depth += 1
        place += 1
    return True
