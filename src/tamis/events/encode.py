"""Events → ``EventBatch``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int64, freeze
from tamis.core.errors import EventError
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.events.building import packed
from tamis.events.model import BOOLEAN, FLOAT, INTEGER, STRING, EventBatch, numbers
from tamis.events.values import ObjectWarning, checked, of_no_kind

_NESTED, _NULL = 254, 255
_KINDS: dict[type, int] = {
    int: INTEGER,
    float: FLOAT,
    str: STRING,
    bool: BOOLEAN,
    type(None): _NULL,
    list: _NESTED,
    dict: _NESTED,
}


class EncodedLines(NamedTuple):
    """Events of lines or rows.

    Attributes:
        batch: the events.
        lines: int64[]; the line or row that each is in.
    """

    batch: EventBatch
    lines: Int64


class Encoder:
    """Encodes events for a filter table. Threads may share it.

    Attributes that no filter names are passed over, whatever their values are.

    Args:
        names: of the filter table.
        limits: bounds on each event.

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
        """Events as Python has them.

        Values that filters name are str, int within 64 bits, float, bool and None, or such scalars
        of NumPy's.
        """
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
        """An event whose values that filters name are all plain.

        Raises:
            EventError: there are none such, or it is beyond a limit.
        """
        return checked(event, self._numbers, self.limits)

    def ndjson(self, data: bytes, first_line: int = 1) -> EncodedLines:
        r"""Whole lines of JSON, each an object; blank ones are no events.

        >>> Encoder(["temp"]).ndjson(b'{"temp": 35}\n\n{"temp": null}\n').lines
        array([1, 3])
        """
        from tamis.events.ndjson.reader import read_lines  # noqa: PLC0415 - has a kernel

        events, lines, errors = read_lines(data, first_line, self._numbers, self.limits)
        return EncodedLines(self._encoded(events, errors, lines), lines)

    def arrow(self, batch: Any) -> EventBatch:
        """The rows of a record batch of pyarrow's; its columns are attributes.

        Raises:
            MissingExtra: pyarrow is not installed.
            UsageError: there are two columns of a name, or one of a type that values cannot have,
                or it is damaged.

        >>> import pyarrow
        >>> rows = pyarrow.record_batch({"temp": [35, None], "area": ["a", "b"]})
        >>> Encoder(["temp", "area"]).arrow(rows).event_starts
        array([0, 2, 3])
        """
        from tamis.events.arrow.columns import encode_columns, structs  # noqa: PLC0415 - seldom needed

        self._objects.look([structs(batch.schema)])
        return encode_columns(batch, self._numbers, self.limits)

    def _encoded(
        self,
        events: list[dict[str, Any]],
        errors: dict[int, EventError],
        lines: Int64 | None = None,
    ) -> EventBatch:
        """Events whose values that filters name are plain, lists or dicts.

        Args:
            errors: of events that have no attributes; gets those of events with lists and dicts.
            lines: which each event is in.
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
            for place, owner in zip(nested.tolist(), owners[nested].tolist(), strict=True):
                line = None if lines is None else int(lines[owner])
                error = of_no_kind(self.names[names[place]], values[place], line)
                errors.setdefault(owner, error)
            kept = (kinds < _NESTED) & ~np.isin(owners, owners[nested])
            names, values, kinds = names[kept], values[kept], kinds[kept]
            sizes = np.bincount(owners[kept], minlength=len(events))
        starts = np.zeros(len(events) + 1, np.int64)
        np.cumsum(sizes, out=starts[1:])
        kinds, bits, strings = _bits(kinds, values)
        batch = EventBatch(starts, names, kinds, bits, *_packed(strings), errors)
        freeze(*batch[:6])
        return batch


def encode(
    events: Iterable[Mapping[str, Any]], names: Sequence[str], limits: Limits = DEFAULT_LIMITS
) -> EventBatch:
    """Events as Python has them; where there are many batches, an :class:`Encoder` is faster.

    Args:
        names: of a filter table.

    >>> batch = encode([{"area": "area1", "temp": 35, "unknown": None}], ["temp", "area"])
    >>> batch.names, batch.kinds, batch.values
    (array([1, 0], dtype=int32), array([2, 0], dtype=uint8), array([ 0, 35]))
    """
    return Encoder(names, limits).events(events)


def _bits(kinds: Bytes, values: NDArray[np.object_]) -> tuple[Bytes, Int64, list[str]]:
    """Kinds and bits of plain values, and the strings that are numbered in these."""
    if (kinds == INTEGER).all():  # as it often is
        return kinds, values.astype(np.int64), []
    bits = np.empty(len(values), np.int64)
    exact = (kinds == INTEGER) | (kinds == BOOLEAN)
    bits[exact] = values[exact].astype(np.int64)
    is_float, is_string = kinds == FLOAT, kinds == STRING
    kinds[is_float], bits[is_float] = numbers(values[is_float].astype(np.float64))
    strings: list[str] = values[is_string].tolist()
    bits[is_string] = np.arange(len(strings))
    return kinds, bits, strings


def _packed(strings: list[str]) -> tuple[Int64, Bytes]:
    """Strings in UTF-8, and where each begins."""
    text = "".join(strings)
    if not text.isascii():
        return packed(map(str.encode, strings))
    starts = np.zeros(len(strings) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, strings), np.int64, len(strings)), out=starts[1:])
    return starts, np.frombuffer(text.encode(), np.uint8)
