"""Reads documents: the loop in which time goes, and where documents and records begin and end."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.documents.tokenizer.kernels import layout as at
from tamis.documents.tokenizer.kernels.content import before_markup, markup, text_reference
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
    """Read documents from where the state is: why it stops. All arrays are registered."""
    ends = int64s(state, at.PARTS.ends)
    while state[at.DOCUMENT] < state[at.DOCUMENTS_MAX]:
        number = state[at.DOCUMENT] - state[at.FIRST_DOCUMENT]
        status = scan_document(state, ends[number])
        if state[at.IN_RECORDS] or status not in (at.DONE, at.DECLINE):
            return status
        if status == at.DECLINE:
            forget(state)
            state[at.SKIPPED] = 0
        record_outcome(state, number, status == at.DECLINE)
        end_document(state)
        state[at.DOCUMENT] += 1
        if state[at.DOCUMENT] < state[at.DOCUMENTS_MAX]:
            begin_document(state, number + 1)
    return at.DONE


@called
def scan_document(state: Int64, end: int) -> int:
    """Read one document from where the state is: why it stops.

    This is the loop in which time goes, so it is one function: what changes with each tag is in
    local variables, and everything that is seldom is elsewhere.
    """
    body, tail, switch = state[at.BODY], state[at.TAIL], state[at.SWITCH]
    table = uint64s(state, at.NAMES.table)
    multiplier = U(state[at.MULTIPLIER])
    stamps = int64s(state, at.NAMES.stamps)
    stack = int64s(state, at.WORK.stack)
    tags = int32s(state, at.OUT.tags)
    with_more = state[at.WITH_PREFIXES] + state[at.WITH_OFFSETS] != 0
    depth_max = state[at.DEPTH_MAX]
    room = len(tags) - 2
    place = state[at.POSITION]
    start = place  # of the text that is not settled
    event = state[at.EVENTS]
    depth = state[at.DEPTH]
    scope = state[at.CURRENT_SCOPE]
    emitting = state[at.IS_EMITTING]
    floor = state[at.FLOOR]
    watching = depth == 0 or state[at.TEXT_DEPTH] >= 0
    seeking = state[at.IN_RECORDS] != 0 and not emitting
    index = int64s(state, at.WORK.structure)
    state[at.INDEXED] = place
    state[at.CARRY] = 0
    state[at.IS_FAULTY] = 0
    index[0] = BEYOND
    next = 0
    status = at.DECLINE if state[at.IS_REFUSED] else -1
    state[at.IS_REFUSED] = 0
    while status < 0:
        here = index[U(next)]
        next += 1
        if here < place:  # inside of what was read
            continue
        if here == BEYOND:
            if state[at.IS_FAULTY] or state[at.INDEXED] > end:
                status = at.DECLINE
                break
            index_window(state, end)
            next = 0
            continue
        place = here
        address = (body if place < switch else tail) + place
        text = word(address)
        if text & U(0xFF) != U(at.LT):
            if text & U(0xFF) == U(at.AMP):
                behind = text_reference(state, start, place, event - 1)
                if behind < 0:
                    status = -behind
                    break
                place = start = behind
            elif place < end:  # the second of two brackets
                if text & U(0xFF00) == U(at.GT << 8):
                    status = at.DECLINE
                place += 1
            else:
                status = at_end(state, start, end, depth)
            continue
        if event > room:
            status = at.FULL_EVENTS
            break
        if watching:
            behind = before_markup(state, start, place, event - 1)
            if behind < 0:
                status = -behind
                break
        start = place
        second = np.int64(text >> U(8) & U(0xFF))
        closes = False
        if second == at.SLASH:
            row = U(stack[U(depth)] & 0xFFFFFFFF) * U(at.NAME_COLUMNS)
            length = np.int64(table[row + U(at.KEY)] & U(at.NAME_MAX))
            behind = place + 2 + length
            other = (word(address + 2) ^ table[row]) & HEAD_MASKS[U(min(length, 16))]
            other |= (word(address + 10) ^ table[row + U(at.NECK)]) & NECK_MASKS[U(min(length, 16))]
            if other or (
                length > 16 and not is_spelled(state, place + 2, stack[depth] & 0xFFFFFFFF, length)
            ):
                status = at.DECLINE
                break
            near = address + 2 + length if length <= BLOCK else at.address(state, behind)
            if byte(near) != at.GT:
                behind = skip_space(state, behind)
                if byte(at.address(state, behind)) != at.GT:
                    status = at.DECLINE
                    break
            place = behind + 1
            closes = True
        elif second in (at.BANG, at.QUESTION):
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
            if depth - floor >= depth_max or length > at.NAME_MAX:
                status = at.DECLINE
                break
            outside = scope
            slot = find_name(
                state, table, multiplier, address + 1, place + 1, length, at.ELEMENT, scope
            )
            behind = -1
            if slot >= 0:
                near = (
                    address + 1 + length
                    if length <= BLOCK
                    else at.address(state, place + 1 + length)
                )
                after = word(near)
                if after & U(0xFF) == U(at.GT):
                    behind = place + 2 + length
                elif after & U(0xFF) == U(at.SPACE) and state[at.LEFT_TAG] < 0:
                    behind, closes = plain_attributes(
                        state, table, multiplier, stamps, place + 1 + length, scope, emitting != 0
                    )
                elif after & U(0xFFFF) == U(at.EMPTY_END):
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
            answer = table[U(slot) * U(at.NAME_COLUMNS) + U(at.ANSWER)]
            tags[U(event)] = np.int32(answer & U(0xFFFFFFFF))
            if with_more:
                record_more(state, event, slot, start)
            event += emitting
            depth += 1
            stack[U(depth)] = slot | outside << 32
            if watching or depth == floor + 1 or (answer >> U(32) & U(at.READ_TEXT) and emitting):
                if depth == floor + 1 and emitting and is_other(state, answer):
                    event = abandon_record(state)
                    emitting = 0
                    floor = 0
                    seeking = True
                watching = open_element(
                    state, depth, answer >> U(32) & U(at.READ_TEXT) and emitting
                )
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
                if depth == floor and emitting and state[at.IN_RECORDS]:
                    status = end_record(state, place, event)
                    emitting = 0
                    floor = 0
                    seeking = True
        start = place
    state[at.POSITION] = start
    state[at.EVENTS] = event
    state[at.DEPTH] = depth
    state[at.CURRENT_SCOPE] = scope
    if status == at.ENOUGH and not is_sound(state, start, end):
        status = at.DECLINE
    if status in (at.MORE, at.DECLINE):
        retreat(state, end, status)
    return status


@kernel
def begin_document(state: Int64, number: int) -> None:
    """Set out to read document ``number`` of the text."""
    state[at.IS_STANDALONE] = uint8s(state, at.PARTS.standalone)[number]
    begin_stream(state, int64s(state, at.PARTS.starts)[number])


@kernel
def read_one(state: Int64, start: int, end: int, is_standalone: int) -> int:
    """Read one small document, of which the text was registered: DONE, or why not by kernels alone.

    Nothing is recorded before. The document is at the beginning of the text, and its declaration
    ends at ``start``.
    """
    for field in range(at.POSITION, at.ASKED_AT):
        state[field] = 0
    state[at.SWITCH] = end + at.PADDING
    state[at.FIRST_DOCUMENT] = 0
    state[at.DOCUMENTS_MAX] = 1
    int64s(state, at.PARTS.starts)[0] = start
    int64s(state, at.PARTS.ends)[0] = end
    uint8s(state, at.PARTS.standalone)[0] = is_standalone
    declined, skipped = uint8s(state, at.OUT.declined), int64s(state, at.OUT.skipped)
    declined[0] = skipped[0] = 0
    begin_document(state, 0)
    status = scan(state)
    return at.DECLINE if declined[0] or skipped[0] else status


@kernel
def begin_stream(state: Int64, place: int) -> None:
    """Set out to read what begins at a place."""
    state[at.POSITION] = place
    state[at.LEFT_TAG] = -1
    state[at.DEPTH] = 0
    state[at.CURRENT_SCOPE] = 0
    state[at.ROOT] = at.NO_ROOT
    state[at.IS_EMITTING] = state[at.IN_RECORDS] == 0
    state[at.FLOOR] = 0
    state[at.TEXT_DEPTH] = -1
    state[at.IS_EXTERNAL] = 0
    state[at.HAS_DOCTYPE] = 0
    state[at.SKIPPED] = 0
    remember(state)


@called
def end_document(state: Int64) -> None:
    """What was recorded since the last ``remember`` is a document."""
    number = state[at.DOCUMENTS]
    int64s(state, at.OUT.document_starts)[number + 1] = state[at.EVENTS]
    int64s(state, at.OUT.misc_starts)[number + 1] = state[at.MISC]
    state[at.DOCUMENTS] = number + 1


@inlined
def record_outcome(state: Int64, number: int, declined: bool) -> None:
    """Record what became of document ``number`` of the text."""
    document = state[at.DOCUMENT]
    origins = int64s(state, at.PARTS.origins)
    uint8s(state, at.OUT.declined)[document] = declined
    int64s(state, at.OUT.skipped)[document] = state[at.SKIPPED]
    first_skipped = int64s(state, at.OUT.first_skipped)
    first_skipped[document] = state[at.FIRST_SKIPPED] - origins[number]


@called
def at_end(state: Int64, start: int, end: int, depth: int) -> int:
    """What to do at the end of the bytes; the text from ``start`` on is not settled."""
    if not state[at.IS_FINAL]:
        return at.MORE
    is_whole = (
        depth == 0 and state[at.ROOT] == at.ROOT_IS_CLOSED and skip_space(state, start) >= end
    )
    return at.DONE if is_whole else at.DECLINE


@called
def remember(state: Int64) -> None:
    """Keep what is recorded, for ``forget``."""
    for i in range(at.MISC_BYTES_MARK - at.EVENTS_MARK + 1):
        state[at.EVENTS_MARK + i] = state[at.EVENTS + i]
    state[at.TEXT_FROM] = state[at.TEXT_BYTES]


@called
def forget(state: Int64) -> None:
    """Forget what was recorded since the last ``remember``."""
    for i in range(at.MISC_BYTES_MARK - at.EVENTS_MARK + 1):
        state[at.EVENTS + i] = state[at.EVENTS_MARK + i]
    state[at.TEXT_FROM] = state[at.TEXT_BYTES]


@called
def is_record(state: Int64, place: int, length: int) -> bool:
    """Whether the name at a place is that of records; or ends so, if these have a namespace."""
    size = at.length_of(state, at.NAMES.record) - 8
    prefix = length - size
    if state[at.WITH_NAMESPACE] and prefix > 1:
        place += prefix
        length = size if byte(at.address(state, place - 1)) == at.COLON else 0
    return length == size and same_bytes(state, place, state[at.NAMES.record], size)


@called
def is_other(state: Int64, answer: np.uint64) -> bool:
    """Whether an element that was taken for a record has another namespace than records."""
    return state[at.IN_RECORDS] != 0 and answer >> U(32) & U(at.IS_RECORD) == U(0)


@called
def abandon_record(state: Int64) -> int:
    """What began is no record: the number of events before it."""
    forget(state)
    state[at.IS_EMITTING] = 0
    state[at.FLOOR] = 0
    return state[at.EVENTS]


@called
def begin_record(state: Int64, place: int, event: int, depth: int, scope: int) -> int:
    """A record begins at the start tag at a place: -1, or why not: its context is new."""
    if state[at.WITH_NAMESPACE] and depth >= state[at.DEPTH_MAX]:  # it may be no record
        return at.DECLINE
    context = find_context(state, depth, scope)
    if context < 0:
        return at.NEW_CONTEXT
    state[at.EVENTS] = event
    remember(state)
    state[at.SKIPPED_MARK] = state[at.SKIPPED]
    state[at.IS_EMITTING] = 1
    state[at.FLOOR] = depth
    state[at.RECORD_FROM] = place
    int32s(state, at.OUT.record_contexts)[state[at.DOCUMENTS]] = context
    return -1


@called
def find_context(state: Int64, depth: int, scope: int) -> int:
    """The number of the context that the open elements are, or -1; mostly it is the last one."""
    contexts = int64s(state, at.OUT.contexts)
    stack = int64s(state, at.WORK.stack)
    columns = len(contexts) // at.CONTEXTS_MAX
    count = state[at.CONTEXTS]
    number = state[at.CONTEXT]
    for _ in range(count):
        row = number * columns
        if contexts[row + at.CONTEXT_DEPTH] == depth and contexts[row + at.CONTEXT_SCOPE] == scope:
            same = 0
            while same < depth and contexts[row + at.CONTEXT_STACK + same] == stack[1 + same]:
                same += 1
            if same == depth:
                state[at.CONTEXT] = number
                return number
        number = number + 1 if number + 1 < count else 0
    return -1


@called
def end_record(state: Int64, place: int, event: int) -> int:
    """The record ends before a place: -1, or that there are enough of them."""
    number = state[at.DOCUMENTS]
    int64s(state, at.OUT.record_starts)[number] = state[at.RECORD_FROM]
    int64s(state, at.OUT.record_ends)[number] = place
    state[at.EVENTS] = event
    end_document(state)
    state[at.IS_EMITTING] = 0
    state[at.FLOOR] = 0
    is_enough = number + 1 >= state[at.RECORDS_MAX] or event >= state[at.EVENTS_MAX]
    return at.ENOUGH if is_enough else -1


@called
def retreat(state: Int64, end: int, status: int) -> None:
    """Go back to where reading can begin again: the start of the record, or of the text.

    Long text that nobody reads is not kept: only its last bytes, which may be half a character, or
    the begin of ``]]>``.
    """
    state[at.STOPPED_AT] = state[at.POSITION]
    state[at.LEFT_TAG] = -1
    if state[at.IN_RECORDS] and state[at.IS_EMITTING]:
        forget(state)
        state[at.SKIPPED] = state[at.SKIPPED_MARK]
        state[at.POSITION] = state[at.RECORD_FROM]
        state[at.DEPTH] = state[at.FLOOR]
        contexts = int64s(state, at.OUT.contexts)
        row = state[at.CONTEXT] * (len(contexts) // at.CONTEXTS_MAX)
        state[at.CURRENT_SCOPE] = contexts[row + at.CONTEXT_SCOPE]
        state[at.FLOOR] = 0
        state[at.IS_EMITTING] = 0
        state[at.TEXT_DEPTH] = -1
        state[at.ROOT] = at.ROOT_IS_OPEN if state[at.DEPTH] else at.NO_ROOT
    elif status == at.MORE and state[at.DEPTH] > 0 and state[at.TEXT_DEPTH] < 0:
        place = max(state[at.POSITION], end - 4)
        while place > state[at.POSITION] and byte(at.address(state, place)) & 0xC0 == 0x80:
            place -= 1
        state[at.POSITION] = place
