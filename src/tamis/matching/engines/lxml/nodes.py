"""Maps nodes of lxml to nodes of a batch: both have them in document order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tamis.core.errors import SlowLaneError
from tamis.documents.batch import ATTRIBUTE, ELEMENT, KIND_BITS, MISC, TEXT, DocumentBatch
from tamis.documents.vocabulary import Vocabulary


class TreeNodes:
    """The places of the nodes of a document that lxml has read.

    Args:
        tree: what lxml has read.
        batch: has all nodes of the document.
        document: which of the batch.
        vocabulary: that the batch was parsed with.

    Raises:
        SlowLaneError: lxml has other nodes.
    """

    def __init__(
        self, tree: Any, batch: DocumentBatch, document: int, vocabulary: Vocabulary
    ) -> None:
        self._batch = batch
        self._vocabulary = vocabulary
        events = batch.document_starts[document : document + 2]
        texts = np.searchsorted(batch.text_event, events)
        self._places: dict[Any, int] = {}
        self._add(tree, "//*", ELEMENT, np.flatnonzero(batch.tags[slice(*events)] >= 0) + events[0])
        self._add(tree, "//text()", TEXT, range(*texts))
        self._add(
            tree,
            "//comment() | //processing-instruction()",
            MISC,
            range(*batch.misc_starts[document : document + 2]),
        )

    def _add(self, tree: Any, expression: str, kind: int, numbers: Iterable[int]) -> None:
        nodes = tree.xpath(expression)
        try:
            for node, number in zip(nodes, numbers, strict=True):
                self._places[_key(node)] = int(number) << KIND_BITS | kind
        except ValueError:
            raise SlowLaneError("lxml reads other nodes in the document than Tamis") from None

    def place(self, node: Any) -> int:
        """The place of a node that an expression selected."""
        if getattr(node, "is_attribute", False):
            return self._attribute(node)
        return self._places[_key(node)]

    def _attribute(self, node: Any) -> int:
        event = self._places[node.getparent()] >> KIND_BITS
        namespace, _, local = node.attrname.rpartition("}")
        name = namespace[1:], local
        batch = self._batch
        for row in range(*np.searchsorted(batch.attribute_event, [event, event + 1]).tolist()):
            if self._vocabulary.expanded(int(batch.attribute_name[row])) == name:
                return row << KIND_BITS | ATTRIBUTE
        raise SlowLaneError("lxml reads other attributes in the document than Tamis")


def _key(node: Any) -> Any:
    """The key of a node; of text, which is no object in lxml, its element and its side."""
    return (node.getparent(), node.is_tail) if hasattr(node, "is_tail") else node
