"""Kernels about strings, which strategies share: strings of nodes, and the leaves they make true.

Functions that return a number or a truth value return a status negated where an array is full.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.record import float64s, int32s, int64s, uint8s
from tamis.core.kernel.table import GOLDEN, find_pair, mixed, prober
from tamis.core.kernel.text import hash_bytes, parse_number, same_bytes
from tamis.transform import layout as at
from tamis.transform.layout import CONSTANTS, DONE, NODES, NONE, READ
from tamis.transform.shapes import ATTRIBUTE, VALUE

# -- keys of tables --------------------------------------------------------------------------------


@inlined
def text_key(values: Bytes, start: int, end: int, source: int) -> int:
    """A hash of a string and a source; not 0."""
    return np.int64(hash_bytes(values, start, end, mixed(U(source)) | U(1)) | U(1))


@called
def number_key(bits: int, source: int) -> int:
    """A hash of a number, by its bits, and a source; not 0."""
    return np.int64(mixed(mixed(U(bits)) ^ U(source) + GOLDEN) | U(1))


@kernel
def key_of_text(values: Bytes, source: int) -> int:
    """``text_key`` for Python."""
    return text_key(values, 0, len(values), source)


@kernel
def key_of_number(bits: int, source: int) -> int:
    """``number_key`` for Python."""
    return number_key(bits, source)


@kernel
def put_pair(table: Int64, key: int, value: int) -> int:
    """The value of a key in a pair table; of a new key, for which there is room, ``value``."""
    index = find_pair(table, key)
    if table[index] != key:
        table[index], table[index + 1] = key, value
    return table[index + 1]


@inlined
def _is_stamped(table: tuple[Int64, int], slot: np.uint64, searched: tuple[int, int]) -> bool:
    (numbers, width), (key, stamp) = table, searched
    index = np.int64(slot) * width
    return numbers[index + 1] != stamp or numbers[index] == key


_find_stamped = prober(_is_stamped)


@inlined
def find_stamped(table: Int64, width: int, key: int, stamp: int) -> int:
    """The index of a key in a table of ``width`` numbers a slot, or where it would be.

    A slot begins with the key and the stamp of who put it; slots with another stamp are empty. So a
    table is emptied by taking a new stamp, whatever its size.
    """
    hash = U(key) * GOLDEN
    slot = _find_stamped(len(table) // width, hash ^ hash >> U(32), (table, width), (key, stamp))
    return np.int64(slot) * width


# -- the tree --------------------------------------------------------------------------------------


@called
def index_events(state: Int64) -> None:
    """Fill the first arrays of ``Nodes``, in one walk with a stack of open elements."""
    tags = int32s(state, READ.tags)
    attribute_event = int64s(state, READ.attribute_event)
    text_event = int64s(state, READ.text_event)
    ends, parents = int64s(state, NODES.ends), int64s(state, NODES.parents)
    attributes_from = int64s(state, NODES.attributes_from)
    texts_from, stack = int64s(state, NODES.texts_from), int64s(state, NODES.stack)
    state[at.LONG_FOUND] = 0
    depth = attribute = text = 0
    for event in range(state[at.EVENTS]):
        attributes_from[event], texts_from[event] = attribute, text
        while attribute < len(attribute_event) and attribute_event[attribute] == event:
            attribute += 1
        while text < len(text_event) and text_event[text] == event:
            text += 1
        if tags[event] < 0:
            depth -= 1
            ends[stack[depth]] = event
        parents[event] = stack[depth - 1] if depth > 0 else NONE
        if tags[event] >= 0:
            stack[depth] = event
            depth += 1
    attributes_from[state[at.EVENTS]], texts_from[state[at.EVENTS]] = attribute, text


@called
def parent_of_text(state: Int64, text: int) -> int:
    """The element that a text node is a child of."""
    event = int64s(state, READ.text_event)[text]
    return event if int32s(state, READ.tags)[event] >= 0 else int64s(state, NODES.parents)[event]


# -- the strings of an end -------------------------------------------------------------------------


@called
def first_string(state: Int64, kind: int, event: int) -> int:
    """The number of an element's first attribute or text node."""
    if kind == ATTRIBUTE:
        return int64s(state, NODES.attributes_from)[event]
    return int64s(state, NODES.texts_from)[event]


