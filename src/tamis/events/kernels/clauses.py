"""The kernels of clauses: which filters stay, of those that an engine found. See ``model``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.index.kernels import PART, hand_over
from tamis.core.kernel import called, kernel
from tamis.core.kernel.record import int32s, int64s, lay_out

(
    NEXT,  # the event that is looked at next
    KEPT,  # how many sets are kept
    STAMP,  # the number of the event among all that were ever looked at
    LISTED_AT,  # of the listing: see ``keep_one``
    NUMBERS,
) = range(5)


class Found(NamedTuple):
    """What the engine found, as in ``MatchSet``."""

    starts: Int64
    set_ids: Int32


class Sets(NamedTuple):
    """The filters of each set of the engine's.

    Attributes:
        plain_starts: int64[s + 1]; a set has filters without clauses where this grows.
        conditions: int32[]; the conditions of set i, from ``condition_starts[i]`` on.
        filters: int32[]; those with clauses, from ``filter_starts[i]`` on.
    """

    plain_starts: Int64
    condition_starts: Int64
    conditions: Int32
    filter_starts: Int64
    filters: Int32


class Clauses(NamedTuple):
    """See ``FilterTable``."""

    clause_starts: Int64
    literal_starts: Int64
    literals: Int32


class Reported(NamedTuple):
    """What is reported for the plain filters of each set, then for each filter by itself."""

    set_starts: Int64
    members: Int32


class One(NamedTuple):
    """The state of ``tamis.core.index.kernels.list_one``."""

    listing: Int64


class Work(NamedTuple):
    """What is kept.

    Attributes:
        stamps: int64[conditions]; the event at which each held last.
        kept_starts: int64[events + 1]; the sets that are kept of event i begin there.
        kept: int32[]; sets of ``Reported``.
    """

    stamps: Int64
    kept_starts: Int64
    kept: Int32


FOUND, SETS, CLAUSES, REPORTED, ONE, WORK, STATE_SIZE = lay_out(
    NUMBERS, Found, Sets, Clauses, Reported, One, Work
)


@kernel
def keep_filters(state: Int64) -> int:
    """Keep what is true of events, from ``NEXT`` on; 0, or the field of an array that is full."""
    starts, kept_starts = int64s(state, FOUND.starts), int64s(state, WORK.kept_starts)
    while state[NEXT] < len(starts) - 1:
        event = state[NEXT]
        status = keep_of_event(state, starts[event], starts[event + 1])
        if status:
            return status
        kept_starts[event + 1] = state[KEPT]
        state[NEXT] = event + 1
    return 0


@kernel
def keep_one(state: Int64) -> int:
    """The same for the one event of which an engine has said to a listing what it found."""
    listing, part = int64s(state, ONE.listing), state[LISTED_AT]
    for field, into in ((FOUND.starts, PART.document_starts), (FOUND.set_ids, PART.set_ids)):
        state[field], state[field + 1] = listing[part + into], listing[part + into + 1]
    state[NEXT] = state[KEPT] = 0
    status = keep_filters(state)
    if status:
        return status
    hand_over(state, WORK.kept_starts, 2, listing, part + PART.document_starts)
    hand_over(state, WORK.kept, state[KEPT], listing, part + PART.set_ids)
    starts, members = REPORTED.set_starts, REPORTED.members
    hand_over(state, starts, state[starts + 1], listing, part + PART.set_starts)
    hand_over(state, members, state[members + 1], listing, part + PART.members)
    hand_over(state, members, 0, listing, part + PART.sliced)
    return 0


@called
def keep_of_event(state: Int64, first: int, end: int) -> int:
    """Keep what is true of an event, in which so many sets were found; as ``keep_filters``."""
    set_ids, stamps = int32s(state, FOUND.set_ids), int64s(state, WORK.stamps)
    condition_starts, conditions = (
        int64s(state, SETS.condition_starts),
        int32s(state, SETS.conditions),
    )
    plain, filter_starts = int64s(state, SETS.plain_starts), int64s(state, SETS.filter_starts)
    filters, kept = int32s(state, SETS.filters), int32s(state, WORK.kept)
    state[STAMP] += 1
    for place in range(first, end):
        set = np.int64(set_ids[place])
        for index in range(condition_starts[set], condition_starts[set + 1]):
            stamps[conditions[index]] = state[STAMP]
    used, sets = state[KEPT], len(plain) - 1
    for place in range(first, end):
        set = np.int64(set_ids[place])
        if used + 1 + filter_starts[set + 1] - filter_starts[set] > len(kept):
            return WORK.kept
        if plain[set + 1] > plain[set]:
            kept[used] = set
            used += 1
        for index in range(filter_starts[set], filter_starts[set + 1]):
            if are_true(state, np.int64(filters[index])):
                kept[used] = sets + filters[index]
                used += 1
    state[KEPT] = used
    return 0


@called
def are_true(state: Int64, filter: int) -> bool:
    """Whether all clauses of a filter are true of the event whose conditions are stamped."""
    clause_starts, starts = (
        int64s(state, CLAUSES.clause_starts),
        int64s(state, CLAUSES.literal_starts),
    )
    literals, stamps = int32s(state, CLAUSES.literals), int64s(state, WORK.stamps)
    for clause in range(clause_starts[filter], clause_starts[filter + 1]):
        is_true = False
        for index in range(starts[clause], starts[clause + 1]):
            literal = np.int64(literals[index])
            is_true |= (stamps[literal >> 1] == state[STAMP]) != ((literal & 1) == 1)
        if not is_true:
            return False
    return True
