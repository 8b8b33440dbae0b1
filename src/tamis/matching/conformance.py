"""Programs that were pruned with a DTD, and right answers about documents that violate the DTD.

A pruned program relies on the DTD's edges, which elements may stand in which, and on its roots. It
relies on nothing else: neither order nor number nor attributes. Each document is checked for these
before it is matched. A program without the DTD answers documents that violate the DTD. It is
compiled when the first such document comes, and has a cache of the same size.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64
from tamis.core.errors import UsageError
from tamis.core.index.matchset import MatchSet, Which, joined
from tamis.core.kernel import kernel
from tamis.core.kernel.declare import Rows
from tamis.documents.batch import DocumentBatch, only
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.language.filters import expanded_name
from tamis.language.model import Query
from tamis.matching.engine import Engine, Program, Searcher, Sources, locates_nothing
from tamis.matching.filters import ElementLabels
from tamis.schema.graph import ExpandedGraph, SchemaGraph
from tamis.schema.prune import Heuristics, Pruner
from tamis.schema.reader import parse_dtd, read_graph

log = logging.getLogger("tamis")

ELEMENTS_MAX = 1 << 13
"""Elements of a DTD that can be pruned with: which may stand in which is a table."""


@dataclass(frozen=True, eq=False)
class Schema:
    """A DTD that documents should conform to.

    Attributes:
        graph: of its elements, from the roots that documents begin with.
        is_trusted: documents are known to be valid, and are not checked.
        heuristics: how to prune, or None for those that serve the engine best.
    """

    graph: SchemaGraph
    is_trusted: bool = False
    heuristics: Heuristics | None = None

    @cached_property
    def expanded(self) -> ExpandedGraph:
        """The graph by the names that documents have."""
        return ExpandedGraph(self.graph)

    @cached_property
    def _edges(self) -> Edges:
        return Edges(self.expanded)

    def violations(self) -> Violations | None:
        """What finds documents that violate the DTD; None where it is trusted."""
        return None if self.is_trusted else Violations(self._edges)


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


def schema_settings(schema: Schema | None) -> dict[str, Any]:
    """A schema as JSON says it: what ``schema_arguments`` reads."""
    return {
        "dtd": None if schema is None else schema.graph.dtd.declarations(),
        "roots": [] if schema is None else list(schema.graph.roots),
        "dtd_trust": schema is not None and schema.is_trusted,
    }


def schema_arguments(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as arguments, of which those of the schema were written by ``schema_settings``."""
    arguments = dict(settings)
    roots = arguments.pop("roots")
    if arguments["dtd"] is not None:
        arguments["dtd"] = SchemaGraph.of(parse_dtd(arguments["dtd"]), roots)
    return arguments


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
        self._allowed = np.zeros((len(numbers), len(numbers)), np.bool_)
        self._allowed[0, [numbers[root] for root in graph.roots]] = True
        for name in graph.reachable:
            self._allowed[numbers[name], [numbers[child] for child in graph.children(name)]] = True

    def labels(self) -> ElementLabels:
        """The numbers of elements, by the names of a vocabulary; for one thread at a time."""
        return ElementLabels(self._names)

    def violations(self, batch: DocumentBatch, numbers: Int32) -> Int64:
        """The event at which each document violates the edges, or -1.

        ``numbers`` has the number of each name's element, -1 where it is not declared.
        """
        starts = batch.document_starts
        deepest = int(np.diff(starts).max(initial=0)) // 2
        found, stack = np.empty(batch.documents, np.int64), np.empty(deepest + 1, np.int32)
        find_violations(batch.tags, starts, numbers, self._allowed, stack, found)
        return found


@kernel
def find_violations(
    tags: Int32,
    document_starts: Int64,
    elements: Int32,
    allowed: Rows[np.bool_],
    stack: Int32,
    found: Int64,
) -> None:
    """Write the first event of each document that violates the edges, or -1, to ``found``.

    Args:
        elements: the number of each name's element, -1 where it is not declared.
        allowed: bool[e, e]; whether an element may hold another one; 0 holds the roots.
        stack: has room for the open elements of the deepest document, and for the document.
    """
    for document in range(len(document_starts) - 1):
        found[document] = -1
        depth = 0
        stack[0] = 0
        for event in range(document_starts[document], document_starts[document + 1]):
            tag = tags[event]
            if tag < 0:
                depth -= 1
                continue
            element = elements[tag]
            if element < 0 or not allowed[stack[depth], element]:
                found[document] = event
                break
            depth += 1
            stack[depth] = element


