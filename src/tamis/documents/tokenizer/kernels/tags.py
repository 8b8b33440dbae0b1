"""Reads start tags: ``attributes`` is complete, ``plain_attributes`` fast."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.documents.tokenizer.kernels import layout as at
from tamis.documents.tokenizer.kernels.content import SKIP, append_character, reference, transfer
from tamis.documents.tokenizer.kernels.layout import Words
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

DECLARED = 100  # what ``attributes`` returns, negative, when it meets a namespace declaration
PLAIN_ATTRIBUTES_MAX = 32  # attributes of a tag that is read the fast way


@called
def attributes(
    state: Int64, place: int, scope: int, event: int, declared: bool
) -> tuple[int, bool]:
    """Read the rest of a start tag, from behind its name on.

    ``event`` is -1 if it is not recorded; the scope may be that of the tag's own declarations.
    Returns the place behind the tag, or the negative of a status; whether the element is empty.
    """
    table = uint64s(state, at.NAMES.table)
    multiplier = U(state[at.MULTIPLIER])
    stamps = int64s(state, at.NAMES.stamps)
    if state[at.LEFT_TAG] == place:  # go on where a question was asked
        place = state[at.LEFT_AT]
    else:
        state[at.LEFT_TAG] = place
        state[at.LEFT_COUNT] = state[at.ATTRIBUTES]
        state[at.LEFT_BYTES] = state[at.VALUE_BYTES]
        state[at.LEFT_ALLOWED] = state[at.ATTRIBUTES_MAX]
        state[at.SERIAL] += 1
    count, used, allowed = state[at.LEFT_COUNT], state[at.LEFT_BYTES], state[at.LEFT_ALLOWED]
    while True:
        state[at.LEFT_AT], state[at.LEFT_COUNT], state[at.LEFT_BYTES] = place, count, used
        state[at.LEFT_ALLOWED] = allowed
        behind = skip_space(state, place)
        address = at.address(state, behind)
        character = byte(address)
        if character == at.GT or (character == at.SLASH and byte(address + 1) == at.GT):
            state[at.ATTRIBUTES] = count
            state[at.VALUE_BYTES] = used
            state[at.LEFT_TAG] = -1
            return behind + 1 + (character == at.SLASH), character == at.SLASH
        length = search(state, behind, name_ends) - behind
        if behind == place or length == 0 or length > at.NAME_MAX:
            return -at.DECLINE, False
        opening = value_from(state, behind + length)
        if opening < 0:
            return -at.DECLINE, False
        if declares(state, behind, length):
            if not declared:
                state[at.LEFT_TAG] = -1
                return -DECLARED, False
            place, _ = value(state, opening, 0, False)
            if place < 0:
                return place, False
            continue
        slot = find_name(state, table, multiplier, address, behind, length, at.ATTRIBUTE, scope)
        if slot < 0:
            return ask(state, at.NEW_NAME, behind, length, at.ATTRIBUTE, ~slot, scope), False
        answer = table[slot * at.NAME_COLUMNS + at.ANSWER]
        id = np.int64(answer & U(0xFFFFFFFF))
        if allowed == 0 or stamps[id] == state[at.SERIAL]:  # too many, or twice
            return -at.DECLINE, False
        begin = used
        wanted = event >= 0 and np.int64(answer >> U(32)) & at.READ_VALUE != 0
        place, used = value(state, opening, used, wanted)
        if place < 0:
            return place, False
        if wanted:
            if count == at.length_of(state, at.OUT.attribute_event):
                return -at.FULL_ATTRIBUTES, False
            record_attribute(state, count, event, id, slot, begin, used)
            count += 1
        allowed -= 1
        stamps[id] = state[at.SERIAL]


@inlined
def record_attribute(
    state: Int64, count: int, event: int, id: int, slot: int, begin: int, end: int
) -> None:
    """Record an attribute as number ``count``."""
    int64s(state, at.OUT.attribute_event)[count] = event
    int32s(state, at.OUT.attribute_name)[count] = id
    int64s(state, at.OUT.value_start)[count] = begin
    int64s(state, at.OUT.value_end)[count] = end
    if state[at.WITH_PREFIXES]:
        prefixes = int32s(state, at.NAMES.prefixes)
        into = int32s(state, at.OUT.attribute_prefixes)
        into[count] = prefixes[slot]


@called
def declares(state: Int64, place: int, length: int) -> bool:
    """Whether the attribute name at a place is ``xmlns``, or begins with ``xmlns:``."""
    address = at.address(state, place)
    is_xmlns = word(address) & U(0xFFFFFFFFFF) == U(0x736E6C6D78)
    return is_xmlns and (length == 5 or (length > 6 and byte(address + 5) == at.COLON))


@inlined
def value_from(state: Int64, place: int) -> int:
    """Behind an attribute's name, the place of the opening quote, or a status."""
    place = skip_space(state, place)
    if byte(at.address(state, place)) != at.EQUALS:
        return -at.DECLINE
    place = skip_space(state, place + 1)
    quote = byte(at.address(state, place))
    return place if quote in (at.QUOTE, at.APOSTROPHE) else -at.DECLINE


