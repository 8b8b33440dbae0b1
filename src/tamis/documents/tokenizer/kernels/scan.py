"""Reads documents: the loop in which time goes."""

from __future__ import annotations

import numpy as np

from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.documents.tokenizer.kernels.content import before_markup, markup, text_reference
from tamis.documents.tokenizer.kernels.layout import (
    AMP,
    ANSWER,
    BANG,
    BODY,
    CARRY,
    CONTEXT,
    CONTEXT_DEPTH,
    CONTEXT_SCOPE,
    CONTEXT_STACK,
    CONTEXTS,
    CONTEXTS_MAX,
    CURRENT_SCOPE,
    DECLINE,
    DEPTH,
    DEPTH_MAX,
    DOCUMENT,
    DOCUMENTS,
    DOCUMENTS_MAX,
    DONE,
    ELEMENT,
    EMPTY_END,
    ENOUGH,
    EVENTS,
    EVENTS_MARK,
    EVENTS_MAX,
    FIRST_DOCUMENT,
    FIRST_SKIPPED,
    FLOOR,
    FULL_EVENTS,
    GT,
    HAS_DOCTYPE,
    IN_RECORDS,
    INDEXED,
    IS_EMITTING,
    IS_EXTERNAL,
    IS_FAULTY,
    IS_FINAL,
    IS_REFUSED,
    IS_STANDALONE,
    KEY,
    LEFT_TAG,
    LT,
    MISC,
    MISC_BYTES_MARK,
    MORE,
    MULTIPLIER,
    NAME_COLUMNS,
    NAME_MAX,
    NAMES,
    NECK,
    NEW_CONTEXT,
    NO_ROOT,
    OUT,
    PARTS,
    POSITION,
    QUESTION,
    READ_TEXT,
    RECORD_FROM,
    RECORDS_MAX,
    ROOT,
    ROOT_IS_CLOSED,
    ROOT_IS_OPEN,
    SKIPPED,
    SKIPPED_MARK,
    SLASH,
    SPACE,
    STOPPED_AT,
    SWITCH,
    TAIL,
    TEXT_BYTES,
    TEXT_DEPTH,
    TEXT_FROM,
    WITH_OFFSETS,
    WITH_PREFIXES,
    WORK,
    Int64,
    at,
    length_of,
)
from tamis.documents.tokenizer.kernels.lookup import (
    BEYOND,
    HEAD_MASKS,
    NECK_MASKS,
    find_name,
    index_window,
    is_sound,
    is_spelled,
    same_bytes,
    search,
    skip_space,
)
from tamis.documents.tokenizer.kernels.tags import (
    close_element,
    open_element,
    plain_attributes,
    record_more,
    start_tag,
)
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


@kernel
def begin_document(state: Int64, number: int) -> None:
    """Set out to read document ``number`` of the text."""
    state[IS_STANDALONE] = uint8s(state, PARTS.standalone)[number]
    begin_stream(state, int64s(state, PARTS.starts)[number])


@kernel
def begin_stream(state: Int64, place: int) -> None:
    """Set out to read what begins at a place."""
    state[POSITION] = place
    state[LEFT_TAG] = -1
    state[DEPTH] = 0
    state[CURRENT_SCOPE] = 0
    state[ROOT] = NO_ROOT
    state[IS_EMITTING] = state[IN_RECORDS] == 0
    state[FLOOR] = 0
    state[TEXT_DEPTH] = -1
    state[IS_EXTERNAL] = 0
    state[HAS_DOCTYPE] = 0
    state[SKIPPED] = 0
    mark(state)


@called
def end_document(state: Int64) -> None:
    """What was recorded since the last mark is a document."""
    number = state[DOCUMENTS]
    int64s(state, OUT.document_starts)[number + 1] = state[EVENTS]
    int64s(state, OUT.misc_starts)[number + 1] = state[MISC]
    state[DOCUMENTS] = number + 1


@inlined
def note_outcome(state: Int64, number: int, declined: bool) -> None:
    """Note what became of document ``number`` of the text."""
    document = state[DOCUMENT]
    origins = int64s(state, PARTS.origins)
    uint8s(state, OUT.declined)[document] = declined
    int64s(state, OUT.skipped)[document] = state[SKIPPED]
    first_skipped = int64s(state, OUT.first_skipped)
    first_skipped[document] = state[FIRST_SKIPPED] - origins[number]


