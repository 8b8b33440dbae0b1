"""Which filters stay, of those that an engine found: by residual constraints and by clauses.

See ``model``; filters and conditions are numbered together there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.index.kernels import PART, hand_over
from tamis.core.kernel import called, inlined, kernel
from tamis.core.kernel.dfa import Dfas, accepts
from tamis.core.kernel.record import int32s, int64s, lay_out, uint8s
from tamis.events import model as at
from tamis.events.kernels.values import (
    Events,
    has_part,
    order_of_numbers,
    order_of_strings,
    satisfies,
)

has_part, order_of_numbers = called(has_part), called(order_of_numbers)
order_of_strings, satisfies = called(order_of_strings), inlined(satisfies)

(
    NEXT,  # the event that is looked at next
    KEPT,  # how many sets are kept
    STAMP,  # the number of the event among all that were ever looked at
    LISTED_AT,  # of the listing: see ``keep_one``
    FILTERS,  # how many there are: conditions are behind them
    NUMBERS,
) = range(6)


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


class Residual(NamedTuple):
    """Distinct residual constraints, and those of each filter and condition.

    Attributes:
        starts, numbers: the constraints of filter or condition i, from ``starts[i]`` on.
        names: int32[r]; of the attribute.
        operators: uint8[r].
        others: int32[r]; the name of the other attribute; of a pattern, its automaton.
    """

    starts: Int64
    numbers: Int32
    names: Int32
    operators: Bytes
    others: Int32


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
        known: int64[r]; twice the event at which a residual constraint was looked at last, and 1
            if it held.
        kept_starts: int64[events + 1]; the sets that are kept of event i begin there.
        kept: int32[]; sets of ``Reported``.
    """

    stamps: Int64
    known: Int64
    kept_starts: Int64
    kept: Int32


(FOUND, SETS, CLAUSES, RESIDUAL, DFAS, EVENTS, REPORTED, ONE, WORK, STATE_SIZE) = lay_out(
    NUMBERS, Found, Sets, Clauses, Residual, Dfas, Events, Reported, One, Work
)


@kernel
def keep_filters(state: Int64) -> int:
    """Keep what is true of events, from ``NEXT`` on; 0, or the field of an array that is full."""
    starts, kept_starts = int64s(state, FOUND.starts), int64s(state, WORK.kept_starts)
    while state[NEXT] < len(starts) - 1:
        event = state[NEXT]
        status = keep_of_event(state, event)
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
def keep_of_event(state: Int64, event: int) -> int:
    """Keep what is true of an event; as ``keep_filters``."""
    starts = int64s(state, FOUND.starts)
    first, end = starts[event], starts[event + 1]
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
            condition = np.int64(conditions[index])
            if hold_residual(state, event, state[FILTERS] + condition):
                stamps[condition] = state[STAMP]
    used, sets = state[KEPT], len(plain) - 1
    for place in range(first, end):
        set = np.int64(set_ids[place])
        if used + 1 + filter_starts[set + 1] - filter_starts[set] > len(kept):
            return WORK.kept
        if plain[set + 1] > plain[set]:
            kept[used] = set
            used += 1
        for index in range(filter_starts[set], filter_starts[set + 1]):
            filter = np.int64(filters[index])
            if hold_residual(state, event, filter) and are_true(state, filter):
                kept[used] = sets + filter
                used += 1
    state[KEPT] = used
    return 0


@called
def hold_residual(state: Int64, event: int, filter: int) -> bool:
    """Whether all residual constraints of a filter or a condition hold of an event."""
    starts, numbers = int64s(state, RESIDUAL.starts), int32s(state, RESIDUAL.numbers)
    known = int64s(state, WORK.known)
    for index in range(starts[filter], starts[filter + 1]):
        number = np.int64(numbers[index])
        if known[number] >> 1 != state[STAMP]:
            known[number] = 2 * state[STAMP] + holds(state, event, number)
        if known[number] & 1 == 0:
            return False
    return True


@called
def holds(state: Int64, event: int, number: int) -> bool:
    """Whether a residual constraint holds of an event."""
    operator = np.int64(uint8s(state, RESIDUAL.operators)[number])
    other = np.int64(int32s(state, RESIDUAL.others)[number])
    place = place_of(state, event, np.int64(int32s(state, RESIDUAL.names)[number]))
    if place < 0:
        return False
    if operator < at.LIKE:
        behind = place_of(state, event, other)
        return behind >= 0 and are_as(state, operator, place, behind)
    if uint8s(state, EVENTS.kinds)[place] != at.STRING:
        return False
    string = int64s(state, EVENTS.values)[place]
    starts = int64s(state, EVENTS.string_starts)
    return accepts(
        uint8s(state, DFAS.classes),
        int32s(state, DFAS.transitions),
        int32s(state, DFAS.rows),
        int32s(state, DFAS.ends),
        other,
        uint8s(state, EVENTS.string_bytes),
        starts[string],
        starts[string + 1],
    )


@called
def place_of(state: Int64, event: int, name: int) -> int:
    """Where an event has an attribute of a name; -1 if it has none."""
    starts, names = int64s(state, EVENTS.event_starts), int32s(state, EVENTS.names)
    for place in range(starts[event], starts[event + 1]):
        if names[place] == name:
            return place
    return -1


@called
def are_as(state: Int64, operator: int, one: int, other: int) -> bool:
    """Whether two attributes, by their places, are as an operator says."""
    kinds, values = uint8s(state, EVENTS.kinds), int64s(state, EVENTS.values)
    kind, other_kind = np.int64(kinds[one]), np.int64(kinds[other])
    if kind <= at.FLOAT and other_kind <= at.FLOAT:
        order = order_of_numbers(kind, values[one], other_kind, values[other])
        if other_kind == at.FLOAT and np.isnan(values[other : other + 1].view(np.float64)[0]):
            return operator == at.NE  # constants are never NaN
        return satisfies(operator, order)
    if kind != other_kind:
        return False
    if kind == at.BOOLEAN:
        is_same = values[one] == values[other]
        return (operator == at.EQ and is_same) or (operator == at.NE and not is_same)
    starts, data = int64s(state, EVENTS.string_starts), uint8s(state, EVENTS.string_bytes)
    start, end = starts[values[one]], starts[values[one] + 1]
    first, last = starts[values[other]], starts[values[other] + 1]
    if operator >= at.PREFIX:
        return has_part(operator, data, start, end, data, first, last)
    return satisfies(operator, order_of_strings(data, start, end, data, first, last))


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
