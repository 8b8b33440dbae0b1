"""``Building``: the plans of all transformations, which grow with each that is added.

Nothing is compiled anew: what a transformation shares with others is found in dictionaries, and
what is new goes behind what is there, in arrays that are copied to larger ones when they are full.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.documents.batch import Int64
from tamis.language.filters import ANY, Labels
from tamis.matching.nfa.states import Nfa
from tamis.transform.relative import layout
from tamis.transform.relative.kernels.tables import (
    number_hash,
    put,
    put_all,
    text_hash,
)
from tamis.transform.relative.layout import (
    COMPARISON,
    EQUAL,
    EXISTS,
    LEAF,
    LEAF_COUNT,
    LEAF_FIRST,
    LESS,
    NONE,
    OPERATORS,
    RULE,
    SOURCE,
    SOURCE_EXISTS,
    SOURCE_IS_LIST,
    SOURCE_NUMBERS,
    SOURCE_RANGES,
    SOURCE_TEXTS,
    SOURCE_UNEQUAL,
    UNEQUAL,
    Plans,
)
from tamis.transform.shapes import Comparison, Conjunction, End, Leaf, Route, Shape

_MASK = (1 << 64) - 1


class Rows:
    """Records of some numbers each, behind each other, with room for more.

    >>> rows = Rows(2)
    >>> rows.add([1, 2]), rows.add([3, 4])
    (0, 1)
    >>> rows.view
    array([1, 2, 3, 4], dtype=int32)
    """

    def __init__(self, width: int, dtype: Any = np.int32, fill: int = 0) -> None:
        self.width = width
        self.fill = fill
        self.count = 0
        self.array: NDArray[Any] = np.full(16 * width, fill, dtype)

    @property
    def view(self) -> NDArray[Any]:
        """All numbers, as they are now."""
        return self.array[: self.count * self.width]

    def add(self, row: Sequence[Any]) -> int:
        """Add a record, or the beginning of one: its number."""
        start = self.count * self.width
        self.reserve(self.count + 1)
        self.array[start : start + len(row)] = row
        self.count += 1
        return self.count - 1

    def extend(self, numbers: Sequence[Any] | NDArray[Any]) -> int:
        """Add numbers, of records of one each: the place of the first one."""
        start = self.count
        self.reserve(start + len(numbers))
        self.array[start : start + len(numbers)] = numbers
        self.count += len(numbers)
        return start

    def reserve(self, count: int) -> None:
        """Make room for so many records."""
        needed = count * self.width
        if needed > len(self.array):
            wide = np.full(2 * needed, self.fill, self.array.dtype)
            wide[: len(self.array)] = self.array
            self.array = wide

    def stretch(self, count: int) -> None:
        """Have at least so many records."""
        if count > self.count:
            self.reserve(count)
            self.count = count


class Table:
    """A hash table of ``kernels.tables``, at most half full."""

    def __init__(self) -> None:
        self.array: Int64 = np.zeros(2 * 64, np.int64)
        self.count = 0

    def put(self, hash: int, value: int) -> None:
        self.count += 1
        if 4 * self.count > len(self.array):
            wide = np.zeros(2 * len(self.array), np.int64)
            put_all(self.array, wide)
            self.array = wide
        put(self.array, hash, value)


class Building:
    """The plans of all transformations.

    Attributes:
        nfa: their binding paths, and behind the state that every element reaches their relative
            ones, whatever the binding.
        labels: what the steps of the NFA test for.
        attributes: the names of attributes, by number.
        selections: how many there are: distinct pairs of a binding and a condition.
    """

    def __init__(self) -> None:
        self.labels = Labels()
        self.nfa = Nfa()
        self.any_state = self.nfa.step(0, ANY << 1 | 1)
        self.nfa.watch([self.any_state])
        self.attributes: list[tuple[str, str]] = []
        self.selections = 0
        self._numbers: dict[Hashable, int] = {}
        self._watched = {self.any_state}
        self._is_binding = Rows(1, np.uint8)
        self._source_of = Rows(1, fill=NONE)
        self._first_above = Rows(1, fill=NONE)
        self._first_rule = Rows(1, fill=NONE)
        self._sources = Rows(SOURCE)
        self._leaves = Rows(LEAF)
        self._literals = Rows(1, np.float64)
        self._texts = Rows(1, np.uint8)
        self._equals = Table()
        self._ranges = Slabs()
        self._tests = Rows(1)
        self._comparisons = Rows(COMPARISON)
        self._comparison_literals = Rows(1, np.float64)
        self._rules = Rows(layout.RULE)
        self._rule_leaves = Rows(1)
        self._rule_pairs = Table()
        self._pair_rules: dict[tuple[int, int], int] = {}
        self._queries_of = Slabs()
        self._selection_of = Rows(1)
        self._path_starts = Rows(1, np.int64)
        self._is_live = Rows(1, np.uint64)
        self._paths = Rows(1)

    @property
    def queries(self) -> int:
        """How many transformations were added."""
        return self._selection_of.count

    @property
    def sources(self) -> int:
        """How many ends of paths there are."""
        return self._sources.count

    @property
    def leaves(self) -> int:
        """How many conditions on strings there are."""
        return self._leaves.count

    def plans(self) -> Plans:
        """The arrays, as they are now; those that grow may be replaced."""
        return Plans(
            is_binding=self._is_binding.view,
            source_of=self._source_of.view,
            first_above=self._first_above.view,
            first_rule=self._first_rule.view,
            sources=self._sources.view,
            leaves=self._leaves.view,
            literals=self._literals.view,
            texts=self._texts.view,
            equals=self._equals.array,
            range_starts=self._ranges.starts.view,
            range_counts=self._ranges.counts.view,
            thresholds=self._ranges.keys.view,
            range_leaves=self._ranges.numbers.view,
            tests=self._tests.view,
            comparisons=self._comparisons.view,
            comparison_literals=self._comparison_literals.view,
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
            self._sources.array[source * SOURCE + SOURCE_IS_LIST] = 1
        self._path_starts.add([self._paths.extend(paths)])
        query = self._selection_of.add([selection])
        self._queries_of.add(selection, query)
        self._is_live.stretch(query // 64 + 1)
        self._is_live.array[query // 64] |= np.uint64(1 << query % 64)
        return query

    def remove(self, query: int) -> None:
        """Forget a transformation; the room that it takes stays."""
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
        leaves = [self._leaf(self._source(leaf.end), leaf) for leaf in conjunction]
        above = self._leaves_above(binding, route)
        leaves = sorted({*leaves, *above}, key=self._rarity)
        tests = self._tests_of(route) if len(above) > 1 else NONE
        others = self._rule_leaves.extend([*leaves[1:], NONE]) if len(leaves) > 1 else NONE
        row = [binding, selection, others, NONE, NONE, tests]
        if not leaves:
            row[layout.RULE_NEXT] = int(self._first_rule.array[binding])
            self._first_rule.array[binding] = self._rules.add(row)
            return
        leaf = leaves[0]
        row[layout.RULE_NEXT_OF_LEAF] = int(self._leaves.array[leaf * LEAF + LEAF_FIRST])
        rule = self._rules.add(row)
        self._leaves.array[leaf * LEAF + LEAF_FIRST] = rule
        self._leaves.array[leaf * LEAF + LEAF_COUNT] += 1
        first = self._pair_rules.setdefault((binding, leaf), rule)
        if first == rule:
            self._rule_pairs.put(_hash_of_key(binding, leaf), rule)
        else:  # behind the first one, which the table leads to
            place = first * RULE + layout.RULE_NEXT
            self._rules.array[rule * RULE + layout.RULE_NEXT] = self._rules.array[place]
            self._rules.array[place] = rule

    def _rarity(self, leaf: int) -> tuple[int, int]:
        """What leaves are ordered by: equality first, among equals what fewer rules ask."""
        operator = int(self._leaves.array[leaf * LEAF + layout.LEAF_OPERATOR])
        return operator != EQUAL, int(self._leaves.array[leaf * LEAF + LEAF_COUNT])

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
            tests = self._tests_of(end.route) if any(end.route.tests) else NONE
            first = int(self._source_of.array[state])
            found = self._numbers[end] = self._add_source(end.kind, end.name, first, tests, 0)
            self._source_of.array[state] = found
        return found

    def _add_source(
        self, kind: int, name: tuple[str, str] | None, following: int, tests: int, level: int
    ) -> int:
        row = [kind, self._attribute(name), following, tests, level, 0, NONE, 0, 0, NONE]
        return self._sources.add([*row, NONE, NONE, NONE, NONE])

    def _attribute(self, name: tuple[str, str] | None) -> int:
        if name is None:
            return NONE
        number = self._numbers.setdefault(("attribute", name), len(self.attributes))
        if number == len(self.attributes):
            self.attributes.append(name)
        return number

    def _leaves_above(self, binding: int, route: Route) -> list[int]:
        """The leaves of the tests of a binding's inner steps."""
        found: list[int] = []
        for level, tests in enumerate(route.tests):
            for test in tests:
                key = ("above", binding, level, test.kind, test.name)
                source = self._numbers.get(key)
                if source is None:
                    first = int(self._first_above.array[binding])
                    source = self._add_source(test.kind, test.name, first, NONE, level)
                    self._numbers[key] = source
                    self._first_above.array[binding] = source
                found.append(self._leaf(source, test))
        return found

    # -- tests and leaves --------------------------------------------------------------------------

    def _tests_of(self, route: Route) -> int:
        """Where the tests of a route are listed, its last step's first."""
        key = ("tests", route.tests)
        found = self._numbers.get(key)
        if found is None:
            listed: list[int] = []
            for tests in route.tests:
                listed += [*map(self._comparison, tests), NONE]
            found = self._numbers[key] = self._tests.extend(listed)
        return found

    def _comparison(self, test: Comparison) -> int:
        found = self._numbers.get(test)
        if found is None:
            text, text_end = self._text(test.literal)
            name = self._attribute(test.name)
            operator = OPERATORS.index(test.operator)
            row = [test.kind, name, operator, text, text_end]
            found = self._numbers[test] = self._comparisons.add(row)
            self._comparison_literals.add([_number(test.literal)])
        return found

    def _text(self, literal: bytes | float | None) -> tuple[int, int]:
        """Where a string that is compared with is; ``NONE`` where it is none."""
        if not isinstance(literal, bytes):
            return NONE, NONE
        start = self._texts.extend(np.frombuffer(literal, np.uint8))
        return start, start + len(literal)

    def _leaf(self, source: int, asked: Leaf | Comparison) -> int:
        """The leaf that asks a source for a comparison."""
        literal = asked.literal
        operator = OPERATORS.index(asked.operator)
        key = ("leaf", source, operator, isinstance(literal, bytes), literal)
        found = self._numbers.get(key)
        if found is None:
            text, text_end = self._text(literal)
            row = [source, operator, NONE, text, text_end, NONE, 0]
            found = self._numbers[key] = self._leaves.add(row)
            self._literals.add([_number(literal)])
            self._have_found(found, source, operator, literal)
        return found

    def _have_found(
        self, leaf: int, source: int, operator: int, literal: bytes | float | None
    ) -> None:
        """Have kernels find a leaf that is new."""
        row = self._sources.array[source * SOURCE : (source + 1) * SOURCE]
        if operator == EXISTS:
            row[SOURCE_EXISTS] = leaf
        elif operator == UNEQUAL:
            self._leaves.array[leaf * LEAF + layout.LEAF_NEXT] = row[SOURCE_UNEQUAL]
            row[SOURCE_UNEQUAL] = leaf
        elif isinstance(literal, bytes):
            row[SOURCE_TEXTS] += 1
            text = np.frombuffer(literal, np.uint8)
            text.flags.writeable = False
            self._equals.put(text_hash(text, source), leaf)
        elif operator == EQUAL:
            row[SOURCE_NUMBERS] += 1
            (bits,) = struct.unpack("<q", struct.pack("<d", _number(literal) + 0.0))
            self._equals.put(number_hash(bits, source), leaf)
        else:
            number = SOURCE_RANGES + operator - LESS
            if row[number] == NONE:
                row[number] = self._ranges.new()
            self._ranges.insert(int(row[number]), _number(literal), leaf)


