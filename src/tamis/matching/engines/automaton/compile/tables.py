"""``Tables`` and ``Formulas``: what a program is built in, and its room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel.state import State, zeros
from tamis.core.kernel.table import slots_for
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.compile import layout as at
from tamis.matching.engines.automaton.compile.layout import Building
from tamis.matching.engines.automaton.kernels.build import (
    add_holds,
    rehash_formulas,
    rehash_rows,
    rehash_strings,
)
from tamis.matching.engines.automaton.kernels.queries import all_of, any_of, formula_of, negation_of

ROOM = 1024
"""Rows that every table has room for before it is asked for more."""
CODE_ROOM = 1 << 16
"""Numbers of formulas' programs that a plain query may need: each level writes what is in it."""
_OPERATIONS = 128
"""How many operations of the builder that is enough for, at least."""
_NAMES = dict(zip(at.TABLES, Building._fields, strict=True))
"""Names of arrays, by field."""


class Tables:
    """The tables of a program that grows (see ``Building``).

    Attributes:
        state: what kernels are given: counts, and where the arrays are.
    """

    def __init__(self) -> None:
        self._state = State(at.STATE_SIZE, at.TABLES, zeros(Building, 1))
        self.state = self._state.words
        self._state.reserve(4 * ROOM, "levels", "pending", "work", "others")
        self["formula_kinds"][0] = pr.CONJUNCTION
        self["formula_depths"][0] = 1
        self.state[at.FORMULAS] = 1  # the one that is always true: its number is TRUE
        self._left = 0
        self.reserve(ROOM, ROOM)
        self.reserve_strings(0, 0)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """All of an array, with its room."""
        array: NDArray[Any] = getattr(self._state.arrays, name)
        return array

    def rows(self, name: str) -> Int32:
        """The rows of a table, a view: int32[n, width]."""
        (table,) = (table for table in at.ROW_TABLES if table.rows == getattr(at.TABLES, name))
        return self[name][: int(self.state[table.used]) * table.width].reshape(-1, table.width)

    def step(self) -> Int64:
        """The state, for an operation that adds a few rows to each table at most."""
        if self._left == 0:
            self.reserve(ROOM, ROOM)
            self._left = _OPERATIONS
        self._left -= 1
        return self.state

    def used_up(self) -> None:
        """Something else than ``step`` added rows: there may be no room left for operations."""
        self._left = 0

    # -- room --------------------------------------------------------------------------------------

    def reserve(self, rows: int, code: int) -> None:
        """Make room for more rows in each table, and for more numbers of formulas' programs."""
        for table in at.ROW_TABLES:
            count = int(self.state[table.used])
            name = _NAMES[table.rows]
            self._state.reserve((count + rows) * table.width, name)
            if table.keys and self._grow_slots(_NAMES[table.slots], count + rows):
                slots = self[_NAMES[table.slots]]
                rehash_rows(self[name], table.width, table.keys, count, slots)
        formulas = int(self.state[at.FORMULAS]) + rows
        self._state.reserve(formulas + 1, "formula_kinds", "formula_depths", "formula_starts")
        self._state.reserve(int(self.state[at.CODE]) + code, "formula_code")
        if self._grow_slots("formula_slots", formulas):
            rehash_formulas(self.state)

    def _grow_slots(self, name: str, count: int) -> bool:
        """Have twice as many slots as things, at least: whether they are new, and empty."""
        is_full = 2 * count >= len(self[name])
        if is_full:
            self._state.replace(**{name: slots_for(count)})
        return is_full

    def reserve_strings(self, strings: int, size: int) -> None:
        """Make room for more strings, of a size in bytes together."""
        strings += int(self.state[at.STRINGS])
        self._state.reserve(strings + 1, "string_starts")
        self._state.reserve(int(self.state[at.BYTES]) + size, "string_bytes")
        if self._grow_slots("string_slots", strings):
            rehash_strings(self.state)

    def reserve_code(self, size: int) -> None:
        """Make room for a program of a formula, and for some more."""
        self._state.reserve(int(self.state[at.CODE]) + size + ROOM, "formula_code")

    def reserve_work(self, size: int) -> None:
        """Make room for work with so many numbers."""
        self._state.reserve(size, "pending", "work", "others")

    def set_tests(self, kinds: list[int], covers: list[int]) -> None:
        """Tell kernels of all tests: their kinds, and what they let pass covers."""
        self._state.replace(
            test_kinds=np.array(kinds, np.uint8), test_covers=np.array(covers, np.int32)
        )
        self._state.reserve(at.FIRST_COVER + len(kinds), "reads_text")


Code = tuple[int, ...]


class Formulas:
    """All formulas of a program. A formula is a number.

    >>> formulas = Formulas(Tables())
    >>> a, b = formulas.fact(5), formulas.fact(3)
    >>> formulas.code(formulas.all([a, b, at.TRUE]))
    (3, 5)
    >>> formulas.all([b, a]) == formulas.all([a, b]), formulas.all([a, at.FALSE])
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
            return at.FALSE
        if counter < 0:
            return at.TRUE if lowest <= 0 else at.FALSE
        self._tables["work"][:4] = pr.COUNT, counter, lowest, highest
        return int(formula_of(self._tables.step(), pr.GENERAL, 4))

    def _wait(self, formulas: Sequence[int]) -> None:
        self._make_room(formulas)
        self._tables["pending"][: len(formulas)] = formulas

    def _make_room(self, formulas: Iterable[int]) -> None:
        """What joins formulas may be as long as all of them, with an operator after each fact."""
        starts = self._tables["formula_starts"]
        size = sum(4 + 2 * int(starts[f + 1] - starts[f]) for f in formulas)
        self._tables.reserve_work(size)
        self._tables.reserve_code(size)