@called
def next_string(state: Int64, kind: int, name: int, event: int, number: int) -> int:
    """The first string from a number on that is of the end, or ``NONE``.

    An element itself (``VALUE``) has one string, whatever its number.
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
    """The start of a string in its buffer."""
    if kind == ATTRIBUTE:
        return int64s(state, READ.value_start)[number]
    if kind == VALUE:
        number = int64s(state, NODES.texts_from)[event]
        if number == int64s(state, NODES.texts_from)[int64s(state, NODES.ends)[event]]:
            return 0  # it has no text
    return int64s(state, READ.text_start)[number]


@called
def string_end(state: Int64, kind: int, event: int, number: int) -> int:
    """The end of a string in its buffer."""
    if kind == ATTRIBUTE:
        return int64s(state, READ.value_end)[number]
    if kind == VALUE:
        number = int64s(state, NODES.texts_from)[int64s(state, NODES.ends)[event]] - 1
        if number < int64s(state, NODES.texts_from)[event]:
            return 0
    return int64s(state, READ.text_end)[number]


@inlined
def buffer_of(kind: int) -> int:
    """The field of the buffer that strings are in."""
    return READ.attribute_values if kind == ATTRIBUTE else READ.text_values


@called
def name_of(state: Int64, name: int) -> int:
    """The vocabulary's id of the name of attributes; ``NONE`` for any, ``NO_NAME`` for none."""
    if name < 0:
        return NONE
    found = np.int64(int32s(state, READ.names)[name])
    return found if found >= 0 else at.NO_NAME


# -- leaves ----------------------------------------------------------------------------------------


@called
def find_leaves(state: Int64, source: int, event: int) -> int:
    """List the leaves of a source that an element makes true: how many."""
    sources = int32s(state, CONSTANTS.sources)
    row = source * at.SOURCE
    kind = np.int64(sources[row + at.SOURCE_KIND])
    name = name_of(state, np.int64(sources[row + at.SOURCE_NAME]))
    if name == at.NO_NAME:
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
    """Append the leaves that a string makes true to those found so far: how many there are."""
    sources = int32s(state, CONSTANTS.sources)
    row = source * at.SOURCE
    leaf = np.int64(sources[row + at.SOURCE_EXISTS])
    if leaf >= 0:
        found = push(state, found, leaf)
    if found >= 0 and sources[row + at.SOURCE_TEXTS] > 0:
        found = add_equal_text(state, source, found, buffer, start, end)
    is_number_asked = sources[row + at.SOURCE_NUMBERS] > 0
    for operator in range(4):
        is_number_asked |= sources[row + at.SOURCE_RANGES + operator] >= 0
    if found >= 0 and is_number_asked:
        found = add_numbers(state, source, found, buffer, start, end)
    unequal = np.int64(sources[row + at.SOURCE_UNEQUAL])
    if found >= 0 and unequal >= 0:
        found = add_unequal(state, unequal, found, buffer, start, end)
    return found


@called
def add_numbers(state: Int64, source: int, found: int, buffer: int, start: int, end: int) -> int:
    """Append the leaves that a string makes true as a number: see ``add_leaves``."""
    sources = int32s(state, CONSTANTS.sources)
    row = source * at.SOURCE
    status = read_number(state, buffer, start, end)
    if status != DONE:
        return -status
    value = float64s(state, NODES.number)[0]
    if np.isnan(value):
        return found
    if sources[row + at.SOURCE_NUMBERS] > 0:
        found = add_equal_number(state, source, found, value)
    for operator in range(4):
        range_ = np.int64(sources[row + at.SOURCE_RANGES + operator])
        if range_ >= 0 and found >= 0:
            found = add_range(state, found, range_, operator, value)
    return found


