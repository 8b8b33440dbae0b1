"""How events are taken: in batches whose size fits how much they match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from tamis.core.threads import Flush
from tamis.events.checks import Part

GROUP_EVENTS, LINES_MAX = 1 << 10, 1 << 15
"""The events of a batch, at most: of mappings, of a file. Much of an engine's cost is per batch."""
MATCHES_MAX = 1 << 22
"""The matches of a batch that are aimed at, at most."""
_AT_FIRST, _GROWTH = 64, 8


class BatchSizer:
    """How many events the next batch may have, by how much those before it matched.

    Several threads may share one: it is an estimate.

    >>> sizer = BatchSizer(events_max=1_000)
    >>> sizer.events
    64
    >>> sizer.adapt(events=64, matches=64_000_000)  # each event matches a million filters
    >>> sizer.events
    4
    """

    def __init__(self, events_max: int) -> None:
        self._events_max = events_max
        self.events = min(_AT_FIRST, events_max)

    def adapt(self, events: int, matches: int) -> None:
        """So many events have had so many matches, all together."""
        fitting = MATCHES_MAX * max(events, 1) // max(matches, 1)
        self.events = max(1, min(fitting, _GROWTH * self.events, self._events_max))


def fewer_lines(found: Iterable[Part | Flush], sizer: BatchSizer) -> Iterator[Part | Flush]:
    """Parts of lines, divided where they have too many."""
    for part in found:
        if isinstance(part, Flush) or part.error is not None:
            yield part
            continue
        data, start, line = part.data, 0, part.line
        bytes_each = len(data) // max(1, line_count(data)) + 1
        while start < len(data):
            end = data.find(b"\n", min(start + sizer.events * bytes_each, len(data)) - 1) + 1
            end = end or len(data)
            piece = data[start:end]
            yield Part(piece, line)
            line += line_count(piece)
            start = end


def line_count(data: bytes) -> int:
    """The ends of lines in data: ``bytes.count`` takes as long as to read them."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))


def groups(events: Iterable[Mapping[str, Any]], sizer: BatchSizer) -> Iterator[Part]:
    """Events, many at a time; where taking one fails, those before it come first."""
    source = iter(events)
    group: list[Mapping[str, Any]] = []
    try:
        while True:
            group.extend(islice(source, sizer.events))
            if not group:
                return
            yield Part(group, 0)
            group = []
    except Exception:  # of the caller's iterator
        if group:
            yield Part(group, 0)
        raise
