"""``ResidualSearcher``: clauses and residual constraints, for every engine.

An engine indexes filters by their other constraints, and conditions as if they were filters. The
searcher then tests the residual constraints of each candidate, each once an event, and the clauses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64, flat_indices, freeze, starts_of
from tamis.core.automata import Dfa
from tamis.core.errors import SubscriptionError, UsageError
from tamis.core.index.matchset import MatchSet
from tamis.core.kernel.dfa import Dfas, packed
from tamis.core.kernel.state import State, bound, zeros
from tamis.events import model
from tamis.events.kernels import residual as at
from tamis.events.kernels.values import Events
from tamis.events.model import EventBatch, FilterTable, Owners
from tamis.events.model import packed as packed_strings
from tamis.events.planner import Searcher
from tamis.language.patterns import Pattern, pattern_of

if TYPE_CHECKING:
    from tamis.events.reader import OneLine


_NAME, _OPERATOR, _KIND, _VALUE = range(4)
"""The columns of constraints."""
_NO_BYTES = np.zeros(0, np.uint8)


class Residue(NamedTuple):
    """What engines do not find filters by.

    Attributes:
        table: the filters.
        indexed: what engines take instead: without clauses, each condition is a filter whose
            subscription and interface are its own, the last ones; and instead of each residual
            constraint there are those that it implies.
    """

    table: FilterTable
    indexed: FilterTable
    residual: at.Residual
    dfas: Dfas

    @classmethod
    def of(cls, table: FilterTable) -> Residue | None:
        """What is residual of a table, or None where nothing is."""
        rows = np.flatnonzero(table.is_residual)
        if not len(rows) and not table.conditions:
            return None
        columns = table.constraint_names, table.operators, table.kinds, table.values
        every = np.stack([column.astype(np.int64) for column in columns], axis=1)
        keys, numbers = np.unique(every[rows], axis=0, return_inverse=True)
        numbers = numbers.ravel()
        others = keys[:, _VALUE].astype(np.int32)
        patterns = [_pattern(table, key) for key in keys.tolist()]
        is_pattern = keys[:, _OPERATOR] >= model.LIKE
        others[is_pattern] = np.arange(is_pattern.sum())
        residual = at.Residual(
            np.searchsorted(rows, table.starts),
            numbers.astype(np.int32),
            keys[:, _NAME].astype(np.int32),
            keys[:, _OPERATOR].astype(np.uint8),
            others,
        )
        indexed = _indexed(
            table, every, rows, numbers, list(zip(keys.tolist(), patterns, strict=True))
        )
        dfas = packed([each[1] for each in patterns if each is not None])
        return cls(table, indexed, residual, dfas)


def _pattern(table: FilterTable, key: Sequence[int]) -> tuple[Pattern, Dfa] | None:
    """The pattern of a residual constraint, if it has one, and its automaton."""
    name, operator, _, value = key
    if operator < model.LIKE:
        return None
    try:
        text = table.bytes_of(value).decode()
        found = pattern_of(model.OPERATORS[operator], text, table.names[name])
        return found, found.dfa()
    except (ValueError, SubscriptionError) as error:  # of arrays that nobody has checked
        message = f"values has what is no pattern: {error}"
        raise UsageError(f"these arrays cannot be used: {message}") from None


def _indexed(
    table: FilterTable,
    every: NDArray[np.int64],
    rows: Int64,
    numbers: Int64,
    residual: Sequence[tuple[Sequence[int], tuple[Pattern, Dfa] | None]],
) -> FilterTable:
    """See ``Residue``; the constraints of some rows are residual, of these numbers."""
    count = len(table.string_starts) - 1
    strings = {table.bytes_of(number): number for number in range(count)}
    implied: list[tuple[int, int, int, int]] = []
    counts = []
    for (name, _, _, other), pattern in residual:
        before = len(implied)
        if pattern is None:
            implied.append((other, model.EXISTS, 0, 0))
        if pattern is None or not pattern[0].literals:
            implied.append((name, model.EXISTS, 0, 0))
        else:  # the longest one: what few strings have, and each more is looked for in all
            operator, text = max(pattern[0].literals, key=lambda literal: len(literal[1]))
            value = strings.setdefault(text.encode(), len(strings))
            implied.append((name, model.OPERATORS.index(operator), model.STRING, value))
        counts.append(len(implied) - before)
    sizes = np.ones(len(every), np.int64)
    sizes[rows] = np.array(counts, np.int64)[numbers]
    is_residual = np.repeat(table.is_residual, sizes)
    every = np.repeat(every, sizes, axis=0)
    of_rows = flat_indices(starts_of(counts)[numbers], sizes[rows])
    every[is_residual] = np.array(implied, np.int64).reshape(-1, 4)[of_rows]
    starts, data = packed_strings(list(strings)[count:])
    own = np.arange(table.conditions, dtype=np.int32)
    return table._replace(
        starts=starts_of(sizes)[table.starts],
        constraint_names=every[:, _NAME].astype(np.int32),
        operators=every[:, _OPERATOR].astype(np.uint8),
        kinds=every[:, _KIND].astype(np.uint8),
        values=every[:, _VALUE].copy(),
        string_starts=np.concatenate([table.string_starts, table.string_starts[-1] + starts[1:]]),
        string_bytes=np.concatenate([table.string_bytes, data]),
        subscriptions=np.concatenate([table.subscriptions, own + len(table.interfaces)]),
        interfaces=np.concatenate([table.interfaces, own + table.interface_count]),
        interface_count=table.interface_count + table.conditions,
        clause_starts=np.zeros(0, np.int64),
        literal_starts=np.zeros(1, np.int64),
        literals=np.zeros(0, np.int32),
    ).frozen()


class ResidualSearcher:
    """What is left of what a searcher finds; for one thread.

    Args:
        searcher: of ``residue.indexed``, which reports filters.
        owners: of the filters of the table, to report.
    """

    def __init__(self, searcher: Searcher, residue: Residue, owners: Owners) -> None:
        table = residue.table
        self._searcher = searcher
        self._table, self._residue, self._owners = table, residue, owners
        self._sets: tuple[Int64, Int32] | None = None  # which ``_reported`` is of
        self._reported: tuple[Int64, Int32]
        known = len(residue.residual.names)
        work = zeros(at.Work, 2, stamps=table.conditions, known=known, kept=1 << 10)
        self._state = State(at.STATE_SIZE, at.WORK, work)
        starts = table.clause_starts, table.literal_starts
        if not table.conditions:
            starts = np.zeros(table.filters + 1, np.int64), starts[1]
        self._state.register(at.CLAUSES, at.Clauses(*starts, table.literals))
        self._state.register(at.RESIDUAL, residue.residual)
        self._state.register(at.DFAS, residue.dfas)
        self._state.words[at.FILTERS] = table.filters
        self._keep_one = bound(at.keep_one, self._state.words)
        self._one: tuple[Any, ...] = (None, None, None)

    def match(self, batch: EventBatch) -> MatchSet:
        """The owners of filters that match each event."""
        found = self._searcher.match(batch)
        self._divide(found.set_starts, found.members)
        state, words = self._state, self._state.words
        starts = np.zeros(batch.events + 1, np.int64)
        state.register(at.FOUND, at.Found(found.document_starts, found.set_ids))
        state.register(at.EVENTS, Events(*batch[:6], _NO_BYTES))
        state.replace(kept_starts=starts)  # they are given away
        self._one = (None, None, None)
        words[at.KEPT] = words[at.NEXT] = 0
        state.run(at.keep_filters)
        kept = state.arrays.kept[: words[at.KEPT]].copy()
        freeze(starts, kept)
        return MatchSet(starts, kept, *self._reported)

    def match_one(self, event: OneLine, listing: Int64, part: int) -> bool:
        """See ``SignatureSearcher.match_one``."""
        match_one = getattr(self._searcher, "match_one", None)
        if match_one is None or self._sets is None or not match_one(event, listing, part):
            return False
        if self._one[0] is not listing or self._one[1] != part or self._one[2] is not event:
            self._one = listing, part, event
            self._state.register(at.EVENTS, event.arrays)
            self._state.register(at.ONE, at.One(listing))
            self._state.words[at.LISTED_AT] = part
            self._state.replace(kept_starts=np.zeros(2, np.int64))
        return not self._keep_one()

    def _divide(self, set_starts: Int64, members: Int32) -> None:
        """Divide the filters of sets: those that are true, those with more to ask, and conditions.

        The first ones are reported as a set, and each other one as a set of its own.
        """
        if self._sets is not None and self._sets[0] is set_starts and self._sets[1] is members:
            return
        table, sets = self._table, np.repeat(np.arange(len(set_starts) - 1), np.diff(set_starts))
        is_condition = members >= table.filters
        more = np.diff(self._residue.residual.starts[: table.filters + 1])
        if table.conditions:
            more = more + np.diff(table.clause_starts)
        has_more = ~is_condition
        has_more[has_more] = more[members[has_more]] > 0
        is_plain = ~is_condition & ~has_more
        count = len(set_starts) - 1

        def lists(chosen: Any, numbers: Int32) -> tuple[Int64, Int32]:
            return starts_of(np.bincount(sets[chosen], minlength=count)), numbers

        plain = lists(is_plain, self._owners.of[members[is_plain]])
        conditions = lists(is_condition, members[is_condition] - np.int32(table.filters))
        conditional = lists(has_more, members[has_more])
        owned = self._owners.of
        starts = np.concatenate([plain[0], plain[0][-1] + np.arange(1, table.filters + 1)])
        self._reported = starts, np.concatenate([plain[1], owned])
        freeze(*self._reported)
        self._state.register(at.SETS, at.Sets(plain[0], *conditions, *conditional))
        self._state.register(at.REPORTED, at.Reported(*self._reported))
        self._sets = set_starts, members

    def memory_usage(self) -> int:
        """Bytes of the working memory."""
        own = sum(array.nbytes for array in self._reported) if self._sets is not None else 0
        return self._searcher.memory_usage() + self._state.memory_usage() + own
