"""Strings of nodes: the leaves that they make true, and the tests of steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int64
from tamis.core.kernel import called, inlined
from tamis.core.kernel.record import float64s, int32s, int64s, uint8s
from tamis.core.kernel.text import parse_number
from tamis.transform.shapes import ATTRIBUTE, VALUE
from tamis.transform.strings.kernels.events import parent_of_text
from tamis.transform.strings.kernels.tables import hash_of_number, hash_of_text, next_slot
from tamis.transform.strings.layout import (
    COMPARISON,
    COMPARISON_KIND,
    COMPARISON_NAME,
    COMPARISON_OPERATOR,
    COMPARISON_TEXT,
    COMPARISON_TEXT_END,
    CONSTANTS,
    EQUAL,
    EXISTS,
    FULL,
    LEAF,
    LEAF_NEXT,
    LEAF_SOURCE,
    LEAF_TEXT,
    LEAF_TEXT_END,
    LESS,
    LESS_EQUAL,
    MORE,
    MORE_EQUAL,
    NO_ROOM,
    NODES,
    NONE,
    ODD_FOUND,
    ODD_KNOWN,
    READ,
    SOURCE,
    SOURCE_EXISTS,
    SOURCE_KIND,
    SOURCE_NAME,
    SOURCE_NUMBERS,
    SOURCE_RANGES,
    SOURCE_TEXTS,
    SOURCE_UNEQUAL,
    UNEQUAL,
)

Float64 = NDArray[np.float64]


@inlined
def is_same(one: Bytes, start: int, end: int, other: Bytes, first: int, last: int) -> bool:
    """Whether two strings are equal."""
    if end - start != last - first:
        return False
    for place in range(end - start):  # noqa: SIM110 - Numba has no all()
        if one[start + place] != other[first + place]:
            return False
    return True


# -- the strings of an end -------------------------------------------------------------------------


@called
def first_string(state: Int64, kind: int, event: int) -> int:
    """Where the strings of an element begin: the number of its first attribute or text node."""
    if kind == ATTRIBUTE:
        return int64s(state, NODES.attributes_from)[event]
    return int64s(state, NODES.texts_from)[event]


@called
def next_string(state: Int64, kind: int, name: int, event: int, number: int) -> int:
    """The first string from a number on that is of the end, or ``NONE``.

    Of the element itself (``VALUE``) there is one, whatever its number.
    """
    if kind == VALUE:
        return number
    if kind == ATTRIBUTE:
        last = int64s(state, NODES.attributes_from)[event + 1]
        names = int32s(state, READ.attribute_name)
        while number < last and name >= 0 and names[number] != name:
            number += 1
        return number if number < last else NONE
    last = int64s(state, NODES.texts_from)[int64s(state, NODES.ends)[event]]
    while number < last and parent_of_text(state, number) != event:
        number += 1
    return number if number < last else NONE


@called
def string_start(state: Int64, kind: int, event: int, number: int) -> int:
    """Where a string begins in its buffer."""
    if kind == ATTRIBUTE:
        return int64s(state, READ.value_start)[number]
    if kind == VALUE:
        number = int64s(state, NODES.texts_from)[event]
        if number == int64s(state, NODES.texts_from)[int64s(state, NODES.ends)[event]]:
            return 0  # it has no text
    return int64s(state, READ.text_start)[number]


@called
def string_end(state: Int64, kind: int, event: int, number: int) -> int:
    """Where a string ends in its buffer."""
    if kind == ATTRIBUTE:
        return int64s(state, READ.value_end)[number]
    if kind == VALUE:
        number = int64s(state, NODES.texts_from)[int64s(state, NODES.ends)[event]] - 1
        if number < int64s(state, NODES.texts_from)[event]:
            return 0
    return int64s(state, READ.text_end)[number]


@inlined
def buffer_of(kind: int) -> int:
    """The place of the buffer that strings are in."""
    return READ.attribute_values if kind == ATTRIBUTE else READ.text_values


@called
def name_of(state: Int64, name: int) -> int:
    """The vocabulary's id of the name of attributes; ``NONE`` is any, and -2 one of no document."""
    if name < 0:
        return NONE
    found = np.int64(int32s(state, READ.names)[name])
    return found if found >= 0 else -2


# -- leaves ----------------------------------------------------------------------------------------


@called
def find_leaves(state: Int64, source: int, event: int) -> int:
    """List the leaves of a source that an element makes true: how many, or a status, negated."""
    sources = int32s(state, CONSTANTS.sources)
    row = source * SOURCE
    kind, name = np.int64(sources[row + SOURCE_KIND]), np.int64(sources[row + SOURCE_NAME])
    name = name_of(state, name)
    if name == -2:
        return 0
    found = 0
    number = next_string(state, kind, name, event, first_string(state, kind, event))
    while number != NONE:
        start = string_start(state, kind, event, number)
        end = string_end(state, kind, event, number)
        found = add_leaves(state, source, found, buffer_of(kind), start, end)
        if found < 0 or kind == VALUE:
            return found
        number = next_string(state, kind, name, event, number + 1)
    return found


