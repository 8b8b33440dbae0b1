"""Reads attributes: ``attributes`` is complete, ``plain_attributes`` fast."""

from __future__ import annotations

import numpy as np

from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.documents.tokenizer.kernels.content import SKIP, append_character, reference, transfer
from tamis.documents.tokenizer.kernels.layout import (
    AMP,
    ANSWER,
    APOSTROPHE,
    ATTRIBUTE,
    ATTRIBUTES,
    ATTRIBUTES_MAX,
    COLON,
    DECLINE,
    DOCUMENT,
    ELEMENT,
    EMPTY_END,
    EQUALS,
    FIRST_DOCUMENT,
    FULL_ATTRIBUTES,
    FULL_VALUES,
    GT,
    LEFT_ALLOWED,
    LEFT_AT,
    LEFT_BYTES,
    LEFT_COUNT,
    LEFT_SCOPE,
    LEFT_TAG,
    LT,
    MULTIPLIER,
    NAME_COLUMNS,
    NAME_MAX,
    NAMES,
    NEW_NAME,
    NEWLINE,
    OUT,
    PARTS,
    QUOTE,
    READ_VALUE,
    RETURN,
    ROOT,
    ROOT_IS_CLOSED,
    ROOT_IS_OPEN,
    SERIAL,
    SLASH,
    SPACE,
    TEXT_DEPTH,
    VALUE_BYTES,
    WITH_OFFSETS,
    WITH_PREFIXES,
    Int64,
    Words,
    at,
    is_space,
    length_of,
)
from tamis.documents.tokenizer.kernels.lookup import ask, find_name, find_scope, search, skip_space
from tamis.documents.tokenizer.vectors import (
    ALL,
    BLOCK,
    ONE,
    ZERO,
    attribute,
    byte,
    found,
    name_ends,
    value_ends,
    word,
)

DECLARED = 100
"""What ``attributes`` returns, negative, when it meets a namespace declaration."""
PLAIN_ATTRIBUTES_MAX = 32
"""Attributes of a tag that is read the fast way."""


@called
def attributes(
    state: Int64, place: int, scope: int, event: int, declared: bool
) -> tuple[int, bool]:
    """Read the rest of a start tag, from behind its name on.

    Args:
        event: the number of the start event, or -1 if it is not recorded.
        declared: the scope is that of the tag's own declarations.

    Returns:
        The place behind the tag, or the negative of a status; whether the element is empty.
    """
    table = uint64s(state, NAMES.table)
    multiplier = U(state[MULTIPLIER])
    stamps = int64s(state, NAMES.stamps)
    if state[LEFT_TAG] == place:  # go on where a question was asked
        place = state[LEFT_AT]
    else:
        state[LEFT_TAG] = place
        state[LEFT_COUNT] = state[ATTRIBUTES]
        state[LEFT_BYTES] = state[VALUE_BYTES]
        state[LEFT_ALLOWED] = state[ATTRIBUTES_MAX]
        state[SERIAL] += 1
    count, used, allowed = state[LEFT_COUNT], state[LEFT_BYTES], state[LEFT_ALLOWED]
    while True:
        state[LEFT_AT], state[LEFT_COUNT], state[LEFT_BYTES] = place, count, used
        state[LEFT_ALLOWED] = allowed
        behind = skip_space(state, place)
        address = at(state, behind)
        character = byte(address)
        if character == GT or (character == SLASH and byte(address + 1) == GT):
            state[ATTRIBUTES] = count
            state[VALUE_BYTES] = used
            state[LEFT_TAG] = -1
            return behind + 1 + (character == SLASH), character == SLASH
        length = search(state, behind, name_ends) - behind
        if behind == place or length == 0 or length > NAME_MAX:
            return -DECLINE, False
        opening = value_from(state, behind + length)
        if opening < 0:
            return -DECLINE, False
        if declares(state, behind, length):
            if not declared:
                state[LEFT_TAG] = -1
                return -DECLARED, False
            place, _ = value(state, opening, 0, False)
            if place < 0:
                return place, False
            continue
        slot = find_name(state, table, multiplier, address, behind, length, ATTRIBUTE, scope)
        if slot < 0:
            return ask(state, NEW_NAME, behind, length, ATTRIBUTE, ~slot, scope), False
        answer = table[slot * NAME_COLUMNS + ANSWER]
        id = np.int64(answer & U(0xFFFFFFFF))
        if allowed == 0 or stamps[id] == state[SERIAL]:  # too many, or twice
            return -DECLINE, False
        begin = used
        wanted = event >= 0 and np.int64(answer >> U(32)) & READ_VALUE != 0
        place, used = value(state, opening, used, wanted)
        if place < 0:
            return place, False
        if wanted:
            if count == length_of(state, OUT.attribute_event):
                return -FULL_ATTRIBUTES, False
            record_attribute(state, count, event, id, slot, begin, used)
            count += 1
        allowed -= 1
        stamps[id] = state[SERIAL]


