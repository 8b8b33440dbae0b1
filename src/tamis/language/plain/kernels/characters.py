"""Where a reader is, and what characters stand there."""

from __future__ import annotations

import numpy as np

from tamis.core.kernel import called, inlined
from tamis.core.kernel.record import uint8s
from tamis.language.plain.layout import POSITION, STOP, TASK, Bytes, Int64

_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_OTHERS = frozenset(b"0123456789.-")
# By byte: whether a name may begin with it, and go on with it. Which characters beyond ASCII are
# of names, the caller decides when a name is met for the first time.
BEGINS_NAME = np.array([byte in _LETTERS or byte >= 0x80 for byte in range(256)])
IN_NAME = np.array([BEGINS_NAME[byte] or byte in _OTHERS for byte in range(256)])
SPACE, TAB, LINE_FEED, RETURN = 0x20, 0x09, 0x0A, 0x0D


@inlined
def peek(state: Int64) -> int:
    """The byte at the position; 0, which no expression has, at the end."""
    if state[POSITION] < state[STOP]:
        return np.int64(uint8s(state, TASK.data)[state[POSITION]])
    return 0


@called
def next_byte(state: Int64) -> int:
    """The next byte that is not white space, which the position is at then."""
    byte = peek(state)
    while byte in (SPACE, TAB, LINE_FEED, RETURN):
        state[POSITION] += 1
        byte = peek(state)
    return byte


@called
def name_end(state: Int64, start: int) -> int:
    """Where the name that begins at a place ends: ``a``, ``a:b`` or ``a:*``; the place if none."""
    data, stop = uint8s(state, TASK.data), state[STOP]
    end = _end_of_part(data, start, stop)
    if end > start and end + 1 < stop and data[end] == ord(":"):
        if data[end + 1] == ord("*"):
            return end + 2
        local = _end_of_part(data, end + 1, stop)
        if local > end + 1:
            return local
    return end


@inlined
def _end_of_part(data: Bytes, start: int, stop: int) -> int:
    end = start
    if end < stop and BEGINS_NAME[data[end]]:
        end += 1
        while end < stop and IN_NAME[data[end]]:
            end += 1
    return end


@called
def is_word(state: Int64, start: int, end: int, word: Bytes) -> bool:
    """Whether some bytes are a word."""
    data = uint8s(state, TASK.data)
    if end - start != len(word):
        return False
    same = 0
    while same < len(word) and data[start + same] == word[same]:
        same += 1
    return same == len(word)


@called
def is_text(data: Bytes, start: int, end: int) -> bool:
    """Whether some bytes are UTF-8 of characters that XML documents may have."""
    at = start
    while at < end:
        byte = np.int64(data[at])
        if byte < 0x80:
            if byte < SPACE and byte not in (TAB, LINE_FEED, RETURN):
                return False
            at += 1
            continue
        size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        if byte < 0xC2 or byte > 0xF4 or at + size > end:
            return False
        code = byte & (0x7F >> size)
        for i in range(at + 1, at + size):
            if data[i] & 0xC0 != 0x80:
                return False
            code = code << 6 | np.int64(data[i]) & 0x3F
        is_surrogate = 0xD800 <= code < 0xE000
        is_overlong = code < (0x800 if size == 3 else 0x10000 if size == 4 else 0x80)
        if is_surrogate or is_overlong or code in (0xFFFE, 0xFFFF) or code > 0x10FFFF:
            return False
        at += size
    return True
