"""Subscriptions, compiled: documents in, ids of the matching subscriptions out."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tamis.documents.batch import EVERYTHING, Int32
from tamis.documents.expat import parse
from tamis.documents.source import Document, Source, read
from tamis.documents.vocabulary import Vocabulary
from tamis.errors import DocumentError, SubscriptionId, UsageError
from tamis.language.model import Query
from tamis.language.subscriptions import Subscriptions
from tamis.limits import DEFAULT_LIMITS, Limits
from tamis.matching.explain import Explanation, explain
from tamis.matching.matchset import MatchSet, match_set
from tamis.matching.planner import choose
from tamis.matching.slow import SlowLane

log = logging.getLogger("tamis")

# Documents are matched in groups, since much of an engine's cost is per batch: as many as fit in
# these bounds, which also bound how far match_many() reads ahead.
BATCH_DOCUMENTS = 64
BATCH_BYTES = 4 << 20


class Match:
    """What matched one document; the ids are made only when asked for.

    A document in error has ``error``, and raises it when its matches are asked for, so that it
    cannot pass for a document without matches.

    Attributes:
        indices: int32 array of subscription numbers, ascending, read-only.
        error: the document's error, or None.

    >>> match = compile_subscriptions({"x": "//a", "y": "//b"}).match(b"<a/>")
    >>> bool(match), len(match), list(match)
    (True, 1, ['x'])
    """

    __slots__ = ("_ids", "_indices", "error")

    def __init__(
        self, ids: Sequence[SubscriptionId], indices: Int32, error: DocumentError | None
    ) -> None:
        self._ids = ids
        self._indices = indices
        self.error = error

    @property
    def indices(self) -> Int32:
        """The numbers of the subscriptions that matched, ascending."""
        if self.error is not None:
            raise self.error
        return self._indices

    def __bool__(self) -> bool:
        return len(self.indices) > 0

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[SubscriptionId]:
        ids = self._ids
        return iter([ids[index] for index in self.indices.tolist()])

    def __repr__(self) -> str:
        if self.error is not None:
            return f"<Match: {self.error.code}>"
        return f"<Match: {len(self):,} of {len(self._ids):,}>"


class CompiledMatcher:
    """Compiled subscriptions: immutable, safe to share between threads, picklable.

    Made by :func:`tamis.compile`. A pickle holds the subscriptions, which are compiled again where
    it is loaded.
    """

    def __init__(self, subscriptions: Subscriptions, engine: str, limits: Limits) -> None:
        self.subscriptions = subscriptions
        self.limits = limits
        self.ids = subscriptions.ids
        self._named_engine = engine
        self._vocabulary = Vocabulary(limits)
        numbers: list[int] = []
        queries: list[Query] = []
        slow: list[tuple[int, SubscriptionId, str]] = []
        for number, item in enumerate(subscriptions):
            if item.query is not None:
                numbers.append(number)
                queries.append(item.query)
            else:
                assert item.absolute is not None
                slow.append((number, item.id, item.absolute))
        self._numbers = np.array(numbers, dtype=np.int32)
        self._engine = choose(queries, engine)
        self._program = self._engine.compile(queries, self._vocabulary)
        self._slow = SlowLane(slow, subscriptions.namespaces) if slow else None
        if slow:
            log.warning("%d of %d subscriptions go through lxml", len(slow), len(subscriptions))

    @property
    def engine(self) -> str:
        """The name of the engine that was chosen."""
        return self._engine.name

    def match(self, document: Document) -> Match:
        """Match one document.

        Args:
            document: bytes, memoryview, mmap, :class:`pathlib.Path`, open file, or a str of XML.

        Raises:
            DocumentError: it cannot be answered.

        >>> list(compile_subscriptions({"x": "//a[@n > 1]"}).match("<a n='2'/>"))
        ['x']
        """
        (match,) = self.match_many([document])
        if match.error is not None:
            raise match.error
        return match

    def match_many(self, documents: Iterable[Document]) -> Iterator[Match]:
        """Match documents, in their order; one in error carries it in its ``Match``.

        Reads ahead by at most 64 documents, or 4 MiB and one document.

        >>> matcher = compile_subscriptions({"x": "//a"})
        >>> [match.error or list(match) for match in matcher.match_many([b"<a/>", b"<b/>", b"<"])]
        [['x'], [], MalformedDocument('unclosed token', 1, 1)]
        """
        nothing = np.zeros(0, dtype=np.int32)
        for sources in self._batches(documents):
            matches = self.match_batch(sources)
            for number in range(len(sources)):
                error = matches.errors.get(number)
                indices = nothing if error is not None else matches.numbers(number)
                indices.flags.writeable = False
                yield Match(self.ids, indices, error)

    def match_batch(self, sources: Sequence[Source | DocumentError]) -> MatchSet:
        """Match documents that were read, or could not be, as one batch."""
        batch, errors = parse(
            sources, self._vocabulary, self._engine.demand(self._program), self.limits
        )
        matches = self._engine.match(self._program, batch)._replace(errors=errors)
        if self._slow is None:
            return matches
        numbers: list[Int32] = []
        for document, source in enumerate(sources):
            found = self._numbers[matches.numbers(document)]
            if document not in errors and isinstance(source, Source):
                try:
                    found = np.union1d(found, self._slow.match(source))
                except DocumentError as error:
                    errors[document] = error
            numbers.append(found)
        return match_set(numbers, errors)

    def explain(self, document: Document, id: SubscriptionId) -> Explanation:
        """What of one subscription matched where, or what failed first.

        Raises:
            DocumentError: the document cannot be answered.
            UsageError: there is no such subscription, or it goes through the slow lane.

        >>> print(compile_subscriptions({"x": "/a/b[c]/d"}).explain("<a><b/></a>", "x"))
        false: /a/b[c]/d
          /a   1 node, line 1
          /b   1 node, line 1
          [c]  none of 1  ← fails here
        """
        for item in self.subscriptions:
            if item.id == id:
                break
        else:
            raise UsageError(f"there is no subscription {id!r}")
        if item.query is None:
            raise UsageError(f"subscription {id!r} goes through lxml, which cannot explain itself")
        source = read(document, self.limits)
        batch, errors = parse([source], self._vocabulary, EVERYTHING, self.limits)
        if errors:
            raise errors[0]
        return explain(item.query, batch, self._vocabulary)

    def _batches(self, documents: Iterable[Document]) -> Iterator[list[Source | DocumentError]]:
        sources: list[Source | DocumentError] = []
        size = 0
        for document in documents:
            try:
                source = read(document, self.limits)
                size += len(source.data)
                sources.append(source)
            except DocumentError as error:
                sources.append(error)
            if len(sources) >= BATCH_DOCUMENTS or size >= BATCH_BYTES:
                yield sources
                sources, size = [], 0
        if sources:
            yield sources

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledMatcher, (self.subscriptions, self._named_engine, self.limits)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<CompiledMatcher: {len(self):,} subscriptions, engine {self.engine}>"


def compile_subscriptions(
    subscriptions: Subscriptions
    | Mapping[SubscriptionId, str]
    | Iterable[tuple[SubscriptionId, str]],
    *,
    engine: str = "auto",
    limits: Limits = DEFAULT_LIMITS,
) -> CompiledMatcher:
    """Compile subscriptions; exported as :func:`tamis.compile`.

    Args:
        subscriptions: a :class:`Subscriptions`, or what makes one: id → expression or pairs.
        engine: ``"auto"``, or an engine to use or be refused.
        limits: bounds on each document (and on expressions that are not parsed yet).

    Raises:
        BadSubscriptions: some expressions cannot be used.
        EngineRefused: the named engine does not exist or cannot run them.
        MissingExtra: some go through the slow lane and lxml is not installed.
    """
    if not isinstance(subscriptions, Subscriptions):
        subscriptions = Subscriptions(subscriptions, limits=limits)
    return CompiledMatcher(subscriptions, engine, limits)
