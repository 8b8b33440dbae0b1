"""A DTD is a promise that documents break: what was made with one, and is right all the same.

A pruned program relies on the DTD's edges, which elements may stand in which, and on its roots.
Each document is held against these before it is matched; one that leaves them is answered by a
program that was made without the DTD, compiled when the first such document comes.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.documents.batch import EventBatch, Int64, only
from tamis.documents.demand import Demand
from tamis.documents.vocabulary import Vocabulary
from tamis.errors import UsageError
from tamis.language.filters import expanded_name
from tamis.matching.kernels import find_departures
from tamis.matching.matchset import MatchSet, Which, joined
from tamis.schema.graph import SchemaGraph
from tamis.schema.prune import Heuristics
from tamis.schema.reader import read_graph

if TYPE_CHECKING:
    from tamis.matching.planner import Matching, Program

log = logging.getLogger("tamis")


class Schema(NamedTuple):
    """A DTD that documents are promised to keep to.

    Attributes:
        graph: of its elements, from the roots that documents begin with.
        is_trusted: documents are known to be valid, and are not looked at.
        heuristics: how to prune, or None for what serves the engine best.
    """

    graph: SchemaGraph
    is_trusted: bool = False
    heuristics: Heuristics | None = None


def read_schema(
    dtd: str | os.PathLike[str] | SchemaGraph | None, root: str | None, is_trusted: bool
) -> Schema | None:
    """The schema that a caller gives, if there is one.

    Raises:
        SchemaError: the DTD cannot be read.
        UsageError: it does not declare the root, or there is a root and no DTD.
    """
    if dtd is None:
        if root is not None or is_trusted:
            raise UsageError("root and dtd_trust are about a DTD: give dtd too")
        return None
    if not isinstance(dtd, SchemaGraph):
        return Schema(read_graph(Path(dtd), roots=() if root is None else (root,)), is_trusted)
    return Schema(dtd if root is None else SchemaGraph.of(dtd.dtd, (root,)), is_trusted)


class Edges:
    """Which elements may stand in which, as kernels read it.

    Elements have numbers from 1 on; 0 is an element that is not declared, and, around the root,
    the document. The names of a DTD are taken to be in no namespace.
    """

    def __init__(self, graph: SchemaGraph) -> None:
        numbers = {name: number for number, name in enumerate(graph.reachable, start=1)}
        self.names = ("", *numbers)
        self.allowed = np.zeros((len(numbers) + 1, len(numbers) + 1), np.bool_)
        self.allowed[0, [numbers[root] for root in graph.roots]] = True
        for name, number in numbers.items():
            self.allowed[number, [numbers[child] for child in graph.children(name)]] = True
        self._numbers = numbers

    def departures(self, batch: EventBatch, vocabulary: Vocabulary) -> Int64:
        """The event at which each document leaves the edges, or -1.

        >>> from tamis.documents.parser import parse
        >>> from tamis.documents.source import read
        >>> from tamis.limits import DEFAULT_LIMITS
        >>> from tamis.schema.reader import parse_dtd
        >>> edges = Edges(SchemaGraph.of(parse_dtd("<!ELEMENT a (b)> <!ELEMENT b EMPTY>")))
        >>> sources = [read(text, DEFAULT_LIMITS) for text in ("<a><b/></a>", "<a><a/></a>")]
        >>> names = Vocabulary()
        >>> batch, _ = parse(sources, names, Demand(), DEFAULT_LIMITS)
        >>> edges.departures(batch, names)
        array([-1,  5])
        """
        elements = np.array(
            [self._numbers.get(expanded_name(*name), 0) for name in vocabulary], np.int32
        )
        starts = batch.document_starts
        deepest = int(np.diff(starts).max(initial=0)) // 2
        found = np.empty(batch.documents, np.int64)
        stack = np.empty(deepest + 1, np.int32)
        find_departures(batch.tags, starts, elements, self.allowed, stack, found)
        return found


class PromisedProgram:
    """A program that holds for documents that keep to the DTD, and one for those that do not.

    Args:
        program: made with the DTD, of an engine that matches with ``open``.
        without: makes the other one, and gives what matches with it, when it is first needed.

    Attributes:
        departed: how many documents left the DTD so far.
    """

    def __init__(
        self,
        graph: SchemaGraph,
        program: Program,
        open: Callable[[Program, int], Matching],
        without: Callable[[], tuple[Program, Callable[[Program, int], Matching]]],
    ) -> None:
        self.edges = Edges(graph)
        self.departed = 0
        self._program = program
        self._open = open
        self._make = without
        self._without: tuple[Program, Callable[[Program, int], Matching]] | None = None
        self._lock = threading.Lock()

    @property
    def demand(self) -> Demand:
        """That of all that was asked, also of what was pruned away."""
        return self._program.demand

    def memory_usage(self) -> int:
        """Of both programs, if the other one was needed."""
        without = 0 if self._without is None else self._without[0].memory_usage()
        return self._program.memory_usage() + without

    def open(self, bytes_max: int) -> PromisedMatching:
        """What matches documents of both kinds."""
        return PromisedMatching(self, self._open(self._program, bytes_max), bytes_max)

    def open_without(self, bytes_max: int) -> Matching:
        """What matches documents that leave the DTD."""
        with self._lock:
            if self._without is None:
                log.info("documents leave the DTD: compiling without it")
                self._without = self._make()
        program, open = self._without
        return open(program, bytes_max)

    def note(self, departures: Int64, batch: EventBatch, vocabulary: Vocabulary) -> None:
        """Count documents that left the DTD, and log how the first of them did."""
        events = departures[departures >= 0]
        with self._lock:
            self.departed += len(events)
        namespace, local = vocabulary.expanded(int(batch.tags[events[0]]))
        log.info(
            "%d of %d documents leave the DTD, the first at an element %s: answered without it",
            len(events),
            batch.documents,
            expanded_name(namespace, local),
        )


class PromisedMatching:
    """A pruned program at work, and beside it, where documents leave the DTD, the other one."""

    def __init__(self, program: PromisedProgram, within: Matching, bytes_max: int) -> None:
        self.program = program
        self._within = within
        self._without: Matching | None = None
        self._bytes_max = bytes_max

    def match(
        self, batch: EventBatch, vocabulary: Vocabulary, nodes: Which | None = None
    ) -> MatchSet:
        """Which queries are true of which documents."""
        departures = self.program.edges.departures(batch, vocabulary)
        has_left: NDArray[np.bool_] = departures >= 0
        if not has_left.any():
            return self._within.match(batch, vocabulary, nodes)
        self.program.note(departures, batch, vocabulary)
        if self._without is None:
            self._without = self.program.open_without(self._bytes_max)
        within = self._within.match(only(batch, ~has_left), vocabulary)
        without = self._without.match(only(batch, has_left), vocabulary)
        return joined([(within, None), (without, None)])

    def memory_usage(self) -> int:
        """What both have learned."""
        without = 0 if self._without is None else self._without.memory_usage()
        return self._within.memory_usage() + without