@inlined
def record_attribute(
    state: Int64, count: int, event: int, id: int, slot: int, begin: int, end: int
) -> None:
    """Record an attribute as number ``count``."""
    int64s(state, OUT.attribute_event)[count] = event
    int32s(state, OUT.attribute_name)[count] = id
    int64s(state, OUT.value_start)[count] = begin
    int64s(state, OUT.value_end)[count] = end
    if state[WITH_PREFIXES]:
        prefixes = int32s(state, NAMES.prefixes)
        into = int32s(state, OUT.attribute_prefixes)
        into[count] = prefixes[slot]


@called
def declares(state: Int64, place: int, length: int) -> bool:
    """Whether the attribute name at a place is ``xmlns``, or begins with ``xmlns:``."""
    address = at(state, place)
    is_xmlns = word(address) & U(0xFFFFFFFFFF) == U(0x736E6C6D78)
    return is_xmlns and (length == 5 or (length > 6 and byte(address + 5) == COLON))


@inlined
def value_from(state: Int64, place: int) -> int:
    """Behind an attribute's name, the place of the opening quote, or a status."""
    place = skip_space(state, place)
    if byte(at(state, place)) != EQUALS:
        return -DECLINE
    place = skip_space(state, place + 1)
    quote = byte(at(state, place))
    return place if quote in (QUOTE, APOSTROPHE) else -DECLINE


@called
def value(state: Int64, place: int, used: int, wanted: bool) -> tuple[int, int]:
    """Read a value from its opening quote on.

    Returns:
        The place behind the closing quote, or a status; and how many bytes of the values are used.
    """
    quote = byte(at(state, place))
    start = place + 1
    end = search(state, start, value_ends, quote)
    if byte(at(state, end)) != quote:
        return slow_value(state, start, quote, used, wanted)
    if wanted:
        if used + end - start > length_of(state, OUT.attribute_values):
            return -FULL_VALUES, used
        transfer(state, start, end, state[OUT.attribute_values] + used)
        used += end - start
    return end + 1, used


@called
def slow_value(state: Int64, place: int, quote: int, used: int, wanted: bool) -> tuple[int, int]:
    """Read a value that is not just copied: normalise whitespace, and resolve references.

    Args:
        place: of the first byte behind the opening quote.
        used: bytes of the attributes' values.

    Returns:
        The place behind the closing quote, and how many bytes are then used.
    """
    values = uint8s(state, OUT.attribute_values)
    while True:
        character = byte(at(state, place))
        if character == quote:
            return place + 1, used
        if wanted and used + 4 > len(values):
            return -FULL_VALUES, used
        if character == AMP:
            code, place = reference(state, place)
            if place < 0:
                return place, used
            if wanted and code != SKIP:
                used = append_character(state, code, OUT.attribute_values, used)
            continue
        if character == LT or (character < SPACE and not is_space(character)):
            return -DECLINE, used
        if character < SPACE:
            if character == RETURN and byte(at(state, place + 1)) == NEWLINE:
                place += 1
            character = SPACE
        if wanted:
            values[used] = character
            used += 1
        place += 1


@inlined
def plain_attributes(
    state: Int64,
    table: Words,
    multiplier: np.uint64,
    stamps: Int64,
    place: int,
    scope: int,
    recording: bool,
) -> tuple[int, bool]:
    """Read the rest of a start tag if there is nothing special about it.

    Args:
        place: of the space behind the tag's name.

    Returns:
        The place behind the tag, or -1 where ``start_tag`` has to read it; whether the element is
        empty.
    """
    state[SERIAL] += 1
    serial = state[SERIAL]
    for _ in range(min(PLAIN_ATTRIBUTES_MAX, state[ATTRIBUTES_MAX])):
        address = at(state, place)
        equals, quotes, apostrophes, special = attribute(address + 1)
        if equals == ZERO:
            return -1, False
        length = first(equals)
        opening = length + 1
        if byte(address + 1 + opening) == APOSTROPHE:
            quotes = apostrophes
        if opening >= BLOCK:
            return -1, False
        behind = quotes & (ALL << U(opening))
        if length == 0 or behind & (ONE << U(opening)) == ZERO:
            return -1, False
        behind &= behind - ONE
        if special & (behind ^ (behind - ONE)):  # up to the closing quote, or all
            return -1, False
        closing = first(behind)
        if closing == BLOCK:
            quote = byte(address + 1 + opening)
            end = search(state, place + 1 + BLOCK, value_ends, quote)
            closing = end - place - 1
            if byte(at(state, end)) != quote:
                return -1, False
        slot = find_name(state, table, multiplier, address + 1, place + 1, length, ATTRIBUTE, scope)
        if slot < 0:
            return -1, False
        answer = table[U(slot) * U(NAME_COLUMNS) + U(ANSWER)]
        flags = answer >> U(32)
        if flags & U(READ_VALUE) and recording:
            return -1, False
        id = answer & U(0xFFFFFFFF)
        if stamps[id] == serial:
            return -1, False
        stamps[id] = serial
        place += closing + 2
        after = word(address + closing + 2 if closing < BLOCK else at(state, place))
        if after & U(0xFF) == U(GT):
            return place + 1, False
        if after & U(0xFFFF) == U(EMPTY_END):
            return place + 2, True
        if after & U(0xFF) != U(SPACE):
            return -1, False
    return -1, False


