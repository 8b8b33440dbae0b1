"""Documents, one by one, in one pass or two."""

from __future__ import annotations

from tamis.core.arrays import Int64
from tamis.core.kernel import kernel
from tamis.core.kernel.record import int32s, int64s
from tamis_papers.pma.kernels.multi import match_multi
from tamis_papers.pma.kernels.single import match_single
from tamis_papers.pma.layout import (
    CANDIDATE_COUNT,
    DOCUMENT,
    DONE,
    EVENTS,
    FILTERS,
    FOUND_COUNT,
    FULL_DEPTH,
    FULL_FOUND,
    HAS_MULTI,
    HAS_SINGLE,
    MOVES,
    STAMP,
    WORK,
)


@kernel
def match_documents(state: Int64) -> int:
    """Match documents from ``DOCUMENT`` on; each has matched whole, or else is begun again.

    A document finds each filter at most once, so room for them all is there before it begins.
    """
    starts, found_starts = int64s(state, EVENTS.document_starts), int64s(state, WORK.found_starts)
    room = len(int32s(state, WORK.found)) - state[FILTERS]
    for document in range(state[DOCUMENT], len(starts) - 1):
        state[DOCUMENT] = document
        before, moves = state[FOUND_COUNT], state[MOVES]
        if before > room:
            return FULL_FOUND
        state[STAMP] += 1
        state[CANDIDATE_COUNT] = 0
        start, end = starts[document], starts[document + 1]
        is_done = True
        if state[HAS_SINGLE]:
            is_done = match_single(state, start, end)
        asks_multi = state[CANDIDATE_COUNT] > 0 if state[HAS_SINGLE] else state[HAS_MULTI]
        if is_done and asks_multi:
            is_done = match_multi(state, start, end)
        if not is_done:
            state[FOUND_COUNT], state[MOVES] = before, moves
            return FULL_DEPTH
        found_starts[document + 1] = state[FOUND_COUNT]
    return DONE
