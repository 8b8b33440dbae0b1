"""Values compared, as all engines compare them; see ``model``.

Plain functions of integers and arrays, which engines compile for processors (``jit.inlined``,
``jit.called``) and for GPUs. Kinds and values are int64.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes
from tamis.events.model import EQ, FLOAT, GE, GT, INTEGER, LE, LT, NE, PREFIX, SUFFIX

UNORDERED = 2
"""What comes of NaN."""

_PLAIN_SEARCH_MAX = 32
"""Parts of so many bytes are looked for at each place in turn."""
_PRIME = (1 << 31) - 1
_TWO_TO_63 = 9223372036854775808.0


def order_of_numbers(kind: int, value: int, constant_kind: int, constant: int) -> int:
    """-1, 0, 1 or UNORDERED: whether a number is less than a constant, equal, or greater."""
    if kind == INTEGER and constant_kind == INTEGER:
        return -1 if value < constant else (1 if value > constant else 0)
    # A double of kind FLOAT is equal to no integer: it is not whole, and then within 2**53, where
    # integers are doubles too and those beyond are rounded to what is not less; or beyond int64.
    if kind == FLOAT:
        left = np.int64(value).view(np.float64)
        if np.isnan(left):
            return UNORDERED
        if constant_kind == INTEGER:
            if left >= _TWO_TO_63:  # 2**63 - 1 is rounded to it
                return 1
            return -1 if left < np.float64(constant) else 1
        right = np.int64(constant).view(np.float64)
        return -1 if left < right else (1 if left > right else 0)
    right = np.int64(constant).view(np.float64)
    if right >= _TWO_TO_63:
        return -1
    return -1 if np.float64(value) < right else 1


def order_of_strings(
    string: Bytes,
    start: int,
    end: int,
    constant_bytes: Bytes,
    constant_start: int,
    constant_end: int,
) -> int:
    """-1, 0 or 1: whether bytes are before a constant, equal, or behind it."""
    size, constant_size = end - start, constant_end - constant_start
    for place in range(min(size, constant_size)):
        one, other = string[start + place], constant_bytes[constant_start + place]
        if one != other:
            return -1 if one < other else 1
    return -1 if size < constant_size else (1 if size > constant_size else 0)


def is_so(operator: int, order: int) -> bool:
    """Whether ``= != < <= > >=`` is true of what is so ordered."""
    if order == UNORDERED:
        return operator == NE
    if operator == EQ:
        return order == 0
    if operator == NE:
        return order != 0
    if operator == LT:
        return order < 0
    if operator == LE:
        return order <= 0
    if operator == GT:
        return order > 0
    return operator == GE and order >= 0


def has_part(
    operator: int,
    string: Bytes,
    start: int,
    end: int,
    part_bytes: Bytes,
    part_start: int,
    part_end: int,
) -> bool:
    """Whether ``prefix``, ``suffix`` or ``contains`` is true of bytes, in linear time.

    Long parts are looked for by hashes that roll (Karp and Rabin), short ones at each place.
    """
    size = part_end - part_start
    first, last = start, end - size
    if operator == PREFIX:
        last = min(last, start)
    elif operator == SUFFIX:
        first = last
    if first < start:
        return False
    rolls = size > _PLAIN_SEARCH_MAX and last > first
    wanted, found, leading = 0, 0, 1
    if rolls:
        for place in range(size):
            wanted = (wanted * 257 + part_bytes[part_start + place]) % _PRIME
            found = (found * 257 + string[first + place]) % _PRIME
            if place > 0:
                leading = leading * 257 % _PRIME
    while first <= last:
        if found == wanted:  # as they always are where none rolls
            place = 0
            while place < size and string[first + place] == part_bytes[part_start + place]:
                place += 1
            if place == size:
                return True
        if rolls and first < last:
            found = (found + _PRIME - leading * string[first] % _PRIME) % _PRIME
            found = (found * 257 + string[first + size]) % _PRIME
        first += 1
    return False
