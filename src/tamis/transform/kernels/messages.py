"""The kernel that writes messages: a template's constants, and copies of what groups list.

It writes one message after the other. What it cannot write itself it asks for, by its status; then
it goes on where it was. Where the output is full, the message that it wrote last is begun again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import called, inlined, kernel
from tamis.core.kernel.record import borrow, int32s, int64s, lay_out, uint8s
from tamis.core.kernel.table import find_pair
from tamis.documents.batch import ATTRIBUTE, ELEMENT, KIND_BITS, TEXT
from tamis.transform.layout import Groups

(
    ANSWER,  # the next one that a message is made for
    FIRST,  # the first one of those whose messages are in the output
    ANSWERS,  # where they end
    GROUP,  # of the answer; -1 before its message is begun
    PART,  # of the template
    ITEM,  # of the part's list
    IS_BEHIND_NUMBER,  # content: a space goes before the next number
    IS_SPACED,  # value of an attribute: a space goes before the next string
    USED,  # bytes of the output
    BEGUN,  # where the message begins
    NEEDED,  # bytes of the output, where it is full
    BYTES_MAX,  # of a message
    HAS_SLICES,  # copies of elements are what stands in the document
    IS_ORDERED,  # ``order`` is that of the answer's groups
    IS_REPLIED,  # the attributes of several lists are in the pool, here:
    REPLY_START,
    REPLY_END,
    ASKED,  # the key of what is asked for
    ASKED_PART,  # which of the templates' copied attributes
    HAS_ENDS,  # of the document's elements
    NUMBERS,
) = range(21)

DONE, FULL, TOO_LONG, ASKS_TEMPLATE, ASKS_ORDER, ASKS_COPY, ASKS_NUMBER, ASKS_ATTRIBUTES = range(8)

PARTS_FROM, PARTS, HEAD_START, HEAD_END, TAIL_START, TAIL_END, HAS_ORDER = range(7)
TEMPLATE = 8
"""The record of a template: its parts, and its constants before and behind the groups."""

PART_KIND, PART_FIRST, PART_SECOND, PART_LIST = range(4)
PART_SIZE = 4
"""The record of a part.

``CONSTANT``      from where to where in ``texts``
``COPIES``        a list; whether elements around declare a default namespace
``NUMBER``        a list; the function
``VALUE``         the value of an attribute begins
``STRINGS``       in a value: a list
``VALUE_NUMBER``  in a value: a list; the function
``ATTRIBUTES``    which of the templates' copied attributes; what is around the list, by number; the
                  list, or -1 for several, whose copies no other part has
