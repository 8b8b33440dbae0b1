"""What CCM does on the CPU: ``Input`` for several events at once.

OCM: filter selection, constraint selection, constraint evaluation and counting.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.bits import first
from tamis.core.kernel.declare import Rows
from tamis.core.kernel.record import int32s, int64s, prefetch, uint8s, uint64s
from tamis.events.model import STRING
from tamis_papers.pcm import layout as at
from tamis_papers.pcm.kernels.select import (
    choose_tables,
    fill_input,
    first_way,
    name_bits,
    sat_with,
)
from tamis_papers.pcm.kernels.words import add, covered, look, meet, put
from tamis_papers.pcm.program import PADDING, UInt64

# -- CCM: events prepared for CUDA -----------------------------------------------------------------


@kernel
def prepare_events(state: Int64, lines: Rows[np.int64], blooms: UInt64) -> int:
    """Prepare events from ``EVENT`` on: how many; 0 where there is no room for the lines of one.

    Args:
        lines: int64[l, LINE_WIDTH]; gets the lines.
        blooms: uint64[events at once]; gets the Bloom filter of each event.
    """
    state[at.PREPARED] = state[at.LONGEST] = 0
    copies = np.int64(0)
    while copies < len(blooms) and state[at.EVENT] < state[at.EVENT_END]:
        event, before, longest = state[at.EVENT], state[at.PREPARED], state[at.LONGEST]
        vector, bloom = name_bits(state, event)
        way = first_way(state, vector)
        is_room = True
        while is_room and way != U(0):
            way = choose_tables(state, vector, way)
            table = np.int64(0)
            while is_room and table < state[at.CHOSEN_COUNT]:
                table = fill_input(state, event, table)
                is_room = state[at.PREPARED] + state[at.LINE_COUNT] <= len(lines)
                if is_room:
                    _take_lines(state, lines, copies)
        if not is_room:
            state[at.PREPARED], state[at.LONGEST] = before, longest
            break
        blooms[copies] = bloom
        copies += 1
        state[at.EVENT] = event + 1
    return copies


@inlined
def _take_lines(state: Int64, lines: Rows[np.int64], copy: int) -> None:
    """Complete the lines that were filled."""
    event_kinds = uint8s(state, at.EVENTS.event_kinds)
    event_values = int64s(state, at.EVENTS.event_values)
    event_string_starts = int64s(state, at.EVENTS.event_string_starts)
    attributes = int32s(state, at.INPUT.attributes)
    starts, ends = int32s(state, at.INPUT.starts), int32s(state, at.INPUT.ends)
    for place in range(state[at.LINE_COUNT]):
        line = state[at.PREPARED]
        state[at.PREPARED] += 1
        attribute = attributes[place]
        value = event_values[attribute]
        lines[line, at.LINE_COPY] = copy
        lines[line, at.LINE_KIND] = event_kinds[attribute]
        lines[line, at.LINE_VALUE] = value
        lines[line, at.LINE_START] = lines[line, at.LINE_END] = 0
        if event_kinds[attribute] == STRING:
            lines[line, at.LINE_START] = event_string_starts[value]
            lines[line, at.LINE_END] = event_string_starts[value + 1]
        lines[line, at.LINE_FIRST] = starts[place]
        lines[line, at.LINE_NUM_CONSTR] = ends[place] - starts[place]
        state[at.LONGEST] = max(state[at.LONGEST], lines[line, at.LINE_NUM_CONSTR])


# -- OCM: events on the processor ------------------------------------------------------------------


sat = called(sat_with(inlined))


@called
def match_event(state: Int64, event: int, half: int) -> None:
    """Match an event with its tables, or with this thread's part of them.

    Args:
        half: where the interfaces of this event begin.
    """
    vector, bloom = name_bits(state, event)
    way = first_way(state, vector)
    while way != U(0):
        way = choose_tables(state, vector, way)
        table = np.int64(0)
        while table < state[at.CHOSEN_COUNT]:
            table = fill_input(state, event, table)
            evaluate_input(state, event, bloom, half)


@inlined
def evaluate_input(state: Int64, event: int, bloom: int, half: int) -> None:
    """Evaluate the constraints in all lines of ``Input`` that the event has the names for."""
    constr_bf = uint64s(state, at.TABLES.constr_bf)
    constr_op = uint8s(state, at.TABLES.constr_op)
    constr_val = int64s(state, at.TABLES.constr_val)
    constr_filter_id = int32s(state, at.TABLES.constr_filter_id)
    attributes = int32s(state, at.INPUT.attributes)
    starts, ends = int32s(state, at.INPUT.starts), int32s(state, at.INPUT.ends)
    left, left_of = int32s(state, at.INPUT.left), int32s(state, at.INPUT.left_of)
    count = np.int64(0)
    for line in range(state[at.LINE_COUNT]):
        start, end = np.int64(starts[line]), np.int64(ends[line])
        for block in range(start, end, PADDING):
            mask = covered(constr_bf, block, ~bloom)
            if end - block < PADDING:
                mask &= (U(1) << U(end - block)) - U(1)
            while mask != U(0):
                constraint = block + first(mask)
                prefetch(constr_op, constraint)
                prefetch(constr_val, constraint)
                prefetch(constr_filter_id, constraint)
                left[count], left_of[count] = constraint, attributes[line]
                count += 1
                mask &= mask - U(1)
            if count > at.LEFT - PADDING:
                evaluate(state, event, count, half)
                count = np.int64(0)
    evaluate(state, event, count, half)


@called
def evaluate(state: Int64, event: int, count: int, half: int) -> None:
    """Evaluate constraints that are left, count those that are satisfied, and report filters."""
    left, left_of = int32s(state, at.INPUT.left), int32s(state, at.INPUT.left_of)
    constr_op = uint8s(state, at.TABLES.constr_op)
    constr_val = int64s(state, at.TABLES.constr_val)
    constr_filter_id = int32s(state, at.TABLES.constr_filter_id)
    event_kinds = uint8s(state, at.EVENTS.event_kinds)
    event_values = int64s(state, at.EVENTS.event_values)
    event_string_starts = int64s(state, at.EVENTS.event_string_starts)
    filters_count = int64s(state, at.WORK.filters_count)
    sizes = int32s(state, at.TABLES.sizes)
    satisfied = np.int64(0)
    for place in range(count):
        constraint, attribute = left[place], left_of[place]
        kind = np.int64(event_kinds[attribute])
        value = event_values[attribute]
        start = end = np.int64(0)
        if kind == STRING:
            start, end = event_string_starts[value], event_string_starts[value + 1]
        if sat(
            np.int64(constr_op[constraint]),
            constr_val[constraint],
            kind,
            value,
            start,
            end,
            uint8s(state, at.EVENTS.event_string_bytes),
            int64s(state, at.TABLES.list_starts),
            uint8s(state, at.TABLES.list_kinds),
            int64s(state, at.TABLES.list_values),
            int64s(state, at.TABLES.string_starts),
            uint8s(state, at.TABLES.string_bytes),
        ):
            filter = np.int64(constr_filter_id[constraint])
            prefetch(filters_count, filter)
            prefetch(sizes, filter)
            left[satisfied] = filter
            satisfied += 1
    base = (state[at.EVENTS_BEFORE] + event) * state[at.BASE_STEP]
    for place in range(satisfied):
        filter = left[place]
        count = max(filters_count[filter], base) + 1
        filters_count[filter] = count
        if count - base == sizes[filter]:
            report(state, np.int64(int32s(state, at.OWNED.owner_of)[filter]), half)


@inlined
def report(state: Int64, owner: int, half: int) -> None:
    """Mark an owner, or note it; there is room for it."""
    if state[at.ARE_INTERFACES]:
        uint8s(state, at.WORK.interfaces)[half + owner] = 1
    else:
        int32s(state, at.WORK.found)[state[at.FOUND_COUNT]] = owner
        state[at.FOUND_COUNT] += 1


@inlined
def report_marked(state: Int64, half: int) -> None:
    """Note the interfaces of an event that are marked, and clear them."""
    words = uint64s(state, at.WORK.interface_words)
    found = int32s(state, at.WORK.found)
    start = half >> 3
    for place in range(start, start + (len(words) >> 1)):
        left = words[place]
        words[place] = U(0)
        while left != U(0):
            byte = first(left) >> 3
            found[state[at.FOUND_COUNT]] = ((place - start) << 3) + byte
            state[at.FOUND_COUNT] += 1
            left &= ~(U(255) << U(byte << 3))


@inlined
def report_always(state: Int64, event: int, half: int) -> None:
    """Report the owners of filters without constraints, unless the event is in error."""
    if uint8s(state, at.EVENTS.is_error)[event] == 0:
        for owner in int32s(state, at.OWNED.always):
            report(state, np.int64(owner), half)


@inlined
def _one_after_the_other(state: Int64) -> int:
    """Match all events, each together with the other threads; they meet behind each."""
    words = int64s(state, at.MEETING.words)
    found_counts = int32s(state, at.WORK.found_counts)
    room = len(int32s(state, at.WORK.found)) - 2 * state[at.NEED]
    half_size = len(uint8s(state, at.WORK.interfaces)) >> 1
    part, parts = state[at.PART], state[at.PARTS]
    start = state[at.EVENT]
    for event in range(start, state[at.EVENT_END]):
        # The half of the event before is read, once all threads have left it.
        half = (event & 1) * half_size
        before = state[at.FOUND_COUNT]
        match_event(state, event, half)
        if part == 0:
            report_always(state, event, half)
        if state[at.FOUND_COUNT] > room:
            put(words, np.int64(at.STOP), event + 1)
        if parts > 1 and not meet(words, parts * (event - start + 1)):
            return at.ABORTED
        if part == 0 and state[at.ARE_INTERFACES]:
            report_marked(state, half)
        found_counts[event] = state[at.FOUND_COUNT] - before
        state[at.EVENT] = event + 1
        if look(words, np.int64(at.STOP)) == event + 1:
            return at.FULL
    return at.DONE


@inlined
def _in_shares(state: Int64) -> int:
    """Match events that no other thread has taken, until there are none."""
    words = int64s(state, at.MEETING.words)
    found_counts = int32s(state, at.WORK.found_counts)
    room = len(int32s(state, at.WORK.found)) - state[at.NEED]
    events = len(found_counts)
    while True:
        if state[at.EVENT] == state[at.EVENT_END]:
            state[at.EVENT] = min(add(words, np.int64(at.NEXT), state[at.SHARE]), events)
            state[at.EVENT_END] = min(state[at.EVENT] + state[at.SHARE], events)
            if state[at.EVENT] == events:
                return at.DONE
        event = state[at.EVENT]
        before = state[at.FOUND_COUNT]
        if before > room:
            return at.FULL
        match_event(state, event, np.int64(0))
        report_always(state, event, np.int64(0))
        if state[at.ARE_INTERFACES]:
            report_marked(state, np.int64(0))
        found_counts[event] = state[at.FOUND_COUNT] - before
        state[at.EVENT] = event + 1


@kernel
def match_events(state: Int64) -> int:
    """One thread's part of a batch, from ``EVENT`` on; what it found stays where it is."""
    return _one_after_the_other(state) if state[at.IN_STEP] else _in_shares(state)
