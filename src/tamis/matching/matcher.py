"""Subscriptions, compiled: documents in, ids of the matching subscriptions out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.core.arguments import check_many, checked_limits, checked_path
from tamis.core.arrays import Int32, freeze
from tamis.core.errors import (
    DocumentError,
    OtherVersion,
    SlowLaneError,
    SubscriptionId,
    UsageError,
)
from tamis.core.index.matchset import (
    MatchSet,
    Subscribers,
    Which,
    checked_nodes,
    joined,
    match_set,
)
from tamis.core.limits import Limits
from tamis.core.threads import Flush, WorkerPool, check_threads
from tamis.documents import concatenated
from tamis.documents.batch import DocumentBatch
from tamis.documents.encodings import DeclaredEncoding, checked_declared_encoding
from tamis.documents.files import TarMember, ZipMember
from tamis.documents.parser import Parser, parse
from tamis.documents.records import (
    ALL_RECORDS,
    RecordBatch,
    RecordOffsets,
    RecordRange,
    StreamPosition,
    check_tag,
    parse_records,
)
from tamis.documents.source import Document, Source, file_size, open_stream, read
from tamis.documents.vocabulary import ALL_NAMES, EVERYTHING, NO_NAMES, Projection, Vocabulary
from tamis.language.columns import Ids
from tamis.language.subscriptions import (
    SubscriptionItems,
    Subscriptions,
    Unsupported,
    as_subscriptions,
)
from tamis.matching.engine import Searcher
from tamis.matching.planner import CompiledAssignment, compile_assignment, plan
from tamis.matching.projection import projection_of_operand

if TYPE_CHECKING:
    from tamis.core.index.matchset import Explanation
    from tamis.documents.offsets import Excerpt
    from tamis.language.xpath import Operand
    from tamis.matching.conformance import Schema, SchemaFallback
    from tamis.matching.engines.lxml.slow import Selected, SlowDocument, SlowLane
    from tamis.matching.explain import NamespaceMismatch
    from tamis.matching.saved import Kept
    from tamis.matching.selection import (
        BatchNodes,
        DocumentNodes,
        Selection,
    )
    from tamis.schema.graph import SchemaGraph

# Documents are matched in groups, since much of an engine's cost is per batch: as many as fit in
# these bounds, which also bound how far match_many() reads ahead.
BATCH_DOCUMENTS = 256
BATCH_BYTES = 4 << 20


class Match:
    """What matched one document; indices and ids are made only when asked for.

    ``match()`` raises the error of its document. ``match_many()`` and ``match_records()`` go on:
    the match of a document in error has ``error``, and raises this error when its matches are asked
    for, so that it cannot pass for a document without matches.

    Attributes:
        error: the document's error, or None.
        failed: the subscriptions that could not be answered, of a document whose others were:
            id → :class:`SlowLaneError`. Only subscriptions that go through lxml can fail.
        record: the number of the record in its document, from 0; None for a whole document.

    >>> match = compile_subscriptions({"x": "//a", "y": "//b"}).match(b"<a/>")
    >>> bool(match), len(match), list(match)
    (True, 1, ['x'])
    """

    __slots__ = ("_batch_nodes", "_document", "_ids", "_matches", "_nodes", "error", "record")

    def __init__(
        self,
        ids: Ids,
        matches: MatchSet,
        document: int,
        record: int | None = None,
        nodes: BatchNodes | None = None,
    ) -> None:
        self._ids = ids
        self._matches = matches
        self._document = document
        self._batch_nodes = nodes
        self._nodes: DocumentNodes | None = None
        self.error = matches.errors.get(document)
        self.record = record

    @property
    def indices(self) -> Int32:
        """The numbers of the subscriptions that matched: int32, ascending, read-only."""
        if self.error is not None:
            raise self.error
        return self._matches.numbers(self._document)

    @property
    def failed(self) -> Mapping[SubscriptionId, SlowLaneError]:
        failed = self._matches.failed.get(self._document, {})
        ids = self._ids.take(np.array(list(failed), np.int32))
        return dict(zip(ids, failed.values(), strict=True))

    def nodes(self, id: SubscriptionId) -> Selection:
        r"""The nodes that a subscription selects, as byte ranges and lines, in document order.

        They are found when they are asked for. An expression that is a boolean, such as
        ``/a/b = 3``, selects nothing. Offsets are of the document's own bytes, decompressed. Of a
        ``str``, and of what is neither UTF-8 nor ASCII nor ISO 8859-1, they are of its UTF-8 form,
        which leaves out the byte order mark of another encoding; and so they are of records in
        ISO 8859-1. Offsets and lines of a record are those of the whole document.

        Where values were asked for too, :meth:`Selection.values` has the text of each node.

        Raises:
            DocumentError: the document is in error.
            UsageError: there is no such subscription, or nodes were not asked for when it matched.

        >>> matcher = compile_subscriptions({"x": "//b | //@n"})
        >>> selection = matcher.match("<a>\n<b n='1'/></a>", nodes="all").nodes("x")
        >>> list(selection), list(selection.fragments())
        ([Node(start=4, end=14, line=2), Node(start=7, end=12, line=2)], ["<b n='1'/>", "n='1'"])
        """
        return self.document_nodes.selection(id)

    @property
    def document_nodes(self) -> DocumentNodes:
        """The finder of nodes in the document; raises as :meth:`nodes` does."""
        if self.error is not None:
            raise self.error
        if self._batch_nodes is None:
            raise UsageError('nodes were not asked for: match(document, nodes="all"), or "first"')
        if self._nodes is None:
            self._nodes = self._batch_nodes.of_document(self._document)
        return self._nodes

    def __bool__(self) -> bool:
        return len(self.indices) > 0

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[SubscriptionId]:
        return iter(self._ids.take(self.indices))

    def __repr__(self) -> str:
        if self.error is not None:
            return f"<Match: {self.error.code}>"
        failed = len(self._matches.failed.get(self._document, ()))
        told = f", {failed:,} failed" if failed else ""
        return f"<Match: {len(self):,} of {len(self._ids):,}{told}>"


class CompiledMatcher:
    """Compiled subscriptions: immutable, safe to share between threads, picklable.

    Made by :func:`tamis.compile` or :func:`tamis.load`. A pickle holds the subscriptions, which are
    compiled again where it is loaded; or, of a matcher that was loaded, the path of its file.
    """

    def __init__(
        self,
        subscriptions: Subscriptions,
        engine: str,
        limits: Limits,
        kept: Kept | None = None,
        schema: Schema | None = None,
        projection: Projection = Projection(),  # noqa: B008 - it is immutable
    ) -> None:
        self.subscriptions = subscriptions
        self.schema = schema
        self.limits = limits
        self.ids = subscriptions.ids
        self._named_engine = engine
        self._kept = kept
        queries = subscriptions.queries
        if kept is None:
            self._subscribers = _subscribers(subscriptions.query_numbers, len(queries))
            self._lanes: list[CompiledAssignment] = [
                compile_assignment(share, schema) for share in plan(queries, engine)
            ]
        else:
            self._subscribers, self._lanes = kept.compiled.subscribers, kept.compiled.lanes
        self._projection = projection  # and what the subscriptions read
        for _, program in self._lanes:
            self._projection |= program.projection
        self._slow: SlowLane | None = None
        if subscriptions.slow:
            from tamis.matching.engines.lxml.slow import SlowLane  # noqa: PLC0415 - few sets have any

            self._slow = SlowLane.of(subscriptions, first=len(queries))
        self._workers: list[_Worker] = []  # that no thread uses now
        self._of_records: Vocabulary | None = None  # what the last records were parsed with

    def with_limits(self, limits: Limits) -> CompiledMatcher:
        """The same, with other bounds on each document; it is not compiled again."""
        other = CompiledMatcher.__new__(CompiledMatcher)  # a copy would be compiled or loaded
        other.__dict__.update(self.__dict__)
        other.limits = limits
        other._workers = []
        return other

    @property
    def engine(self) -> str:
        """The name of the engine that was chosen, or of several with "and" between."""
        return " and ".join(share.engine.name for share, _ in self._lanes)

    @property
    def kept_in(self) -> Kept | None:
        """The file that it was loaded from, if it was."""
        return self._kept

    @property
    def named_engine(self) -> str:
        """The engine that was asked for, or "auto"."""
        return self._named_engine

    @property
    def schema_violations(self) -> int:
        """How many documents left the DTD so far, and were answered without it.

        0 where it is trusted, or the engine makes no use of one.
        """
        return max((program.schema_violations for program in self._promised), default=0)

    @property
    def first_violation(self) -> str:
        """By what the first document left the DTD: an element, and what is around it; or ""."""
        return next((program.first for program in self._promised), "")

    @property
    def _promised(self) -> list[SchemaFallback]:
        if self.schema is None:
            return []
        from tamis.matching.conformance import SchemaFallback  # noqa: PLC0415 - few have a DTD

        return [program for _, program in self._lanes if isinstance(program, SchemaFallback)]

    def namespace_mismatch(self) -> NamespaceMismatch | None:
        """An element name that subscriptions and documents have, in different namespaces.

        This looks at the names of the documents that were matched so far. Parsers forget them when
        there are many.
        """
        from tamis.matching.explain import find_namespace_mismatch  # noqa: PLC0415 - few ask

        parsers = [parser for worker in list(self._workers) for parser in worker.parsers.values()]
        names = {name for parser in parsers for name in parser.vocabulary}
        return find_namespace_mismatch(self.subscriptions, names.union(self._of_records or ()))

    def memory_usage(self) -> dict[str, int]:
        """Bytes, as far as they are known: of the "program", and of what was "learned" so far.

        What threads that are matching now have learned is not counted.
        """
        return {
            "program": sum(program.memory_usage() for _, program in self._lanes),
            "learned": sum(
                matching.memory_usage()
                for worker in list(self._workers)
                for matching in worker.matchings
            ),
        }

    def save(self, path: str | os.PathLike[str], *, learned: bool = False) -> None:
        """Save it to a file, for :func:`tamis.load`; one that is there is replaced.

        Args:
            learned: save also what was learned of the documents so far, so that who loads it starts
                warm: in a file beside it, whose name ends in ``.cache``. Of several threads' what
                one has learned, and of those that are matching now nothing. Without it, no such
                file is left there.

        Raises:
            UsageError: a file cannot be written, or its engine pruned with a DTD.

        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     compile_subscriptions({"x": "//a"}).save(f"{folder}/x.tamis")
        ...     list(load_matcher(f"{folder}/x.tamis").match("<a/>"))
        ['x']
        """
        from tamis.matching import saved  # noqa: PLC0415 - imports kernels

        if self.schema is not None and any(share.engine.heuristics for share, _ in self._lanes):
            raise UsageError(
                f"what {self.engine} pruned with a DTD cannot be saved: compile without the DTD"
            )
        compiled = saved.Compiled(
            self.subscriptions, self._named_engine, self.limits, self._lanes, self._subscribers
        )
        matchings = [one for worker in list(self._workers) for one in worker.matchings]
        saved.save(checked_path(path), compiled, matchings if learned else None)

    def match(
        self,
        document: Document,
        *,
        nodes: Which | None = None,
        values: bool = False,
        declared_encoding: DeclaredEncoding = "check",
    ) -> Match:
        """Match one document.

        Args:
            document: bytes, memoryview, mmap, :class:`pathlib.Path`, open file, or a str of XML.
            nodes: note what it takes to say which nodes were selected (:meth:`Match.nodes`): the
                "first" in each document, or "all". A match then keeps its document in memory, with
                those that were matched together with it, and of a memoryview or mmap nothing may
                change while nodes are asked for.
            values: read what it takes to give the values of these nodes (:meth:`Selection.values`),
                which is all text of the document.
            declared_encoding: with "ignore", the encoding that the document declares is left out: a
                str is what it is, and bytes are read by their byte order mark, or as UTF-8.

        Raises:
            DocumentError: it cannot be answered.
            UsageError: ``nodes`` or ``values`` is none of the above.

        >>> list(compile_subscriptions({"x": "//a[@n > 1]"}).match("<a n='2'/>"))
        ['x']
        """
        (match,) = self.match_many(
            [document], nodes=nodes, values=values, declared_encoding=declared_encoding
        )
        if match.error is not None:
            raise match.error
        return match

    def match_many(
        self,
        documents: Iterable[Document | DocumentError | Flush],
        threads: int = 1,
        *,
        nodes: Which | None = None,
        values: bool = False,
        declared_encoding: DeclaredEncoding = "check",
    ) -> Iterator[Match]:
        """Match documents, in their order; one in error carries it in its ``Match``.

        What could not even be read may be given as its error, to keep its place. Of documents that
        stand one after the other in a stream (:func:`tamis.documents.concatenated.split`) each is
        answered as soon as it is complete. Documents are taken in groups of at most 256, or 4 MiB
        and one document: one at a time, and with several threads at most one more than there are
        threads. Regular files are read by the thread that matches them, all else by the caller's.

        Args:
            threads: how many match at once. They end with the iterator, also where it is closed.
            nodes, values, declared_encoding: as for :meth:`match`.

        Raises:
            UsageError: ``documents`` is itself a document, or ``threads`` is less than 1.

        >>> matcher = compile_subscriptions({"x": "//a"})
        >>> [match.error or list(match) for match in matcher.match_many([b"<a/>", b"<b/>", b"<"])]
        [['x'], [], MalformedDocument('unclosed token', 1, 1)]
        """
        check_many(documents, "documents", "match()")
        return self._matches(
            documents,
            check_threads(threads),
            *checked_nodes(nodes, values),
            checked_declared_encoding(declared_encoding),
        )

    def _matches(
        self,
        documents: Iterable[Document | DocumentError | Flush],
        threads: int,
        nodes: Which | None,
        values: bool,
        declared: DeclaredEncoding,
    ) -> Iterator[Match]:
        for matches, found, _ in self.answers(documents, threads, nodes, values, declared):
            for number in range(matches.documents):
                yield Match(self.ids, matches, number, nodes=found)

    def answers(
        self,
        documents: Iterable[Document | DocumentError | Flush],
        threads: int = 1,
        nodes: Which | None = None,
        values: bool = False,
        declared: DeclaredEncoding = "check",
    ) -> Iterator[Answers]:
        """What :meth:`match_many` says, as arrays, of many documents at a time."""

        def match_group(group: Sequence[Document | Source | DocumentError]) -> list[Answers]:
            """Match a group, in smaller ones where what is read turns out to be large."""
            return [
                self._answers(sources, nodes, values) for sources in self._batches(group, declared)
            ]

        groups = self._groups(documents, declared)
        with closing(WorkerPool(threads).map_in_order(match_group, groups)) as answered:
            for several in answered:
                yield from several

    def match_records(
        self,
        document: Document | DocumentError,
        tag: str,
        threads: int = 1,
        *,
        nodes: Which | None = None,
        values: bool = False,
        declared_encoding: DeclaredEncoding = "check",
    ) -> Iterator[Match]:
        """Match the records of a document of any size: each is a document of its own.

        The records are the outermost elements of a tag, in their order; each is the root of its
        document, with its namespaces in scope. The document is read while it is matched, by some
        thousand records or 4 MiB at a time; of a pipe that pauses, what has come is answered first.
        Where it cannot be read any further, the last match carries the error.

        Args:
            tag: as documents write it, with its prefix: ``page``, ``w:p``.
            threads: how many match at once; the caller's reads.
            nodes, values, declared_encoding: as for :meth:`match`.

        Raises:
            UsageError: that is no tag, or ``threads`` is less than 1.

        >>> matcher = compile_subscriptions({"x": "/a[b]"})
        >>> [(m.record, list(m)) for m in matcher.match_records("<all><a/><a><b/></a></all>", "a")]
        [(0, []), (1, ['x'])]
        """
        which, has_values = checked_nodes(nodes, values)
        found = self.record_answers(
            document,
            check_tag(tag),
            check_threads(threads),
            which,
            values=has_values,
            declared=checked_declared_encoding(declared_encoding),
        )
        return (
            Match(self.ids, matches, number, places.first + number, located)
            for matches, located, places in found
            for number in range(matches.documents)
        )

    def record_answers(
        self,
        document: Document | DocumentError,
        tag: str,
        threads: int = 1,
        nodes: Which | None = None,
        part: RecordRange | None = None,
        *,
        values: bool = False,
        declared: DeclaredEncoding = "check",
    ) -> Iterator[Answers]:
        """What :meth:`match_records` says, as arrays, of many records at a time.

        Args:
            part: which of the records; then the document is these bytes of it alone.
        """
        try:
            if isinstance(document, DocumentError):
                raise document
            stream = open_stream(document, declared)
        except DocumentError as error:
            yield Answers(match_set([_NO_NUMBERS], {0: error}), None, _NO_PLACES)
            return
        projection = self._projected(nodes, values, of_records=True)
        part = part or ALL_RECORDS
        parsed = parse_records(stream, tag, Vocabulary(), projection, self.limits, part)

        def match_records(found: RecordBatch) -> Answers:
            self._of_records = found.vocabulary
            if found.excerpt is not None:
                found.excerpt.base_offset = stream.base_offset
            with self._worker() as worker:
                answers = self._match_events(
                    worker, found.batch, found.vocabulary, nodes, found.excerpt, values
                )
            if self._slow is not None:
                from tamis.matching.engines.lxml.slow import record_documents  # noqa: PLC0415

                given = record_documents(found)
                answers = self._with_slow(
                    self._slow, answers, given, found.batch, found.vocabulary, nodes
                )
            answers = answers.of(self._subscribers, found.errors)
            return answers._replace(places=found.offsets)

        with (
            closing(parsed),
            closing(WorkerPool(threads).map_in_order(match_records, parsed)) as answered,
        ):
            yield from answered

    @contextmanager
    def _worker(self) -> Iterator[_Worker]:
        """What one thread needs for itself; it knows what it learned of earlier documents."""
        try:
            worker = self._workers.pop()
        except IndexError:
            worker = _Worker(
                {},
                [
                    share.engine.searcher(program, self.limits.cache_bytes)
                    for share, program in self._lanes
                ],
            )
        yield worker  # where this raises, the worker may be left half-way: it is not used again
        for projection, parser in list(worker.parsers.items()):
            if parser.is_full:  # or too many names would be kept
                del worker.parsers[projection]
        self._workers.append(worker)

    def _projected(self, nodes: Which | None, values: bool, of_records: bool = False) -> Projection:
        """What is read of documents; to find an attribute again takes its prefix."""
        has_slow = self._slow is not None
        if nodes is None:  # records go to lxml as bytes, whose offsets have to be known
            return self._projection | Projection(offsets=has_slow and of_records)
        if has_slow:  # nodes that lxml selects are found by counting all nodes
            return self._projection | EVERYTHING._replace(lines=False)
        names = self._projection.attributes.some
        has_prefixes = names is None or any(namespace for namespace, _ in names)
        return self._projection | Projection(
            text=ALL_NAMES if values else NO_NAMES, prefixes=has_prefixes, offsets=True
        )

    def _match_events(
        self,
        worker: _Worker,
        batch: DocumentBatch,
        vocabulary: Vocabulary,
        nodes: Which | None = None,
        excerpts: Sequence[Source | DocumentError] | Excerpt | None = None,
        values: bool = False,
    ) -> Answers:
        """What each engine says of the events of a batch, joined.

        Args:
            excerpts: the bytes of the documents, where nodes are asked for.
            values: whether the batch has all text.
        """
        found = [matching.match(batch, vocabulary, nodes) for matching in worker.matchings]
        shares = [share for share, _ in self._lanes]
        located = None
        if nodes is not None and excerpts is not None:
            from tamis.matching.selection import Answered, BatchNodes  # noqa: PLC0415 - few ask

            lanes = list(map(Answered, shares, found))
            located = BatchNodes(
                nodes, values, self.limits, batch, vocabulary, excerpts, lanes, self._number_of
            )
        if len(found) == 1:
            return Answers(found[0], located)
        numbers = [share.numbers for share in shares]
        return Answers(joined(list(zip(found, numbers, strict=True))), located)

    def match_batch(self, sources: Sequence[Source | DocumentError]) -> MatchSet:
        """Match documents that were read, or could not be, as one batch."""
        return self._answers(sources, None, False).matches

    def _answers(
        self, sources: Sequence[Source | DocumentError], nodes: Which | None, values: bool
    ) -> Answers:
        with self._worker() as worker:
            parser = worker.parser(self._projected(nodes, values), self.limits)
            batch, errors = parser.parse(sources)
            answers = self._match_events(worker, batch, parser.vocabulary, nodes, sources, values)
        if self._slow is not None:
            from tamis.matching.engines.lxml.slow import SlowDocument  # noqa: PLC0415

            given = [
                SlowDocument(source)
                if number not in errors and isinstance(source, Source)
                else None
                for number, source in enumerate(sources)
            ]
            answers = self._with_slow(self._slow, answers, given, batch, parser.vocabulary, nodes)
        return answers.of(self._subscribers, errors)

    def _number_of(self, id: SubscriptionId) -> int:
        """The number of the query that a subscription asks."""
        number = self.ids.find(id)
        if number < 0:
            raise UsageError(f"there is no subscription {id!r}")
        queries = self.subscriptions.query_numbers
        if queries[number] >= 0:
            return int(queries[number])
        return len(self.subscriptions.queries) + int(np.count_nonzero(queries[:number] < 0))

    def _with_slow(
        self,
        slow: SlowLane,
        answers: Answers,
        documents: Iterable[SlowDocument | None],
        batch: DocumentBatch,
        vocabulary: Vocabulary,
        nodes: Which | None,
    ) -> Answers:
        """Answers, and what the slow lane says of the same documents; of one in error nothing."""
        from tamis.matching.engines.lxml.nodes import TreeNodes  # noqa: PLC0415

        by_document = [_NO_NUMBERS] * batch.documents
        failed: dict[int, dict[int, SlowLaneError]] = {}
        selected: dict[int, dict[int, Selected]] = {}
        starts, subscribers = self._subscribers
        limit = 1 if nodes == "first" else self.limits.matched_nodes + 1
        for number, document in enumerate(documents):
            if document is None:
                continue
            where = partial(TreeNodes, batch=batch, document=number, vocabulary=vocabulary)
            found = slow.match(document, where if nodes else None, limit)
            by_document[number], refused, selected[number] = found
            if refused:  # a query of the slow lane has one subscriber
                failed[number] = {
                    int(subscribers[starts[query]]): error for query, error in refused.items()
                }
        matches = joined([(answers.matches, None), (match_set(by_document, {}), None)])
        located = answers.nodes and answers.nodes._replace(slow=selected)
        return Answers(matches._replace(failed=failed), located)

    def explain(
        self,
        document: Document,
        id: SubscriptionId,
        *,
        declared_encoding: DeclaredEncoding = "check",
    ) -> Explanation:
        """What of one subscription matched where, or what failed first.

        Args:
            declared_encoding: as for :meth:`match`.

        Raises:
            DocumentError: the document cannot be answered.
            UsageError: there is no such subscription, or it goes through the slow lane.

        >>> print(compile_subscriptions({"x": "/a/b[c]/d"}).explain("<a><b/></a>", "x"))
        false: /a/b[c]/d
          /a   1 node, line 1
          /b   1 node, line 1
          [c]  none of 1  ← fails here
        """
        from tamis.matching.explain import explain  # noqa: PLC0415 - few ask

        item = self.subscriptions.find(id)
        if item is None:
            raise UsageError(f"there is no subscription {id!r}")
        if item.query is None:
            raise UsageError(f"subscription {id!r} goes through lxml, which cannot explain itself")
        source = read(document, self.limits, checked_declared_encoding(declared_encoding))
        vocabulary = Vocabulary()
        batch, errors = parse([source], vocabulary, EVERYTHING, self.limits)
        if errors:
            raise errors[0]
        return explain(item.query, batch, vocabulary)

    def _groups(
        self, documents: Iterable[Document | DocumentError | Flush], declared: DeclaredEncoding
    ) -> Iterator[list[Document | Source | DocumentError] | Flush]:
        """What is matched by one thread: regular files are still to be read, all else was read."""
        group: list[Document | Source | DocumentError] = []
        size = 0
        if isinstance(documents, concatenated.Documents):
            documents = documents.items()
        try:
            for document in documents:
                if isinstance(document, Flush):
                    if group:
                        yield group
                    group, size = [], 0
                    yield document
                    continue
                is_path = isinstance(document, _FILES)
                if is_path and (found := file_size(document)) is not None:
                    group.append(document)
                    size += found
                else:
                    if is_path:  # a pipe: it may be long until somebody writes to it
                        if group:
                            yield group
                        group, size = [], 0
                        yield Flush.FLUSH
                    source = self._read(document, declared)
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
        self, group: Iterable[Document | Source | DocumentError], declared: DeclaredEncoding
    ) -> Iterator[list[Source | DocumentError]]:
        """A group with its files read, divided again, since only now their sizes are known."""
        sources: list[Source | DocumentError] = []
        size = 0
        for document in group:
            source = self._read(document, declared)
            sources.append(source)
            size += len(source.data) if isinstance(source, Source) else 0
            if size >= BATCH_BYTES:
                yield sources
                sources, size = [], 0
        if sources:
            yield sources

    def _read(
        self, document: Document | Source | DocumentError, declared: DeclaredEncoding
    ) -> Source | DocumentError:
        if isinstance(document, _READ):
            return document
        try:
            return read(document, self.limits, declared)
        except DocumentError as error:
            return error

    def __reduce__(self) -> tuple[Any, ...]:
        if self._kept is not None:
            return _load_again, (self._kept.path, self._kept.identity, self.limits)
        arguments = self.subscriptions, self._named_engine, self.limits, None, self.schema
        return CompiledMatcher, arguments

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<CompiledMatcher: {len(self):,} subscriptions, engine {self.engine}>"


_FILES = (os.PathLike, ZipMember, TarMember)
_READ = (Source, DocumentError)
_NO_NUMBERS = np.zeros(0, dtype=np.int32)
_NO_OFFSETS = np.zeros(0, dtype=np.int64)
_NO_PLACES = RecordOffsets(0, _NO_OFFSETS, _NO_OFFSETS, _NO_NUMBERS, (), StreamPosition())


class Answers(NamedTuple):
    """What matched in a batch.

    Attributes:
        nodes: where its nodes are, if these were asked for.
        places: of records, where they stand.
    """

    matches: MatchSet
    nodes: BatchNodes | None
    places: RecordOffsets = _NO_PLACES

    def of(self, subscribers: Subscribers, errors: Mapping[int, DocumentError]) -> Answers:
        """The same, for those who ask, with the documents that were not answered."""
        return self._replace(matches=self.matches._replace(subscribers=subscribers, errors=errors))


class _Worker(NamedTuple):
    """What one thread matches with: parsers, by what they record, and each engine at work."""

    parsers: dict[Projection, Parser]
    matchings: list[Searcher]

    def parser(self, projection: Projection, limits: Limits) -> Parser:
        """What parses with a projection."""
        if projection not in self.parsers:
            self.parsers[projection] = Parser(Vocabulary(), projection, limits)
        return self.parsers[projection]


def _subscribers(query_numbers: Int32, queries: int) -> Subscribers:
    """Who asks each query.

    Those of the slow lane, which have none (-1), are numbered behind all queries.
    """
    is_slow = query_numbers < 0
    numbers = np.where(is_slow, queries - 1 + np.cumsum(is_slow), query_numbers)
    order = np.argsort(numbers, kind="stable").astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(np.bincount(numbers))]).astype(np.int64)
    freeze(starts, order)
    return Subscribers(starts, order)


def compile_subscriptions(  # noqa: PLR0913 - what may be asked
    subscriptions: Subscriptions | SubscriptionItems,
    *,
    engine: str = "auto",
    dtd: str | os.PathLike[str] | SchemaGraph | None = None,
    root: str | None = None,
    dtd_trust: bool = False,
    namespaces: Mapping[str, str] | None = None,
    default_namespace: str | None = None,
    unsupported: Unsupported = "refuse",
    limits: Limits | None = None,
) -> CompiledMatcher:
    """Compile subscriptions; exported as :func:`tamis.compile`.

    Args:
        subscriptions: a :class:`Subscriptions`, or what makes one: id → expression, pairs, or the
            :class:`pathlib.Path` of a file with these.
        engine: ``"auto"``, or an engine to use or be refused.
        dtd: a file with the DTD of the documents (``*.dtd``), or a document that has a DOCTYPE.
            Subscriptions are pruned with it, as far as the engine gains by that. It never changes
            an answer: documents that leave it are answered without it.
        root: the element that documents begin with; by default the one in the DOCTYPE, or those
            that no other element holds.
        dtd_trust: documents are valid, and need not be held against the DTD. Answers about others
            may then be wrong.
        namespaces, default_namespace, unsupported: as for :class:`Subscriptions`, where one has to
            be made.
        limits: bounds on each document and expression; by default those of the subscriptions.

    Raises:
        BadSubscriptions: some expressions cannot be used.
        EngineRefused: the named engine does not exist or cannot run them.
        MissingExtra: some go through the slow lane and lxml is not installed.
        SchemaError: the DTD cannot be read.
        UsageError: ``namespaces``, ``default_namespace`` or ``unsupported`` is given for
            subscriptions that are parsed; or the DTD does not declare the root.
    """
    schema = None
    if dtd is not None or root is not None or dtd_trust:
        from tamis.matching.conformance import read_schema  # noqa: PLC0415 - few have a DTD

        schema = read_schema(dtd, root, dtd_trust)
    parsed = as_subscriptions(
        subscriptions,
        namespaces=namespaces,
        default_namespace=default_namespace,
        unsupported=unsupported,
        limits=limits,
    )
    own_limits = parsed.limits if limits is None else checked_limits(limits)
    return CompiledMatcher(parsed, engine, own_limits, None, schema)


def value_matcher(operand: Operand) -> CompiledMatcher:
    """A matcher without subscriptions, whose matches evaluate an expression that selects no nodes.

    >>> from tamis.language.xpath import parse_value
    >>> operand = parse_value("count(//a)")
    >>> match = value_matcher(operand).match("<a><a/></a>", nodes="all")
    >>> match.document_nodes.value(operand)
    2.0
    """
    none = Subscriptions({})
    projection = projection_of_operand(operand)
    return CompiledMatcher(none, "reference", none.limits, projection=projection)


def load_matcher(path: str | os.PathLike[str]) -> CompiledMatcher:
    """Load what :meth:`CompiledMatcher.save` wrote; exported as :func:`tamis.load`.

    The file is mapped into memory, so a million subscriptions are there at once, and processes
    share them. It must not be written into meanwhile; ``save`` puts another one in its place. What
    was learned is loaded with it, if it is there.

    Raises:
        ProgramError: there is no such file, or it is damaged, or of another version of Tamis.
        MissingExtra: some subscriptions go through the slow lane and lxml is not installed.
    """
    from tamis.matching import saved  # noqa: PLC0415 - imports kernels

    kept = saved.load(checked_path(path).absolute())
    compiled = kept.compiled
    return CompiledMatcher(compiled.subscriptions, compiled.engine, compiled.limits, kept)


def _load_again(path: Path, identity: str, limits: Limits) -> CompiledMatcher:
    """Load a matcher whose pickle names a file."""
    matcher = load_matcher(path)
    assert matcher._kept is not None
    if matcher._kept.identity != identity:
        raise OtherVersion("it was replaced since the matcher was pickled", str(path))
    return matcher.with_limits(limits)
