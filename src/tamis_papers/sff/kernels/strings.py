"""Strings compared from their beginnings, or from their ends."""

from __future__ import annotations

from tamis.core.arrays import Bytes
from tamis.core.kernel import inlined


@inlined
def in_common(
    backwards: int, one: Bytes, start: int, end: int, other: Bytes, other_start: int, other_end: int
) -> int:
    """How many bytes two strings begin (or end) with alike."""
    size = min(end - start, other_end - other_start)
    alike = 0
    if backwards:
        while alike < size and one[end - 1 - alike] == other[other_end - 1 - alike]:
            alike += 1
    else:
        while alike < size and one[start + alike] == other[other_start + alike]:
            alike += 1
    return alike


@inlined
def is_behind(
    backwards: int,
    alike: int,
    one: Bytes,
    start: int,
    end: int,
    other: Bytes,
    other_start: int,
    other_end: int,
) -> bool:
    """Whether one string comes behind another one, with which it has so many bytes in common."""
    if start + alike == end:
        return False
    if other_start + alike == other_end:
        return True
    if backwards:
        return one[end - 1 - alike] > other[other_end - 1 - alike]
    return one[start + alike] > other[other_start + alike]