@called
def add_leaves(state: Int64, source: int, found: int, buffer: int, start: int, end: int) -> int:
    """Append the leaves that a string makes true: how many there are, or a status, negated."""
    sources = int32s(state, CONSTANTS.sources)
    row = source * SOURCE
    leaf = np.int64(sources[row + SOURCE_EXISTS])
    if leaf >= 0:
        found = push(state, found, leaf)
    if found >= 0 and sources[row + SOURCE_TEXTS] > 0:
        found = add_equal_text(state, source, found, buffer, start, end)
    asks_number = sources[row + SOURCE_NUMBERS] > 0
    for operator in range(4):
        asks_number |= sources[row + SOURCE_RANGES + operator] >= 0
    if found >= 0 and asks_number:
        found = add_numbers(state, source, found, buffer, start, end)
    unequal = np.int64(sources[row + SOURCE_UNEQUAL])
    if found >= 0 and unequal >= 0:
        found = add_unequal(state, unequal, found, buffer, start, end)
    return found


@called
def add_numbers(state: Int64, source: int, found: int, buffer: int, start: int, end: int) -> int:
    """Append the leaves that a string makes true as a number: see ``add_leaves``."""
    sources = int32s(state, CONSTANTS.sources)
    row = source * SOURCE
    if not read_number(state, buffer, start, end):
        return -NO_ROOM
    value = float64s(state, NODES.number)[0]
    if np.isnan(value):
        return found
    if sources[row + SOURCE_NUMBERS] > 0:
        found = add_equal_number(state, source, found, value)
    for operator in range(4):
        range_ = np.int64(sources[row + SOURCE_RANGES + operator])
        if range_ >= 0 and found >= 0:
            found = add_range(state, found, range_, operator, value)
    return found


@called
def add_unequal(state: Int64, leaf: int, found: int, buffer: int, start: int, end: int) -> int:
    """Append the leaves of a chain that ask for a difference: see ``add_leaves``."""
    leaves, texts = int32s(state, CONSTANTS.leaves), uint8s(state, CONSTANTS.texts)
    is_read, value = False, np.nan
    while found >= 0 and leaf >= 0:
        row = leaf * LEAF
        first, last = leaves[row + LEAF_TEXT], leaves[row + LEAF_TEXT_END]
        if first >= 0:
            differs = not is_same(uint8s(state, buffer), start, end, texts, first, last)
        else:
            if not is_read:
                if not read_number(state, buffer, start, end):
                    return -NO_ROOM
                is_read, value = True, float64s(state, NODES.number)[0]
            differs = value != float64s(state, CONSTANTS.literals)[leaf]
        if differs:
            found = push(state, found, leaf)
        leaf = np.int64(leaves[row + LEAF_NEXT])
    return found


@called
def push(state: Int64, found: int, leaf: int) -> int:
    """Append a leaf: how many there are, or a status, negated."""
    leaves = int32s(state, NODES.found_leaves)
    if found == len(leaves):
        state[FULL] = NODES.found_leaves
        return -NO_ROOM
    leaves[found] = leaf
    return found + 1


@called
def add_equal_text(state: Int64, source: int, found: int, buffer: int, start: int, end: int) -> int:
    """Append the leaf that compares with this string, if there is one."""
    table, leaves = int64s(state, CONSTANTS.equals), int32s(state, CONSTANTS.leaves)
    values, texts = uint8s(state, buffer), uint8s(state, CONSTANTS.texts)
    hash = hash_of_text(values, start, end, source)
    slot = next_slot(table, hash, NONE)
    while table[2 * slot] != 0:
        leaf = table[2 * slot + 1]
        row = leaf * LEAF
        first, last = leaves[row + LEAF_TEXT], leaves[row + LEAF_TEXT_END]
        if (
            leaves[row + LEAF_SOURCE] == source
            and first >= 0
            and is_same(values, start, end, texts, first, last)
        ):
            return push(state, found, leaf)
        slot = next_slot(table, hash, slot)
    return found


@called
def add_equal_number(state: Int64, source: int, found: int, value: np.float64) -> int:
    """Append the leaf that compares with this number, if there is one."""
    table, leaves = int64s(state, CONSTANTS.equals), int32s(state, CONSTANTS.leaves)
    literals = float64s(state, CONSTANTS.literals)
    number = float64s(state, NODES.number)
    number[0] = value + 0.0  # there is one zero
    hash = hash_of_number(int64s(state, NODES.number)[0], source)
    slot = next_slot(table, hash, NONE)
    while table[2 * slot] != 0:
        leaf = table[2 * slot + 1]
        row = leaf * LEAF
        if (
            leaves[row + LEAF_SOURCE] == source
            and leaves[row + LEAF_TEXT] < 0
            and literals[leaf] == value
        ):
            return push(state, found, leaf)
        slot = next_slot(table, hash, slot)
    return found


