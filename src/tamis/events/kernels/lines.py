"""Kernels that read lines of JSON into the arrays of an ``EventBatch``; see ``events.reader``.

A line is walked once, with a stack of the objects and lists that are open. The walk is at a *node*
of the tree of all that filters ask for, or at none: then a value is only checked. A line that is in
error, or that has to be looked at again, is *odd*: it leaves no values.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.core.kernel.table import find_pair, pair
from tamis.events.kernels import json_text as json
from tamis.events.kernels import reading as to
from tamis.events.kernels.json_text import skip_space
from tamis.events.kernels.reading import INPUT, TREE, WORK

_NODE, _LIST, _POSITION, _BEGIN = range(4)  # of an open object or list
_FRAME = 4
_OF_OBJECT = -2  # instead of a position
STACK_SIZE = 1_024 * _FRAME
"""Of the stack: so many objects and lists may be inside each other, as the JSON library reads."""


# -- lines ---------------------------------------------------------------------------------------


@kernel
def read_lines(state: Int64) -> int:
    """Read lines from ``NEXT`` on; 0, or the field of an array that is full."""
    while state[to.NEXT] < len(uint8s(state, INPUT.data)):
        if not _read_line(state):
            return state[to.FULL]
    return 0


@kernel
def read_one(state: Int64) -> int:
    """Read the first line alone: 0; 1 where that takes more; 2 where Python completes values."""
    state[to.NEXT] = state[to.LINE] = state[to.EVENTS] = state[to.ROWS] = state[to.STRINGS] = 0
    state[to.SLICES] = state[to.LATE] = state[to.ODD] = 0
    if not _read_line(state) or state[to.ROWS] > to.ONE_ROWS:
        return 1
    if state[to.SLICES] + state[to.ODD] > 0:
        return 1
    return 2 if state[to.LATE] > 0 else 0


@called
def _read_line(state: Int64) -> bool:
    """Read the line at ``NEXT``, if there is room for it."""
    data, start = uint8s(state, INPUT.data), state[to.NEXT]
    offset = skip_space(data, start)
    if json.byte_at(data, offset) != json.NEWLINE:
        if not _begin(state):
            return False
        end = json.BAD
        if json.byte_at(data, offset) == json.OPEN:
            end = _read_event(state, offset)
        offset, is_right = _line_end(data, offset, end)
        if not is_right:
            to.fail_instead(state, to.MALFORMED, 0, 0)
        if offset - start > state[to.BYTES_MAX]:
            to.fail_instead(state, to.TOO_LONG, 0, 0)
        if not _end(state, start, offset):
            return False
    state[to.LINE] += 1
    state[to.NEXT] = offset + 1
    return True


@kernel
def read_elements(state: Int64) -> int:
    """The same for elements of lists that were read before; one that is a list has no values."""
    data = uint8s(state, INPUT.data)
    starts, ends = int64s(state, INPUT.starts), int64s(state, INPUT.ends)
    while state[to.NEXT] < len(starts):
        offset = starts[state[to.NEXT]]
        if not _begin(state):
            return state[to.FULL]
        if json.byte_at(data, offset) == json.OPEN:
            _read_event(state, offset)
        elif json.byte_at(data, offset) != json.OPEN_LIST:
            _read_value(state, offset, state[to.ITSELF])
        if state[to.REASON] == to.MAY_BE_INFINITE:
            state[to.REASON] = 0  # the line was looked at
        if not _end(state, offset, ends[state[to.NEXT]]):
            return state[to.FULL]
        state[to.NEXT] += 1
    return 0


@inlined
def _line_end(data: Bytes, offset: int, end: int) -> tuple[int, bool]:
    """Where a line ends whose value ends somewhere, if it does; and whether that is all of it."""
    if end >= 0:
        offset = skip_space(data, end)
        if json.byte_at(data, offset) == json.NEWLINE:
            return offset, True
    while json.byte_at(data, offset) != json.NEWLINE:
        offset += 1
    return offset, False


@inlined
def _begin(state: Int64) -> bool:
    """Begin an event, if there is room for it."""
    starts, event = int64s(state, WORK.event_starts), state[to.EVENTS]
    state[to.FULL] = 0
    if event + 1 >= len(starts):
        state[to.FULL] = WORK.event_starts
        return False
    starts[event] = state[to.ROWS]
    int64s(state, WORK.lines)[event] = state[to.LINE]
    state[to.FIRST_STRING], state[to.FIRST_SLICE] = state[to.STRINGS], state[to.SLICES]
    state[to.FIRST_LATE] = state[to.LATE]
    state[to.REASON] = state[to.NAMES] = state[to.VALUES] = state[to.FLAT] = state[to.JOINED] = 0
    state[to.STAMP] += 1
    return True


@called
def _end(state: Int64, start: int, end: int) -> bool:
    """End an event. If it is odd or an array is full, what it had is taken back."""
    starts, event = int64s(state, WORK.event_starts), state[to.EVENTS]
    is_in_error = to.is_in_error(state)
    if state[to.JOINED] and not state[to.FULL] and not is_in_error:
        to.take_joined(state)
    if is_in_error:
        state[to.FULL] = 0  # it needs no room
    if state[to.REASON] and not state[to.FULL]:
        odd, used = int64s(state, WORK.odd), state[to.ODD] * to.ODD_COLUMNS
        if used + to.ODD_COLUMNS > len(odd):
            state[to.FULL] = WORK.odd
        else:
            odd[used] = event
            odd[used + 1] = state[to.REASON]
            odd[used + 2] = state[to.NUMBER]
            odd[used + 3] = state[to.DETAIL]
            odd[used + 4] = start
            odd[used + 5] = end
            state[to.ODD] += 1
    if state[to.FULL] or is_in_error:
        state[to.ROWS] = starts[event]
        state[to.STRINGS], state[to.SLICES] = state[to.FIRST_STRING], state[to.FIRST_SLICE]
        state[to.LATE] = state[to.FIRST_LATE]
    if state[to.FULL]:
        return False
    starts[event + 1] = state[to.ROWS]
    state[to.EVENTS] = event + 1
    return True


@called
def _read_event(state: Int64, offset: int) -> int:
    """Read an event that is an object; where it ends, or BAD."""
    end = _read_value(state, offset, 0)
    if state[to.NAMES] > state[to.NAMES_MAX]:
        to.fail_instead(state, to.TOO_MANY, state[to.NAMES], 0)
    if state[to.IS_SINGULAR] and state[to.FLAT]:
        to.fail(state, to.LISTED, 0, 0)
    nodes, flat = int32s(state, TREE.nodes), int64s(state, WORK.flat)
    objects = int64s(state, WORK.objects)
    every, joins = state[to.EVERY], state[to.JOINS]
    state[to.EVERY] = -1  # these values were met
    state[to.JOINS] = 0
    if end >= 0:
        for index in range(0, 2 * state[to.FLAT], 2):
            row = flat[index] * to.COLUMNS
            root = np.int64(nodes[row + to.ROOT])
            if objects[root] != state[to.STAMP]:
                _read_value(state, flat[index + 1], np.int64(nodes[row + to.FLAT_OF]))
    state[to.EVERY] = every
    state[to.JOINS] = joins
    return end


# -- values --------------------------------------------------------------------------------------


@called
def _read_value(state: Int64, offset: int, node: int) -> int:
    """Read the value that begins at an offset and is at a node, or -1; where it ends, or BAD."""
    data, stack = uint8s(state, INPUT.data), int64s(state, WORK.stack)
    frame = -_FRAME
    while True:
        byte = json.byte_at(data, offset)
        is_next = False  # whether a value begins in the frame; or the present one has ended
        if byte in (json.OPEN, json.OPEN_LIST):
            frame += _FRAME
            if frame == len(stack):
                return json.BAD
            _enter(state, frame, node, offset, byte == json.OPEN)
            offset = skip_space(data, offset + 1)
            is_next = json.byte_at(data, offset) != byte + 2  # the bracket that closes it
            if not is_next:
                offset = _leave(state, frame, offset)
                frame -= _FRAME
        else:
            offset = _read_scalar(state, offset, node)
            if offset < 0:
                return json.BAD
        while frame >= 0 and not is_next:
            is_object = stack[U(frame + _POSITION)] == _OF_OBJECT
            if not is_object and stack[U(frame + _LIST)] >= 0:
                to.add_slice(state, stack[U(frame + _LIST)], stack[U(frame + _BEGIN)], offset)
            offset = skip_space(data, offset)
            byte = json.byte_at(data, offset)
            if byte == json.COMMA:
                offset = skip_space(data, offset + 1)
                is_next = True
            elif byte == (json.CLOSE if is_object else json.CLOSE_LIST):
                offset = _leave(state, frame, offset)
                frame -= _FRAME
            else:
                return json.BAD
        if frame < 0:
            return offset
        offset, node = _next(state, frame, offset)
        if offset < 0:
            return json.BAD


@called
def _enter(state: Int64, frame: int, node: int, offset: int, is_object: bool) -> None:
    """Begin an object or a list that is at a node, or -1."""
    stack = int64s(state, WORK.stack)
    list = -1
    if node >= 0:
        nodes, row = int32s(state, TREE.nodes), node * to.COLUMNS
        list = np.int64(nodes[row + to.LIST])
        inside = nodes[row + to.INSIDE]
        if is_object:
            int64s(state, WORK.objects)[node] = state[to.STAMP]
        if not inside & to.SINGULAR:
            to.fail_where_asked(state, node, to.IS_OBJECT if is_object else to.IS_LIST)
        elif not is_object:
            to.fail(state, to.LISTED, 0, 0)
        if not inside & (to.KEYS if is_object else to.POSITIONS):
            node = -1
    if state[to.EVERY] >= 0 or state[to.JOINS]:
        _count_value(state)
    stack[U(frame + _NODE)] = node
    stack[U(frame + _LIST)] = list
    stack[U(frame + _POSITION)] = _OF_OBJECT if is_object else -1
    stack[U(frame + _BEGIN)] = offset


@inlined
def _leave(state: Int64, frame: int, offset: int) -> int:
    """End an object or a list, at the bracket that closes it; where that ends."""
    stack = int64s(state, WORK.stack)
    if stack[U(frame + _POSITION)] == _OF_OBJECT and stack[U(frame + _LIST)] >= 0:
        to.add_slice(state, stack[U(frame + _LIST)], stack[U(frame + _BEGIN)], offset + 1)
    return offset + 1


@inlined
def _next(state: Int64, frame: int, offset: int) -> tuple[int, int]:
    """Where the next value in an object or a list begins, or BAD; and its node, or -1."""
    data, stack = uint8s(state, INPUT.data), int64s(state, WORK.stack)
    node = stack[U(frame + _NODE)]
    if stack[U(frame + _POSITION)] == _OF_OBJECT:
        if json.byte_at(data, offset) != json.QUOTE:
            return json.BAD, -1
        end, traits = json.string_end(data, offset + 1)
        if end < 0:
            return json.BAD, -1
        if frame == 0 or state[to.IS_SINGULAR]:  # objects that [] asks for are events, too
            state[to.NAMES] += 1
        if node >= 0:
            node = _named(state, node, offset + 1, end, traits)
        after = skip_space(data, end + 1)
        if json.byte_at(data, after) != json.COLON:
            return json.BAD, -1
        after = skip_space(data, after + 1)
        if node >= 0:
            node = _visit(state, node, offset, end + 1, after)
        return after, node
    stack[U(frame + _BEGIN)] = offset
    position = stack[U(frame + _POSITION)] + 1
    stack[U(frame + _POSITION)] = position
    if node < 0:
        return offset, -1
    positions, key = int64s(state, TREE.positions), pair(node + 1, position)
    index = find_pair(positions, key)
    return offset, positions[index + 1] if positions[index] == key else -1


@inlined
def _named(state: Int64, node: int, start: int, end: int, traits: int) -> int:
    """The node of a name in an object that is at a node; or -1."""
    data = uint8s(state, INPUT.data)
    if traits & json.ESCAPED:
        key = uint8s(state, WORK.key)
        if end - start > len(key):
            return -1
        start, end = 0, json.unescape(data, start, end, key, 0)
        data = key
    if not int64s(state, TREE.filters)[node] & to.filter_bit(data, start, end):
        return -1
    child = to.child_of(state, node, data, start, end)
    return -1 if child == state[to.ITSELF] else child


@inlined
def _visit(state: Int64, node: int, start: int, end: int, value: int) -> int:
    """The node at which a value is read whose name, from start to end, is that of a node; or -1."""
    seen = int64s(state, WORK.seen)
    if seen[node] == state[to.STAMP]:
        to.fail(state, to.DUPLICATE, start, end)
        return -1
    seen[node] = state[to.STAMP]
    if int32s(state, TREE.nodes)[node * to.COLUMNS + to.FLAT_OF] >= 0:
        flat, used = int64s(state, WORK.flat), 2 * state[to.FLAT]
        flat[used] = node
        flat[used + 1] = value
        state[to.FLAT] += 1
    return node


@inlined
def _read_scalar(state: Int64, offset: int, node: int) -> int:
    """Read a string, a number or a word that is at a node, or -1; where it ends, or BAD."""
    data = uint8s(state, INPUT.data)
    byte = json.byte_at(data, offset)
    if byte == json.QUOTE:
        end, traits = json.string_end(data, offset + 1)
        if end < 0:
            return json.BAD
        if node >= 0:
            to.take_string(state, node, offset + 1, end, traits)
        if state[to.JOINS]:
            to.join_string(state, offset + 1, end, traits)
        end += 1
    elif byte in (json.TRUE, json.FALSE, json.NULL):
        end = json.word_end(data, offset)
        is_asked = node >= 0 or state[to.EVERY] >= 0
        if byte == json.NULL and is_asked and state[to.FROM_PYTHON] and state[to.REASON] == 0:
            to.fail(state, to.HAS_NULL, 0, 0)
        if node >= 0:
            to.take_word(state, node, byte)
    else:
        end, digits, power, traits = json.number_at(data, offset)
        if end < 0:
            return json.BAD
        if traits & json.HUGE:
            to.fail(state, to.MAY_BE_INFINITE, 0, 0)
        if node >= 0:
            to.take_number(state, node, offset, (end, digits, power, traits))
    if node >= 0:
        list = np.int64(int32s(state, TREE.nodes)[node * to.COLUMNS + to.LIST])
        if list >= 0:
            to.add_slice(state, list, offset, end)
    if state[to.EVERY] >= 0 or state[to.JOINS]:
        _count_value(state)
    is_left = byte == json.NULL or (byte == json.QUOTE and not state[to.EVERY_STRING])
    if state[to.EVERY] >= 0 and not is_left:
        to.add_slice(state, state[to.EVERY], offset, end)
    return end


@called
def _count_value(state: Int64) -> None:
    """Count a value, where all are asked for; there may be as many as names."""
    state[to.VALUES] += 1
    if state[to.VALUES] > state[to.NAMES_MAX]:
        to.fail(state, to.TOO_MANY_VALUES, 0, 0)
