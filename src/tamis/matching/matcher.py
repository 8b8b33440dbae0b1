"""Subscriptions, compiled: documents in, ids of the matching subscriptions out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import numpy as np

from tamis.documents.archive import ZipMember
from tamis.documents.batch import Int32
from tamis.documents.demand import EVERYTHING
from tamis.documents.parser import Parser, parse
from tamis.documents.records import RecordBatch, check_tag, parse_records
from tamis.documents.source import Document, Source, file_size, read
from tamis.documents.streams import open_stream
from tamis.documents.vocabulary import Vocabulary
from tamis.errors import DocumentError, SubscriptionId, UsageError
from tamis.language.subscriptions import SubscriptionItems, Subscriptions, Unsupported
from tamis.limits import DEFAULT_LIMITS, Limits
from tamis.matching.explain import Explanation, explain
from tamis.matching.matchset import MatchSet, match_set
from tamis.matching.planner import choose
from tamis.matching.slow import SlowLane
from tamis.matching.threads import Flush, check_threads, in_order

# Documents are matched in groups, since much of an engine's cost is per batch: as many as fit in
# these bounds, which also bound how far match_many() reads ahead.
BATCH_DOCUMENTS = 256
BATCH_BYTES = 4 << 20


class Match:
    """What matched one document; indices and ids are made only when asked for.

    A document in error has ``error``, and raises it when its matches are asked for, so that it
    cannot pass for a document without matches.

    Attributes:
        error: the document's error, or None.
        record: the number of the record in its document, from 0; None for a whole document.

    >>> match = compile_subscriptions({"x": "//a", "y": "//b"}).match(b"<a/>")
    >>> bool(match), len(match), list(match)
    (True, 1, ['x'])
    """

    __slots__ = ("_document", "_ids", "_matches", "error", "record")

    def __init__(
        self,
        ids: Sequence[SubscriptionId],
        matches: MatchSet,
        document: int,
        record: int | None = None,
    ) -> None:
        self._ids = ids
        self._matches = matches
        self._document = document
        self.error = matches.errors.get(document)
        self.record = record

    @property
    def indices(self) -> Int32:
        """The numbers of the subscriptions that matched: int32, ascending, read-only."""
        if self.error is not None:
            raise self.error
        return self._matches.numbers(self._document)

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
        self._vocabulary = Vocabulary()
        streamed = [
            (number, entry.query)
            for number, entry in enumerate(subscriptions)
            if entry.query is not None
        ]
        queries = [query for _, query in streamed]
        self._numbers = np.array([number for number, _ in streamed], dtype=np.int32)
        self._engine = choose(queries, engine)
        self._program = self._engine.compile(queries, self._vocabulary)
        self._slow = SlowLane.of(subscriptions)
        self._parsers: list[Parser] = []  # that no thread uses now

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

    def match_many(
        self, documents: Iterable[Document | DocumentError], threads: int = 1
    ) -> Iterator[Match]:
        """Match documents, in their order; one in error carries it in its ``Match``.

        What could not even be read may be given as its error, to keep its place. Documents are
        taken in groups of at most 256, or 4 MiB and one document: one at a time, and with several
        threads at most one more than there are threads. Regular files are read by the thread that
        matches them, all else by the caller's.

        Args:
            threads: how many match at once. They end with the iterator, also where it is closed.

        Raises:
            UsageError: ``documents`` is itself a document, or ``threads`` is less than 1.

        >>> matcher = compile_subscriptions({"x": "//a"})
        >>> [match.error or list(match) for match in matcher.match_many([b"<a/>", b"<b/>", b"<"])]
        [['x'], [], MalformedDocument('unclosed token', 1, 1)]
        """
        if isinstance(documents, str | bytes | bytearray | memoryview | os.PathLike):
            raise UsageError("match_many() takes many documents: give one to match()")
        return self._matches(documents, check_threads(threads))

    def _matches(
        self, documents: Iterable[Document | DocumentError], threads: int
    ) -> Iterator[Match]:
        with closing(in_order(self._match_group, self._groups(documents), threads)) as answered:
            for several in answered:
                for matches in several:
                    for number in range(matches.documents):
                        yield Match(self.ids, matches, number)

    def _match_group(self, group: Sequence[Document | Source | DocumentError]) -> list[MatchSet]:
        """Match a group, in smaller ones where what is read turns out to be large."""
        return [self.match_batch(sources) for sources in self._batches(group)]

    def match_records(
        self, document: Document | DocumentError, tag: str, threads: int = 1
    ) -> Iterator[Match]:
        """Match the records of a document of any size: each is a document of its own.

        The records are the outermost elements of a tag, in their order; each is the root of its
        document, with its namespaces in scope. The document is read while it is matched, by some
        thousand records or 4 MiB at a time. Where it cannot be read any further, the last match
        carries the error.

        Args:
            tag: as documents write it, with its prefix: ``page``, ``w:p``.
            threads: how many match at once; the caller's reads.

        Raises:
            UsageError: that is no tag, or some subscriptions go through the slow lane, or
                ``threads`` is less than 1.

        >>> matcher = compile_subscriptions({"x": "/a[b]"})
        >>> [(m.record, list(m)) for m in matcher.match_records("<all><a/><a><b/></a></all>", "a")]
        [(0, []), (1, ['x'])]
        """
        if self._slow is not None:
            raise UsageError(
                "subscriptions that go through lxml cannot be matched with records: leave them out"
            )
        return self._record_matches(document, check_tag(tag), check_threads(threads))

    def _record_matches(
        self, document: Document | DocumentError, tag: str, threads: int
    ) -> Iterator[Match]:
        try:
            if isinstance(document, DocumentError):
                raise document
            stream = open_stream(document)
        except DocumentError as error:
            yield Match(self.ids, match_set([_NO_NUMBERS], {0: error}), 0, record=0)
            return
        demand = self._program.demand
        parsed = parse_records(stream, tag, self._vocabulary, demand, self.limits)
        with (
            closing(parsed),
            closing(in_order(self._match_record_batch, parsed, threads)) as answered,
        ):
            for first, matches in answered:
                for number in range(matches.documents):
                    yield Match(self.ids, matches, number, first + number)

    def _match_record_batch(self, found: RecordBatch) -> tuple[int, MatchSet]:
        """The number of the first record, and what matched."""
        matches = self._engine.match(self._program, found.batch, found.vocabulary)
        return found.places.first, matches._replace(errors=found.errors)

    @contextmanager
    def _parser(self) -> Iterator[Parser]:
        """A parser for this thread alone, which knows the names of earlier documents."""
        try:
            parser = self._parsers.pop()
        except IndexError:
            parser = Parser(self._vocabulary.fork(), self._program.demand, self.limits)
        try:
            yield parser
        finally:
            if not parser.is_full:  # or too many names would be kept
                self._parsers.append(parser)

    def match_batch(self, sources: Sequence[Source | DocumentError]) -> MatchSet:
        """Match documents that were read, or could not be, as one batch."""
        with self._parser() as parser:
            batch, errors = parser.parse(sources)
            matches = self._engine.match(self._program, batch, parser.vocabulary)
        if self._slow is None:
            return matches._replace(errors=errors)
        by_document: list[Int32] = []
        for number, source in enumerate(sources):
            found = self._numbers[matches.numbers(number)]
            if number not in errors and isinstance(source, Source):
                try:
                    found = np.union1d(found, self._slow.match(source))
                except DocumentError as error:
                    errors[number] = error
                    found = found[:0]
            by_document.append(found)
        return match_set(by_document, errors)

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
        vocabulary = self._vocabulary.fork()
        batch, errors = parse([source], vocabulary, EVERYTHING, self.limits)
        if errors:
            raise errors[0]
        return explain(item.query, batch, vocabulary)

    def _groups(
        self, documents: Iterable[Document | DocumentError]
    ) -> Iterator[list[Document | Source | DocumentError] | Flush]:
        """What is matched by one thread: regular files are still to be read, all else was read."""
        group: list[Document | Source | DocumentError] = []
        size = 0
        try:
            for document in documents:
                is_path = isinstance(document, os.PathLike | ZipMember)
                if is_path and (found := file_size(document)) is not None:
                    group.append(document)
                    size += found
                else:
                    if is_path:  # a pipe: it may be long until somebody writes to it
                        if group:
                            yield group
                        group, size = [], 0
                        yield Flush.FLUSH
                    source = self._read(document)
                    group.append(source)
                    size += len(source.data) if isinstance(source, Source) else 0
                if len(group) >= BATCH_DOCUMENTS or size >= BATCH_BYTES:
                    yield group
                    group, size = [], 0
        except Exception:  # of the caller's iterator: what it gave before is answered first
            if group:
                yield group
            raise
        if group:
            yield group

    def _batches(
        self, group: Iterable[Document | Source | DocumentError]
    ) -> Iterator[list[Source | DocumentError]]:
        """A group with its files read, divided again, since only now their sizes are known."""
        sources: list[Source | DocumentError] = []
        size = 0
        for document in group:
            source = self._read(document)
            sources.append(source)
            size += len(source.data) if isinstance(source, Source) else 0
            if size >= BATCH_BYTES:
                yield sources
                sources, size = [], 0
        if sources:
            yield sources

    def _read(self, document: Document | Source | DocumentError) -> Source | DocumentError:
        if isinstance(document, Source | DocumentError):
            return document
        try:
            return read(document, self.limits)
        except DocumentError as error:
            return error

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledMatcher, (self.subscriptions, self._named_engine, self.limits)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<CompiledMatcher: {len(self):,} subscriptions, engine {self.engine}>"


_NO_NUMBERS = np.zeros(0, dtype=np.int32)


def compile_subscriptions(
    subscriptions: Subscriptions | SubscriptionItems,
    *,
    engine: str = "auto",
    namespaces: Mapping[str, str] | None = None,
    unsupported: Unsupported = "refuse",
    limits: Limits | None = None,
) -> CompiledMatcher:
    """Compile subscriptions; exported as :func:`tamis.compile`.

    Args:
        subscriptions: a :class:`Subscriptions`, or what makes one: id → expression or pairs.
        engine: ``"auto"``, or an engine to use or be refused.
        namespaces, unsupported: as for :class:`Subscriptions`, where one has to be made.
        limits: bounds on each document and expression; by default those of the subscriptions.

    Raises:
        BadSubscriptions: some expressions cannot be used.
        EngineRefused: the named engine does not exist or cannot run them.
        MissingExtra: some go through the slow lane and lxml is not installed.
        UsageError: ``namespaces`` or ``unsupported`` is given for subscriptions that are parsed.
    """
    if not isinstance(subscriptions, Subscriptions):
        subscriptions = Subscriptions(
            subscriptions,
            namespaces=namespaces,
            unsupported=unsupported,
            limits=limits or DEFAULT_LIMITS,
        )
    elif namespaces is not None or unsupported != "refuse":
        raise UsageError("give namespaces and unsupported to Subscriptions, which parses")
    return CompiledMatcher(subscriptions, engine, limits or subscriptions.limits)
