"""How many events are taken at a time, so that what they match stays bounded."""

from __future__ import annotations

MATCHES_MAX = 1 << 22
"""So many matches of one group of events are aimed at, at most."""
_AT_FIRST, _GROWTH = 64, 8


class Pace:
    """How many events the next group may have, by how much those before it matched.

    Several threads may share one: it is an estimate.

    Args:
        most: events of a group, at most.

    >>> pace = Pace(1_000)
    >>> pace.events
    64
    >>> pace.note(events=64, matches=64_000_000)  # each event matches a million filters
    >>> pace.events
    4
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.events = min(_AT_FIRST, most)

    def note(self, events: int, matches: int) -> None:
        """So many events have matched so much, all together."""
        fitting = MATCHES_MAX * max(events, 1) // max(matches, 1)
        self.events = max(1, min(fitting, _GROWTH * self.events, self._most))
