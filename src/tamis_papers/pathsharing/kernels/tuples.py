"""Path-tuples, their streams, and the lists of tuples that operators leave to each other.

A tuple is its last node and the tuple of the steps before, so that paths share the tuples of what
they have in common. There may be exponentially many, as there are in the paper: of ``//a//a//a``
one for each choice of three nested elements.
"""

from __future__ import annotations

from tamis.core.arrays import Int64
from tamis.core.kernel import called, inlined
from tamis.core.kernel.record import int32s, int64s
from tamis.matching.engines.nfa.layout import (
    ABOVE,
    CODE,
    OCCURRENCE,
    OUTER,
    PARENT,
    RECORD,
    START,
    STATE,
)
from tamis.transform.layout import DONE, NONE, READ
from tamis_papers.pathsharing.layout import (
    DOCUMENT,
    FULL,
    NO_ROOM,
    PLANS,
    POOL_USED,
    ROWS,
    TUPLES_USED,
    WORK,
)


@called
def make_tuples(state: Int64) -> int:
    """Make the tuples of all occurrences, in their order."""
    rows, records = int64s(state, READ.rows), int32s(state, READ.records)
    row_tuples = int64s(state, WORK.row_tuples)
    for row in range(state[ROWS]):
        row_tuples[row] = state[TUPLES_USED]
        at = rows[row * OCCURRENCE + STATE]
        event = rows[row * OCCURRENCE + START]
        if records[at * RECORD + PARENT] <= 0:
            if not add_tuple(state, event, NONE):
                return NO_ROOM
            continue
        descends = records[at * RECORD + CODE] & 1
        above = rows[row * OCCURRENCE + ABOVE]
        while above >= 0:
            for before in range(row_tuples[above], row_tuples[above + 1]):
                if not add_tuple(state, event, before):
                    return NO_ROOM
            if not descends:
                break
            above = rows[above * OCCURRENCE + OUTER]
    row_tuples[state[ROWS]] = state[TUPLES_USED]
    return DONE


@inlined
def add_tuple(state: Int64, event: int, before: int) -> bool:
    """Append a tuple; False if there is no room."""
    tuples = int64s(state, WORK.tuples)
    used = state[TUPLES_USED]
    if 2 * used + 2 > len(tuples):
        state[FULL] = WORK.tuples
        return False
    tuples[2 * used], tuples[2 * used + 1] = event, before
    state[TUPLES_USED] = used + 1
    return True


@called
def write_streams(state: Int64) -> int:
    """Write the list of each stream, in the order of its tuples' last nodes."""
    rows, row_tuples = int64s(state, READ.rows), int64s(state, WORK.row_tuples)
    counts, stream_of = int64s(state, WORK.state_counts), int32s(state, PLANS.stream_of)
    begins, ends = int64s(state, WORK.list_from), int64s(state, WORK.list_to)
    stamps, pool = int64s(state, WORK.list_stamp), int64s(state, WORK.pool)
    if state[TUPLES_USED] > len(pool):
        state[FULL] = WORK.pool
        return NO_ROOM
    for row in range(state[ROWS]):
        counts[rows[row * OCCURRENCE + STATE]] = 0
    for row in range(state[ROWS]):
        counts[rows[row * OCCURRENCE + STATE]] += row_tuples[row + 1] - row_tuples[row]
    used = 0
    for row in range(state[ROWS]):
        at = rows[row * OCCURRENCE + STATE]
        stream = stream_of[at]
        if stream == NONE:
            continue
        if stamps[stream] != state[DOCUMENT]:
            stamps[stream] = state[DOCUMENT]
            begins[stream] = ends[stream] = used
            used += counts[at]
        for tuple in range(row_tuples[row], row_tuples[row + 1]):
            pool[ends[stream]] = tuple
            ends[stream] += 1
    state[POOL_USED] = used
    return DONE


@inlined
def node_of(state: Int64, tuple: int, levels: int) -> int:
    """The node of a tuple's field so many steps before its last."""
    tuples = int64s(state, WORK.tuples)
    for _level in range(levels):
        tuple = tuples[2 * tuple + 1]
    return tuples[2 * tuple]


@inlined
def list_start(state: Int64, operator: int) -> int:
    """Where the list of an operator begins."""
    is_here = int64s(state, WORK.list_stamp)[operator] == state[DOCUMENT]
    return int64s(state, WORK.list_from)[operator] if is_here else 0


@inlined
def list_end(state: Int64, operator: int) -> int:
    """Where it ends: of one that was not run, where it begins."""
    is_here = int64s(state, WORK.list_stamp)[operator] == state[DOCUMENT]
    return int64s(state, WORK.list_to)[operator] if is_here else 0


@inlined
def begin_list(state: Int64, operator: int) -> None:
    """An operator's list begins."""
    int64s(state, WORK.list_stamp)[operator] = state[DOCUMENT]
    int64s(state, WORK.list_from)[operator] = state[POOL_USED]
    int64s(state, WORK.list_to)[operator] = state[POOL_USED]


@inlined
def end_list(state: Int64, operator: int) -> None:
    """An operator's list ends."""
    int64s(state, WORK.list_to)[operator] = state[POOL_USED]


@inlined
def emit(state: Int64, tuple: int) -> bool:
    """Append a tuple to the list that was begun; False if there is no room."""
    pool = int64s(state, WORK.pool)
    used = state[POOL_USED]
    if used == len(pool):
        state[FULL] = WORK.pool
        return False
    pool[used] = tuple
    state[POOL_USED] = used + 1
    return True