@called
def add_unequal(state: Int64, leaf: int, found: int, buffer: int, start: int, end: int) -> int:
    """Append the leaves of a chain that ask for a difference: see ``add_leaves``."""
    leaves, texts = int32s(state, CONSTANTS.leaves), uint8s(state, CONSTANTS.texts)
    is_read, value = False, np.nan
    while found >= 0 and leaf >= 0:
        row = leaf * at.LEAF
        first, last = leaves[row + at.LEAF_TEXT], leaves[row + at.LEAF_TEXT_END]
        if first >= 0:
            differs = not same_bytes(uint8s(state, buffer), start, end, texts, first, last)
        else:
            if not is_read:
                status = read_number(state, buffer, start, end)
                if status != DONE:
                    return -status
                is_read, value = True, float64s(state, NODES.number)[0]
            differs = value != float64s(state, CONSTANTS.literals)[leaf]
        if differs:
            found = push(state, found, leaf)
        leaf = np.int64(leaves[row + at.LEAF_NEXT])
    return found


@called
def push(state: Int64, found: int, leaf: int) -> int:
    """Append a leaf: how many there are."""
    leaves = int32s(state, NODES.found_leaves)
    if found == len(leaves):
        return -NODES.found_leaves
    leaves[found] = leaf
    return found + 1


@called
def add_equal_text(state: Int64, source: int, found: int, buffer: int, start: int, end: int) -> int:
    """Append the leaf that compares with this string, if there is one."""
    table, leaves = int64s(state, CONSTANTS.equals), int32s(state, CONSTANTS.leaves)
    values, texts = uint8s(state, buffer), uint8s(state, CONSTANTS.texts)
    key = text_key(values, start, end, source)
    index = find_pair(table, key)
    leaf = table[index + 1] if table[index] == key else np.int64(NONE)
    while leaf >= 0:
        row = leaf * at.LEAF
        first, last = leaves[row + at.LEAF_TEXT], leaves[row + at.LEAF_TEXT_END]
        is_asked = leaves[row + at.LEAF_SOURCE] == source and first >= 0
        if is_asked and same_bytes(values, start, end, texts, first, last):
            return push(state, found, leaf)
        leaf = np.int64(leaves[row + at.LEAF_NEXT])
    return found


@called
def add_equal_number(state: Int64, source: int, found: int, value: np.float64) -> int:
    """Append the leaf that compares with this number, if there is one."""
    table, leaves = int64s(state, CONSTANTS.equals), int32s(state, CONSTANTS.leaves)
    literals = float64s(state, CONSTANTS.literals)
    float64s(state, NODES.number)[0] = value + 0.0  # there is one zero
    key = number_key(int64s(state, NODES.number)[0], source)
    index = find_pair(table, key)
    leaf = table[index + 1] if table[index] == key else np.int64(NONE)
    while leaf >= 0:
        row = leaf * at.LEAF
        is_asked = leaves[row + at.LEAF_SOURCE] == source and leaves[row + at.LEAF_TEXT] < 0
        if is_asked and literals[leaf] == value:
            return push(state, found, leaf)
        leaf = np.int64(leaves[row + at.LEAF_NEXT])
    return found


@called
def add_range(state: Int64, found: int, range_: int, operator: int, value: np.float64) -> int:
    """Append the leaves of a range of thresholds that a number satisfies."""
    thresholds = float64s(state, CONSTANTS.thresholds)
    leaves = int32s(state, CONSTANTS.range_leaves)
    start = int64s(state, CONSTANTS.range_starts)[range_]
    end = start + int64s(state, CONSTANTS.range_counts)[range_]
    low, high = start, end  # of the first threshold that is above, or not below
    is_strict = operator in (0, at.MORE_EQUAL - at.LESS)
    while low < high:
        middle = (low + high) // 2
        if thresholds[middle] < value or (is_strict and thresholds[middle] == value):
            low = middle + 1
        else:
            high = middle
    if operator >= at.MORE - at.LESS:
        end = low
    else:
        start = low
    for index in range(start, end):
        found = push(state, found, np.int64(leaves[index]))
        if found < 0:
            return found
    return found