@called
def start_tag(
    state: Int64, place: int, length: int, scope: int, event: int
) -> tuple[int, int, bool, int]:
    """Read a start tag that is new, or that has more than ``plain_attributes`` reads.

    Args:
        place: of its name.
        length: of its name.
        event: the number of the start event, or -1 if it is not recorded.

    Returns:
        The place behind the tag, or the negative of a status; the slot of its name; whether the
        element is empty; the scope inside it.
    """
    if length == 0 or length > NAME_MAX:
        return -DECLINE, 0, False, 0
    count, used = state[ATTRIBUTES], state[VALUE_BYTES]
    declared = state[LEFT_TAG] == place + length and state[LEFT_SCOPE] != scope
    if declared:
        scope = state[LEFT_SCOPE]
    behind, empty = attributes(state, place + length, scope, event, declared)
    if behind == -DECLARED:
        scope = declare(state, place + length, scope)
        if scope < 0:
            return scope, 0, False, 0
        behind, empty = attributes(state, place + length, scope, event, True)
    state[LEFT_SCOPE] = scope
    if behind < 0:
        return behind, 0, False, 0
    table = uint64s(state, NAMES.table)
    multiplier = U(state[MULTIPLIER])
    slot = find_name(state, table, multiplier, at(state, place), place, length, ELEMENT, scope)
    if slot < 0:  # the tag is read once more when that is known
        state[ATTRIBUTES], state[VALUE_BYTES] = count, used
        return ask(state, NEW_NAME, place, length, ELEMENT, ~slot, scope), 0, False, 0
    return behind, slot, empty, scope


@called
def declare(state: Int64, place: int, scope: int) -> int:
    """The scope that the namespace declarations of a start tag make.

    Args:
        place: behind the name of the tag.
        scope: that the tag is in.

    Returns:
        The scope, or the negative of a status.
    """
    declarations = uint8s(state, NAMES.declarations)
    used = 0
    while True:
        place = skip_space(state, place)
        length = search(state, place, name_ends) - place
        if length == 0:
            return find_scope(state, used, scope)
        opening = value_from(state, place + length)
        if opening < 0 or length > NAME_MAX:
            return -DECLINE
        quote = byte(at(state, opening))
        closing = search(state, opening + 1, found, quote)
        if byte(at(state, closing)) != quote:
            return -DECLINE
        if declares(state, place, length):
            size = closing + 1 - place
            if used + size + 1 > len(declarations):
                return -DECLINE
            transfer(state, place, closing + 1, state[NAMES.declarations] + used)
            used += size
            declarations[used] = SPACE
            used += 1
        place = closing + 1


@inlined
def record_more(state: Int64, event: int, slot: int, place: int) -> None:
    """Record what else is asked of an event.

    Args:
        slot: of the element's name, or -1 at an end, which has no prefix.
        place: where the event stands.
    """
    if state[WITH_PREFIXES]:
        into = int32s(state, OUT.prefixes)
        prefixes = int32s(state, NAMES.prefixes)
        into[event] = -1 if slot < 0 else prefixes[slot]
    if state[WITH_OFFSETS]:
        offsets, origins = int64s(state, OUT.offsets), int64s(state, PARTS.origins)
        offsets[event] = place - origins[state[DOCUMENT] - state[FIRST_DOCUMENT]]


@called
def open_element(state: Int64, depth: int, is_read: bool) -> bool:
    """Note an element that is now open: whether the text in it matters."""
    state[ROOT] = ROOT_IS_OPEN
    if is_read and state[TEXT_DEPTH] < 0:
        state[TEXT_DEPTH] = depth
    return state[TEXT_DEPTH] >= 0


@called
def close_element(state: Int64, depth: int) -> bool:
    """Note that an element is closed, and how many are open: whether text matters now."""
    if depth < state[TEXT_DEPTH]:
        state[TEXT_DEPTH] = -1
    if depth == 0:
        state[ROOT] = ROOT_IS_CLOSED
    return depth == 0 or state[TEXT_DEPTH] >= 0
