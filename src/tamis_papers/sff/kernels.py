"""Constraints are shared, and their filters listed.

Strings compared from their beginnings, or from their ends.

Events, one by one: which constraints their attributes satisfy, counted for their filters.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.core.kernel.table import mixed, slot_finder
from tamis.events.kernels import values as kernels
from tamis.events.model import BOOLEAN, CONTAINS, EQ, FLOAT, GE, GT, INTEGER, LE, LT, NE, STRING
from tamis_papers.sff import layout as at
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

# -- building --------------------------------------------------------------------------------------


@inlined
def _is_triple(known: tuple[Int64, Bytes, Int64, Int32], number: int, place: int) -> bool:
    groups, kinds, values, firsts = known
    first = firsts[number]
    return (
        groups[first] == groups[place]
        and values[first] == values[place]
        and kinds[first] == kinds[place]
    )


find_triple = slot_finder(_is_triple)


@kernel
def number_distinct(
    groups: Int64, kinds: Bytes, values: Int64, slots: Int32, firsts: Int32, numbers: Int32
) -> int:
    """Number triples of a group, a kind and a value, equal ones alike, in the order they come in.

    Args:
        slots: empty ones, for as many triples.
        firsts: gets the place of the first triple of each number.
        numbers: gets the number of each triple.

    Returns:
        How many numbers there are.
    """
    count = 0
    for place in range(len(groups)):
        key = U(groups[place]) << U(8) | U(kinds[place])
        hash = mixed(U(values[place]) + mixed(key))
        slot = find_triple(slots, hash, (groups, kinds, values, firsts), place)
        if slots[slot] == 0:
            firsts[count] = place
            count += 1
            slots[slot] = count
        numbers[place] = slots[slot] - 1
    return count


@kernel
def count_postings(
    starts: Int64, nodes: Int32, seen_in: Int32, posting_counts: Int64, sizes: Int32
) -> None:
    """How many filters each node has, and how many nodes each filter: equal constraints are one.

    Args:
        starts: where the constraints of each filter begin; nodes: of constraints.
        seen_in: of nodes, -1.
        posting_counts, sizes: zeros.
    """
    for filter in range(len(sizes)):
        for place in range(starts[filter], starts[filter + 1]):
            node = nodes[place]
            if seen_in[node] != filter:
                seen_in[node] = filter
                posting_counts[node] += 1
                sizes[filter] += 1


@kernel
def fill_postings(
    starts: Int64,
    nodes: Int32,
    filters: Int32,
    seen_in: Int32,
    next_posting: Int64,
    postings: Int32,
) -> None:
    """List the filters of each node, by their places.

    Args:
        starts, nodes: as above.
        filters: the filter at each place; -1 where there is none.
        seen_in: of nodes, -1.
        next_posting: where the first of each node goes; moved on.
    """
    for position in range(len(filters)):
        filter = filters[position]
        if filter >= 0:
            for place in range(starts[filter], starts[filter + 1]):
                node = nodes[place]
                if seen_in[node] != filter:
                    seen_in[node] = filter
                    postings[next_posting[node]] = position
                    next_posting[node] += 1


@kernel
def link_parts(
    part_starts: Int64,
    part_strings: Int32,
    string_starts: Int64,
    string_bytes: Bytes,
    stack: Int32,
    part_shorter: Int32,
) -> None:
    """The longest part that each part begins (or ends) with itself: it came before it.

    Args:
        stack: as long as there are parts.
    """
    for group in range(len(part_starts) - 1):
        which = group % PARTS
        if which == CONTAINED:
            continue
        depth = 0
        for part in range(part_starts[group], part_starts[group + 1]):
            string = part_strings[part]
            start, end = string_starts[string], string_starts[string + 1]
            while depth > 0:
                shorter = part_strings[stack[depth - 1]]
                first, last = string_starts[shorter], string_starts[shorter + 1]
                if last - first == in_common(
                    which == SUFFIXES, string_bytes, start, end, string_bytes, first, last
                ):
                    part_shorter[part] = stack[depth - 1]
                    break
                depth -= 1
            stack[depth] = part
            depth += 1


# -- strings ---------------------------------------------------------------------------------------


@inlined
def in_common(
    backwards: int, one: Bytes, start: int, end: int, other: Bytes, other_start: int, other_end: int
) -> int:
    """How many bytes two strings begin (or end) with alike."""
    size = min(end - start, other_end - other_start)
    alike = 0
    if backwards:
        while alike < size and one[end - 1 - alike] == other[other_end - 1 - alike]:
            alike += 1
    else:
        while alike < size and one[start + alike] == other[other_start + alike]:
            alike += 1
    return alike


@inlined
def is_behind(
    backwards: int,
    alike: int,
    one: Bytes,
    start: int,
    end: int,
    other: Bytes,
    other_start: int,
    other_end: int,
) -> bool:
    """Whether one string comes behind another one, with which it has so many bytes in common."""
    if start + alike == end:
        return False
    if other_start + alike == other_end:
        return True
    if backwards:
        return one[end - 1 - alike] > other[other_end - 1 - alike]
    return one[start + alike] > other[other_start + alike]


# -- matching --------------------------------------------------------------------------------------


order_of_numbers = inlined(kernels.order_of_numbers)
order_of_strings = inlined(kernels.order_of_strings)
has_part = called(kernels.has_part)

_COUNTER_MAX = np.iinfo(np.int32).max


@kernel
def match_events(state: Int64) -> int:
    """Match events from ``EVENT`` on; room for all that one can find is there before it begins."""
    found_starts, in_error = int64s(state, at.WORK.found_starts), uint8s(state, at.EVENTS.in_error)
    room = len(int32s(state, at.WORK.found)) - state[at.FOUND_MAX]
    for event in range(state[at.EVENT], state[at.END]):
        if state[at.FOUND_COUNT] > room:
            state[at.EVENT] = event
            return at.WORK.found
        if not in_error[event]:
            _begin(state)
            if state[at.ALWAYS] >= 0:
                _find_always(state)
            if not (state[at.PRUNES] and state[at.LEFT] == 0):
                _match_event(state, event)
        found_starts[event - state[at.FIRST] + 1] = state[at.FOUND_COUNT]
    return 0


@called
def _begin(state: Int64) -> None:
    """Nothing is counted and nobody marked, without either being cleared, but once in a while."""
    state[at.STAMP] += 1
    state[at.LEFT] = state[at.OWNERS]
    # No counter got further than to what they begin from now, which says that nothing is counted.
    state[at.BASE] += state[at.STEP]
    if state[at.BASE] > _COUNTER_MAX - state[at.STEP]:
        state[at.BASE] = 0
        counters = int32s(state, at.WORK.counters)
        for place in range(len(counters)):
            counters[place] = 0


@called
def _find(state: Int64, owner: int) -> None:
    int32s(state, at.WORK.found)[state[at.FOUND_COUNT]] = owner
    state[at.FOUND_COUNT] += 1


@called
def _find_always(state: Int64) -> None:
    """Filters without constraints match."""
    _find(state, state[at.ALWAYS])
    if state[at.PRUNES]:
        owners, marked_in = int32s(state, at.REPORTED.always), int64s(state, at.WORK.marked_in)
        for owner in owners:
            marked_in[owner] = state[at.STAMP]
        state[at.LEFT] -= len(owners)


@called
def _match_event(state: Int64, event: int) -> None:
    """Attribute by attribute, until all owners are marked."""
    starts, names = int64s(state, at.EVENTS.starts), int32s(state, at.EVENTS.names)
    kinds, values = uint8s(state, at.EVENTS.kinds), int64s(state, at.EVENTS.values)
    for place in range(starts[event], starts[event + 1]):
        name, kind, value = np.int64(names[place]), np.int64(kinds[place]), values[place]
        if _count(state, state[at.EXISTS_NODE] + name, state[at.EXISTS_NODE] + name + 1):
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
    posting_starts = int64s(state, at.INDEX.posting_starts)
    postings = int32s(state, at.INDEX.postings)
    sizes, counters = int32s(state, at.INDEX.block_sizes), int32s(state, at.WORK.counters)
    base, shift = state[at.BASE], U(state[at.SHIFT])
    start, stop = U(posting_starts[first]), U(posting_starts[end])
    if not state[at.PRUNES]:
        owners = int32s(state, at.REPORTED.owners)
        for posting in range(start, stop):
            filter = U(postings[posting])
            counter = max(np.int64(counters[filter]), base) + 1
            counters[filter] = counter
            if counter - base == sizes[filter >> shift]:
                _find(state, np.int64(owners[filter]))
        return False
    owners, marked_in = int32s(state, at.REPORTED.block_owners), int64s(state, at.WORK.marked_in)
    stamp = state[at.STAMP]
    are_marked = state[at.LEFT] < state[at.OWNERS]
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
            state[at.LEFT] -= 1
            if state[at.LEFT] == 0:
                return True
    return False


@called
def _compare(state: Int64, name: int, kind: int, value: int) -> bool:
    """Count what compares with a value; True if all owners are marked."""
    domain = CLASSES * name + (
        STRINGS if kind == STRING else BOOLEANS if kind == BOOLEAN else NUMBERS
    )
    constant_starts = int64s(state, at.INDEX.constant_starts)
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
        in_starts, in_nodes = int64s(state, at.INDEX.in_starts), int32s(state, at.INDEX.in_nodes)
        for item in range(in_starts[place], in_starts[place + 1]):
            node = np.int64(in_nodes[item])
            if _count(state, node, node + 1):
                return True
    return False


@inlined
def _place_of_number(state: Int64, first: int, end: int, kind: int, value: int) -> tuple[int, bool]:
    """The first constant that is not less than a value, and whether it is equal."""
    kinds, values = uint8s(state, at.INDEX.constant_kinds), int64s(state, at.INDEX.constant_values)
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
    event_starts = int64s(state, at.EVENTS.string_starts)
    event_bytes = uint8s(state, at.EVENTS.string_bytes)
    starts, bytes = int64s(state, at.INDEX.string_starts), uint8s(state, at.INDEX.string_bytes)
    values = int64s(state, at.INDEX.constant_values)
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
    section_starts = int64s(state, at.INDEX.section_starts)
    operators = uint8s(state, at.INDEX.section_operators)
    nodes = int64s(state, at.INDEX.section_nodes)
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
    part_starts = int64s(state, at.INDEX.part_starts)
    group = PARTS * name + which
    group_start, end = part_starts[group], part_starts[group + 1]
    if group_start == end:
        return False
    strings, shorter = int32s(state, at.INDEX.part_strings), int32s(state, at.INDEX.part_shorter)
    starts, bytes = int64s(state, at.INDEX.string_starts), uint8s(state, at.INDEX.string_bytes)
    event_starts = int64s(state, at.EVENTS.string_starts)
    event_bytes = uint8s(state, at.EVENTS.string_bytes)
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
            node = state[at.PART_NODE] + part
            if _count(state, node, node + 1):
                return True
        part = np.int64(shorter[part])
    return False


@called
def _count_contained(state: Int64, name: int, value: int) -> bool:
    """Count what a string contains, having looked for each; True if all owners are marked."""
    part_starts, strings = int64s(state, at.INDEX.part_starts), int32s(state, at.INDEX.part_strings)
    starts, bytes = int64s(state, at.INDEX.string_starts), uint8s(state, at.INDEX.string_bytes)
    event_starts = int64s(state, at.EVENTS.string_starts)
    event_bytes = uint8s(state, at.EVENTS.string_bytes)
    start, stop = event_starts[value], event_starts[value + 1]
    group = PARTS * name + CONTAINED
    for part in range(part_starts[group], part_starts[group + 1]):
        part_start, part_end = starts[strings[part]], starts[strings[part] + 1]
        if has_part(CONTAINS, event_bytes, start, stop, bytes, part_start, part_end):
            node = state[at.PART_NODE] + part
            if _count(state, node, node + 1):
                return True
    return False
