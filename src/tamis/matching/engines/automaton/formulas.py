"""Formulas of facts, each stored once, as Python makes them (see ``kernels/formulas.py``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tamis.matching.engines.automaton.building import FALSE, TRUE
from tamis.matching.engines.automaton.growing import Tables
from tamis.matching.engines.automaton.kernels.adding import add_holds
from tamis.matching.engines.automaton.kernels.formulas import (
    all_of,
    any_of,
    formula_of,
    negation_of,
)
from tamis.matching.engines.automaton.program import COUNT, GENERAL

Code = tuple[int, ...]


class Formulas:
    """All formulas of a program. A formula is a number.

    >>> formulas = Formulas(Tables())
    >>> a, b = formulas.fact(5), formulas.fact(3)
    >>> formulas.code(formulas.all([a, b, TRUE]))
    (3, 5)
    >>> formulas.all([b, a]) == formulas.all([a, b]), formulas.all([a, FALSE])
    (True, -1)
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def code(self, formula: int) -> Code:
        """The facts of a conjunction, or a program for a stack."""
        start, end = self._tables["formula_starts"][formula : formula + 2].tolist()
        return tuple(self._tables["formula_code"][start:end].tolist())

    def fact(self, fact: int) -> int:
        """A fact holds."""
        return int(add_holds(self._tables.step(), fact))

    def all(self, formulas: Sequence[int]) -> int:
        """All of them hold."""
        if len(formulas) == 1:
            return formulas[0]
        self._wait(formulas)
        return int(all_of(self._tables.step(), len(formulas)))

    def any(self, formulas: Sequence[int]) -> int:
        """One of them holds, or several."""
        self._wait(formulas)
        return int(any_of(self._tables.step(), len(formulas)))

    def negation(self, formula: int) -> int:
        """It does not hold."""
        self._make_room([formula])
        return int(negation_of(self._tables.step(), formula))

    def between(self, counter: int, lowest: int, highest: int) -> int:
        """The value of a counter is in a range; -1 is a counter that stays 0."""
        if lowest > highest or highest < 0:
            return FALSE
        if counter < 0:
            return TRUE if lowest <= 0 else FALSE
        self._tables["work"][:4] = COUNT, counter, lowest, highest
        return int(formula_of(self._tables.step(), GENERAL, 4))

    def _wait(self, formulas: Sequence[int]) -> None:
        self._make_room(formulas)
        self._tables["pending"][: len(formulas)] = formulas

    def _make_room(self, formulas: Iterable[int]) -> None:
        """What joins formulas may be as long as all of them, with an operator after each fact."""
        starts = self._tables["formula_starts"]
        size = sum(4 + 2 * int(starts[f + 1] - starts[f]) for f in formulas)
        self._tables.reserve_work(size)
        self._tables.reserve_code(size)
