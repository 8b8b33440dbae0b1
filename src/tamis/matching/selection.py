"""The nodes that expressions select in documents that they matched: where these stand.

What matched is known of all documents; which nodes were selected is found when it is asked for, of
one document and one query. An engine may have noted where it met the answers (``Occurrences``);
for all other queries the reference engine's evaluator looks, in the events of the document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple, overload

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64, distinct, freeze
from tamis.core.errors import DocumentError, SubscriptionId, UsageError
from tamis.core.index.matchset import MatchSet, Occurrences, Which, ranges
from tamis.core.limits import Limits
from tamis.documents.batch import (
    ATTRIBUTE,
    DOCUMENT,
    ELEMENT,
    KIND_BITS,
    MISC,
    TEXT,
    DocumentBatch,
    part,
)
from tamis.documents.offsets import Excerpt, Markup
from tamis.documents.source import Source
from tamis.documents.vocabulary import Vocabulary
from tamis.language.model import Exists, Query
from tamis.language.xpath import Operand
from tamis.matching.engines.lxml.slow import Selected
from tamis.matching.engines.reference import Evaluator, build_nodes
from tamis.matching.planner import Assignment


class Node(NamedTuple):
    """Where a node stands in its document.

    Attributes:
        start: the number of bytes before it.
        end: the number of bytes up to its end.
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
        cut_by: there are more nodes, and these are the first of them: the name of the limit that
            the others are beyond, ``matched_nodes`` or ``matched_value_bytes``; or None.
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
        self.starts = starts
        self.ends = ends
        self.cut_by = cut_by
        self._excerpt = excerpt
        self._values = values

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

        The value of an element is all text inside, and that of an attribute is its normalised
        value. Entities, character references and CDATA sections are replaced by what they stand
        for.

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


class Answered:
    """The queries that one engine answered, and its answers.

    >>> from tamis.language.xpath import parse
    >>> from tamis.matching.planner import plan
    >>> (share,) = plan([parse("//a")])
    >>> starts, sets, places = np.array([0, 2]), np.array([0, 0]), np.array([9, 25])
    >>> met = Occurrences(starts, sets, places)
    >>> matches = MatchSet(starts, sets, np.array([0, 1]), np.array([0]), sets[:0], None, {}, met)
    >>> Answered(share, matches).met(0).places_of(0, "all")
    array([ 9, 25])
    """

    def __init__(self, share: Assignment, matches: MatchSet) -> None:
        self.share = share
        self.matches = matches

    def own_number(self, number: int) -> int | None:
        """The number that the engine knows a query by, if it is one of its own."""
        numbers = self.share.numbers
        own = int(np.searchsorted(numbers, number))
        return own if own < len(numbers) and numbers[own] == number else None

    def knows(self, own: int) -> bool:
        """Whether the engine noted where what the query selects is."""
        if self.matches.occurrences is None:
            return False
        queries = self.share.queries
        if own < len(queries.plain):
            return queries.is_path(own)
        return self.share.engine.locates(queries[own])

    def met(self, document: int) -> Met:
        """What the engine noted in a document."""
        occurrences = self.matches.occurrences
        assert occurrences is not None
        return Met(self, occurrences, document)

    def sets_of(self, own: int) -> Int32:
        """The sets that have a query and were met somewhere in the batch."""
        members, sets = self._members
        return sets[slice(*np.searchsorted(members, [own, own + 1]).tolist())]

    @cached_property
    def _members(self) -> tuple[Int32, Int32]:
        """Each member of each set that was met, ascending, and the set."""
        matches = self.matches
        assert matches.occurrences is not None
        used = distinct(matches.occurrences.set_ids)
        counts = matches.set_starts[used.astype(np.int64) + 1] - matches.set_starts[used]
        members = ranges(matches.set_starts, used, matches.members)
        order = np.argsort(members, kind="stable")
        return members[order], np.repeat(used, counts)[order]


