"""The kernel that looks at the lines before a JSON library reads them, joined."""

from __future__ import annotations

from tamis.events.model import Bytes, Int32, Int64
from tamis.jit import kernel

ODD, BLANK = -1, -2
"""Of lines that have no number of names."""

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
    """Make one array of JSON of the lines that are flat objects, as far as brackets say.

    Such a line begins with ``{`` and ends with ``}`` but for white space, its strings are closed,
    and it has no other brackets outside of them. If what all of them make is an array of JSON,
    then its items are what each of the lines is by itself: the brackets allow for no other.

    Args:
        data: lines; the last one may lack its end.
        line_max: longer lines are odd.
        names_max: those with more names are.
        starts: gets where each line starts, and behind them the end; of lines + 1.
        names: gets how many colons each has outside of strings: in an object, how many names. Or
            ODD, of those that are no flat objects, or have an integer that may be beyond int64;
            or BLANK.
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
        size_before = size
        if size > 1:
            joined[size] = _COMMA
            size += 1
        where = _BEFORE
        colons = digits = first_digit = 0
        is_odd = is_string = False
        while place < total and data[place] != _NEWLINE:
            byte = data[place]
            joined[size] = byte
            size += 1
            place += 1
            if is_string:
                if byte == _QUOTE:
                    is_string = False
                elif byte == _BACKSLASH and place < total and data[place] != _NEWLINE:
                    joined[size] = data[place]
                    size += 1
                    place += 1
                continue
            if _ZERO <= byte <= _NINE:
                if digits == 0:
                    first_digit = byte
                digits += 1
                if digits > _DIGITS_MAX or (digits == _DIGITS_MAX and first_digit == _NINE):
                    is_odd = True
            else:
                digits = 0
            if byte in (_SPACE, _TAB, _RETURN):
                continue
            if byte == _OPEN and where == _BEFORE:
                where = _INSIDE
            elif byte == _CLOSE and where == _INSIDE:
                where = _BEHIND
            elif where != _INSIDE or byte in (_OPEN, _OPEN_LIST, _CLOSE_LIST):
                is_odd = True
                where = _INSIDE  # it is not blank
            elif byte == _QUOTE:
                is_string = True
            elif byte == _COLON:
                colons += 1
        if where == _BEFORE:
            names[line] = BLANK
            size = size_before
        elif (
            is_odd
            or is_string
            or where != _BEHIND
            or place - starts[line] > line_max
            or colons > names_max
        ):
            names[line] = ODD
            size = size_before
        else:
            names[line] = colons
        line += 1
        place += 1  # behind the newline
    starts[line] = total
    joined[size] = _CLOSE_LIST
    return size + 1