class Slabs:
    """Lists of numbers that grow; one that is full moves to where there is more room.

    Attributes:
        starts, counts: int64; where each list is.
        numbers: int32; what they hold.
        keys: float64; of lists that are kept in their order, the keys of the numbers.
    """

    def __init__(self) -> None:
        self.starts = Rows(1, np.int64)
        self.counts = Rows(1, np.int64)
        self.numbers = Rows(1)
        self.keys = Rows(1, np.float64)
        self._rooms: list[int] = []

    def new(self) -> int:
        """An empty list: its number."""
        self.starts.add([0])
        self._rooms.append(0)
        return self.counts.add([0])

    def add(self, slab: int, number: int) -> None:
        """Add a number at the end of a list."""
        count = int(self.counts.array[slab])
        if count == self._rooms[slab]:
            self._move(slab, count)
        self.numbers.array[int(self.starts.array[slab]) + count] = number
        self.counts.array[slab] = count + 1

    def insert(self, slab: int, key: float, number: int) -> None:
        """Add a number to a list that ascends by keys."""
        count = int(self.counts.array[slab])
        if count == self._rooms[slab]:
            self._move(slab, count)
        start = int(self.starts.array[slab])
        end = start + count
        keys, numbers = self.keys.array, self.numbers.array
        place = start + int(np.searchsorted(keys[start:end], key))
        keys[place + 1 : end + 1] = keys[place:end].copy()
        numbers[place + 1 : end + 1] = numbers[place:end].copy()
        keys[place], numbers[place] = key, number
        self.counts.array[slab] = count + 1

    def _move(self, slab: int, count: int) -> None:
        room = self._rooms[slab] = max(2 * count, 4)
        start = int(self.starts.array[slab])
        moved = self.numbers.count
        for rows in (self.numbers, self.keys):
            rows.stretch(moved + room)
            rows.array[moved : moved + count] = rows.array[start : start + count].copy()
        self.starts.array[slab] = moved


def _number(literal: bytes | float | None) -> float:
    return literal if isinstance(literal, float) else float("nan")


def _hash_of_key(one: int, other: int) -> int:
    """``kernels.tables.hash_of_key`` of a pair."""
    number = (one + 1) << 32 | other
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    number = (number ^ number >> 27) * 0x94D049BB133111EB & _MASK
    number = (number ^ number >> 31) | 1
    return number - (1 << 64) if number >> 63 else number