"""
CONSTANT, COPIES, NUMBER, VALUE, STRINGS, VALUE_NUMBER, ATTRIBUTES = range(7)

FUNCTIONS = ("count", "sum", "min", "max", "avg")
COPY_KEY, DEFAULT_KEY, TAG_KEY = 0, 1, 7
KEY_BITS = 3
"""A key of the pool: a node reference, or what is around a list and this, and one of these; or a
list and its function + 1. All plus 1."""

IN_TEXT, IN_VALUE = range(2)
ESCAPE = 8
"""In ``escapes``, for each byte in text, then in values: how long its escape is, 0 for none."""


class Document(NamedTuple):
    """What is copied; see ``DocumentBatch``."""

    tags: Int32
    offsets: Int64  # of events in ``data``
    value_start: Int64
    value_end: Int64
    attribute_values: Bytes
    text_event: Int64
    text_start: Int64
    text_end: Int64
    text_values: Bytes
    misc_start: Int64
    misc_end: Int64
    misc_values: Bytes


class Templates(NamedTuple):
    """The templates that were made so far."""

    template_of: Int32  # by transformation, or -1
    templates: Int32  # [TEMPLATE * n]
    parts: Int32  # [PART_SIZE * n]
    texts: Bytes
    escapes: Bytes


class Pool(NamedTuple):
    """Replies to what was asked."""

    pooled: Int64  # a pair table: the number of a reply by its key
    replies: Int64  # [2 * n]; where it is, or -1, -1 for nothing
    pool: Bytes
    order: Int64  # the groups of the answer as the message has them


class Input(NamedTuple):
    """The bytes of the document; and states that arrays are borrowed from, with their places."""

    data: Bytes
    recorded: Int64
    recorded_places: Int64
    found: Int64
    found_places: Int64


class Work(NamedTuple):
    """What is written."""

    output: Bytes
    message_ends: Int64
    ends: Int64  # [events]; the end of each start event


DOCUMENT, ANSWERED, TEMPLATES, POOL, INPUT, WORK, STATE_SIZE = lay_out(
    NUMBERS, Document, Groups, Templates, Pool, Input, Work
)


@kernel
def write_one(state: Int64) -> int:
    """Write all messages of what is borrowed, from a tokenizer and a strategy; see ``write``."""
    borrow(state, INPUT.recorded, INPUT.recorded_places)
    borrow(state, INPUT.found, INPUT.found_places)
    state[ANSWERS] = state[ANSWERED.transformations + 1]
    state[ANSWER] = state[FIRST] = state[USED] = state[BEGUN] = state[HAS_ENDS] = 0
    state[IS_ORDERED] = state[IS_REPLIED] = 0
    state[GROUP] = -1
    if state[DOCUMENT.tags + 1] > len(int64s(state, WORK.ends)):
        return FULL
    return write(state)


@kernel
def write(state: Int64) -> int:
    """Write messages from ``ANSWER`` on, up to ``ANSWERS``; returns a status."""
    if not state[HAS_ENDS]:
        find_ends(state)
    message_ends = int64s(state, WORK.message_ends)
    while state[ANSWER] < state[ANSWERS]:
        if state[ANSWER] - state[FIRST] == len(message_ends):
            return FULL
        status = write_message(state)
        if status != DONE:
            return status
        message_ends[state[ANSWER] - state[FIRST]] = state[BEGUN] = state[USED]
        state[ANSWER] += 1
        state[GROUP] = -1
        state[IS_ORDERED] = 0
    return DONE


@called
def find_ends(state: Int64) -> None:
    """Find the end of each start event; until then it has the start of the element around."""
    tags, ends = int32s(state, DOCUMENT.tags), int64s(state, WORK.ends)
    innermost = -1
    for event in range(len(tags)):
        if tags[event] >= 0:
            ends[event] = innermost
            innermost = event
        else:
            started = innermost
            innermost = ends[started]
            ends[started] = event
    state[HAS_ENDS] = 1


@called
def write_message(state: Int64) -> int:
    """Write what is left of a message; returns a status."""
    answer, texts = state[ANSWER], uint8s(state, TEMPLATES.texts)
    number = int32s(state, ANSWERED.transformations)[answer]
    row = np.int64(int32s(state, TEMPLATES.template_of)[number]) * TEMPLATE
    templates = int32s(state, TEMPLATES.templates)
    if row < 0 or row >= len(templates):  # the latter, where another thread has added it
        return ASKS_TEMPLATE
    is_ordered = templates[row + HAS_ORDER]
    if is_ordered and not state[IS_ORDERED]:
        return ASKS_ORDER
    status = DONE
    if state[GROUP] < 0:
        state[GROUP] = state[PART] = state[ITEM] = state[IS_BEHIND_NUMBER] = 0
        status = put(state, texts, templates[row + HEAD_START], templates[row + HEAD_END])
    first = int64s(state, ANSWERED.group_starts)[answer]
    groups = int64s(state, ANSWERED.group_ends)[answer] - first
    bound, order = int64s(state, ANSWERED.bound), int64s(state, POOL.order)
    while status == DONE and state[GROUP] < groups:
        group = order[state[GROUP]] if is_ordered else state[GROUP]
        if state[PART] == templates[row + PARTS]:
            state[GROUP] += 1
            state[PART] = 0
            continue
        part = templates[row + PARTS_FROM] + state[PART]
        status = write_part(state, part, answer, bound[first + group])
        if status == DONE:
            state[PART] += 1
            state[ITEM] = 0
    if status == DONE:
        status = put(state, texts, templates[row + TAIL_START], templates[row + TAIL_END])
    return status


@called
def write_part(state: Int64, part: int, answer: int, bound: int) -> int:
    """Write what is left of a part; returns a status."""
    parts = int32s(state, TEMPLATES.parts)
    row = part * PART_SIZE
    kind = parts[row + PART_KIND]
    first, second = np.int64(parts[row + PART_FIRST]), np.int64(parts[row + PART_SECOND])
    if kind == CONSTANT:
        state[IS_BEHIND_NUMBER] = 0
        return put(state, uint8s(state, TEMPLATES.texts), first, second)
    if kind == VALUE:
        state[IS_SPACED] = 0
        return DONE
    if kind == ATTRIBUTES:
        return write_attributes(state, row, answer, bound)
    number = list_of(state, answer, first, bound)
    if kind in (NUMBER, VALUE_NUMBER):
        return write_number(state, kind, number, second)
    return write_nodes(state, kind, number, second)


@called
def list_of(state: Int64, answer: int, index: int, bound: int) -> int:
    """The number of a list of an answer's group, or -1."""
    path_starts, paths = int64s(state, ANSWERED.path_starts), int32s(state, ANSWERED.paths)
    path = paths[path_starts[answer] + index]
    of_path, list_bound = int64s(state, ANSWERED.of_path), int64s(state, ANSWERED.list_bound)
    end = of_path[path + 1]
    low = first_from(list_bound, of_path[path], end, bound)
    return low if low < end and list_bound[low] == bound else -1


