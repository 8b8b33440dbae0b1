"""Events as Python has them → ``EventBatch``: checks of names and values, then arrays."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Mapping, Sequence, Set
from datetime import date, time, timedelta
from itertools import chain, islice, repeat
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int64, freeze, starts_of
from tamis.core.errors import EventError, EventLimitError, MalformedEvent
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.events import model as at
from tamis.events.model import EventBatch, packed

log = logging.getLogger("tamis")

Value = str | int | float | bool | None
"""A value of these very types is *plain*: integers within int64, strings that UTF-8 can hold."""

_ADVICE: list[tuple[tuple[type, ...], str]] = [
    ((bytes, bytearray, memoryview), "decode it to a str"),
    ((date, time, timedelta, np.datetime64, np.timedelta64), "make it a number or a str"),
    ((Number,), "make it an int, a float or a str"),
    ((Mapping, Sequence, Set, np.ndarray), "make what is in it attributes of their own"),
]


def checked(event: object, names: Container[str], limits: Limits) -> dict[str, Any]:
    """An event whose values of these names are plain: itself, or a copy.

    NumPy's scalars, and instances of subclasses of the plain types, become plain. Other names may
    have any value. Raises an ``EventError`` for what is no event, or is beyond a limit.

    >>> checked({"a": np.int64(7), "b": "x", "c": [1]}, ["a", "b"], Limits())
    {'a': 7, 'b': 'x', 'c': [1]}
    """
    attributes = event if type(event) is dict else _attributes(event)
    if len(attributes) > limits.event_attributes:
        raise too_many(len(attributes), limits)
    string_max = limits.event_string_bytes
    for name, value in attributes.items():
        if type(name) is not str or not name.isascii():
            break
        if name not in names:
            continue
        kind = type(value)
        if kind is str:
            if len(value) > string_max or not value.isascii():
                break
        elif kind is int:
            if not at.INT64_MIN <= value <= at.INT64_MAX:
                break
        elif kind is not float and kind is not bool and value is not None:
            break
    else:
        return attributes
    plain: dict[str, Any] = {}
    for given, value in attributes.items():
        name = _name(given)
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


class ObjectWarning:
    """Warns, once, where filters name ``d.t`` and events have an object ``d``: names are flat."""

    def __init__(self, names: Sequence[str]) -> None:
        self._dotted = {object: name for name in reversed(names) for object in _objects(name)}

    def look(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Examine the first events of a batch; this costs nothing where no name has a dot."""
        if not self._dotted:
            return
        for event in islice(events, 100):
            for found in self._dotted.keys() & event.keys():
                name = self._dotted[found]
                if isinstance(event[found], Mapping) and name not in event:
                    self._dotted = {}
                    log.warning(
                        "events have an object %s, but names are flat: %s is an attribute of this "
                        "name; flatten events first (docs/events.md)",
                        shown(found),
                        shown(name),
                    )
                    return


def object_of(name: str, event: Mapping[str, Any]) -> str | None:
    """The object of an event that holds a dotted name, if names were paths."""
    found = (object for object in _objects(name) if isinstance(event.get(object), Mapping))
    return next(found, None)


def _objects(name: str) -> list[str]:
    """The beginnings of a name before each dot."""
    return [name[:index] for index, character in enumerate(name) if character == "."]


def duplicate(name: object) -> MalformedEvent:
    """The error of an event that has a name twice."""
    return MalformedEvent(f"there are several attributes {shown(name)}: give each name once")


