"""Text between tags."""

from __future__ import annotations

from tamis.core.kernel import called, inlined
from tamis.core.kernel.record import int64s
from tamis.documents.tokenizer.kernels.characters import BANG, BRACKET_OPEN, QUESTION, SLASH
from tamis.documents.tokenizer.kernels.layout import (
    DECLINE,
    FIRST_SKIPPED,
    FULL_TEXT_VALUES,
    FULL_TEXTS,
    NO_ROOT,
    OUT,
    ROOT,
    ROOT_IS_OPEN,
    SKIPPED,
    TEXT_BYTES,
    TEXT_DEPTH,
    TEXT_FROM,
    TEXTS,
    Int64,
    at,
    length_of,
)
from tamis.documents.tokenizer.kernels.search import skip_space
from tamis.documents.tokenizer.kernels.values import SKIP, append, append_character, reference
from tamis.documents.tokenizer.vectors import byte


@called
def before_markup(state: Int64, start: int, place: int, event: int) -> int:
    """Settle the text between two places, the second that of a ``<``: 0, or a negative status.

    Called only if the text is to be recorded, or outside the root element.
    """
    second = byte(at(state, place + 1))
    if state[TEXT_DEPTH] >= 0:
        if state[TEXTS] == length_of(state, OUT.text_event):
            return -FULL_TEXTS
        if start < place and not add_text(state, start, place):
            return -FULL_TEXT_VALUES
        is_cdata = second == BANG and byte(at(state, place + 2)) == BRACKET_OPEN
        if not is_cdata:
            end_text(state, event)
        return 0
    if skip_space(state, start) < place:
        return -DECLINE
    if second in (BANG, QUESTION):
        return 0
    return -DECLINE if state[ROOT] != NO_ROOT or second == SLASH else 0


@called
def text_reference(state: Int64, start: int, place: int, event: int) -> int:
    """Settle the text up to a reference and the reference: the place behind it, or a status."""
    if state[ROOT] != ROOT_IS_OPEN:
        return -DECLINE
    code, behind = reference(state, place)
    if behind < 0:
        return behind
    if state[TEXT_DEPTH] >= 0:
        if state[TEXT_BYTES] + place - start + 4 > length_of(state, OUT.text_values):
            return -FULL_TEXT_VALUES
        if code == SKIP and state[TEXTS] == length_of(state, OUT.text_event):
            return -FULL_TEXTS
        add_text(state, start, place)
        if code == SKIP:
            end_text(state, event)
        else:
            state[TEXT_BYTES] = append_character(state, code, OUT.text_values, state[TEXT_BYTES])
    if code == SKIP:
        if state[SKIPPED] == 0:
            state[FIRST_SKIPPED] = place
        state[SKIPPED] += 1
    return behind


@inlined
def add_text(state: Int64, start: int, end: int) -> bool:
    """Add bytes to the text node that is being read; False if there is no room for them."""
    used = append(state, start, end, OUT.text_values, state[TEXT_BYTES])
    if used < 0:
        return False
    state[TEXT_BYTES] = used
    return True


@inlined
def end_text(state: Int64, event: int) -> None:
    """End the text node that is being read, if any; there is room for it."""
    begin, end = state[TEXT_FROM], state[TEXT_BYTES]
    if begin == end:
        return
    count = state[TEXTS]
    int64s(state, OUT.text_event)[count] = event
    int64s(state, OUT.text_start)[count] = begin
    int64s(state, OUT.text_end)[count] = end
    state[TEXTS] = count + 1
    state[TEXT_FROM] = end
