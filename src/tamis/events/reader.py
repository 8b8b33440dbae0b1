"""``Reader``: lines of JSON, and elements of the lists in them → ``EventBatch``.

Kernels read what filters ask for and pass over the rest: see ``events.kernels.lines``. Python does
what is rare: it says what is wrong, and completes values that kernels leave *late*.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
import orjson

from tamis.core.arrays import Bytes, Int32, Int64, freeze, starts_of
from tamis.core.errors import EventError
from tamis.core.kernel.state import State, bound, zeros
from tamis.core.limits import Limits
from tamis.events import model as at
from tamis.events.asked import Asked, asked_of
from tamis.events.checks import (
    duplicate,
    of_no_kind,
    oversized,
    string_too_long,
    too_many,
    too_many_values,
)
from tamis.events.derive import Deriver, Place, conditions_of
from tamis.events.kernels import reading as to
from tamis.events.kernels.lines import STACK_SIZE, read_elements, read_lines, read_one
from tamis.events.model import EventBatch
from tamis.events.ndjson import read_line, too_long
from tamis.language.networks import address_bits

_KEPT_MAX = 1 << 24
"""A state with an array of more items is not used again."""
_NO_STARTS = np.zeros(0, np.int64)
_NO_INPUT = to.Input(np.zeros(0, np.uint8), _NO_STARTS, _NO_STARTS)


class Reader:
    """Reads lines for the names of a filter table. Threads may share it.

    Args:
        events: encodes events of Python's.
        singular: as ``asked_of`` has it.
    """

    def __init__(
        self,
        names: Sequence[str],
        deriver: Deriver,
        limits: Limits,
        events: Callable[[Iterable[Mapping[str, Any]]], EventBatch],
        singular: Collection[str],
    ) -> None:
        self._names, self._deriver, self._limits = names, deriver, limits
        self._events, self._singular = events, singular
        self._idle: list[State[to.Work]] = []  # of threads that read nothing now

    @cached_property
    def _asked(self) -> Asked:
        return asked_of(self._names, self._deriver, self._singular)

    def lines(self, data: bytes, first_line: int) -> tuple[EventBatch, Int64, dict[int, bytes]]:
        """The events of whole lines, the last of which may lack its newline; the line of each.

        And those that another reader has to read, without attributes here: their lines, by event.
        """
        if not data.endswith(b"\n"):
            data += b"\n"
        found = self._run(data, None)
        lines = found.lines + first_line
        freeze(lines)
        left: dict[int, bytes] = {}
        if self._singular:
            left = {event: data[start:end] for event, *_, start, end in found.odd.tolist()}
        batch = self._completed(found, data, {} if self._singular else None)
        errors = {
            event: type(error)(error.message, int(lines[event]))
            for event, error in batch.errors.items()
        }
        return batch._replace(errors=errors), lines, left

    def events(self, events: Sequence[Mapping[str, Any]]) -> tuple[EventBatch, list[int]]:
        """Events of Python's. Those that are no JSON, or are in error, are encoded as they are.

        And those that another reader has to read, as for ``lines``: instead of these.
        """
        found, data, left = self._written(events)
        if self._singular:
            return self._completed(found, data, {}), left
        return self._completed(found, data, {event: events[event] for event in left}), []

    def _written(self, events: Sequence[Mapping[str, Any]]) -> tuple[_Found, bytes, list[int]]:
        """What kernels find in events, as lines; and the events that they cannot read."""
        lines = list(map(_line, events))
        while True:
            data = b"".join([b"{}\n" if line is None else line for line in lines])
            found = self._run(data, None, is_python=True)
            reasons = found.odd[:, 1]
            has_null = (reasons == to.HAS_NULL) | (reasons == to.MAY_BE_INFINITE)
            asked = {*found.odd[has_null, 0].tolist(), *found.slices[:, 1].tolist()}
            without = [each for each in asked if _has_odd_floats(lines[each], events[each])]
            if not without:
                left = {number for number, line in enumerate(lines) if line is None}
                return found, data, sorted(left.union(found.odd[~has_null, 0].tolist()))
            for number in without:
                lines[number] = None

    def one(self) -> OneLine:
        """What reads events one by one, for one thread."""
        return OneLine(self._state())

    def elements(self, data: bytes, starts: Int64, ends: Int64) -> EventBatch:
        """Elements of lists, as events; the lines around them were read without an error."""
        return self._completed(self._run(data, (starts, ends)), data)

    def _run(
        self, data: bytes, elements: tuple[Int64, Int64] | None, is_python: bool = False
    ) -> _Found:
        """Have a kernel read lines, or elements, with a state that no other thread has."""
        try:
            state = self._idle.pop()
        except IndexError:
            state = self._state()
        words = state.words
        words[: to.ODD + 1] = 0
        words[to.ITSELF] = -1 if elements is None else self._asked.itself
        words[to.FROM_PYTHON] = is_python
        starts, ends = elements or (_NO_STARTS, _NO_STARTS)
        state.register(to.INPUT, to.Input(np.frombuffer(data, np.uint8), starts, ends))
        state.run(read_lines if elements is None else read_elements)
        found = _Found(words, state.arrays)
        state.register(to.INPUT, _NO_INPUT)  # which kept the lines
        if max(array.size for array in state.arrays) <= _KEPT_MAX:
            self._idle.append(state)
        return found

    def _state(self) -> State[to.Work]:
        asked, limits = self._asked, self._limits
        nodes = len(asked.tree.filters)
        work = zeros(
            to.Work, 1 << 10, seen=nodes, objects=nodes, flat=2 * asked.flat, stack=STACK_SIZE,
            key=asked.key_bytes, string_bytes=1 << 16, joined=(1 << 14) * (max(asked.joined) >= 0),
        )  # fmt: skip
        together = (("event_starts", "lines"), ("names", "kinds", "values"))
        state = State(to.STATE_SIZE, to.WORK, work, together)
        state.register(to.TREE, asked.tree)
        bounds = {
            to.BYTES_MAX: limits.event_bytes,
            to.NAMES_MAX: limits.event_attributes,
            to.STRING_MAX: limits.event_string_bytes,
        }
        for word, limit in bounds.items():
            state.words[word] = min(limit, at.INT64_MAX)
        state.words[to.EVERY : to.EVERY + 2] = asked.every
        state.words[to.IS_SINGULAR] = asked.is_singular
        state.words[to.JOINED_PLAIN : to.JOINED_FOLDED + 1] = asked.joined
        state.words[to.JOINS] = max(asked.joined) >= 0
        return state

    def _completed(
        self, found: _Found, data: bytes, others: dict[int, Any] | None = None
    ) -> EventBatch:
        """What kernels found, with what Python has to add; ``others`` are events that it has."""
        errors: dict[int, EventError] = {}
        if others is None:
            others = {}
            for event, *odd, start, end in found.odd.tolist():
                self._look_again(event, odd, data[start:end], data, errors, others)
        self._complete_late(found, data)
        if len(found.slices):
            numbers = {place: number for number, place in enumerate(self._asked.conditions)}
            for place in self._deriver.listed:
                rows = found.slices[found.slices[:, 0] == numbers[place]]
                if len(rows):
                    self._match_elements(place, rows, found, data, errors)
        if others:
            events = list(others)
            batch = self._events(others.values())
            found.add_batch(np.array(events), batch)
            errors |= {events[number]: error for number, error in batch.errors.items()}
        return found.batch(dict(sorted(errors.items())))

    def _look_again(
        self,
        event: int,
        odd: Sequence[int],
        line: bytes,
        data: bytes,
        errors: dict[int, EventError],
        others: dict[int, Any],
    ) -> None:
        """Say what is wrong with a line; or read it, if it is an event after all."""
        reason, number, detail = odd
        if reason == to.TOO_LONG:
            errors[event] = too_long(self._limits)
        elif reason in (to.MALFORMED, to.MAY_BE_INFINITE):
            try:
                found = read_line(line, self._limits)
            except EventError as error:
                errors[event] = error
            else:
                if reason == to.MALFORMED:
                    others[event] = found
        elif reason == to.TOO_MANY:
            errors[event] = too_many(number, self._limits)
        elif reason == to.TOO_MANY_VALUES:
            errors[event] = too_many_values(self._limits)
        elif reason == to.DUPLICATE:
            errors[event] = duplicate(orjson.loads(data[number:detail]))
        elif reason == to.OVERSIZED:
            errors[event] = oversized(self._names[number])
        elif reason == to.STRING_TOO_LONG:
            string_max = self._limits.event_string_bytes
            errors[event] = string_too_long(self._names[number], detail, string_max)
        else:
            errors[event] = of_no_kind(self._names[number], [] if reason == to.IS_LIST else {})

    def _complete_late(self, found: _Found, data: bytes) -> None:
        texts: list[bytes] = []
        for row, column, start, end in found.late.tolist():
            if column == to.AS_IT_IS:
                found.kinds[row], found.values[row] = at.number(float(data[start:end]))
                continue
            text = address_bits(found.string(int(found.values[row])))
            if text is None:
                found.names[row] = -1
                continue
            found.values[row] = len(found.string_starts) - 1 + len(texts)
            texts.append(text.encode())
        found.add_strings(*at.packed(texts))

    def _match_elements(
        self, place: Place, rows: Int64, found: _Found, data: bytes, errors: dict[int, EventError]
    ) -> None:
        """Add an attribute for each condition that holds of an element of an event."""
        _, events, starts, ends = (column.copy() for column in rows.T)
        batch = place.of_elements.encoder.elements(data, starts, ends)
        owners, conditions = conditions_of(place, batch, events, errors)
        numbers = self._asked.conditions[place]
        kinds = np.full(len(owners), at.BOOLEAN, np.uint8)
        found.add(owners, numbers[conditions], kinds, np.ones(len(owners), np.int64))


class OneLine:
    """Reads single events of Python's; for one thread at a time.

    Attributes:
        arrays: the fields of an ``EventBatch``, and whether the event is in error: it is not.
    """

    def __init__(self, state: State[to.Work]) -> None:
        work = state.arrays
        rows = work.event_starts, work.names, work.kinds, work.values
        self.arrays = *rows, work.string_starts, work.string_bytes, np.zeros(1, np.uint8)
        line = bytearray(_ONE_BYTES)
        state.register(to.INPUT, to.Input(np.frombuffer(line, np.uint8), _NO_STARTS, _NO_STARTS))
        state.words[to.ITSELF] = -1
        self._state, self._line, self._read = state, line, bound(read_one, state.words)

    def take(self, event: Mapping[str, Any]) -> bool:
        """Read an event: whether a kernel could."""
        line = _line(event)
        if line is None or len(line) > _ONE_BYTES or _has_odd_floats(line, event):
            return False
        self._line[: len(line)] = line
        status = self._read()
        return status == 0 or (status == _HAS_LATE and self._complete_late(line))

    def _complete_late(self, line: bytes) -> bool:
        """What ``Reader`` does for many: whether there was room."""
        words, work = self._state.words, self._state.arrays
        late = work.late[: words[to.LATE] * to.LATE_COLUMNS].reshape(-1, to.LATE_COLUMNS)
        for row, column, start, end in late[::-1].tolist():
            if column == to.AS_IT_IS:
                work.kinds[row], work.values[row] = at.number(float(line[start:end]))
                continue
            first, last = work.string_starts[work.values[row] :][:2]
            text = address_bits(work.string_bytes[first:last].tobytes().decode())
            if text is None:  # there is no such attribute: the last one takes its place
                words[to.ROWS] = work.event_starts[1] = rows = words[to.ROWS] - 1
                for array in (work.names, work.kinds, work.values):
                    array[row] = array[rows]
                continue
            added, strings = text.encode(), words[to.STRINGS]
            first = work.string_starts[strings]
            last = first + len(added)
            if strings + 2 > len(work.string_starts) or last > len(work.string_bytes):
                return False
            work.string_bytes[first:last] = np.frombuffer(added, np.uint8)
            work.string_starts[strings + 1], work.values[row] = last, strings
            words[to.STRINGS] = strings + 1
        return True


_ONE_BYTES, _HAS_LATE = 1 << 14, 2
_OPTIONS = (
    orjson.OPT_APPEND_NEWLINE
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)


def _line(event: object) -> bytes | None:
    """A dict as a line of JSON, if that has the same values, but for floats."""
    if type(event) is not dict:
        return None
    try:
        line = orjson.dumps(event, option=_OPTIONS)
    except orjson.JSONEncodeError:
        return None
    return None if b"\n" in line[:-1] else line  # somebody had the library write several


def _has_odd_floats(line: bytes | None, event: Mapping[str, Any]) -> bool:
    """Whether there is a float in an event that its line has not: the library writes null."""
    left: list[Any] = [event] if line is not None and b"null" in line else []
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list | tuple):
            left += value
        elif isinstance(value, Enum):
            left.append(value.value)
        elif isinstance(value, float) and not math.isfinite(value):
            return True
    return False


class _Found:
    """What kernels found: values, or *rows*, as an ``EventBatch`` has them; the name -1 is of none.

    Attributes:
        slices, late, odd: see ``kernels.reading.Work``.
    """

    def __init__(self, words: Int64, work: to.Work) -> None:
        def rows_of(array: Int64, used: int, columns: int) -> Int64:
            return array[: words[used] * columns].reshape(-1, columns).copy()

        self.events, rows, strings = (int(words[x]) for x in (to.EVENTS, to.ROWS, to.STRINGS))
        self.starts = work.event_starts[: self.events + 1].copy()
        self.lines = work.lines[: self.events].copy()
        self.names, self.kinds = work.names[:rows].copy(), work.kinds[:rows].copy()
        self.values = work.values[:rows].copy()
        self.string_starts = work.string_starts[: strings + 1].copy()
        self.string_bytes = work.string_bytes[: self.string_starts[-1]].copy()
        self.slices = rows_of(work.slices, to.SLICES, to.SLICE_COLUMNS)
        self.late = rows_of(work.late, to.LATE, to.LATE_COLUMNS)
        self.odd = rows_of(work.odd, to.ODD, to.ODD_COLUMNS)
        self._owners: Int64 | None = None  # of all rows, if they are not as the starts have it

    def string(self, number: int) -> str:
        """A string that was found."""
        start, end = self.string_starts[number : number + 2]
        return self.string_bytes[start:end].tobytes().decode()

    def add_strings(self, starts: Int64, written: Bytes) -> None:
        """Add strings behind all others."""
        if len(starts) > 1:
            self.string_starts = np.append(self.string_starts, self.string_starts[-1] + starts[1:])
            self.string_bytes = np.append(self.string_bytes, written)

    def add(self, owners: Int64, names: Int32, kinds: Bytes, values: Int64) -> None:
        """Add rows of events."""
        if len(owners):
            self._owners = np.append(self.owners(), owners)
            self.names = np.append(self.names, names)
            self.kinds = np.append(self.kinds, kinds)
            self.values = np.append(self.values, values)

    def add_batch(self, events: Int64, batch: EventBatch) -> None:
        """Add the rows of other events, that have none so far."""
        values = batch.values + (batch.kinds == at.STRING) * (len(self.string_starts) - 1)
        self.add_strings(batch.string_starts, batch.string_bytes)
        owners = np.repeat(events, np.diff(batch.event_starts))
        self.add(owners, batch.names, batch.kinds, values)

    def owners(self) -> Int64:
        """The event of each row."""
        if self._owners is None:
            return np.repeat(np.arange(self.events), np.diff(self.starts))
        return self._owners

    def batch(self, errors: dict[int, EventError]) -> EventBatch:
        """The rows of events that are not in error, by events."""
        names, kinds, values, starts = self.names, self.kinds, self.values, self.starts
        is_row = names >= 0
        owners = self.owners() if errors or self._owners is not None or not is_row.all() else None
        if owners is not None:
            is_row &= ~np.isin(owners, np.fromiter(errors, np.int64, len(errors)))
            order = np.flatnonzero(is_row)
            order = order[np.argsort(owners[order], kind="stable")]
            names, kinds, values = names[order], kinds[order], values[order]
            starts = starts_of(np.bincount(owners[order], minlength=self.events))
        batch = EventBatch(
            starts, names, kinds, values, self.string_starts, self.string_bytes, errors
        )
        freeze(*batch[:6])
        return batch