def too_many(attributes: int, limits: Limits) -> EventLimitError:
    """The error of an event that has too many attributes."""
    return EventLimitError(
        f"{attributes:,} attributes, beyond the limit event_attributes = "
        f"{limits.event_attributes:,}"
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
        if not at.INT64_MIN <= int(value) <= at.INT64_MAX:
            raise oversized(name)
        return int(value)
    if isinstance(value, float | np.float16 | np.float32):
        return float(value)
    raise of_no_kind(name, value)


def _encoded(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise MalformedEvent(
            f"{what} has a surrogate without the other one: that is no character"
        ) from None


# -- arrays ------------------------------------------------------------------------------------

_NESTED, _NULL = 254, 255
_KINDS: dict[type, int] = {
    int: at.INTEGER,
    float: at.FLOAT,
    str: at.STRING,
    bool: at.BOOLEAN,
    type(None): _NULL,
    list: _NESTED,
    dict: _NESTED,
}


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


class EncodedLines(NamedTuple):
    """Events, and the line or row of each, if they have one."""

    batch: EventBatch
    lines: Int64 | None


class Encoder:
    """Encodes events for the names of a filter table. Threads may share it.

    Attributes that no filter names are skipped, whatever their values are.

    >>> encoder = Encoder(["temp", "area"])
    >>> batch = encoder.events([{"area": "area1", "temp": 35, "unknown": [1]}, {"area": b"1"}])
    >>> batch.names, batch.kinds, batch.values
    (array([1, 0], dtype=int32), array([2, 0], dtype=uint8), array([ 0, 35]))
    >>> print(batch.errors[1])
    the attribute 'area' is of type bytes: decode it to a str
    """

    def __init__(self, names: Sequence[str], limits: Limits = DEFAULT_LIMITS) -> None:
        self.names = tuple(names)
        self.limits = limits
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._objects = ObjectWarning(self.names)

    def events(self, events: Iterable[Mapping[str, Any]]) -> EventBatch:
        """Encode mappings, whose values are as :meth:`EventMatcher.match` describes them."""
        plain: list[dict[str, Any]] = []
        errors: dict[int, EventError] = {}
        for number, event in enumerate(events):
            try:
                plain.append(self.checked(event))
            except EventError as error:
                errors[number] = error
                plain.append({})
        return self._encoded(plain, errors)

    def checked(self, event: object) -> dict[str, Any]:
        """An event whose values that filters name are plain: see ``checked`` of the module."""
        return checked(event, self._numbers, self.limits)

    def ndjson(self, data: bytes, first_line: int = 1) -> EncodedLines:
        r"""Encode whole lines of JSON, each an object; blank ones are no events.

        >>> Encoder(["temp"]).ndjson(b'{"temp": 35}\n\n{"temp": null}\n').lines
        array([1, 3])
        """
        from tamis.events.ndjson import read_lines  # noqa: PLC0415 - has a kernel

        events, lines, errors = read_lines(data, first_line, self._numbers, self.limits)
        return EncodedLines(self._encoded(events, errors, lines), lines)

    def arrow(self, batch: Any) -> EventBatch:
        """Encode the rows of a record batch of pyarrow's; its columns are attributes.

        Raises ``UsageError`` for a type that values cannot have, a damaged column, or two columns
        of a name.

        >>> import pyarrow
        >>> rows = pyarrow.record_batch({"temp": [35, None], "area": ["a", "b"]})
        >>> Encoder(["temp", "area"]).arrow(rows).event_starts
        array([0, 2, 3])
        """
        from tamis.events.arrow import encode_columns, structs  # noqa: PLC0415 - seldom needed

        self._objects.look([structs(batch.schema)])
        return encode_columns(batch, self._numbers, self.limits)

    def _encoded(
        self,
        events: list[dict[str, Any]],
        errors: dict[int, EventError],
        lines: Int64 | None = None,
    ) -> EventBatch:
        """Encode events whose values that filters name are plain, lists or dicts.

        ``errors`` has those of events without attributes, and gets those of events with lists and
        dicts.
        """
        self._objects.look(events)
        sizes = np.fromiter(map(len, events), np.int64, len(events))
        total = int(sizes.sum())
        names = np.fromiter(
            map(self._numbers.get, chain.from_iterable(events), repeat(-1)), np.int32, total
        )
        values = np.fromiter(chain.from_iterable(map(dict.values, events)), object, total)
        wanted = names >= 0
        kinds = np.full(total, _NULL, np.uint8)
        types = map(type, values[wanted])
        kinds[wanted] = np.fromiter(map(_KINDS.__getitem__, types), np.uint8, wanted.sum())
        if (kinds >= _NESTED).any():
            owners = np.repeat(np.arange(len(events)), sizes)
            nested = np.flatnonzero(kinds == _NESTED)
            for index, owner in zip(nested.tolist(), owners[nested].tolist(), strict=True):
                line = None if lines is None else int(lines[owner])
                error = of_no_kind(self.names[names[index]], values[index], line)
                errors.setdefault(owner, error)
            kept = (kinds < _NESTED) & ~np.isin(owners, owners[nested])
            names, values, kinds = names[kept], values[kept], kinds[kept]
            sizes = np.bincount(owners[kept], minlength=len(events))
        kinds, bits, strings = _bits(kinds, values)
        batch = EventBatch(starts_of(sizes), names, kinds, bits, *_packed(strings), errors)
        freeze(*batch[:6])
        return batch


def encode(
    events: Iterable[Mapping[str, Any]], names: Sequence[str], limits: Limits = DEFAULT_LIMITS
) -> EventBatch:
    """Encode mappings for the names of a filter table; for many batches, keep an ``Encoder``."""
    return Encoder(names, limits).events(events)


def _bits(kinds: Bytes, values: NDArray[np.object_]) -> tuple[Bytes, Int64, list[str]]:
    """Kinds and bits of plain values, and the strings that the bits number."""
    if (kinds == at.INTEGER).all():  # as it often is
        return kinds, values.astype(np.int64), []
    bits = np.empty(len(values), np.int64)
    exact = (kinds == at.INTEGER) | (kinds == at.BOOLEAN)
    bits[exact] = values[exact].astype(np.int64)
    is_float, is_string = kinds == at.FLOAT, kinds == at.STRING
    kinds[is_float], bits[is_float] = at.numbers(values[is_float].astype(np.float64))
    strings: list[str] = values[is_string].tolist()
    bits[is_string] = np.arange(len(strings))
    return kinds, bits, strings


def _packed(strings: list[str]) -> tuple[Int64, Bytes]:
    """Where each string begins in UTF-8, and the bytes."""
    text = "".join(strings)
    if not text.isascii():
        return packed(map(str.encode, strings))
    sizes = np.fromiter(map(len, strings), np.int64, len(strings))
    return starts_of(sizes), np.frombuffer(text.encode(), np.uint8)