class Violations:
    """Finds documents that violate a DTD, and counts them; threads share it.

    Attributes:
        count: how many documents violated the DTD so far.
        first: the element at which the first of them did, and the element around it; or "".
    """

    def __init__(self, edges: Edges) -> None:
        self.edges = edges
        self.count = 0
        self.first = ""
        self._lock = threading.Lock()

    def find(
        self, batch: DocumentBatch, vocabulary: Vocabulary, labels: ElementLabels
    ) -> NDArray[np.bool_]:
        """Which documents of a batch violate the DTD; ``labels`` are of the edges, for a thread."""
        events = self.edges.violations(batch, labels.of(vocabulary)[0])
        violating = np.flatnonzero(events >= 0)
        if len(violating):
            document = int(violating[0])
            first = _violation(batch, vocabulary, document, int(events[document]))
            with self._lock:
                self.count += len(violating)
                self.first = self.first or first
            log.info(
                "%d of %d documents leave the DTD, the first by %s: answered without it",
                *(len(violating), batch.documents, first),
            )
        return events >= 0


def _violation(batch: DocumentBatch, vocabulary: Vocabulary, document: int, event: int) -> str:
    """What a document has that the DTD does not, in words."""
    around: list[int] = []
    for tag in batch.tags[batch.document_starts[document] : event + 1].tolist():
        if tag < 0:
            around.pop()
        else:
            around.append(tag)
    *outer, name = (expanded_name(*vocabulary.expanded(tag)) for tag in around[-2:])
    return f"{name} in {outer[0]}" if outer else f"its root, {name}"


def with_schema(
    engine: Engine,
    schema: Schema,
    violations: Violations | None,
    fallback: Callable[[Sequence[Query]], tuple[Engine, Program]],
) -> Engine:
    """An engine that prunes with a DTD, and answers documents that violate the DTD without it.

    ``engine`` has heuristics. ``violations`` is None where the DTD is trusted. ``fallback``
    compiles queries without the DTD, for an engine that takes them.
    """
    heuristics = schema.heuristics or engine.heuristics
    assert heuristics is not None

    def compile(queries: Sequence[Query]) -> Program:
        program = engine.compile(queries, Pruner(schema.expanded, heuristics))
        if violations is None:
            return program
        return SchemaFallback(violations, engine, program, lambda: fallback(queries))

    return engine._replace(
        compile=compile,
        searcher=engine.searcher if violations is None else SchemaFallbackSearcher,
        locates=locates_nothing,  # pruned queries are true, of other nodes
    )


class SchemaFallback:
    """A pruned program, and one without the DTD, compiled when the first document violates it."""

    def __init__(
        self,
        violations: Violations,
        engine: Engine,
        program: Program,
        compile_fallback: Callable[[], tuple[Engine, Program]],
    ) -> None:
        self.violations = violations
        self.conforming = engine, program
        self._compile_fallback = compile_fallback
        self._fallback: tuple[Engine, Program] | None = None
        self._lock = threading.Lock()

    @property
    def projection(self) -> Projection:
        """That of all queries, also of what was pruned away."""
        return self.conforming[1].projection

    def memory_usage(self) -> int:
        """Of both programs, if there are two."""
        fallback = 0 if self._fallback is None else self._fallback[1].memory_usage()
        return self.conforming[1].memory_usage() + fallback

    def fallback(self) -> tuple[Engine, Program]:
        """The engine and the program without the DTD."""
        with self._lock:
            if self._fallback is None:
                self._fallback = self._compile_fallback()
        return self._fallback


class SchemaFallbackSearcher:
    """A pruned program at work, and the other one where documents violate the DTD."""

    def __init__(self, program: SchemaFallback, cache_bytes: int) -> None:
        self._program, self._cache_bytes = program, cache_bytes
        self._labels = program.violations.edges.labels()
        engine, pruned = program.conforming
        self._conforming = engine.searcher(pruned, cache_bytes)
        self._violating: Searcher | None = None

    def match(
        self,
        batch: DocumentBatch,
        vocabulary: Vocabulary,
        nodes: Which | None = None,
        _sources: Sources | None = None,
    ) -> MatchSet:
        """Which queries are true of which documents."""
        violates = self._program.violations.find(batch, vocabulary, self._labels)
        if not violates.any():
            return self._conforming.match(batch, vocabulary, nodes)
        if self._violating is None:
            engine, program = self._program.fallback()
            self._violating = engine.searcher(program, self._cache_bytes)
        conforming = self._conforming.match(only(batch, ~violates), vocabulary)
        violating = self._violating.match(only(batch, violates), vocabulary)
        return joined([(conforming, None), (violating, None)])

    def memory_usage(self) -> int:
        """The caches of both."""
        violating = 0 if self._violating is None else self._violating.memory_usage()
        return self._conforming.memory_usage() + violating
