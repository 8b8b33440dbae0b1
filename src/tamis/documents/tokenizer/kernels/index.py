"""Where structure is in the next bytes of a document, found 64 bytes at a time."""

from __future__ import annotations

import numpy as np

from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.bits import first, ones
from tamis.core.kernel.record import int64s
from tamis.documents.tokenizer.kernels.layout import (
    BODY,
    CARRY,
    INDEXED,
    IS_FAULTY,
    POSITION,
    SWITCH,
    TAIL,
    WORK,
    Int64,
)
from tamis.documents.tokenizer.vectors import ALL, BLOCK, ONE, ZERO, structure, utf8_faults

WINDOW = 1 << 13
"""So many bytes are checked, and then read."""
INDEX_SIZE = WINDOW + 2 * BLOCK
BEYOND = 1 << 62
"""More than any place."""
ZEROS = np.zeros(BLOCK, np.uint8)


@inlined
def register(index: Int64, count: int, block: int, mask: np.uint64) -> int:
    """Note the places of a mask, and return how many there are then.

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
    index = int64s(state, WORK.structure)
    body, tail, switch = state[BODY], state[TAIL], state[SWITCH]
    zeros = np.int64(ZEROS.ctypes.data)
    start = state[POSITION]
    block = state[INDEXED]
    stop = block + WINDOW
    carry = U(state[CARRY])
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
            state[IS_FAULTY] = 1
            break
        carry = brackets >> U(63) | high >> U(61) << ONE
        count = register(index, count, block, special)
        block += BLOCK
    index[count] = BEYOND
    state[INDEXED] = block
    state[CARRY] = np.int64(carry)


@called
def is_sound(state: Int64, place: int, end: int) -> bool:
    """Whether all before a place may be in a document; a tag may be read before that is known."""
    while state[INDEXED] < place and not state[IS_FAULTY]:
        index_window(state, end)
    return not state[IS_FAULTY] or place <= state[INDEXED]
