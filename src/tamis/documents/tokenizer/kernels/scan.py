"""Reads documents: the loop in which time goes."""

from __future__ import annotations

import numpy as np

from tamis.core.kernel import U, called, kernel
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import int32s, int64s, uint64s
from tamis.documents.tokenizer.kernels.attributes import plain_attributes
from tamis.documents.tokenizer.kernels.characters import (
    AMP,
    BANG,
    EMPTY_END,
    GT,
    LT,
    QUESTION,
    SLASH,
    SPACE,
)
from tamis.documents.tokenizer.kernels.index import BEYOND, index_window, is_sound
from tamis.documents.tokenizer.kernels.layout import (
    ANSWER,
    BODY,
    CARRY,
    CURRENT_SCOPE,
    DECLINE,
    DEPTH,
    DEPTH_MAX,
    DOCUMENT,
    DOCUMENTS_MAX,
    DONE,
    ELEMENT,
    ENOUGH,
    EVENTS,
    FIRST_DOCUMENT,
    FLOOR,
    FULL_EVENTS,
    IN_RECORDS,
    INDEXED,
    IS_EMITTING,
    IS_FAULTY,
    IS_REFUSED,
    KEY,
    LEFT_TAG,
    MORE,
    MULTIPLIER,
    NAME_COLUMNS,
    NAME_MAX,
    NAMES,
    NECK,
    OUT,
    PARTS,
    POSITION,
    READ_TEXT,
    SKIPPED,
    SWITCH,
    TAIL,
    TEXT_DEPTH,
    WITH_OFFSETS,
    WITH_PREFIXES,
    WORK,
    Int64,
    at,
)
from tamis.documents.tokenizer.kernels.lookup import HEAD_MASKS, NECK_MASKS, find_name, is_spelled
from tamis.documents.tokenizer.kernels.markup import markup
from tamis.documents.tokenizer.kernels.search import search, skip_space
from tamis.documents.tokenizer.kernels.spans import (
    at_end,
    begin_document,
    begin_record,
    end_document,
    end_record,
    forget,
    is_record,
    note_outcome,
    retreat,
)
from tamis.documents.tokenizer.kernels.tags import (
    close_element,
    open_element,
    record_more,
    start_tag,
)
from tamis.documents.tokenizer.kernels.texts import before_markup, text_reference
from tamis.documents.tokenizer.vectors import BLOCK, byte, name_ends, near_name_ends, word


@kernel
def scan(state: Int64) -> int:
    """Read documents from where the state is: why it stops. All arrays were noted by ``bind``."""
    ends = int64s(state, PARTS.ends)
    while state[DOCUMENT] < state[DOCUMENTS_MAX]:
        number = state[DOCUMENT] - state[FIRST_DOCUMENT]
        status = scan_document(state, ends[number])
        if state[IN_RECORDS] or status not in (DONE, DECLINE):
            return status
        if status == DECLINE:
            forget(state)
            state[SKIPPED] = 0
        note_outcome(state, number, status == DECLINE)
        end_document(state)
        state[DOCUMENT] += 1
        if state[DOCUMENT] < state[DOCUMENTS_MAX]:
            begin_document(state, number + 1)
    return DONE


