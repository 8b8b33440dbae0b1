"""Where documents and records begin and end, and what was recorded up to there."""

from __future__ import annotations

from tamis.core.kernel import called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.documents.tokenizer.kernels.layout import (
    CONTEXT,
    CONTEXT_DEPTH,
    CONTEXT_SCOPE,
    CONTEXT_STACK,
    CONTEXTS,
    CONTEXTS_MAX,
    CURRENT_SCOPE,
    DECLINE,
    DEPTH,
    DOCUMENT,
    DOCUMENTS,
    DONE,
    ENOUGH,
    EVENTS,
    EVENTS_MARK,
    EVENTS_MAX,
    FIRST_SKIPPED,
    FLOOR,
    HAS_DOCTYPE,
    IN_RECORDS,
    IS_EMITTING,
    IS_EXTERNAL,
    IS_FINAL,
    IS_STANDALONE,
    LEFT_TAG,
    MISC,
    MISC_BYTES_MARK,
    MORE,
    NAMES,
    NEW_CONTEXT,
    NO_ROOT,
    OUT,
    PARTS,
    POSITION,
    RECORD_FROM,
    RECORDS_MAX,
    ROOT,
    ROOT_IS_CLOSED,
    ROOT_IS_OPEN,
    SKIPPED,
    SKIPPED_MARK,
    STOPPED_AT,
    TEXT_BYTES,
    TEXT_DEPTH,
    TEXT_FROM,
    WORK,
    Int64,
    at,
    length_of,
)
from tamis.documents.tokenizer.kernels.lookup import same_bytes
from tamis.documents.tokenizer.kernels.search import skip_space
from tamis.documents.tokenizer.vectors import byte


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
