"""Segments of event subscriptions: what each was compiled to, and what several say of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, get_args

import numpy as np

from tamis.core.arrays import Int32, Int64, distinct, starts_of
from tamis.core.index.columns import Ids
from tamis.core.index.matchset import MatchSet
from tamis.core.index.segments import Segment, SnapshotIds
from tamis.events.join import InterfaceNumbers
from tamis.events.model import By, EventBatch, FilterTable, Owners
from tamis.events.planner import Engine, Searcher
from tamis.events.subscriptions import EventSubscriptions


class EventProgram:
    """Some subscriptions and what they were compiled to: immutable, and shared by threads."""

    def __init__(self, subscriptions: EventSubscriptions, engine: Engine) -> None:
        self.subscriptions = subscriptions
        self._engine = engine
        self._program = engine.compile(subscriptions.table)
        self._owners: dict[By, Owners] = {}
        self._idle: dict[By, list[Searcher]] = {by: [] for by in get_args(By)}

    @property
    def ids(self) -> Ids:
        """The ids of the subscriptions."""
        return self.subscriptions.ids

    def memory_usage(self) -> dict[str, int]:
        """Bytes: of the "program", and of the "work" that threads do not use now."""
        idle = [searcher for found in self._idle.values() for searcher in list(found)]
        work = sum(searcher.memory_usage() for searcher in idle)
        return {"program": self._program.memory_usage(), "work": work}

    def match(self, batch: EventBatch, by: By) -> MatchSet:
        """The matches of events that are encoded for the names of the table."""
        with self._searcher(by) as searcher:
            return searcher.match(batch)

    @contextmanager
    def _searcher(self, by: By) -> Iterator[Searcher]:
        """A searcher for one thread; one that raises is not used again."""
        try:
            searcher = self._idle[by].pop()
        except IndexError:
            if by not in self._owners:
                self._owners[by] = self.subscriptions.table.owners(by)
            searcher = self._engine.searcher(self._program, self._owners[by], 1)
        yield searcher
        self._idle[by].append(searcher)


class Segmented:
    """Segments whose events are encoded for the names of all of them.

    Args:
        names: of which each segment knows some, or all.

    Attributes:
        ids: of the subscriptions, by their numbers among those of all segments.
    """

    def __init__(self, segments: Sequence[Segment[EventProgram]], names: Sequence[str]) -> None:
        self._segments = segments
        self.ids = SnapshotIds(segments)
        tables = [segment.compiled.subscriptions.table for segment in segments]
        self._filters = np.cumsum([0, *(table.filters for table in tables)])
        self._names: list[Int32 | None] = []  # the number of each name in a segment, or -1
        for table in tables:
            known = {name: number for number, name in enumerate(table.names)}
            numbers = np.array([known.get(name, -1) for name in names], np.int32)
            is_same = np.array_equal(numbers, np.arange(len(names)))
            self._names.append(None if is_same else numbers)

    @property
    def interface_ids(self) -> Ids | SnapshotIds:
        """The ids of the interfaces, by their numbers among those of all segments."""
        return self.ids if self._interfaces is None else self._interfaces[0]

    @cached_property
    def _interfaces(self) -> tuple[Ids, list[Int64]] | None:
        """The ids of the interfaces, and of each segment their numbers; None: each has its own."""
        every = [segment.compiled.subscriptions for segment in self._segments]
        if all(one.interface_ids is one.ids for one in every):
            return None
        numbers = InterfaceNumbers()
        found: list[Int64] = []
        for segment, one in zip(self._segments, every, strict=True):
            own, firsts = np.unique(one.table.interfaces[segment.left()], return_index=True)
            met = own[np.argsort(firsts)]
            own_numbers = np.full(one.table.interface_count, -1)
            own_numbers[met] = numbers.of(one.interface_ids.take(met))
            found.append(own_numbers)
        return numbers.ids(), found

    def match(self, batch: EventBatch, by: By) -> MatchSet:
        """What matches, by numbers among those of all segments."""
        keys = [np.zeros(0, np.int64)]
        for index, numbers in enumerate(self._names):
            known = batch if numbers is None else _within(batch, numbers)
            events, found = self._matches(index, known, by)
            keys.append((events << 32) | found)
        every = distinct(np.concatenate(keys))
        starts = starts_of(np.bincount(every >> 32, minlength=batch.events))
        members = every & 0xFFFFFFFF
        used, sets = np.unique(members, return_inverse=True)
        set_starts = np.arange(len(used) + 1)
        return MatchSet(starts, sets.astype(np.int32), set_starts, used.astype(np.int32))

    def _matches(self, index: int, batch: EventBatch, by: By) -> tuple[Int64, Int64]:
        """The event and the number of each match of a segment."""
        segment = self._segments[index]
        one = segment.compiled.subscriptions
        has_interfaces = by == "interface" and self._interfaces is not None
        is_removed = segment.is_removed
        asked: By = "subscription"
        if by == "filter" or (has_interfaces and is_removed is None):
            asked = by
        events, found = segment.compiled.match(batch, asked).pairs(0, batch.events)
        numbers = found.astype(np.int64)
        if is_removed is not None:
            is_left = ~is_removed[one.table.subscriptions[found] if by == "filter" else found]
            events, numbers = events[is_left], numbers[is_left]
        if by == "filter":
            return events, numbers + self._filters[index]
        if not has_interfaces or self._interfaces is None:
            return events, numbers + self.ids.firsts[index]
        interfaces = numbers if asked == "interface" else one.table.interfaces[numbers]
        return events, self._interfaces[1][index][interfaces]


def names_left(segment: Segment[Any]) -> Sequence[str]:
    """The names of attributes that subscriptions of a segment have which are there."""
    table: FilterTable = segment.compiled.subscriptions.table
    if segment.is_removed is None:
        return table.names
    is_left = np.repeat(~segment.is_removed[table.subscriptions], np.diff(table.starts))
    used = np.bincount(table.constraint_names[is_left], minlength=len(table.names))
    return [table.names[number] for number in np.flatnonzero(used).tolist()]


def _within(batch: EventBatch, numbers: Int32) -> EventBatch:
    """The same events by other numbers of names, without attributes whose names have none."""
    names = numbers[batch.names]
    is_known = names >= 0
    if is_known.all():
        return batch._replace(names=names)
    owners = np.repeat(np.arange(batch.events), np.diff(batch.event_starts))[is_known]
    return batch._replace(
        event_starts=starts_of(np.bincount(owners, minlength=batch.events)),
        names=names[is_known],
        kinds=batch.kinds[is_known],
        values=batch.values[is_known],
    )
