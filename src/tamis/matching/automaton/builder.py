"""The growing form of a program: the trie, facts, rules; and how they become flat arrays."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.documents.batch import Int32, Int64, freeze
from tamis.documents.demand import Demand
from tamis.errors import UsageError
from tamis.language.model import KindTest, NameTest, NodeTest
from tamis.matching.automaton.constants import value_arrays
from tamis.matching.automaton.formulas import FALSE, TRUE, Code, Formulas, watch
from tamis.matching.automaton.program import (
    ACCEPTED,
    ACTION,
    CHILDREN,
    CONJUNCTION,
    COUNT,
    COUNTS,
    DESCENDANTS,
    FIRST_SYMBOL,
    FORMULA,
    MISC,
    NEEDS,
    NODE_COLUMNS,
    OF_CHILD,
    OF_COUNTER,
    OF_DESCENDANT,
    OF_GROUP,
    OF_ITSELF,
    OF_STAGE,
    OF_VALUE,
    OPERATORS,
    OTHER_ATTRIBUTE,
    OTHER_ELEMENT,
    RULE_COLUMNS,
    RULES,
    SOURCE,
    SURE,
    TARGET,
    TELLS,
    TEXT,
    WATCHED,
    WATCHES,
    AutomatonProgram,
    ProgramArrays,
)

MOST_WORDS = (1 << 31) // 64 - 1
"""Words of facts: their numbers have 32 bits."""
MANY_RULES = 16
"""A node of more rules has them indexed by what they watch."""
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
        self._value_facts: dict[tuple[int, str, str | float], int] = {}
        self._counters: dict[tuple[int, int, int | None, int], int] = {}
        self._counter_limits: list[int] = []
        self._chains: dict[tuple[tuple[int, int], ...], int] = {}
        self._lasts: dict[tuple[int, int], int] = {}
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
        fact = self._fact(OF_ITSELF, number, TRUE)
        self.rule(child, TRUE, TELLS, fact)
        return self.formulas.fact(fact)

    def value(self, node: int, function: int, operator: str, literal: str | float) -> int:
        """The formula of: the string value of what a node stands for is as asked.

        Args:
            function: of the value: bits of NORMALIZED and LENGTH, or 0.
            operator: one that compares numbers with a number; or, of strings, ``=``,
                ``starts-with`` or ``contains``.
        """
        test = self._node_tests[node]
        group = self._fact(OF_GROUP, test, -2 - function)
        self.rule(node, TRUE, TELLS, group)
        key = (group, operator, literal)
        if key not in self._value_facts:
            self._value_facts[key] = self._fact(OF_VALUE, test, -2 - len(self._value_facts))
        return self.formulas.fact(self._value_facts[key])

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
        key = tuple(zip(facts, (n for _, n in stages), strict=True))
        number = self._chains.setdefault(key, len(self._chain_stages))
        if number == len(self._chain_stages):
            self._chain_stages.append([(fact, self._new_counter(n), n) for fact, n in key])
        end = (self._stage(node, test, last), number)
        if end not in self._lasts:
            self._lasts[end] = self._fact(OF_CHILD, -1, -2 - len(self._lasts))
        return self.formulas.fact(self._lasts[end])

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
        facts, fact_arrays = self._numbered_facts()
        children, descendants = _children(rank[parents[order[1:]]], below[order])
        accepts = np.array(self._accepts, np.int32).reshape(-1, 2)
        accept_starts, accept_order = _grouped(rank[accepts[:, 0]], len(order))
        sure_starts, sure, rule_starts, rules, formulas = self._ruled(
            rank, facts, fact_arrays["counter_bases"]
        )
        needs_starts, needs = self._needs(rank, facts, parents)
        nodes = np.zeros((len(order) + 1, NODE_COLUMNS), np.int32)
        nodes[:, CHILDREN] = children
        nodes[:-1, DESCENDANTS] = descendants
        nodes[:, ACCEPTED] = accept_starts
        nodes[:, SURE] = sure_starts
        nodes[:, RULES] = rule_starts
        nodes[:, NEEDS] = needs_starts
        nodes[:, WATCHES], watches = _watches(rule_starts, rules[:, WATCHED])
        arrays = ProgramArrays(
            nodes=nodes,
            tests=codes[order],
            wildcards=symbols.wildcards,
            accepts=accepts[accept_order, 1],
            sure=sure,
            rules=rules,
            needs=needs,
            **watches,
            **formulas,
            **fact_arrays,
            **self._chain_arrays(facts, fact_arrays["fact_ends"]),
            **self._value_arrays(facts),
        )
        arrays = ProgramArrays(*map(np.ascontiguousarray, arrays))  # read by their addresses
        freeze(*arrays)
        return AutomatonProgram(
            arrays,
            queries,
            demand,
            symbols.elements,
            symbols.attributes,
            symbols.element_namespaces,
            symbols.attribute_namespaces,
        )

    def _numbered_facts(self) -> tuple[Int32, dict[str, NDArray[Any]]]:
        """The number of each fact in the program; and what is known of these numbers.

        Kinds follow each other, each from a new word on; in a kind, facts about the same test: an
        element tells few words of facts then.
        """
        kinds = np.array(self._fact_kinds, np.int32)
        tests = np.array([test for _, test, _ in self._facts], np.int32)
        order = np.lexsort((self._value_ranks(), tests, kinds))
        counts = np.bincount(kinds, minlength=OF_COUNTER)[:OF_COUNTER]
        limits = np.array(self._counter_limits, np.int32)
        ends = np.cumsum([-(-count // 64) for count in [*counts.tolist(), int(limits.sum())]])
        if ends[-1] > MOST_WORDS:
            raise UsageError(
                f"the subscriptions count up to {limits.sum():,} nodes in all, more than "
                f"{64 * MOST_WORDS:,}: use smaller numbers in count() and positions, or "
                "engine='reference'"
            )
        starts = 64 * np.concatenate([[0], ends[:-1]])
        firsts = np.cumsum(counts) - counts
        numbers = np.empty(len(kinds), np.int32)
        sorted_kinds = kinds[order]
        numbers[order] = np.arange(len(kinds)) - firsts[sorted_kinds] + starts[sorted_kinds]
        return numbers, {
            "fact_ends": ends.astype(np.int64),
            "fact_counters": np.repeat(np.arange(len(limits), dtype=np.int32), limits),
            "counter_bases": (starts[-1] + np.cumsum(limits) - limits - 1).astype(np.int32),
            "counter_limits": limits,
        }

    def _value_ranks(self) -> Int32:
        """By fact about a value: its rank; what is true of one value is in few words then."""
        ranks = np.zeros(len(self._fact_kinds), np.int32)
        keys = sorted(self._value_facts, key=lambda key: (isinstance(key[2], str), key[2], key[1]))
        for rank, key in enumerate(keys):
            ranks[self._value_facts[key]] = rank
        return ranks

    def _ruled(
        self, rank: Int32, facts: Int32, counter_bases: Int32
    ) -> tuple[Int64, Int32, Int64, Int32, dict[str, NDArray[Any]]]:
        """What is sure by node, the rules by node, and the formulas."""
        given = np.array(list(self._rules), np.int32).reshape(-1, 5)
        nodes, formulas, actions, targets, sources = given.T
        nodes = rank[nodes]
        told = actions == TELLS
        targets[told] = facts[targets[told]]
        is_sure = (formulas == TRUE) & (told | (actions == COUNTS) & (sources < 0))
        counted = is_sure & ~told
        targets[counted] = counter_bases[targets[counted]] + 1
        sure_starts, sure_order = _grouped(nodes[is_sure], len(rank))
        sure = targets[is_sure][sure_order]
        watches, arrays = self._formula_arrays(facts)
        nodes, formulas = nodes[~is_sure], formulas[~is_sure]
        rows = np.zeros((len(nodes), RULE_COLUMNS), np.int32)
        rows[:, : FORMULA + 1] = watches[formulas]
        rows[:, ACTION] = actions[~is_sure]
        rows[:, TARGET] = targets[~is_sure]
        rows[:, SOURCE] = sources[~is_sure]
        order = np.lexsort((rows[:, WATCHED], nodes))
        rule_starts = np.searchsorted(nodes[order], np.arange(len(rank) + 1))
        return sure_starts, sure, rule_starts, rows[order], arrays

    def _formula_arrays(self, facts: Int32) -> tuple[Int32, dict[str, NDArray[Any]]]:
        """What stands with rules, by formula, and the formulas.

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
        watches: list[tuple[int, int, int, int]] = []
        items: list[int] = []
        starts = [0]
        numbers = facts.tolist()
        for number, (kind, code) in enumerate(zip(formulas.kinds, formulas.codes, strict=True)):
            ordered = code
            if kind == CONJUNCTION and len(code) > 1:
                ordered = tuple(sorted(code, key=lambda fact: (-weights[fact], uses[fact], fact)))
            items += _numbered(ordered, numbers)
            starts.append(len(items))
            watched = watch(kind, ordered)
            is_gathered = watched >= 0 and self._fact_kinds[watched] != OF_ITSELF
            watches.append(_watch_row(number, kind, items[starts[-2] :], is_gathered))
        return np.array(watches, np.int32), {
            "formula_starts": np.array(starts, np.int64),
            "formula_code": np.array(items, np.int32),
            "formula_kinds": np.array(formulas.kinds, np.uint8),
        }

    def _weights(self) -> list[int]:
        """By fact: how many facts it rests on. Those that it rests on have smaller numbers."""
        weights: list[int] = []
        formulas = self.formulas
        for fact, formula in enumerate(self._fact_formulas):
            if self._fact_kinds[fact] == OF_ITSELF:
                weights.append(0)
            elif formula < 0 or formulas.kinds[formula] != CONJUNCTION:
                weights.append(1)
            else:
                weights.append(1 + sum(weights[fact] for fact in formulas.codes[formula]))
        return weights

    def _needs(
        self, rank: NDArray[np.int32], facts: Int32, parents: NDArray[np.int32]
    ) -> tuple[Int64, Int32]:
        """Which facts of descendants are told to which nodes: each once."""
        told = [
            (node, target)
            for node, _, action, target, _ in self._rules
            if action == TELLS and self._fact_kinds[target] == OF_DESCENDANT
        ]
        pairs = np.array(told, np.int32).reshape(-1, 2)
        pairs[:, 0] = rank[parents[pairs[:, 0]]]
        pairs[:, 1] = facts[pairs[:, 1]]
        pairs = np.unique(pairs, axis=0)
        starts, order = _grouped(pairs[:, 0], len(rank))
        return starts, pairs[order, 1]

    def _chain_arrays(self, facts: Int32, ends: Int64) -> dict[str, NDArray[Any]]:
        stages = [
            [(facts[fact], counter, number) for fact, counter, number in stages]
            for stages in self._chain_stages
        ]
        first, of_stages = 64 * ends[OF_VALUE], 64 * int(ends[OF_STAGE] - ends[OF_VALUE])
        begins = np.array([chain[0][0] for chain in stages], np.int32)
        chain_starts, order = _grouped(begins - first, of_stages)
        lasts = [(facts[last], chain, facts[fact]) for (last, chain), fact in self._lasts.items()]
        rows = np.array(lasts, np.int32).reshape(-1, 3)
        last_starts, last_order = _grouped(rows[:, 0] - first, of_stages)
        return {
            "chain_starts": chain_starts,
            "chain_numbers": order,
            "stage_starts": np.cumsum([0, *map(len, stages)], dtype=np.int64),
            "stages": np.array([stage for chain in stages for stage in chain], np.int32),
            "last_starts": last_starts,
            "lasts": rows[last_order, 1:],
        }

    def _value_arrays(self, facts: Int32) -> dict[str, NDArray[Any]]:
        """What values are compared with, by the test of the nodes that ask, and the function."""
        groups = {
            int(facts[fact]): -2 - formula
            for fact, (kind, _, formula) in enumerate(self._facts)
            if kind == OF_GROUP
        }
        functions = [groups[number] for number in range(len(groups))]
        constants: dict[tuple[int, bytes], int] = {}
        contained: dict[tuple[int, bytes], int] = {}
        comparisons: list[list[tuple[int, float, int]]] = [[] for _ in functions]
        for (asking, operator, literal), fact in self._value_facts.items():
            group, number = int(facts[asking]), int(facts[fact])
            if operator == "contains":
                contained[group, str(literal).encode()] = number
            elif isinstance(literal, str):
                key = 2 * group + (operator == "starts-with")
                constants[key, literal.encode()] = number
            else:
                comparisons[group].append((OPERATORS[operator], literal, number))
        return value_arrays(functions, constants, contained, comparisons)


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


