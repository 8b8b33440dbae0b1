"""Queries → the NFA's program, which grows when queries are added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64
from tamis.documents.vocabulary import Projection, Projections
from tamis.language.filters import Codes, Labels
from tamis.language.model import Constant, Query
from tamis.matching.engine import refusal
from tamis.matching.engines.nfa import refuses
from tamis.matching.engines.nfa.conditions import DOCUMENT_STATE, Conditions
from tamis.matching.engines.nfa.states import Nfa
from tamis.matching.filters import filters_of
from tamis.matching.projection import projection_of
from tamis.schema.prune import Pruner
from tamis.schema.twigs import prune_query


class _Growing:
    """Numbers behind each other, with room for more."""

    def __init__(self, first: NDArray[Any]) -> None:
        self._array = first
        self._used = len(first)

    def copy(self) -> _Growing:
        return _Growing(self.view.copy())

    @property
    def view(self) -> NDArray[Any]:
        """The numbers; read-only, and as they are at the call."""
        view = self._array[: self._used]
        view.flags.writeable = False
        return view

    def append(self, number: int) -> None:
        if self._used == len(self._array):
            self._array = np.resize(self._array, 2 * self._used + 16)
        self._array[self._used] = number
        self._used += 1


class NfaProgram:
    """The NFA of some queries, and what is asked of the nodes that reach its states.

    A set of queries is what one state answers: the queries of a filter. A *twig*, a query that is
    more than filters, is a set of its own, which no state answers.

    Attributes:
        nfa: all paths.
        labels: what steps test for.
        conditions: what twigs ask.
        twigs: for each its set, and the condition, of the document node.
        queries: how many there are.
        is_pruned: they were pruned with a DTD: then filters have other steps than were written.
    """

    def __init__(self) -> None:
        self.nfa = Nfa()
        self.labels = Labels()
        self.conditions = Conditions()
        self.twigs: list[tuple[int, int]] = []
        self._projections = Projections()
        self.queries = 0
        self.is_pruned = False
        self._set_starts = _Growing(np.zeros(1, np.int64))
        self._members = _Growing(np.zeros(0, np.int32))

    def copy(self) -> NfaProgram:
        """The same program, which grows on its own."""
        other = NfaProgram()
        other.nfa = self.nfa.copy()
        other.labels = _labels(self.labels.names)
        other.conditions = self.conditions.copy()
        other.twigs = self.twigs.copy()
        other._projections, other.queries = Projections(self.projection), self.queries
        other.is_pruned = self.is_pruned
        other._set_starts, other._members = self._set_starts.copy(), self._members.copy()
        return other

    @property
    def projection(self) -> Projection:
        """What is read of documents."""
        return self._projections.total

    @property
    def set_starts(self) -> Int64:
        """int64[sets + 1]; see ``MatchSet``."""
        return self._set_starts.view

    @property
    def members(self) -> Int32:
        """int32[]; see ``MatchSet``."""
        return self._members.view

    def memory_usage(self) -> int:
        """The bytes of its arrays; conditions are objects, and not counted."""
        return self.nfa.memory_usage() + self.set_starts.nbytes + self.members.nbytes

    def add(self, query: Query) -> int:
        """Add one more query, and say its number: the next one.

        It costs its steps: what is there stays as it is.

        Raises:
            EngineRefused: the engine cannot run it.
        """
        number = self.queries
        filters = self.labels.filters(query)
        if filters is None:
            self._add_twig(query, number)
        else:
            self._add_filters(filters, number)
        self.queries += 1
        return number

    def _add_twig(self, query: Query, number: int) -> None:
        _refuse(query)
        self._add_condition(query, number)
        self._projections.add(projection_of(query.expression))

    def _add_pruned(self, query: Query, number: int, pruner: Pruner) -> None:
        """Add a twig that is pruned; documents that violate the DTD need what it reads as it is."""
        _refuse(query)
        pruned = prune_query(query, pruner)
        filters = self.labels.filters(pruned)
        if filters is not None:
            self._add_filters(filters, number)
        elif pruned.expression != Constant(False):
            self._add_condition(query if refuses(pruned) is not None else pruned, number)
        self._projections.add(projection_of(query.expression))

    def _add_condition(self, query: Query, number: int) -> None:
        self.nfa.watch([DOCUMENT_STATE])
        condition = self.conditions.add(query.expression, DOCUMENT_STATE, self.nfa, self.labels)
        self.twigs.append((self.nfa.sets, condition))
        self._add_set(np.full(1, -1, np.int32), number)

    def _add_filters(self, filters: Sequence[Codes], number: int) -> None:
        for codes in dict.fromkeys(filters):
            self._add_set(self.nfa.add([codes]), number)

    def _add_set(self, ends: Int32, query: int) -> None:
        self.nfa.accept(ends)
        self._members.append(query)
        self._set_starts.append(int(self._set_starts.view[-1]) + 1)

    def _add_first(self, queries: Sequence[Query], pruner: Pruner | None) -> None:
        self.is_pruned = pruner is not None
        filters, others = filters_of(queries, pruner)
        self.labels = _labels(filters.names)
        self.nfa.accept(self.nfa.add_many(filters.starts, filters.codes))
        self._set_starts = _Growing(filters.query_starts.copy())
        self._members = _Growing(filters.queries.copy())
        for number, query in others.items():
            if pruner is None:
                self._add_twig(query, number)
            else:
                self._add_pruned(query, number, pruner)
        self.queries = len(queries)


def _refuse(query: Query) -> None:
    reason = refuses(query)
    if reason is not None:
        raise refusal("nfa", query, reason)


def _labels(names: Sequence[str]) -> Labels:
    labels = Labels()
    for name in names:
        labels.of(name)
    return labels


def compile_queries(queries: Sequence[Query], pruner: Pruner | None = None) -> NfaProgram:
    """The NFA of all paths of some queries.

    Raises:
        EngineRefused: the engine cannot run one of them.

    >>> from tamis.language.xpath import parse
    >>> program = compile_queries([parse("/a/b"), parse("/a//c"), parse("/a[b]")])
    >>> len(program.nfa), program.twigs
    (5, [(2, 3)])
    """
    program = NfaProgram()
    program._add_first(queries, pruner)
    return program
