"""A DTD is a promise that documents break: what was made with one, and is right all the same.

A pruned program relies on the DTD's edges, which elements may stand in which, and on its roots: on
nothing else, neither order nor number nor attributes. Each document is held against these before it
is matched; one that leaves them is answered by a program that was made without the DTD, compiled
when the first such document comes. It may learn as much as the other one.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64
from tamis.core.errors import UsageError
from tamis.core.index.matchset import MatchSet, Which, joined
from tamis.documents.batch import DocumentBatch, only
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.language.filters import expanded_name
from tamis.matching.engine import Program, Searcher
from tamis.matching.filters import ElementLabels
from tamis.matching.kernels import find_violations
from tamis.schema.graph import ExpandedGraph, SchemaGraph
from tamis.schema.prune import Heuristics
from tamis.schema.reader import read_graph

log = logging.getLogger("tamis")


ELEMENTS_MAX = 1 << 13
"""Elements of a DTD that can be pruned with: which may stand in which is a table."""


@dataclass(frozen=True, eq=False)
class Schema:
    """A DTD that documents are promised to keep to.

    Attributes:
        graph: of its elements, from the roots that documents begin with.
        is_trusted: documents are known to be valid, and are not looked at.
        heuristics: how to prune, or None for what serves the engine best.
    """

    graph: SchemaGraph
    is_trusted: bool = False
    heuristics: Heuristics | None = None

    @cached_property
    def expanded(self) -> ExpandedGraph:
        """The graph by the names that documents have."""
        return ExpandedGraph(self.graph)

    @cached_property
    def edges(self) -> Edges:
        """Which elements may stand in which."""
        return Edges(self.expanded)


def read_schema(
    dtd: str | os.PathLike[str] | SchemaGraph | None, root: str | None, is_trusted: bool
) -> Schema | None:
    """The schema that a caller gives, if there is one.

    Raises:
        SchemaError: the DTD cannot be read.
        UsageError: it does not declare the root, or any; it is too large; it is to be trusted, and
            parts of it are missing; or there is a root and no DTD.
    """
    if dtd is None:
        if root is not None or is_trusted:
            raise UsageError("root and dtd_trust are about a DTD: give dtd too")
        return None
    if isinstance(dtd, SchemaGraph):
        graph = dtd if root is None else SchemaGraph.of(dtd.dtd, (root,))
    elif isinstance(dtd, str | os.PathLike):
        graph = read_graph(Path(dtd), roots=() if root is None else (root,))
    else:
        raise UsageError("dtd is the path of a file, or a SchemaGraph")
    if not graph.roots:
        raise UsageError("the DTD declares no element that a document could begin with")
    if len(graph.reachable) > ELEMENTS_MAX:
        raise UsageError(
            f"the DTD has {len(graph.reachable):,} elements, to prune with at most {ELEMENTS_MAX:,}"
        )
    if is_trusted and graph.dtd.missing:
        missing = ", ".join(graph.dtd.missing)
        raise UsageError(f"parts of the DTD were not found, so it cannot be trusted: {missing}")
    return Schema(graph, is_trusted)


class Edges:
    """Which elements may stand in which, as kernels read it.

    Elements have numbers from 1 on; 0 is an element that is not declared, and, around the root,
    the document.

    >>> from tamis.documents.parser import parse
    >>> from tamis.documents.source import read
    >>> from tamis.core.limits import DEFAULT_LIMITS
    >>> from tamis.schema.reader import parse_dtd
    >>> graph = SchemaGraph.of(parse_dtd("<!ELEMENT a (b)> <!ELEMENT b EMPTY>"))
    >>> edges, names = Edges(ExpandedGraph(graph)), Vocabulary()
    >>> sources = [read(text, DEFAULT_LIMITS) for text in ("<a><b/></a>", "<a><a/></a>")]
    >>> batch, _ = parse(sources, names, Projection(), DEFAULT_LIMITS)
    >>> edges.violations(batch, edges.labels().of(names)[0])
    array([-1,  5])
    """

    def __init__(self, graph: ExpandedGraph) -> None:
        self._names = ("", *graph.reachable)
        numbers = {name: number for number, name in enumerate(self._names)}
        self.allowed = np.zeros((len(numbers), len(numbers)), np.bool_)
        self.allowed[0, [numbers[root] for root in graph.roots]] = True
        for name in graph.reachable:
            self.allowed[numbers[name], [numbers[child] for child in graph.children(name)]] = True

    def labels(self) -> ElementLabels:
        """The numbers of elements, by the names of a vocabulary; for one thread at a time."""
        return ElementLabels(self._names)

    def violations(self, batch: DocumentBatch, numbers: Int32) -> Int64:
        """The event at which each document leaves the edges, or -1.

        Args:
            numbers: of the elements, by name; -1 of what is not declared.
        """
        starts = batch.document_starts
        deepest = int(np.diff(starts).max(initial=0)) // 2
        found = np.empty(batch.documents, np.int64)
        stack = np.empty(deepest + 1, np.int32)
        find_violations(batch.tags, starts, numbers, self.allowed, stack, found)
        return found


class SchemaFallback:
    """A program that holds for documents that keep to the DTD, and one for those that do not.

    Args:
        program: made with the DTD, of an engine that matches with ``open``.
        without: makes the other one, and gives what matches with it, when it is first needed.

    Attributes:
        edges: what documents are held against.
        schema_violations: how many documents left the DTD so far.
        first: at which element the first of them did, and what is around that.
    """

    def __init__(
        self,
        edges: Edges,
        program: Program,
        open: Callable[[Program, int], Searcher],
        without: Callable[[], tuple[Program, Callable[[Program, int], Searcher]]],
    ) -> None:
        self.edges = edges
        self.schema_violations = 0
        self.first = ""
        self._program = program
        self._open = open
        self._make = without
        self._without: tuple[Program, Callable[[Program, int], Searcher]] | None = None
        self._lock = threading.Lock()

    @property
    def projection(self) -> Projection:
        """That of all that was asked, also of what was pruned away."""
        return self._program.projection

    def memory_usage(self) -> int:
        """Of both programs, if the other one was needed."""
        without = 0 if self._without is None else self._without[0].memory_usage()
        return self._program.memory_usage() + without

    def open(self, bytes_max: int) -> SchemaFallbackSearcher:
        """What matches documents of both kinds."""
        return SchemaFallbackSearcher(self, self._open(self._program, bytes_max), bytes_max)

    def open_without(self, bytes_max: int) -> Searcher:
        """What matches documents that leave the DTD."""
        with self._lock:
            if self._without is None:
                self._without = self._make()
        program, open = self._without
        return open(program, bytes_max)

    def note(self, violations: Int64, batch: DocumentBatch, vocabulary: Vocabulary) -> None:
        """Count documents that left the DTD, and log how the first of them did."""
        left = np.flatnonzero(violations >= 0)
        how = _departure(batch, vocabulary, int(left[0]), int(violations[left[0]]))
        with self._lock:
            self.schema_violations += len(left)
            self.first = self.first or how
        log.info(
            "%d of %d documents leave the DTD, the first by %s: answered without it",
            len(left),
            batch.documents,
            how,
        )


def _departure(batch: DocumentBatch, vocabulary: Vocabulary, document: int, event: int) -> str:
    """What a document has that the DTD does not, in words."""
    around: list[int] = []
    for tag in batch.tags[batch.document_starts[document] : event].tolist():
        if tag < 0:
            around.pop()
        else:
            around.append(tag)
    name = expanded_name(*vocabulary.expanded(int(batch.tags[event])))
    if not around:
        return f"its root, {name}"
    return f"{name} in {expanded_name(*vocabulary.expanded(around[-1]))}"


class SchemaFallbackSearcher:
    """A pruned program at work, and beside it, where documents leave the DTD, the other one."""

    def __init__(self, program: SchemaFallback, within: Searcher, bytes_max: int) -> None:
        self.program = program
        self._labels = program.edges.labels()
        self._within = within
        self._without: Searcher | None = None
        self._bytes_max = bytes_max

    def match(
        self, batch: DocumentBatch, vocabulary: Vocabulary, nodes: Which | None = None
    ) -> MatchSet:
        """Which queries are true of which documents."""
        numbers, _ = self._labels.of(vocabulary)
        violations = self.program.edges.violations(batch, numbers)
        has_left: NDArray[np.bool_] = violations >= 0
        if not has_left.any():
            return self._within.match(batch, vocabulary, nodes)
        self.program.note(violations, batch, vocabulary)
        if self._without is None:
            self._without = self.program.open_without(self._bytes_max)
        within = self._within.match(only(batch, ~has_left), vocabulary)
        without = self._without.match(only(batch, has_left), vocabulary)
        return joined([(within, None), (without, None)])

    def memory_usage(self) -> int:
        """What both have learned."""
        without = 0 if self._without is None else self._without.memory_usage()
        return self._within.memory_usage() + without
