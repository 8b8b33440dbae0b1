"""Steps of paths, and what comes after them."""

from __future__ import annotations

import numpy as np

from tamis.core.kernel import called
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.language.plain import BELOW, KIND_BITS, LITERAL_MAX, STEP, TEST_SHIFT
from tamis.language.plain.kernels.characters import is_word, name_end, next_byte, peek
from tamis.language.plain.kernels.literals import compared, operator
from tamis.language.plain.kernels.tables import end_of, number_of
from tamis.language.plain.kernels.words import add_items, emit, end_levels, frame, open_frame
from tamis.language.plain.layout import (
    AFTER_OPERAND,
    AFTER_STEP,
    ANCHOR_AT,
    ASKS_NAME,
    CODE_TO,
    DEPTH,
    EXPECT_OPERAND,
    EXPECT_STEP,
    FINISHED,
    FLAGS,
    IN_PREDICATE,
    IS_DECLINED,
    IS_LEAF,
    LEAF_AROUND,
    LEVELS,
    NAMES,
    POSITION,
    PREDICATES,
    STEP_AT,
    STEPS,
    STOP,
    TASK,
    UNKNOWN,
    WORK,
    Int64,
)

TEXT = np.frombuffer(b"text", np.uint8)


@called
def separator(state: Int64) -> bool:
    """Read ``/`` or ``//``, if one of them is next."""
    if next_byte(state) != ord("/"):
        return False
    state[POSITION] += 1
    state[FLAGS] = 0
    data, at = uint8s(state, TASK.data), state[POSITION]
    if at < state[STOP] and data[at] == ord("/"):
        state[POSITION] += 1
        state[FLAGS] = BELOW
        state[STEPS] += 1
    return True


@called
def step(state: Int64) -> int:
    """Read a step, and begin its level."""
    byte = next_byte(state)
    is_attribute = byte == ord("@")
    if is_attribute:
        state[POSITION] += 1
        byte = next_byte(state)
    start = state[POSITION]
    end = start + 1 if byte == ord("*") else name_end(state, start)
    if end == start or end - start > LITERAL_MAX or state[IS_LEAF]:
        return IS_DECLINED
    state[POSITION] = end
    is_text = is_word(state, start, end, TEXT) and next_byte(state) == ord("(")
    if is_text:
        state[POSITION] += 1
        if next_byte(state) != ord(")") or is_attribute:
            return IS_DECLINED
        state[POSITION] += 1
    test = test_of(state, start, end, is_attribute, is_text)
    if test < 0:
        return ASKS_NAME if test == UNKNOWN else IS_DECLINED
    state[STEPS] += 1
    state[STEP_AT] = state[CODE_TO]
    emit(state, STEP | (test << TEST_SHIFT | state[FLAGS]) << KIND_BITS)
    state[IS_LEAF] = is_attribute or is_text
    state[LEVELS] += state[DEPTH] > 0 or state[ANCHOR_AT] >= 0
    return AFTER_STEP


@called
def test_of(state: Int64, start: int, end: int, is_attribute: bool, is_text: bool) -> int:
    """The number of a test; ``UNKNOWN`` where its name is new, ``DECLINED`` where it is none."""
    data, names = uint8s(state, TASK.data), uint8s(state, NAMES.data)
    first = to = end_of(state, NAMES)
    if is_attribute:
        names[to] = ord("@")
        to += 1
    for i in range(start, end):
        names[to] = data[i]
        to += 1
    if is_text:
        names[to], names[to + 1] = ord("("), ord(")")
        to += 2
    name = number_of(state, NAMES, to - first)
    return np.int64(int32s(state, WORK.tests)[name])


@called
def after_step(state: Int64) -> int:
    """What comes after a step or one of its predicates."""
    byte = next_byte(state)
    is_main = state[DEPTH] == 0
    if byte == ord("["):
        if is_main and state[ANCHOR_AT] < 0:
            state[ANCHOR_AT] = state[STEP_AT]
            state[LEVELS] = 1
        state[POSITION] += 1
        state[PREDICATES] += 1
        return EXPECT_OPERAND if open_frame(state, IN_PREDICATE) else IS_DECLINED
    if separator(state):
        return EXPECT_STEP
    if is_main:
        return FINISHED if state[POSITION] == state[STOP] else IS_DECLINED
    return after_path(state)


@called
def after_path(state: Int64) -> int:
    """The comparison of a path, if one comes, and the end of the path."""
    asked = operator(state)
    if asked >= 0 and not compared(state, asked):
        return IS_DECLINED
    end_path(state)
    return AFTER_OPERAND


@called
def end_path(state: Int64) -> None:
    """End a path, one more item of a predicate."""
    end_levels(state)
    state[IS_LEAF] = int64s(state, WORK.frames)[frame(state, LEAF_AROUND)]
    add_items(state, 1)


@called
def after_here(state: Int64) -> int:
    """What comes after a ``.`` at which an operand begins."""
    state[POSITION] += 1
    byte = peek(state)
    if byte == ord(".") or ord("0") <= byte <= ord("9"):
        return IS_DECLINED
    state[STEPS] += 1
    if separator(state):
        return EXPECT_STEP
    asked = operator(state)
    if asked < 0 or not compared(state, asked):
        return IS_DECLINED
    add_items(state, 1)
    return AFTER_OPERAND