# -- numbers ---------------------------------------------------------------------------------------


@called
def read_number(state: Int64, buffer: int, start: int, end: int) -> int:
    """Leave a string, as a number, in ``NODES.number``; returns a status.

    A number with so many digits that only Python reads it is NaN, until Python has read it.
    """
    number = float64s(state, NODES.number)
    if parse_number(uint8s(state, buffer), start, end, number):
        return DONE
    key = 2 * start + (buffer == READ.attribute_values)
    known, values = int64s(state, NODES.long_known), float64s(state, NODES.long_values)
    low, high = 0, state[at.LONG_KNOWN]
    while low < high:
        middle = (low + high) // 2
        if known[2 * middle] < key or (known[2 * middle] == key and known[2 * middle + 1] < end):
            low = middle + 1
        else:
            high = middle
    if low < state[at.LONG_KNOWN] and known[2 * low] == key and known[2 * low + 1] == end:
        number[0] = values[low]
        return DONE
    found, used = int64s(state, NODES.long_found), state[at.LONG_FOUND]
    if 2 * used == len(found):
        return NODES.long_found
    found[2 * used], found[2 * used + 1] = key, end
    state[at.LONG_FOUND] = used + 1
    number[0] = np.nan
    return DONE


# -- tests of steps --------------------------------------------------------------------------------


@called
def node_passes(state: Int64, event: int, tests: int) -> int:
    """Whether a node passes the tests of one step."""
    listed = int32s(state, CONSTANTS.tests)
    found = 1
    while found == 1 and listed[tests] != NONE:
        found = holds(state, np.int64(listed[tests]), event)
        tests += 1
    return found


@called
def tests_before(state: Int64, tests: int) -> int:
    """The index at which the tests of the step before begin."""
    listed = int32s(state, CONSTANTS.tests)
    while listed[tests] != NONE:
        tests += 1
    return tests + 1


@called
def holds(state: Int64, comparison: int, event: int) -> int:
    """Whether a comparison is true of an element."""
    comparisons = int32s(state, CONSTANTS.comparisons)
    row = comparison * at.COMPARED
    kind = np.int64(comparisons[row + at.COMPARED_KIND])
    name = name_of(state, np.int64(comparisons[row + at.COMPARED_NAME]))
    if name == at.NO_NAME:
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
    """Whether a comparison is true of a string."""
    comparisons = int32s(state, CONSTANTS.comparisons)
    row = comparison * at.COMPARED
    operator = np.int64(comparisons[row + at.COMPARED_OPERATOR])
    if operator == at.EXISTS:
        return 1
    values = uint8s(state, buffer)
    first = np.int64(comparisons[row + at.COMPARED_TEXT])
    if first >= 0:
        last = np.int64(comparisons[row + at.COMPARED_TEXT_END])
        is_equal = same_bytes(values, start, end, uint8s(state, CONSTANTS.texts), first, last)
        return np.int64(is_equal == (operator == at.EQUAL))
    status = read_number(state, buffer, start, end)
    if status != DONE:
        return -status
    value = float64s(state, NODES.number)[0]
    literal = float64s(state, CONSTANTS.comparison_literals)[comparison]
    if operator == at.EQUAL:
        return np.int64(value == literal)
    if operator == at.UNEQUAL:
        return np.int64(value != literal)
    if operator == at.LESS:
        return np.int64(value < literal)
    if operator == at.LESS_EQUAL:
        return np.int64(value <= literal)
    if operator == at.MORE:
        return np.int64(value > literal)
    return np.int64(value >= literal)
