"""The main loop, and what stands between operators."""

from __future__ import annotations

import numpy as np

from tamis.core.kernel import called, kernel
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.language.plain import END, FIRST, NOT, WORDS_MAX
from tamis.language.plain.kernels.characters import is_word, name_end, next_byte
from tamis.language.plain.kernels.literals import CONTAINS, STARTS_WITH, asks_string
from tamis.language.plain.kernels.steps import after_here, after_step, end_path, separator, step
from tamis.language.plain.kernels.tables import end_of, has_room
from tamis.language.plain.kernels.words import (
    add_items,
    begin_operand,
    close_frame,
    emit,
    end_operand,
    finished,
    frame,
    open_frame,
)
from tamis.language.plain.layout import (
    AFTER_OPERAND,
    AFTER_STEP,
    ANCHOR_AT,
    ASKS_NAME,
    CHARS_MAX,
    CODE_FROM,
    CODE_TO,
    DECLINED,
    DEPTH,
    DONE,
    EXPECT_OPERAND,
    EXPECT_STEP,
    EXPRESSION,
    FINISHED,
    FLAGS,
    FULL,
    IN_NOT,
    IN_PARENTHESES,
    IN_PREDICATE,
    IS_DECLINED,
    IS_LEAF,
    KIND,
    LEVELS,
    NAME_BYTES_MAX,
    NAMES,
    NESTED_MAX,
    NEW_NAME,
    NUMBERS,
    POSITION,
    PREDICATES,
    PREDICATES_MAX,
    QUERIES,
    STEPS,
    STEPS_MAX,
    STOP,
    STRINGS,
    TASK,
    WORDS_ROOM,
    WORK,
    Int64,
)

_AND = np.frombuffer(b"and", np.uint8)
_OR = np.frombuffer(b"or", np.uint8)
_NOT = np.frombuffer(b"not", np.uint8)
_CONTAINS = np.frombuffer(b"contains", np.uint8)
_STARTS_WITH = np.frombuffer(b"starts-with", np.uint8)

_ASKS_ROOM = -3


@kernel
def read(state: Int64) -> int:
    """Read expressions from ``EXPRESSION`` on; see ``layout`` for what is returned."""
    queries = int32s(state, TASK.queries)
    while state[EXPRESSION] < len(queries):
        number = query_of(state, state[EXPRESSION])
        if number == ASKS_NAME:
            return NEW_NAME
        if number == _ASKS_ROOM:
            return FULL
        queries[state[EXPRESSION]] = number
        state[EXPRESSION] += 1
    return DONE


@called
def query_of(state: Int64, expression: int) -> int:
    """The number of an expression's query, or why there is none."""
    start, stop = int64s(state, TASK.starts)[expression], int64s(state, TASK.ends)[expression]
    if stop - start > state[CHARS_MAX]:
        return IS_DECLINED
    if not has_room_for(state, stop - start):
        return _ASKS_ROOM
    begin(state, start, stop)
    what = EXPECT_STEP if separator(state) else IS_DECLINED
    while what > 0:
        if what == EXPECT_STEP:
            what = step(state)
        elif what == AFTER_STEP:
            what = after_step(state)
        elif what == EXPECT_OPERAND:
            what = operand(state)
        else:
            what = after_operand(state)
        is_over = (
            state[CODE_TO] - state[CODE_FROM] > WORDS_MAX
            or state[STEPS] > state[STEPS_MAX]
            or state[PREDICATES] > state[PREDICATES_MAX]
        )
        # A name that was met for the first time is asked about before anything else is read.
        if is_over and what != ASKS_NAME:
            return IS_DECLINED
    return finished(state) if what == FINISHED else what


@called
def has_room_for(state: Int64, length: int) -> bool:
    """Whether there is room for all that an expression of so many bytes may need."""
    return (
        has_room(state, QUERIES, 4 * WORDS_ROOM, 1)
        and has_room(state, STRINGS, length, WORDS_MAX)
        and has_room(state, NUMBERS, 8 * WORDS_MAX, WORDS_MAX)
        and has_room(state, NAMES, NAME_BYTES_MAX, 1)
        and int64s(state, NAMES.counts)[0] < len(int32s(state, WORK.tests))
    )


@called
def begin(state: Int64, start: int, stop: int) -> None:
    """Begin an expression."""
    state[POSITION] = start
    state[STOP] = stop
    state[CODE_FROM] = end_of(state, QUERIES) // 4
    state[CODE_TO] = state[CODE_FROM]
    for place in (STEPS, PREDICATES, DEPTH, LEVELS, IS_LEAF):
        state[place] = 0
    state[ANCHOR_AT] = -1


@called
def operand(state: Int64) -> int:
    """Read the beginning of an operand of ``and`` and ``or``."""
    byte = next_byte(state)
    if byte == ord("("):
        state[POSITION] += 1
        return EXPECT_OPERAND if open_frame(state, IN_PARENTHESES) else IS_DECLINED
    state[FLAGS] = 0
    if byte == ord("."):
        return after_here(state)
    start = state[POSITION]
    end = name_end(state, start)
    asked = DECLINED
    if is_word(state, start, end, _CONTAINS):
        asked = CONTAINS
    elif is_word(state, start, end, _STARTS_WITH):
        asked = STARTS_WITH
    elif not is_word(state, start, end, _NOT):
        return EXPECT_STEP
    state[POSITION] = end
    if next_byte(state) != ord("("):  # it is a name
        state[POSITION] = start
        return EXPECT_STEP
    state[POSITION] += 1
    state[PREDICATES] += 1
    if asked >= 0:
        return searched(state, asked)
    emit(state, NOT)
    return EXPECT_OPERAND if open_frame(state, IN_NOT) else IS_DECLINED


@called
def searched(state: Int64, asked: int) -> int:
    """Read the arguments of ``contains()`` or ``starts-with()``."""
    byte = next_byte(state)
    if state[DEPTH] >= state[NESTED_MAX]:
        return IS_DECLINED
    if byte == ord("."):
        state[POSITION] += 1
        state[STEPS] += 1
    else:
        state[FLAGS] = 0 if byte == ord("@") else FIRST
        what = step(state)
        if what != AFTER_STEP:
            return what
        is_any = uint8s(state, TASK.data)[state[POSITION] - 1] == ord("*")
        if byte == ord("@") and is_any:
            return IS_DECLINED
    if next_byte(state) != ord(","):
        return IS_DECLINED
    state[POSITION] += 1
    if not asks_string(state, asked) or next_byte(state) != ord(")"):
        return IS_DECLINED
    state[POSITION] += 1
    end_path(state)
    return AFTER_OPERAND


@called
def after_operand(state: Int64) -> int:
    """What comes after an operand: an operator, or the end of what is open."""
    byte = next_byte(state)
    kind = int64s(state, WORK.frames)[frame(state, KIND)]
    if byte in (ord("]"), ord(")")):
        if (byte == ord("]")) != (kind == IN_PREDICATE):
            return IS_DECLINED
        state[POSITION] += 1
        items = close_frame(state)
        if kind == IN_PREDICATE:
            return AFTER_STEP
        if kind == IN_NOT:
            emit(state, END)
            items = 1
        add_items(state, items)
        return AFTER_OPERAND
    start = state[POSITION]
    end = name_end(state, start)
    state[POSITION] = end
    if is_word(state, start, end, _AND):
        return EXPECT_OPERAND
    if is_word(state, start, end, _OR):
        end_operand(state)
        begin_operand(state)
        return EXPECT_OPERAND
    return IS_DECLINED
