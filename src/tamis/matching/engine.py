"""What an engine is: the contract that all keep, and that the planner chooses by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from tamis.core.index.matchset import MatchSet, Which
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.language.model import Query
from tamis.schema.prune import Heuristics


class Program(Protocol):
    """Compiled queries, immutable; the rest is the engine's own."""

    @property
    def projection(self) -> Projection:
        """What it reads of documents."""

    def memory_usage(self) -> int:
        """Its size in bytes, as far as it is known."""


class Searcher(Protocol):
    """A program at work, with all that it learns on the way; it belongs to one thread at a time."""

    def match(
        self, batch: DocumentBatch, vocabulary: Vocabulary, nodes: Which | None = None
    ) -> MatchSet:
        """Which queries are true of which documents.

        Args:
            batch: parsed with at least the program's projection.
            vocabulary: the fork of the program's that it was parsed with.
            nodes: which occurrences to note, by an engine that can: at least these.
        """

    def memory_usage(self) -> int:
        """The size in bytes of what it has learned."""


class Engine(NamedTuple):
    """One algorithm. All engines that support a query give the same answer.

    Attributes:
        name: what ``engine=`` and ``--engine`` call it.
        refuses: why the engine cannot run a query, or None where it can.
        compile: queries → program. A query's number is its place. Of an engine with heuristics it
            takes a ``Pruner`` too, or None.
        searcher: what matches with a program, learning at most so many bytes (see ``Limits``).
        is_automatic: whether it may be chosen where none is named. One that is not raises
            ``EngineRefused`` in ``compile`` for what it cannot run even when it is pruned.
        takes_plain: whether it runs all queries that are plain.
        heuristics: how it prunes with a DTD, or None where it makes no use of one. Of what was
            measured with each: benchmarks, ``schema``.
        locates: whether the ``Occurrences`` of a query are the nodes that it selects.
    """

    name: str
    refuses: Callable[[Query], str | None]
    compile: Callable[..., Program]
    searcher: Callable[[Any, int], Searcher]
    is_automatic: bool
    takes_plain: bool
    heuristics: Heuristics | None
    locates: Callable[[Query], bool]


def locates_nothing(_: Query) -> bool:
    """``locates`` of engines that note no occurrences."""
    return False