@called
def value(state: Int64, place: int, used: int, wanted: bool) -> tuple[int, int]:
    """Read a value from its opening quote on.

    Returns the place behind the closing quote, or a status; how many bytes of the values are used.
    """
    quote = byte(at.address(state, place))
    start = place + 1
    end = search(state, start, value_ends, quote)
    if byte(at.address(state, end)) != quote:
        return slow_value(state, start, quote, used, wanted)
    if wanted:
        if used + end - start > at.length_of(state, at.OUT.attribute_values):
            return -at.FULL_VALUES, used
        transfer(state, start, end, state[at.OUT.attribute_values] + used)
        used += end - start
    return end + 1, used


@called
def slow_value(state: Int64, place: int, quote: int, used: int, wanted: bool) -> tuple[int, int]:
    """``value`` from behind its quote on: normalise whitespace, and resolve references."""
    values = uint8s(state, at.OUT.attribute_values)
    while True:
        character = byte(at.address(state, place))
        if character == quote:
            return place + 1, used
        if wanted and used + 4 > len(values):
            return -at.FULL_VALUES, used
        if character == at.AMP:
            code, place = reference(state, place)
            if place < 0:
                return place, used
            if wanted and code != SKIP:
                used = append_character(state, code, at.OUT.attribute_values, used)
            continue
        if character == at.LT or (character < at.SPACE and not at.is_space(character)):
            return -at.DECLINE, used
        if character < at.SPACE:
            if character == at.RETURN and byte(at.address(state, place + 1)) == at.NEWLINE:
                place += 1
            character = at.SPACE
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
    """Read the rest of a start tag, from the space behind its name on, if it is nothing special.

    Returns the place behind the tag, or -1 where ``start_tag`` has to read it; whether the element
    is empty.
    """
    state[at.SERIAL] += 1
    serial = state[at.SERIAL]
    for _ in range(min(PLAIN_ATTRIBUTES_MAX, state[at.ATTRIBUTES_MAX])):
        address = at.address(state, place)
        equals, quotes, apostrophes, special = attribute(address + 1)
        if equals == ZERO:
            return -1, False
        length = first(equals)
        opening = length + 1
        if byte(address + 1 + opening) == at.APOSTROPHE:
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
            if byte(at.address(state, end)) != quote:
                return -1, False
        slot = find_name(
            state, table, multiplier, address + 1, place + 1, length, at.ATTRIBUTE, scope
        )
        if slot < 0:
            return -1, False
        answer = table[U(slot) * U(at.NAME_COLUMNS) + U(at.ANSWER)]
        flags = answer >> U(32)
        if flags & U(at.READ_VALUE) and recording:
            return -1, False
        id = answer & U(0xFFFFFFFF)
        if stamps[id] == serial:
            return -1, False
        stamps[id] = serial
        place += closing + 2
        after = word(address + closing + 2 if closing < BLOCK else at.address(state, place))
        if after & U(0xFF) == U(at.GT):
            return place + 1, False
        if after & U(0xFFFF) == U(at.EMPTY_END):
            return place + 2, True
        if after & U(0xFF) != U(at.SPACE):
            return -1, False
    return -1, False


