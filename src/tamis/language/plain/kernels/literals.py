"""Operators of comparisons, and literals."""

from __future__ import annotations

import numpy as np

from tamis.core.kernel import called
from tamis.core.kernel.record import float64s, uint8s
from tamis.language.plain import ASKS, KIND_BITS, LITERAL_MAX
from tamis.language.plain.kernels.characters import is_text, next_byte, peek
from tamis.language.plain.kernels.tables import end_of, number_of
from tamis.language.plain.kernels.words import emit
from tamis.language.plain.layout import (
    DECLINED,
    NUMBERS,
    POSITION,
    PREDICATES,
    STOP,
    STRINGS,
    TASK,
    WORK,
    Int64,
)

# Places in OPERATORS.
EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST, STARTS_WITH, CONTAINS = range(8)

# What is exact: digits of a number that a double holds, divided by a power of ten that it holds.
DIGITS_MAX = 15
POWERS = np.array([10.0**n for n in range(DIGITS_MAX + 1)])


@called
def operator(state: Int64) -> int:
    """The operator of a comparison that comes next, or ``DECLINED``."""
    byte = next_byte(state)
    if byte not in (ord("="), ord("!"), ord("<"), ord(">")):
        return DECLINED
    data, at = uint8s(state, TASK.data), state[POSITION] + 1
    has_equal = byte != ord("=") and at < state[STOP] and data[at] == ord("=")
    if byte == ord("!") and not has_equal:
        return DECLINED
    state[POSITION] = at + has_equal
    if byte == ord("<"):
        return AT_MOST if has_equal else LESS
    if byte == ord(">"):
        return AT_LEAST if has_equal else MORE
    return UNEQUAL if has_equal else EQUAL


@called
def compared(state: Int64, asked: int) -> bool:
    """Read the literal that something is compared with; False where it is not plain."""
    state[PREDICATES] += 1
    byte = next_byte(state)
    if byte in (ord("'"), ord('"')):
        return asked in (EQUAL, UNEQUAL) and asks_string(state, asked)
    number = number_literal(state)
    if number < 0:
        return False
    emit(state, ASKS | asked << KIND_BITS)
    emit(state, -1 - number)
    return True


@called
def asks_string(state: Int64, asked: int) -> bool:
    """Read a string literal that something is asked for; False where it is not plain."""
    number = string_literal(state)
    if number < 0:
        return False
    emit(state, ASKS | asked << KIND_BITS)
    emit(state, number)
    return True


@called
def string_literal(state: Int64) -> int:
    """The number of the string literal that is next, or ``DECLINED``."""
    quote = next_byte(state)
    if quote not in (ord("'"), ord('"')):
        return DECLINED
    data, start, stop = uint8s(state, TASK.data), state[POSITION] + 1, state[STOP]
    end = start
    while end < stop and np.int64(data[end]) != quote:
        end += 1
    length = end - start
    if end == stop or length == 0 or length > LITERAL_MAX or not is_text(data, start, end):
        return DECLINED
    state[POSITION] = end + 1
    strings, to = uint8s(state, STRINGS.data), end_of(state, STRINGS)
    for i in range(length):
        strings[to + i] = data[start + i]
    return number_of(state, STRINGS, length)


@called
def number_literal(state: Int64) -> int:
    """The number of the number literal that is next, or ``DECLINED``."""
    is_negative = next_byte(state) == ord("-")
    if is_negative:
        state[POSITION] += 1
        next_byte(state)
    digits = 0
    value = 0
    scale = -1
    while True:
        byte = peek(state)
        if byte == ord(".") and scale < 0:
            scale = 0
        elif ord("0") <= byte <= ord("9"):
            value = 10 * value + byte - ord("0")
            digits += 1
            scale += scale >= 0
        else:
            break
        if digits > DIGITS_MAX:
            return DECLINED
        state[POSITION] += 1
    if digits == 0:
        return DECLINED
    number = np.float64(value) / POWERS[max(scale, 0)]
    if is_negative and value != 0:  # -0 is 0 in all comparisons
        number = -number
    float64s(state, WORK.numbers)[end_of(state, NUMBERS) // 8] = number
    return number_of(state, NUMBERS, 8)
