"""``Matches``: the subscriptions that matched the documents of a batch, or its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64, flat_indices, freeze, starts_of
from tamis.core.errors import LxmlEvaluationError, SubscriptionId, TamisError, UsageError
from tamis.core.index import kernels
from tamis.core.index.columns import Ids
from tamis.core.index.matchset import MatchSet
from tamis.core.index.segments import SnapshotIds
from tamis.core.index.written import WrittenLists
from tamis.core.kernel.record import register
from tamis.core.kernel.state import State, bound, zeros

LISTED_TOGETHER = 1 << 14
"""Documents are listed together until they have so many matches."""
KEPT_MAX = 1 << 20
"""A state that listed more is not used again."""
_DTYPES = [np.dtype(item) for item in (np.int64, np.int32, np.int64, np.int32, np.int32)]
_NO_STARTS, _NO_NUMBERS = np.zeros(0, np.int64), np.zeros(0, np.int32)
_NONE_REMOVED = np.zeros(0, np.bool_)
_NO_ERRORS: Mapping[int, Any] = MappingProxyType({})
freeze(_NO_STARTS, _NO_NUMBERS, _NONE_REMOVED)
E = TypeVar("E", bound=TamisError)
"""What may be wrong with one document or event."""


class Subscribers(NamedTuple):
    """The subscriptions of each query: equal queries of many subscriptions are answered once.

    Attributes:
        starts: int64[queries + 1]; those of query q are ``numbers[starts[q]:starts[q + 1]]``. Empty
            where query q is of subscription q alone.
        numbers: int32[]; numbers of subscriptions in their segment.
        is_removed: bool[]; which of these are no longer there; empty: all are.
        first: the number of the segment's first subscription among those of all segments.

    >>> some = Subscribers(np.array([0, 2, 2, 3]), np.array([0, 1, 2], np.int32))
    >>> some.only(np.array([2, 0], np.int32))[:2]
    (array([0, 1, 3]), array([2, 0, 1], dtype=int32))
    """

    starts: Int64 = _NO_STARTS
    numbers: Int32 = _NO_NUMBERS
    is_removed: NDArray[np.bool_] = _NONE_REMOVED
    first: int = 0

    @classmethod
    def of(cls, query_numbers: Int32, queries: int) -> Subscribers:
        """From the query that each subscription asks."""
        numbers = np.argsort(query_numbers, kind="stable").astype(np.int32)
        starts = starts_of(np.bincount(query_numbers, minlength=queries))
        freeze(starts, numbers)
        return cls(starts, numbers)

    def only(self, queries: Int32) -> Subscribers:
        """Those of some of the queries, which get numbers in this order."""
        starts, numbers = self.starts, self.numbers
        if not np.array_equal(queries, np.arange(len(starts) - 1)):
            sizes = np.diff(starts)[queries]
            numbers = numbers[flat_indices(starts[queries], sizes)]
            starts = starts_of(sizes)
            freeze(starts, numbers)
        each = np.arange(len(queries) + 1)
        if np.array_equal(starts, each) and np.array_equal(numbers, each[:-1]):
            return Subscribers()
        return Subscribers(starts, numbers)

    def within(self, first: int, is_removed: NDArray[np.bool_] | None) -> Subscribers:
        """The same of a segment, of which some may have been removed."""
        return self._replace(
            first=first, is_removed=_NONE_REMOVED if is_removed is None else is_removed
        )

    def numbers_of(self, query: int) -> list[int]:
        """The subscriptions of a query, by their numbers among those of all segments."""
        found = [query]
        if len(self.starts):
            found = self.numbers[self.starts[query] : self.starts[query + 1]].tolist()
        return [
            self.first + number
            for number in found
            if not len(self.is_removed) or not self.is_removed[number]
        ]


class Listing:
    """Lists what engines found, by subscription. Threads share it.

    Args:
        subscribers: of each engine's queries.
        ids: of the subscriptions, by number; None: their numbers are their ids.
        size: the numbers are less than this.
        version: of the live set that the subscriptions are of.
    """

    def __init__(
        self,
        subscribers: Sequence[Subscribers],
        ids: Ids | SnapshotIds | None,
        size: int,
        version: int = 0,
    ) -> None:
        self.subscribers = subscribers
        self.ids = ids
        self.version = version
        self._size = size
        self._idle: list[_ListingState] = []  # of threads that list nothing now

    def beside(self, other: Listing) -> Listing:
        """Lists what both do, of the same subscriptions."""
        subscribers = [*self.subscribers, *other.subscribers]
        return Listing(subscribers, self.ids, self._size, self.version)

    @cached_property
    def written(self) -> WrittenLists:
        """The ids as JSON."""
        return WrittenLists(self.ids, self._size)

    def lists(
        self, found: Sequence[MatchSet], first: int, end: int, most: int
    ) -> tuple[Int64, Int32]:
        """The subscriptions of some documents; of all engines together.

        Args:
            found: by each engine.
            first, end: of the documents.
            most: with so many subscriptions, no other document is listed.

        Returns:
            Where those of each document begin, and the last one's end; and their numbers, which
            ascend in each document.
        """
        try:
            state = self._idle.pop()
        except IndexError:
            state = self._opened()
        words, sliced = state.words, 0
        for part, matches in enumerate(found):
            sliced = max(sliced, len(matches.sliced))
            if [array.dtype for array in matches[:5]] != _DTYPES:
                raise TypeError("an engine's arrays have other types than MatchSet says")
            register(words, kernels.FIRST_PART + part * kernels.PART_SIZE + 1, matches[:5])
        words[: kernels.PARTS] = first, end, first, most, 0, 0
        state.reserve(end - first + 1, "starts")
        if sliced:
            state.reserve((sliced >> 6) + 1, "covered")
        while kernels.list_documents(words):
            state.reserve(int(words[kernels.LISTED] + words[kernels.MARKED]), "numbers")
        documents = int(words[kernels.NEXT]) - first
        starts = state.arrays.starts[: documents + 1].copy()
        numbers = state.arrays.numbers[: words[kernels.LISTED]].copy()
        if len(numbers) <= KEPT_MAX:  # or its memory would be kept
            self._idle.append(state)
        freeze(starts, numbers)
        return starts, numbers

    def list_one(self, searchers: Iterable[object], *given: object) -> Int32 | None:
        """The subscriptions of one document; None where that takes more than kernels.

        Args:
            searchers: one of each engine. What they found has to stay as it is until the
                subscriptions are listed.
            given: the document, as ``match_one`` of each searcher takes it.
        """
        try:
            state = self._idle.pop()
        except IndexError:
            state = self._opened()
        found, words = None, state.words
        if _have_found(searchers, given, words):
            while status := state.list_one():
                name = "covered" if status == kernels.WORK.covered else "numbers"
                state.reserve(int(words[kernels.LISTED]), name)
            found = state.arrays.numbers[: words[kernels.LISTED]].copy()
        if found is None or len(found) <= KEPT_MAX:
            self._idle.append(state)
        return found

    def _opened(self) -> _ListingState:
        words = (self._size >> 6) + 1
        arrays = zeros(
            kernels.Work, words, used=(words >> 6) + 1, covered=0, numbers=1 << 10, starts=2
        )
        size = kernels.FIRST_PART + len(self.subscribers) * kernels.PART_SIZE
        state = _ListingState(size, kernels.WORK, arrays)
        state.words[kernels.PARTS] = len(self.subscribers)
        for part, (starts, numbers, is_removed, first) in enumerate(self.subscribers):
            field = kernels.FIRST_PART + part * kernels.PART_SIZE
            state.words[field] = first
            own = starts, numbers, is_removed
            register(state.words, field + kernels.PART.subscriber_starts, own)
        return state


def _have_found(searchers: Iterable[object], given: Sequence[object], listing: Int64) -> bool:
    """Have each searcher say in a listing what it found in one document; whether all could."""
    part = kernels.FIRST_PART
    for searcher in searchers:
        match_one = getattr(searcher, "match_one", None)
        if match_one is None or not match_one(*given, listing, part):
            return False
        part += kernels.PART_SIZE
    return True


class _ListingState(State[kernels.Work]):
    """What belongs to a thread, and its kernel."""

    def __init__(self, size: int, own: Any, arrays: kernels.Work) -> None:
        super().__init__(size, own, arrays)
        self.list_one = bound(kernels.list_one, self.words)


class _Chunk:
    """Documents that were listed together, from ``first`` on."""

    __slots__ = ("documents", "first", "ids", "json", "numbers", "starts")

    def __init__(self, first: int, starts: list[int], numbers: Int32) -> None:
        self.first, self.starts, self.numbers = first, starts, numbers
        self.documents = len(starts) - 1
        self.ids: list[SubscriptionId] | None = None
        self.json: tuple[bytes, list[int]] | None = None


_NO_CHUNK = _Chunk(0, [0], _NO_NUMBERS)


class Matches(Generic[E]):
    """What matched in a batch. To ask about a document in error raises its error.

    Attributes:
        listing: whose the matches are.
        found: by each of the engines.
        errors: by document.
        documents: how many there are, those in error included.

    >>> from tamis.core.index.matchset import match_set
    >>> found = [match_set([np.array([0]), np.array([1, 0])]), match_set([np.array([0])] * 2)]
    >>> both = Matches(Listing([Subscribers(), Subscribers(first=2)], None, 3), found)
    >>> both.numbers(0), both.count(1), both.ids(1)
    (array([0, 2], dtype=int32), 3, [0, 1, 2])
    >>> both.lists(0)
    (array([0, 2, 5]), array([0, 2, 0, 1, 2], dtype=int32))
    """

    def __init__(
        self,
        listing: Listing,
        found: Sequence[MatchSet],
        errors: Mapping[int, E] = MappingProxyType({}),
    ) -> None:
        self.listing, self.found, self.errors = listing, found, errors
        self.documents = len(found[0].document_starts) - 1 if found else len(errors)
        self._chunk = _NO_CHUNK

    @classmethod
    def of_error(cls, error: E) -> Self:
        """Of one document, which is in error."""
        return cls(Listing([], None, 0), [], {0: error})

    @classmethod
    def of_numbers(cls, listing: Listing, numbers: Int32) -> Self:
        """Of one document, of which the numbers are known."""
        matches = cls(listing, [], _NO_ERRORS)
        freeze(numbers)
        matches.documents = 1
        matches._chunk = _Chunk(0, [0, len(numbers)], numbers)
        return matches

    def __reduce__(self) -> NoReturn:
        raise UsageError("answers cannot be pickled or copied: take ids or indices of them")

    @cached_property
    def failed(self) -> Mapping[int, Mapping[int, LxmlEvaluationError]]:
        """What could not be answered of documents whose others were: document → number → error."""
        failed: dict[int, dict[int, LxmlEvaluationError]] = {}
        parts = self.listing.subscribers if self.found else ()
        for matches, subscribers in zip(self.found, parts, strict=True):
            for document, errors in matches.failed.items():
                of_document = failed.setdefault(document, {})
                for query, error in errors.items():
                    of_document |= dict.fromkeys(subscribers.numbers_of(query), error)
        return {document: dict(sorted(errors.items())) for document, errors in failed.items()}

    def lists(self, first: int, most: int = np.iinfo(np.int64).max) -> tuple[Int64, Int32]:
        """The subscriptions of some documents from one on, as :meth:`Listing.lists`."""
        if not 0 <= first <= self.documents:
            raise IndexError(f"there are {self.documents:,} documents, and none is {first:,}")
        if not self.found:
            starts = [0] * (self.documents + 1) if self.errors else self._chunk.starts
            own = np.array(starts[first:], np.int64)
            return own - own[0], self._chunk.numbers[own[0] :]
        return self.listing.lists(self.found, first, self.documents, most)

    def numbers(self, document: int) -> Int32:
        """The numbers of the subscriptions that matched: int32, ascending, read-only."""
        chunk, index = self._within(document)
        return chunk.numbers[chunk.starts[index] : chunk.starts[index + 1]]

    def count(self, document: int) -> int:
        """How many subscriptions matched."""
        chunk, index = self._within(document)
        return chunk.starts[index + 1] - chunk.starts[index]

    def ids(self, document: int) -> list[SubscriptionId]:
        """The ids of the subscriptions that matched; a list of the caller's own."""
        chunk, index = self._within(document)
        if (found := chunk.ids) is None:
            ids = self.listing.ids
            found = chunk.numbers.tolist() if ids is None else ids.take(chunk.numbers)
            chunk.ids = found
        return found[chunk.starts[index] : chunk.starts[index + 1]]

    def json(self, document: int) -> bytes:
        """The ids of the subscriptions that matched, as a JSON list."""
        chunk, index = self._within(document)
        if (found := chunk.json) is None:
            found = self.listing.written.of(np.array(chunk.starts), chunk.numbers)
            chunk.json = found
        data, bounds = found
        return data[bounds[index] : bounds[index + 1]]

    def _within(self, document: int) -> tuple[_Chunk, int]:
        """The documents with which one was listed, and its index among them."""
        if self.errors and document in self.errors:
            raise self.errors[document]
        chunk = self._chunk
        index = document - chunk.first
        if 0 <= index < chunk.documents:
            return chunk, index
        if not 0 <= document < self.documents:
            raise IndexError(f"there are {self.documents:,} documents, and none is {document:,}")
        end = self.documents if index == chunk.documents else document + 1
        found = self.listing.lists(self.found, document, end, LISTED_TOGETHER)
        self._chunk = chunk = _Chunk(document, found[0].tolist(), found[1])
        return chunk, 0


