"""``DocumentMatcher``: the methods of all matchers; ``Snapshot``: what answers them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

from tamis.core.arguments import check_many
from tamis.core.errors import DocumentError, SubscriptionId, UnknownSubscription, UsageError
from tamis.core.index.columns import Ids
from tamis.core.index.matches import Matches
from tamis.core.index.matchset import Explanation, Which, checked_nodes
from tamis.core.index.segments import SnapshotIds
from tamis.core.threads import Flush, WorkerPool, check_threads
from tamis.documents.column import DocumentColumn
from tamis.documents.encodings import DeclaredEncoding, checked_declared_encoding
from tamis.documents.parser import parse
from tamis.documents.record_batch import (
    ALL_RECORDS,
    OnBadRecord,
    RecordBatch,
    RecordRange,
    RecordTag,
    checked_on_bad_record,
)
from tamis.documents.record_reader import parse_records
from tamis.documents.source import Document, Source, open_stream, read
from tamis.documents.vocabulary import EVERYTHING, Vocabulary
from tamis.matching.batches import Answers, BatchMatcher, DocumentReader, Group
from tamis.matching.match import Match


class DocumentMatcher:
    """The methods of all matchers; each call uses the subscriptions as they are when it begins."""

    def snapshot(self) -> Snapshot:
        """The present subscriptions, compiled; later changes do not touch them."""
        raise NotImplementedError

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
            nodes: record what :meth:`Match.nodes` needs: for the "first" node in each document, or
                for "all". A match then keeps its document in memory, with those that were matched
                together with it. A memoryview or mmap may not change while nodes are asked for.
            values: record what :meth:`Selection.values` needs, which is all text of the document.
            declared_encoding: with "ignore", the encoding that the document declares is ignored:
                bytes are read by their byte order mark, or as UTF-8.

        Raises:
            DocumentError: it cannot be answered.
            UsageError: ``nodes`` or ``values`` is none of the above.

        >>> import tamis
        >>> list(tamis.compile({"x": "//a[@n > 1]"}).match("<a n='2'/>"))
        ['x']
        """
        which, has_values = checked_nodes(nodes, values)
        compiled = self.snapshot()
        source = read(document, compiled.limits, checked_declared_encoding(declared_encoding))
        matches, located, _ = compiled._batches.match([source], which, has_values)
        if matches.errors:
            raise matches.errors[0]
        return Match(matches, 0, nodes=located)

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

        A document that could not be read may be given as its error, to keep its place. Documents of
        a stream (:func:`tamis.documents.concatenated.split`) are answered as soon as each is
        complete. Documents are taken in groups of at most 256, or 4 MiB and one document: one group
        at a time, and with several threads at most one more than there are threads. Regular files
        are read by the thread that matches them, all else by the caller's.

        Args:
            threads: how many match at once. They end with the iterator, also where it is closed.
            nodes, values, declared_encoding: as for :meth:`match`.

        Raises:
            UsageError: ``documents`` is itself a document, or ``threads`` is less than 1.

        >>> import tamis
        >>> matcher = tamis.compile({"x": "//a"})
        >>> [match.error or list(match) for match in matcher.match_many([b"<a/>", b"<b/>", b"<"])]
        [['x'], [], MalformedDocument('unclosed token', 1, 1, 0)]
        """
        check_many(documents, "documents", "match()")
        which, has_values = checked_nodes(nodes, values)
        declared = checked_declared_encoding(declared_encoding)
        compiled = self.snapshot()
        found = compiled.answers(documents, check_threads(threads), which, has_values, declared)
        return (
            Match(matches, number, nodes=located)
            for matches, located, _ in found
            for number in range(matches.documents)
        )

    def match_records(
        self,
        document: Document | DocumentError,
        tag: str,
        threads: int = 1,
        *,
        nodes: Which | None = None,
        values: bool = False,
        declared_encoding: DeclaredEncoding = "check",
        on_bad_record: OnBadRecord = "stop",
    ) -> Iterator[Match]:
        """Match the records of a document of any size: each is a document of its own.

        The records are the outermost elements of a tag, in their order; each is the root of its
        document, with its namespaces in scope. The document is read while it is matched, by some
        thousand records or 4 MiB at a time; of a pipe that pauses, what has come is answered first.
        Where it is not well-formed, the last match carries the error; or, with ``on_bad_record``,
        matching goes on.

        Args:
            tag: as documents write it, with its prefix (``page``, ``w:p``); or with its namespace,
                whatever the prefix (``{http://example.com/}page``).
            threads: how many match at once; the caller's reads.
            nodes, values, declared_encoding: as for :meth:`match`.
            on_bad_record: with "resume", one match carries the error, which tells the bytes that
                were passed over, and matching goes on at what looks like the next start tag of a
                record, as if the same elements were around it as around the record before. A DTD in
                the document, a limit that is reached outside of records, and a stream that fails
                still end it.

        Raises:
            UsageError: that is no tag, or ``threads`` is less than 1.

        >>> import tamis
        >>> matcher = tamis.compile({"x": "/a[b]"})
        >>> [(m.record, list(m)) for m in matcher.match_records("<all><a/><a><b/></a></all>", "a")]
        [(0, []), (1, ['x'])]
        """
        which, has_values = checked_nodes(nodes, values)
        declared = checked_declared_encoding(declared_encoding)
        RecordTag.of(tag)
        on_bad = checked_on_bad_record(on_bad_record)
        asked = tag, check_threads(threads), which
        found = self.snapshot().record_answers(
            document, *asked, values=has_values, declared=declared, on_bad=on_bad
        )
        return (
            Match(matches, number, offsets.first + number, located)
            for matches, located, offsets in found
            for number in range(matches.documents)
        )

    def explain(
        self,
        document: Document,
        id: SubscriptionId,
        *,
        declared_encoding: DeclaredEncoding = "check",
    ) -> Explanation:
        """What one subscription selected at each step, or which step failed first.

        ``declared_encoding`` is as for :meth:`match`.

        Raises:
            DocumentError: the document cannot be answered.
            UnknownSubscription: there is none with this id.
            UsageError: lxml answers it.

        >>> import tamis
        >>> print(tamis.compile({"x": "/a/b[c]/d"}).explain("<a><b/></a>", "x"))
        false: /a/b[c]/d
          /a   1 node, line 1
          /b   1 node, line 1
          [c]  none of 1  ← fails here
        """
        from tamis.matching.explain import explain  # noqa: PLC0415 - few ask

        compiled = self.snapshot()
        item = compiled._batches.find(id)
        if item is None:
            raise UnknownSubscription(id=id)
        if item.query is None:
            raise UsageError(f"subscription {id!r} goes through lxml, which cannot explain itself")
        source = read(document, compiled.limits, checked_declared_encoding(declared_encoding))
        vocabulary = Vocabulary()
        batch, errors = parse([source], vocabulary, EVERYTHING, compiled.limits)
        if errors:
            raise errors[0]
        return explain(item.query, batch, vocabulary)


class Snapshot(DocumentMatcher):
    """Compiled subscriptions as they were at one time: immutable, safe to share between threads.

    Attributes:
        limits: bounds on each document.
        version: of the live set that it is of; see :attr:`Matcher.version`.
    """

    def __init__(self, batches: BatchMatcher) -> None:
        self._batches = batches
        self.version, self.limits = batches.version, batches.limits

    @property
    def ids(self) -> Ids | SnapshotIds:
        """The ids of the subscriptions, by the numbers that matches have."""
        return self._batches.ids

    def snapshot(self) -> Snapshot:
        """The same: its subscriptions do not change."""
        return self

    def answers(
        self,
        documents: Iterable[Document | DocumentError | DocumentColumn | Flush],
        threads: int = 1,
        nodes: Which | None = None,
        values: bool = False,
        declared: DeclaredEncoding = "check",
    ) -> Iterator[Answers]:
        """The answers of :meth:`match_many`, as arrays, of many documents at a time.

        Those of a column were found with the same ``declared``.
        """
        reader = DocumentReader(self.limits, declared)

        def match_group(group: Group) -> list[Answers]:
            """Match a group, in smaller ones where its files turn out to be large."""
            return [self._batches.match(batch, nodes, values) for batch in reader.batches(group)]

        groups = reader.groups(documents)
        with closing(WorkerPool(threads).map_in_order(match_group, groups)) as answered:
            for several in answered:
                yield from several

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
        on_bad: OnBadRecord = "stop",
    ) -> Iterator[Answers]:
        """The answers of :meth:`match_records`, as arrays, of many records at a time.

        With a ``part`` of the records, the document is the bytes of this part alone.
        """
        try:
            if isinstance(document, DocumentError):
                raise document
            stream = open_stream(document, declared)
        except DocumentError as error:
            yield Answers(Matches.of_error(error), None)
            return
        projection = self._batches.projected(nodes, values)
        part = part or ALL_RECORDS
        parsed = parse_records(stream, tag, Vocabulary(), projection, self.limits, part, on_bad)

        def match_records(found: RecordBatch) -> Answers:
            if found.excerpt is not None:
                found.excerpt.base_offset = stream.base_offset
            return self._batches.match_records(found, nodes, values)

        pool = WorkerPool(threads)
        with closing(parsed), closing(pool.map_in_order(match_records, parsed)) as answered:
            yield from answered

    def match_batch(self, sources: Sequence[Source | DocumentError]) -> Matches[DocumentError]:
        """Match documents that were read, or could not be, as one batch."""
        return self._batches.match(sources).matches

    def __len__(self) -> int:
        return len(self.ids)

    def __reduce__(self) -> tuple[Any, ...]:
        raise UsageError("a snapshot of a live set cannot be pickled: pickle matcher.compiled()")

    def __repr__(self) -> str:
        return f"<Snapshot: {len(self):,} subscriptions>"
