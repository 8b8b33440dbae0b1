"""The nodes of XPath's data model, of all documents of a batch, and XPath's axes on sets of them.

A set is a sorted array of rows of a :class:`NodeTable`. Rows are in document order and a subtree is
a range of rows, ``x`` to ``end[x] - 1``. So each axis, forwards or backwards, is a few array
operations on the sets alone, whatever the depth.
"""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.documents.batch import ATTRIBUTE, DOCUMENT, ELEMENT, MISC, TEXT, DocumentBatch

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
    """Walk the events once, with a stack of open elements."""
    walk = _TreeWalk(batch)
    for document in np.flatnonzero(np.diff(batch.document_starts)).tolist():  # others are in error
        walk.document(document)
    walk.texts_before.append(walk.next_text)
    columns = (walk.parent, walk.end, walk.source, walk.texts_before, walk.documents, walk.numbers)
    wide = (np.array(column, np.int64) for column in columns)
    return NodeTable(np.array(walk.kind, np.int8), np.array(walk.name, np.int32), *wide)


class _TreeWalk:
    """The growing columns, and where the walk is in attributes, text and misc."""

    def __init__(self, batch: DocumentBatch) -> None:
        self.document_starts = batch.document_starts.tolist()
        self.tags = batch.tags.tolist()
        self.attribute_event = _with_sentinel(batch.attribute_event)
        self.attribute_name = batch.attribute_name.tolist()
        self.text_event = _with_sentinel(batch.text_event)
        self.misc_starts = batch.misc_starts.tolist()
        misc_columns = batch.misc_event.tolist(), batch.misc_text.tolist()
        self.misc_positions = list(zip(*misc_columns, strict=True))
        self.misc_name = batch.misc_name.tolist()
        self.next_attribute = self.next_text = self.next_misc = self.misc_end = 0
        self.kind, self.name = array("b"), array("i")
        self.parent, self.end, self.source = array("q"), array("q"), array("q")
        self.texts_before, self.documents, self.numbers = array("q"), array("q"), array("q")

    def document(self, number: int) -> None:
        first, last = self.document_starts[number : number + 2]
        self.next_misc, self.misc_end = self.misc_starts[number : number + 2]
        root = self.add(DOCUMENT, -1, len(self.kind), number)
        self.documents.append(root)
        self.numbers.append(number)
        open_nodes = [root]
        self.leaves(first - 1, root)
        for event in range(first, last):
            tag = self.tags[event]
            if tag >= 0:
                node = self.add(ELEMENT, tag, open_nodes[-1], event)
                open_nodes.append(node)
                while self.attribute_event[self.next_attribute] == event:
                    name = self.attribute_name[self.next_attribute]
                    self.add(ATTRIBUTE, name, node, self.next_attribute)
                    self.next_attribute += 1
            else:
                self.end[open_nodes.pop()] = len(self.kind)
            self.leaves(event, open_nodes[-1])
        self.end[root] = len(self.kind)

    def leaves(self, event: int, parent: int) -> None:
        """The text nodes, comments and PIs that follow an event directly."""
        while True:
            misc, position = self.next_misc, (event, self.next_text)
            if misc < self.misc_end and self.misc_positions[misc] == position:
                self.add(MISC, self.misc_name[misc], parent, misc)
                self.next_misc += 1
            elif self.text_event[self.next_text] == event:
                self.add(TEXT, -1, parent, self.next_text)
                self.next_text += 1
            else:
                return

    def add(self, kind: int, name: int, parent: int, source: int) -> int:
        row = len(self.kind)
        self.kind.append(kind)
        self.name.append(name)
        self.parent.append(parent)
        self.end.append(row + 1)
        self.source.append(source)
        self.texts_before.append(self.next_text)
        return row


def _with_sentinel(values: np.ndarray[Any, Any]) -> list[int]:
    return [*values.tolist(), -2]


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