@called
def start_tag(
    state: Int64, place: int, length: int, scope: int, event: int
) -> tuple[int, int, bool, int]:
    """Read a start tag that is new, or that has more than ``plain_attributes`` reads.

    ``place`` and ``length`` are of its name; ``event`` is -1 if it is not recorded. Returns the
    place behind the tag, or the negative of a status; the slot of its name; whether the element is
    empty; the scope inside it.
    """
    if length == 0 or length > at.NAME_MAX:
        return -at.DECLINE, 0, False, 0
    count, used = state[at.ATTRIBUTES], state[at.VALUE_BYTES]
    declared = state[at.LEFT_TAG] == place + length and state[at.LEFT_SCOPE] != scope
    if declared:
        scope = state[at.LEFT_SCOPE]
    behind, empty = attributes(state, place + length, scope, event, declared)
    if behind == -DECLARED:
        scope = declare(state, place + length, scope)
        if scope < 0:
            return scope, 0, False, 0
        behind, empty = attributes(state, place + length, scope, event, True)
    state[at.LEFT_SCOPE] = scope
    if behind < 0:
        return behind, 0, False, 0
    table = uint64s(state, at.NAMES.table)
    multiplier = U(state[at.MULTIPLIER])
    slot = find_name(
        state, table, multiplier, at.address(state, place), place, length, at.ELEMENT, scope
    )
    if slot < 0:  # the tag is read once more when that is known
        state[at.ATTRIBUTES], state[at.VALUE_BYTES] = count, used
        return ask(state, at.NEW_NAME, place, length, at.ELEMENT, ~slot, scope), 0, False, 0
    return behind, slot, empty, scope


@called
def declare(state: Int64, place: int, scope: int) -> int:
    """The scope that the declarations behind the name of a tag make in a scope, or a status."""
    declarations = uint8s(state, at.NAMES.declarations)
    used = 0
    while True:
        place = skip_space(state, place)
        length = search(state, place, name_ends) - place
        if length == 0:
            return find_scope(state, used, scope)
        opening = value_from(state, place + length)
        if opening < 0 or length > at.NAME_MAX:
            return -at.DECLINE
        quote = byte(at.address(state, opening))
        closing = search(state, opening + 1, found, quote)
        if byte(at.address(state, closing)) != quote:
            return -at.DECLINE
        if declares(state, place, length):
            size = closing + 1 - place
            if used + size + 1 > len(declarations):
                return -at.DECLINE
            transfer(state, place, closing + 1, state[at.NAMES.declarations] + used)
            used += size
            declarations[used] = at.SPACE
            used += 1
        place = closing + 1


@inlined
def record_more(state: Int64, event: int, slot: int, place: int) -> None:
    """Record what else is asked of an event: ``slot`` is -1 at an end, which has no prefix."""
    if state[at.WITH_PREFIXES]:
        into = int32s(state, at.OUT.prefixes)
        prefixes = int32s(state, at.NAMES.prefixes)
        into[event] = -1 if slot < 0 else prefixes[slot]
    if state[at.WITH_OFFSETS]:
        offsets, origins = int64s(state, at.OUT.offsets), int64s(state, at.PARTS.origins)
        offsets[event] = place - origins[state[at.DOCUMENT] - state[at.FIRST_DOCUMENT]]


@called
def open_element(state: Int64, depth: int, is_read: bool) -> bool:
    """An element is now open: whether the text in it matters."""
    state[at.ROOT] = at.ROOT_IS_OPEN
    if is_read and state[at.TEXT_DEPTH] < 0:
        state[at.TEXT_DEPTH] = depth
    return state[at.TEXT_DEPTH] >= 0


@called
def close_element(state: Int64, depth: int) -> bool:
    """An element is closed, and ``depth`` are open: whether text matters now."""
    if depth < state[at.TEXT_DEPTH]:
        state[at.TEXT_DEPTH] = -1
    if depth == 0:
        state[at.ROOT] = at.ROOT_IS_CLOSED
    return depth == 0 or state[at.TEXT_DEPTH] >= 0
