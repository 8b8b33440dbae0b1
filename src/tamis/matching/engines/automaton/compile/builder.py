"""``Builder``: the program that grows, as kernels add queries to it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32
from tamis.core.kernel.state import State, zeros
from tamis.core.kernel.table import slots_for
from tamis.language.model import KindTest, NameTest, NodeTest
from tamis.language.table import QueryTable
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels import build as at
from tamis.matching.engines.automaton.kernels import rows
from tamis.matching.engines.automaton.kernels.formulas import rehash_formulas
from tamis.matching.engines.automaton.kernels.queries import LEVEL_ROW, add_queries

ROOM = 1024
"""Rows that every table has room for before it is asked for more."""
CODE_ROOM = 1 << 16
"""Numbers of formulas' programs, in the same manner."""
_NAMES = dict(zip(at.TABLES, at.Building._fields, strict=True))
"""Names of arrays, by field."""

Test = tuple[int, str | None, str | None]
"""What a node test lets pass: a kind of nodes, a namespace and a local name (None: any)."""


class Builder:
    """Nodes, facts, rules, formulas and strings, each of them once. Node 0 is the document.

    Attributes:
        state: what kernels are given: counts, and where the arrays are.
    """

    def __init__(self) -> None:
        self._state = State(at.STATE_SIZE, at.TABLES, zeros(at.Building, 1))
        self.state = self._state.words
        self._names: dict[str, int] = {}  # of namespaces and local names
        self["formula_kinds"][0] = pr.CONJUNCTION
        self["formula_depths"][0] = 1
        self.state[at.FORMULAS] = 1  # the one that is always true: its number is TRUE
        self._state.reserve(4 * ROOM, "levels", "pending", "work", "others")
        self.reserve(1, 1)
        self._reserve_strings(0, 0)
        rows.add_node(self.state, -1, 0, self._test(at.DOCUMENT))

    def __getitem__(self, name: str) -> NDArray[Any]:
        """All of an array, with its room."""
        array: NDArray[Any] = getattr(self._state.arrays, name)
        return array

    def rows(self, name: str) -> Int32:
        """The rows of a table, a view: int32[n, width]."""
        (table,) = (table for table in at.ROW_TABLES if table.rows == getattr(at.TABLES, name))
        return self[name][: int(self.state[table.used]) * table.width].reshape(-1, table.width)

    @cached_property
    def tests(self) -> list[Test]:
        """What nodes are tested for, by number, when all queries are added."""
        names = [*self._names, None]  # -1 is None
        return [
            (kind, names[uri], names[local]) for kind, uri, local in self.rows("tests").tolist()
        ]

    def add(self, queries: QueryTable, answered: Int32) -> None:
        """Add queries, each of which answers the query of a number."""
        self.reserve(len(queries.tests) + len(queries.numbers), 0)
        tests = [self._test_of(test, is_attribute) for is_attribute, test in queries.tests]
        strings = np.zeros(len(queries.string_starts) - 1, np.int32)
        self._reserve_strings(len(strings), len(queries.string_bytes))
        at.add_strings(self.state, queries.string_starts, queries.string_bytes, strings)
        halves = queries.numbers.view(np.int32).reshape(-1, 2).tolist()
        numbers = [rows.add_number(self.state, low, high) for low, high in halves]
        self._state.replace(
            code=queries.code,
            tests_of_words=np.array(tests, np.int32),
            strings_of_words=strings,
            numbers_of_words=np.array(numbers, np.int32),
            number_values=queries.numbers,
        )
        sizes, depths = queries.extents()
        rooms, code_rooms = 2 * sizes + 8, 4 * sizes * (depths + 1)
        size = int(sizes.max(initial=0))
        self._state.reserve(int(depths.max(initial=0)) * LEVEL_ROW, "levels")
        self._state.reserve(2 * size, "pending", "others")
        self._state.reserve(4 * size, "work")
        done = 0
        while True:
            done = add_queries(self.state, queries.starts, answered, rooms, code_rooms, done)
            if done == len(queries):
                return
            self.reserve(int(rooms[done]), int(code_rooms[done]))

    # -- room ------------------------------------------------------------------------------------

    def reserve(self, rows: int, code: int) -> None:
        """Make room for more rows in each table, and for more numbers of formulas' programs."""
        rows, code = rows + ROOM, code + CODE_ROOM
        for table in at.ROW_TABLES:
            count = int(self.state[table.used])
            name = _NAMES[table.rows]
            self._state.reserve((count + rows) * table.width, name)
            if table.keys and self._grow_slots(_NAMES[table.slots], count + rows):
                slots = self[_NAMES[table.slots]]
                at.rehash_rows(self[name], table.width, table.keys, count, slots)
        formulas = int(self.state[at.FORMULAS]) + rows
        self._state.reserve(formulas + 1, "formula_kinds", "formula_depths", "formula_starts")
        self._state.reserve(int(self.state[at.CODE]) + code, "formula_code")
        self._state.reserve(at.FIRST_COVER + int(self.state[at.TESTS]) + rows, "reads_text")
        if self._grow_slots("formula_slots", formulas):
            rehash_formulas(self.state)

    def _grow_slots(self, name: str, count: int) -> bool:
        """Have twice as many slots as things, at least: whether they are new, and empty."""
        is_full = 2 * count >= len(self[name])
        if is_full:
            self._state.replace(**{name: slots_for(count)})
        return is_full

    def _reserve_strings(self, strings: int, size: int) -> None:
        """Make room for more strings, of a size in bytes together."""
        strings += int(self.state[at.STRINGS])
        self._state.reserve(strings + 1, "string_starts")
        self._state.reserve(int(self.state[at.BYTES]) + size, "string_bytes")
        if self._grow_slots("string_slots", strings):
            at.rehash_strings(self.state)

    # -- tests -----------------------------------------------------------------------------------

    def _test_of(self, test: NodeTest, is_attribute: bool) -> int:
        """The number of a node test on an axis."""
        if isinstance(test, NameTest):
            return self._test(
                at.ATTRIBUTE if is_attribute else at.ELEMENT, test.namespace, test.local
            )
        if is_attribute:
            return self._test(at.ATTRIBUTE)
        return self._test(at.TEXT_NODE if test is KindTest.TEXT else at.ANY_CHILD)

    def _test(self, kind: int, *names: str | None) -> int:
        numbers = [-1 if n is None else self._names.setdefault(n, len(self._names)) for n in names]
        return int(rows.add_test(self.state, kind, *(numbers or (-1, -1))))
