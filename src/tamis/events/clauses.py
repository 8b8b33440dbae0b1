"""``ClauseSearcher``: filters with clauses, for every engine.

An engine finds filters by their constraints, and conditions as if they were filters. Of those that
it found, a filter stays if a literal of each of its clauses is true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.core.arrays import Int32, Int64, freeze, starts_of
from tamis.core.index.matchset import MatchSet
from tamis.core.kernel.state import State, bound, zeros
from tamis.events.kernels import clauses as at
from tamis.events.model import EventBatch, FilterTable, Owners
from tamis.events.planner import Searcher

if TYPE_CHECKING:
    from tamis.events.encode import OneEvent


class ClauseSearcher:
    """What is left of what a searcher finds; for one thread.

    Args:
        searcher: of ``table.without_clauses()``, which reports filters.
        owners: of the filters of the table, to report.
    """

    def __init__(self, searcher: Searcher, table: FilterTable, owners: Owners) -> None:
        self._searcher = searcher
        self._table, self._owners = table, owners
        self._sets: tuple[Int64, Int32] | None = None  # which ``_reported`` is of
        self._reported: tuple[Int64, Int32]
        work = zeros(at.Work, 2, stamps=table.conditions, kept=1 << 10)
        self._state = State(at.STATE_SIZE, at.WORK, work)
        starts = table.clause_starts, table.literal_starts
        self._state.register(at.CLAUSES, at.Clauses(*starts, table.literals))
        self._keep_one = bound(at.keep_one, self._state.words)
        self._one: tuple[Any, ...] = (None, None)

    def match(self, batch: EventBatch) -> MatchSet:
        """The owners of filters that match each event."""
        found = self._searcher.match(batch)
        self._divide(found.set_starts, found.members)
        state, words = self._state, self._state.words
        starts = np.zeros(batch.events + 1, np.int64)
        state.register(at.FOUND, at.Found(found.document_starts, found.set_ids))
        state.replace(kept_starts=starts)  # they are given away
        self._one = (None, None)
        words[at.KEPT] = words[at.NEXT] = 0
        state.run(at.keep_filters)
        kept = state.arrays.kept[: words[at.KEPT]].copy()
        freeze(starts, kept)
        return MatchSet(starts, kept, *self._reported)

    def match_one(self, event: OneEvent, listing: Int64, part: int) -> bool:
        """See ``SignatureSearcher.match_one``."""
        match_one = getattr(self._searcher, "match_one", None)
        if match_one is None or self._sets is None or not match_one(event, listing, part):
            return False
        if self._one[0] is not listing or self._one[1] != part:
            self._one = listing, part
            self._state.register(at.ONE, at.One(listing))
            self._state.words[at.LISTED_AT] = part
            self._state.replace(kept_starts=np.zeros(2, np.int64))
        return not self._keep_one()

    def _divide(self, set_starts: Int64, members: Int32) -> None:
        """Divide the filters of sets: those without clauses, those with, and conditions.

        The first ones are reported as a set, and each one with clauses as a set of its own.
        """
        if self._sets is not None and self._sets[0] is set_starts and self._sets[1] is members:
            return
        table, sets = self._table, np.repeat(np.arange(len(set_starts) - 1), np.diff(set_starts))
        is_condition = members >= table.filters
        has_clauses = ~is_condition
        own = members[has_clauses]
        clauses = np.diff(table.clause_starts)
        has_clauses[has_clauses] = clauses[own] > 0
        is_plain = ~is_condition & ~has_clauses
        count = len(set_starts) - 1

        def lists(chosen: Any, numbers: Int32) -> tuple[Int64, Int32]:
            return starts_of(np.bincount(sets[chosen], minlength=count)), numbers

        plain = lists(is_plain, self._owners.of[members[is_plain]])
        conditions = lists(is_condition, members[is_condition] - np.int32(table.filters))
        conditional = lists(has_clauses, members[has_clauses])
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
