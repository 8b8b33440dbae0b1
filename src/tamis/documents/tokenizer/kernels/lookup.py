"""Finds what a document has: structure by blocks of 64 bytes, bytes, lines, names, scopes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tamis.core.arrays import Bytes, Int64
from tamis.core.kernel import U, called, inlined, kernel, text
from tamis.core.kernel.bits import first, last, ones
from tamis.core.kernel.record import int64s, uint8s
from tamis.core.kernel.table import GOLDEN, prober
from tamis.documents.tokenizer.kernels import layout as at
from tamis.documents.tokenizer.kernels.layout import Words
from tamis.documents.tokenizer.vectors import (
    ALL,
    BLOCK,
    ONE,
    ZERO,
    byte,
    line_ends,
    structure,
    utf8_faults,
    word,
)

WINDOW = 1 << 13  # so many bytes are checked, and then read
INDEX_SIZE = WINDOW + 2 * BLOCK
BEYOND = 1 << 62  # more than any place
ZEROS = np.zeros(BLOCK, np.uint8)
# By the length of a name, up to 16: which of its first 8 bytes, and of the next 8, there are.
HEAD_MASKS = np.array([(1 << 8 * min(n, 8)) - 1 for n in range(17)], np.uint64)
NECK_MASKS = np.array([(1 << 8 * max(n - 8, 0)) - 1 for n in range(17)], np.uint64)


@inlined
def _is_name(known: Any, slot: np.uint64, name: Any) -> bool:
    """Whether a slot is empty or has a name."""
    (table, state), (key, head, neck, place, length) = known, name
    row = slot * U(at.NAME_COLUMNS)
    if table[row + U(at.KEY)] == key and table[row] == head and table[row + U(at.NECK)] == neck:
        return length <= 16 or is_spelled(state, place, np.int64(slot), length)
    return table[row + U(at.KEY)] == ZERO


_find_name = prober(_is_name)


@inlined
def find_name(
    state: Int64,
    table: Words,
    multiplier: np.uint64,
    address: int,
    place: int,
    length: int,
    kind: int,
    scope: int,
) -> int:
    """The slot of a name; if it is not known, ``~slot`` of where to put it.

    The address of the name has to be good for 16 bytes.
    """
    key = U(length) | U(kind) << U(24) | U(scope) << U(32)
    head = word(address) & HEAD_MASKS[U(min(length, 16))]
    neck = word(address + 8) & NECK_MASKS[U(min(length, 16))]
    mixed = head * multiplier ^ (neck + key) * (multiplier * GOLDEN)
    if length > 16:
        mixed ^= hash_of_rest(state, place + 16, length - 16)
    hash = mixed >> U(64 - at.SLOT_BITS)  # which every bit of a name has a part in
    slot = _find_name(1 << at.SLOT_BITS, hash, (table, state), (key, head, neck, place, length))
    is_new = table[slot * U(at.NAME_COLUMNS) + U(at.KEY)] == ZERO
    return ~np.int64(slot) if is_new else np.int64(slot)


@called
def hash_of_rest(state: Int64, place: int, length: int) -> np.uint64:
    """A hash of bytes, all of them."""
    multiplier = U(state[at.MULTIPLIER])
    mixed = ZERO
    for done in range(0, length, 8):
        part = low_bytes(word(at.address(state, place + done)), min(8, length - done))
        mixed = (mixed ^ mixed >> U(32) ^ part) * multiplier
    return mixed


@inlined
def low_bytes(value: np.uint64, count: int) -> np.uint64:
    """The first ``count`` of 8 bytes, from 0 to 8; 0 for the others."""
    return value & (ALL >> U(64 - 8 * count) if count > 0 else ZERO)


@called
def same_bytes(state: Int64, place: int, address: int, length: int) -> bool:
    """Whether bytes of a document equal those at an address, which have 8 more behind them."""
    done = 0
    while done < length:
        difference = word(at.address(state, place + done)) ^ word(address + done)
        if low_bytes(difference, min(8, length - done)) != ZERO:
            return False
        done += 8
    return True


@called
def is_spelled(state: Int64, place: int, slot: int, length: int) -> bool:
    """Whether a name of more than 16 bytes is at a place."""
    start = int64s(state, at.NAMES.offsets)[slot]
    return same_bytes(state, place, state[at.NAMES.spelled] + start, length)


@inlined
def _is_scope(
    known: tuple[Int64, Bytes], slot: np.uint64, searched: tuple[int, Bytes, int]
) -> bool:
    """Whether a slot is empty or has the scope of some declarations inside of another scope."""
    (scopes, spelled), (parent, declarations, used) = known, searched
    row = np.int64(slot) * at.SCOPE_COLUMNS
    if scopes[row + at.SCOPE] == 0:
        return True
    start, end = scopes[row + at.SPELLED_FROM], scopes[row + at.SPELLED_TO]
    return scopes[row + at.PARENT] == parent and text.same_bytes(
        spelled, start, end, declarations, 0, used
    )


_find_scope = prober(_is_scope)


@called
def find_scope(state: Int64, used: int, scope: int) -> int:
    """The scope that declarations make inside of a scope, or the negative of ``NEW_SCOPE``."""
    declarations = uint8s(state, at.NAMES.declarations)
    spelled = uint8s(state, at.NAMES.spelled)
    scopes = int64s(state, at.NAMES.scopes)
    multiplier = U(state[at.MULTIPLIER])
    mixed = U(scope) * multiplier
    for i in range(used):
        mixed = (mixed ^ mixed >> U(32) ^ U(declarations[i])) * multiplier
    size = len(scopes) // at.SCOPE_COLUMNS
    searched = (scope, declarations, used)
    slot = np.int64(_find_scope(size, mixed ^ mixed >> U(32), (scopes, spelled), searched))
    found = scopes[slot * at.SCOPE_COLUMNS + at.SCOPE]
    return found if found != 0 else ask(state, at.NEW_SCOPE, 0, used, 0, slot, scope)


@inlined
def ask(
    state: Int64, status: int, place: int, length: int, kind: int, slot: int, scope: int
) -> int:
    """Leave a question to the caller."""
    state[at.ASKED_AT] = place
    state[at.ASKED_SCOPE] = scope
    state[at.ASKED_LENGTH] = length
    state[at.ASKED_KIND] = kind
    state[at.ASKED_SLOT] = slot
    return -status


@inlined
def record_places(index: Int64, count: int, block: int, mask: np.uint64) -> int:
    """Record the places of a mask, and return how many there are then.

    Four at a time, some of them in vain: how many there are is what a processor cannot guess.
    """
    after = count + ones(mask)
    while True:
        for i in range(4):
            index[U(count + i)] = block + first(mask)
            mask &= mask - ONE
        if mask == ZERO:
            return after
        count += 4


@called
def index_window(state: Int64, end: int) -> None:
    """Check the next blocks of a document, and note the places where its structure is.

    These are ``<``, ``&``, the second of two ``]``, and the end of the document. Behind the last is
    ``BEYOND``. What may not be in a document ends the window, and is noted.
    """
    index = int64s(state, at.WORK.structure)
    body, tail, switch = state[at.BODY], state[at.TAIL], state[at.SWITCH]
    zeros = np.int64(ZEROS.ctypes.data)
    start = state[at.POSITION]
    block = state[at.INDEXED]
    stop = block + WINDOW
    carry = U(state[at.CARRY])
    count = 0
    while block < stop and block <= end:
        address = (body if block < switch else tail) + block
        special, brackets, controls, high = structure(address)
        special |= brackets & (brackets << ONE | carry & ONE)
        valid = ALL
        if end - block < BLOCK:
            valid = (ONE << U(end - block)) - ONE
            special = special & valid | ONE << U(end - block)
            high &= valid
            controls &= valid
        if high | carry >> ONE:
            before = block - BLOCK
            before_address = (body if before < switch else tail) + before
            if block == start:
                before_address = zeros
            controls |= utf8_faults(address, before_address) & valid
        if controls:
            state[at.IS_FAULTY] = 1
            break
        carry = brackets >> U(63) | high >> U(61) << ONE
        count = record_places(index, count, block, special)
        block += BLOCK
    index[count] = BEYOND
    state[at.INDEXED] = block
    state[at.CARRY] = np.int64(carry)


@called
def is_sound(state: Int64, place: int, end: int) -> bool:
    """Whether all before a place may be in a document; a tag may be read before that is known."""
    while state[at.INDEXED] < place and not state[at.IS_FAULTY]:
        index_window(state, end)
    return not state[at.IS_FAULTY] or place <= state[at.INDEXED]


@inlined
def search(state: Int64, place: int, mask_of: Callable[..., np.uint64], *which: int) -> int:
    """The first place from here on that is in a mask of its block.

    ``mask_of`` is ``found``, ``name_ends`` or ``value_ends``, which all have NUL in their masks.
    """
    while True:
        mask = mask_of(at.address(state, place), *which)
        if mask:
            return place + first(mask)
        place += BLOCK


@inlined
def skip_space(state: Int64, place: int) -> int:
    """The first place from here on that is not whitespace."""
    while True:
        character = byte(at.address(state, place))
        if character > at.SPACE or not at.is_space(character):
            return place
        place += 1


@kernel
def pass_over(data: Bytes, start: int, end: int, place: Int64) -> None:
    """Count lines and columns on from a place, over bytes with ``PADDING`` behind them.

    ``place`` is int64[3]: line, column, and whether the last byte was a carriage return, so that a
    newline begins no further line.
    """
    address = np.int64(data.ctypes.data)
    line, column, carry = place[0], place[1], U(place[2])
    for block in range(start, end, BLOCK):
        size = min(BLOCK, end - block)
        valid = ALL >> U(BLOCK - size)
        newlines, carriage_returns, tails = line_ends(address + block)
        newlines &= valid
        carriage_returns &= valid
        characters = ~tails & valid
        line += ones(carriage_returns | newlines & ~(carriage_returns << ONE | carry))
        ends = newlines | carriage_returns
        if ends:
            column = 1 + ones(characters >> U(last(ends)) >> ONE)
        else:
            column += ones(characters)
        carry = carriage_returns >> U(size - 1)
    place[0], place[1], place[2] = line, column, np.int64(carry)
