"""The fields of the kernels' state."""

from __future__ import annotations

from typing import NamedTuple

from tamis.core.arrays import Bytes, Int32, Int64, Words
from tamis.core.kernel.record import lay_out
from tamis.matching.engines.stacks.program import ProgramArrays

(
    DOCUMENT,  # the next of the batch
    EVENT,  # the next of the batch
    IS_OPEN,  # whether the document has begun
    LEVEL,  # of the innermost open element
    FACT_AT,  # the next fact of the batch
    ROW,  # how many words a row has
    SEEN_WORDS,  # how many words the symbols of ``seen`` take, for each level
    FOUND_USED,
    NUMBERS,
) = range(9)
"""The numbers at the beginning of the kernels' state."""

ABOVE, FIRST = range(2)
"""Levels: what is above the document, where nobody looks; and the document."""


class Read(NamedTuple):
    """What a run reads of the batch.

    Attributes:
        symbols: int32[names]; by name of the vocabulary, the row of ``tests``.
        tests: uint64[ROW * symbols]; the nodes whose test an element passes, by its symbol. Row 0
            is of names that no test but ``*`` has; the last row is of the document.
        fact_events: int64[], ascending: start events; facts: int32[]; what is true of the element.
    """

    document_starts: Int64
    tags: Int32
    symbols: Int32
    tests: Words
    fact_events: Int64
    facts: Int32


class Work(NamedTuple):
    """What a run writes.

    Attributes:
        levels: uint64[ROW * n]; a row for each open element: the nodes that hold at one of its
            children, or, where they are BELOW, at one of its descendants.
        seen: uint64[SEEN_WORDS * n]; by level: symbols of empty children.
        open_symbols: int32[n]; the symbol of the element of each level.
        is_known: uint8[n]; whether the row of a level was written since its element began.
        found: int32[n]; the bits that are true, document after document.
        found_starts: int64[d + 1].
    """

    levels: Words
    seen: Words
    open_symbols: Int32
    is_known: Bytes
    found: Int32
    found_starts: Int64


PROGRAM, READ, WORK, STATE_SIZE = lay_out(NUMBERS, ProgramArrays, Read, Work)
