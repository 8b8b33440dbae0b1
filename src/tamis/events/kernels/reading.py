"""What kernels read lines of JSON into: the state, the tree of what is asked, and what is found.

:mod:`.lines` walks the lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.bits import big_endian
from tamis.core.kernel.record import int32s, int64s, lay_out, uint8s
from tamis.core.kernel.table import GOLDEN, free_slot, mixed, slot_finder
from tamis.core.kernel.text import same_bytes
from tamis.events import model as at
from tamis.events.kernels import json_text as json
from tamis.language.attributes import INSTEAD, SEPARATOR

(
    NEXT,  # where the next line begins; of elements, the number of the next one
    LINE,  # its number, from 0
    EVENTS, ROWS, STRINGS, SLICES, LATE, ODD,  # how many there are so far
    FIRST_STRING, FIRST_SLICE, FIRST_LATE,  # of the event
    NAMES, VALUES, FLAT,  # how many the event has: names, values where they are counted, with dots
    STAMP,  # the number of the event among all that were ever read
    REASON, NUMBER, DETAIL,  # why the line is odd, and what the message says
    FULL,  # the field of an array that is full, or 0
    BYTES_MAX, NAMES_MAX, STRING_MAX,  # of a line, an event, a value
    ITSELF,  # the node of an element that is no object, or -1
    EVERY,  # the list for all values, wherever they are, or -1
    EVERY_STRING,  # whether strings are among these
    IS_SINGULAR,  # whether some nodes are SINGULAR
    FROM_PYTHON,  # whether null may be NaN
    JOINS,  # whether all strings are asked for together
    JOINED_PLAIN, JOINED_FOLDED,  # the attributes that they are, or -1
    JOINED,  # their bytes so far
    NUMBERS,
) = range(32)  # fmt: skip

(
    MALFORMED,  # no event
    TOO_LONG,
    TOO_MANY,  # NUMBER names
    TOO_MANY_VALUES,
    DUPLICATE,  # of the name that is written from NUMBER to DETAIL
    OVERSIZED,  # the attribute NUMBER
    IS_LIST,
    IS_OBJECT,
    STRING_TOO_LONG,  # the attribute NUMBER, by its DETAIL bytes
    MAY_BE_INFINITE,  # leaves its values: a number in it may be too large
    LISTED,  # there is a list where values are singular, or a name with dots for such a place
    HAS_NULL,  # leaves its values, too: Python's NaN is written so
) = range(1, 13)
"""Why a line is odd."""

AS_IT_IS, FOLDED, ADDRESS, NULL, LIST, FLAT_OF, ROOT, INSIDE, FILTER = range(9)
COLUMNS = 10
"""The columns of nodes: see ``Tree``."""
KEYS, POSITIONS, SINGULAR = 1, 2, 4
"""What may be inside of a node. A list at a SINGULAR one makes the line odd; an object there has no
value of its own.
"""
ONE_ROWS = 256
"""The values of an event that is read by itself, at most."""
ODD_COLUMNS, SLICE_COLUMNS, LATE_COLUMNS = 6, 4, 4

_SEPARATOR, _INSTEAD = ord(SEPARATOR), ord(INSTEAD)
_EXACT, _LARGEST, _TWO_TO_63 = U(1 << 53), U((1 << 63) - 1), 9223372036854775808.0


class Input(NamedTuple):
    """The lines, with a newline at the end; and where elements begin in them, and end."""

    data: Bytes
    starts: Int64
    ends: Int64


class Tree(NamedTuple):
    """What filters ask for: a tree of nodes, of which 0 is the event.

    Attributes:
        nodes: int32[nodes * COLUMNS]. The attribute, or -1, that has the value as it is, as a
            folded string, as an address, and where it is null. The list in which its elements are
            entered, or -1. The node that a name with dots stands for, or -1, and the node of that
            one's first name. What may be inside: KEYS, POSITIONS, SINGULAR.
        parents, key_starts, key_bytes: of the names inside of objects: the node around each, and
            its UTF-8. Name i is that of node i + 1.
        slots: int32[]; finds names.
        filters: int64[nodes]; which lengths and first bytes names inside of each node have.
        positions: int64[]; a pair table: node and position → node.
        folds: int32[]; what characters fold to, if that is asked: see ``json_text.fold``.
    """

    nodes: Int32
    parents: Int32
    key_starts: Int64
    key_bytes: Bytes
    slots: Int32
    filters: Int64
    positions: Int64
    folds: Int32


class Work(NamedTuple):
    """What is found.

    Attributes:
        event_starts, lines: of each event, where its values begin, and its line, from 0.
        names, kinds, values: as in ``EventBatch``; and string_starts, string_bytes.
        slices: int64[]; of elements: the list, the event, and where each begins and ends.
        late: int64[]; values that Python completes: the number of each, the column of nodes that it
            is for, and where it is written.
        odd: int64[]; event, REASON, NUMBER, DETAIL, and where the line begins and ends.
        seen, objects: int64[nodes]; the STAMP of the last event that had the node, and that had an
            object there.
        flat: int64[]; nodes of names with dots in the event, and where their values begin.
        stack: int64[]; of each open object or list: its node, its list, the position in it, and
            where its present value begins.
        key: uint8[]; a name without escapes.
        joined: uint8[]; the strings of the event, each with a separator behind it.
    """

    event_starts: Int64
    lines: Int64
    names: Int32
    kinds: Bytes
    values: Int64
    string_starts: Int64
    string_bytes: Bytes
    slices: Int64
    late: Int64
    odd: Int64
    seen: Int64
    objects: Int64
    flat: Int64
    stack: Int64
    key: Bytes
    joined: Bytes


INPUT, TREE, WORK, STATE_SIZE = lay_out(NUMBERS, Input, Tree, Work)


# -- the tree ------------------------------------------------------------------------------------


@inlined
def _is_key(
    known: tuple[Int32, Int64, Bytes], number: int, key: tuple[int, Bytes, int, int]
) -> bool:
    parents, starts, written = known
    node, data, start, end = key
    first, last = starts[U(number)], starts[U(number + 1)]
    if parents[U(number)] != node or last - first != end - start:
        return False
    while first + 8 <= last and big_endian(written, first) == big_endian(data, start):
        first += 8
        start += 8
    return same_bytes(written, first, last, data, start, end)


_find_key = slot_finder(_is_key)


@inlined
def _key_hash(node: int, data: Bytes, start: int, end: int) -> np.uint64:
    """A hash of a name inside of a node, by eight bytes: byte by byte it took a fifth of all."""
    hash, rest = U(node) * GOLDEN, U(end - start)
    while start + 8 <= end:
        hash = (hash ^ big_endian(data, start)) * GOLDEN
        hash ^= hash >> U(32)
        start += 8
    while start < end:
        rest = rest << U(8) | U(data[U(start)])
        start += 1
    return mixed(hash ^ rest)


@inlined
def filter_bit(data: Bytes, start: int, end: int) -> int:
    """A bit for names of this length and first byte; for no name, of the quote behind it."""
    first = json.byte_at(data, start) if end > start else 0
    return np.int64(1) << ((first + 8 * (end - start)) & 63)


@kernel
def enter_keys(parents: Int32, starts: Int64, keys: Bytes, slots: Int32, filters: Int64) -> None:
    """Fill the slots and filters of a ``Tree``, whose names are not empty; no two are equal."""
    for number in range(len(parents)):
        node, start, end = np.int64(parents[number]), starts[number], starts[number + 1]
        slots[free_slot(slots, _key_hash(node, keys, start, end))] = number + 1
        filters[node] |= filter_bit(keys, start, end)


@inlined
def child_of(state: Int64, node: int, data: Bytes, start: int, end: int) -> int:
    """The node of a name in an object at a node, or -1."""
    known = (
        int32s(state, TREE.parents),
        int64s(state, TREE.key_starts),
        uint8s(state, TREE.key_bytes),
    )
    slots = int32s(state, TREE.slots)
    hash = _key_hash(node, data, start, end)
    return np.int64(slots[_find_key(slots, hash, known, (node, data, start, end))]) or -1


@inlined
def is_in_error(state: Int64) -> bool:
    """Whether the line leaves no values."""
    return state[REASON] not in (0, MAY_BE_INFINITE, HAS_NULL)


@inlined
def fail(state: Int64, reason: int, number: int, detail: int) -> None:
    """Have a line be odd, for the first reason that there is; the walk goes on."""
    if not is_in_error(state):
        fail_instead(state, reason, number, detail)


@called
def fail_where_asked(state: Int64, node: int, reason: int) -> None:
    """Have a line be odd for a value that no attribute of a node can have, if there is one."""
    nodes, row = int32s(state, TREE.nodes), node * COLUMNS
    for column in range(NULL):
        if nodes[row + column] >= 0:
            fail(state, reason, np.int64(nodes[row + column]), 0)


@inlined
def fail_instead(state: Int64, reason: int, number: int, detail: int) -> None:
    """Have a line be odd, whatever it was."""
    state[REASON] = reason
    state[NUMBER] = number
    state[DETAIL] = detail


# -- what is found -------------------------------------------------------------------------------


@inlined
def add_slice(state: Int64, list: int, start: int, end: int) -> None:
    """Enter an element in a list."""
    slices, used = int64s(state, WORK.slices), SLICE_COLUMNS * state[SLICES]
    if used + SLICE_COLUMNS > len(slices):
        state[FULL] = WORK.slices
        return
    slices[used] = list
    slices[used + 1] = state[EVENTS]
    slices[used + 2] = start
    slices[used + 3] = end
    state[SLICES] += 1


@called
def _add_row(state: Int64, name: int, kind: int, value: int) -> None:
    """Add a value of the event."""
    names, row = int32s(state, WORK.names), state[ROWS]
    if row == len(names):
        state[FULL] = WORK.names
        return
    names[row] = name
    uint8s(state, WORK.kinds)[row] = kind
    int64s(state, WORK.values)[row] = value
    state[ROWS] = row + 1


@called
def _complete_later(state: Int64, column: int, start: int, end: int) -> None:
    """Have Python complete the last value."""
    late, used = int64s(state, WORK.late), LATE_COLUMNS * state[LATE]
    if used + LATE_COLUMNS > len(late):
        state[FULL] = WORK.late
        return
    late[used] = state[ROWS] - 1
    late[used + 1] = column
    late[used + 2] = start
    late[used + 3] = end
    state[LATE] += 1


@inlined
def _add_plain(state: Int64, node: int, kind: int, value: int) -> None:
    """Add a value that is no string for all attributes that have it: an address it is not."""
    nodes, row = int32s(state, TREE.nodes), node * COLUMNS
    for column in (AS_IT_IS, FOLDED):
        if nodes[row + column] >= 0:
            _add_row(state, np.int64(nodes[row + column]), kind, value)


@inlined
def take_word(state: Int64, node: int, byte: int) -> None:
    """Add a boolean; or that a value is null."""
    if byte != json.NULL:
        _add_plain(state, node, at.BOOLEAN, np.int64(byte == json.TRUE))
        return
    name = np.int64(int32s(state, TREE.nodes)[node * COLUMNS + NULL])
    if name >= 0:
        _add_row(state, name, at.BOOLEAN, 1)


@inlined
def take_number(
    state: Int64, node: int, start: int, number: tuple[int, np.uint64, int, int]
) -> None:
    """Add a number as ``model.number`` has it; Python reads one that takes exact arithmetic."""
    end, digits, power, traits = number
    is_negative = traits & json.NEGATIVE
    if not traits & json.REAL:
        if traits & json.LONG or digits > _LARGEST + U(is_negative):
            fail_where_asked(state, node, OVERSIZED)
            return
        value = np.int64(digits)
        _add_plain(state, node, at.INTEGER, -value if is_negative else value)
        return
    is_exact = not traits & json.LONG and digits <= _EXACT and -22 <= power <= 22
    if not is_exact:
        nodes, row = int32s(state, TREE.nodes), node * COLUMNS
        for column in (AS_IT_IS, FOLDED):
            if nodes[row + column] >= 0:
                _add_row(state, np.int64(nodes[row + column]), at.FLOAT, 0)
                _complete_later(state, AS_IT_IS, start, end)
        return
    factor = 1.0
    for _ in range(abs(power)):
        factor *= 10.0
    real = np.float64(digits) / factor if power < 0 else np.float64(digits) * factor
    if is_negative:
        real = -real
    if abs(real) < _TWO_TO_63:
        whole = np.int64(real)
        if np.float64(whole) == real:
            _add_plain(state, node, at.INTEGER, whole)
            return
    _add_plain(state, node, at.FLOAT, np.float64(real).view(np.int64))


@inlined
def take_string(state: Int64, node: int, start: int, end: int, traits: int) -> None:
    """Add a string for all attributes that have it."""
    nodes, row = int32s(state, TREE.nodes), node * COLUMNS
    name, folded = np.int64(nodes[row + AS_IT_IS]), np.int64(nodes[row + FOLDED])
    address = np.int64(nodes[row + ADDRESS])
    asked = max(name, folded, address)
    if asked < 0:
        return
    number, size = _add_string(state, uint8s(state, INPUT.data), start, end, traits)
    if number < 0:
        return
    if size > state[STRING_MAX]:
        fail(state, STRING_TOO_LONG, asked, size)
    if name >= 0:
        _add_row(state, name, at.STRING, number)
    if address >= 0:
        _add_row(state, address, at.STRING, number)
        _complete_later(state, ADDRESS, 0, 0)
    if folded >= 0:
        _add_folded(state, folded, number)


@called
def join_string(state: Int64, start: int, end: int, traits: int) -> None:
    """Have a string be one of all of the event."""
    data, into, first = uint8s(state, INPUT.data), uint8s(state, WORK.joined), state[JOINED]
    if first + end - start >= len(into):
        state[FULL] = WORK.joined
        return
    last = _copy_string(data, start, end, traits, into, first)
    if last - first > state[STRING_MAX]:
        fail(state, STRING_TOO_LONG, max(state[JOINED_PLAIN], state[JOINED_FOLDED]), last - first)
    if traits & json.ESCAPED:
        for place in range(first, last):
            if into[U(place)] == _SEPARATOR:
                into[U(place)] = _INSTEAD
    into[U(last)] = _SEPARATOR
    state[JOINED] = last + 1


@called
def take_joined(state: Int64) -> None:
    """Add all strings of the event, together."""
    number, _ = _add_string(state, uint8s(state, WORK.joined), 0, state[JOINED], 0)
    if number >= 0 and state[JOINED_PLAIN] >= 0:
        _add_row(state, state[JOINED_PLAIN], at.STRING, number)
    if number >= 0 and state[JOINED_FOLDED] >= 0:
        _add_folded(state, state[JOINED_FOLDED], number)


@inlined
def _copy_string(data: Bytes, start: int, end: int, traits: int, into: Bytes, first: int) -> int:
    """Write a string without its escapes; where it ends."""
    if traits & json.ESCAPED:
        return json.unescape(data, start, end, into, first)
    for place in range(end - start):
        into[U(first + place)] = data[U(start + place)]
    return first + end - start


@called
def _add_string(state: Int64, data: Bytes, start: int, end: int, traits: int) -> tuple[int, int]:
    """Add a string; its number, or -1 if there is no room, and its size."""
    into = uint8s(state, WORK.string_bytes)
    starts, number = int64s(state, WORK.string_starts), state[STRINGS]
    first = starts[number]
    if not _has_room(state, end - start):
        return -1, 0
    last = _copy_string(data, start, end, traits, into, first)
    starts[number + 1] = last
    state[STRINGS] = number + 1
    return number, last - first


@inlined
def _has_room(state: Int64, size: int) -> bool:
    """Whether there is room for a string of so many bytes."""
    starts = int64s(state, WORK.string_starts)
    if state[STRINGS] + 1 >= len(starts):
        state[FULL] = WORK.string_starts
    elif starts[state[STRINGS]] + size > len(uint8s(state, WORK.string_bytes)):
        state[FULL] = WORK.string_bytes
    else:
        return True
    return False


@called
def _add_folded(state: Int64, name: int, other: int) -> None:
    """Add a string, which was added as it is, without case."""
    into, starts = uint8s(state, WORK.string_bytes), int64s(state, WORK.string_starts)
    start, number = starts[other], state[STRINGS]
    size = starts[other + 1] - start
    if not _has_room(state, size + (size >> 1)):
        return  # it is read again
    first, seen = starts[number], 0
    for place in range(size):
        byte = json.byte_at(into, start + place)
        seen |= byte
        into[U(first + place)] = byte + 32 if 65 <= byte <= 90 else byte
    last = first + size
    if seen >= 128:
        last = json.fold(into, start, start + size, int32s(state, TREE.folds), first)
    starts[number + 1] = last
    state[STRINGS] = number + 1
    _add_row(state, name, at.STRING, number)