@called
def at_end(state: Int64, start: int, end: int, depth: int) -> int:
    """What to do at the end of the bytes; the text from ``start`` on is not settled."""
    if not state[IS_FINAL]:
        return MORE
    is_whole = depth == 0 and state[ROOT] == ROOT_IS_CLOSED and skip_space(state, start) >= end
    return DONE if is_whole else DECLINE


@called
def mark(state: Int64) -> None:
    """Remember what is recorded, for ``forget``."""
    for i in range(MISC_BYTES_MARK - EVENTS_MARK + 1):
        state[EVENTS_MARK + i] = state[EVENTS + i]
    state[TEXT_FROM] = state[TEXT_BYTES]


@called
def forget(state: Int64) -> None:
    """Forget what was recorded since the last ``mark``."""
    for i in range(MISC_BYTES_MARK - EVENTS_MARK + 1):
        state[EVENTS + i] = state[EVENTS_MARK + i]
    state[TEXT_FROM] = state[TEXT_BYTES]


@called
def is_record(state: Int64, place: int, length: int) -> bool:
    """Whether the name at a place is that of records."""
    size = length_of(state, NAMES.record) - 8
    return length == size and same_bytes(state, place, state[NAMES.record], length)


@called
def begin_record(state: Int64, place: int, event: int, depth: int, scope: int) -> int:
    """A record begins at the start tag at a place: -1, or that its context is new."""
    context = find_context(state, depth, scope)
    if context < 0:
        return NEW_CONTEXT
    state[EVENTS] = event
    mark(state)
    state[SKIPPED_MARK] = state[SKIPPED]
    state[IS_EMITTING] = 1
    state[FLOOR] = depth
    state[RECORD_FROM] = place
    int32s(state, OUT.record_contexts)[state[DOCUMENTS]] = context
    return -1


@called
def find_context(state: Int64, depth: int, scope: int) -> int:
    """The number of the context that the open elements are, or -1; mostly it is the last one."""
    contexts = int64s(state, OUT.contexts)
    stack = int64s(state, WORK.stack)
    columns = len(contexts) // CONTEXTS_MAX
    count = state[CONTEXTS]
    number = state[CONTEXT]
    for _ in range(count):
        row = number * columns
        if contexts[row + CONTEXT_DEPTH] == depth and contexts[row + CONTEXT_SCOPE] == scope:
            same = 0
            while same < depth and contexts[row + CONTEXT_STACK + same] == stack[1 + same]:
                same += 1
            if same == depth:
                state[CONTEXT] = number
                return number
        number = number + 1 if number + 1 < count else 0
    return -1


@called
def end_record(state: Int64, place: int, event: int) -> int:
    """The record ends before a place: -1, or that there are enough of them."""
    number = state[DOCUMENTS]
    int64s(state, OUT.record_starts)[number] = state[RECORD_FROM]
    int64s(state, OUT.record_ends)[number] = place
    state[EVENTS] = event
    end_document(state)
    state[IS_EMITTING] = 0
    state[FLOOR] = 0
    is_enough = number + 1 >= state[RECORDS_MAX] or event >= state[EVENTS_MAX]
    return ENOUGH if is_enough else -1


@called
def retreat(state: Int64, end: int, status: int) -> None:
    """Go back to where reading can begin again: the start of the record, or of the text.

    Long text that nobody reads is not kept: only its last bytes, which may be half a character, or
    the begin of ``]]>``.
    """
    state[STOPPED_AT] = state[POSITION]
    state[LEFT_TAG] = -1
    if state[IN_RECORDS] and state[IS_EMITTING]:
        forget(state)
        state[SKIPPED] = state[SKIPPED_MARK]
        state[POSITION] = state[RECORD_FROM]
        state[DEPTH] = state[FLOOR]
        contexts = int64s(state, OUT.contexts)
        row = state[CONTEXT] * (len(contexts) // CONTEXTS_MAX)
        state[CURRENT_SCOPE] = contexts[row + CONTEXT_SCOPE]
        state[FLOOR] = 0
        state[IS_EMITTING] = 0
        state[TEXT_DEPTH] = -1
        state[ROOT] = ROOT_IS_OPEN if state[DEPTH] else NO_ROOT
    elif status == MORE and state[DEPTH] > 0 and state[TEXT_DEPTH] < 0:
        place = max(state[POSITION], end - 4)
        while place > state[POSITION] and byte(at(state, place)) & 0xC0 == 0x80:
            place -= 1
        state[POSITION] = place
