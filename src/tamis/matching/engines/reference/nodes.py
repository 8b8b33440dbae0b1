"""The nodes of XPath's data model, of all documents of a batch, in document order."""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.documents.batch import ATTRIBUTE, DOCUMENT, ELEMENT, MISC, TEXT, DocumentBatch

Kinds = np.ndarray[tuple[int], np.dtype[np.int8]]


class NodeTable(NamedTuple):
    """One row a node: document node, elements, attributes, text, comments and PIs.

    Rows are in document order, the attributes of an element directly after it, so that the subtree
    of node ``x`` is the rows ``x`` to ``end[x] - 1``.

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
    walk = _PathGenerator(batch)
    for document in range(batch.documents):
        if batch.document_starts[document] < batch.document_starts[document + 1]:
            walk.document(document)
    walk.texts_before.append(walk.next_text)
    return NodeTable(
        kind=np.array(walk.kind, dtype=np.int8),
        name=np.array(walk.name, dtype=np.int32),
        parent=np.array(walk.parent, dtype=np.int64),
        end=np.array(walk.end, dtype=np.int64),
        source=np.array(walk.source, dtype=np.int64),
        texts_before=np.array(walk.texts_before, dtype=np.int64),
        documents=np.array(walk.documents, dtype=np.int64),
        numbers=np.array(walk.numbers, dtype=np.int64),
    )


class _PathGenerator:
    """The growing columns, and where the walk is in attributes, text and misc."""

    def __init__(self, batch: DocumentBatch) -> None:
        self.document_starts = batch.document_starts.tolist()
        self.tags = batch.tags.tolist()
        self.attribute_event = _with_sentinel(batch.attribute_event)
        self.attribute_name = batch.attribute_name.tolist()
        self.text_event = _with_sentinel(batch.text_event)
        self.misc_starts = batch.misc_starts.tolist()
        self.misc_event = batch.misc_event.tolist()
        self.misc_text = batch.misc_text.tolist()
        self.misc_name = batch.misc_name.tolist()
        self.next_attribute = self.next_text = self.next_misc = self.misc_end = 0
        self.kind = array("b")
        self.name = array("i")
        self.parent = array("q")
        self.end = array("q")
        self.source = array("q")
        self.texts_before = array("q")
        self.documents = array("q")
        self.numbers = array("q")

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
            misc = self.next_misc
            if (
                misc < self.misc_end
                and self.misc_event[misc] == event
                and self.misc_text[misc] == self.next_text
            ):
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
