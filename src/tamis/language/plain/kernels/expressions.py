"""The main loop; what stands between operators, and between slashes."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import called, kernel
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.language import table as plain
from tamis.language.plain import layout as at
from tamis.language.plain.kernels import text, words

_TEXT = np.frombuffer(b"text", np.uint8)
_AND = np.frombuffer(b"and", np.uint8)
_OR = np.frombuffer(b"or", np.uint8)
_NOT = np.frombuffer(b"not", np.uint8)
_CONTAINS = np.frombuffer(b"contains", np.uint8)
_STARTS_WITH = np.frombuffer(b"starts-with", np.uint8)

_ASKS_ROOM = -3


@kernel
def read(state: Int64) -> int:
    """Read expressions from ``EXPRESSION`` on; see ``layout`` for what is returned."""
    queries = int32s(state, at.TASK.queries)
    while state[at.EXPRESSION] < len(queries):
        number = query_of(state, state[at.EXPRESSION])
        if number == at.ASKS_NAME:
            return at.NEW_NAME
        if number == _ASKS_ROOM:
            return at.FULL
        queries[state[at.EXPRESSION]] = number
        state[at.EXPRESSION] += 1
    return at.DONE


@called
def query_of(state: Int64, expression: int) -> int:
    """The number of an expression's query, or why there is none."""
    start, stop = int64s(state, at.TASK.starts)[expression], int64s(state, at.TASK.ends)[expression]
    if stop - start > state[at.CHARS_MAX]:
        return at.IS_DECLINED
    if not has_room_for(state, stop - start):
        return _ASKS_ROOM
    begin(state, start, stop)
    what = at.EXPECT_STEP if separator(state) else at.IS_DECLINED
    while what > 0:
        if what == at.EXPECT_STEP:
            what = step(state)
        elif what == at.AFTER_STEP:
            what = after_step(state)
        elif what == at.EXPECT_OPERAND:
            what = operand(state)
        else:
            what = after_operand(state)
        is_over = (
            state[at.CODE_TO] - state[at.CODE_FROM] > plain.WORDS_MAX
            or state[at.STEPS] > state[at.STEPS_MAX]
            or state[at.PREDICATES] > state[at.PREDICATES_MAX]
        )
        # A name that was met for the first time is asked about before anything else is read.
        if is_over and what != at.ASKS_NAME:
            return at.IS_DECLINED
    return words.finished(state) if what == at.FINISHED else what


@called
def has_room_for(state: Int64, length: int) -> bool:
    """Whether there is room for all that an expression of so many bytes may need."""
    return (
        text.has_room(state, at.QUERIES, 4 * at.WORDS_ROOM, 1)
        and text.has_room(state, at.STRINGS, length, plain.WORDS_MAX)
        and text.has_room(state, at.NUMBERS, 8 * plain.WORDS_MAX, plain.WORDS_MAX)
        and text.has_room(state, at.NAMES, at.NAME_BYTES_MAX, 1)
        and int64s(state, at.NAMES.counts)[0] < len(int32s(state, at.WORK.tests))
    )


@called
def begin(state: Int64, start: int, stop: int) -> None:
    """Begin an expression."""
    state[at.POSITION] = start
    state[at.STOP] = stop
    state[at.CODE_FROM] = text.end_of(state, at.QUERIES) // 4
    state[at.CODE_TO] = state[at.CODE_FROM]
    for place in (at.STEPS, at.PREDICATES, at.DEPTH, at.LEVELS, at.IS_LEAF):
        state[place] = 0


@called
def operand(state: Int64) -> int:
    """Read the beginning of an operand of ``and`` and ``or``."""
    byte = text.next_byte(state)
    if byte == ord("("):
        state[at.POSITION] += 1
        return at.EXPECT_OPERAND if words.open_frame(state, at.IN_PARENTHESES) else at.IS_DECLINED
    state[at.FLAGS] = 0
    if byte == ord("."):
        return after_here(state)
    start = state[at.POSITION]
    end = text.name_end(state, start)
    asked = at.DECLINED
    if text.is_word(state, start, end, _CONTAINS):
        asked = words.CONTAINS
    elif text.is_word(state, start, end, _STARTS_WITH):
        asked = words.STARTS_WITH
    elif not text.is_word(state, start, end, _NOT):
        return at.EXPECT_STEP
    state[at.POSITION] = end
    if text.next_byte(state) != ord("("):  # it is a name
        state[at.POSITION] = start
        return at.EXPECT_STEP
    state[at.POSITION] += 1
    state[at.PREDICATES] += 1
    if asked >= 0:
        return searched(state, asked)
    words.emit(state, plain.NOT)
    return at.EXPECT_OPERAND if words.open_frame(state, at.IN_NOT) else at.IS_DECLINED


@called
def searched(state: Int64, asked: int) -> int:
    """Read the arguments of ``contains()`` or ``starts-with()``."""
    byte = text.next_byte(state)
    if state[at.DEPTH] >= state[at.NESTED_MAX]:
        return at.IS_DECLINED
    if byte == ord("."):
        state[at.POSITION] += 1
        state[at.STEPS] += 1
    else:
        what = step(state)
        if what != at.AFTER_STEP:
            return what
        is_any = uint8s(state, at.TASK.data)[state[at.POSITION] - 1] == ord("*")
        if byte == ord("@") and is_any:
            return at.IS_DECLINED
        if byte != ord("@"):  # the value is that of the first one
            words.emit(state, plain.NTH | 1 << plain.KIND_BITS)
    if text.next_byte(state) != ord(","):
        return at.IS_DECLINED
    state[at.POSITION] += 1
    if not words.asks_string(state, asked) or text.next_byte(state) != ord(")"):
        return at.IS_DECLINED
    state[at.POSITION] += 1
    end_path(state)
    return at.AFTER_OPERAND


