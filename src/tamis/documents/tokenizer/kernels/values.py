"""Bytes of documents become values: copied, with line ends and references resolved."""

from __future__ import annotations

from tamis.core.kernel import U, called
from tamis.core.kernel.record import uint8s
from tamis.documents.tokenizer.kernels.characters import (
    AMP,
    APOSTROPHE,
    GT,
    HASH,
    LT,
    NEWLINE,
    QUOTE,
    RETURN,
    SEMICOLON,
)
from tamis.documents.tokenizer.kernels.layout import (
    BODY,
    DECLINE,
    IS_EXTERNAL,
    SWITCH,
    TAIL,
    Int64,
    at,
    length_of,
)
from tamis.documents.tokenizer.vectors import BLOCK, ONE, byte, copy, returns, word

SKIP = -1
"""The code of a reference that stands for nothing."""


@called
def transfer(state: Int64, start: int, end: int, target: int) -> None:
    """Copy the bytes of a document to an address."""
    middle = min(max(start, state[SWITCH]), end)
    if start < middle:
        copy(target, state[BODY] + start, middle - start)
    if middle < end:
        copy(target + middle - start, state[TAIL] + middle, end - middle)


@called
def append(state: Int64, start: int, end: int, array: int, used: int) -> int:
    """Append bytes of a document to an array, each line end as a newline.

    Args:
        array: its place in the state.
        used: how many of its bytes are.

    Returns:
        How many bytes are then used, or -1 if they may not fit.
    """
    if used + end - start > length_of(state, array):
        return -1
    place = start
    while place < end:
        mask = returns(at(state, place))
        if end - place < BLOCK:
            mask &= (ONE << U(end - place)) - ONE
        if mask:
            return append_lines(state, start, end, array, used)
        place += BLOCK
    transfer(state, start, end, state[array] + used)
    return used + end - start


@called
def append_lines(state: Int64, start: int, end: int, array: int, used: int) -> int:
    """``append``, byte by byte."""
    values = uint8s(state, array)
    place = start
    while place < end:
        character = byte(at(state, place))
        if character == RETURN:
            character = NEWLINE
            if byte(at(state, place + 1)) == NEWLINE:  # behind a value there always is a byte
                place += 1
        values[used] = character
        used += 1
        place += 1
    return used


@called
def append_character(state: Int64, code: int, array: int, used: int) -> int:
    """Append a character in UTF-8; there is room for 4 bytes. Returns how many are then used."""
    values = uint8s(state, array)
    if code < 0x80:
        values[used] = code
        return used + 1
    if code < 0x800:
        values[used] = 0xC0 | code >> 6
        values[used + 1] = 0x80 | code & 0x3F
        return used + 2
    if code < 0x10000:
        values[used] = 0xE0 | code >> 12
        values[used + 1] = 0x80 | code >> 6 & 0x3F
        values[used + 2] = 0x80 | code & 0x3F
        return used + 3
    values[used] = 0xF0 | code >> 18
    values[used + 1] = 0x80 | code >> 12 & 0x3F
    values[used + 2] = 0x80 | code >> 6 & 0x3F
    values[used + 3] = 0x80 | code & 0x3F
    return used + 4


@called
def reference(state: Int64, place: int) -> tuple[int, int]:
    """Read the reference at a place: its code or ``SKIP``, and the place behind it."""
    start = place + 1
    address = at(state, start)
    if byte(address) == HASH:
        return numeric_reference(state, start + 1)
    text = word(address)
    if text & U(0xFFFFFF) == U(0x3B746C):  # lt;
        return LT, start + 3
    if text & U(0xFFFFFF) == U(0x3B7467):  # gt;
        return GT, start + 3
    if text & U(0xFFFFFFFF) == U(0x3B706D61):  # amp;
        return AMP, start + 4
    if text & U(0xFFFFFFFFFF) == U(0x3B736F7061):  # apos;
        return APOSTROPHE, start + 5
    if text & U(0xFFFFFFFFFF) == U(0x3B746F7571):  # quot;
        return QUOTE, start + 5
    if not state[IS_EXTERNAL]:
        return 0, -DECLINE
    here = start
    while True:  # an ASCII name; others are left to libexpat
        character = byte(at(state, here))
        letter = character | 0x20
        is_first = ord("a") <= letter <= ord("z") or character == ord("_")
        is_later = ord("0") <= character <= ord("9") or character in (ord("-"), ord("."))
        if not is_first and (here == start or not is_later):
            break
        here += 1
    if character != SEMICOLON or here == start:
        return 0, -DECLINE
    return SKIP, here + 1


@called
def numeric_reference(state: Int64, place: int) -> tuple[int, int]:
    """Read a character reference from behind its ``#`` on: the code, and the place behind it."""
    base = 10
    if byte(at(state, place)) == ord("x"):
        base = 16
        place += 1
    code = 0
    start = place
    while True:
        character = byte(at(state, place))
        if ord("0") <= character <= ord("9"):
            digit = character - ord("0")
        elif base == 16 and ord("a") <= character | 0x20 <= ord("f"):
            digit = (character | 0x20) - ord("a") + 10
        else:
            break
        code = min(code * base + digit, 0x110000)
        place += 1
    is_control = code < 0x20 and code not in (0x9, 0xA, 0xD)
    is_other = 0xD800 <= code < 0xE000 or code in (0xFFFE, 0xFFFF) or code > 0x10FFFF
    if character != SEMICOLON or place == start or is_control or is_other:
        return 0, -DECLINE
    return code, place + 1
