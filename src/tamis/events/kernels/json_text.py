"""JSON in kernels: where strings, numbers and words end, what they say, and whether they are right.

All functions rely on a newline at the end of the data: no value of JSON goes on behind one, so none
reads farther. They take what the JSON library takes: strict JSON in UTF-8. A function that finds
something else returns ``BAD`` instead of an offset.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int32
from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.bits import big_endian, last

BAD = -1
NEWLINE, SPACE, QUOTE, BACKSLASH, COMMA, COLON = 10, 32, 34, 92, 44, 58
OPEN, CLOSE, OPEN_LIST, CLOSE_LIST = 123, 125, 91, 93
TRUE, FALSE, NULL = 116, 102, 110
"""What words begin with."""
_TAB, _RETURN, _ZERO, _MINUS, _PLUS, _POINT, _E, _SMALL = 9, 13, 48, 45, 43, 46, 101, 32

ESCAPED, WIDE = 1, 2
"""What a string has: backslashes; characters beyond ASCII that are not behind a backslash."""
NEGATIVE, REAL, LONG, HUGE = 1, 2, 4, 8
"""What a number has: a minus; a point or an exponent; more digits than DIGITS_MAX; or it may be
infinite as a double."""
DIGITS_MAX = 19
"""So many digits always fit into 64 bits."""
_POWER_MAX = 308
"""A number below 10 to this power is no infinite double."""

_LOW, _HIGH = U(0x7F7F7F7F7F7F7F7F), U(0x8080808080808080)
_QUOTES, _BACKSLASHES = U(0x2222222222222222), U(0x5C5C5C5C5C5C5C5C)
_CONTROLS = U(0x6060606060606060)


@inlined
def byte_at(data: Bytes, offset: int) -> int:
    """The byte at an offset, which is not negative: so nothing asks whether it is."""
    return np.int64(data[U(offset)])


@inlined
def skip_space(data: Bytes, offset: int) -> int:
    """Where something begins that is no white space within a line."""
    while byte_at(data, offset) <= SPACE and byte_at(data, offset) in (SPACE, _TAB, _RETURN):
        offset += 1
    return offset


# -- strings -------------------------------------------------------------------------------------


@inlined
def _plain_end(data: Bytes, offset: int) -> int:
    """Where a string has a quote, a backslash, a control or a byte beyond ASCII."""
    while offset + 8 <= len(data):
        word = big_endian(data, offset)
        low = word & _LOW
        # The high bit of a byte is set in these three where the byte is something else.
        others = ((low ^ _QUOTES) + _LOW) & ((low ^ _BACKSLASHES) + _LOW) & (low + _CONTROLS)
        found = (word | ~others) & _HIGH
        if found != U(0):
            return offset + ((63 - last(found)) >> 3)
        offset += 8
    while SPACE <= byte_at(data, offset) < 128 and byte_at(data, offset) not in (QUOTE, BACKSLASH):
        offset += 1
    return offset


@inlined
def string_end(data: Bytes, offset: int) -> tuple[int, int]:
    """Of a string, from behind its first quote: where its last quote is, or BAD; what it has."""
    traits = 0
    while True:
        offset = _plain_end(data, offset)
        byte = byte_at(data, offset)
        if byte == QUOTE:
            return offset, traits
        traits |= ESCAPED if byte == BACKSLASH else WIDE
        size = _character_size(data, offset)
        if size == 0:
            return BAD, traits
        offset += size


@called
def _character_size(data: Bytes, offset: int) -> int:
    """The bytes of what is no plain character of a string; 0 where it cannot be in one."""
    first = byte_at(data, offset)
    if first == BACKSLASH:
        size, _ = escape_at(data, offset)
        return size
    if first < 0xC2 or first > 0xF4:  # or it is the last newline
        return 0
    second = byte_at(data, offset + 1)
    if not 0x80 <= second <= 0xBF:
        return 0
    if first < 0xE0:
        return 2
    is_third = 0x80 <= byte_at(data, offset + 2) <= 0xBF
    if first < 0xF0:
        is_long = first == 0xE0 and second < 0xA0
        is_surrogate = first == 0xED and second > 0x9F
        return 3 if is_third and not is_long and not is_surrogate else 0
    if not is_third or not 0x80 <= byte_at(data, offset + 3) <= 0xBF:
        return 0
    is_long = first == 0xF0 and second < 0x90
    return 4 if not is_long and not (first == 0xF4 and second > 0x8F) else 0


@inlined
def _code_unit(data: Bytes, offset: int) -> int:
    r"""The number behind ``\u`` at an offset, or -1."""
    if byte_at(data, offset) != BACKSLASH or byte_at(data, offset + 1) != ord("u"):
        return -1
    unit = 0
    for place in range(offset + 2, offset + 6):
        byte = byte_at(data, place)
        letter = byte | _SMALL
        if 48 <= byte <= 57:
            unit = unit * 16 + byte - 48
        elif 97 <= letter <= 102:
            unit = unit * 16 + letter - 87
        else:
            return -1
    return unit


@called
def escape_at(data: Bytes, offset: int) -> tuple[int, int]:
    """The bytes of the escape at a backslash, and its character; 0 where it is none."""
    byte = byte_at(data, offset + 1)
    if byte in (QUOTE, BACKSLASH, ord("/")):
        return 2, byte
    if byte == ord("n"):
        return 2, 10
    if byte == ord("t"):
        return 2, 9
    if byte == ord("r"):
        return 2, 13
    if byte == ord("b"):
        return 2, 8
    if byte == ord("f"):
        return 2, 12
    unit = _code_unit(data, offset)
    if unit < 0 or 0xDC00 <= unit <= 0xDFFF:
        return 0, 0
    if not 0xD800 <= unit <= 0xDBFF:
        return 6, unit
    other = _code_unit(data, offset + 6)
    if not 0xDC00 <= other <= 0xDFFF:
        return 0, 0
    return 12, 0x10000 + ((unit - 0xD800) << 10) + other - 0xDC00


@inlined
def _put_character(into: Bytes, target: int, code: int) -> int:
    """Write a character in UTF-8; where it ends."""
    if code < 0x80:
        into[target] = code
        return target + 1
    if code < 0x800:
        into[target] = 0xC0 | code >> 6
        into[target + 1] = 0x80 | code & 0x3F
        return target + 2
    if code < 0x10000:
        into[target] = 0xE0 | code >> 12
        into[target + 1] = 0x80 | code >> 6 & 0x3F
        into[target + 2] = 0x80 | code & 0x3F
        return target + 3
    into[target] = 0xF0 | code >> 18
    into[target + 1] = 0x80 | code >> 12 & 0x3F
    into[target + 2] = 0x80 | code >> 6 & 0x3F
    into[target + 3] = 0x80 | code & 0x3F
    return target + 4


@called
def unescape(data: Bytes, start: int, end: int, into: Bytes, target: int) -> int:
    """Write a string that is right, without escapes; where it ends. It gets no longer."""
    while start < end:
        if byte_at(data, start) == BACKSLASH:
            size, code = escape_at(data, start)
            target = _put_character(into, target, code)
            start += size
        else:
            into[target] = byte_at(data, start)
            target += 1
            start += 1
    return target


@called
def fold(data: Bytes, start: int, end: int, folds: Int32, target: int) -> int:
    """Write the fold of a string of valid UTF-8 at a target that is not before its end.

    Returns where it ends. Characters of two bytes may take three, others no more than they have.

    Args:
        folds: int32[]; what each character folds to; those beyond fold to themselves.
    """
    while start < end:
        code, size = byte_at(data, start), 1
        if code >= 0x80:
            size = 2 + (code >= 0xE0) + (code >= 0xF0)
            code &= 0x7F >> size
            for place in range(1, size):
                code = code << 6 | byte_at(data, start + place) & 0x3F
        if code < len(folds):
            code = np.int64(folds[U(code)])
        target = _put_character(data, target, code)
        start += size
    return target


# -- words and numbers ---------------------------------------------------------------------------


@inlined
def word_end(data: Bytes, offset: int) -> int:
    """Where ``true``, ``false`` or ``null`` ends, or BAD."""
    first, size = byte_at(data, offset), 4
    if first == TRUE:
        rest = (ord("r"), ord("u"), ord("e"))
    elif first == NULL:
        rest = (ord("u"), ord("l"), ord("l"))
    else:
        rest = (ord("a"), ord("l"), ord("s"))
        size = 5
    for place in range(3):
        if byte_at(data, offset + 1 + place) != rest[place]:
            return BAD
    return offset + size if size == 4 or byte_at(data, offset + 4) == _E else BAD


@inlined
def _is_digit(byte: int) -> bool:
    return _ZERO <= byte <= _ZERO + 9


@called
def number_at(data: Bytes, offset: int) -> tuple[int, np.uint64, int, int]:
    """Where a number ends, or BAD; its digits, as an integer; the power of ten behind; its traits.

    The digits are modulo 2**64 where there are more than DIGITS_MAX.
    """
    traits = power = 0
    digits = U(0)
    if byte_at(data, offset) == _MINUS:
        traits = NEGATIVE
        offset += 1
    first = offset
    while _is_digit(byte_at(data, offset)):
        digits = digits * U(10) + U(byte_at(data, offset) - _ZERO)
        offset += 1
    count = whole = offset - first
    if whole == 0 or (whole > 1 and byte_at(data, first) == _ZERO):
        return BAD, digits, 0, 0
    if byte_at(data, offset) == _POINT:
        traits |= REAL
        offset += 1
        first = offset
        while _is_digit(byte_at(data, offset)):
            digits = digits * U(10) + U(byte_at(data, offset) - _ZERO)
            offset += 1
        if offset == first:
            return BAD, digits, 0, 0
        power = first - offset
        count += offset - first
    if byte_at(data, offset) | _SMALL == _E:
        traits |= REAL
        offset, exponent = _exponent_at(data, offset + 1)
        if offset < 0:
            return BAD, digits, 0, 0
        power += exponent
        whole += exponent
    if count > DIGITS_MAX:
        traits |= LONG
    if whole > _POWER_MAX:
        traits |= HUGE
    return offset, digits, power, traits


@inlined
def _exponent_at(data: Bytes, offset: int) -> tuple[int, int]:
    """Where an exponent ends, or BAD; and its number, of which very large ones are cut."""
    is_negative = byte_at(data, offset) == _MINUS
    if is_negative or byte_at(data, offset) == _PLUS:
        offset += 1
    first, exponent = offset, 0
    while _is_digit(byte_at(data, offset)):
        exponent = min(exponent * 10 + byte_at(data, offset) - _ZERO, 1 << 40)
        offset += 1
    return BAD if offset == first else offset, -exponent if is_negative else exponent
