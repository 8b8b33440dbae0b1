"""Documents, event by event: a look-up at the start of an element, one or two at its end."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.index.kernels import PART, hand_over
from tamis.core.kernel import U, called, kernel
from tamis.core.kernel.record import borrow, int32s, int64s, uint64s
from tamis.documents.batch import ATTRIBUTE, ELEMENT, KIND_BITS
from tamis.documents.batch import DOCUMENT as OF_DOCUMENT
from tamis.documents.batch import MISC as OF_MISC
from tamis.documents.batch import TEXT as OF_TEXT
from tamis.matching.engines.automaton import layout as at
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels import answers
from tamis.matching.engines.automaton.kernels import facts as sets
from tamis.matching.engines.automaton.kernels.ends import close, closed, merge_facts
from tamis.matching.engines.automaton.kernels.overlay import (
    begin_overlay,
    close_overlay,
    is_overlaid,
)
from tamis.matching.engines.automaton.kernels.starts import advance, begin
from tamis.matching.engines.automaton.kernels.values import read_value


@called
def leaf(state: Int64, place: int, symbol: int, buffer: int, start: int, end: int) -> int:
    """Match an attribute or a leaf that is no element: DONE, or a status.

    Args:
        place: of the node, as a number.
        buffer: the field of the array that its string value is in, from ``start`` to ``end``.
    """
    if not answers.can_report(state):
        return at.FULL_FOUND
    current = state[at.CURRENT]
    next = np.int64(int32s(state, at.CACHE.table)[current * state[at.WIDTH] + symbol])
    if next == at.UNKNOWN:
        next = advance(state, current, symbol)
        if next < 0:
            return -next
    if next == at.DEAD:
        return at.DONE
    info = int32s(state, at.CACHE.state_info)
    own = at.EMPTY
    state[at.LEVEL] = state[at.DEPTH] + 1
    if info[next * at.STATE_COLUMNS + at.READS]:
        own = read_value(state, next, own, buffer, start, end)
        if own < 0:
            return -own
    value = closed(state, next, own)
    if value < 0:
        return -value
    result = value & 0xFFFFFFFF
    child_facts = state[at.CHILD_FACTS]
    if result != at.EMPTY:
        child_facts = merge_facts(state, child_facts, result, state[at.HAS_COUNTERS] == 0)
        if child_facts < 0:
            return -child_facts
    if is_overlaid(state, state[at.LEVEL]):
        status = close_overlay(state, next, own, state[at.CHILD_FACTS], result, state[at.LEVEL])
        if status:
            return status
    state[at.CHILD_FACTS] = child_facts
    answer = np.int64(info[next * at.STATE_COLUMNS + at.ANSWER])
    answers.add_occurrence(state, answer, place)
    answers.report(state, answer)
    answers.report(state, (value >> 32) - 1)
    return at.DONE


@called
def leaves(state: Int64) -> int:
    """Match the attributes of the event before, and the leaves behind it: DONE, or a status.

    DUE is then the event that has the next one.
    """
    event = state[at.EVENT] - 1
    if event >= state[at.RETIRE_AT]:
        return at.ASKS_OPEN
    events = int64s(state, at.EVENTS.attribute_event)
    names, symbols = int32s(state, at.EVENTS.attribute_name), int32s(state, at.EVENTS.attributes)
    starts, ends = int64s(state, at.EVENTS.value_start), int64s(state, at.EVENTS.value_end)
    while state[at.ATTRIBUTE_AT] < len(events) and events[state[at.ATTRIBUTE_AT]] <= event:
        if events[state[at.ATTRIBUTE_AT]] == event:
            index = state[at.ATTRIBUTE_AT]
            start, end = starts[index], ends[index]
            symbol, buffer = np.int64(symbols[names[index]]), at.EVENTS.attribute_values
            status = leaf(state, index << KIND_BITS | ATTRIBUTE, symbol, buffer, start, end)
            if status:
                return status
        state[at.ATTRIBUTE_AT] += 1
    texts, miscs = int64s(state, at.EVENTS.text_event), int64s(state, at.EVENTS.misc_event)
    misc_end = int64s(state, at.EVENTS.misc_starts)[state[at.DOCUMENT] + 1]
    status = at.DONE
    while True:
        text, misc = state[at.TEXT_AT], state[at.MISC_AT]
        has_text = text < len(texts) and texts[text] <= event
        has_misc = misc < misc_end and miscs[misc] <= event
        if has_misc and has_text:
            has_text = int64s(state, at.EVENTS.misc_text)[misc] > text
            has_misc = not has_text
        if has_misc:
            if miscs[misc] == event:
                start = int64s(state, at.EVENTS.misc_start)[misc]
                end = int64s(state, at.EVENTS.misc_end)[misc]
                place = misc << KIND_BITS | OF_MISC
                status = leaf(state, place, pr.MISC, at.EVENTS.misc_values, start, end)
        elif has_text:
            if texts[text] == event:
                start = int64s(state, at.EVENTS.text_start)[text]
                end = int64s(state, at.EVENTS.text_end)[text]
                place = text << KIND_BITS | OF_TEXT
                status = leaf(state, place, pr.TEXT, at.EVENTS.text_values, start, end)
        else:
            break
        if status:
            return status
        state[at.MISC_AT] += has_misc
        state[at.TEXT_AT] += has_text
    at_attribute = state[at.ATTRIBUTE_AT]
    due = events[at_attribute] if at_attribute < len(events) else at.NEVER
    due = min(due, state[at.RETIRE_AT], texts[text] if text < len(texts) else at.NEVER)
    state[at.DUE] = min(due, miscs[misc] if misc < misc_end else at.NEVER)
    return at.DONE


@called
def restore_states(state: Int64) -> int:
    """Find the states of the elements that are open, in a new cache: DONE, or a status."""
    outer_states = int32s(state, at.PROGRESS.outer_states)
    symbols = int32s(state, at.PROGRESS.symbols)
    while state[at.RESTORED] < state[at.DEPTH]:
        level = state[at.RESTORED]
        outer_states[level] = state[at.CURRENT]
        next = advance(state, state[at.CURRENT], symbols[level])
        if next < 0:
            return -next
        state[at.CURRENT] = next
        state[at.RESTORED] = level + 1
    return at.DONE


@kernel
def scan(state: Int64) -> int:
    """Match documents from where the state is: DONE, or what has to be done first."""
    status = begin(state)
    if not status:
        status = restore_states(state)
    documents = int64s(state, at.EVENTS.document_starts)
    while not status and state[at.DOCUMENT] < len(documents) - 1:
        document = state[at.DOCUMENT]
        start, end = documents[document], documents[document + 1]
        if start < end:
            if not state[at.IS_OPEN]:
                if not answers.can_report(state):
                    return at.FULL_FOUND
                open_document(state, start)
            status = scan_document(state, end)
        if not status:
            state[at.IS_OPEN] = 0
            state[at.RESTORED] = state[at.DEPTH] = 0
            state[at.DOCUMENT] = document + 1
            int64s(state, at.PROGRESS.found_starts)[document + 1] = state[at.FOUND_COUNT]
            int64s(state, at.PROGRESS.occurrence_starts)[document + 1] = state[at.OCCURRENCE_COUNT]
            status = at.ENDED if state[at.HAS_RETIRED] else at.DONE
    return status


@kernel
def match_one(state: Int64) -> int:
    """Match the document that a tokenizer recorded, and say so to a listing: DONE, or a status."""
    borrow(state, at.ONE.recorded, at.ONE.places)
    state[at.DOCUMENT] = state[at.IS_OPEN] = state[at.DEPTH] = state[at.RESTORED] = 0
    state[at.ATTRIBUTE_AT] = state[at.TEXT_AT] = state[at.FOUND_COUNT] = 0
    state[at.OCCURRENCE_COUNT] = state[at.NUMBER_BUFFER] = 0
    state[at.OCCURRENCES] = at.OCCURRENCES_NONE
    state[at.RETIRE_AFTER] = at.NEVER
    status = scan(state)
    if status:
        return status
    listing, part, counts = (
        int64s(state, at.ONE.listing), state[at.PART], int64s(state, at.CACHE.answers.counts),
    )  # fmt: skip
    hand_over(state, at.PROGRESS.found_starts, 2, listing, part + PART.document_starts)
    hand_over(state, at.PROGRESS.found, state[at.FOUND_COUNT], listing, part + PART.set_ids)
    starts, members = at.CACHE.answers.starts, at.CACHE.answers.members
    hand_over(state, starts, counts[at.COUNT] + 1, listing, part + PART.set_starts)
    hand_over(state, members, counts[at.USED], listing, part + PART.members)
    sliced = at.PROGRAM.sliced
    hand_over(state, sliced, state[sliced + 1], listing, part + PART.sliced)
    return at.DONE


@called
def open_document(state: Int64, start: int) -> None:
    """Begin a document, whose first event is at ``start``; what is true of all is reported."""
    document, texts = state[at.DOCUMENT], int64s(state, at.EVENTS.text_event)
    while state[at.TEXT_AT] < len(texts) and texts[state[at.TEXT_AT]] < start:
        state[at.TEXT_AT] += 1  # those of a document that was left early
    state[at.IS_OPEN] = 1
    state[at.EVENT] = start
    state[at.DUE] = -1
    state[at.RETIRE_AT] = start + state[at.RETIRE_AFTER]
    state[at.DEPTH] = 0
    state[at.CURRENT] = at.START
    state[at.CHILD_FACTS] = at.EMPTY
    state[at.MISC_AT] = int64s(state, at.EVENTS.misc_starts)[document]
    state[at.STAMP] += 1
    begin_overlay(state)
    state[at.DOCUMENT_TEXT] = state[at.TEXT_AT]
    state[at.COUNTED_FROM] = state[at.FOUND_COUNT]
    state[at.TRUE_AT_MOST] = state[at.IS_SETTLED] = 0
    state[at.LOOK_AT] = (
        at.NEVER if state[at.OCCURRENCES] == at.OCCURRENCES_ALL else state[at.QUERIES]
    )
    answer = np.int64(int32s(state, at.CACHE.state_info)[at.START * at.STATE_COLUMNS + at.ANSWER])
    answers.add_occurrence(state, answer, document << KIND_BITS | OF_DOCUMENT)
    answers.report(state, answer)


@called
def scan_document(state: Int64, end: int) -> int:
    """Match one document from where the state is: DONE, or a status.

    This is the loop in which time goes. Each event is matched as a whole, or not at all where
    something is full; but for leaves, which are matched one by one. The last event, at ``end``, is
    the end of the document itself. What follows once all queries are true is left out, but where
    all nodes that they select are to be listed.
    """
    tags, elements = int32s(state, at.EVENTS.tags), int32s(state, at.EVENTS.elements)
    table, info = int32s(state, at.CACHE.table), int32s(state, at.CACHE.state_info)
    close_keys = uint64s(state, at.CACHE.closes.keys)
    close_values = int64s(state, at.CACHE.closes.values)
    outer_states = int32s(state, at.PROGRESS.outer_states)
    outer_child_facts = int32s(state, at.PROGRESS.outer_child_facts)
    symbols = int32s(state, at.PROGRESS.symbols)
    outer_texts = int64s(state, at.PROGRESS.outer_texts)
    width = state[at.WIDTH]
    is_plain = state[at.HAS_COUNTERS] == 0
    event, depth = state[at.EVENT], state[at.DEPTH]
    current, child_facts = state[at.CURRENT], state[at.CHILD_FACTS]
    depth_max = len(outer_states)
    status = at.DONE
    while True:
        if event > state[at.DUE]:
            state[at.EVENT], state[at.DEPTH] = event, depth
            state[at.CURRENT], state[at.CHILD_FACTS] = current, child_facts
            status = leaves(state)
            child_facts = state[at.CHILD_FACTS]  # some leaves may be matched already
            if status or state[at.IS_SETTLED]:
                break
        tag = tags[event] if event < end else -1
        if tag >= 0:
            symbol = np.int64(elements[U(tag)])
            next = np.int64(table[U(current * width + symbol)])
            if next <= at.DEAD:
                if next == at.UNKNOWN:
                    next = advance(state, current, symbol)
                    if next < 0:
                        status = -next
                        break
                if next == at.DEAD:
                    event = skip_element(tags, event)
                    continue
            if depth >= depth_max:
                status = at.FULL_DEPTH
                break
            answer = np.int64(info[U(next * at.STATE_COLUMNS + at.ANSWER)])
            if answer >= 0:
                if not answers.can_report(state):
                    status = at.FULL_FOUND
                    break
                answers.add_occurrence(state, answer, event << KIND_BITS | ELEMENT)
                answers.report(state, answer)
                if state[at.IS_SETTLED]:
                    break
            outer_states[U(depth)] = current
            outer_child_facts[U(depth)] = child_facts
            symbols[U(depth)] = symbol
            outer_texts[U(depth)] = state[at.TEXT_AT]
            depth += 1
            event += 1
            current = next
            child_facts = at.EMPTY
            continue
        own = child_facts
        if info[U(current * at.STATE_COLUMNS + at.READS)]:
            text = outer_texts[U(depth - 1)] if depth else state[at.DOCUMENT_TEXT]
            state[at.LEVEL] = depth
            own = read_element(state, current, child_facts, text)
            if own < 0:
                status = -own
                break
        if own == at.EMPTY:
            if info[U(current * at.STATE_COLUMNS + at.RESULT)] == at.NO_RESULT:
                status = -close(state, current, own)
                if status:
                    break
            result = np.int64(info[U(current * at.STATE_COLUMNS + at.RESULT)])
            answer = np.int64(info[U(current * at.STATE_COLUMNS + at.RESULT_ANSWER)])
        else:
            key = sets.pair(current, own)
            slot = sets.slot_of(close_keys, key)
            if close_keys[U(slot)] == U(0):
                status = -close(state, current, own)
                if status:
                    break
                slot = sets.slot_of(close_keys, key)
            value = close_values[U(slot)]
            result = value & 0xFFFFFFFF
            answer = (value >> 32) - 1
        if (answer >= 0 or event == end) and not answers.can_report(state):
            status = at.FULL_FOUND
            break
        if event == end:
            answers.report(state, answer)
            if is_overlaid(state, 0):
                status = close_overlay(state, current, own, at.EMPTY, at.EMPTY, 0)
            break
        outer = np.int64(outer_child_facts[U(depth - 1)])
        if result != at.EMPTY:
            outer = merge_facts(state, outer, result, is_plain)
            if outer < 0:
                status = -outer
                break
        if answer >= 0:
            answers.report(state, answer)
        if is_overlaid(state, depth):
            facts_around = np.int64(outer_child_facts[U(depth - 1)])
            status = close_overlay(state, current, own, facts_around, result, depth)
            if status:
                break
        if state[at.IS_SETTLED]:
            break
        depth -= 1
        event += 1
        current = np.int64(outer_states[U(depth)])
        child_facts = outer
    state[at.EVENT], state[at.DEPTH], state[at.RESTORED] = event, depth, depth
    state[at.CURRENT], state[at.CHILD_FACTS] = current, child_facts
    return status


@called
def read_element(state: Int64, current: int, child_facts: int, text: int) -> int:
    """An element's child facts, with what is true of its string value; or a status, negated.

    So many text nodes were before it.
    """
    start = end = 0
    if text < state[at.TEXT_AT]:
        start = int64s(state, at.EVENTS.text_start)[text]
        end = int64s(state, at.EVENTS.text_end)[state[at.TEXT_AT] - 1]
    return read_value(state, current, child_facts, at.EVENTS.text_values, start, end)


@called
def skip_element(tags: Int32, start: int) -> int:
    """The event behind an element."""
    event = start + 1
    open = 1
    while open:
        open += 1 if tags[event] >= 0 else -1
        event += 1
    return event
