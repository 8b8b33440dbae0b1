"""Finds names and scopes that were met before, and asks for those that were not."""

from __future__ import annotations

import numpy as np

from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.record import int64s, uint8s
from tamis.documents.tokenizer.kernels.layout import (
    ASKED_AT,
    ASKED_KIND,
    ASKED_LENGTH,
    ASKED_SCOPE,
    ASKED_SLOT,
    KEY,
    MULTIPLIER,
    NAME_COLUMNS,
    NAMES,
    NECK,
    NEW_SCOPE,
    PARENT,
    SCOPE,
    SCOPE_COLUMNS,
    SLOT_BITS,
    SPELLED_FROM,
    SPELLED_TO,
    Int64,
    Words,
    at,
)
from tamis.documents.tokenizer.vectors import ALL, ONE, ZERO, word

GOLDEN = U(0x9E3779B97F4A7C15)
# By the length of a name, up to 16: which of its first 8 bytes, and of the next 8, there are.
HEAD_MASKS = np.array([(1 << 8 * min(n, 8)) - 1 for n in range(17)], np.uint64)
NECK_MASKS = np.array([(1 << 8 * max(n - 8, 0)) - 1 for n in range(17)], np.uint64)


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

    Args:
        address: of the name, good for 16 bytes.
        place: of the name.
    """
    key = U(length) | U(kind) << U(24) | U(scope) << U(32)
    head = word(address) & HEAD_MASKS[U(min(length, 16))]
    neck = word(address + 8) & NECK_MASKS[U(min(length, 16))]
    mixed = head * multiplier ^ (neck + key) * (multiplier * GOLDEN)
    if length > 16:
        mixed ^= hash_of_rest(state, place + 16, length - 16)
    last_slot = U((1 << SLOT_BITS) - 1)
    slot = mixed >> U(64 - SLOT_BITS)  # which every bit of a name has a part in
    while True:
        row = slot * U(NAME_COLUMNS)
        is_like = table[row + U(KEY)] == key and table[row] == head and table[row + U(NECK)] == neck
        if is_like and (length <= 16 or is_spelled(state, place, np.int64(slot), length)):
            return np.int64(slot)
        if table[row + U(KEY)] == ZERO:
            return ~np.int64(slot)
        slot = (slot + ONE) & last_slot


@called
def hash_of_rest(state: Int64, place: int, length: int) -> np.uint64:
    """A hash of bytes, all of them."""
    multiplier = U(state[MULTIPLIER])
    mixed = ZERO
    for done in range(0, length, 8):
        part = low_bytes(word(at(state, place + done)), min(8, length - done))
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
        difference = word(at(state, place + done)) ^ word(address + done)
        if low_bytes(difference, min(8, length - done)) != ZERO:
            return False
        done += 8
    return True


@called
def is_spelled(state: Int64, place: int, slot: int, length: int) -> bool:
    """Whether a name of more than 16 bytes is at a place."""
    start = int64s(state, NAMES.offsets)[slot]
    return same_bytes(state, place, state[NAMES.spelled] + start, length)


@called
def find_scope(state: Int64, used: int, scope: int) -> int:
    """The scope that declarations make inside of a scope, or the negative of ``NEW_SCOPE``."""
    declarations = uint8s(state, NAMES.declarations)
    spelled = uint8s(state, NAMES.spelled)
    scopes = int64s(state, NAMES.scopes)
    multiplier = U(state[MULTIPLIER])
    mixed = U(scope) * multiplier
    for i in range(used):
        mixed = (mixed ^ mixed >> U(32) ^ U(declarations[i])) * multiplier
    size = len(scopes) // SCOPE_COLUMNS
    slot = np.int64((mixed ^ mixed >> U(32)) & U(size - 1))
    while True:
        row = slot * SCOPE_COLUMNS
        if scopes[row + SCOPE] == 0:
            return ask(state, NEW_SCOPE, 0, used, 0, slot, scope)
        start = scopes[row + SPELLED_FROM]
        if scopes[row + PARENT] == scope and scopes[row + SPELLED_TO] - start == used:
            same = 0
            while same < used and spelled[start + same] == declarations[same]:
                same += 1
            if same == used:
                return scopes[row + SCOPE]
        slot = (slot + 1) & (size - 1)


@inlined
def ask(
    state: Int64, status: int, place: int, length: int, kind: int, slot: int, scope: int
) -> int:
    """Leave a question to the caller."""
    state[ASKED_AT] = place
    state[ASKED_SCOPE] = scope
    state[ASKED_LENGTH] = length
    state[ASKED_KIND] = kind
    state[ASKED_SLOT] = slot
    return -status
