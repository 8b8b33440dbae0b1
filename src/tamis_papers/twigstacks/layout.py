"""The bits of personalities and of stack entries, and the fields of the kernels' state."""

from __future__ import annotations

from typing import NamedTuple

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel.record import lay_out
from tamis_papers.twigstacks.program import TwigArrays

# A personality is Table 2 of the paper in 8 bytes instead of 4. The tag is in the lowest bits.
TAG_BITS = 31
PREFIX_BITS = 16
PREFIX_SHIFT = TAG_BITS
HAS_DESCENDANTS_SHIFT = PREFIX_SHIFT + PREFIX_BITS
HAS_CHILDREN_SHIFT = HAS_DESCENDANTS_SHIFT + 1
DESCENDS_SHIFT = HAS_CHILDREN_SHIFT + 1
LEAF_SHIFT = DESCENDS_SHIFT + 1

ANY, ROOT = 0, (1 << TAG_BITS) - 1
"""Tags of nodes: of ``*``; and of dummy roots, which no element has."""
OTHER = 0
"""The tag of elements whose name no twig has."""

# A stack entry is Table 3: the push stack in the upper half byte, the pop stack in the lower one.
PUSH_CHILD_SHIFT, PUSH_DESC_SHIFT, POP_DESC_SHIFT, POP_CHILD_SHIFT = 7, 6, 1, 0
PUSH_CHILD = 1 << PUSH_CHILD_SHIFT
"""The node and its prefixes pass at this element: for its children with ``/``, or for a leaf."""
PUSH_DESC = 1 << PUSH_DESC_SHIFT
"""They pass at this element or at one around it: for its children with ``//``."""
POP_DESC = 1 << POP_DESC_SHIFT
"""The node holds at an element further down: only for nodes with ``//``."""
POP_CHILD = 1 << POP_CHILD_SHIFT
"""The node holds at a child of this element: what it has reported to its prefix."""
REPORTED = POP_DESC | POP_CHILD
BEGINNING = PUSH_CHILD | PUSH_DESC
"""The entry of a dummy root at level 0, which is always matched; of other nodes it is 0."""

(
    DOCUMENT,  # the next of the batch
    FOUND_COUNT,
    WIDTH,  # bytes of an event
    NUMBERS,
) = range(4)
"""The numbers at the beginning of the kernels' state."""


class Read(NamedTuple):
    """What a run reads of the batch.

    Attributes:
        document_starts: int64[d + 1]; in events.
        events: uint8[WIDTH * n]; encoded as in Table 1: the tag of the element, and the most
            significant bit of a pop. The lowest byte is first.
    """

    document_starts: Int64
    events: Bytes


class Work(NamedTuple):
    """What a run writes.

    Attributes:
        stack: uint8[levels * the widest block]; the merged stack of the present block.
        found: int32[]; twigs that are true, document after document.
        found_starts: int64[d + 1].
    """

    stack: Bytes
    found: Int32
    found_starts: Int64


PROGRAM, READ, WORK, STATE_SIZE = lay_out(NUMBERS, TwigArrays, Read, Work)
