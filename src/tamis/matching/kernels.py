"""The kernel that holds documents against the edges of a DTD."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import kernel
from tamis.core.kernel.prototype import Rows


@kernel
def find_violations(
    tags: Int32,
    document_starts: Int64,
    elements: Int32,
    allowed: Rows[np.bool_],
    stack: Int32,
    found: Int64,
) -> None:
    """Find the first event of each document that leaves the edges, or -1.

    Args:
        tags, document_starts: of a batch.
        elements: the number of each name's element, -1 where it is not declared.
        allowed: bool[e, e]; whether an element may hold another one; 0 holds the roots.
        stack: has room for what is open in the deepest document, and the document.
        found: gets the events.
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
