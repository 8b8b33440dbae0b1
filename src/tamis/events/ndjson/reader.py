"""Lines of JSON → plain events, by a library that reads many lines at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import orjson

from tamis.documents.batch import freeze
from tamis.errors import EventError, EventLimitError, MalformedEvent
from tamis.events.model import Int32, Int64
from tamis.events.ndjson.kernels import BLANK, ODD, join_lines
from tamis.events.values import Value, checked, duplicate
from tamis.limits import Limits

_KINDS = {list: "a list", str: "a string", bool: "a boolean", type(None): "null"}


class Lines(NamedTuple):
    """Events that were read.

    Attributes:
        events: their attributes, all plain; of those in error, none.
        lines: int64[]; the line that each is in.
        errors: by event number.
    """

    events: list[dict[str, Value]]
    lines: Int64
    errors: dict[int, EventError]


def read_lines(data: bytes, first_line: int, limits: Limits) -> Lines:
    r"""Read lines, each an object; blank ones are skipped, and the last one may lack its end.

    >>> found = read_lines(b'{"a": 1}\n\n{"a": 1, "a": 2}\n', 1, Limits())
    >>> found.events, found.lines
    ([{'a': 1}, {}], array([1, 3]))
    >>> print(found.errors[1])
    line 3: there are several attributes 'a': give each name once
    """
    count = data.count(b"\n") + (data[-1:] not in (b"", b"\n"))
    starts, names = np.empty(count + 1, np.int64), np.empty(count, np.int32)
    joined = np.empty(len(data) + 2, np.uint8)
    line_max = min(limits.event_bytes, limits.event_string_bytes)
    size = join_lines(
        np.frombuffer(data, np.uint8), line_max, limits.event_attributes, starts, names, joined
    )
    places = np.flatnonzero(names != BLANK)
    starts, ends, names = starts[places], starts[places + 1], names[places]
    events, doubtful = _read_joined(joined[:size].data, names)
    errors: dict[int, EventError] = {}
    for number in doubtful:
        line = data[starts[number] : ends[number]].removesuffix(b"\n")
        try:
            events[number] = read_line(line, int(names[number]), limits)
        except EventError as error:
            events[number] = {}
            errors[number] = type(error)(error.message, first_line + int(places[number]))
    lines = places + first_line
    freeze(lines)
    return Lines(events, lines, errors)


def _read_joined(joined: memoryview, names: Int32) -> tuple[list[dict[str, Value]], Sequence[int]]:
    """The events of lines, and the numbers of those that have to be read by themselves."""
    try:
        found = orjson.loads(joined)
    except orjson.JSONDecodeError:
        return [{}] * len(names), range(len(names))
    is_odd = names == ODD
    if is_odd.any():
        others = iter(found)
        found = [{} if odd else next(others) for odd in is_odd.tolist()]
    counts = np.fromiter(map(len, found), np.int64, len(found))
    return found, np.flatnonzero(counts != names).tolist()


def read_line(line: bytes, names: int, limits: Limits) -> dict[str, Value]:
    """One event.

    Args:
        names: how many it is known to have if it is a flat object, or ODD.

    Raises:
        MalformedEvent: it is no flat object, or has a name twice, or an oversized number.
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
    if len(found) == names:
        return found
    # Names that it has twice, and integers that it makes floats of, it does not tell.
    try:
        found = json.loads(line, object_pairs_hook=_object, parse_int=_integer)
    except RecursionError:
        raise MalformedEvent("an event is a flat object, and this has much inside it") from None
    return checked(found, limits)


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
