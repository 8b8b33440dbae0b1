"""The growing form of a program: the trie, facts, rules; and how they become flat arrays."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.documents.batch import Int32, Int64, freeze
from tamis.documents.demand import Demand
from tamis.language.model import KindTest, NameTest, NodeTest
from tamis.matching.automaton.formulas import FALSE, TRUE, Code, Formulas, watch
from tamis.matching.automaton.program import (
    CONJUNCTION,
    COUNTS,
    FIRST_SYMBOL,
    FORMULA,
    MISC,
    NOTES,
    OF_CHILD,
    OF_COUNTER,
    OF_DESCENDANT,
    OF_STAGE,
    OTHER_ATTRIBUTE,
    OTHER_ELEMENT,
    RULE_COLUMNS,
    TELLS,
    TEXT,
    WATCH_COLUMNS,
    AutomatonProgram,
    ProgramArrays,
)

DOCUMENT, ELEMENT, ATTRIBUTE, TEXT_NODE, ANY_CHILD = range(5)
Test = tuple[int, str | None, str | None]
"""What a node test lets pass: a kind of nodes, a namespace and a local name (None: any)."""

_ALL_ELEMENTS: Test = (ELEMENT, None, None)
_ALL_ATTRIBUTES: Test = (ATTRIBUTE, None, None)


class Builder:
    """Nodes, facts and rules, each of them once.

    Node 0 is the document.
    """

    def __init__(self) -> None:
        self.formulas = Formulas()
        self._tests: dict[Test, int] = {(DOCUMENT, None, None): 0}
        self._test_list: list[Test] = [(DOCUMENT, None, None)]
        # By node.
        self._edges: dict[tuple[int, bool, int], int] = {}
        self._parents: list[int] = [-1]
        self._below: list[bool] = [False]
        self._node_tests: list[int] = [0]
        # In no order.
        self._accepts: list[tuple[int, int]] = []
        self._rules: dict[tuple[int, int, int, int, int], None] = {}
        self._facts: dict[tuple[int, int, int], int] = {}
        self._fact_kinds: list[int] = []
        self._fact_formulas: list[int] = []
        self._notes: set[int] = set()
        self._counters: dict[tuple[int, int, int | None, int], int] = {}
        self._counter_limits: list[int] = []
        self._chains: dict[tuple[tuple[tuple[int, int], ...], int], int] = {}
        self._chain_facts: list[int] = []
        self._chain_stages: list[list[tuple[int, int, int]]] = []

    # -- the trie ----------------------------------------------------------------------------------

    def test(self, test: NodeTest, is_attribute: bool) -> int:
        """The number of a node test on an axis."""
        match test:
            case NameTest(namespace, local):
                kind = ATTRIBUTE if is_attribute else ELEMENT
                return self._test((kind, namespace, local))
            case KindTest.TEXT:
                return self._test((TEXT_NODE, None, None))
        return self._test(_ALL_ATTRIBUTES if is_attribute else (ANY_CHILD, None, None))

    def _test(self, test: Test) -> int:
        number = self._tests.setdefault(test, len(self._test_list))
        if number == len(self._test_list):
            self._test_list.append(test)
        return number

    def edge(self, node: int, is_below: bool, test: int) -> int:
        """The node behind a step from another one, to children or (``is_below``) descendants."""
        key = (node, is_below, test)
        number = self._edges.setdefault(key, len(self._parents))
        if number == len(self._parents):
            self._parents.append(node)
            self._below.append(is_below)
            self._node_tests.append(test)
        return number

    def has_children(self, node: int) -> bool:
        """Whether what a node stands for can have children or attributes."""
        return self._test_list[self._node_tests[node]][0] not in (ATTRIBUTE, TEXT_NODE)

    def is_itself(self, node: int, test: NodeTest) -> int:
        """The formula of: what a node stands for passes another test, on the self axis."""
        own = self._test_list[self._node_tests[node]]
        narrowed = _narrowed(own, test)
        if narrowed is None:
            return FALSE
        if narrowed == own:
            return TRUE
        number = self._test(narrowed)
        child = self.edge(self._parents[node], self._below[node], number)
        fact = self._fact(OF_CHILD, -1 - number, TRUE)
        self._notes.add(fact)
        self.rule(child, TRUE, NOTES, fact)
        return self.formulas.fact(fact)

    # -- rules -------------------------------------------------------------------------------------

    def accept(self, node: int, query: int) -> None:
        """A query is true as soon as a node is reached."""
        self._accepts.append((node, query))

    def rule(self, node: int, formula: int, action: int, target: int, source: int = -1) -> None:
        """What follows where a node is reached and a formula holds there."""
        self._rules[node, formula, action, target, source] = None

    def told(self, node: int, is_below: bool, formula: int) -> int:
        """The formula, around a node, of: it is reached and a formula holds there."""
        if formula == FALSE:
            return FALSE
        kind = OF_DESCENDANT if is_below else OF_CHILD
        fact = self._fact(kind, self._node_tests[node], formula)
        self.rule(node, formula, TELLS, fact)
        return self.formulas.fact(fact)

    def chain(self, node: int, stages: list[tuple[int, int]], last: int) -> int:
        """The formula of: the n-th of the children that get to a stage, stage after stage.

        Args:
            stages: for each a formula and n.
            last: a formula that holds for what is left.
        """
        if last == FALSE or any(formula == FALSE for formula, _ in stages):
            return FALSE
        test = self._node_tests[node]
        facts = [self._stage(node, test, formula) for formula, _ in stages]
        key = (
            tuple(zip(facts, (n for _, n in stages), strict=True)),
            self._stage(node, test, last),
        )
        number = self._chains.setdefault(key, len(self._chain_stages))
        if number == len(self._chain_stages):
            described = [(fact, self._new_counter(n), n) for fact, n in key[0]]
            self._chain_stages.append([*described, (key[1], -1, 0)])
            self._chain_facts.append(self._fact(OF_CHILD, -1, -2 - number))
        return self.formulas.fact(self._chain_facts[number])

    def _stage(self, node: int, test: int, formula: int) -> int:
        fact = self._fact(OF_STAGE, test, formula)
        self.rule(node, formula, TELLS, fact)
        return fact

    def counter(self, node: int, formula: int, inner: int | None, limit: int) -> int:
        """The counter, around a node, of children that reach it and for which a formula holds.

        Args:
            inner: a counter of the node; its value is added instead of 1.
            limit: counting stops here.
        """
        key = (self._node_tests[node], formula, inner, limit)
        if key not in self._counters:
            self._counters[key] = self._new_counter(limit)
        number = self._counters[key]
        self.rule(node, formula, COUNTS, number, -1 if inner is None else inner)
        return number

    def _new_counter(self, limit: int) -> int:
        self._counter_limits.append(limit)
        return len(self._counter_limits) - 1

    def _fact(self, kind: int, test: int, formula: int) -> int:
        key = (kind, test, formula)
        number = self._facts.setdefault(key, len(self._fact_kinds))
        if number == len(self._fact_kinds):
            self._fact_kinds.append(kind)
            self._fact_formulas.append(formula)
        return number

    # -- arrays ------------------------------------------------------------------------------------

    def freeze(self, queries: int, demand: Demand) -> AutomatonProgram:
        """The program."""
        symbols = _Symbols(self._test_list)
        codes = symbols.codes[self._node_tests]
        parents = np.array(self._parents, np.int32)
        below = np.array(self._below, bool)
        order = _breadth_first(parents, below, codes)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order), dtype=np.int32)
        children, descendants = _children(rank[parents[order[1:]]], below[order])
        accepts = np.array(self._accepts, np.int32).reshape(-1, 2)
        accept_starts, accept_order = _grouped(rank[accepts[:, 0]], len(order))
        rules = np.array(list(self._rules), np.int32).reshape(-1, 1 + RULE_COLUMNS)
        nodes, rules = rank[rules[:, 0]], rules[:, 1:]
        arrays = ProgramArrays(
            children=children,
            descendants=descendants,
            tests=codes[order],
            wildcards=symbols.wildcards,
            accept_starts=accept_starts,
            accepts=accepts[accept_order, 1],
            **self._formula_arrays(nodes, rules),
            **self._fact_arrays(),
            **self._need_arrays(rank, parents),
            **self._chain_arrays(),
        )
        arrays = ProgramArrays(*map(np.ascontiguousarray, arrays))  # read by their addresses
        freeze(*arrays)
        return AutomatonProgram(
            arrays,
            queries,
            bool(self._notes),
            demand,
            symbols.elements,
            symbols.attributes,
            symbols.element_namespaces,
            symbols.attribute_namespaces,
        )

    def _formula_arrays(self, nodes: Int32, rules: Int32) -> dict[str, NDArray[Any]]:
        """Formulas, and rules by how they are found.

        In a conjunction the facts that ask for most, the least likely, come first, and of these the
        ones that few others ask for. What an element notes about itself is not watched: it was not
        gathered.
        """
        formulas = self.formulas
        weights = self._weights()
        uses = Counter(
            fact
            for kind, code in zip(formulas.kinds, formulas.codes, strict=True)
            if kind == CONJUNCTION
            for fact in code
        )
        codes = [
            tuple(sorted(code, key=lambda fact: (-weights[fact], uses[fact], fact)))
            if kind == CONJUNCTION and len(code) > 1
            else code
            for kind, code in zip(formulas.kinds, formulas.codes, strict=True)
        ]
        starts = np.cumsum([0, *map(len, codes)], dtype=np.int64)
        code = np.fromiter((item for code in codes for item in code), np.int32, int(starts[-1]))
        watched = np.array(list(map(watch, formulas.kinds, codes)), np.int32)
        watched[np.isin(watched, list(self._notes))] = -1
        is_base = watched[rules[:, FORMULA]] < 0
        base_starts, base_order = _grouped(nodes[is_base], len(self._parents))
        rule_starts, rule_order = _grouped(rules[~is_base, FORMULA], len(codes))
        watching = np.flatnonzero(watched >= 0)
        watch_starts, watch_order = _grouped(watched[watching], self._facts_max())
        rows = [
            _watch_row(number, formulas.kinds[number], codes[number])
            for number in watching.tolist()
        ]
        return {
            "base_starts": base_starts,
            "base_rules": rules[is_base][base_order],
            "rule_starts": rule_starts,
            "rules": rules[~is_base][rule_order],
            "rule_nodes": nodes[~is_base][rule_order],
            "formula_starts": starts,
            "formula_code": code,
            "formula_kinds": np.array(formulas.kinds, np.uint8),
            "watch_starts": watch_starts,
            "watches": np.array(rows, np.int32).reshape(-1, WATCH_COLUMNS)[watch_order],
        }

    def _facts_max(self) -> int:
        """How many facts there are, the values of counters included."""
        return len(self._fact_kinds) + sum(self._counter_limits)

    def _weights(self) -> list[int]:
        """By fact: how many facts it rests on. Those that it rests on have smaller numbers."""
        weights: list[int] = []
        formulas = self.formulas
        for fact, formula in enumerate(self._fact_formulas):
            if fact in self._notes:
                weights.append(0)
            elif formula < 0 or formulas.kinds[formula] != CONJUNCTION:
                weights.append(1)
            else:
                weights.append(1 + sum(weights[fact] for fact in formulas.codes[formula]))
        return weights

    def _fact_arrays(self) -> dict[str, NDArray[Any]]:
        limits = np.array(self._counter_limits, np.int32)
        plain = len(self._fact_kinds)
        bases = plain + np.cumsum(np.concatenate([[0], limits]))[:-1] - 1
        counters = np.repeat(np.arange(len(limits), dtype=np.int32), limits)
        kinds = np.concatenate([self._fact_kinds, np.full(len(counters), OF_COUNTER)])
        return {
            "fact_kinds": kinds.astype(np.uint8),
            "fact_counters": np.concatenate([np.full(plain, -1), counters]).astype(np.int32),
            "counter_bases": bases.astype(np.int32),
            "counter_limits": limits,
        }

    def _need_arrays(
        self, rank: NDArray[np.int32], parents: NDArray[np.int32]
    ) -> dict[str, NDArray[Any]]:
        """Which facts of descendants are told to which nodes: each once."""
        told = [
            (node, target)
            for node, _, action, target, _ in self._rules
            if action == TELLS and self._fact_kinds[target] == OF_DESCENDANT
        ]
        pairs = np.array(told, np.int32).reshape(-1, 2)
        pairs[:, 0] = rank[parents[pairs[:, 0]]]
        pairs = np.unique(pairs, axis=0)
        starts, order = _grouped(pairs[:, 0], len(rank))
        return {"needs_starts": starts, "needs": pairs[order, 1]}

    def _chain_arrays(self) -> dict[str, NDArray[Any]]:
        firsts = np.array([stages[0][0] for stages in self._chain_stages], np.int32)
        chain_starts, order = _grouped(firsts, self._facts_max())
        return {
            "chain_starts": chain_starts,
            "chain_numbers": order,
            "stage_starts": np.cumsum([0, *map(len, self._chain_stages)], dtype=np.int64),
            "stages": np.array(
                [stage for stages in self._chain_stages for stage in stages], np.int32
            ).reshape(-1, 3),
            "chain_facts": np.array(self._chain_facts, np.int32),
        }


class _Symbols:
    """What tests can tell apart.

    Attributes:
        codes: int32[tests]; the symbol that passes, or minus one minus a wildcard's number.
        wildcards: uint8[symbols, wildcards]; which of them a symbol passes.
    """

    def __init__(self, tests: list[Test]) -> None:
        self.elements: dict[tuple[str, str], int] = {}
        self.attributes: dict[tuple[str, str], int] = {}
        self.element_namespaces: dict[str, int] = {}
        self.attribute_namespaces: dict[str, int] = {}
        symbols: list[Test] = [
            (TEXT_NODE, None, None),
            (ANY_CHILD, None, None),
            _ALL_ELEMENTS,
            _ALL_ATTRIBUTES,
        ]
        assert (TEXT, MISC, OTHER_ELEMENT, OTHER_ATTRIBUTE, FIRST_SYMBOL) == (0, 1, 2, 3, 4)
        for test in tests:
            kind, namespace, local = test
            if kind in (ELEMENT, ATTRIBUTE) and namespace is not None:
                if local is None:
                    both = (self.element_namespaces, self.attribute_namespaces)
                    both[kind == ATTRIBUTE][namespace] = len(symbols)
                else:
                    names = self.attributes if kind == ATTRIBUTE else self.elements
                    names[namespace, local] = len(symbols)
                symbols.append(test)
        wild = [test for test in tests if _is_wild(test)]
        numbers = {test: number for number, test in enumerate(symbols)}
        codes = [
            -1 - wild.index(test) if _is_wild(test) else numbers.get(test, 0) for test in tests
        ]
        self.codes: Int32 = np.array(codes, np.int32)
        self.wildcards = np.zeros((len(symbols), len(wild)), np.uint8)
        for column, test in enumerate(wild):
            self.wildcards[:, column] = [_passes(symbol, test) for symbol in symbols]


def _watch_row(number: int, kind: int, code: Code) -> tuple[int, int, int, int]:
    """What stands in ``watches`` for a formula."""
    if kind != CONJUNCTION:
        return number, code[0], code[0], 1
    several = (*code, code[0], code[0])
    return number, several[1], several[2], int(len(code) > 3)


def _is_wild(test: Test) -> bool:
    return test[0] == ANY_CHILD or (test[0] in (ELEMENT, ATTRIBUTE) and test[2] is None)


def _passes(symbol: Test, wild: Test) -> bool:
    if wild[0] == ANY_CHILD:
        return symbol[0] != ATTRIBUTE
    return symbol[0] == wild[0] and wild[1] in (None, symbol[1])


def _narrowed(own: Test, test: NodeTest) -> Test | None:
    """What passes both tests, the other on the self axis; None where nothing can."""
    if test is KindTest.NODE:
        return own
    if test is KindTest.TEXT:
        return (TEXT_NODE, None, None) if own[0] in (TEXT_NODE, ANY_CHILD) else None
    assert isinstance(test, NameTest)
    if own[0] == ANY_CHILD:
        return (ELEMENT, test.namespace, test.local)
    if own[0] != ELEMENT:
        return None
    _, namespace, local = own
    if None not in (namespace, test.namespace) and namespace != test.namespace:
        return None
    if None not in (local, test.local) and local != test.local:
        return None
    return (
        ELEMENT,
        test.namespace if namespace is None else namespace,
        test.local if local is None else local,
    )


def _breadth_first(parents: Int32, below: NDArray[np.bool_], codes: Int32) -> NDArray[np.int32]:
    """The nodes, in the order in which they are numbered."""
    level = np.zeros(1, np.int64)
    levels = [level]
    by_parent = np.argsort(parents, kind="stable")
    starts = np.searchsorted(parents[by_parent], np.arange(len(parents) + 1))
    while True:
        counts = starts[level + 1] - starts[level]
        total = int(counts.sum())
        if total == 0:
            return np.concatenate(levels).astype(np.int32)
        offsets = np.repeat(starts[level] - np.cumsum(counts) + counts, counts) + np.arange(total)
        found = by_parent[offsets]
        place = np.repeat(np.arange(len(level)), counts)
        level = found[np.lexsort((codes[found], below[found], place))]
        levels.append(level)


def _children(parents: Int32, below: NDArray[np.bool_]) -> tuple[Int32, Int32]:
    """Where the children of each node begin, and among them the descendant steps.

    Args:
        parents: of all nodes but the first, ascending.
        below: of all nodes.
    """
    numbers = np.arange(len(below) + 1)
    children = 1 + np.searchsorted(parents, numbers)
    near = np.bincount(parents[~below[1:]], minlength=len(below))[: len(below)]
    return children.astype(np.int32), (children[:-1] + near).astype(np.int32)


def _grouped(keys: NDArray[np.int32], groups: int) -> tuple[Int64, Int32]:
    """Where each group of ascending keys begins, and the order that groups them."""
    order = np.argsort(keys, kind="stable").astype(np.int32)
    starts = np.searchsorted(keys[order], np.arange(groups + 1)).astype(np.int64)
    return starts, order
