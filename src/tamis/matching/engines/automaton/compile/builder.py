"""``Builder``: the program that grows, as Python adds to it: the trie, facts, rules, formulas.

It adds to ``Tables``, through the same kernels as plain queries, which come in bulk.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel.state import State, zeros
from tamis.core.kernel.table import slots_for
from tamis.language.model import KindTest, NameTest, NodeTest
from tamis.language.table import OPERATORS, QueryTable
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels import build as at
from tamis.matching.engines.automaton.kernels import queries

ROOM = 1024
"""Rows that every table has room for before it is asked for more."""
CODE_ROOM = 1 << 16
"""Numbers of formulas' programs that a plain query may need: each level writes what is in it."""
_OPERATIONS = 128
"""How many operations of the builder that is enough for, at least."""
_NAMES = dict(zip(at.TABLES, at.Building._fields, strict=True))
"""Names of arrays, by field."""

Test = tuple[int, str | None, str | None]
"""What a node test lets pass: a kind of nodes, a namespace and a local name (None: any)."""


class Tables:
    """The tables of a program that grows (see ``Building``), and their room.

    Attributes:
        state: what kernels are given: counts, and where the arrays are.
    """

    def __init__(self) -> None:
        self._state = State(at.STATE_SIZE, at.TABLES, zeros(at.Building, 1))
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

    def reserve(self, rows: int, code: int) -> None:
        """Make room for more rows in each table, and for more numbers of formulas' programs."""
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
        if self._grow_slots("formula_slots", formulas):
            at.rehash_formulas(self.state)

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
            at.rehash_strings(self.state)

    def reserve_joined(self, formulas: Sequence[int]) -> None:
        """Make room for formulas joined: all of them, with an operator after each fact."""
        starts = self["formula_starts"]
        size = sum(4 + 2 * int(starts[f + 1] - starts[f]) for f in formulas)
        self._state.reserve(size, "pending", "work", "others")
        self._state.reserve(int(self.state[at.CODE]) + size + ROOM, "formula_code")

    def set_tests(self, kinds: list[int], covers: list[int]) -> None:
        """Tell kernels of all tests: their kinds, and what they let pass covers."""
        self._state.replace(
            test_kinds=np.array(kinds, np.uint8), test_covers=np.array(covers, np.int32)
        )
        self._state.reserve(at.FIRST_COVER + len(kinds), "reads_text")


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

    def code(self, formula: int) -> tuple[int, ...]:
        """The facts of a conjunction, or a program for a stack."""
        start, end = self._tables["formula_starts"][formula : formula + 2].tolist()
        return tuple(self._tables["formula_code"][start:end].tolist())

    def fact(self, fact: int) -> int:
        """A fact holds."""
        return int(at.add_holds(self._tables.step(), fact))

    def all(self, formulas: Sequence[int]) -> int:
        """All of them hold."""
        if len(formulas) == 1:
            return formulas[0]
        self._wait(formulas)
        return int(queries.all_hold(self._tables.step(), 0, len(formulas)))

    def any(self, formulas: Sequence[int]) -> int:
        """One of them holds, or several."""
        self._wait(formulas)
        return int(queries.some_hold(self._tables.step(), 0, len(formulas)))

    def negation(self, formula: int) -> int:
        """It does not hold."""
        self._tables.reserve_joined([formula])
        return int(queries.negation(self._tables.step(), formula))

    def between(self, counter: int, lowest: int, highest: int) -> int:
        """The value of a counter is in a range; -1 is a counter that stays 0."""
        if lowest > highest or highest < 0:
            return at.FALSE
        if counter < 0:
            return at.TRUE if lowest <= 0 else at.FALSE
        self._tables["work"][:4] = pr.COUNT, counter, lowest, highest
        return int(queries.formula_of(self._tables.step(), pr.GENERAL, 4))

    def _wait(self, formulas: Sequence[int]) -> None:
        self._tables.reserve_joined(formulas)
        self._tables["pending"][: len(formulas)] = formulas


