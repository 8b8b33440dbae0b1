"""Bytes of expressions: what stands at the position, and byte strings that are stored once."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.core.arrays import Bytes, Int64
from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.core.kernel.table import slot_finder
from tamis.core.kernel.text import hash_bytes, same_bytes
from tamis.language.plain import layout as at

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
    if state[at.POSITION] < state[at.STOP]:
        return np.int64(uint8s(state, at.TASK.data)[state[at.POSITION]])
    return 0


@called
def next_byte(state: Int64) -> int:
    """The next byte that is not white space, which the position is at then."""
    byte = peek(state)
    while byte in (SPACE, TAB, LINE_FEED, RETURN):
        state[at.POSITION] += 1
        byte = peek(state)
    return byte


@called
def name_end(state: Int64, start: int) -> int:
    """Where the name that begins at a place ends: ``a``, ``a:b`` or ``a:*``; the place if none."""
    data, stop = uint8s(state, at.TASK.data), state[at.STOP]
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
    if end - start != len(word):
        return False
    return same_bytes(word, 0, len(word), uint8s(state, at.TASK.data), start, start + len(word))


@called
def is_text(data: Bytes, start: int, end: int) -> bool:
    """Whether some bytes are UTF-8 of characters that XML documents may have."""
    position = start
    while position < end:
        byte = np.int64(data[position])
        if byte < 0x80:
            if byte < SPACE and byte not in (TAB, LINE_FEED, RETURN):
                return False
            position += 1
            continue
        size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        if byte < 0xC2 or byte > 0xF4 or position + size > end:
            return False
        code = byte & (0x7F >> size)
        for i in range(position + 1, position + size):
            if data[i] & 0xC0 != 0x80:
                return False
            code = code << 6 | np.int64(data[i]) & 0x3F
        is_surrogate = 0xD800 <= code < 0xE000
        is_overlong = code < (0x800 if size == 3 else 0x10000 if size == 4 else 0x80)
        if is_surrogate or is_overlong or code in (0xFFFE, 0xFFFF) or code > 0x10FFFF:
            return False
        position += size
    return True


# -- strings, each once ----------------------------------------------------------------------------


@inlined
def end_of(state: Int64, table: Any) -> int:
    """Where the next string is to be put."""
    return int64s(state, table.starts)[int64s(state, table.counts)[0]]


@inlined
def _is_string(
    known: tuple[Bytes, Int64, at.Words], number: int, string: tuple[int, int, np.uint64]
) -> bool:
    (data, starts, hashes), (start, length, hash) = known, string
    return hashes[number] == hash and same_bytes(
        data, starts[number], starts[number + 1], data, start, start + length
    )


find_string = slot_finder(_is_string)


@called
def number_of(state: Int64, table: Any, length: int) -> int:
    """The number of the string that was put behind all others: of its equal, or else a new one."""
    data, starts = uint8s(state, table.data), int64s(state, table.starts)
    hashes, slots = uint64s(state, table.hashes), int32s(state, table.slots)
    count = int64s(state, table.counts)[0]
    start = starts[count]
    hash = hash_bytes(data, start, start + length, U(state[at.MULTIPLIER]))
    slot = find_string(slots, hash, (data, starts, hashes), (start, length, hash))
    if slots[slot] != 0:
        return np.int64(slots[slot]) - 1
    slots[slot] = count + 1
    hashes[count] = hash
    starts[count + 1] = start + length
    int64s(state, table.counts)[0] = count + 1
    return count


@inlined
def has_room(state: Int64, table: Any, length: int, strings: int) -> bool:
    """Whether so many more strings can be added, of so many bytes together."""
    count = int64s(state, table.counts)[0] + strings
    return (
        end_of(state, table) + length <= len(uint8s(state, table.data))
        and count < len(int64s(state, table.starts))
        and 2 * count <= len(int32s(state, table.slots))
    )
