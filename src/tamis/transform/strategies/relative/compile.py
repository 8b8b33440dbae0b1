"""``Building``: the plans of all transformations, which grow with each that is added.

Nothing is compiled anew: dictionaries find what a transformation shares with others, and new
records go into arrays that grow.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from tamis.language.filters import WILDCARD, Labels
from tamis.matching.engines.nfa.states import Nfa
from tamis.transform.constants import ConstantIndex, PairTable, Rows, Slabs
from tamis.transform.layout import EQUAL, LEAF, LEAF_OPERATOR, NONE, SOURCE
from tamis.transform.shapes import Conjunction, End, Route, Shape
from tamis.transform.strategies.relative import layout as at

_NO_RULES = (NONE, 0)
"""The first and the number of the rules of a new leaf."""


class Building:
    """The plans of all transformations.

    Attributes:
        nfa: their binding paths, and behind the state that every element reaches their relative
            ones, whatever the binding.
        selections: the number of distinct pairs of a binding and a condition.
    """

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.nfa = Nfa()
        self.any_state = self.nfa.step(0, WILDCARD << 1 | 1)
        self.nfa.watch([self.any_state])
        self.constants = ConstantIndex()
        self.selections = 0
        self._numbers: dict[Hashable, int] = {}
        self._watched = {self.any_state}
        self._is_binding = Rows(1, np.uint8)
        self._source_of = Rows(fill=NONE)
        self._first_above = Rows(fill=NONE)
        self._first_rule = Rows(fill=NONE)
        self._rules = Rows(at.RULE)
        self._rule_leaves = Rows()
        self._rule_pairs = PairTable()
        self._queries_of = Slabs()
        self._selection_of = Rows()
        self._path_starts = Rows(1, np.int64)
        self._paths = Rows()
        self._stretch()

    def plans(self) -> at.Plans:
        """The arrays of selections, as they are now; those that grow may be replaced."""
        return at.Plans(
            is_binding=self._is_binding.view,
            source_of=self._source_of.view,
            first_above=self._first_above.view,
            first_rule=self._first_rule.view,
            rules=self._rules.view,
            rule_leaves=self._rule_leaves.view,
            rule_pairs=self._rule_pairs.array,
            query_starts=self._queries_of.starts.view,
            query_counts=self._queries_of.counts.view,
            selection_queries=self._queries_of.numbers.view,
            selection_of=self._selection_of.view,
            path_starts=self._path_starts.view,
            paths=self._paths.view,
        )

    # -- transformations ---------------------------------------------------------------------------

    def add(self, shape: Shape) -> int:
        """Add a transformation: its number."""
        binding = self._state(0, shape.binding)
        self._stretch()
        self._is_binding.array[binding] = 1
        selection = self._selection(binding, shape)
        paths = [self._source(end) for end in shape.ends]
        for source in paths:
            self.constants.sources.array[source * SOURCE + at.SOURCE_LISTED] += 1
        self._path_starts.add([self._paths.extend(paths)])
        query = self._selection_of.add([selection])
        self._queries_of.add(selection, query)
        return query

    def _selection(self, binding: int, shape: Shape) -> int:
        key = ("selection", shape.binding, frozenset(shape.conditions))
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = self.selections
            self.selections += 1
            self._queries_of.new()
            for conjunction in shape.conditions:
                self._add_rule(binding, found, shape.binding, conjunction)
        return found

    def _add_rule(
        self, binding: int, selection: int, route: Route, conjunction: Conjunction
    ) -> None:
        """Add a rule, which is found from the one of its leaves that is probably seldom true."""
        constants = self.constants
        leaves = [constants.leaf(self._source(leaf.end), leaf, _NO_RULES) for leaf in conjunction]
        above = self._leaves_above(binding, route)
        leaves = sorted({*leaves, *above}, key=self._rarity)
        tests = constants.tests(route.tests) if len(above) > 1 else NONE
        others = self._rule_leaves.extend([*leaves[1:], NONE]) if len(leaves) > 1 else NONE
        rule = self._rules.add([binding, selection, others, NONE, NONE, tests])
        next_rule = self._rules.array[at.RULE_NEXT :: at.RULE]
        if not leaves:
            next_rule[rule] = self._first_rule.array[binding]
            self._first_rule.array[binding] = rule
            return
        leaf = constants.leaves.array[leaves[0] * LEAF : (leaves[0] + 1) * LEAF]
        self._rules.array[rule * at.RULE + at.RULE_NEXT_OF_LEAF] = leaf[at.LEAF_FIRST]
        leaf[at.LEAF_FIRST] = rule
        leaf[at.LEAF_COUNT] += 1
        first = self._rule_pairs.setdefault(binding << 32 | leaves[0], rule)
        if first != rule:  # behind the first one, which the table leads to
            next_rule[rule], next_rule[first] = next_rule[first], rule

    def _rarity(self, leaf: int) -> tuple[int, int]:
        """The order of leaves: equality first, among equals the leaf that fewest rules have."""
        row = self.constants.leaves.array[leaf * LEAF : (leaf + 1) * LEAF]
        return row[LEAF_OPERATOR] != EQUAL, int(row[at.LEAF_COUNT])

    # -- paths -------------------------------------------------------------------------------------

    def _state(self, state: int, route: Route) -> int:
        """The state that a route leads to; it and all on the way are watched."""
        for code in route.codes:
            state = self.nfa.step(state, code)
            if state not in self._watched:
                self._watched.add(state)
                self.nfa.watch([state])
        return state

    def _stretch(self) -> None:
        """Have the arrays about states be as long as there are states."""
        for rows in (self._is_binding, self._source_of, self._first_above, self._first_rule):
            rows.stretch(len(self.nfa))

    def _source(self, end: End) -> int:
        found = self._numbers.get(end)
        if found is None:
            state = self._state(self.any_state, end.route)
            self._stretch()
            tests = self.constants.tests(end.route.tests) if any(end.route.tests) else NONE
            own = (int(self._source_of.array[state]), tests, 0, 0)
            found = self._numbers[end] = self.constants.add_source(end.kind, end.name, own)
            self._source_of.array[state] = found
        return found

    def _leaves_above(self, binding: int, route: Route) -> list[int]:
        """The leaves of the tests of a binding's inner steps."""
        found: list[int] = []
        for level, tests in enumerate(route.tests):
            for test in tests:
                key = ("above", binding, level, test.kind, test.name)
                source = self._numbers.get(key)
                if source is None:
                    own = (int(self._first_above.array[binding]), NONE, level, 0)
                    source = self.constants.add_source(test.kind, test.name, own)
                    self._numbers[key] = self._first_above.array[binding] = source
                found.append(self.constants.leaf(source, test, _NO_RULES))
        return found
