"""``Building``: all plans as records, which grow with each query that is added."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from tamis.core.arrays import Int32
from tamis.documents.vocabulary import Vocabulary
from tamis.language.filters import Codes, Labels
from tamis.matching.engines.nfa.states import Nfa
from tamis.matching.filters import ElementLabels
from tamis.transform import layout as base
from tamis.transform.constants import ConstantIndex, PairTable, Rows, Slabs
from tamis.transform.shapes import Comparison
from tamis_papers.pathsharing import layout as at
from tamis_papers.pathsharing.plan import (
    HASH,
    MERGE,
    SCAN,
    Attributed,
    DupElim,
    GroupBy,
    Join,
    Operator,
    OuterJoinSelect,
    PathTuples,
    ReturnSelect,
    Search,
    Selected,
    Selection,
    Semijoin,
    SharedSelection,
    WhereFilter,
)

_MODES = {SCAN: at.IN_ORDER, MERGE: at.IN_ORDER, HASH: at.HASHED}


class Building:
    """The operators of all plans; an operator comes behind those that it reads.

    What is shared is found in a dictionary by the operator's value, which says all that it does and
    reads: the streams always, and with ``is_shared`` everything. So a new query only adds what no
    other one has, and compiles nothing anew.

    Args:
        labels: what steps test for.

    Attributes:
        is_shared: as given.
        nfa: the path matching engine.
        constants: what nodes are compared with.
        queries: how many were added.
    """

    def __init__(self, labels: Labels, is_shared: bool) -> None:
        self.nfa = Nfa()
        self.constants = ConstantIndex()
        self.queries = 0
        self._labels = labels
        self._element_labels = ElementLabels([])
        self._known_labels = -1
        self.is_shared = is_shared
        self._numbers: dict[Hashable, int] = {}
        self._watched: set[int] = set()
        self._operators = Rows(at.OPERATOR)
        self._is_triggered = Rows(1, np.bool_)
        self._scheduled = Rows(1)
        self._stream_of = Rows(1, fill=base.NONE)
        self._inputs = Rows(1)
        self._group_paths: dict[int, int] = {}  # of each GroupBy, the number of its path
        self._paths = Rows(1)
        self._searches = Rows(at.SEARCH)
        self._searched = Rows(1)
        self._codes = Rows(1)
        self._outputs = PairTable()
        self._queries = Slabs()  # of each operator of outer joins that is shared
        self._left_of = Rows(1)
        self._grouped_from = Rows(1, np.int64)

    @property
    def paths(self) -> Int32:
        """The paths of plans whose lists are made by GroupBys."""
        return self._paths.view

    def __len__(self) -> int:
        """How many operators there are."""
        return self._operators.count

    def plans(self, vocabulary: Vocabulary) -> at.Plans:
        """The arrays, as they are now; those that grow may be replaced."""
        if len(self._labels.names) != self._known_labels:
            self._known_labels = len(self._labels.names)
            self._element_labels = ElementLabels(self._labels.names)
        labels, namespace_labels = self._element_labels.of(vocabulary)
        return at.Plans(
            operators=self._operators.view,
            scheduled=self._scheduled.view,
            stream_of=self._stream_of.view,
            inputs=self._inputs.view,
            searches=self._searches.view,
            searched=self._searched.view,
            codes=self._codes.view,
            outputs=self._outputs.array,
            query_starts=self._queries.starts.view,
            query_counts=self._queries.counts.view,
            listed_queries=self._queries.numbers.view,
            left_of=self._left_of.view,
            grouped_from=self._grouped_from.view,
            labels=labels,
            namespace_labels=namespace_labels,
        )

    # -- queries -----------------------------------------------------------------------------------

    def add(self, plan: Operator) -> int:
        """Add a query with a plan, a Return-Select or an OuterJoin-Select: its number."""
        query = self.queries
        self.queries += 1
        operator = self._grouped(plan, query) if self.is_shared else self._number(plan)
        row = self._operators.array[operator * at.OPERATOR : (operator + 1) * at.OPERATOR]
        if not self.is_shared:
            row[at.QUERIES] = query
        self._left_of.add([row[at.LEFT]])
        return query

    def _grouped(self, plan: Operator, query: int) -> int:
        """The one operator of all outer joins on a list; the lists of their groups are references.

        Queries with the same plan are so, too.
        """
        assert isinstance(plan, OuterJoinSelect)
        left = self._number(plan.left)
        paths = tuple(self._group_paths[self._number(joined.stream)] for joined in plan.lists)
        start = self._numbers.get(("paths", paths))
        if start is None:
            start = self._numbers["paths", paths] = self._paths.extend(paths)
        self._grouped_from.add([start])
        found = self._numbers.get(("outer joins", left))
        if found is None:
            kind = at.OUTER_JOIN_SELECT
            found = self._record(kind, left, mode=at.GROUPED)
            self._numbers["outer joins", left] = found
            self._operators.array[found * at.OPERATOR + at.QUERIES] = self._queries.new()
        self._queries.add(int(self._operators.array[found * at.OPERATOR + at.QUERIES]), query)
        return found

    # -- operators ---------------------------------------------------------------------------------

    def _number(self, operator: Operator) -> int:
        """The number of an operator, which is new unless it is shared."""
        is_shared = self.is_shared or isinstance(operator, PathTuples)
        found = self._numbers.get(operator) if is_shared else None
        if found is None:
            found = self._add(operator)
            if is_shared:
                self._numbers[operator] = found
        return found

    def _add(self, operator: Operator) -> int:
        match operator:
            case PathTuples(codes):
                return self._add_stream(codes)
            case Selection(source, tests):
                left, listed = self._number(source), self.constants.tests(tests)
                return self._record(at.SELECTION, left, levels=len(tests), argument=listed)
            case DupElim(source, levels, mode):
                left = self._number(source)
                return self._record(at.DUP_ELIM, left, levels=levels, mode=_MODES[mode])
            case WhereFilter(source, searches):
                left, listed = self._number(source), self._search_list(searches)
                return self._record(at.WHERE_FILTER, left, argument=listed)
            case ReturnSelect(source, searches):
                left, listed = self._number(source), self._search_list(searches)
                return self._record(at.RETURN_SELECT, left, argument=listed)
            case Semijoin(left, right, levels, mode):
                sides = self._number(left), self._number(right)
                return self._record(at.SEMIJOIN, *sides, levels=levels, mode=_MODES[mode])
            case Join(left, right, levels, mode):
                sides = self._number(left), self._number(right)
                return self._record(at.JOIN, *sides, levels=levels, mode=_MODES[mode])
            case GroupBy(source, binding, levels, mode):
                sides = self._number(source), self._number(binding)
                found = self._record(at.GROUP_BY, *sides, levels=levels, mode=_MODES[mode])
                self._group_paths[found] = len(self._group_paths)
                return found
            case OuterJoinSelect():
                return self._add_outer_join(operator)
            case SharedSelection():
                return self._add_shared_selection(operator)
            case Selected():
                return self._add_selected(operator)

    def _record(
        self,
        kind: int,
        left: int,
        right: int = base.NONE,
        *,
        levels: int = 0,
        argument: int = base.NONE,
        mode: int = at.IN_ORDER,
    ) -> int:
        """Add a record, and have it run: in any case, or when what it reads was made ready."""
        row = [kind, mode, left, right, levels, argument, base.NONE, base.NONE, base.NONE]
        found = self._operators.add(row)
        is_triggered = kind == at.SELECTED
        if left != base.NONE and kind != at.SELECTED and self._is_triggered.array[left]:
            is_triggered = True
            first = left * at.OPERATOR + at.FIRST_READER
            rows = self._operators.array
            rows[found * at.OPERATOR + at.NEXT_READER] = rows[first]
            rows[first] = found
        self._is_triggered.add([is_triggered])
        if not is_triggered and kind != at.PATH_TUPLES:
            self._scheduled.add([found])
        return found

    def _add_stream(self, codes: Codes) -> int:
        """The stream of a path: have what reaches it, and all before, noted."""
        state = 0
        for code in codes:
            state = self.nfa.step(state, code)
            if state not in self._watched:
                self._watched.add(state)
                self.nfa.watch([state])
        found = self._record(at.PATH_TUPLES, base.NONE, argument=state)
        self._stream_of.stretch(len(self.nfa))
        self._stream_of.array[state] = found
        return found

    def _add_outer_join(self, operator: OuterJoinSelect) -> int:
        left = self._number(operator.left)
        inputs = [(self._number(joined.stream), joined.levels) for joined in operator.lists]
        listed = self._inputs.extend([*(number for pair in inputs for number in pair), base.NONE])
        kind, mode = at.OUTER_JOIN_SELECT, _MODES[operator.mode]
        return self._record(kind, left, argument=listed, mode=mode)

    def _search_list(self, searches: tuple[Search, ...]) -> int:
        """Where some searches are listed; each is there once."""
        return self._searched.extend([*map(self._search, searches), base.NONE])

    def _search(self, search: Search) -> int:
        found = self._numbers.get(search)
        if found is None:
            route, comparison = search
            codes = self._codes.extend(route.codes)
            tests = self.constants.tests(route.tests) if any(route.tests) else base.NONE
            compared = base.NONE if comparison is None else self.constants.comparison(comparison)
            found = self._searches.add([codes, len(route.codes), tests, compared])
            self._numbers[search] = found
        return found

    # -- shared selections -------------------------------------------------------------------------

    def _add_shared_selection(self, operator: SharedSelection) -> int:
        source = self._number(operator.source)
        left, right = self._source(operator.left), self._source(operator.right)
        levels = 0 if operator.left is None else operator.left.levels
        kind = at.SHARED_SELECTION
        return self._record(kind, source, left, levels=levels, argument=right)

    def _source(self, attributed: Attributed | None) -> int:
        if attributed is None:
            return base.NONE
        return self.constants.add_source(attributed.kind, attributed.name)

    def _add_selected(self, operator: Selected) -> int:
        selection = self._number(operator.selection)
        row = selection * at.OPERATOR
        sources = self._operators.array[[row + at.RIGHT, row + at.ARGUMENT]].tolist()
        asked = operator.left, operator.right
        left, right = (self._leaf(*each) for each in zip(sources, asked, strict=True))
        found = self._record(at.SELECTED, selection, left, argument=right)
        key = (left, right) if left + right > 0 else (at.UNCONDITIONAL, selection)
        self._outputs.setdefault(key[0] << 32 | key[1], found)
        return found

    def _leaf(self, source: int, asked: Comparison | None) -> int:
        """The leaf that is asked of a source, plus one; 0 for none."""
        return 0 if asked is None else self.constants.leaf(source, asked) + 1
