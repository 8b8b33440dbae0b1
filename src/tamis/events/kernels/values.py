"""Kernels that compare values, and put columns into rows.

``order_of_numbers``, ``order_of_strings``, ``satisfies`` and ``has_part`` compare values as all
engines do; see ``model``. They are plain functions of integers and arrays, which engines compile
for processors (``inlined``, ``called``) and for GPUs. Kinds and values are int64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import kernel
from tamis.events import model as at


class Events(NamedTuple):
    """A batch, as kernels have it; see ``EventBatch``."""

    event_starts: Int64
    names: Int32
    kinds: Bytes
    values: Int64
    string_starts: Int64
    string_bytes: Bytes
    is_bad: Bytes  # [n]; events in error, which nothing matches


UNORDERED = 2
"""The order of NaN and any number."""

_PLAIN_SEARCH_MAX = 32
"""Parts of at most so many bytes are compared at each offset in turn."""
_PRIME = (1 << 31) - 1
_TWO_TO_63 = 9223372036854775808.0


def order_of_numbers(kind: int, value: int, constant_kind: int, constant: int) -> int:
    """-1, 0, 1 or UNORDERED: whether a number is less than a constant, equal, or greater."""
    if kind == at.INTEGER and constant_kind == at.INTEGER:
        return -1 if value < constant else (1 if value > constant else 0)
    # A double of kind FLOAT equals no integer. If it is not whole, it is within 2**53: integers
    # there are doubles too, and those beyond are rounded to nothing less. Else it is beyond int64.
    if kind == at.FLOAT:
        left = np.int64(value).view(np.float64)
        if np.isnan(left):
            return UNORDERED
        if constant_kind == at.INTEGER:
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
    string: Bytes, start: int, end: int, constants: Bytes, constant_start: int, constant_end: int
) -> int:
    """-1, 0 or 1: whether bytes are before a constant, equal, or behind it."""
    size, constant_size = end - start, constant_end - constant_start
    for i in range(min(size, constant_size)):
        one, other = string[start + i], constants[constant_start + i]
        if one != other:
            return -1 if one < other else 1
    return -1 if size < constant_size else (1 if size > constant_size else 0)


def satisfies(operator: int, order: int) -> bool:
    """Whether a value of this order to a constant satisfies ``= != < <= > >=``."""
    if order == UNORDERED:
        return operator == at.NE
    if operator == at.EQ:
        return order == 0
    if operator == at.NE:
        return order != 0
    if operator == at.LT:
        return order < 0
    if operator == at.LE:
        return order <= 0
    if operator == at.GT:
        return order > 0
    return operator == at.GE and order >= 0


def has_part(
    operator: int, string: Bytes, start: int, end: int, parts: Bytes, part_start: int, part_end: int
) -> bool:
    """Whether bytes satisfy ``prefix``, ``suffix`` or ``contains``, in linear time.

    Rolling hashes (Karp and Rabin) find long parts; short ones are compared at each offset.
    """
    size = part_end - part_start
    first, last = start, end - size
    if operator == at.PREFIX:
        last = min(last, start)
    elif operator == at.SUFFIX:
        first = last
    if first < start:
        return False
    rolls = size > _PLAIN_SEARCH_MAX and last > first
    wanted, found, leading = 0, 0, 1
    if rolls:
        for i in range(size):
            wanted = (wanted * 257 + parts[part_start + i]) % _PRIME
            found = (found * 257 + string[first + i]) % _PRIME
            if i > 0:
                leading = leading * 257 % _PRIME
    while first <= last:
        if found == wanted:  # always, where no hash rolls
            i = 0
            while i < size and string[first + i] == parts[part_start + i]:
                i += 1
            if i == size:
                return True
        if rolls and first < last:
            found = (found + _PRIME - leading * string[first] % _PRIME) % _PRIME
            found = (found * 257 + string[first + size]) % _PRIME
        first += 1
    return False


# -- columns ---------------------------------------------------------------------------------------


@kernel
def find_ones(bitmap: Bytes, start: int, rows: Int64) -> int:
    """Write where a bitmap has ones, among the ``len(rows)`` bits from ``start`` on; how many."""
    count = 0
    total = len(rows)
    row = 0
    while row < total:
        bit = start + row
        byte = bitmap[bit >> 3] >> (bit & 7)
        size = min(8 - (bit & 7), total - row)
        if byte:  # mostly there are few
            for i in range(size):
                rows[count] = row + i
                count += (byte >> i) & 1
        row += size
    return count


@kernel
def join_columns(
    column_starts: Int64,
    rows: Int64,
    names: Int32,
    kinds: Bytes,
    bits: Int64,
    is_bad: Bytes,
    starts: Int64,
    row_names: Int32,
    row_kinds: Bytes,
    row_bits: Int64,
) -> int:
    """Put the values of columns into their rows, in the order of the columns; how many there are.

    The values of bad rows are left out. ``starts``, zeros at first, gets where each row begins and
    the end; ``row_names``, ``row_kinds`` and ``row_bits`` get the values by rows.
    """
    for i in range(len(rows)):
        if not is_bad[rows[i]]:
            starts[rows[i]] += 1
    total = 0
    for row in range(len(starts)):
        size = starts[row]
        starts[row] = total
        total += size
    for column in range(len(names)):
        for i in range(column_starts[column], column_starts[column + 1]):
            row = rows[i]
            if not is_bad[row]:
                target = starts[row]  # at last, this is where the next row begins
                starts[row] += 1
                row_names[target] = names[column]
                row_kinds[target] = kinds[i]
                row_bits[target] = bits[i]
    for row in range(len(starts) - 1, 0, -1):
        starts[row] = starts[row - 1]
    starts[0] = 0
    return total