@inlined
def first_from(numbers: Int64, low: int, high: int, least: int) -> int:
    """The index of the first of ascending numbers that is not less than ``least``."""
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@called
def write_nodes(state: Int64, kind: int, number: int, has_default: int) -> int:
    """Write what is left of a list, as copies or as strings; returns a status."""
    if number < 0:
        return DONE
    nodes, start = int64s(state, ANSWERED.nodes), int64s(state, ANSWERED.list_starts)[number]
    end = int64s(state, ANSWERED.list_ends)[number]
    are_slices = kind == COPIES and state[HAS_SLICES] and not has_default
    if are_slices and state[ITEM] == 0 and is_too_long(state, nodes, start, end):
        return TOO_LONG
    while start + state[ITEM] < end:
        node = nodes[start + state[ITEM]]
        if kind == COPIES:
            status = write_copy(state, node, has_default)
        else:
            status = write_string(state, node)
        if status != DONE:
            return status
        state[ITEM] += 1
    if kind == COPIES and end > start:
        state[IS_BEHIND_NUMBER] = 0
    return DONE


@called
def is_too_long(state: Int64, nodes: Int64, start: int, end: int) -> bool:
    """Whether copies of elements are longer than a message may be, which is told at once."""
    offsets, ends = int64s(state, DOCUMENT.offsets), int64s(state, WORK.ends)
    left = state[BEGUN] + state[BYTES_MAX] - state[USED]
    for place in range(start, end):
        if nodes[place] & ((1 << KIND_BITS) - 1) == ELEMENT:
            event = nodes[place] >> KIND_BITS
            left -= offsets[ends[event]] - offsets[event]
    return left < 0


@called
def write_copy(state: Int64, node: int, has_default: int) -> int:
    """Write the copy of a node; returns a status."""
    kind, number = node & ((1 << KIND_BITS) - 1), node >> KIND_BITS
    if kind == ELEMENT and state[HAS_SLICES] and not has_default:
        offsets, ends = int64s(state, DOCUMENT.offsets), int64s(state, WORK.ends)
        return put(state, uint8s(state, INPUT.data), offsets[number], offsets[ends[number]])
    if kind == TEXT:
        starts, ends = int64s(state, DOCUMENT.text_start), int64s(state, DOCUMENT.text_end)
        return put_escaped(state, DOCUMENT.text_values, starts[number], ends[number], IN_TEXT)
    reply = reply_to(state, (node << KEY_BITS | (DEFAULT_KEY if has_default else COPY_KEY)) + 1)
    if reply < 0:
        return ASKS_COPY
    return put_reply(state, reply)


@called
def write_attributes(state: Int64, row: int, answer: int, bound: int) -> int:
    """Write copies of attributes in a tag; returns a status."""
    parts = int32s(state, TEMPLATES.parts)
    state[ASKED_PART] = parts[row + PART_FIRST]
    if parts[row + PART_LIST] >= 0:
        number = list_of(state, answer, np.int64(parts[row + PART_LIST]), bound)
        if number < 0:
            return DONE
        context = np.int64(parts[row + PART_SECOND])
        reply = reply_to(state, ((context << 32 | number) << KEY_BITS | TAG_KEY) + 1)
        return ASKS_ATTRIBUTES if reply < 0 else put_reply(state, reply)
    if not state[IS_REPLIED]:
        return ASKS_ATTRIBUTES
    state[IS_REPLIED] = 0
    return put(state, uint8s(state, POOL.pool), state[REPLY_START], state[REPLY_END])


@called
def write_string(state: Int64, node: int) -> int:
    """Write the string of a node in the value of an attribute; returns a status."""
    kind, number = node & ((1 << KIND_BITS) - 1), node >> KIND_BITS
    status = put_space(state)
    if status != DONE:
        return status
    if kind == ATTRIBUTE:
        starts, ends = int64s(state, DOCUMENT.value_start), int64s(state, DOCUMENT.value_end)
        values = DOCUMENT.attribute_values
        return put_escaped(state, values, starts[number], ends[number], IN_VALUE)
    starts, ends = int64s(state, DOCUMENT.text_start), int64s(state, DOCUMENT.text_end)
    if kind == TEXT:
        return put_escaped(state, DOCUMENT.text_values, starts[number], ends[number], IN_VALUE)
    if kind == ELEMENT:
        events, end = int64s(state, DOCUMENT.text_event), int64s(state, WORK.ends)[number]
        first = first_from(events, 0, len(events), number)
        last = first_from(events, first, len(events), end)
        if first == last:
            return DONE
        return put_escaped(state, DOCUMENT.text_values, starts[first], ends[last - 1], IN_VALUE)
    starts, ends = int64s(state, DOCUMENT.misc_start), int64s(state, DOCUMENT.misc_end)
    return put_escaped(state, DOCUMENT.misc_values, starts[number], ends[number], IN_VALUE)