def _watch_row(
    number: int, kind: int, code: list[int], is_watched: bool
) -> tuple[int, int, int, int]:
    """What stands with the rules of a formula: three facts that it needs, and -1 if that is all."""
    if not is_watched:
        return -1, -1, -1, -1 if number == TRUE else number
    if kind != CONJUNCTION:
        return code[0], code[0], code[0], number
    several = (*code, code[0], code[0])
    return several[0], several[1], several[2], number if len(code) > 3 else -1


def _watches(starts: Int64, watched: Int32) -> tuple[Int64, dict[str, NDArray[Any]]]:
    """Where the watches of each node begin, and these, for nodes that have many rules.

    Args:
        starts: int64[nodes + 1]; where the rules of each node begin.
        watched: the facts that these watch, ascending for each node, or -1.
    """
    counts = np.diff(starts)
    of_rule = np.repeat(np.arange(len(counts)), counts)
    picked = np.flatnonzero((counts[of_rule] > MANY_RULES) & (watched >= 0))
    nodes, facts = of_rule[picked], watched[picked]
    begins = _is_first(nodes, facts)
    nodes, facts, runs = nodes[begins], facts[begins], picked[begins]
    # Behind the runs of a node stands where its rules end.
    wide = np.flatnonzero(_is_first(nodes))
    places = facts >> 6
    is_word = _is_first(nodes, places)
    ranks = np.flatnonzero(is_word) + np.cumsum(_is_first(nodes))[is_word] - 1
    behind = np.append(wide[1:], len(nodes)) if len(wide) else wide
    runs = np.insert(runs, behind, starts[1:][nodes[wide]])
    bits = np.uint64(1) << (facts & 63).astype(np.uint64)
    words = np.bitwise_or.reduceat(bits, np.flatnonzero(is_word)) if len(bits) else bits
    return np.searchsorted(nodes[is_word], np.arange(len(starts))), {
        "watch_words": words,
        "watch_places": places[is_word],
        "watch_ranks": ranks.astype(np.int32),
        "runs": runs.astype(np.int32),
    }


def _is_first(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows differ from the one before."""
    result = np.ones(len(columns[0]), bool)
    result[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return result


def _numbered(code: Code, numbers: list[int]) -> list[int]:
    """A program for a stack, with other numbers for its facts."""
    result: list[int] = []
    place = 0
    while place < len(code):
        if code[place] == COUNT:
            result += code[place : place + 4]
            place += 4
            continue
        result.append(numbers[code[place]] if code[place] >= 0 else code[place])
        place += 1
    return result


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
