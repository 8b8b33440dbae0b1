"""From an occurrence back to those that a path's earlier steps bound, as a set.

Tuples of all steps may be exponentially many; the occurrences of each step are at most as many as
there are elements around, so sets of these are followed, step by step, and each is met once.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import called
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
from tamis.transform.strategies.relative.layout import FRONTIER_FROM, SERIAL, WORK
from tamis.transform.strings.kernels.values import node_passes, tests_before
from tamis.transform.strings.layout import FULL, NO_ROOM, NONE, READ

ALL_LEVELS = 1 << 40


@called
def climb(state: Int64, row: int, tests: int, levels: int) -> int:
    """Follow an occurrence back, to the first step of its path or so many steps.

    The occurrences that it leads to are in ``frontier``, from ``FRONTIER_FROM`` on, innermost
    first.

    Args:
        tests: that all on the way have to pass, or ``NONE``.

    Returns:
        How many there are, or a status, negated.
    """
    rows, records = int64s(state, READ.rows), int32s(state, READ.records)
    frontier = int64s(state, WORK.frontier)
    state[SERIAL] += 1
    first, last = 0, 1
    frontier[0] = row
    if tests != NONE:
        found = node_passes(state, rows[row * OCCURRENCE + START], tests)
        if found <= 0:
            return found
        tests = tests_before(state, tests)
    at = rows[row * OCCURRENCE + STATE]
    while levels > 0 and last > first and records[at * RECORD + PARENT] > 0:
        descends = records[at * RECORD + CODE] & 1
        end = last
        for place in range(first, last):
            above = rows[frontier[place] * OCCURRENCE + ABOVE]
            end = climb_from(state, above, descends, tests, end)
            if end < 0:
                return end
        first, last = last, end
        at = np.int64(records[at * RECORD + PARENT])
        levels -= 1
        if tests != NONE:
            tests = tests_before(state, tests)
    state[FRONTIER_FROM] = first
    return last - first


@called
def climb_from(state: Int64, above: int, descends: int, tests: int, end: int) -> int:
    """Append an occurrence, and for a descendant step all further out: where the frontier ends."""
    rows, stamps = int64s(state, READ.rows), int64s(state, WORK.row_stamp)
    frontier = int64s(state, WORK.frontier)
    serial = state[SERIAL]
    while above >= 0 and stamps[above] != serial:  # what is further out was met with it
        stamps[above] = serial
        event = rows[above * OCCURRENCE + START]
        found = 1 if tests == NONE else node_passes(state, event, tests)
        if found < 0:
            return found
        if found:
            if end == len(frontier):
                state[FULL] = WORK.frontier
                return -NO_ROOM
            frontier[end] = above
            end += 1
        if not descends:
            break
        above = rows[above * OCCURRENCE + OUTER]
    return end
