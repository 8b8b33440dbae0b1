"""Reads attributes: ``attributes`` is complete, ``plain_attributes`` fast."""

from __future__ import annotations

import numpy as np

from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.documents.tokenizer.kernels.characters import (
    AMP,
    APOSTROPHE,
    COLON,
    EMPTY_END,
    EQUALS,
    GT,
    LT,
    NEWLINE,
    QUOTE,
    RETURN,
    SLASH,
    SPACE,
    is_space,
)
from tamis.documents.tokenizer.kernels.layout import (
    ANSWER,
    ATTRIBUTE,
    ATTRIBUTES,
    ATTRIBUTES_MAX,
    DECLINE,
    FULL_ATTRIBUTES,
    FULL_VALUES,
    LEFT_ALLOWED,
    LEFT_AT,
    LEFT_BYTES,
    LEFT_COUNT,
    LEFT_TAG,
    MULTIPLIER,
    NAME_COLUMNS,
    NAME_MAX,
    NAMES,
    NEW_NAME,
    OUT,
    READ_VALUE,
    SERIAL,
    VALUE_BYTES,
    WITH_PREFIXES,
    Int64,
    Words,
    at,
    length_of,
)
from tamis.documents.tokenizer.kernels.lookup import ask, find_name
from tamis.documents.tokenizer.kernels.search import search, skip_space
from tamis.documents.tokenizer.kernels.values import SKIP, append_character, reference, transfer
from tamis.documents.tokenizer.vectors import (
    ALL,
    BLOCK,
    ONE,
    ZERO,
    attribute,
    byte,
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
