"""``Encoder``: mappings, lines of JSON and rows of Arrow → ``EventBatch``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int64, freeze, starts_of
from tamis.core.errors import EventError
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.events import model as at
from tamis.events.arrow import encode_columns, rows_of, with_derived
from tamis.events.checks import checked, of_no_kind
from tamis.events.derive import Deriver
from tamis.events.model import EventBatch, packed
from tamis.events.ndjson import read_line
from tamis.events.reader import Reader
from tamis.language.attributes import attribute_of

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


class EncodedLines(NamedTuple):
    """Events, and the line or row of each, if they have one."""

    batch: EventBatch
    lines: Int64 | None


class Encoder:
    """Encodes events for the names of a filter table. Threads may share it.

    Attributes that no filter names are skipped, whatever their values are.

    Args:
        singular: as ``asked_of`` has it.

    Attributes:
        reader: reads lines.
        looks_inside: whether it reads objects or lists, which kernels do in lines.

    >>> encoder = Encoder(["temp", "area"])
    >>> batch = encoder.events([{"area": "area1", "temp": 35, "unknown": [1]}, {"area": b"1"}])
    >>> batch.names, batch.kinds, batch.values
    (array([1, 0], dtype=int32), array([2, 0], dtype=uint8), array([ 0, 35]))
    >>> print(batch.errors[1])
    the attribute 'area' is of type bytes: decode it to a str
    """

    def __init__(
        self, names: Sequence[str], limits: Limits = DEFAULT_LIMITS, singular: Collection[str] = ()
    ) -> None:
        self.names = tuple(names)
        self.limits = limits
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._deriver = Deriver(self.names, limits)
        self._derives, self.looks_inside = bool(self._deriver), self._deriver.looks_inside
        plain = (name for name in names if not attribute_of(name).mark)
        self._read = {*plain, *self._deriver.single}
        self._singular: Encoder | None = None
        self.reader = Reader(self.names, self._deriver, limits, self.plain_events, singular)

    def singular(self, names: tuple[str, ...]) -> Encoder:
        """Encodes events without lists where ``[]`` asks for them, for these names; kept.

        What only one of both has is what ``[]`` asks for: conditions on elements, and the
        attributes that stand for them.
        """
        found = self._singular
        if found is None or found.names != names:
            others = frozenset(names).symmetric_difference(self.names)
            self._singular = found = Encoder(names, self.limits, others)
        return found

    def events(self, events: Iterable[Mapping[str, Any]]) -> EventBatch:
        """Encode mappings, whose values are as :meth:`EventMatcher.match` describes them.

        They are written as lines, which kernels read: that takes less than to look at each value.
        """
        given = list(events)
        is_fast = len(given) > 1 or self.looks_inside
        return self.reader.events(given) if is_fast else self.plain_events(given)

    def plain_events(self, events: Iterable[Mapping[str, Any]]) -> EventBatch:
        """Encode mappings as they are, with whatever values."""
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
        """An event whose values that filters name are plain: see :func:`.checks.checked`."""
        return checked(event, self._read, self.limits)

    def ndjson(self, data: bytes, first_line: int = 1) -> EncodedLines:
        r"""Encode whole lines of JSON, each an object; blank ones are no events.

        >>> Encoder(["temp"]).ndjson(b'{"temp": 35}\n\n{"temp": null}\n').lines
        array([1, 3])
        """
        return EncodedLines(*self.reader.lines(data, first_line))

    def elements(self, data: bytes, starts: Int64, ends: Int64) -> EventBatch:
        """Encode elements of lists, as they are written in lines that are no errors."""
        return self.reader.elements(data, starts, ends)

    def line(self, line: bytes) -> dict[str, Any]:
        """The event of a line of JSON, for ``match`` and ``explain``; or an ``EventError``."""
        event = read_line(line, self.limits)
        for error in self.ndjson(line.replace(b"\n", b" ")).batch.errors.values():
            raise type(error)(error.message)
        return event

    def arrow(self, batch: Any) -> EventBatch:
        """Encode the rows of a record batch of pyarrow's; its columns are attributes.

        Raises ``UsageError`` for a type that values cannot have, a damaged column, or two columns
        of a name.

        >>> import pyarrow
        >>> rows = pyarrow.record_batch({"temp": [35, None], "area": ["a", "b"]})
        >>> Encoder(["temp", "area"]).arrow(rows).event_starts
        array([0, 2, 3])
        """
        if self.looks_inside:
            return self.events(self.rows(batch))
        if self._derives:
            batch = with_derived(batch, self._deriver.columns())
        return encode_columns(batch, self._numbers, self.limits)

    def rows(self, batch: Any) -> list[dict[str, Any]]:
        """The rows of a record batch as events, of what is read of them."""
        return rows_of(batch, self._deriver.read_at_top(batch.schema.names))

    def with_derived(self, event: dict[str, Any]) -> dict[str, Any]:
        """A checked event, with attributes of derived names: folded strings, what is inside."""
        errors: dict[int, EventError] = {}
        (found,) = self._deriver.derived([event], errors)
        for error in errors.values():
            raise error
        for name in self._numbers.keys() & found.keys():
            if isinstance(found[name], list | dict):
                raise of_no_kind(name, found[name])
        return found

    def _encoded(self, events: list[dict[str, Any]], errors: dict[int, EventError]) -> EventBatch:
        """Encode events whose values that filters name are plain, lists or dicts.

        ``errors`` has those of events without attributes, and gets those of events with lists and
        dicts.
        """
        if self._derives:
            found: dict[int, EventError] = {}
            events = self._deriver.derived(events, found)
            for number, error in found.items():
                errors.setdefault(number, error)
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
                errors.setdefault(owner, of_no_kind(self.names[names[index]], values[index]))
            is_value = (kinds < _NESTED) & ~np.isin(owners, owners[nested])
            names, values, kinds = names[is_value], values[is_value], kinds[is_value]
            sizes = np.bincount(owners[is_value], minlength=len(events))
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
