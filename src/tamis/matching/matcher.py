"""Compiled subscriptions: documents in, ids of the matching subscriptions out.

``compile_subscriptions`` and ``load_matcher`` make them; start reading at ``CompiledMatcher``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.core.arguments import check_many, checked_limits, checked_path
from tamis.core.errors import (
    DocumentError,
    OtherVersion,
    SubscriptionId,
    UnknownSubscription,
    UsageError,
)
from tamis.core.index.matchset import Explanation, MatchSet, Which, checked_nodes, match_set
from tamis.core.limits import Limits
from tamis.core.threads import Flush, WorkerPool, check_threads
from tamis.documents.encodings import DeclaredEncoding, checked_declared_encoding
from tamis.documents.parser import parse
from tamis.documents.record_batch import ALL_RECORDS, RecordBatch, RecordRange, check_tag
from tamis.documents.record_reader import parse_records
from tamis.documents.source import Document, Source, open_stream, read
from tamis.documents.vocabulary import EVERYTHING, Projection, Vocabulary
from tamis.language.columns import IdsOfSegment, SnapshotIds
from tamis.language.subscriptions import (
    Subscription,
    SubscriptionItems,
    Subscriptions,
    as_subscriptions,
)
from tamis.language.xpath import Unsupported
from tamis.matching.batches import (
    Answers,
    BatchMatcher,
    DocumentReader,
    Given,
    Part,
    Segment,
    subscribers_of,
)
from tamis.matching.match import Match
from tamis.matching.planner import compile_assignment, plan, with_switch
from tamis.matching.projection import projection_of

if TYPE_CHECKING:
    from tamis.language.xpath import Operand
    from tamis.matching.conformance import Schema
    from tamis.matching.explain import NamespaceMismatch
    from tamis.matching.saved import LoadedProgram
    from tamis.schema.graph import SchemaGraph


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
            Match(compiled.ids, matches, number, nodes=located)
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

        >>> import tamis
        >>> matcher = tamis.compile({"x": "/a[b]"})
        >>> [(m.record, list(m)) for m in matcher.match_records("<all><a/><a><b/></a></all>", "a")]
        [(0, []), (1, ['x'])]
        """
        which, has_values = checked_nodes(nodes, values)
        declared = checked_declared_encoding(declared_encoding)
        asked = check_tag(tag), check_threads(threads), which
        compiled = self.snapshot()
        found = compiled.record_answers(document, *asked, values=has_values, declared=declared)
        return (
            Match(compiled.ids, matches, number, offsets.first + number, located)
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
        item = compiled._find(id)
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
        ids: of the subscriptions, by the numbers that matches have.
        limits: bounds on each document.
    """

    def __init__(self, batches: BatchMatcher) -> None:
        self._batches = batches
        self.limits = batches.limits
        parts = [
            IdsOfSegment(segment.subscriptions.ids, first, is_removed)
            for segment, first, is_removed in batches.parts
        ]
        is_whole = len(parts) == 1 and parts[0].is_removed is None
        self.ids = parts[0].ids if is_whole else SnapshotIds(parts)

    def snapshot(self) -> Snapshot:
        """The same: its subscriptions do not change."""
        return self

    def _find(self, id: SubscriptionId) -> Subscription | None:
        """The subscription with an id, or None."""
        for segment, _, is_removed in reversed(self._batches.parts):
            number = segment.subscriptions.ids.find(id)
            if number >= 0 and (is_removed is None or not is_removed[number]):
                return segment.subscriptions.find(id)
        return None

    def answers(
        self,
        documents: Iterable[Document | DocumentError | Flush],
        threads: int = 1,
        nodes: Which | None = None,
        values: bool = False,
        declared: DeclaredEncoding = "check",
    ) -> Iterator[Answers]:
        """The answers of :meth:`match_many`, as arrays, of many documents at a time."""
        reader = DocumentReader(self.limits, declared)

        def match_group(group: Sequence[Given]) -> list[Answers]:
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
    ) -> Iterator[Answers]:
        """The answers of :meth:`match_records`, as arrays, of many records at a time.

        With a ``part`` of the records, the document is the bytes of this part alone.
        """
        try:
            if isinstance(document, DocumentError):
                raise document
            stream = open_stream(document, declared)
        except DocumentError as error:
            yield Answers(match_set([np.zeros(0, np.int32)], {0: error}), None)
            return
        projection = self._batches.projected(nodes, values)
        part = part or ALL_RECORDS
        parsed = parse_records(stream, tag, Vocabulary(), projection, self.limits, part)

        def match_records(found: RecordBatch) -> Answers:
            if found.excerpt is not None:
                found.excerpt.base_offset = stream.base_offset
            return self._batches.match_records(found, nodes, values)

        pool = WorkerPool(threads)
        with closing(parsed), closing(pool.map_in_order(match_records, parsed)) as answered:
            yield from answered

    def match_batch(self, sources: Sequence[Source | DocumentError]) -> MatchSet:
        """Match documents that were read, or could not be, as one batch."""
        return self._batches.match(sources).matches

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Snapshot: {len(self):,} subscriptions>"


class CompiledMatcher(Snapshot):
    """Compiled subscriptions: immutable, safe to share between threads, picklable.

    Made by :func:`tamis.compile` or :func:`tamis.load`. A pickle holds the subscriptions, which are
    compiled again where it is loaded; or, of a matcher that was loaded, the path of its file.
    """

    def __init__(
        self,
        subscriptions: Subscriptions,
        engine: str,
        limits: Limits,
        loaded: LoadedProgram | None = None,
        schema: Schema | None = None,
        projection: Projection = Projection(),  # noqa: B008 - it is immutable
    ) -> None:
        self.subscriptions = subscriptions
        self.schema = schema
        self.named_engine = engine  # or "auto"
        self.loaded_from = loaded  # the file, if it was loaded
        self._violations = None if schema is None else schema.violations()
        if loaded is None:
            queries = subscriptions.queries
            subscribers = subscribers_of(subscriptions.query_numbers, len(queries))
            assignments = [
                compile_assignment(assignment, subscriptions, schema, self._violations)
                for assignment in plan(queries, engine)
            ]
        else:
            subscribers, assignments = loaded.compiled.subscribers, loaded.compiled.assignments
        if engine == "auto" and schema is None:
            assignments = [(with_switch(*each), each[1]) for each in assignments]
        segment = Segment(subscriptions, subscribers, assignments)
        super().__init__(BatchMatcher([Part(segment)], limits, projection))

    def with_limits(self, limits: Limits) -> CompiledMatcher:
        """The same, with other bounds on each document; it is not compiled again."""
        other = CompiledMatcher.__new__(CompiledMatcher)  # a copy would be compiled or loaded
        other.__dict__.update(self.__dict__, limits=limits)
        other._batches = self._batches.with_limits(limits)
        return other

    @property
    def segment(self) -> Segment:
        """What was compiled."""
        return self._batches.parts[0].segment

    @property
    def engine(self) -> str:
        """The name of the chosen engine, or the names of several with "and" between."""
        return " and ".join(assignment.engine.name for assignment, _ in self._batches.assignments)

    @property
    def schema_violations(self) -> int:
        """How many documents violated the DTD so far; 0 where it is trusted or not used."""
        return 0 if self._violations is None else self._violations.count

    @property
    def first_violation(self) -> str:
        """How the first document violated the DTD: an element, and what is around it; or ""."""
        return "" if self._violations is None else self._violations.first

    def namespace_mismatch(self) -> NamespaceMismatch | None:
        """An element name that subscriptions and documents have, in different namespaces.

        The documents are those that were matched so far; of very many names some are forgotten.
        """
        from tamis.matching.explain import find_namespace_mismatch  # noqa: PLC0415 - few ask

        return find_namespace_mismatch(self.subscriptions, self._batches.names())

    def memory_usage(self) -> dict[str, int]:
        """Bytes, as far as they are known: of the "program", and of the "warm" caches.

        The caches of threads that are matching now are not counted.
        """
        programs = [program for _, program in self._batches.assignments]
        return {
            "program": sum(program.memory_usage() for program in programs),
            "warm": self._batches.memory_usage(),
        }

    def save(self, path: str | os.PathLike[str], *, warm: bool = False) -> None:
        """Save it to a file, for :func:`tamis.load`; one that is there is replaced.

        Args:
            warm: also save the cache that the documents so far have filled, in a file beside it
                whose name ends in ``.cache``: the largest cache of all threads that are not
                matching now. Without ``warm``, no such file is left there.

        Raises:
            UsageError: a file cannot be written, or its engine pruned with a DTD.

        >>> import tamis
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     tamis.compile({"x": "//a"}).save(f"{folder}/x.tamis")
        ...     list(tamis.load(f"{folder}/x.tamis").match("<a/>"))
        ['x']
        """
        from tamis.matching import saved  # noqa: PLC0415 - imports kernels

        assignments = self._batches.assignments
        pruning = " and ".join(
            part.engine.name for part, _ in assignments if part.engine.heuristics
        )
        if self.schema is not None and pruning:
            raise UsageError(
                f"what {pruning} pruned with a DTD cannot be saved: compile without the DTD"
            )
        asked = self.subscriptions, self.named_engine, self.limits
        compiled = saved.Compiled(*asked, assignments, self.segment.subscribers)
        saved.save(checked_path(path), compiled, self._batches.searchers() if warm else [])

    def __reduce__(self) -> tuple[Any, ...]:
        if (loaded := self.loaded_from) is not None:
            return load_again, (loaded.path, loaded.identity, self.limits)
        arguments = self.subscriptions, self.named_engine, self.limits, None, self.schema
        return CompiledMatcher, arguments

    def __repr__(self) -> str:
        return f"<CompiledMatcher: {len(self):,} subscriptions, engine {self.engine}>"


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
        engine: ``"auto"``, or the name of one.
        dtd: a file with the DTD of the documents (``*.dtd``), or a document that has a DOCTYPE.
            Subscriptions are pruned with it, if the engine gains by that. It never changes an
            answer: documents that violate it are answered without it.
        root: the element that documents begin with; by default the one in the DOCTYPE, or those
            that no other element holds.
        dtd_trust: documents are valid, and are not checked. Answers about others may be wrong.
        namespaces, default_namespace, unsupported: as for :class:`Subscriptions`, if one is made.
        limits: bounds on each document and expression; by default those of the subscriptions.

    Raises:
        BadSubscriptions: some expressions cannot be used.
        EngineRefused: the named engine does not exist or cannot run them.
        MissingExtra: lxml has to evaluate some and is not installed.
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
    return CompiledMatcher(none, "reference", none.limits, projection=projection_of(operand))


def load_matcher(path: str | os.PathLike[str]) -> CompiledMatcher:
    """Load what :meth:`CompiledMatcher.save` wrote; exported as :func:`tamis.load`.

    The file is mapped into memory, so a million subscriptions are there at once, and processes
    share them. It must not change meanwhile; ``save`` puts another one in its place. A warm cache
    beside it is loaded too.

    Raises:
        ProgramError: there is no such file, or it is damaged, or of another version of Tamis.
        MissingExtra: lxml has to evaluate some subscriptions and is not installed.
    """
    from tamis.matching import saved  # noqa: PLC0415 - imports kernels

    loaded = saved.load(checked_path(path).absolute())
    compiled = loaded.compiled
    return CompiledMatcher(compiled.subscriptions, compiled.engine, compiled.limits, loaded)


def load_again(path: Path, identity: str, limits: Limits) -> CompiledMatcher:
    """Load a matcher whose pickle names a file."""
    matcher = load_matcher(path)
    if matcher.loaded_from is None or matcher.loaded_from.identity != identity:
        raise OtherVersion("it was replaced since the matcher was pickled", str(path))
    return matcher.with_limits(limits)
