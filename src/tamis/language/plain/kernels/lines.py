"""Lines of files of subscriptions, and their ids."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import called, inlined, kernel
from tamis.core.kernel.table import slot_finder
from tamis.core.kernel.text import hash_bytes, same_bytes
from tamis.language.plain.kernels.text import LINE_FEED, RETURN, SPACE, TAB, is_text
from tamis.language.plain.layout import NUMBERED, ODD

_MARK = 0xFF


@kernel
def find_lines(data: Bytes, lines: Int64, starts: Int64, tabs: Int64, ends: Int64) -> int:
    """Find the lines that hold something: their numbers, from 1, and where they are.

    There must be room for all lines. A tab is where the first one is, or ``NUMBERED``, or ``ODD``.
    """
    found = line = position = 0
    while position < len(data):
        line += 1
        end, tab = position, NUMBERED
        while end < len(data) and data[end] != LINE_FEED:
            if tab < 0 and data[end] == TAB:
                tab = end
            end += 1
        following = end + 1
        if end > position and data[end - 1] == RETURN:
            end -= 1
        if not is_blank(data, position, end) and data[position] != ord("#"):
            is_spaced = tab < 0 and data[position] != ord("/")  # perhaps for a tab that is missing
            lines[found] = line
            starts[found] = position
            tabs[found] = ODD if is_spaced or not is_text(data, position, end) else tab
            ends[found] = end
            found += 1
        position = following
    return found


@called
def is_blank(data: Bytes, start: int, end: int) -> bool:
    """Whether there is but white space."""
    position = start
    while position < end and data[position] in (SPACE, TAB, RETURN):
        position += 1
    return position == end


@kernel
def write_ids(
    data: Bytes, lines: Int64, starts: Int64, tabs: Int64, ids: Bytes, id_ends: Int64
) -> None:
    """Write the ids of lines one behind the other: what is before the tab, or the line's number."""
    to = 0
    for i in range(len(lines)):
        if tabs[i] >= 0:
            for position in range(starts[i], tabs[i]):
                ids[to] = data[position]
                to += 1
        else:
            digits, rest = 0, lines[i]
            while rest > 0:
                digits += 1
                rest //= 10
            rest = lines[i]
            for place in range(to + digits - 1, to - 1, -1):
                ids[place] = ord("0") + rest % 10
                rest //= 10
            to += digits
        id_ends[i] = to


@inlined
def _is_id(ids: tuple[Bytes, Int64, Int64], number: int, searched: int) -> bool:
    data, starts, ends = ids
    return same_bytes(data, starts[number], ends[number], data, starts[searched], ends[searched])


find_id = slot_finder(_is_id)


@kernel
def check_ids(
    data: Bytes,
    starts: Int64,
    ends: Int64,
    multiplier: np.uint64,
    slots: Int32,
    first: Int32,
    is_odd: Bytes,
) -> None:
    """Find the first id that equals each, if one stands before it, and ids that may be no good.

    Args:
        slots: a hash table, all 0, with more slots than ids, and a power of two of them.
        first: gets -1 where an id is the first of its kind.
        is_odd: gets 1 where an id is empty, or not of ASCII's printable characters alone.
    """
    for i in range(len(starts)):
        hash = hash_bytes(data, starts[i], ends[i], multiplier)
        slot = find_id(slots, hash, (data, starts, ends), i)
        first[i] = np.int64(slots[slot]) - 1
        if first[i] < 0:
            slots[slot] = i + 1
        is_odd[i] = not is_plain_id(data, starts[i], ends[i])


@called
def is_plain_id(data: Bytes, start: int, end: int) -> bool:
    """Whether an id is a number, or some of ASCII's printable characters."""
    if start < end and data[start] == _MARK:
        return True
    position = start
    while position < end and SPACE <= data[position] < 0x7F:
        position += 1
    return start < position == end
