"""Events, one by one: which constraints their attributes satisfy, counted for their filters."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.events import kernels
from tamis.events.model import BOOLEAN, CONTAINS, EQ, FLOAT, GE, GT, INTEGER, LE, LT, NE, STRING
from tamis_papers.sff.kernels.strings import in_common, is_behind
from tamis_papers.sff.layout import (
    ALWAYS,
    BASE,
    DONE,
    END,
    EVENT,
    EVENTS,
    EXISTS_NODE,
    FIRST,
    FOUND_COUNT,
    FOUND_MAX,
    FULL_FOUND,
    INDEX,
    LEFT,
    OWNERS,
    PART_NODE,
    PRUNES,
    REPORTED,
    SHIFT,
    STAMP,
    STEP,
    WORK,
)
from tamis_papers.sff.program import (
    BOOLEANS,
    CLASSES,
    CONTAINED,
    NUMBERS,
    PARTS,
    PREFIXES,
    STRINGS,
    SUFFIXES,
)

order_of_numbers = inlined(kernels.order_of_numbers)
order_of_strings = inlined(kernels.order_of_strings)
has_part = called(kernels.has_part)

_COUNTER_MAX = np.iinfo(np.int32).max


@kernel
def match_events(state: Int64) -> int:
    """Match events from ``EVENT`` on; room for all that one can find is there before it begins."""
    found_starts, in_error = int64s(state, WORK.found_starts), uint8s(state, EVENTS.in_error)
    room = len(int32s(state, WORK.found)) - state[FOUND_MAX]
    for event in range(state[EVENT], state[END]):
        if state[FOUND_COUNT] > room:
            state[EVENT] = event
            return FULL_FOUND
        if not in_error[event]:
            _begin(state)
            if state[ALWAYS] >= 0:
                _find_always(state)
            if not (state[PRUNES] and state[LEFT] == 0):
                _match_event(state, event)
        found_starts[event - state[FIRST] + 1] = state[FOUND_COUNT]
    return DONE


@called
def _begin(state: Int64) -> None:
    """Nothing is counted and nobody marked, without either being cleared, but once in a while."""
    state[STAMP] += 1
    state[LEFT] = state[OWNERS]
    # No counter got further than to what they begin from now, which says that nothing is counted.
    state[BASE] += state[STEP]
    if state[BASE] > _COUNTER_MAX - state[STEP]:
        state[BASE] = 0
        counters = int32s(state, WORK.counters)
        for place in range(len(counters)):
            counters[place] = 0


@called
def _find(state: Int64, owner: int) -> None:
    int32s(state, WORK.found)[state[FOUND_COUNT]] = owner
    state[FOUND_COUNT] += 1


@called
def _find_always(state: Int64) -> None:
    """Filters without constraints match."""
    _find(state, state[ALWAYS])
    if state[PRUNES]:
        owners, marked_in = int32s(state, REPORTED.always), int64s(state, WORK.marked_in)
        for owner in owners:
            marked_in[owner] = state[STAMP]
        state[LEFT] -= len(owners)


@called
def _match_event(state: Int64, event: int) -> None:
    """Attribute by attribute, until all owners are marked."""
    starts, names = int64s(state, EVENTS.starts), int32s(state, EVENTS.names)
    kinds, values = uint8s(state, EVENTS.kinds), int64s(state, EVENTS.values)
    for place in range(starts[event], starts[event + 1]):
        name, kind, value = np.int64(names[place]), np.int64(kinds[place]), values[place]
        if _count(state, state[EXISTS_NODE] + name, state[EXISTS_NODE] + name + 1):
            return
        if _compare(state, name, kind, value):
            return
        if kind == STRING:
            for which in (PREFIXES, SUFFIXES):
                if _count_parts(state, name, which, value):
                    return
            if _count_contained(state, name, value):
                return


@called
def _count(state: Int64, first: int, end: int) -> bool:
    """Count the constraints of nodes as satisfied; True if all owners are marked.

    The nodes follow each other, and so do their filters. Unsigned numbers are no places counted
    from the end, which would be asked each time.
    """
    posting_starts, postings = int64s(state, INDEX.posting_starts), int32s(state, INDEX.postings)
    sizes, counters = int32s(state, INDEX.block_sizes), int32s(state, WORK.counters)
    base, shift = state[BASE], U(state[SHIFT])
    start, stop = U(posting_starts[first]), U(posting_starts[end])
    if not state[PRUNES]:
        owners = int32s(state, REPORTED.owners)
        for posting in range(start, stop):
            filter = U(postings[posting])
            counter = max(np.int64(counters[filter]), base) + 1
            counters[filter] = counter
            if counter - base == sizes[filter >> shift]:
                _find(state, np.int64(owners[filter]))
        return False
    owners, marked_in = int32s(state, REPORTED.block_owners), int64s(state, WORK.marked_in)
    stamp = state[STAMP]
    are_marked = state[LEFT] < state[OWNERS]
    for posting in range(start, stop):
        filter = U(postings[posting])
        block = filter >> shift
        if are_marked and marked_in[U(owners[block])] == stamp:
            continue
        counter = max(np.int64(counters[filter]), base) + 1
        counters[filter] = counter
        if counter - base == sizes[block]:
            owner = np.int64(owners[block])
            _find(state, owner)
            marked_in[owner] = stamp
            are_marked = True
            state[LEFT] -= 1
            if state[LEFT] == 0:
                return True
    return False


@called
def _compare(state: Int64, name: int, kind: int, value: int) -> bool:
    """Count what compares with a value; True if all owners are marked."""
    domain = CLASSES * name + (
        STRINGS if kind == STRING else BOOLEANS if kind == BOOLEAN else NUMBERS
    )
    constant_starts = int64s(state, INDEX.constant_starts)
    first, end = constant_starts[domain], constant_starts[domain + 1]
    if first == end:
        return False
    if kind == FLOAT and np.isnan(np.int64(value).view(np.float64)):
        return _count_sections(state, domain, end - first, end - first, False, True)
    if kind == STRING:
        place, is_equal = _place_of_string(state, first, end, value)
    else:
        place, is_equal = _place_of_number(state, first, end, kind, value)
    if _count_sections(state, domain, place - first, end - first, is_equal, False):
        return True
    if is_equal:
        in_starts, in_nodes = int64s(state, INDEX.in_starts), int32s(state, INDEX.in_nodes)
        for item in range(in_starts[place], in_starts[place + 1]):
            node = np.int64(in_nodes[item])
            if _count(state, node, node + 1):
                return True
    return False


@inlined
def _place_of_number(state: Int64, first: int, end: int, kind: int, value: int) -> tuple[int, bool]:
    """The first constant that is not less than a value, and whether it is equal."""
    kinds, values = uint8s(state, INDEX.constant_kinds), int64s(state, INDEX.constant_values)
    # Booleans are compared as if they were integers.
    kind = FLOAT if kind == FLOAT else INTEGER
    while first < end:
        middle = (first + end) >> 1
        constant_kind = FLOAT if kinds[middle] == FLOAT else INTEGER
        order = order_of_numbers(kind, value, constant_kind, values[middle])
        if order == 0:
            return middle, True
        if order > 0:
            first = middle + 1
        else:
            end = middle
    return first, False


@inlined
def _place_of_string(state: Int64, first: int, end: int, value: int) -> tuple[int, bool]:
    """The first constant that is not less than a string, and whether it is equal."""
    event_starts, event_bytes = (
        int64s(state, EVENTS.string_starts),
        uint8s(state, EVENTS.string_bytes),
    )
    starts, bytes = int64s(state, INDEX.string_starts), uint8s(state, INDEX.string_bytes)
    values = int64s(state, INDEX.constant_values)
    while first < end:
        middle = (first + end) >> 1
        constant = values[middle]
        order = order_of_strings(
            event_bytes,
            event_starts[value],
            event_starts[value + 1],
            bytes,
            starts[constant],
            starts[constant + 1],
        )
        if order == 0:
            return middle, True
        if order > 0:
            first = middle + 1
        else:
            end = middle
    return first, False


@inlined
def _count_sections(
    state: Int64, domain: int, place: int, size: int, is_equal: bool, is_nan: bool
) -> bool:
    """Count, of each operator, the nodes of those constants that satisfy it: runs of them.

    Args:
        place: of the first constant that is not less; size: how many constants there are.
    """
    section_starts = int64s(state, INDEX.section_starts)
    operators, nodes = uint8s(state, INDEX.section_operators), int64s(state, INDEX.section_nodes)
    behind = place + 1 if is_equal else place
    for section in range(section_starts[domain], section_starts[domain + 1]):
        operator, node = operators[section], nodes[section]
        from_place, to_place = 0, 0
        if is_nan:
            to_place = size if operator == NE else 0
        elif operator == EQ:
            from_place, to_place = place, behind
        elif operator == NE:
            if _count(state, node, node + place):
                return True
            from_place, to_place = behind, size
        elif operator == LT:
            from_place, to_place = behind, size
        elif operator == LE:
            from_place, to_place = place, size
        elif operator == GT:
            to_place = place
        elif operator == GE:
            to_place = behind
        if _count(state, node + from_place, node + to_place):
            return True
    return False


@called
def _count_parts(state: Int64, name: int, which: int, value: int) -> bool:
    """Count what a string begins (or ends) with; True if all owners are marked.

    All these parts begin the last part that is not behind the string, too, if it is not one itself.
    """
    part_starts = int64s(state, INDEX.part_starts)
    group = PARTS * name + which
    group_start, end = part_starts[group], part_starts[group + 1]
    if group_start == end:
        return False
    strings, shorter = int32s(state, INDEX.part_strings), int32s(state, INDEX.part_shorter)
    starts, bytes = int64s(state, INDEX.string_starts), uint8s(state, INDEX.string_bytes)
    event_starts = int64s(state, EVENTS.string_starts)
    event_bytes = uint8s(state, EVENTS.string_bytes)
    start, stop = event_starts[value], event_starts[value + 1]
    backwards = which == SUFFIXES
    first, part, most = group_start, np.int64(-1), 0
    while first < end:
        middle = (first + end) >> 1
        part_start, part_end = starts[strings[middle]], starts[strings[middle] + 1]
        alike = in_common(backwards, event_bytes, start, stop, bytes, part_start, part_end)
        if is_behind(backwards, alike, bytes, part_start, part_end, event_bytes, start, stop):
            end = middle
        else:
            first, part, most = middle + 1, middle, alike
    while part >= 0:
        if starts[strings[part] + 1] - starts[strings[part]] <= most:
            node = state[PART_NODE] + part
            if _count(state, node, node + 1):
                return True
        part = np.int64(shorter[part])
    return False


@called
def _count_contained(state: Int64, name: int, value: int) -> bool:
    """Count what a string contains, having looked for each; True if all owners are marked."""
    part_starts, strings = int64s(state, INDEX.part_starts), int32s(state, INDEX.part_strings)
    starts, bytes = int64s(state, INDEX.string_starts), uint8s(state, INDEX.string_bytes)
    event_starts = int64s(state, EVENTS.string_starts)
    event_bytes = uint8s(state, EVENTS.string_bytes)
    start, stop = event_starts[value], event_starts[value + 1]
    group = PARTS * name + CONTAINED
    for part in range(part_starts[group], part_starts[group + 1]):
        part_start, part_end = starts[strings[part]], starts[strings[part] + 1]
        if has_part(CONTAINS, event_bytes, start, stop, bytes, part_start, part_end):
            node = state[PART_NODE] + part
            if _count(state, node, node + 1):
                return True
    return False