@called
def after_operand(state: Int64) -> int:
    """What comes after an operand: an operator, or the end of what is open."""
    byte = text.next_byte(state)
    kind = int64s(state, at.WORK.frames)[words.frame(state, at.KIND)]
    if byte in (ord("]"), ord(")")):
        if (byte == ord("]")) != (kind == at.IN_PREDICATE):
            return at.IS_DECLINED
        state[at.POSITION] += 1
        items = words.close_frame(state)
        if kind == at.IN_PREDICATE:
            return at.AFTER_STEP
        if kind == at.IN_NOT:
            words.emit(state, plain.END)
            items = 1
        words.add_items(state, items)
        return at.AFTER_OPERAND
    start = state[at.POSITION]
    end = text.name_end(state, start)
    state[at.POSITION] = end
    if text.is_word(state, start, end, _AND):
        return at.EXPECT_OPERAND
    if text.is_word(state, start, end, _OR):
        words.end_operand(state)
        words.begin_operand(state)
        return at.EXPECT_OPERAND
    return at.IS_DECLINED


# -- steps ---------------------------------------------------------------------------------------


@called
def separator(state: Int64) -> bool:
    """Read ``/`` or ``//``, if one of them is next."""
    if text.next_byte(state) != ord("/"):
        return False
    state[at.POSITION] += 1
    state[at.FLAGS] = 0
    data, position = uint8s(state, at.TASK.data), state[at.POSITION]
    if position < state[at.STOP] and data[position] == ord("/"):
        state[at.POSITION] += 1
        state[at.FLAGS] = plain.DESCENDANT
        state[at.STEPS] += 1
    return True


@called
def step(state: Int64) -> int:
    """Read a step, and begin its level."""
    byte = text.next_byte(state)
    is_attribute = byte == ord("@")
    if is_attribute:
        state[at.POSITION] += 1
        byte = text.next_byte(state)
    start = state[at.POSITION]
    end = start + 1 if byte == ord("*") else text.name_end(state, start)
    if end == start or end - start > plain.LITERAL_MAX or state[at.IS_LEAF]:
        return at.IS_DECLINED
    state[at.POSITION] = end
    is_text = text.is_word(state, start, end, _TEXT) and text.next_byte(state) == ord("(")
    if is_text:
        state[at.POSITION] += 1
        if text.next_byte(state) != ord(")") or is_attribute:
            return at.IS_DECLINED
        state[at.POSITION] += 1
    test = test_of(state, start, end, is_attribute, is_text)
    if test < 0:
        return at.ASKS_NAME if test == at.UNKNOWN else at.IS_DECLINED
    state[at.STEPS] += 1
    flags = state[at.FLAGS] | (plain.MAIN if state[at.DEPTH] == 0 else 0)
    words.emit(state, plain.STEP | (test << plain.TEST_SHIFT | flags) << plain.KIND_BITS)
    state[at.IS_LEAF] = is_attribute or is_text
    state[at.LEVELS] += 1
    return at.AFTER_STEP


@called
def test_of(state: Int64, start: int, end: int, is_attribute: bool, is_text: bool) -> int:
    """The number of a test; ``UNKNOWN`` where its name is new, ``DECLINED`` where it is none."""
    data, names = uint8s(state, at.TASK.data), uint8s(state, at.NAMES.data)
    first = to = text.end_of(state, at.NAMES)
    if is_attribute:
        names[to] = ord("@")
        to += 1
    for i in range(start, end):
        names[to] = data[i]
        to += 1
    if is_text:
        names[to], names[to + 1] = ord("("), ord(")")
        to += 2
    name = text.number_of(state, at.NAMES, to - first)
    return np.int64(int32s(state, at.WORK.tests)[name])


@called
def after_step(state: Int64) -> int:
    """What comes after a step or one of its predicates."""
    byte = text.next_byte(state)
    if byte == ord("["):
        state[at.POSITION] += 1
        state[at.PREDICATES] += 1
        return at.EXPECT_OPERAND if words.open_frame(state, at.IN_PREDICATE) else at.IS_DECLINED
    if separator(state):
        return at.EXPECT_STEP
    if state[at.DEPTH] == 0:
        return at.FINISHED if state[at.POSITION] == state[at.STOP] else at.IS_DECLINED
    return after_path(state)


@called
def after_path(state: Int64) -> int:
    """The comparison of a path, if one comes, and the end of the path."""
    asked = words.operator(state)
    if asked >= 0 and not words.compared(state, asked):
        return at.IS_DECLINED
    end_path(state)
    return at.AFTER_OPERAND


@called
def end_path(state: Int64) -> None:
    """End a path, one more item of a predicate."""
    words.end_levels(state)
    state[at.IS_LEAF] = int64s(state, at.WORK.frames)[words.frame(state, at.LEAF_AROUND)]
    words.add_items(state, 1)


@called
def after_here(state: Int64) -> int:
    """What comes after a ``.`` at which an operand begins."""
    state[at.POSITION] += 1
    byte = text.peek(state)
    if byte == ord(".") or ord("0") <= byte <= ord("9"):
        return at.IS_DECLINED
    state[at.STEPS] += 1
    if separator(state):
        return at.EXPECT_STEP
    asked = words.operator(state)
    if asked < 0 or not words.compared(state, asked):
        return at.IS_DECLINED
    words.add_items(state, 1)
    return at.AFTER_OPERAND
