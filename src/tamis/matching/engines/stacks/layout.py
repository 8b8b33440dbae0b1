"""The fields of the kernels' state."""

from __future__ import annotations

from typing import NamedTuple

from tamis.core.arrays import Bytes, Int32, Int64, Words
from tamis.core.kernel.record import lay_out
from tamis.matching.engines.stacks.program import ProgramArrays

(
    PHASE,  # what is done next
    DOCUMENT,  # the next of the batch
    EVENT,  # the next of the batch
    IS_OPEN,  # whether the document has begun
    LEVEL,  # of the innermost open element
    FACT,  # the next fact of the batch
    PENDING,  # how many items of ``pending`` are used
    SETS,  # of the batch
    SEGMENT_SETS,  # of the batch, before the segment
    MEMBERS,  # how many items of ``members`` are used
    SUBTREES,  # of the segment
    CHILDREN,  # how many items of ``children`` are used
    DOCUMENT_SYMBOL,  # what the document has instead of a name
    ROW,  # how many words a row has
    NUMBERS,
) = range(15)
"""The numbers at the beginning of the kernels' state."""

BEGIN, COMPRESS, EVALUATE, COLLECT = range(4)
"""What is done with a segment, one after the other."""

NOTHING, SCRATCH, FIRST = range(3)
"""Rows of ``levels``: of zeros; of one element with facts; and of the document."""


class Read(NamedTuple):
    """What a run reads of the batch.

    Attributes:
        symbols: int32[names]; by name of the vocabulary, the row of ``tests``.
        tests: uint64[ROW * symbols]; the nodes whose test an element passes, by its symbol. Row 0
            is of names that no test but ``*`` has; the last row is of the document.
        fact_events: int64[], ascending: start events; facts: int32[]; what is true of the element.
            A fact of several text nodes or attributes stands there several times, without others
            between.
        queries: int32[]; see ``StacksProgram``.
    """

    document_starts: Int64
    tags: Int32
    symbols: Int32
    tests: Words
    fact_events: Int64
    facts: Int32
    queries: Int32


class Dag(NamedTuple):
    """The distinct subtrees of a segment, each after those in it.

    Attributes:
        symbols: int32[n]; of a subtree's root.
        child_starts: int64[n + 1]; the children of subtree s are
            ``children[child_starts[s]:child_starts[s + 1]]``.
        rows: int32[n]; the row of ``levels`` that has more children; ``NOTHING`` for most.
        hashes: uint64[n].
        parents: int64[n]; the last element that got the subtree as a child.
        sets: int32[n]; of a document: the set of queries that are true of it.
        places: int32[n]; the subtree's place in ``slots``; any place if it has none.
        slots: int32[]; finds a subtree; see :mod:`tamis.core.kernel.table`.
    """

    symbols: Int32
    child_starts: Int64
    rows: Int32
    hashes: Words
    parents: Int64
    sets: Int32
    places: Int32
    slots: Int32


class Work(NamedTuple):
    """What a run writes.

    Attributes:
        open_symbols: int32[n]; of open elements, by level; level ``FIRST`` is the document.
        elements: int64[n]; by level: a number of the element's own, which is not 0.
        starts: int64[n]; by level: where its children begin in ``pending``.
        has_row: uint8[n]; by level: whether children in segments before this one are in its row of
            ``levels``.
        pending: int32[n]; the children so far of open elements, outermost first. A child is the
            number of a subtree, or ``~f`` for fact f.
        children: int32[n]; of subtrees.
        latched: uint64[]; by subtree: what it latches into the element around, for one group.
        inner: uint64[]; what is known inside an element, of the nodes of one group.
        levels: uint64[ROW * n]; a row for each open element of a document that takes several
            segments: what its children of earlier segments latched.
        fact_at: int64[facts]; where the words of a fact begin that are of this group or later.
        answers: uint64[]; by distinct document of the segment, a block for each group.
        document_sets: int32[d]; the set of each document, or -1.
        set_starts: int64[d + 1]; members: int32[n]; the queries of each set.
    """

    open_symbols: Int32
    elements: Int64
    starts: Int64
    has_row: Bytes
    pending: Int32
    children: Int32
    latched: Words
    inner: Words
    levels: Words
    fact_at: Int64
    answers: Words
    document_sets: Int32
    set_starts: Int64
    members: Int32


PROGRAM, READ, DAG, WORK, STATE_SIZE = lay_out(NUMBERS, ProgramArrays, Read, Dag, Work)