@called
def scan_document(state: Int64, end: int) -> int:
    """Read one document from where the state is: why it stops.

    This is the loop in which time goes, so it is one function: what changes with each tag is in
    local variables, and everything that is seldom is elsewhere.
    """
    body, tail, switch = state[BODY], state[TAIL], state[SWITCH]
    table = uint64s(state, NAMES.table)
    multiplier = U(state[MULTIPLIER])
    stamps = int64s(state, NAMES.stamps)
    stack = int64s(state, WORK.stack)
    tags = int32s(state, OUT.tags)
    with_more = state[WITH_PREFIXES] + state[WITH_OFFSETS] != 0
    depth_max = state[DEPTH_MAX]
    room = len(tags) - 2
    place = state[POSITION]
    start = place  # of the text that is not settled
    event = state[EVENTS]
    depth = state[DEPTH]
    scope = state[CURRENT_SCOPE]
    emitting = state[IS_EMITTING]
    floor = state[FLOOR]
    watching = depth == 0 or state[TEXT_DEPTH] >= 0
    seeking = state[IN_RECORDS] != 0 and not emitting
    index = int64s(state, WORK.structure)
    state[INDEXED] = place
    state[CARRY] = 0
    state[IS_FAULTY] = 0
    index[0] = BEYOND
    next = 0
    status = DECLINE if state[IS_REFUSED] else -1
    state[IS_REFUSED] = 0
    while status < 0:
        here = index[U(next)]
        next += 1
        if here < place:  # inside of what was read
            continue
        if here == BEYOND:
            if state[IS_FAULTY] or state[INDEXED] > end:
                status = DECLINE
                break
            index_window(state, end)
            next = 0
            continue
        place = here
        address = (body if place < switch else tail) + place
        text = word(address)
        if text & U(0xFF) != U(LT):
            if text & U(0xFF) == U(AMP):
                behind = text_reference(state, start, place, event - 1)
                if behind < 0:
                    status = -behind
                    break
                place = start = behind
            elif place < end:  # the second of two brackets
                if text & U(0xFF00) == U(GT << 8):
                    status = DECLINE
                place += 1
            else:
                status = at_end(state, start, end, depth)
            continue
        if event > room:
            status = FULL_EVENTS
            break
        if watching:
            behind = before_markup(state, start, place, event - 1)
            if behind < 0:
                status = -behind
                break
        start = place
        second = np.int64(text >> U(8) & U(0xFF))
        closes = False
        if second == SLASH:
            row = U(stack[U(depth)] & 0xFFFFFFFF) * U(NAME_COLUMNS)
            length = np.int64(table[row + U(KEY)] & U(NAME_MAX))
            behind = place + 2 + length
            other = (word(address + 2) ^ table[row]) & HEAD_MASKS[U(min(length, 16))]
            other |= (word(address + 10) ^ table[row + U(NECK)]) & NECK_MASKS[U(min(length, 16))]
            if other or (
                length > 16 and not is_spelled(state, place + 2, stack[depth] & 0xFFFFFFFF, length)
            ):
                status = DECLINE
                break
            near = address + 2 + length if length <= BLOCK else at(state, behind)
            if byte(near) != GT:
                behind = skip_space(state, behind)
                if byte(at(state, behind)) != GT:
                    status = DECLINE
                    break
            place = behind + 1
            closes = True
        elif second in (BANG, QUESTION):
            behind = markup(state, place, event - 1)
            if behind < 0:
                status = -behind
                break
            place = behind
        else:
            length = first(near_name_ends(address + 1))
            if length == BLOCK:
                length = search(state, place + 1, name_ends) - place - 1
            if seeking and is_record(state, place + 1, length):
                status = begin_record(state, place, event, depth, scope)
                if status >= 0:
                    break
                emitting = 1
                floor = depth
                seeking = False
            if depth - floor >= depth_max or length > NAME_MAX:
                status = DECLINE
                break
            outside = scope
            slot = find_name(
                state, table, multiplier, address + 1, place + 1, length, ELEMENT, scope
            )
            behind = -1
            if slot >= 0:
                near = address + 1 + length if length <= BLOCK else at(state, place + 1 + length)
                after = word(near)
                if after & U(0xFF) == U(GT):
                    behind = place + 2 + length
                elif after & U(0xFF) == U(SPACE) and state[LEFT_TAG] < 0:
                    behind, closes = plain_attributes(
                        state, table, multiplier, stamps, place + 1 + length, scope, emitting != 0
                    )
                elif after & U(0xFFFF) == U(EMPTY_END):
                    behind = place + 3 + length
                    closes = True
            if behind < 0:
                behind, slot, closes, scope = start_tag(
                    state, place + 1, length, scope, event if emitting else -1
                )
                if behind < 0:
                    status = -behind
                    scope = outside
                    break
            answer = table[U(slot) * U(NAME_COLUMNS) + U(ANSWER)]
            tags[U(event)] = np.int32(answer & U(0xFFFFFFFF))
            if with_more:
                record_more(state, event, slot, start)
            event += emitting
            depth += 1
            stack[U(depth)] = slot | outside << 32
            if watching or depth == 1 or (answer >> U(32) & U(READ_TEXT) and emitting):
                watching = open_element(state, depth, answer >> U(32) & U(READ_TEXT) and emitting)
            place = behind
        if closes:
            tags[U(event)] = -1
            if with_more:
                record_more(state, event, -1, place)
            event += emitting
            scope = stack[U(depth)] >> 32
            depth -= 1
            if watching or depth == floor:
                watching = close_element(state, depth)
                if depth == floor and emitting and state[IN_RECORDS]:
                    status = end_record(state, place, event)
                    emitting = 0
                    floor = 0
                    seeking = True
        start = place
    state[POSITION] = start
    state[EVENTS] = event
    state[DEPTH] = depth
    state[CURRENT_SCOPE] = scope
    if status == ENOUGH and not is_sound(state, start, end):
        status = DECLINE
    if status in (MORE, DECLINE):
        retreat(state, end, status)
    return status
