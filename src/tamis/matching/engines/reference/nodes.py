"""The nodes of XPath's data model, of all documents of a batch, and XPath's axes on sets of them.

A set is a sorted array of rows of a :class:`NodeTable`. Rows are in document order and a subtree is
a range of rows, ``x`` to ``end[x] - 1``. So each axis, forwards or backwards, is a few array
operations on the sets alone, whatever the depth.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tamis.core.arrays import Int32, Int64, starts_of
from tamis.documents.batch import ATTRIBUTE, DOCUMENT, ELEMENT, MISC, TEXT, DocumentBatch
from tamis.documents.offsets import by_level

Rows = np.ndarray[tuple[int], np.dtype[np.int64]]
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]
Kinds = np.ndarray[tuple[int], np.dtype[np.int8]]


class NodeTable(NamedTuple):
    """One row a node, in document order; attributes are directly after their element.

    Attributes:
        kind: int8[n]; one of ``DOCUMENT ELEMENT ATTRIBUTE TEXT MISC``.
        name: int32[n]; the vocabulary's id, -1 where a node has none.
        parent: int64[n]; the row of the parent, of a document node its own row.
        end: int64[n]; the row after the last of the subtree.
        source: int64[n]; the number of the event, attribute, text or misc in the batch.
        texts_before: int64[n + 1]; the number of text nodes of the batch before the row.
        documents: int64[d]; the rows of the document nodes of documents without error.
        numbers: int64[d]; their document numbers.
    """

    kind: Kinds
    name: Int32
    parent: Int64
    end: Int64
    source: Int64
    texts_before: Int64
    documents: Int64
    numbers: Int64


def build_nodes(batch: DocumentBatch) -> NodeTable:
    """The nodes of all documents.

    There is a *slot* for each document, and for each event behind it. The first node of a slot is
    the document, or the element that starts. Its attributes follow, and then the text nodes,
    comments and PIs that are directly behind the event.
    """
    numbers = np.flatnonzero(np.diff(batch.document_starts))  # others are in error
    documents = np.arange(len(numbers))
    of_events = np.repeat(documents, np.diff(batch.document_starts)[numbers])
    slots = _Slots(
        documents=batch.document_starts[numbers] + documents,
        events=np.arange(1, len(batch.tags) + 1) + of_events,
        misc=batch.misc_event + 1 + np.repeat(documents, np.diff(batch.misc_starts)[numbers]),
    )
    tags = batch.tags
    begun = np.flatnonzero(tags >= 0)
    ended, around = _partners(tags, begun, batch.document_starts[numbers])
    heads = np.zeros(len(tags) + len(numbers), np.int64)
    heads[slots.documents] = heads[slots.events[begun]] = 1
    attributes, texts = slots.events[batch.attribute_event], slots.events[batch.text_event]
    first_leaf = heads + np.bincount(attributes, minlength=len(heads))
    sizes = first_leaf + np.bincount(texts, minlength=len(heads))
    sizes += np.bincount(slots.misc, minlength=len(heads))
    starts = starts_of(sizes)
    first_leaf += starts[:-1]
    # Of texts and misc of a slot, those come first that have fewer texts before them.
    is_before = len(texts) + 1
    misc_before = np.searchsorted(
        slots.misc * is_before + batch.misc_text, texts * is_before + np.arange(len(texts)), "right"
    ) - np.searchsorted(slots.misc, texts)
    texts_before = batch.misc_text - np.searchsorted(texts, slots.misc)
    own = starts[slots.documents], starts[slots.events[begun]]
    # The rows of the elements that are open behind each event, and of documents in their slots.
    inner = np.zeros(len(heads), np.int64)
    inner[slots.documents] = own[0]
    parents = np.where(around >= 0, starts[slots.events[begun[around]]], own[0][of_events[begun]])
    inner[slots.events[begun]], inner[slots.events[ended]] = own[1], parents
    table = _Rows(int(starts[-1]))
    table.put(DOCUMENT, own[0], own[0], numbers)
    table.put(ELEMENT, own[1], parents, begun, tags[begun])
    place = starts[attributes] + 1 + _within(attributes)
    table.put(ATTRIBUTE, place, inner[attributes], None, batch.attribute_name)
    table.put(TEXT, first_leaf[texts] + _within(texts) + misc_before, inner[texts])
    place = first_leaf[slots.misc] + _within(slots.misc) + texts_before
    table.put(MISC, place, inner[slots.misc], None, batch.misc_name)
    end = np.arange(1, len(table.kind) + 1)
    end[own[0]] = np.append(own[0][1:], len(table.kind))[: len(numbers)]
    end[own[1]] = starts[slots.events[ended]]
    before = starts_of(table.kind == TEXT)
    return NodeTable(
        table.kind, table.name, table.parent, end, table.source, before, own[0], numbers
    )


class _Slots(NamedTuple):
    """The slots of documents, of events, and of comments and PIs."""

    documents: Int64
    events: Int64
    misc: Int64


class _Rows:
    """Columns of a table, which are filled kind by kind."""

    def __init__(self, count: int) -> None:
        self.kind, self.name = np.zeros(count, np.int8), np.full(count, -1, np.int32)
        self.parent, self.source = np.zeros((2, count), np.int64)

    def put(
        self, kind: int, rows: Int64, parents: Int64, sources: Int64 | None = None, names: Any = -1
    ) -> None:
        """Put nodes into their rows; by default they are numbered from 0."""
        self.kind[rows], self.name[rows], self.parent[rows] = kind, names, parents
        self.source[rows] = np.arange(len(rows)) if sources is None else sources


def _within(slots: Int64) -> Int64:
    """The places of nodes among those of their slots, which ascend."""
    places: Int64 = np.arange(len(slots)) - np.searchsorted(slots, slots)
    return places


def _partners(tags: Int32, begun: Int64, roots: Int64) -> tuple[Int64, Int64]:
    """Of each start: the event of its end, and the number of the start around it, or -1.

    >>> tags = np.array([0, 1, -1, 1, -1, -1], np.int32)
    >>> _partners(tags, np.flatnonzero(tags >= 0), np.array([0]))
    (array([5, 2, 4]), array([-1,  0,  0]))
    """
    is_start = tags >= 0
    order = by_level(tags)
    starts = order[::2]
    ends = np.zeros(len(tags), np.int64)
    ends[starts] = order[1::2]
    # The first child follows the start of its parent; the others have the parent of the one before.
    numbers = np.cumsum(is_start) - 1
    is_first = is_start[starts - 1]
    is_first[: len(roots)] = True  # they are the first level
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(starts)), 0))
    around = np.zeros(len(tags), np.int64)
    around[starts] = numbers[starts[first] - 1]
    around[roots] = -1
    return ends[begun], around[begun]


# -- axes --------------------------------------------------------------------------------------


def have_parent_in(parent: Rows, candidates: Rows, contexts: Rows) -> Mask:
    """Which of the candidates are children (or attributes) of one of the contexts.

    >>> parent = np.array([0, 0, 1, 1, 0])
    >>> have_parent_in(parent, np.array([2, 4]), np.array([1]))
    array([ True, False])
    """
    member = np.zeros(len(parent), dtype=bool)
    member[contexts] = True
    return np.asarray(member[parent[candidates]])


def have_ancestor_in(end: Rows, candidates: Rows, contexts: Rows) -> Mask:
    """Which of the candidates lie strictly inside the subtree of one of the contexts.

    Of the contexts before a candidate, the one whose subtree ends last decides.

    >>> end = np.array([5, 4, 3, 4, 5])
    >>> have_ancestor_in(end, np.array([1, 3, 4]), np.array([1]))
    array([False,  True, False])
    """
    furthest = np.zeros(len(contexts) + 1, dtype=np.int64)
    np.maximum.accumulate(end[contexts], out=furthest[1:])
    return np.asarray(furthest[np.searchsorted(contexts, candidates)] > candidates)


def first_child(parent: Rows, contexts: Rows, nodes: Rows, value: Rows, none: int) -> Rows:
    """For each context the least ``value`` of those of ``nodes`` that are its children.

    The parents of ``nodes`` must all be contexts.

    >>> parent = np.array([0, 0, 1, 1])
    >>> first_child(parent, np.array([0, 1]), np.array([2, 3]), np.array([3, 2]), 9)
    array([9, 2])
    """
    found = np.full(len(contexts), none, dtype=np.int64)
    np.minimum.at(found, np.searchsorted(contexts, parent[nodes]), value)
    return found


def first_descendant(end: Rows, contexts: Rows, nodes: Rows, value: Rows, none: int) -> Rows:
    """For each context the least ``value`` of those of ``nodes`` that are inside its subtree.

    ``value[i]`` must be ``none`` or lie in the subtree of ``nodes[i]``. Then the least value among
    *all* nodes after a context decides: if it lies before the context's end, so does its node; if
    it does not, no node inside has a smaller one.

    >>> end = np.array([4, 3, 3, 4])
    >>> first_descendant(end, np.array([0, 1, 3]), np.array([2, 3]), np.array([2, 3]), 9)
    array([2, 2, 9])
    """
    after = np.full(len(nodes) + 1, none, dtype=np.int64)
    after[:-1] = np.minimum.accumulate(value[::-1])[::-1]
    least = after[np.searchsorted(nodes, contexts, side="right")]
    return np.where(least < end[contexts], least, none)


def nth_of_parent(parent: Rows, nodes: Rows, number: int) -> Rows:
    """Those of ``nodes`` that are the ``number``-th (from 1) of those with the same parent.

    >>> nth_of_parent(np.array([0, 0, 0, 0]), np.array([1, 2, 3]), 2)
    array([2])
    """
    by_parent = nodes[np.argsort(parent[nodes], kind="stable")]
    parents = parent[by_parent]
    positions = np.arange(len(by_parent))
    is_first = np.ones(len(by_parent), dtype=bool)
    is_first[1:] = parents[1:] != parents[:-1]
    start = np.maximum.accumulate(np.where(is_first, positions, 0))
    return np.sort(by_parent[positions - start + 1 == number])