class Met:
    """What an engine noted in one document, by the set that was met."""

    def __init__(self, lane: Answered, occurrences: Occurrences, document: int) -> None:
        self._lane = lane
        within = slice(*occurrences.document_starts[document : document + 2].tolist())
        sets = occurrences.set_ids[within]
        self._places = occurrences.places[within]
        self._order = np.argsort(sets, kind="stable")
        self._sets = sets[self._order]

    def places_of(self, own: int, which: Which) -> Int64:
        """The places of the nodes at which a query was met, in document order."""
        wanted = self._lane.sets_of(own)
        starts = np.searchsorted(self._sets, wanted)
        ends = np.searchsorted(self._sets, wanted, "right")
        if which == "first":
            found = self._order[starts[starts < ends]]
            return self._places[np.sort(found)[:1]]
        pieces = [
            self._order[start:end]
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        return self._places[np.sort(np.concatenate(pieces))] if pieces else _NO_PLACES


class BatchNodes(NamedTuple):
    """All that it takes to find the nodes that were selected in the documents of a batch.

    Attributes:
        which: the nodes that are asked for.
        has_values: whether the batch has all text, so that values of nodes can be told.
        limits: bounds on nodes, and on their values, of one query and document.
        excerpts: the bytes of each document, or those of all of them.
        lanes: what each engine said.
        number_of: the number of the query that a subscription asks.
        slow: by document and query, what lxml selected.
    """

    which: Which
    has_values: bool
    limits: Limits
    batch: DocumentBatch
    vocabulary: Vocabulary
    excerpts: Sequence[Source | DocumentError] | Excerpt
    lanes: Sequence[Answered]
    number_of: Callable[[SubscriptionId], int]
    slow: Mapping[int, Mapping[int, Selected]] = MappingProxyType({})

    def of_document(self, document: int) -> DocumentNodes:
        """Those of one document, which must not be in error."""
        return DocumentNodes(self, document)


class DocumentNodes:
    """The nodes that were selected in one document."""

    def __init__(self, found: BatchNodes, document: int) -> None:
        self._found = found
        self._document = document
        self._excerpt = _excerpt(found.excerpts, document)
        self._slow = found.slow.get(document, {})
        self._met: dict[int, Met] = {}  # by the number of the lane
        self._markup = Markup(found.batch, document, self._excerpt, found.vocabulary)

    def selection(self, id: SubscriptionId) -> Selection:
        """What a subscription selects; nothing where it does not match."""
        places = self._places_of(self._found.number_of(id))
        limits = self._found.limits
        cut_by = None
        if self._found.which == "first":
            places = places[:1]
        elif len(places) > limits.matched_nodes:
            places, cut_by = places[: limits.matched_nodes], "matched_nodes"
        values = None
        if self._found.has_values:
            values = NodeValues(self._found.batch, self._markup, places)
            fit = np.searchsorted(np.cumsum(values.sizes), limits.matched_value_bytes, "right")
            if fit < len(places):
                places, cut_by = places[:fit], "matched_value_bytes"
                values = NodeValues(self._found.batch, self._markup, places)
        starts, ends = self._ranges(places)
        return Selection(starts, ends, self._excerpt, cut_by, values)

    def value(self, operand: Operand) -> bool | float | str:
        """The value of an expression that selects no nodes, if its projection was recorded."""
        (document,) = self._evaluator.nodes.documents.tolist()
        return self._evaluator.value(operand, document)

    def lxml_value(self, id: SubscriptionId) -> bool | float | str | None:
        """The value of an expression by lxml; None where the expression selects nodes."""
        found = self._slow.get(self._found.number_of(id))
        return None if isinstance(found, np.ndarray) else found

    # -- which nodes ---------------------------------------------------------------------------

    def _places_of(self, number: int) -> Int64:
        """The places of what a query selects."""
        for lane_number, lane in enumerate(self._found.lanes):
            own = lane.own_number(number)
            if own is None:
                continue
            if not lane.knows(own):
                query = lane.share.queries[own]
                return self._evaluated(query) if query.selects else _NO_PLACES
            if lane_number not in self._met:
                self._met[lane_number] = lane.met(self._document)
            return self._met[lane_number].places_of(own, self._found.which)
        found = self._slow.get(number)
        return found if isinstance(found, np.ndarray) else _NO_PLACES

    @cached_property
    def _evaluator(self) -> Evaluator:
        own = part(self._found.batch, self._document, self._document + 1)
        return Evaluator(own, build_nodes(own), self._found.vocabulary)

    @cached_property
    def _numbers_before(self) -> Int64:
        """By kind, how many nodes of the batch come before those of the document."""
        batch, first = self._found.batch, self._markup.first
        attributes = int(np.searchsorted(batch.attribute_event, first))
        texts = int(np.searchsorted(batch.text_event, first))
        return np.array([0, first, attributes, texts, batch.misc_starts[self._document]])

    def _evaluated(self, query: Query) -> Int64:
        """The places of what a query selects, as the reference engine finds them."""
        assert isinstance(query.expression, Exists)
        evaluator = self._evaluator
        nodes = evaluator.nodes
        rows = evaluator.selected(query.expression.paths, nodes.documents)
        kinds = nodes.kind[rows].astype(np.int64)
        return (nodes.source[rows] + self._numbers_before[kinds]) << KIND_BITS | kinds

    # -- where they are ------------------------------------------------------------------------

    def _ranges(self, places: Int64) -> tuple[Int64, Int64]:
        """The byte ranges of nodes."""
        kinds, numbers = places & ((1 << KIND_BITS) - 1), places >> KIND_BITS
        starts, ends = np.zeros((2, len(places)), np.int64)
        are_elements = kinds == ELEMENT
        starts[are_elements], ends[are_elements] = self._markup.elements(numbers[are_elements])
        for index in np.flatnonzero(~are_elements).tolist():
            starts[index], ends[index] = self._range(int(kinds[index]), int(numbers[index]))
        base_offset = self._excerpt.base_offset
        starts += base_offset
        ends += base_offset
        return starts, ends

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

    Args:
        batch: has all text.
        places: of the nodes.

    Attributes:
        sizes: int64[]; the bytes of each, in UTF-8.
    """

    def __init__(self, batch: DocumentBatch, markup: Markup, places: Int64) -> None:
        self._batch = batch
        self._kinds, firsts = places & ((1 << KIND_BITS) - 1), places >> KIND_BITS
        lasts = firsts + 1  # of attributes and the like; of elements, those of their text nodes
        is_element, is_document = self._kinds == ELEMENT, self._kinds == DOCUMENT
        events = firsts[is_element]
        firsts[is_element] = np.searchsorted(batch.text_event, events)
        lasts[is_element] = np.searchsorted(batch.text_event, markup.ends(events))
        firsts[is_document] = np.searchsorted(batch.text_event, markup.first)
        lasts[is_document] = np.searchsorted(batch.text_event, markup.last)
        self._starts, self._ends = np.zeros((2, len(places)), np.int64)
        for kind in distinct(self._kinds).tolist():
            starts, ends, _ = self._columns(kind)
            own = (self._kinds == kind) & (firsts < lasts)
            self._starts[own], self._ends[own] = starts[firsts[own]], ends[lasts[own] - 1]
        self.sizes = self._ends - self._starts

    def _columns(self, kind: int) -> tuple[Int64, Int64, Bytes]:
        """Where values of a kind start and end, and in what."""
        batch = self._batch
        if kind == ATTRIBUTE:
            return batch.value_start, batch.value_end, batch.attribute_values
        if kind == MISC:
            return batch.misc_start, batch.misc_end, batch.misc_values
        return batch.text_start, batch.text_end, batch.text_values

    def __iter__(self) -> Iterator[str]:
        places = (self._kinds.tolist(), self._starts.tolist(), self._ends.tolist())
        for kind, start, end in zip(*places, strict=True):
            yield self._columns(kind)[2][start:end].tobytes().decode()


_NO_PLACES = np.zeros(0, np.int64)


def _excerpt(excerpts: Sequence[Source | DocumentError] | Excerpt, document: int) -> Excerpt:
    if isinstance(excerpts, Excerpt):
        return excerpts
    source = excerpts[document]
    assert isinstance(source, Source)
    return Excerpt(source.data, source.encoding or "utf-8", base_offset=source.base_offset)
