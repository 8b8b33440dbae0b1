"""Batches of documents or records: how documents are grouped, and how engines answer a batch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from tamis.core.errors import DocumentError, SubscriptionId, UnknownSubscription
from tamis.core.index.columns import Ids
from tamis.core.index.matches import Listing, Matches, Subscribers
from tamis.core.index.matchset import MatchSet, Which
from tamis.core.index.segments import Segment, SnapshotIds
from tamis.core.limits import Limits
from tamis.core.threads import Flush
from tamis.documents import concatenated
from tamis.documents.batch import DocumentBatch
from tamis.documents.column import DocumentColumn
from tamis.documents.encodings import DeclaredEncoding
from tamis.documents.files import TarMember, ZipMember
from tamis.documents.parser import Parser
from tamis.documents.record_batch import RecordBatch, RecordOffsets, StreamPosition
from tamis.documents.source import Document, Source, file_size, read
from tamis.documents.vocabulary import ALL_NAMES, NO_NAMES, Name, Projection, Vocabulary
from tamis.language.subscriptions import Subscription, Subscriptions
from tamis.matching.engine import Searcher, Sources
from tamis.matching.planner import CompiledAssignment

if TYPE_CHECKING:
    from tamis.documents.offsets import Excerpt
    from tamis.matching.selection import BatchNodes

# Much of an engine's cost is per batch, so documents are matched in groups: as many as fit in these
# bounds. They also bound how far match_many() reads ahead.
BATCH_DOCUMENTS = 256
BATCH_BYTES = 4 << 20
COLUMN_DOCUMENTS = 8 * BATCH_DOCUMENTS
"""Of a column, whose documents are all there, so that nothing is read ahead."""

Given = Document | Source | DocumentError
"""A document, read or not, or the error of one that could not be read."""
Group = Sequence[Given] | DocumentColumn

_PROJECTIONS_MAX = 8
"""So many parsers a thread keeps."""
_REFUSED_MAX = 64
"""After so many documents in a row that kernels alone cannot match, no other one is tried."""
_FILES = (os.PathLike, ZipMember, TarMember)
_READ = (Source, DocumentError)
_NO_BYTES, _NO_LINES = np.zeros(0, np.int64), np.zeros(0, np.int32)
_NO_OFFSETS = RecordOffsets(0, _NO_BYTES, _NO_BYTES, _NO_LINES, (), StreamPosition())


class Answers(NamedTuple):
    """What matched in a batch.

    Attributes:
        nodes: where its nodes are, if these were asked for.
        offsets: where records stand; empty for whole documents.
    """

    matches: Matches[DocumentError]
    nodes: BatchNodes | None
    offsets: RecordOffsets = _NO_OFFSETS


@dataclass(eq=False)
class Worker:
    """The searchers of one thread, and the names of the documents that they met last."""

    searchers: list[Searcher]
    vocabulary: Vocabulary


class Programs:
    """Some subscriptions and what they were compiled to: immutable, and shared by threads.

    Args:
        subscribers: of the queries of all programs.

    Attributes:
        answered: the subscribers of the queries of each program.
        projection: what its programs read of documents.
        workers: the searchers of threads that do not match now, with what they have cached: of
            each thread one searcher an assignment.
    """

    def __init__(
        self,
        subscriptions: Subscriptions,
        subscribers: Subscribers,
        assignments: list[CompiledAssignment],
    ) -> None:
        self.subscriptions = subscriptions
        self.subscribers = subscribers
        self.assignments = assignments
        self.workers: list[Worker] = []
        self.projection = Projection()
        self.answered: list[Subscribers] = []
        for (_, _, numbers), program in assignments:
            self.projection |= program.projection
            self.answered.append(subscribers.only(numbers))

    @property
    def ids(self) -> Ids:
        """The ids of the subscriptions."""
        return self.subscriptions.ids

    def take_worker(self, vocabulary: Vocabulary, cache_bytes: int) -> Worker:
        """A worker for one thread, with the caches that earlier documents filled.

        One that met the vocabulary last is taken if there is one: it knows its names. Whoever took
        it puts it back; where something was raised, it may be left half-way, and nobody does.
        """
        for worker in self.workers[::-1]:
            if worker.vocabulary is vocabulary:
                with suppress(ValueError):  # another thread took it
                    self.workers.remove(worker)
                    return worker
        try:
            worker = self.workers.pop()
        except IndexError:
            opened = [each.engine.searcher(own, cache_bytes) for each, own in self.assignments]
            return Worker(opened, vocabulary)
        worker.vocabulary = vocabulary
        return worker


class BatchMatcher:
    """Matches batches with all engines of all segments; threads share it.

    Args:
        projection: what is read of documents, beside what the engines read.

    Attributes:
        ids: of the subscriptions, by the numbers that matches have.
        parsers: by projection, those of threads that do not match now.
        version: of the live set.
    """

    def __init__(
        self,
        segments: Sequence[Segment[Programs]],
        limits: Limits,
        projection: Projection,
        parsers: list[dict[Projection, Parser]] | None = None,
        version: int = 0,
    ) -> None:
        self.segments = segments
        self.limits = limits
        self.version = version
        self.parsers = [] if parsers is None else parsers
        self.assignments: list[CompiledAssignment] = []
        self._refused = 0  # documents in a row that could not be matched by themselves
        self._of_records: Vocabulary | None = None  # what the last records were parsed with
        self._programs = [segment.compiled for segment in segments]
        self._queries = [0]  # the number of each segment's first query
        self._firsts: list[int] = []  # and of that of each assignment
        subscribers: list[Subscribers] = []
        size = 0
        for programs, segment in zip(self._programs, segments, strict=True):
            projection |= programs.projection
            subscribers += [each.within(size, segment.is_removed) for each in programs.answered]
            size += len(programs.ids)
            self.assignments += programs.assignments
            self._firsts += [self._queries[-1]] * len(programs.assignments)
            self._queries.append(self._queries[-1] + len(programs.subscribers.starts) - 1)
        is_whole = len(segments) == 1 and segments[0].is_removed is None
        self.ids = self._programs[0].ids if is_whole else SnapshotIds(segments)
        self._listing = Listing(subscribers, self.ids, size, version)
        self.projection = projection
        names = projection.attributes.some
        has_prefixes = names is None or any(namespace for namespace, _ in names)
        self._nodes_projection = Projection(prefixes=has_prefixes, offsets=True)
        for assignment, _ in self.assignments:
            self._nodes_projection |= assignment.engine.nodes_projection

    def with_limits(self, limits: Limits) -> BatchMatcher:
        """The same, with other bounds on each document."""
        segments = []
        for own, is_removed in ((each.compiled, each.is_removed) for each in self.segments):
            without_caches = Programs(own.subscriptions, own.subscribers, own.assignments)
            segments.append(Segment(without_caches, is_removed))
        return BatchMatcher(segments, limits, self.projection, version=self.version)

    def projected(self, nodes: Which | None, values: bool) -> Projection:
        """What is read of documents; to find an attribute again takes its prefix."""
        if nodes is None:
            return self.projection
        text = ALL_NAMES if values else NO_NAMES
        return self.projection | self._nodes_projection | Projection(text=text)

    def memory_usage(self) -> int:
        """Bytes of what searchers have cached, without those that threads use now."""
        return sum(searcher.memory_usage() for searcher in self.searchers())

    def searchers(self) -> list[Searcher]:
        """All that no thread uses now."""
        workers = [worker for programs in self._programs for worker in list(programs.workers)]
        return [searcher for worker in workers for searcher in worker.searchers]

    def names(self) -> set[Name]:
        """Names in the documents so far; parsers forget them when there are many."""
        parsers = [parser for found in list(self.parsers) for parser in found.values()]
        return {
            *(self._of_records or ()),
            *(name for found in parsers for name in found.vocabulary),
        }

    def find(self, id: SubscriptionId) -> Subscription | None:
        """The subscription with an id, or None."""
        index, number = self._segment_of(id)
        return None if number < 0 else self._programs[index].subscriptions.subscription(number)

    def query_number(self, id: SubscriptionId) -> int:
        """The number of the query that a subscription asks."""
        index, number = self._segment_of(id)
        if number < 0:
            raise UnknownSubscription(id=id)
        return self._queries[index] + int(self._programs[index].subscriptions.query_numbers[number])

    def _segment_of(self, id: SubscriptionId) -> tuple[int, int]:
        """The index of the segment that a subscription is in, and its number there, or -1."""
        return (0, self.ids.find(id)) if isinstance(self.ids, Ids) else self.ids.segment_of(id)

    def _parser(self, projection: Projection) -> tuple[Parser, dict[Projection, Parser]]:
        """A parser for one thread, and all that are to be put back with it."""
        try:
            parsers = self.parsers.pop()
        except IndexError:
            parsers = {}
        parser = parsers.get(projection)
        if parser is None or len(parsers) > 1:
            parser = parsers.pop(projection, parser)
            parser = parser or Parser(Vocabulary(), projection, self.limits)
            parsers[projection] = parser  # the last one: it was used last
        return parser, parsers

    def _put_back(self, parsers: dict[Projection, Parser]) -> None:
        for each, known in list(parsers.items()):
            if known.is_full:  # or too many names would be kept
                del parsers[each]
        for each in list(parsers)[:-_PROJECTIONS_MAX]:  # those of earlier snapshots
            del parsers[each]
        self.parsers.append(parsers)

    def match(
        self,
        sources: Sequence[Source | DocumentError],
        nodes: Which | None = None,
        values: bool = False,
    ) -> Answers:
        """Match documents that were read, or could not be, as one batch."""
        if len(sources) == 1 and nodes is None and self._refused < _REFUSED_MAX:
            one = self._match_one(sources[0])
            if one is not None:
                return Answers(one, None)

        def source(number: int) -> tuple[Source, int]:
            return cast(Source, sources[number]), 0  # nobody asks for one in error

        parser, parsers = self._parser(self.projected(nodes, values))
        batch, errors = parser.parse(sources, lent=nodes is None)
        parsed = batch, errors, parser.vocabulary
        answers = self._answers(parsed, source, sources, nodes, values)
        self._put_back(parsers)
        return answers

    def _match_one(self, source: Source | DocumentError) -> Matches[DocumentError] | None:
        """The matches of a small document, by a few calls of kernels; None: not in this way."""
        if isinstance(source, DocumentError):
            return None
        parser, parsers = self._parser(self.projection)
        numbers = None
        if (recorded := parser.read_one(source)) is not None:
            workers: list[Worker] = []
            searchers: list[Searcher] = []
            for programs in self._programs:
                worker = programs.take_worker(parser.vocabulary, self.limits.cache_bytes)
                workers.append(worker)
                searchers += worker.searchers
            numbers = self._listing.list_one(searchers, recorded, parser.vocabulary)
            # Not before: what it found was only referred to.
            for programs, worker in zip(self._programs, workers, strict=True):
                programs.workers.append(worker)
        self.parsers.append(parsers)
        self._refused = 0 if numbers is not None else self._refused + 1
        return None if numbers is None else Matches.of_numbers(self._listing, numbers)

    def match_records(self, found: RecordBatch, nodes: Which | None, values: bool) -> Answers:
        """Match records, which were parsed as is :meth:`projected`."""
        self._of_records = found.vocabulary
        answers = self._answers(found[:3], found.source, found.excerpt, nodes, values)
        return answers._replace(offsets=found.offsets)

    def _answers(
        self,
        parsed: tuple[DocumentBatch, Mapping[int, DocumentError], Vocabulary],
        sources: Sources,
        excerpts: Sequence[Source | DocumentError] | Excerpt | None,
        nodes: Which | None,
        values: bool,
    ) -> Answers:
        """What each engine says of a batch, joined; with ``values`` the batch has all text."""
        batch, errors, vocabulary = parsed
        found: list[MatchSet] = []
        for programs in self._programs:
            worker = programs.take_worker(vocabulary, self.limits.cache_bytes)
            for searcher in worker.searchers:
                found.append(searcher.match(batch, vocabulary, nodes, sources))
            programs.workers.append(worker)
        located = None
        if nodes is not None and excerpts is not None:
            from tamis.matching.selection import BatchNodes, EngineResult  # noqa: PLC0415 - few ask

            assignments = (
                assignment._replace(numbers=assignment.numbers + np.int32(first))
                for (assignment, _), first in zip(self.assignments, self._firsts, strict=True)
            )
            results, bounds = list(map(EngineResult, assignments, found)), (values, self.limits)
            located = BatchNodes(
                nodes, *bounds, batch, vocabulary, excerpts, results, self.query_number
            )
        return Answers(Matches(self._listing, found, errors), located)


# -- reading documents ---------------------------------------------------------------------------


class DocumentReader(NamedTuple):
    """Reads documents, in groups that one thread matches."""

    limits: Limits
    declared: DeclaredEncoding

    def groups(
        self, documents: Iterable[Given | DocumentColumn | Flush]
    ) -> Iterator[Group | Flush]:
        """Groups, in which regular files are still to be read, and all else was read."""
        group: list[Given] = []
        size = 0
        if isinstance(documents, concatenated.Documents):
            documents = documents.items()
        try:
            for document in documents:
                if isinstance(document, DocumentColumn):
                    if group:
                        yield group
                    group, size = [], 0
                    yield from document.groups(COLUMN_DOCUMENTS, BATCH_BYTES)
                    continue
                is_file = type(document) is not bytes and isinstance(document, _FILES)
                file_bytes = file_size(document) if is_file else None
                # A pipe may be long until somebody writes to it.
                if document is Flush.FLUSH or (is_file and file_bytes is None):
                    if group:
                        yield group
                    group, size = [], 0
                    yield Flush.FLUSH
                if document is Flush.FLUSH:
                    continue
                found = document if file_bytes is not None else self.read(document)
                group.append(found)
                size += _size(found) if file_bytes is None else file_bytes
                if len(group) >= BATCH_DOCUMENTS or size >= BATCH_BYTES:
                    yield group
                    group, size = [], 0
        except Exception:  # of the caller's iterator: what it gave before is answered first
            if group:
                yield group
            raise
        if group:
            yield group

    def batches(self, group: Group) -> Iterator[Sequence[Source | DocumentError]]:
        """A group with its files read, divided again, since only now their sizes are known."""
        if isinstance(group, DocumentColumn):
            yield group
            return
        sources: list[Source | DocumentError] = []
        size = 0
        for document in group:
            source = document if type(document) is Source else self.read(document)
            sources.append(source)
            size += _size(source)
            if size >= BATCH_BYTES:
                yield sources
                sources, size = [], 0
        if sources:
            yield sources

    def read(self, document: Given) -> Source | DocumentError:
        """A document, or its error."""
        if isinstance(document, _READ):
            return document
        try:
            return read(document, self.limits, self.declared)
        except DocumentError as error:
            return error


def _size(source: Given) -> int:
    return len(source.data) if isinstance(source, Source) else 0
