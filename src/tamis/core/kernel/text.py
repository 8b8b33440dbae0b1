"""Strings in kernels: bytes of UTF-8 from an index to another in an array."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Floats
from tamis.core.kernel.declare import U, called, inlined
from tamis.core.kernel.table import mixed

_EXACT = U(1 << 53)
"""Whole numbers below are exact as doubles, and so are the powers of ten below 10 ** 23."""
_POINT, _MINUS = ord("."), ord("-")


@inlined
def is_space(byte: int) -> bool:
    """Whether a byte is white space of XML."""
    return byte == 32 or 9 <= byte <= 10 or byte == 13


@inlined
def same_bytes(one: Bytes, start: int, end: int, other: Bytes, first: int, last: int) -> bool:
    """Whether two strings are equal."""
    if end - start != last - first:
        return False
    place = start
    while place < end and one[place] == other[first + place - start]:
        place += 1
    return place == end


@inlined
def hash_bytes(data: Bytes, start: int, end: int, seed: np.uint64) -> np.uint64:
    """A hash of a string.

    Args:
        seed: odd; random where strings come from somebody who must not know which collide.
    """
    hash = U(end - start)
    for place in range(start, end):
        hash = (hash ^ U(data[place])) * seed
        hash ^= hash >> U(32)
    return mixed(hash)


@called
def parse_number(values: Bytes, start: int, end: int, number: Floats) -> bool:
    """XPath's number() of a string, NaN for what is none; False for one of too many digits."""
    place, last = start, end
    while place < last and is_space(values[place]):
        place += 1
    while place < last and is_space(values[last - 1]):
        last -= 1
    is_negative = place < last and values[place] == _MINUS
    place += is_negative
    digits, places = 0, -1
    whole = U(0)
    is_exact = True
    number[0] = np.nan
    while place < last:
        byte = np.int64(values[place])
        if byte == _POINT and places < 0:
            places = 0
        elif 48 <= byte <= 57:
            is_exact = is_exact and whole < _EXACT // U(10)
            whole = whole * U(10) + U(byte - 48)
            digits += 1
            places += places >= 0
        else:
            return True
        place += 1
    if digits == 0:
        return True
    if not is_exact or places > 22:
        return False
    value = np.float64(whole)
    power = 1.0
    for _ in range(places):
        power *= 10.0
    value /= power
    number[0] = -value if is_negative else value
    return True
