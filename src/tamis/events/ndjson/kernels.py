"""The kernel that looks at the lines before a JSON library reads them, joined."""

from __future__ import annotations

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import inlined, kernel

ODD, BLANK = -1, -2
"""Of lines that have no number of names."""

DEPTH_MAX = 1_000
"""So deep may brackets be in a line that is joined: the library reads up to 1,024."""

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
    """Make one array of JSON of the lines that are objects, as far as brackets say.

    Such a line begins with ``{`` and ends with the bracket that closes it, but for white space, and
    its strings are closed. If what all of them make is an array of JSON, then its items are what
    each of the lines is by itself. For in JSON, strings end where they are taken to end here, so
    the same brackets are outside of them; and a bracket is closed by the first one that is back at
    its depth. So the value that begins with a line's ``{`` ends with the line, and between two of
    them is the comma that was put there. That brackets that belong together are of the same kind
    need not be seen to: if they are not, there is no array of JSON.

    Args:
        data: lines; the last one may lack its end.
        line_max: longer lines are odd.
        names_max: those with more names are.
        starts: gets where each line starts, and behind them the end; of lines + 1.
        names: gets how many colons each has outside of strings and inner brackets: in an object,
            how many names. Or ODD, of those that are no objects, are nested deeper than
            DEPTH_MAX, or have an integer of their own that may be beyond int64; or BLANK.
        joined: gets the array; two larger than the data.

    Returns:
        The array's size.
    """
    total = len(data)
    place = line = 0
    joined[0] = _OPEN_LIST
    size = 1
    while place < total:
        starts[line] = place
        begin = size
        if size > 1:
            joined[size] = _COMMA
            begin += 1
        end, found, depth_max = _copy_line(data, place, joined, begin - place)
        if found >= 0:
            if end - place > line_max or found > names_max or depth_max > DEPTH_MAX:
                found = ODD
            else:
                size = begin + end - place
        names[line] = found
        line += 1
        place = end + 1  # behind the newline
    starts[line] = total
    joined[size] = _CLOSE_LIST
    return size + 1


@inlined
def _copy_line(data: Bytes, place: int, joined: Bytes, shift: int) -> tuple[int, int, int]:
    """Copy a line, each byte to its place + shift.

    Returns:
        Where it ends; how many names it has, or ODD or BLANK; and how deep its brackets are.
    """
    total = len(data)
    where = _BEFORE
    colons = digits = first_digit = depth = depth_max = 0
    is_odd = False
    while place < total and data[place] != _NEWLINE:
        byte = data[place]
        joined[place + shift] = byte
        place += 1
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
            place, is_closed = _copy_string(data, place, joined, shift)
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
        return place, BLANK, 0
    return place, ODD if is_odd or where != _BEHIND else colons, depth_max


@inlined
def _copy_string(data: Bytes, place: int, joined: Bytes, shift: int) -> tuple[int, bool]:
    """Copy a string from behind its quote; gives where it or the line ends, and if it is closed."""
    total = len(data)
    while place < total and data[place] != _NEWLINE:
        byte = data[place]
        joined[place + shift] = byte
        place += 1
        if byte == _QUOTE:
            return place, True
        if byte == _BACKSLASH and place < total and data[place] != _NEWLINE:
            joined[place + shift] = data[place]
            place += 1
    return place, False