class Builder:
    """Nodes, facts and rules, each of them once. Node 0 is the document.

    Attributes:
        tests: what nodes are tested for, by number.
        plain_attributes: the tests of attributes that plain queries read.
        chains: the stages of chains that have several, or pass others than the first; each a fact,
            a counter and the value that passes.
    """

    def __init__(self) -> None:
        self.tables = Tables()
        self.formulas = Formulas(self.tables)
        self.plain_attributes: list[int] = []
        self.tests: list[Test] = []
        self._numbers: dict[Test, int] = {}
        self._by_model: dict[tuple[NodeTest, bool], int] = {}
        self.chains: list[list[tuple[int, int, int]]] = []
        self._chains: dict[tuple[tuple[int, int], ...], int] = {}
        self._counters: dict[tuple[int, int, int | None, int], int] = {}
        at.add_node(self.tables.step(), -1, 0, self._test((at.DOCUMENT, None, None)))

    # -- tests ----------------------------------------------------------------------------------

    def test(self, test: NodeTest, is_attribute: bool) -> int:
        """The number of a node test on an axis."""
        key = (test, is_attribute)
        number = self._by_model.get(key)
        if number is None:
            match test:
                case NameTest(namespace, local):
                    kind = at.ATTRIBUTE if is_attribute else at.ELEMENT
                    number = self._test((kind, namespace, local))
                case KindTest.TEXT:
                    number = self._test((at.TEXT_NODE, None, None))
                case _:
                    kind = at.ATTRIBUTE if is_attribute else at.ANY_CHILD
                    number = self._test((kind, None, None))
            self._by_model[key] = number
        return number

    def _test(self, test: Test) -> int:
        number = self._numbers.setdefault(test, len(self.tests))
        if number == len(self.tests):
            self.tests.append(test)
        return number

    # -- in bulk -----------------------------------------------------------------------------------

    def add_plain(self, plain: QueryTable, answered: Int32 | None = None) -> None:
        """Add plain queries; each answers a query, by default the one whose number is its place."""
        if answered is None:
            answered = np.arange(len(plain), dtype=np.int32)
        tables = self.tables
        tests = np.array([self.test(test, of) for of, test in plain.tests], np.int32)
        self.plain_attributes = [int(n) for n in tests if self.tests[n][0] == at.ATTRIBUTE]
        covers = [_cover(number, test) for number, test in enumerate(self.tests)]
        tables.set_tests([kind for kind, _, _ in self.tests], covers)
        strings = np.zeros(len(plain.string_starts) - 1, np.int32)
        tables.reserve_strings(len(strings), len(plain.string_bytes))
        at.add_strings(tables.state, plain.string_starts, plain.string_bytes, strings)
        numbers = np.array([self._number(number) for number in plain.numbers.tolist()], np.int32)
        names = (tests, strings, numbers, answered)
        done = 0
        while True:
            done = queries.add_plain(
                tables.state, plain.code, plain.starts, *names, done, ROOM, CODE_ROOM
            )
            if done == len(plain):
                tables.used_up()
                return
            tables.reserve(2 * ROOM, 2 * CODE_ROOM)

    # -- the trie ----------------------------------------------------------------------------------

    def edge(self, node: int, is_below: bool, test: int) -> int:
        """The node behind a step from another one, to children or (``is_below``) descendants."""
        return int(at.add_node(self.tables.step(), node, int(is_below), test))

    def _of(self, node: int, column: int) -> int:
        return int(self.tables["nodes"][node * at.NODE_ROW + column])

    def has_children(self, node: int) -> bool:
        """Whether what a node stands for can have children or attributes."""
        return self.tests[self._of(node, at.TEST)][0] not in (at.ATTRIBUTE, at.TEXT_NODE)

    def is_itself(self, node: int, test: NodeTest) -> int:
        """The formula of: what a node stands for passes another test, on the self axis."""
        own = self.tests[self._of(node, at.TEST)]
        narrowed = _narrowed(own, test)
        if narrowed is None:
            return at.FALSE
        if narrowed == own:
            return at.TRUE
        number = self._test(narrowed)
        child = self.edge(self._of(node, at.PARENT), bool(self._of(node, at.BELOW)), number)
        fact = int(at.add_fact(self.tables.step(), pr.OF_ITSELF, number, at.TRUE))
        at.add_rule(self.tables.step(), child, at.TRUE, pr.DERIVES, fact, -1)
        return self.formulas.fact(fact)

    def value(self, node: int, function: int, operator: str, literal: str | float) -> int:
        """The formula of: the string value of what a node stands for is as asked.

        Args:
            function: of the value: bits of NORMALIZED and LENGTH, or 0.
            operator: one that compares numbers with a number; or, of strings, ``=``,
                ``starts-with`` or ``contains``.
        """
        number = self._string(literal) if isinstance(literal, str) else -1 - self._number(literal)
        place = OPERATORS.index(operator)
        return int(at.add_value(self.tables.step(), node, function, place, number))

    def _string(self, text: str) -> int:
        data = np.frombuffer(text.encode(), np.uint8)
        self.tables.reserve_strings(1, len(data))
        return int(at.add_string(self.tables.state, data, 0, len(data)))

    def _number(self, number: float) -> int:
        low, high = struct.unpack("ii", struct.pack("d", number + 0.0))  # 0 is -0 too
        return int(at.add_number(self.tables.step(), low, high))

    # -- rules -------------------------------------------------------------------------------------

    def accept(self, node: int, formula: int, query: int) -> None:
        """A query is true where a node is reached and a formula holds there."""
        at.add_accept(self.tables.step(), node, formula, query)

    def derived(self, node: int, is_below: bool, formula: int) -> int:
        """The formula, around a node, of: it is reached and a formula holds there."""
        return int(at.add_derived(self.tables.step(), node, int(is_below), formula))

    def chain(self, node: int, stages: list[tuple[int, int]], last: int) -> int:
        """The formula of: the n-th of the children that get to a stage, stage after stage.

        Args:
            stages: for each a formula and n.
            last: a formula that holds for what is left.
        """
        if last == at.FALSE or any(formula == at.FALSE for formula, _ in stages):
            return at.FALSE
        key = tuple(
            (int(at.add_stage(self.tables.step(), node, formula)), n) for formula, n in stages
        )
        if len(key) == 1 and key[0][1] == 1:
            first = key[0][0]
        else:
            first = -1 - self._chains.setdefault(key, len(self.chains))
            if first == -1 - len(self.chains):
                self.chains.append([(fact, self._new_counter(n), n) for fact, n in key])
        chain = int(at.add_chain(self.tables.step(), first))
        return int(at.add_passed(self.tables.step(), node, chain, last))

    def counter(self, node: int, formula: int, inner: int | None, limit: int) -> int:
        """The counter, around a node, of children that reach it and for which a formula holds.

        Args:
            inner: a counter of the node; its value is added instead of 1.
            limit: counting stops here.
        """
        key = (self._of(node, at.TEST), formula, inner, limit)
        if key not in self._counters:
            self._counters[key] = self._new_counter(limit)
        number, source = self._counters[key], -1 if inner is None else inner
        at.add_rule(self.tables.step(), node, formula, pr.COUNTS, number, source)
        return number

    def _new_counter(self, limit: int) -> int:
        return int(at.add_counter(self.tables.step(), limit))


def _cover(number: int, test: Test) -> int:
    """What elements a test lets pass, as a cover; -1 where that is the cover around it."""
    kind, namespace, local = test
    if kind == at.ATTRIBUTE:
        return at.NOTHING_COVERED
    if kind == at.ELEMENT and None not in (namespace, local):
        return at.FIRST_COVER + number
    return -1


def _narrowed(own: Test, test: NodeTest) -> Test | None:
    """What passes both tests, the other on the self axis; None where nothing can."""
    if test is KindTest.NODE:
        return own
    if test is KindTest.TEXT:
        return (at.TEXT_NODE, None, None) if own[0] in (at.TEXT_NODE, at.ANY_CHILD) else None
    assert isinstance(test, NameTest)
    if own[0] == at.ANY_CHILD:
        return (at.ELEMENT, test.namespace, test.local)
    if own[0] != at.ELEMENT:
        return None
    names = []
    for mine, its in zip(own[1:], (test.namespace, test.local), strict=True):
        if None not in (mine, its) and mine != its:
            return None
        names.append(its if mine is None else mine)
    return (at.ELEMENT, names[0], names[1])