@called
def add_range(state: Int64, found: int, range_: int, operator: int, value: np.float64) -> int:
    """Append the leaves of a range of thresholds that a number satisfies."""
    thresholds = float64s(state, CONSTANTS.thresholds)
    leaves = int32s(state, CONSTANTS.range_leaves)
    start = int64s(state, CONSTANTS.range_starts)[range_]
    end = start + int64s(state, CONSTANTS.range_counts)[range_]
    low, high = start, end  # of the first threshold that is above, or not below
    is_strict = operator in (LESS - LESS, MORE_EQUAL - LESS)
    while low < high:
        middle = (low + high) // 2
        if thresholds[middle] < value or (is_strict and thresholds[middle] == value):
            low = middle + 1
        else:
            high = middle
    if operator >= MORE - LESS:
        end = low
    else:
        start = low
    for place in range(start, end):
        found = push(state, found, np.int64(leaves[place]))
        if found < 0:
            return found
    return found


# -- numbers ---------------------------------------------------------------------------------------


@called
def read_number(state: Int64, buffer: int, start: int, end: int) -> bool:
    """Leave a string, as a number, in ``NODES.number``; False if there is no room.

    One of so many digits that only Python reads it is NaN, until Python has read it.
    """
    number = float64s(state, NODES.number)
    if parse_number(uint8s(state, buffer), start, end, number):
        return True
    key = 2 * start + (buffer == READ.attribute_values)
    known, values = int64s(state, NODES.odd_known), float64s(state, NODES.odd_values)
    low, high = 0, state[ODD_KNOWN]
    while low < high:
        middle = (low + high) // 2
        if known[2 * middle] < key or (known[2 * middle] == key and known[2 * middle + 1] < end):
            low = middle + 1
        else:
            high = middle
    if low < state[ODD_KNOWN] and known[2 * low] == key and known[2 * low + 1] == end:
        number[0] = values[low]
        return True
    return note_odd(state, key, end)


@called
def note_odd(state: Int64, key: int, end: int) -> bool:
    """Have Python read a number; False if there is no room to note it."""
    found, used = int64s(state, NODES.odd_found), state[ODD_FOUND]
    float64s(state, NODES.number)[0] = np.nan
    if 2 * used == len(found):
        state[FULL] = NODES.odd_found
        return False
    found[2 * used], found[2 * used + 1] = key, end
    state[ODD_FOUND] = used + 1
    return True


# -- tests of steps --------------------------------------------------------------------------------


@called
def node_passes(state: Int64, event: int, tests: int) -> int:
    """Whether a node passes the tests of one step: 1, 0, or a status, negated."""
    listed = int32s(state, CONSTANTS.tests)
    found = 1
    while found == 1 and listed[tests] != NONE:
        found = holds(state, np.int64(listed[tests]), event)
        tests += 1
    return found


@called
def tests_before(state: Int64, tests: int) -> int:
    """Where the tests of the step before begin."""
    listed = int32s(state, CONSTANTS.tests)
    while listed[tests] != NONE:
        tests += 1
    return tests + 1


@called
def holds(state: Int64, comparison: int, event: int) -> int:
    """Whether a comparison is true of an element: 1, 0, or a status, negated."""
    comparisons = int32s(state, CONSTANTS.comparisons)
    row = comparison * COMPARISON
    kind = np.int64(comparisons[row + COMPARISON_KIND])
    name = name_of(state, np.int64(comparisons[row + COMPARISON_NAME]))
    if name == -2:
        return 0
    number = next_string(state, kind, name, event, first_string(state, kind, event))
    while number != NONE:
        start = string_start(state, kind, event, number)
        end = string_end(state, kind, event, number)
        found = compares(state, comparison, buffer_of(kind), start, end)
        if found != 0 or kind == VALUE:
            return found
        number = next_string(state, kind, name, event, number + 1)
    return 0


@called
def compares(state: Int64, comparison: int, buffer: int, start: int, end: int) -> int:
    """Whether a string compares so: 1, 0, or a status, negated."""
    comparisons = int32s(state, CONSTANTS.comparisons)
    row = comparison * COMPARISON
    operator = np.int64(comparisons[row + COMPARISON_OPERATOR])
    if operator == EXISTS:
        return 1
    values = uint8s(state, buffer)
    first = np.int64(comparisons[row + COMPARISON_TEXT])
    if first >= 0:
        last = np.int64(comparisons[row + COMPARISON_TEXT_END])
        is_equal = is_same(values, start, end, uint8s(state, CONSTANTS.texts), first, last)
        return np.int64(is_equal == (operator == EQUAL))
    if not read_number(state, buffer, start, end):
        return -NO_ROOM
    value = float64s(state, NODES.number)[0]
    literal = float64s(state, CONSTANTS.comparison_literals)[comparison]
    if operator == EQUAL:
        return np.int64(value == literal)
    if operator == UNEQUAL:
        return np.int64(value != literal)
    if operator == LESS:
        return np.int64(value < literal)
    if operator == LESS_EQUAL:
        return np.int64(value <= literal)
    if operator == MORE:
        return np.int64(value > literal)
    return np.int64(value >= literal)
