"""The matches of a batch of events, and of each event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from types import MappingProxyType

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.errors import EventError
from tamis.core.index.matches import Listing, Matched, Matches
from tamis.core.index.matchset import MatchSet


class EventMatch(Matched[EventError]):
    """The matches of one event; indices and ids are made only when asked for.

    An event in error has ``error``, and raises it when its matches are asked for, so that nobody
    takes it for an event without matches.

    >>> import tamis
    >>> match = tamis.compile_events({"hot": "temp > 30", "cold": "temp < 5"}).match({"temp": 35})
    >>> bool(match), len(match), list(match)
    (True, 1, ['hot'])
    """

    __slots__ = ()

    _matches: EventMatches

    @property
    def line(self) -> int | None:
        """The line or row of the event, from 1; None where it does not come from a file."""
        lines = self._matches.lines
        return None if lines is None else int(lines[self._number])

    def __repr__(self) -> str:
        error = self.error
        return f"<EventMatch: {f'{len(self):,} matches' if error is None else error.code}>"


class EventMatches(Matches[EventError]):
    """The matches of a batch of events, by filter, subscription or interface.

    Attributes:
        lines: int64[]; the line or row of each event, or None where they have none.
    """

    def __init__(
        self,
        listing: Listing,
        found: Sequence[MatchSet],
        errors: Mapping[int, EventError] = MappingProxyType({}),
        lines: Int64 | None = None,
    ) -> None:
        super().__init__(listing, found, errors)
        self.lines = lines

    @classmethod
    def unread(cls, line: int, error: EventError) -> EventMatches:
        """The error of a line or row that could not be read, as matches of one event."""
        found = cls.of_error(error)
        found.lines = np.array([line])
        return found

    def number_rows(self, first: int) -> None:
        """Have the events be rows, from one on."""
        self.lines = np.arange(first, first + self.documents)
        self.errors = {
            event: type(error)(error.message, first + event, "row")
            for event, error in self.errors.items()
        }

    def __iter__(self) -> Iterator[EventMatch]:
        return map(EventMatch, repeat(self), range(self.documents))
