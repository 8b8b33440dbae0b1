"""Documents, event by event."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import U, called, kernel
from tamis.core.kernel.record import int32s, int64s, uint64s
from tamis.documents.batch import ATTRIBUTE, ELEMENT, KIND_BITS
from tamis.documents.batch import DOCUMENT as OF_DOCUMENT
from tamis.documents.batch import MISC as OF_MISC
from tamis.documents.batch import TEXT as OF_TEXT
from tamis.matching.engines.automaton.cache import (
    ANSWER,
    DEAD,
    EMPTY,
    NO_RESULT,
    READS,
    RESULT,
    RESULT_ANSWER,
    START,
    STATE_COLUMNS,
    UNKNOWN,
)
from tamis.matching.engines.automaton.kernels.ends import close, closed, gather
from tamis.matching.engines.automaton.kernels.overlay import (
    begin_overlay,
    close_overlay,
    is_overlaid,
)
from tamis.matching.engines.automaton.kernels.reporting import can_report, note_place, report
from tamis.matching.engines.automaton.kernels.starts import advance, begin
from tamis.matching.engines.automaton.kernels.tables import pair, slot_of
from tamis.matching.engines.automaton.kernels.values import read_value
from tamis.matching.engines.automaton.layout import (
    ATTRIBUTE_AT,
    CACHE,
    COUNTED_FROM,
    CURRENT,
    DEPTH,
    DOCUMENT,
    DOCUMENT_TEXT,
    DONE,
    EVENT,
    EVENTS,
    FOUND_COUNT,
    FULL_DEPTH,
    FULL_FOUND,
    GATHERED,
    HAS_COUNTERS,
    HAS_LEAVES,
    IS_OPEN,
    IS_SETTLED,
    LEVEL,
    LOOK_AT,
    MET_COUNT,
    MISC_AT,
    NOTES,
    NOTES_ALL,
    PROGRESS,
    QUERIES,
    REGAINED,
    STAMP,
    TEXT_AT,
    TRUE_AT_MOST,
    WIDTH,
)
from tamis.matching.engines.automaton.program import MISC, TEXT

NEVER = 1 << 62
"""More queries than there are."""


@called
def leaf(state: Int64, place: int, symbol: int, buffer: int, start: int, end: int) -> int:
    """Match an attribute or a leaf that is no element: DONE, or a status.

    Args:
        place: of the node, as a number.
        buffer: the place of the buffer that its string value is in.
        start, end: where.
    """
    if not can_report(state):
        return FULL_FOUND
    current = state[CURRENT]
    next = np.int64(int32s(state, CACHE.table)[current * state[WIDTH] + symbol])
    if next == UNKNOWN:
        next = advance(state, current, symbol)
        if next < 0:
            return -next
    if next == DEAD:
        return DONE
    info = int32s(state, CACHE.state_info)
    own = EMPTY
    state[LEVEL] = state[DEPTH] + 1
    if info[next * STATE_COLUMNS + READS]:
        own = read_value(state, next, own, buffer, start, end)
        if own < 0:
            return -own
    value = closed(state, next, own)
    if value < 0:
        return -value
    result = value & 0xFFFFFFFF
    gathered = state[GATHERED]
    if result != EMPTY:
        gathered = gather(state, gathered, result, state[HAS_COUNTERS] == 0)
        if gathered < 0:
            return -gathered
    if is_overlaid(state, state[LEVEL]):
        status = close_overlay(state, next, own, state[GATHERED], result, state[LEVEL])
        if status:
            return status
    state[GATHERED] = gathered
    answer = np.int64(info[next * STATE_COLUMNS + ANSWER])
    note_place(state, answer, place)
    report(state, answer)
    report(state, (value >> 32) - 1)
    return DONE


@called
def leaves(state: Int64) -> int:
    """Match the attributes of the event before, and the leaves behind it: DONE, or a status."""
    event = state[EVENT] - 1
    events, names = int64s(state, EVENTS.attribute_event), int32s(state, EVENTS.attribute_name)
    symbols = int32s(state, EVENTS.attributes)
    starts, ends = int64s(state, EVENTS.value_start), int64s(state, EVENTS.value_end)
    while state[ATTRIBUTE_AT] < len(events) and events[state[ATTRIBUTE_AT]] <= event:
        if events[state[ATTRIBUTE_AT]] == event:
            at = state[ATTRIBUTE_AT]
            start, end = starts[at], ends[at]
            symbol, buffer = np.int64(symbols[names[at]]), EVENTS.attribute_values
            status = leaf(state, at << KIND_BITS | ATTRIBUTE, symbol, buffer, start, end)
            if status:
                return status
        state[ATTRIBUTE_AT] += 1
    texts, miscs = int64s(state, EVENTS.text_event), int64s(state, EVENTS.misc_event)
    misc_end = int64s(state, EVENTS.misc_starts)[state[DOCUMENT] + 1]
    status = DONE
    while True:
        text, misc = state[TEXT_AT], state[MISC_AT]
        has_text = text < len(texts) and texts[text] <= event
        has_misc = misc < misc_end and miscs[misc] <= event
        if has_misc and has_text:
            has_text = int64s(state, EVENTS.misc_text)[misc] > text
            has_misc = not has_text
        if has_misc:
            if miscs[misc] == event:
                start = int64s(state, EVENTS.misc_start)[misc]
                end = int64s(state, EVENTS.misc_end)[misc]
                place = misc << KIND_BITS | OF_MISC
                status = leaf(state, place, MISC, EVENTS.misc_values, start, end)
        elif has_text:
            if texts[text] == event:
                start = int64s(state, EVENTS.text_start)[text]
                end = int64s(state, EVENTS.text_end)[text]
                place = text << KIND_BITS | OF_TEXT
                status = leaf(state, place, TEXT, EVENTS.text_values, start, end)
        else:
            return DONE
        if status:
            return status
        state[MISC_AT] += has_misc
        state[TEXT_AT] += has_text


@called
def begin_again(state: Int64) -> int:
    """Find the states of the elements that are open, in a new cache: DONE, or a status."""
    outer_states, symbols = int32s(state, PROGRESS.outer_states), int32s(state, PROGRESS.symbols)
    while state[REGAINED] < state[DEPTH]:
        level = state[REGAINED]
        outer_states[level] = state[CURRENT]
        next = advance(state, state[CURRENT], symbols[level])
        if next < 0:
            return -next
        state[CURRENT] = next
        state[REGAINED] = level + 1
    return DONE


@kernel
def scan(state: Int64) -> int:
    """Match documents from where the state is: DONE, or what has to be done first."""
    status = begin(state)
    if not status:
        status = begin_again(state)
    documents = int64s(state, EVENTS.document_starts)
    while not status and state[DOCUMENT] < len(documents) - 1:
        document = state[DOCUMENT]
        start, end = documents[document], documents[document + 1]
        if start < end:
            if not state[IS_OPEN]:
                if not can_report(state):
                    return FULL_FOUND
                open_document(state, start)
            status = scan_document(state, end)
        if not status:
            state[IS_OPEN] = 0
            state[REGAINED] = state[DEPTH] = 0
            state[DOCUMENT] = document + 1
            int64s(state, PROGRESS.found_starts)[document + 1] = state[FOUND_COUNT]
            int64s(state, PROGRESS.met_starts)[document + 1] = state[MET_COUNT]
    return status


@called
def open_document(state: Int64, start: int) -> None:
    """Begin a document, whose first event is at ``start``; what is true of all is reported."""
    document, texts = state[DOCUMENT], int64s(state, EVENTS.text_event)
    while state[TEXT_AT] < len(texts) and texts[state[TEXT_AT]] < start:
        state[TEXT_AT] += 1  # those of a document that was left early
    state[IS_OPEN] = 1
    state[EVENT] = start
    state[DEPTH] = 0
    state[CURRENT] = START
    state[GATHERED] = EMPTY
    state[MISC_AT] = int64s(state, EVENTS.misc_starts)[document]
    state[STAMP] += 1
    begin_overlay(state)
    state[DOCUMENT_TEXT] = state[TEXT_AT]
    state[COUNTED_FROM] = state[FOUND_COUNT]
    state[TRUE_AT_MOST] = state[IS_SETTLED] = 0
    state[LOOK_AT] = NEVER if state[NOTES] == NOTES_ALL else state[QUERIES]
    answer = np.int64(int32s(state, CACHE.state_info)[START * STATE_COLUMNS + ANSWER])
    note_place(state, answer, document << KIND_BITS | OF_DOCUMENT)
    report(state, answer)


@called
def scan_document(state: Int64, end: int) -> int:
    """Match one document from where the state is: DONE, or a status.

    This is the loop in which time goes. Each event is matched as a whole, or not at all where
    something is full; but for leaves, which are matched one by one. The last event, at ``end``, is
    the end of the document itself. What follows once all queries are true is left out, but where
    all nodes that they select are to be noted.
    """
    tags, elements = int32s(state, EVENTS.tags), int32s(state, EVENTS.elements)
    table, info = int32s(state, CACHE.table), int32s(state, CACHE.state_info)
    close_keys, close_values = (
        uint64s(state, CACHE.closes.keys),
        int64s(state, CACHE.closes.values),
    )
    outer_states, outer_gathered = (
        int32s(state, PROGRESS.outer_states),
        int32s(state, PROGRESS.outer_gathered),
    )
    symbols, outer_texts = int32s(state, PROGRESS.symbols), int64s(state, PROGRESS.outer_texts)
    width = state[WIDTH]
    has_leaves = state[HAS_LEAVES] != 0
    is_plain = state[HAS_COUNTERS] == 0
    event, depth = state[EVENT], state[DEPTH]
    current, gathered = state[CURRENT], state[GATHERED]
    depth_max = len(outer_states)
    status = DONE
    while True:
        if has_leaves:
            state[EVENT], state[DEPTH] = event, depth
            state[CURRENT], state[GATHERED] = current, gathered
            status = leaves(state)
            gathered = state[GATHERED]  # some leaves may be matched already
            if status or state[IS_SETTLED]:
                break
        tag = tags[event] if event < end else -1
        if tag >= 0:
            symbol = np.int64(elements[U(tag)])
            next = np.int64(table[U(current * width + symbol)])
            if next <= DEAD:
                if next == UNKNOWN:
                    next = advance(state, current, symbol)
                    if next < 0:
                        status = -next
                        break
                if next == DEAD:
                    event = skip_element(tags, event)
                    continue
            if depth >= depth_max:
                status = FULL_DEPTH
                break
            answer = np.int64(info[U(next * STATE_COLUMNS + ANSWER)])
            if answer >= 0:
                if not can_report(state):
                    status = FULL_FOUND
                    break
                note_place(state, answer, event << KIND_BITS | ELEMENT)
                report(state, answer)
                if state[IS_SETTLED]:
                    break
            outer_states[U(depth)] = current
            outer_gathered[U(depth)] = gathered
            symbols[U(depth)] = symbol
            outer_texts[U(depth)] = state[TEXT_AT]
            depth += 1
            event += 1
            current = next
            gathered = EMPTY
            continue
        own = gathered
        if info[U(current * STATE_COLUMNS + READS)]:
            text = outer_texts[U(depth - 1)] if depth else state[DOCUMENT_TEXT]
            state[LEVEL] = depth
            own = read_element(state, current, gathered, text)
            if own < 0:
                status = -own
                break
        if own == EMPTY:
            if info[U(current * STATE_COLUMNS + RESULT)] == NO_RESULT:
                status = -close(state, current, own)
                if status:
                    break
            result = np.int64(info[U(current * STATE_COLUMNS + RESULT)])
            answer = np.int64(info[U(current * STATE_COLUMNS + RESULT_ANSWER)])
        else:
            key = pair(current, own)
            slot = slot_of(close_keys, key)
            if close_keys[U(slot)] == U(0):
                status = -close(state, current, own)
                if status:
                    break
                slot = slot_of(close_keys, key)
            value = close_values[U(slot)]
            result = value & 0xFFFFFFFF
            answer = (value >> 32) - 1
        if (answer >= 0 or event == end) and not can_report(state):
            status = FULL_FOUND
            break
        if event == end:
            report(state, answer)
            if is_overlaid(state, 0):
                status = close_overlay(state, current, own, EMPTY, EMPTY, 0)
            break
        outer = np.int64(outer_gathered[U(depth - 1)])
        if result != EMPTY:
            outer = gather(state, outer, result, is_plain)
            if outer < 0:
                status = -outer
                break
        if answer >= 0:
            report(state, answer)
        if is_overlaid(state, depth):
            gathered_around = np.int64(outer_gathered[U(depth - 1)])
            status = close_overlay(state, current, own, gathered_around, result, depth)
            if status:
                break
        if state[IS_SETTLED]:
            break
        depth -= 1
        event += 1
        current = np.int64(outer_states[U(depth)])
        gathered = outer
    state[EVENT], state[DEPTH], state[REGAINED] = event, depth, depth
    state[CURRENT], state[GATHERED] = current, gathered
    return status


@called
def read_element(state: Int64, current: int, gathered: int, text: int) -> int:
    """What an element gathered, with what is true of its string value; or a status, negated.

    Args:
        text: how many text nodes there were before it.
    """
    start = end = 0
    if text < state[TEXT_AT]:
        start = int64s(state, EVENTS.text_start)[text]
        end = int64s(state, EVENTS.text_end)[state[TEXT_AT] - 1]
    return read_value(state, current, gathered, EVENTS.text_values, start, end)


@called
def skip_element(tags: Int32, start: int) -> int:
    """The event behind an element."""
    event = start + 1
    open = 1
    while open:
        open += 1 if tags[event] >= 0 else -1
        event += 1
    return event
