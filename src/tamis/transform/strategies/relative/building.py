"""``Building``: the plans of all transformations, which grow with each that is added.

Nothing is compiled anew: what a transformation shares with others is found in dictionaries, and
what is new goes behind what is there, in arrays that are copied to larger ones when they are full.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from tamis.language.filters import ANY, Labels
from tamis.matching.engines.nfa.states import Nfa
from tamis.transform.shapes import Conjunction, End, Route, Shape
from tamis.transform.strategies.relative import layout
from tamis.transform.strategies.relative.layout import (
    LEAF_COUNT,
    LEAF_FIRST,
    RULE,
    SOURCE_LISTED,
    Plans,
)
from tamis.transform.strings.constants import ConstantIndex
from tamis.transform.strings.kernels.tables import key_hash
from tamis.transform.strings.layout import EQUAL, LEAF, LEAF_OPERATOR, NONE, SOURCE
from tamis.transform.strings.rows import Rows, Slabs, Table

_MASK = (1 << 64) - 1


class Building:
    """The plans of all transformations.

    Attributes:
        nfa: their binding paths, and behind the state that every element reaches their relative
            ones, whatever the binding.
        labels: what the steps of the NFA test for.
        constants: what strings are compared with.
        selections: how many there are: distinct pairs of a binding and a condition.
    """

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.nfa = Nfa()
        self.any_state = self.nfa.step(0, ANY << 1 | 1)
        self.nfa.watch([self.any_state])
        self.constants = ConstantIndex()
        self.selections = 0
        self._numbers: dict[Hashable, int] = {}
        self._watched = {self.any_state}
        self._is_binding = Rows(1, np.uint8)
        self._source_of = Rows(1, fill=NONE)
        self._first_above = Rows(1, fill=NONE)
        self._first_rule = Rows(1, fill=NONE)
        self._rules = Rows(layout.RULE)
        self._rule_leaves = Rows(1)
        self._rule_pairs = Table()
        self._pair_rules: dict[tuple[int, int], int] = {}
        self._queries_of = Slabs()
        self._selection_of = Rows(1)
        self._path_starts = Rows(1, np.int64)
        self._is_live = Rows(1, np.uint64)
        self._paths = Rows(1)
        self._stretch()

    @property
    def queries(self) -> int:
        """How many transformations were added."""
        return self._selection_of.count

    @property
    def sources(self) -> int:
        """How many ends of paths there are."""
        return self.constants.sources.count

    @property
    def leaves(self) -> int:
        """How many conditions on strings there are."""
        return self.constants.leaves.count

    def plans(self) -> Plans:
        """The arrays of selections, as they are now; those that grow may be replaced."""
        return Plans(
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
            is_live=self._is_live.view,
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
            self.constants.sources.array[source * SOURCE + SOURCE_LISTED] += 1
        self._path_starts.add([self._paths.extend(paths)])
        query = self._selection_of.add([selection])
        self._queries_of.add(selection, query)
        self._is_live.stretch(query // 64 + 1)
        self._is_live.array[query // 64] |= np.uint64(1 << query % 64)
        return query

    def remove(self, query: int) -> None:
        """Forget a transformation; the room that it takes stays, but no more is listed for it."""
        ends = *self._path_starts.view[query : query + 2].tolist(), self._paths.count
        for source in self._paths.array[ends[0] : ends[1]].tolist():
            self.constants.sources.array[source * SOURCE + SOURCE_LISTED] -= 1
        self._is_live.array[query // 64] &= np.uint64(_MASK ^ 1 << query % 64)

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
        """Add a rule, which is looked for by its leaf that is probably seldom true."""
        leaves = [
            self.constants.leaf(self._source(leaf.end), leaf, _NO_RULES) for leaf in conjunction
        ]
        above = self._leaves_above(binding, route)
        leaves = sorted({*leaves, *above}, key=self._rarity)
        tests = self.constants.tests(route.tests) if len(above) > 1 else NONE
        others = self._rule_leaves.extend([*leaves[1:], NONE]) if len(leaves) > 1 else NONE
        row = [binding, selection, others, NONE, NONE, tests]
        if not leaves:
            row[layout.RULE_NEXT] = int(self._first_rule.array[binding])
            self._first_rule.array[binding] = self._rules.add(row)
            return
        leaf = leaves[0]
        row[layout.RULE_NEXT_OF_LEAF] = int(self.constants.leaves.array[leaf * LEAF + LEAF_FIRST])
        rule = self._rules.add(row)
        self.constants.leaves.array[leaf * LEAF + LEAF_FIRST] = rule
        self.constants.leaves.array[leaf * LEAF + LEAF_COUNT] += 1
        first = self._pair_rules.setdefault((binding, leaf), rule)
        if first == rule:
            self._rule_pairs.put(int(key_hash(binding, leaf)), rule)
        else:  # behind the first one, which the table leads to
            place = first * RULE + layout.RULE_NEXT
            self._rules.array[rule * RULE + layout.RULE_NEXT] = self._rules.array[place]
            self._rules.array[place] = rule

    def _rarity(self, leaf: int) -> tuple[int, int]:
        """What leaves are ordered by: equality first, among equals what fewer rules ask."""
        operator = int(self.constants.leaves.array[leaf * LEAF + LEAF_OPERATOR])
        return operator != EQUAL, int(self.constants.leaves.array[leaf * LEAF + LEAF_COUNT])

    # -- paths -------------------------------------------------------------------------------------

    def _state(self, state: int, route: Route) -> int:
        """The state that a route leads to, and have what reaches it, and all before, noted."""
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
        """The source at the end of a relative path."""
        found = self._numbers.get(end)
        if found is None:
            state = self._state(self.any_state, end.route)
            self._stretch()
            tests = self.constants.tests(end.route.tests) if any(end.route.tests) else NONE
            first = int(self._source_of.array[state])
            found = self._numbers[end] = self.constants.add_source(
                end.kind, end.name, (first, tests, 0, 0)
            )
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
                    first = int(self._first_above.array[binding])
                    source = self.constants.add_source(
                        test.kind, test.name, (first, NONE, level, 0)
                    )
                    self._numbers[key] = source
                    self._first_above.array[binding] = source
                found.append(self.constants.leaf(source, test, _NO_RULES))
        return found


_NO_RULES = (NONE, 0)
"""Of a new leaf."""
