"""The matches of a batch of events, and of each event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import pairwise, repeat

import numpy as np

from tamis.core.arrays import Int32, Int64, freeze
from tamis.core.errors import EventError, SubscriptionId
from tamis.core.index.columns import Ids
from tamis.core.index.matchset import MatchSet, match_set
from tamis.core.index.segments import SnapshotIds

_WORTH_LISTING = 1 << 16
"""A batch with at most so many matches, or one for each event, lists all of them together."""
_NO_NUMBERS = np.zeros(0, np.int32)


class EventMatch:
    """The matches of one event; indices and ids are made only when asked for.

    An event in error has ``error``, and raises it when its matches are asked for, so that nobody
    takes it for an event without matches.

    >>> import tamis
    >>> match = tamis.compile_events({"hot": "temp > 30", "cold": "temp < 5"}).match({"temp": 35})
    >>> bool(match), len(match), list(match)
    (True, 1, ['hot'])
    """

    __slots__ = ("_answers", "_count", "_number")

    def __init__(self, answers: EventAnswers, number: int) -> None:
        self._answers = answers
        self._number = number
        self._count = -1

    @property
    def error(self) -> EventError | None:
        """The event's error, or None."""
        return self._answers.errors.get(self._number)

    @property
    def line(self) -> int | None:
        """The line or row of the event, from 1; None where it does not come from a file."""
        lines = self._answers.lines
        return None if lines is None else int(lines[self._number])

    @property
    def indices(self) -> Int32:
        """The numbers of the matches: int32, ascending, read-only."""
        return self._answers.numbers(self._number)

    def __len__(self) -> int:
        return self._answers.count(self._number) if self._count < 0 else self._count

    def __iter__(self) -> Iterator[SubscriptionId]:
        ids = self._answers.ids(self._number)
        self._count = len(ids)  # list() asks for it next
        return iter(ids)

    def __repr__(self) -> str:
        error = self.error
        return f"<EventMatch: {f'{len(self):,} matches' if error is None else error.code}>"


class EventAnswers:
    """The matches of a batch. To ask about an event in error raises its error.

    Attributes:
        matches: document n is event n, and members are numbers of filters, subscriptions or
            interfaces.
        errors: by event number.
        lines: int64[]; the line or row of each event, or None where they have none.
    """

    def __init__(
        self,
        matches: MatchSet,
        errors: Mapping[int, EventError],
        ids: Ids | SnapshotIds | None,
        lines: Int64 | None = None,
    ) -> None:
        self.matches = matches
        self.errors = errors
        self.lines = lines
        self._ids = ids
        self._numbers = _NO_NUMBERS  # of all events, where ``_starts`` says so

    def __len__(self) -> int:
        return self.matches.documents

    def __iter__(self) -> Iterator[EventMatch]:
        return map(EventMatch, repeat(self), range(len(self)))

    def numbers(self, event: int) -> Int32:
        """The matches of an event: ascending, each once, read-only."""
        if self.errors and event in self.errors:
            raise self.errors[event]
        starts = self._starts
        if not starts:
            return self.matches.numbers(event)
        return self._numbers[starts[event] : starts[event + 1]]

    def count(self, event: int) -> int:
        """How many matches an event has, without an array of them."""
        starts = self._starts
        if self.errors or not starts:
            return len(self.numbers(event))
        return starts[event + 1] - starts[event]

    def ids(self, event: int) -> list[SubscriptionId]:
        """The ids of an event's matches; filters have numbers."""
        starts = self._starts
        if self.errors or not starts:
            return self._named(self.numbers(event))
        return self._every_id[starts[event] : starts[event + 1]]

    @cached_property
    def _every_id(self) -> list[SubscriptionId]:
        """The ids of all events together: those of a few take nearly as long."""
        return self._named(self._numbers)

    def _named(self, numbers: Int32) -> list[SubscriptionId]:
        found: list[SubscriptionId] = numbers.tolist()
        return found if self._ids is None else self._ids.take(numbers)

    @cached_property
    def _starts(self) -> list[int]:
        """Where the matches of each event begin in ``_numbers``; [] if there are too many."""
        matches = self.matches
        set_starts = matches.set_starts
        sizes = set_starts[matches.set_ids + np.int64(1)] - set_starts[matches.set_ids]
        if len(matches.sliced) or sizes.sum() > max(_WORTH_LISTING, len(self)):
            return []
        events, self._numbers = matches.pairs(0, len(self))
        freeze(self._numbers)
        starts: list[int] = np.searchsorted(events, np.arange(len(self) + 1)).tolist()
        return starts

    def lists(self) -> Iterator[list[int]]:
        """The matches of every event; an event in error has none."""
        if self._starts:
            every = self._numbers.tolist()
            yield from (every[start:end] for start, end in pairwise(self._starts))
        else:
            yield from (self.matches.numbers(event).tolist() for event in range(len(self)))


def unread(line: int, error: EventError) -> EventAnswers:
    """The error of a line or row that could not be read, as answers of one event."""
    return EventAnswers(match_set([_NO_NUMBERS], {}), {0: error}, None, np.array([line]))
