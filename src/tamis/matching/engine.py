"""The contract of all engines, which the planner chooses by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from tamis.core.arrays import Int64
from tamis.core.errors import EngineRefused, SubscriptionError
from tamis.core.index import MemoryUser
from tamis.core.index.matchset import MatchSet, Which
from tamis.documents.batch import DocumentBatch
from tamis.documents.parser import Recorded
from tamis.documents.source import Source
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.language.model import Query
from tamis.language.printer import print_query
from tamis.language.queries import Queries
from tamis.schema.prune import Heuristics

Sources = Callable[[int], tuple[Source, int]]
"""By the number of a document in its batch: the bytes to read it alone, and how many of them come
before it. These are the start tags around a record; a whole document has none.
"""


class Program(MemoryUser, Protocol):
    """Compiled queries, immutable; the rest is the engine's own."""

    @property
    def projection(self) -> Projection:
        """What it reads of documents."""


class Searcher(MemoryUser, Protocol):
    """A program at work, with its caches; it belongs to one thread at a time."""

    def match(
        self,
        batch: DocumentBatch,
        vocabulary: Vocabulary,
        nodes: Which | None = None,
        sources: Sources | None = None,
    ) -> MatchSet:
        """Which queries are true of which documents.

        Args:
            batch: parsed with ``vocabulary``, and at least the program's projection. Its arrays may
                be used again for other documents afterwards, unless nodes are asked for.
            nodes: which occurrences to record, by an engine that can: at least these.
            sources: the bytes of the documents, for an engine that parses them itself.
        """


class OneSearcher(Searcher, Protocol):
    """A searcher that kernels alone can ask about one document."""

    def match_one(
        self, recorded: Recorded, vocabulary: Vocabulary, listing: Int64, part: int
    ) -> bool:
        """Have a part of a listing say which queries are true of a document.

        Args:
            recorded: the document, at least as the program projects it.
            listing: the state of ``tamis.core.index.kernels.list_one``.
            part: where its part begins.

        Returns:
            Whether it could; else the document is to be matched as a batch.
        """


class Engine(NamedTuple):
    """One algorithm. All engines that support a query give the same answer.

    Attributes:
        name: what ``engine=`` and ``--engine`` call it.
        refuses: queries → the numbers of those that the engine cannot run, and why.
        compile: queries → program; a query's number is its index. Engines with ``heuristics`` also
            receive a ``Pruner``, or None.
        searcher: what matches with a program, with so many bytes of cache (see ``Limits``).
        is_automatic: whether it may be chosen where none is named. One that is not raises
            ``EngineRefused`` in ``compile`` for what it cannot run even when it is pruned.
        heuristics: how it prunes with a DTD, or None where it makes no use of one; the benchmarks
            ``schema`` measured each.
        locates: whether the ``Occurrences`` of a query of some words are the nodes that it selects.
        nodes_projection: what it also reads of documents where nodes are asked for.
    """

    name: str
    refuses: Callable[[Queries], Mapping[int, str]]
    compile: Callable[..., Program]
    searcher: Callable[[Any, int], Searcher]
    is_automatic: bool
    heuristics: Heuristics | None
    locates: Callable[[Sequence[int]], bool]
    nodes_projection: Projection = Projection()


class UnusableQueries(Exception):  # noqa: N818 - the compiler of subscriptions names them
    """Queries that an engine finds wrong when it compiles them: by number, the error of each."""

    def __init__(self, errors: Mapping[int, SubscriptionError]) -> None:
        super().__init__(errors)
        self.errors = errors


class Refused(Exception):  # noqa: N818 - becomes a reason
    """What an engine cannot say, found while it reads a query."""


def locates_nothing(_: Sequence[int]) -> bool:
    """``locates`` of engines that record no occurrences."""
    return False


def reason_of(engine: Engine, query: Query) -> str | None:
    """Why an engine cannot run a query, or None where it can."""
    return engine.refuses(Queries.of([query])).get(0)


def refusal(engine: str, query: Query, reason: str) -> EngineRefused:
    """The error of an engine that cannot run a query."""
    return EngineRefused(f"{engine} does not: {print_query(query)}: {reason}")
