"""``Encoder``: mappings, lines of JSON and rows of Arrow → ``EventBatch``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.core.arrays import Int64, freeze
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


class EncodedLines(NamedTuple):
    """Events, and the line of each."""

    batch: EventBatch
    lines: Int64


class Encoder:
    """Encodes events for the names of a filter table. Threads may share it.

    Attributes that no filter names are skipped, whatever their values are.

    Args:
        singular: as ``asked_of`` has it.

    Attributes:
        reader: reads lines.

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
        self._derives = bool(self._deriver)
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
        is_fast = len(given) > 1 or self._deriver.looks_inside
        return self.reader.events(given)[0] if is_fast else self.plain_events(given)

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
        batch, lines, _ = self.reader.lines(data, first_line)
        return EncodedLines(batch, lines)

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
        if self._deriver.looks_inside:
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
        names: list[int] = []
        values: list[tuple[int, int]] = []  # kinds and bits
        texts: list[bytes] = []
        starts = [0]
        for number, event in enumerate(events):
            for name, value in event.items():
                if value is None or name not in self._numbers:
                    continue
                if isinstance(value, list | dict):
                    errors.setdefault(number, of_no_kind(name, value))
                    del names[starts[-1] :], values[starts[-1] :]
                    break
                if isinstance(value, str):
                    values.append((at.STRING, len(texts)))
                    texts.append(value.encode())
                else:
                    is_boolean = isinstance(value, bool)
                    values.append((at.BOOLEAN, value) if is_boolean else at.number(value))
                names.append(self._numbers[name])
            starts.append(len(names))
        kinds, bits = np.array(values, np.int64).reshape(-1, 2).T.copy()
        batch = EventBatch(
            np.array(starts, np.int64),
            np.array(names, np.int32),
            kinds.astype(np.uint8),
            bits,
            *packed(texts),
            errors,
        )
        freeze(*batch[:6])
        return batch


def encode(
    events: Iterable[Mapping[str, Any]], names: Sequence[str], limits: Limits = DEFAULT_LIMITS
) -> EventBatch:
    """Encode mappings for the names of a filter table; for many batches, keep an ``Encoder``."""
    return Encoder(names, limits).events(events)