class Matched(Generic[E]):
    """What matched one document or event; indices and ids are made only when asked for."""

    __slots__ = ("_matches", "_number")

    def __init__(self, matches: Matches[E], number: int) -> None:
        self._matches, self._number = matches, number

    @property
    def error(self) -> E | None:
        """The error of the document or event, or None."""
        return self._matches.errors.get(self._number)

    @property
    def version(self) -> int:
        """The version of the live set that this is an answer of; 0 of a compiled set."""
        return self._matches.listing.version

    @property
    def is_last(self) -> bool:
        """Whether it is the last of those that were matched together: it is time to flush."""
        return self._number == self._matches.documents - 1

    def json(self) -> bytes:
        """The ids that matched, as a JSON list in UTF-8.

        It is put together from ids that were written before, and takes a fraction of
        ``json.dumps(list(match))``.

        >>> import tamis
        >>> tamis.compile({"x": "//a", 7: "//a", "y": "//b"}).match(b"<a/>").json()
        b'["x", 7]'
        """
        return self._matches.json(self._number)

    @property
    def indices(self) -> Int32:
        """The numbers of the subscriptions that matched: int32, ascending, read-only."""
        return self._matches.numbers(self._number)

    def __bool__(self) -> bool:
        return self._matches.count(self._number) > 0

    def __len__(self) -> int:
        return self._matches.count(self._number)

    def __iter__(self) -> Iterator[SubscriptionId]:
        return iter(self._matches.ids(self._number))
