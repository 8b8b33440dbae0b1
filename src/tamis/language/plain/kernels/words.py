"""The words of the query that is read."""

from __future__ import annotations

from tamis.core.kernel import called, inlined
from tamis.core.kernel.record import int32s, int64s
from tamis.language.plain import ALL, ANCHOR, ANY, ASKS, END, KIND_BITS, NESTING_MAX, NOT, STEP
from tamis.language.plain.kernels.tables import number_of
from tamis.language.plain.layout import (
    ANCHOR_AT,
    CODE_FROM,
    CODE_TO,
    DEPTH,
    FRAME_COLUMNS,
    FRAMES_MAX,
    FROM,
    HAS_ANY,
    IS_DECLINED,
    IS_LEAF,
    ITEMS,
    KIND,
    LEAF_AROUND,
    LEVELS,
    LEVELS_AROUND,
    NESTED_MAX,
    OPERAND_FROM,
    QUERIES,
    STEP_AT,
    WORK,
    Int64,
)


@inlined
def emit(state: Int64, word: int) -> None:
    """Write a word down; the main loop sees to it that there is room."""
    int32s(state, WORK.code)[state[CODE_TO]] = word
    state[CODE_TO] += 1


@called
def insert(state: Int64, place: int, word: int) -> None:
    """Write a word down before others."""
    code = int32s(state, WORK.code)
    for i in range(state[CODE_TO], place, -1):
        code[i] = code[i - 1]
    code[place] = word
    state[CODE_TO] += 1


@called
def end_levels(state: Int64) -> None:
    """End the path that is read."""
    for _ in range(state[LEVELS]):
        emit(state, END)
    state[LEVELS] = 0


# -- frames ------------------------------------------------------------------------------------


@inlined
def frame(state: Int64, column: int) -> int:
    """The place of a column of the innermost frame."""
    return (state[DEPTH] - 1) * FRAME_COLUMNS + column


@called
def open_frame(state: Int64, kind: int) -> bool:
    """Open a frame, unless it would be too deep."""
    if state[DEPTH] >= min(state[NESTED_MAX], FRAMES_MAX):
        return False
    state[DEPTH] += 1
    frames = int64s(state, WORK.frames)
    frames[frame(state, KIND)] = kind
    frames[frame(state, FROM)] = state[CODE_TO]
    frames[frame(state, LEVELS_AROUND)] = state[LEVELS]
    frames[frame(state, LEAF_AROUND)] = state[IS_LEAF]
    frames[frame(state, HAS_ANY)] = 0
    state[LEVELS] = 0
    begin_operand(state)
    return True


@inlined
def begin_operand(state: Int64) -> None:
    """Begin an operand of ``or``."""
    frames = int64s(state, WORK.frames)
    frames[frame(state, OPERAND_FROM)] = state[CODE_TO]
    frames[frame(state, ITEMS)] = 0


@inlined
def add_items(state: Int64, count: int) -> None:
    """Count what was written into the innermost frame."""
    int64s(state, WORK.frames)[frame(state, ITEMS)] += count


@called
def end_operand(state: Int64) -> None:
    """End an operand of ``or``: several items that all have to hold are a group."""
    frames = int64s(state, WORK.frames)
    if frames[frame(state, ITEMS)] > 1:
        insert(state, frames[frame(state, OPERAND_FROM)], ALL)
        emit(state, END)
    if not frames[frame(state, HAS_ANY)]:
        insert(state, frames[frame(state, FROM)], ANY)
        frames[frame(state, HAS_ANY)] = 1


@called
def close_frame(state: Int64) -> int:
    """Close the innermost frame; how many items it was."""
    frames = int64s(state, WORK.frames)
    items = frames[frame(state, ITEMS)]
    if frames[frame(state, HAS_ANY)]:
        end_operand(state)
        emit(state, END)
        items = 1
    state[LEVELS] = frames[frame(state, LEVELS_AROUND)]
    state[IS_LEAF] = frames[frame(state, LEAF_AROUND)]
    state[DEPTH] -= 1
    return items


# -- the whole ---------------------------------------------------------------------------------


@called
def finished(state: Int64) -> int:
    """The number of the query that was read, or ``IS_DECLINED``."""
    code = int32s(state, WORK.code)
    if state[ANCHOR_AT] < 0:
        anchor = state[STEP_AT]
        state[LEVELS] = 1
    else:
        anchor = state[ANCHOR_AT]
    code[anchor] |= ANCHOR << KIND_BITS
    end_levels(state)
    start, end = state[CODE_FROM], state[CODE_TO]
    depth = 0
    i = start
    while i < end:
        kind = code[i] & ((1 << KIND_BITS) - 1)
        if kind == END:
            depth -= 1
        elif kind == ASKS:
            i += 1
        elif kind in (STEP, ALL, ANY, NOT):
            depth += 1
            if depth > NESTING_MAX:
                return IS_DECLINED
        i += 1
    return number_of(state, QUERIES, 4 * (end - start))
