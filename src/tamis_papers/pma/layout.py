"""Where the kernels that match find everything: an array of integers, the state."""

from __future__ import annotations

from typing import NamedTuple

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel.record import lay_out
from tamis_papers.pma.program import Instances, Pma

(
    DOCUMENT,  # the next one to be matched
    STAMP,  # the number of the present document among all that were ever begun
    MOVES,  # edges and fail links that were gone over
    FOUND_COUNT,
    CANDIDATE_COUNT,
    LOG_COUNT,
    MATCHED_COUNT,
    FILTERS,  # how many there are
    HAS_SINGLE,
    HAS_MULTI,
    IS_DYNAMIC,
    SCALARS,
) = range(12)

NO_INSTANCE = -1
"""What a filter waits for that has matched, or does not take part; and the end of a list."""

NEVER = -(1 << 30)
"""The depth at which a filter was advanced that waits for its first keyword: any is deep enough."""


class Events(NamedTuple):
    """A batch.

    Attributes:
        document_starts: int64[d + 1]; tags: int32[n]; as in ``DocumentBatch``.
        symbols: int32[names]; the label of each name of the vocabulary, or 0.
    """

    document_starts: Int64
    tags: Int32
    symbols: Int32


class Work(NamedTuple):
    """What is needed while matching; between documents it is as it was at first.

    Attributes:
        stack: int32[]; the state around each open element.
        marks: int32[]; how long the log was before each of them.
        found_starts: int64[d + 1]; found: int32[]; the filters that matched each document.
        scanned_in: int64[states of single]; the last document in which its output was scanned: the
            paper's ``output_scanned``, which need not be cleared.
        seen_in: int64[filters of multi]; seen: int32[]; the last document in which a keyword of a
            filter occurred, and how many of them did in it.
        candidates: int32[]; of which all did, in this document.
        frontier: int32[filters of multi]; the instance that each waits for.
        advanced_at: int32[filters of multi]; the depth of the element at which it was advanced.
        log_filter, log_advanced_at: int32[]; filters that were advanced at open elements, and what
            ``advanced_at`` was before.
        matched: int32[]; filters of multi that matched this document.
        head: int32[states of multi]; next, previous: int32[instances]; the current output sets, as
            doubly linked lists of the instances that are waited for.
    """

    stack: Int32
    marks: Int32
    found_starts: Int64
    found: Int32
    scanned_in: Int64
    seen_in: Int64
    seen: Int32
    candidates: Int32
    frontier: Int32
    advanced_at: Int32
    log_filter: Int32
    log_advanced_at: Int32
    matched: Int32
    head: Int32
    next: Int32
    previous: Int32


SINGLE, MULTI, INSTANCES, EVENTS, WORK, STATE_SIZE = lay_out(
    SCALARS, Pma, Pma, Instances, Events, Work
)
