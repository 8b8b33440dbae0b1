"""Lines of JSON → events, by a library that reads many lines at once."""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import orjson

from tamis.core.arrays import Int32, Int64, freeze
from tamis.core.errors import EventError, EventLimitError, MalformedEvent
from tamis.core.lazy import lazy_pattern
from tamis.core.limits import Limits
from tamis.events.ndjson.kernels import BLANK, ODD, join_lines
from tamis.events.values import checked, duplicate

_KINDS = {list: "a list", str: "a string", bool: "a boolean", type(None): "null"}

_STRING_OR_BRACKET = lazy_pattern(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[][{}]')


class Lines(NamedTuple):
    """Events that were read.

    Attributes:
        events: their attributes; of those in error, none. What was asked for is plain, but for
            lists and dicts, which nobody looked for yet. What else there is may be left out.
        lines: int64[]; the line that each is in.
        errors: by event number.
    """

    events: list[dict[str, Any]]
    lines: Int64
    errors: dict[int, EventError]


def read_lines(data: bytes, first_line: int, names: Container[str], limits: Limits) -> Lines:
    r"""Read lines, each an object; blank ones are skipped, and the last one may lack its end.

    Args:
        names: the attributes that are asked for. Others may have any value.

    >>> data = b'{"a": 1, "b": [{}]}\n\n{"b": 1, "b": 2}\n{"a": [1]}'
    >>> found = read_lines(data, 1, ["a"], Limits())
    >>> found.events, found.lines
    ([{'a': 1, 'b': [{}]}, {}, {'a': [1]}], array([1, 3, 4]))
    >>> print(found.errors[1])
    line 3: there are several attributes 'b': give each name once
    """
    total = data.count(b"\n") + (data[-1:] not in (b"", b"\n"))
    starts, counts = np.empty(total + 1, np.int64), np.empty(total, np.int32)
    joined = np.empty(len(data) + 2, np.uint8)
    line_max = min(limits.event_bytes, limits.event_string_bytes)
    size = join_lines(
        np.frombuffer(data, np.uint8), line_max, limits.event_attributes, starts, counts, joined
    )
    places = np.flatnonzero(counts != BLANK)
    starts, ends, counts = starts[places], starts[places + 1], counts[places]
    events, doubtful = _read_joined(joined[:size].data, counts)
    errors: dict[int, EventError] = {}
    for number in doubtful:
        line = data[starts[number] : ends[number]].removesuffix(b"\n")
        try:
            events[number] = read_line(line, int(counts[number]), names, limits)
        except EventError as error:
            events[number] = {}
            errors[number] = type(error)(error.message, first_line + int(places[number]))
    lines = places + first_line
    freeze(lines)
    return Lines(events, lines, errors)


def _read_joined(joined: memoryview, counts: Int32) -> tuple[list[dict[str, Any]], Sequence[int]]:
    """The events of lines, and the numbers of those that have to be read by themselves."""
    try:
        found = orjson.loads(joined)
    except orjson.JSONDecodeError:
        return [{}] * len(counts), range(len(counts))
    is_odd = counts == ODD
    if is_odd.any():
        others = iter(found)
        found = [{} if odd else next(others) for odd in is_odd.tolist()]
    sizes = np.fromiter(map(len, found), np.int64, len(found))
    return found, np.flatnonzero(sizes != counts).tolist()


def read_line(line: bytes, count: int, names: Container[str], limits: Limits) -> dict[str, Any]:
    """One event, as it is in ``Lines``.

    Args:
        count: how many names it is known to have if it is an object; or ODD.
        names: the attributes that are asked for.

    Raises:
        MalformedEvent: it is no object, has a name twice, or what is asked for is not plain.
        EventLimitError: it is beyond a limit.
    """
    if len(line) > limits.event_bytes:
        raise too_long(limits)
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _malformed(line, error) from None
    if not isinstance(found, dict):
        kind = _KINDS.get(type(found), "a number")
        raise MalformedEvent(f"an event is an object of names and values, and this is {kind}")
    if len(found) == count:
        return found
    # Names that it has twice, and integers that it makes floats of, it does not tell.
    found = json.loads(_emptied(line), object_pairs_hook=_object, parse_int=_integer)
    return checked(found, names, limits)


def _emptied(line: bytes) -> bytes:
    """An object of JSON without what is in its lists and objects, however deep that is.

    >>> _emptied(b'{"a": [1, {"b": 2}], "c": {"}": 1}, "d": "[1]"}')
    b'{"a": [], "c": {}, "d": "[1]"}'
    """
    pieces = []
    depth = copied = 0
    for found in _STRING_OR_BRACKET.finditer(line):
        bracket = found[0]
        if bracket in (b"{", b"["):
            depth += 1
            if depth == 2:
                pieces.append(line[copied : found.end()])
        elif bracket in (b"}", b"]"):
            if depth == 2:
                copied = found.start()
            depth -= 1
    return b"".join([*pieces, line[copied:]])


def _malformed(line: bytes, error: orjson.JSONDecodeError) -> MalformedEvent:
    try:
        line.decode()
    except UnicodeDecodeError as not_text:
        return MalformedEvent(f"not UTF-8, at byte {not_text.start + 1}")
    return MalformedEvent(f"not JSON: {error.msg}, at character {error.pos + 1}")


def too_long(limits: Limits, line: int | None = None) -> EventLimitError:
    """The error of a line that is longer than is allowed."""
    return EventLimitError(f"longer than the limit event_bytes = {limits.event_bytes:,}", line)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        _raise_duplicate(pairs)
    return found


def _raise_duplicate(pairs: list[tuple[str, Any]]) -> NoReturn:
    seen = set()
    for name, _ in pairs:
        if name in seen:
            raise duplicate(name)
        seen.add(name)
    raise AssertionError("no name is there twice")


def _integer(digits: str) -> int:
    """An integer, or, of one with very many digits, another one that is beyond 64 bits too."""
    return int(digits[:40])