@called
def write_number(state: Int64, kind: int, number: int, function: int) -> int:
    """Write an aggregate of a list, behind a space where one is due; returns a status."""
    reply = 0
    if function > 0:
        reply = reply_to(state, ((number + 1) << KEY_BITS | function + 1) + 1)
        if reply < 0:
            return ASKS_NUMBER
        if int64s(state, POOL.replies)[2 * reply] < 0:
            return DONE
    if kind == VALUE_NUMBER:
        status = put_space(state)
    else:
        status = put_byte(state, 32) if state[IS_BEHIND_NUMBER] else DONE
        state[IS_BEHIND_NUMBER] = 1
    if status != DONE:
        return status
    if function > 0:
        return put_reply(state, reply)
    count = 0
    if number >= 0:
        count = int64s(state, ANSWERED.list_ends)[number]
        count -= int64s(state, ANSWERED.list_starts)[number]
    unit = 1
    while unit * 10 <= count:
        unit *= 10
    while unit > 0 and status == DONE:
        status = put_byte(state, 48 + count // unit % 10)
        unit //= 10
    return status


# -- bytes -----------------------------------------------------------------------------------------


@called
def reply_to(state: Int64, key: int) -> int:
    """The number of the reply to what has a key; -1 where it is still to be asked for."""
    table = int64s(state, POOL.pooled)
    index = find_pair(table, key)
    if table[index] == key:
        return table[index + 1]
    state[ASKED] = key
    return -1


@called
def put_reply(state: Int64, reply: int) -> int:
    """Append a reply; returns a status."""
    replies = int64s(state, POOL.replies)
    return put(state, uint8s(state, POOL.pool), replies[2 * reply], replies[2 * reply + 1])


@called
def put_space(state: Int64) -> int:
    """Append the space between two strings of an attribute's value; returns a status."""
    status = put_byte(state, 32) if state[IS_SPACED] else DONE
    state[IS_SPACED] = 1
    return status


@called
def put_byte(state: Int64, byte: int) -> int:
    """Append a byte; returns a status."""
    if not has_room(state, 1):
        return no_room(state, 1)
    uint8s(state, WORK.output)[state[USED]] = byte
    state[USED] += 1
    return DONE


@called
def put(state: Int64, data: Bytes, start: int, end: int) -> int:
    """Append bytes; returns a status."""
    size = end - start
    if not has_room(state, size):
        return no_room(state, size)
    output, used = uint8s(state, WORK.output), state[USED]
    for index in range(size):
        output[used + index] = data[start + index]
    state[USED] = used + size
    return DONE


@called
def put_escaped(state: Int64, field: int, start: int, end: int, where: int) -> int:
    """Append text; returns a status."""
    data, escapes = uint8s(state, field), uint8s(state, TEMPLATES.escapes)
    output, used = uint8s(state, WORK.output), state[USED]
    most = min(len(output), state[BEGUN] + state[BYTES_MAX])
    for place in range(start, end):
        byte = data[place]
        row = (np.int64(byte) + 256 * where) * ESCAPE
        size: int = np.int64(escapes[row])
        if used + max(size, 1) > most:
            state[USED] = used
            return no_room(state, end - place - 1 + max(size, 1))
        if size == 0:
            output[used] = byte
            used += 1
            continue
        for index in range(1, size + 1):
            output[used] = escapes[row + index]
            used += 1
    state[USED] = used
    return DONE


@inlined
def has_room(state: Int64, size: int) -> bool:
    """Whether so many bytes fit into the output and into the message."""
    used = state[USED] + size
    return used <= len(uint8s(state, WORK.output)) and used - state[BEGUN] <= state[BYTES_MAX]


@called
def no_room(state: Int64, size: int) -> int:
    """The status where so many bytes do not fit."""
    if state[USED] + size - state[BEGUN] > state[BYTES_MAX]:
        return TOO_LONG
    state[NEEDED] = state[USED] + size
    return FULL
