"""Events → ``AttributeBatch``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.documents.batch import freeze
from tamis.errors import EventError
from tamis.events.building import packed
from tamis.events.model import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    STRING,
    AttributeBatch,
    Bytes,
    Int64,
    numbers,
)
from tamis.events.values import Value, checked
from tamis.limits import DEFAULT_LIMITS, Limits

_NULL = 255
_KINDS: dict[type, int] = {
    int: INTEGER,
    float: FLOAT,
    str: STRING,
    bool: BOOLEAN,
    type(None): _NULL,
}


class EncodedLines(NamedTuple):
    """Events of lines or rows.

    Attributes:
        batch: the events.
        lines: int64[]; the line or row that each is in.
    """

    batch: AttributeBatch
    lines: Int64


class Encoder:
    """Encodes events for a filter table. It is immutable, and threads may share it.

    Every attribute is checked, also those that no filter names: which events are in error does not
    depend on the filters.

    Args:
        names: of the filter table.
        limits: bounds on each event.

    >>> encoder = Encoder(["temp", "area"])
    >>> batch = encoder.events([{"area": "area1", "temp": 35, "unknown": 1}, {"area": b"1"}])
    >>> batch.names, batch.kinds, batch.values
    (array([1, 0], dtype=int32), array([2, 0], dtype=uint8), array([ 0, 35]))
    >>> print(batch.errors[1])
    the attribute 'area' is of type bytes: decode it to a str
    """

    def __init__(self, names: Sequence[str], limits: Limits = DEFAULT_LIMITS) -> None:
        self.names = tuple(names)
        self.limits = limits
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def events(self, events: Iterable[Mapping[str, Any]]) -> AttributeBatch:
        """Events as Python has them.

        Values are str, int within 64 bits, float, bool and None, or such scalars of NumPy's.
        """
        plain: list[dict[str, Value]] = []
        errors: dict[int, EventError] = {}
        for number, event in enumerate(events):
            try:
                plain.append(checked(event, self.limits))
            except EventError as error:
                errors[number] = error
                plain.append({})
        return self._plain(plain, errors)

    def ndjson(self, data: bytes, first_line: int = 1) -> EncodedLines:
        r"""Whole lines of JSON, each an object; blank ones are no events.

        >>> Encoder(["temp"]).ndjson(b'{"temp": 35}\n\n{"temp": null}\n').lines
        array([1, 3])
        """
        from tamis.events.ndjson.reader import read_lines  # noqa: PLC0415 - has a kernel

        events, lines, errors = read_lines(data, first_line, self.limits)
        return EncodedLines(self._plain(events, errors), lines)

    def arrow(self, batch: Any) -> AttributeBatch:
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
        from tamis.events.columns import encode_columns  # noqa: PLC0415 - seldom needed

        return encode_columns(batch, self._numbers, self.limits)

    def _plain(
        self, events: list[dict[str, Value]], errors: Mapping[int, EventError]
    ) -> AttributeBatch:
        """Events whose attributes are all plain; of those in error, there are none."""
        sizes = np.fromiter(map(len, events), np.int64, len(events))
        total = int(sizes.sum())
        names = np.fromiter(
            map(self._numbers.get, chain.from_iterable(events), repeat(-1)), np.int32, total
        )
        values = np.fromiter(chain.from_iterable(map(dict.values, events)), object, total)
        kinds = np.fromiter(map(_KINDS.__getitem__, map(type, values)), np.uint8, total)
        wanted = (names >= 0) & (kinds != _NULL)
        if not wanted.all():
            names, values, kinds = names[wanted], values[wanted], kinds[wanted]
            owners = np.repeat(np.arange(len(events)), sizes)[wanted]
            sizes = np.bincount(owners, minlength=len(events))
        starts = np.zeros(len(events) + 1, np.int64)
        np.cumsum(sizes, out=starts[1:])
        kinds, bits, strings = _encoded(kinds, values)
        batch = AttributeBatch(starts, names, kinds, bits, *_packed(strings), errors)
        freeze(*batch[:6])
        return batch


def encode(
    events: Iterable[Mapping[str, Any]], names: Sequence[str], limits: Limits = DEFAULT_LIMITS
) -> AttributeBatch:
    """Events as Python has them; where there are many batches, an :class:`Encoder` is faster.

    Args:
        names: of a filter table.

    >>> batch = encode([{"area": "area1", "temp": 35, "unknown": None}], ["temp", "area"])
    >>> batch.names, batch.kinds, batch.values
    (array([1, 0], dtype=int32), array([2, 0], dtype=uint8), array([ 0, 35]))
    """
    return Encoder(names, limits).events(events)


def _encoded(kinds: Bytes, values: NDArray[np.object_]) -> tuple[Bytes, Int64, list[str]]:
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
