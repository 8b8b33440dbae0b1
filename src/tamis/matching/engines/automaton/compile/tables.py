"""``Tables`` and ``Formulas``: what a program is built in, and its room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel.record import register
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.cache import grown
from tamis.matching.engines.automaton.compile import layout as at
from tamis.matching.engines.automaton.compile.layout import Building
from tamis.matching.engines.automaton.kernels.build import (
    add_holds,
    rehash_formulas,
    rehash_rows,
    rehash_strings,
)
from tamis.matching.engines.automaton.kernels.formulas import (
    all_of,
    any_of,
    formula_of,
    negation_of,
)

ROOM = 1024
"""Rows that every table has room for before it is asked for more."""
CODE_ROOM = 1 << 16
"""Numbers of formulas' programs that a plain query may need: each level writes what is in it."""
_OPERATIONS = 128
"""How many operations of the builder that is enough for, at least."""
_KINDS: list[tuple[Any, Any]] = [(Int32, np.int32), (Int64, np.int64), (Bytes, np.uint8)]
_DTYPES = {
    name: dtype
    for name, kind in get_type_hints(Building).items()
    for known, dtype in _KINDS
    if kind == known
}


class _Rows(NamedTuple):
    """A table: its names, where its rows are counted, their width, and how many numbers say which.

    Tables without slots may have a row twice.
    """

    rows: str
    slots: str | None
    used: int
    width: int
    keys: int


_TABLES = (
    _Rows("nodes", "node_slots", at.NODES, at.NODE_ROW, 3),
    _Rows("facts", "fact_slots", at.FACTS, at.FACT_ROW, 3),
    _Rows("values", "value_slots", at.VALUES, at.VALUE_ROW, 3),
    _Rows("rules", "rule_slots", at.RULES, at.RULE_ROW, 5),
    _Rows("chains", "chain_slots", at.CHAINS, at.CHAIN_ROW, 1),
    _Rows("lasts", "last_slots", at.LASTS, at.LAST_ROW, 2),
    _Rows("numbers", "number_slots", at.NUMBERS, at.NUMBER_ROW, 2),
    _Rows("accepts", None, at.ACCEPTS, at.ACCEPT_ROW, 0),
    _Rows("limits", None, at.LIMITS, 1, 0),
)


class Tables:
    """The tables of a program that grows (see ``Building``).

    Attributes:
        state: what kernels are given: counts, and where the arrays are.
    """

    def __init__(self) -> None:
        self.state = np.zeros(at.STATE_SIZE, np.int64)
        self._arrays: dict[str, NDArray[Any]] = {
            name: np.zeros(1, dtype) for name, dtype in _DTYPES.items()
        }
        for name in ("levels", "pending", "work", "others"):
            self._widen(name, 4 * ROOM)
        self._arrays["formula_kinds"][0] = pr.CONJUNCTION
        self._arrays["formula_depths"][0] = 1
        self.state[at.FORMULAS] = 1  # the one that is always true: its number is TRUE
        self._left = 0
        self._is_registered = False
        self.reserve(ROOM, ROOM)
        self.reserve_strings(0, 0)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """All of an array, with its room."""
        return self._arrays[name]

    def rows(self, name: str) -> Int32:
        """The rows of a table, a view: int32[n, width]."""
        (table,) = (table for table in _TABLES if table.rows == name)
        used = int(self.state[table.used]) * table.width
        return self._arrays[name][:used].reshape(-1, table.width)

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
        for table in _TABLES:
            self._reserve_rows(table, rows)
        formulas = int(self.state[at.FORMULAS]) + rows
        self._widen("formula_kinds", formulas)
        self._widen("formula_depths", formulas)
        self._widen("formula_starts", formulas + 1)
        self._widen("formula_code", int(self.state[at.CODE]) + code)
        if 2 * formulas > len(self._arrays["formula_slots"]):
            self._set("formula_slots", _slots(formulas))
            self.register()
            rehash_formulas(self.state)
        self.register()

    def _reserve_rows(self, table: _Rows, more: int) -> None:
        count = int(self.state[table.used])
        self._widen(table.rows, (count + more) * table.width)
        if table.slots is not None and 2 * (count + more) > len(self._arrays[table.slots]):
            slots = _slots(count + more)
            self._set(table.slots, slots)
            rehash_rows(self._arrays[table.rows], table.width, table.keys, count, slots)

    def reserve_strings(self, strings: int, size: int) -> None:
        """Make room for more strings, of a size in bytes together."""
        strings += int(self.state[at.STRINGS])
        self._widen("string_starts", strings + 1)
        self._widen("string_bytes", int(self.state[at.BYTES]) + size)
        if 2 * strings >= len(self._arrays["string_slots"]):
            self._set("string_slots", _slots(strings))
            self.register()
            rehash_strings(self.state)
        self.register()

    def reserve_code(self, size: int) -> None:
        """Make room for a program of a formula, and for some more."""
        if int(self.state[at.CODE]) + size + ROOM > len(self._arrays["formula_code"]):
            self._widen("formula_code", int(self.state[at.CODE]) + size + ROOM)
            self.register()

    def reserve_work(self, size: int) -> None:
        """Make room for work with so many numbers."""
        if size > len(self._arrays["work"]):
            for name in ("pending", "work", "others"):
                self._widen(name, size)
            self.register()

    def set_tests(self, kinds: list[int], covers: list[int]) -> None:
        """Tell kernels of all tests: their kinds, and what they let pass covers."""
        self._set("test_kinds", np.array(kinds, np.uint8))
        self._set("test_covers", np.array(covers, np.int32))
        self._widen("reads_text", at.FIRST_COVER + len(kinds))
        self.register()

    def _widen(self, name: str, size: int) -> None:
        array = self._arrays[name]
        if size > len(array):
            self._set(name, grown(array, size + size // 2))

    def _set(self, name: str, array: NDArray[Any]) -> None:
        self._arrays[name] = array
        self._is_registered = False

    def register(self) -> None:
        """Tell kernels where the arrays are, if some moved."""
        if not self._is_registered:
            register(self.state, at.TABLES.nodes, Building(**self._arrays))
            self._is_registered = True


def _slots(count: int) -> Int32:
    """An empty hash table for so many rows, and as many again."""
    return np.zeros(1 << (4 * count).bit_length(), np.int32)


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
