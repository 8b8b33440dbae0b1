"""Kernels that compare values, put columns into rows, and join lines.

``order_of_numbers``, ``order_of_strings``, ``satisfies`` and ``has_part`` compare values as all
engines do; see ``model``. They are plain functions of integers and arrays, which engines compile
for processors (``inlined``, ``called``) and for GPUs. Kinds and values are int64.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import inlined, kernel
from tamis.events import model as at

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


# -- lines -----------------------------------------------------------------------------------------

ODD, BLANK = -1, -2
"""Instead of a number of names: lines to be read alone, and blank lines."""

DEPTH_MAX = 1_000
"""The depth of brackets in a line that is joined, at most: the JSON library reads up to 1,024."""

_NEWLINE, _TAB, _RETURN, _SPACE = 10, 9, 13, 32
_QUOTE, _BACKSLASH, _COLON, _COMMA = 34, 92, 58, 44
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = 123, 125, 91, 93
_ZERO, _NINE = 48, 57
_DIGITS_MAX = 19  # of the largest integer within int64, which begins with a 9

_BEFORE, _INSIDE, _BEHIND = 0, 1, 2  # where in a line's object


@kernel
def join_lines(
    data: Bytes, line_max: int, names_max: int, starts: Int64, names: Int32, joined: Bytes
) -> int:
    """Join the lines that are objects, as far as brackets tell, to one JSON array; its size.

    Such a line begins with ``{`` and ends with the bracket that closes it, but for white space, and
    its strings are closed. If the result is a JSON array, its items are the values of the lines.
    For JSON's strings end where this kernel ends them, so the same brackets are outside of strings;
    and the first bracket that is back at a bracket's depth closes it. So the value that begins with
    a line's ``{`` ends with the line, and the next comma is one that was put there. The kernel need
    not compare the kinds of brackets: where they differ, the result is no JSON array.

    Args:
        data: lines; the last one may lack its newline.
        starts: int64[lines + 1]; gets where each line starts, and the end.
        names: gets the colons of each line outside of strings and inner brackets: the names of an
            object. Or ODD, where the line is no object, is longer than ``line_max``, has more than
            ``names_max`` names, is nested deeper than DEPTH_MAX, or has an integer at depth 1 that
            may be beyond int64; or BLANK.
        joined: gets the array; it has two bytes more than the data.
    """
    total = len(data)
    offset = line = 0
    joined[0] = _OPEN_LIST
    size = 1
    while offset < total:
        starts[line] = offset
        begin = size
        if size > 1:
            joined[size] = _COMMA
            begin += 1
        end, found, depth_max = _copy_line(data, offset, joined, begin - offset)
        if found >= 0:
            if end - offset > line_max or found > names_max or depth_max > DEPTH_MAX:
                found = ODD
            else:
                size = begin + end - offset
        names[line] = found
        line += 1
        offset = end + 1  # behind the newline
    starts[line] = total
    joined[size] = _CLOSE_LIST
    return size + 1


@inlined
def _copy_line(data: Bytes, offset: int, joined: Bytes, shift: int) -> tuple[int, int, int]:
    """Copy a line, each byte to its offset + shift.

    Returns where the line ends; its names, or ODD or BLANK; and the depth of its brackets.
    """
    total = len(data)
    where = _BEFORE
    colons = digits = first_digit = depth = depth_max = 0
    is_odd = False
    while offset < total and data[offset] != _NEWLINE:
        byte = data[offset]
        joined[offset + shift] = byte
        offset += 1
        if _ZERO <= byte <= _NINE:
            if digits == 0:
                first_digit = byte
            digits += 1
            if digits > _DIGITS_MAX or (digits == _DIGITS_MAX and first_digit == _NINE):
                is_odd |= depth == 1
        else:
            digits = 0
        if byte in (_SPACE, _TAB, _RETURN):
            continue
        if byte == _OPEN and where == _BEFORE:
            where = _INSIDE
            depth = depth_max = 1
        elif where != _INSIDE:
            is_odd = True
            where = _INSIDE  # it is not blank
        elif byte == _QUOTE:
            offset, is_closed = _copy_string(data, offset, joined, shift)
            is_odd |= not is_closed
        elif byte == _COLON:
            colons += depth == 1
        elif byte in (_OPEN, _OPEN_LIST):
            depth += 1
            depth_max = max(depth_max, depth)
        elif byte in (_CLOSE, _CLOSE_LIST):
            depth -= 1
            if depth == 0:
                where = _BEHIND
    if where == _BEFORE:
        return offset, BLANK, 0
    return offset, ODD if is_odd or where != _BEHIND else colons, depth_max


@inlined
def _copy_string(data: Bytes, offset: int, joined: Bytes, shift: int) -> tuple[int, bool]:
    """Copy a string from behind its quote; where it or the line ends, and whether it is closed."""
    total = len(data)
    while offset < total and data[offset] != _NEWLINE:
        byte = data[offset]
        joined[offset + shift] = byte
        offset += 1
        if byte == _QUOTE:
            return offset, True
        if byte == _BACKSLASH and offset < total and data[offset] != _NEWLINE:
            joined[offset + shift] = data[offset]
            offset += 1
    return offset, False
