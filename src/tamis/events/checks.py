"""What an event may be: checks of names and values, and the errors of those that are refused."""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping, Sequence, Set
from datetime import date, time, timedelta
from enum import Enum
from numbers import Number
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from tamis.core.errors import EventError, EventLimitError, MalformedEvent
from tamis.core.limits import Limits
from tamis.events.model import INT64_MAX, INT64_MIN
from tamis.language.attributes import MARKS, plain_name, print_name

log = logging.getLogger("tamis")

Value = str | int | float | bool | None
"""A value of these very types is *plain*: integers within int64, strings that UTF-8 can hold."""

_ADVICE: list[tuple[tuple[type, ...], str]] = [
    ((bytes, bytearray, memoryview), "decode it to a str"),
    ((date, time, timedelta, np.datetime64, np.timedelta64), "make it a number or a str"),
    ((Number,), "make it an int, a float or a str"),
    ((Mapping,), "write {name}.field for what is in it"),
    ((Sequence,), "write {name}[] for some element of it"),
    ((Set, np.ndarray), "make it a list, and write {name}[] for some element of it"),
]


class Part(NamedTuple):
    """Events of a source that were read together, or the error of one that cannot be read.

    Attributes:
        data: of lines, whole ones as bytes, each with its newline, which the last one of all may
            lack; of rows, a record batch of pyarrow's; of other events, a list of these.
        line: the number of the first line or row, from 1.
        error: why that one cannot be read; then there is no data.
    """

    data: Any
    line: int
    error: EventError | None = None


def checked(event: object, names: Container[str], limits: Limits) -> dict[str, Any]:
    """A copy of an event, whose values of these names are plain.

    NumPy's scalars, instances of subclasses of the plain types, enumerations and UUIDs become
    plain. Other names may have any value. Raises an ``EventError`` for what is no event, or is
    beyond a limit.

    >>> checked({"a": np.int64(7), "b": "x", "c": [1]}, ["a", "b"], Limits())
    {'a': 7, 'b': 'x', 'c': [1]}
    """
    attributes = event if type(event) is dict else _attributes(event)
    if len(attributes) > limits.event_attributes:
        raise too_many(len(attributes), limits)
    string_max = limits.event_string_bytes
    plain: dict[str, Any] = {}
    for key, value in attributes.items():
        name = _name(key)
        plain[name] = _plain(name, value, string_max) if name in names else value
    return plain


def _attributes(event: object) -> dict[Any, Any]:
    if not isinstance(event, Mapping):
        raise MalformedEvent(
            f"an event is a mapping of names to values, not {type(event).__name__}"
        )
    if isinstance(event, dict):  # of a subclass: its order may be another than that of its values
        return dict(event)
    attributes: dict[Any, Any] = {}
    for name, value in event.items():
        if name in attributes:
            raise duplicate(name)
        attributes[name] = value
    return attributes


def duplicate(name: object) -> MalformedEvent:
    """The error of an event that has a name twice."""
    return MalformedEvent(f"there are several attributes {shown(name)}: give each name once")


def too_many(attributes: int, limits: Limits) -> EventLimitError:
    """The error of an event that has too many attributes."""
    return EventLimitError(
        f"{attributes:,} attributes, beyond the limit event_attributes = "
        f"{limits.event_attributes:,}"
    )


def too_many_values(limits: Limits) -> EventLimitError:
    """The error of an event with too many values, all of which a filter asks for."""
    return EventLimitError(
        f"more values than the limit event_attributes = {limits.event_attributes:,}, and a filter "
        "has *"
    )


def oversized(name: str) -> MalformedEvent:
    """The error of an event with an integer beyond 64 bits."""
    return MalformedEvent(
        f"the attribute {shown(name)} is an oversized integer, beyond 64 bits: make it a float or "
        "a str"
    )


def of_no_kind(name: str, value: object, line: int | None = None) -> MalformedEvent:
    """The error of an event with a value that is no string, number or boolean."""
    found = (advice for types, advice in _ADVICE if isinstance(value, types))
    advice = next(found, "values are str, int, float, bool and None")
    advice = advice.replace("{name}", print_name(plain_name(name))[:80])
    return MalformedEvent(
        f"the attribute {shown(name)} is of type {type(value).__name__}: {advice}", line
    )


def string_too_long(name: str, size: int, string_max: int) -> EventLimitError:
    """The error of an event with a string of so many bytes."""
    return EventLimitError(
        f"the attribute {shown(name)} is a string of {size:,} bytes, beyond the limit "
        f"event_string_bytes = {string_max:,}"
    )


def shown(name: object) -> str:
    """A name for messages; long ones are cut."""
    text = repr(name)
    if isinstance(name, str) and name[:1] in MARKS:
        text = f"'{print_name(plain_name(name))}'"
    return text if len(text) <= 80 else f"{text[:79]}…"


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise MalformedEvent(f"names are str, and {shown(name)} is of type {type(name).__name__}")
    _encoded(name, f"the name {shown(name)}")
    return str.__str__(name)


def _plain(name: str, value: Any, string_max: int) -> Value:
    """The value of an attribute, of a plain type."""
    if isinstance(value, str):
        size = len(_encoded(value, f"the attribute {shown(name)}"))
        if size > string_max:
            raise string_too_long(name, size, string_max)
        return str.__str__(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    is_integer = isinstance(value, np.integer) and value.dtype.kind in "iu"  # or of time
    if isinstance(value, int) or is_integer:
        if not INT64_MIN <= int(value) <= INT64_MAX:
            raise oversized(name)
        return int(value)
    if isinstance(value, float | np.float16 | np.float32):
        return float(value)
    if isinstance(value, Enum):  # it and UUIDs as the JSON library has them
        return _plain(name, value.value, string_max)
    if isinstance(value, UUID):
        return _plain(name, str(value), string_max)
    raise of_no_kind(name, value)


def plain_value(name: str, value: Any, string_max: int) -> Any:
    """The value of an attribute, of a plain type; a list or an object stays what it is.

    Raises an ``EventError`` for others.
    """
    kind = type(value)
    if kind is str:
        if len(value) <= string_max and value.isascii():
            return value
    elif kind is float or kind is bool or value is None:
        return value
    elif isinstance(value, list | tuple):
        return list(value)
    elif isinstance(value, Mapping):
        return dict(value)
    return _plain(name, value, string_max)


def _encoded(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise MalformedEvent(
            f"{what} has a surrogate without the other one: that is no character"
        ) from None
