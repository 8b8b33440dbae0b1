"""The nodes that expressions select in documents that they matched, and where these stand.

The nodes are found when they are asked for, of one document and one query. An engine may have
recorded them (``Occurrences``). For all other queries the reference engine evaluates the document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64, distinct, freeze
from tamis.core.errors import DocumentError, SubscriptionId, UsageError
from tamis.core.index.matchset import MatchSet, Occurrences, QueryValue, Which, ranges
from tamis.core.limits import Limits
from tamis.documents.batch import ATTRIBUTE, DOCUMENT, ELEMENT, KIND_BITS, MISC, TEXT, DocumentBatch
from tamis.documents.batch import part as part_of
from tamis.documents.offsets import Excerpt, Markup
from tamis.documents.source import Source
from tamis.documents.vocabulary import Vocabulary
from tamis.language.model import Exists, Query
from tamis.language.xpath import Operand
from tamis.matching.engines.reference.execute import Evaluator
from tamis.matching.planner import Assignment


class Node(NamedTuple):
    """Where a node stands in its document.

    Attributes:
        start, end: the number of bytes before it, and up to its end.
        line: the line that it begins in, from 1.
    """

    start: int
    end: int
    line: int


class Selection(Sequence[Node]):
    """The nodes that an expression selects in a document: in document order, each once.

    An element ranges from its start tag to its end tag, an attribute from its name to its closing
    quote, a text node over the text as it is written. What an entity holds stands where the
    reference to it does, and an attribute that the DTD gives where its element's tag does.

    Attributes:
        starts, ends: int64[], read-only; byte offsets.
        cut_by: the limit that other nodes are beyond, ``matched_nodes`` or
            ``matched_value_bytes``, where these are only the first ones; or None.
    """

    def __init__(
        self,
        starts: Int64,
        ends: Int64,
        excerpt: Excerpt,
        cut_by: str | None = None,
        values: NodeValues | None = None,
    ) -> None:
        freeze(starts, ends)
        self.starts, self.ends, self.cut_by = starts, ends, cut_by
        self._excerpt, self._values = excerpt, values

    @property
    def is_cut(self) -> bool:
        """Whether there are more nodes."""
        return self.cut_by is not None

    @cached_property
    def lines(self) -> Int64:
        """The line in which each node begins: int64[], read-only."""
        lines = self._excerpt.lines(self.starts)
        freeze(lines)
        return lines

    def fragments(self) -> Iterator[str]:
        """The nodes as the document has them, one after the other."""
        for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True):
            yield self._excerpt.text(start, end)

    def values(self) -> Iterator[str]:
        """XPath's string values of the nodes, one after the other.

        The value of an element is all text inside; that of an attribute is normalised. Entities,
        character references and CDATA sections are replaced by what they stand for.

        Raises:
            UsageError: values were not asked for when the document was matched.

        >>> import tamis
        >>> match = tamis.compile({"x": "//b | //@n"}).match(
        ...     "<a n='&lt;1'><b>x<i>y</i>&amp;<![CDATA[<]]></b></a>", nodes="all", values=True)
        >>> list(match.nodes("x").values())
        ['<1', 'xy&<']
        """
        if self._values is None:
            raise UsageError('values were not asked for: match(document, nodes="all", values=True)')
        return iter(self._values)

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> Node: ...
    @overload
    def __getitem__(self, index: slice) -> list[Node]: ...
    def __getitem__(self, index: int | slice) -> Node | list[Node]:
        if isinstance(index, slice):
            return list(self)[index]
        return Node(int(self.starts[index]), int(self.ends[index]), int(self.lines[index]))

    def __iter__(self) -> Iterator[Node]:
        columns = (self.starts.tolist(), self.ends.tolist(), self.lines.tolist())
        return map(Node._make, zip(*columns, strict=True))

    def __repr__(self) -> str:
        return f"<Selection: {len(self):,} nodes{', cut' if self.is_cut else ''}>"


@dataclass(eq=False)
class EngineResult:
    """The queries that one engine answered, and its answers.

    >>> from tamis.language.xpath import parse
    >>> from tamis.matching.planner import plan
    >>> (assignment,) = plan([parse("//a")])
    >>> starts, sets, node_refs = np.array([0, 2]), np.array([0, 0]), np.array([9, 25])
    >>> found = Occurrences(starts, sets, node_refs)
    >>> matches = MatchSet(starts, sets, np.array([0, 1]), np.array([0]), occurrences=found)
    >>> EngineResult(assignment, matches).occurrences(0).node_refs(0, "all")
    array([ 9, 25])
    """

    assignment: Assignment
    matches: MatchSet

    def own_number(self, number: int) -> int | None:
        """The number that the engine knows a query by, if it is one of its own."""
        numbers = self.assignment.numbers
        own = int(np.searchsorted(numbers, number))
        return own if own < len(numbers) and numbers[own] == number else None

    def locates(self, own: int) -> bool:
        """Whether the engine recorded which nodes a query selects."""
        if self.matches.occurrences is None:
            return False
        return self.assignment.engine.locates(self.assignment.queries.words(own))

    def occurrences(self, document: int) -> DocumentOccurrences:
        """What the engine recorded in a document."""
        assert self.matches.occurrences is not None
        return DocumentOccurrences(self, self.matches.occurrences, document)

    def value(self, document: int, own: int) -> QueryValue | None:
        """The value of a query that selects no nodes, if the engine has it."""
        occurrences = self.matches.occurrences
        return None if occurrences is None else occurrences.values.get(document, {}).get(own)

    def sets_of(self, own: int) -> Int32:
        """The sets that have a query and occur somewhere in the batch."""
        members, sets = self._members
        return sets[slice(*np.searchsorted(members, [own, own + 1]).tolist())]

    @cached_property
    def _members(self) -> tuple[Int32, Int32]:
        """Each member of each set that occurs, ascending, and the set."""
        matches = self.matches
        assert matches.occurrences is not None
        used = distinct(matches.occurrences.set_ids)
        counts = matches.set_starts[used.astype(np.int64) + 1] - matches.set_starts[used]
        members = ranges(matches.set_starts, used, matches.members)
        order = np.argsort(members, kind="stable")
        return members[order], np.repeat(used, counts)[order]


class DocumentOccurrences:
    """What an engine recorded in one document, by set."""

    def __init__(self, result: EngineResult, occurrences: Occurrences, document: int) -> None:
        self._result = result
        within = slice(*occurrences.document_starts[document : document + 2].tolist())
        sets = occurrences.set_ids[within]
        self._node_refs = occurrences.node_refs[within]
        self._order = np.argsort(sets, kind="stable")
        self._sets = sets[self._order]

    def node_refs(self, own: int, which: Which) -> Int64:
        """The nodes at which a query occurred, in document order."""
        wanted = self._result.sets_of(own)
        starts = np.searchsorted(self._sets, wanted)
        ends = np.searchsorted(self._sets, wanted, "right")
        if which == "first":
            firsts = self._order[starts[starts < ends]]
            return self._node_refs[np.sort(firsts)[:1]]
        ranges = zip(starts.tolist(), ends.tolist(), strict=True)
        found = [self._order[start:end] for start, end in ranges]
        return self._node_refs[np.sort(np.concatenate(found))] if found else _NO_NODES


class BatchNodes(NamedTuple):
    """All that it takes to find the nodes that were selected in the documents of a batch.

    Attributes:
        which: the nodes that are asked for.
        has_values: whether the batch has all text, so that nodes have values.
        excerpts: the bytes of each document, or those of all of them.
        query_number: the number of the query that a subscription asks.
    """

    which: Which
    has_values: bool
    limits: Limits
    batch: DocumentBatch
    vocabulary: Vocabulary
    excerpts: Sequence[Source | DocumentError] | Excerpt
    results: Sequence[EngineResult]
    query_number: Callable[[SubscriptionId], int]


class DocumentNodes:
    """The nodes that were selected in one document, which must not be in error."""

    def __init__(self, found: BatchNodes, document: int) -> None:
        self._found, self._document = found, document
        if isinstance(found.excerpts, Excerpt):
            self._excerpt = found.excerpts
        else:
            source = found.excerpts[document]
            assert isinstance(source, Source)
            encoding = source.encoding or "utf-8"
            self._excerpt = Excerpt(source.data, encoding, base_offset=source.base_offset)
        self._occurrences: dict[int, DocumentOccurrences] = {}  # by the number of the result
        self._markup = Markup(found.batch, document, self._excerpt, found.vocabulary)

    def selection(self, id: SubscriptionId) -> Selection:
        """What a subscription selects; nothing where it does not match."""
        found, limits = self._found, self._found.limits
        node_refs = self._node_refs(found.query_number(id))
        cut_by = None
        if found.which == "first":
            node_refs = node_refs[:1]
        elif len(node_refs) > limits.matched_nodes:
            node_refs, cut_by = node_refs[: limits.matched_nodes], "matched_nodes"
        values = None
        if found.has_values:
            values = NodeValues(found.batch, self._markup, node_refs)
            fit = np.searchsorted(np.cumsum(values.sizes), limits.matched_value_bytes, "right")
            if fit < len(node_refs):
                node_refs, cut_by = node_refs[:fit], "matched_value_bytes"
                values = NodeValues(found.batch, self._markup, node_refs)
        starts, ends = self._ranges(node_refs)
        return Selection(starts, ends, self._excerpt, cut_by, values)

    def value(self, operand: Operand) -> QueryValue:
        """The value of an expression that selects no nodes, if its projection was recorded."""
        (document,) = self._evaluator.nodes.documents.tolist()
        return self._evaluator.value(operand, document)

    def lxml_value(self, id: SubscriptionId) -> QueryValue | None:
        """The value of an expression by lxml; None where the expression selects nodes."""
        number = self._found.query_number(id)
        owns = ((result, result.own_number(number)) for result in self._found.results)
        return next((r.value(self._document, own) for r, own in owns if own is not None), None)

    # -- which nodes ---------------------------------------------------------------------------

    def _node_refs(self, number: int) -> Int64:
        for index, result in enumerate(self._found.results):
            own = result.own_number(number)
            if own is None:
                continue
            if not result.locates(own):
                query = result.assignment.queries[own]
                return self._evaluated(query) if query.selects else _NO_NODES
            if index not in self._occurrences:
                self._occurrences[index] = result.occurrences(self._document)
            return self._occurrences[index].node_refs(own, self._found.which)
        return _NO_NODES

    @cached_property
    def _evaluator(self) -> Evaluator:
        own = part_of(self._found.batch, self._document, self._document + 1)
        return Evaluator(own, self._found.vocabulary)

    @cached_property
    def _numbers_before(self) -> Int64:
        """By kind, how many nodes of the batch come before those of the document."""
        batch, first = self._found.batch, self._markup.first
        attributes = int(np.searchsorted(batch.attribute_event, first))
        texts = int(np.searchsorted(batch.text_event, first))
        return np.array([0, first, attributes, texts, batch.misc_starts[self._document]])

    def _evaluated(self, query: Query) -> Int64:
        """The nodes that a query selects, found by the reference engine."""
        assert isinstance(query.expression, Exists)
        nodes = self._evaluator.nodes
        rows = self._evaluator.selected(query.expression.paths, nodes.documents)
        kinds = nodes.kind[rows].astype(np.int64)
        return (nodes.source[rows] + self._numbers_before[kinds]) << KIND_BITS | kinds

    # -- where they are ------------------------------------------------------------------------

    def _ranges(self, node_refs: Int64) -> tuple[Int64, Int64]:
        kinds, numbers = node_refs & ((1 << KIND_BITS) - 1), node_refs >> KIND_BITS
        starts, ends = np.zeros((2, len(node_refs)), np.int64)
        are_elements = kinds == ELEMENT
        starts[are_elements], ends[are_elements] = self._markup.elements(numbers[are_elements])
        for index in np.flatnonzero(~are_elements).tolist():
            starts[index], ends[index] = self._range(int(kinds[index]), int(numbers[index]))
        base_offset = self._excerpt.base_offset
        return starts + base_offset, ends + base_offset

    def _range(self, kind: int, number: int) -> tuple[int, int]:
        if kind == ATTRIBUTE:
            return self._markup.attribute(number)
        if kind == TEXT:
            return self._markup.text(number)
        if kind != DOCUMENT:
            return self._markup.misc(number)
        if isinstance(self._found.excerpts, Excerpt):  # a record: from its first tag to its last
            offsets = self._found.batch.offsets[self._markup.first : self._markup.last]
            return int(offsets[0]), int(offsets[-1])
        return -self._excerpt.base_offset, len(self._excerpt.data)


class NodeValues:
    """The string values of nodes of a document, each decoded when it is asked for.

    The batch has all text. ``sizes`` are the bytes of each value, in UTF-8: int64[].
    """

    def __init__(self, batch: DocumentBatch, markup: Markup, node_refs: Int64) -> None:
        self._batch = batch
        self._kinds, firsts = node_refs & ((1 << KIND_BITS) - 1), node_refs >> KIND_BITS
        lasts = firsts + 1  # of attributes and the like; of elements, those of their text nodes
        is_element, is_document = self._kinds == ELEMENT, self._kinds == DOCUMENT
        events = firsts[is_element]
        firsts[is_element] = np.searchsorted(batch.text_event, events)
        lasts[is_element] = np.searchsorted(batch.text_event, markup.ends(events))
        firsts[is_document] = np.searchsorted(batch.text_event, markup.first)
        lasts[is_document] = np.searchsorted(batch.text_event, markup.last)
        self._starts, self._ends = np.zeros((2, len(node_refs)), np.int64)
        for kind in distinct(self._kinds).tolist():
            starts, ends, _ = self._columns(kind)
            own = (self._kinds == kind) & (firsts < lasts)
            self._starts[own], self._ends[own] = starts[firsts[own]], ends[lasts[own] - 1]
        self.sizes = self._ends - self._starts

    def _columns(self, kind: int) -> tuple[Int64, Int64, Bytes]:
        """Where values of a kind start and end, and their bytes."""
        batch = self._batch
        if kind == ATTRIBUTE:
            return batch.value_start, batch.value_end, batch.attribute_values
        if kind == MISC:
            return batch.misc_start, batch.misc_end, batch.misc_values
        return batch.text_start, batch.text_end, batch.text_values

    def __iter__(self) -> Iterator[str]:
        columns = (self._kinds.tolist(), self._starts.tolist(), self._ends.tolist())
        for kind, start, end in zip(*columns, strict=True):
            yield self._columns(kind)[2][start:end].tobytes().decode()


_NO_NODES = np.zeros(0, np.int64)
