"""The growing form of a program, as Python adds to it: tests, the trie, facts, rules."""

from __future__ import annotations

import struct

import numpy as np

from tamis.core.arrays import Int32
from tamis.language.model import KindTest, NameTest, NodeTest
from tamis.language.plain import OPERATORS, PlainQueries
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.compile import layout as at
from tamis.matching.engines.automaton.compile.tables import CODE_ROOM, ROOM, Formulas, Tables
from tamis.matching.engines.automaton.kernels.build import (
    add_accept,
    add_chain,
    add_counter,
    add_derived,
    add_fact,
    add_node,
    add_number,
    add_passed,
    add_rule,
    add_stage,
    add_strings,
    add_value,
    put_string,
)
from tamis.matching.engines.automaton.kernels.queries import add_plain

Test = tuple[int, str | None, str | None]
"""What a node test lets pass: a kind of nodes, a namespace and a local name (None: any)."""


class Builder:
    """Nodes, facts and rules, each of them once.

    Node 0 is the document.

    Attributes:
        tables: where they are.
        tests: what nodes are tested for, by number.
        plain_attributes: those of attributes that plain queries read.
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
        document = self._test((at.DOCUMENT, None, None))
        add_node(self.tables.step(), -1, False, document)

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

    def add_plain(self, plain: PlainQueries, answered: Int32 | None = None) -> None:
        """Add plain queries; each answers a query, by default the one whose number is its place."""
        if answered is None:
            answered = np.arange(len(plain), dtype=np.int32)
        tables = self.tables
        tests = np.array([self.test(test, of) for of, test in plain.tests], np.int32)
        self.plain_attributes = [int(n) for n in tests if self.tests[n][0] == at.ATTRIBUTE]
        self._tell_tests()
        strings = np.zeros(len(plain.string_starts) - 1, np.int32)
        tables.reserve_strings(len(strings), len(plain.string_bytes))
        add_strings(tables.state, plain.string_starts, plain.string_bytes, strings)
        numbers = np.array([self._number(number) for number in plain.numbers.tolist()], np.int32)
        done = 0
        while True:
            done = add_plain(
                tables.state,
                plain.code,
                plain.starts,
                tests,
                strings,
                numbers,
                answered,
                done,
                ROOM,
                CODE_ROOM,
            )
            if done == len(plain):
                tables.used_up()
                return
            tables.reserve(2 * ROOM, 2 * CODE_ROOM)

    def _tell_tests(self) -> None:
        """Let kernels know all tests."""
        covers = [
            at.NOTHING_COVERED
            if kind == at.ATTRIBUTE
            else at.FIRST_COVER + number
            if kind == at.ELEMENT and None not in (namespace, local)
            else -1
            for number, (kind, namespace, local) in enumerate(self.tests)
        ]
        self.tables.set_tests([kind for kind, _, _ in self.tests], covers)

    # -- the trie ----------------------------------------------------------------------------------

    def edge(self, node: int, is_below: bool, test: int) -> int:
        """The node behind a step from another one, to children or (``is_below``) descendants."""
        return int(add_node(self.tables.step(), node, is_below, test))

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
        fact = int(add_fact(self.tables.step(), pr.OF_ITSELF, number, at.TRUE))
        self.rule(child, at.TRUE, pr.DERIVES, fact)
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
        return int(add_value(self.tables.step(), node, function, place, number))

    def _string(self, text: str) -> int:
        data = np.frombuffer(text.encode(), np.uint8)
        self.tables.reserve_strings(1, len(data))
        return int(put_string(self.tables.state, data))

    def _number(self, number: float) -> int:
        low, high = struct.unpack("ii", struct.pack("d", number + 0.0))  # 0 is -0 too
        return int(add_number(self.tables.step(), low, high))

    # -- rules -------------------------------------------------------------------------------------

    def accept(self, node: int, formula: int, query: int) -> None:
        """A query is true where a node is reached and a formula holds there."""
        add_accept(self.tables.step(), node, formula, query)

    def rule(self, node: int, formula: int, action: int, target: int, source: int = -1) -> None:
        """What follows where a node is reached and a formula holds there."""
        add_rule(self.tables.step(), node, formula, action, target, source)

    def derived(self, node: int, is_below: bool, formula: int) -> int:
        """The formula, around a node, of: it is reached and a formula holds there."""
        return int(add_derived(self.tables.step(), node, is_below, formula))

    def chain(self, node: int, stages: list[tuple[int, int]], last: int) -> int:
        """The formula of: the n-th of the children that get to a stage, stage after stage.

        Args:
            stages: for each a formula and n.
            last: a formula that holds for what is left.
        """
        if last == at.FALSE or any(formula == at.FALSE for formula, _ in stages):
            return at.FALSE
        facts = [int(add_stage(self.tables.step(), node, formula)) for formula, _ in stages]
        key = tuple(zip(facts, (n for _, n in stages), strict=True))
        if len(key) == 1 and key[0][1] == 1:
            first = key[0][0]
        else:
            first = -1 - self._chains.setdefault(key, len(self.chains))
            if first == -1 - len(self.chains):
                self.chains.append([(fact, self._new_counter(n), n) for fact, n in key])
        chain = int(add_chain(self.tables.step(), first))
        return int(add_passed(self.tables.step(), node, chain, last))

    def counter(self, node: int, formula: int, inner: int | None, limit: int) -> int:
        """The counter, around a node, of children that reach it and for which a formula holds.

        Args:
            inner: a counter of the node; its value is added instead of 1.
            limit: counting stops here.
        """
        key = (self._of(node, at.TEST), formula, inner, limit)
        if key not in self._counters:
            self._counters[key] = self._new_counter(limit)
        number = self._counters[key]
        self.rule(node, formula, pr.COUNTS, number, -1 if inner is None else inner)
        return number

    def _new_counter(self, limit: int) -> int:
        return int(add_counter(self.tables.step(), limit))


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
    _, namespace, local = own
    if None not in (namespace, test.namespace) and namespace != test.namespace:
        return None
    if None not in (local, test.local) and local != test.local:
        return None
    return (
        at.ELEMENT,
        test.namespace if namespace is None else namespace,
        test.local if local is None else local,
    )
