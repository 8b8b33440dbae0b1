"""The words of the query that is read, and the literals and operators that they refer to."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import called, inlined
from tamis.core.kernel.record import float64s, int32s, int64s, uint8s
from tamis.language import table as plain
from tamis.language.plain import layout as at
from tamis.language.plain.kernels import text

# Places in OPERATORS.
EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST, STARTS_WITH, CONTAINS = range(8)

# What is exact: digits of a number that a double holds, divided by a power of ten that it holds.
DIGITS_MAX = 15
POWERS = np.array([10.0**n for n in range(DIGITS_MAX + 1)])


@inlined
def emit(state: Int64, word: int) -> None:
    """Write a word down; the main loop sees to it that there is room."""
    int32s(state, at.WORK.code)[state[at.CODE_TO]] = word
    state[at.CODE_TO] += 1


@called
def insert(state: Int64, place: int, word: int) -> None:
    """Write a word down before others."""
    code = int32s(state, at.WORK.code)
    for i in range(state[at.CODE_TO], place, -1):
        code[i] = code[i - 1]
    code[place] = word
    state[at.CODE_TO] += 1


@called
def end_levels(state: Int64) -> None:
    """End the path that is read."""
    for _ in range(state[at.LEVELS]):
        emit(state, plain.END)
    state[at.LEVELS] = 0


# -- frames ------------------------------------------------------------------------------------


@inlined
def frame(state: Int64, column: int) -> int:
    """The place of a column of the innermost frame."""
    return (state[at.DEPTH] - 1) * at.FRAME_COLUMNS + column


@called
def open_frame(state: Int64, kind: int) -> bool:
    """Open a frame, unless it would be too deep."""
    if state[at.DEPTH] >= min(state[at.NESTED_MAX], at.FRAMES_MAX):
        return False
    state[at.DEPTH] += 1
    frames = int64s(state, at.WORK.frames)
    frames[frame(state, at.KIND)] = kind
    frames[frame(state, at.FROM)] = state[at.CODE_TO]
    frames[frame(state, at.LEVELS_AROUND)] = state[at.LEVELS]
    frames[frame(state, at.LEAF_AROUND)] = state[at.IS_LEAF]
    frames[frame(state, at.HAS_ANY)] = 0
    state[at.LEVELS] = 0
    begin_operand(state)
    return True


@inlined
def begin_operand(state: Int64) -> None:
    """Begin an operand of ``or``."""
    frames = int64s(state, at.WORK.frames)
    frames[frame(state, at.OPERAND_FROM)] = state[at.CODE_TO]
    frames[frame(state, at.ITEMS)] = 0


@inlined
def add_items(state: Int64, count: int) -> None:
    """Count what was written into the innermost frame."""
    int64s(state, at.WORK.frames)[frame(state, at.ITEMS)] += count


@called
def end_operand(state: Int64) -> None:
    """End an operand of ``or``: several items that all have to hold are a group."""
    frames = int64s(state, at.WORK.frames)
    if frames[frame(state, at.ITEMS)] > 1:
        insert(state, frames[frame(state, at.OPERAND_FROM)], plain.ALL)
        emit(state, plain.END)
    if not frames[frame(state, at.HAS_ANY)]:
        insert(state, frames[frame(state, at.FROM)], plain.ANY)
        frames[frame(state, at.HAS_ANY)] = 1


@called
def close_frame(state: Int64) -> int:
    """Close the innermost frame; how many items it was."""
    frames = int64s(state, at.WORK.frames)
    items = frames[frame(state, at.ITEMS)]
    if frames[frame(state, at.HAS_ANY)]:
        end_operand(state)
        emit(state, plain.END)
        items = 1
    state[at.LEVELS] = frames[frame(state, at.LEVELS_AROUND)]
    state[at.IS_LEAF] = frames[frame(state, at.LEAF_AROUND)]
    state[at.DEPTH] -= 1
    return items


# -- the whole ---------------------------------------------------------------------------------


@called
def finished(state: Int64) -> int:
    """The number of the query that was read, or ``IS_DECLINED``."""
    code = int32s(state, at.WORK.code)
    end_levels(state)
    start, end = state[at.CODE_FROM], state[at.CODE_TO]
    depth = 0
    for i in range(start, end):
        kind = code[i] & plain.KIND_MASK
        if kind == plain.END:
            depth -= 1
        elif kind in (plain.STEP, plain.ALL, plain.ANY, plain.NOT):
            depth += 1
            if depth > plain.NESTING_MAX:
                return at.IS_DECLINED
    return text.number_of(state, at.QUERIES, 4 * (end - start))


# -- comparisons ---------------------------------------------------------------------------------


@called
def operator(state: Int64) -> int:
    """The operator of a comparison that comes next, or ``DECLINED``."""
    byte = text.next_byte(state)
    if byte not in (ord("="), ord("!"), ord("<"), ord(">")):
        return at.DECLINED
    data, position = uint8s(state, at.TASK.data), state[at.POSITION] + 1
    has_equal = byte != ord("=") and position < state[at.STOP] and data[position] == ord("=")
    if byte == ord("!") and not has_equal:
        return at.DECLINED
    state[at.POSITION] = position + has_equal
    if byte == ord("<"):
        return AT_MOST if has_equal else LESS
    if byte == ord(">"):
        return AT_LEAST if has_equal else MORE
    return UNEQUAL if has_equal else EQUAL


@called
def compared(state: Int64, asked: int) -> bool:
    """Read the literal that something is compared with; False where it is not plain."""
    state[at.PREDICATES] += 1
    byte = text.next_byte(state)
    if byte in (ord("'"), ord('"')):
        return asked in (EQUAL, UNEQUAL) and asks_string(state, asked)
    number = number_literal(state)
    return number >= 0 and asks(state, asked, -1 - number)


@called
def asks_string(state: Int64, asked: int) -> bool:
    """Read a string literal that something is asked for; False where it is not plain."""
    number = string_literal(state)
    return number >= 0 and asks(state, asked, number)


@inlined
def asks(state: Int64, asked: int, literal: int) -> bool:
    """Write down that something is compared with a literal; always True."""
    emit(state, plain.COMPARE | asked << plain.KIND_BITS)
    emit(state, plain.LITERAL | literal << plain.KIND_BITS)
    return True


@called
def string_literal(state: Int64) -> int:
    """The number of the string literal that is next, or ``DECLINED``."""
    quote = text.next_byte(state)
    if quote not in (ord("'"), ord('"')):
        return at.DECLINED
    data, start, stop = uint8s(state, at.TASK.data), state[at.POSITION] + 1, state[at.STOP]
    end = start
    while end < stop and np.int64(data[end]) != quote:
        end += 1
    length = end - start
    if (
        end == stop
        or length == 0
        or length > plain.LITERAL_MAX
        or not text.is_text(data, start, end)
    ):
        return at.DECLINED
    state[at.POSITION] = end + 1
    strings, to = uint8s(state, at.STRINGS.data), text.end_of(state, at.STRINGS)
    for i in range(length):
        strings[to + i] = data[start + i]
    return text.number_of(state, at.STRINGS, length)


@called
def number_literal(state: Int64) -> int:
    """The number of the number literal that is next, or ``DECLINED``."""
    is_negative = text.next_byte(state) == ord("-")
    if is_negative:
        state[at.POSITION] += 1
        text.next_byte(state)
    digits = 0
    value = 0
    scale = -1
    while True:
        byte = text.peek(state)
        if byte == ord(".") and scale < 0:
            scale = 0
        elif ord("0") <= byte <= ord("9"):
            value = 10 * value + byte - ord("0")
            digits += 1
            scale += scale >= 0
        else:
            break
        if digits > DIGITS_MAX:
            return at.DECLINED
        state[at.POSITION] += 1
    if digits == 0:
        return at.DECLINED
    number = np.float64(value) / POWERS[max(scale, 0)]
    if is_negative and value != 0:  # -0 is 0 in all comparisons
        number = -number
    float64s(state, at.WORK.numbers)[text.end_of(state, at.NUMBERS) // 8] = number
    return text.number_of(state, at.NUMBERS, 8)
