"""The answers of a document: each is noted once."""

from __future__ import annotations

from tamis.core.arrays import Bytes, Int64
from tamis.core.kernel import called, inlined
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.matching.engines.automaton.cache import COUNT
from tamis.matching.engines.automaton.kernels.tables import is_set, set_bit
from tamis.matching.engines.automaton.layout import (
    CACHE,
    COUNTED_FROM,
    FOUND_COUNT,
    IS_SETTLED,
    LOOK_AT,
    MET_COUNT,
    NOTES,
    NOTES_ALL,
    NOTES_NONE,
    PROGRAM,
    PROGRESS,
    QUERIES,
    SCRATCH,
    STAMP,
    TRUE_AT_MOST,
)


@inlined
def report(state: Int64, answer: int) -> None:
    """Note an answer of the document, once; there must be room."""
    if answer >= 0:
        starts = int64s(state, CACHE.answers.starts)
        report_sized(state, answer, starts[answer + 1] - starts[answer])


@inlined
def report_sized(state: Int64, answer: int, size: int) -> None:
    """Likewise, one that has at most so many queries."""
    seen = int64s(state, PROGRESS.seen)
    if seen[answer] != state[STAMP]:
        seen[answer] = state[STAMP]
        int32s(state, PROGRESS.found)[state[FOUND_COUNT]] = answer
        state[FOUND_COUNT] += 1
        state[TRUE_AT_MOST] += size
        if state[TRUE_AT_MOST] >= state[LOOK_AT]:
            state[IS_SETTLED] = are_all_true(state)
            state[LOOK_AT] = 2 * state[TRUE_AT_MOST]


@inlined
def note_place(state: Int64, answer: int, place: int) -> None:
    """Note where an answer of a state is met, if that is asked for, before it is reported."""
    if state[NOTES] != NOTES_NONE and answer >= 0:
        is_new = int64s(state, PROGRESS.seen)[answer] != state[STAMP]
        if is_new or state[NOTES] == NOTES_ALL:
            int32s(state, PROGRESS.met_answers)[state[MET_COUNT]] = answer
            int64s(state, PROGRESS.met_places)[state[MET_COUNT]] = place
            state[MET_COUNT] += 1


@called
def are_all_true(state: Int64) -> bool:
    """Whether all queries are true of the document by now."""
    starts, members = int64s(state, CACHE.answers.starts), int32s(state, CACHE.answers.members)
    found, bits = int32s(state, PROGRESS.found), uint8s(state, SCRATCH.answer_bits)
    sliced = int32s(state, PROGRAM.sliced)
    count = 0
    for i in range(state[COUNTED_FROM], state[FOUND_COUNT]):
        j, end = starts[found[i]], starts[found[i] + 1]
        while j < end:
            if members[j] >= 0:
                count += is_new(bits, members[j])
            else:
                for place in range(-1 - members[j], members[j + 1]):
                    count += is_new(bits, sliced[place])
                j += 1
            j += 1
    bits[:] = 0
    return count == state[QUERIES]


@inlined
def is_new(bits: Bytes, number: int) -> bool:
    """Whether the bit of a number was not set; it is then."""
    result = not is_set(bits, number)
    set_bit(bits, number)
    return result


@inlined
def can_report(state: Int64) -> bool:
    """Whether there is room for three more answers.

    So many one event reports, beside those of sparse facts, which ask each time.
    """
    answers = int64s(state, CACHE.answers.counts)[COUNT]
    return (
        state[FOUND_COUNT] + 3 <= len(int32s(state, PROGRESS.found))
        and answers + 3 <= len(int64s(state, PROGRESS.seen))
        and state[MET_COUNT] + 3 <= len(int32s(state, PROGRESS.met_answers))
    )
