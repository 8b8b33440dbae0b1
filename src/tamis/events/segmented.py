"""Segments of event subscriptions: what each was compiled to, and what several say of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from threading import Lock
from typing import Any, get_args

import numpy as np

from tamis.core.arrays import Int32, starts_of
from tamis.core.index.columns import Ids
from tamis.core.index.matches import Listing, Subscribers
from tamis.core.index.matchset import MatchSet
from tamis.core.index.segments import Segment, SnapshotIds
from tamis.core.limits import Limits
from tamis.events.encode import Encoder
from tamis.events.join import InterfaceNumbers
from tamis.events.model import FIELD, By, EventBatch, FilterTable, Owners
from tamis.events.planner import Engine, Searcher
from tamis.events.reader import OneLine
from tamis.events.residual import ResidualSearcher, Residue
from tamis.events.subscriptions import EventSubscriptions, singular_subscriptions


class EventProgram:
    """Some subscriptions and what they were compiled to: immutable, and shared by threads."""

    def __init__(self, subscriptions: EventSubscriptions, engine: Engine) -> None:
        self.subscriptions = subscriptions
        self._engine = engine
        table = subscriptions.table
        self._residue = None if engine.is_whole else Residue.of(table)
        self._program = engine.compile(table if self._residue is None else self._residue.indexed)
        self._owners: dict[By, Owners] = {}
        self._idle: dict[By, list[Searcher]] = {by: [] for by in get_args(By)}
        self._singular: EventProgram | None = None
        self._lock = Lock()

    @property
    def ids(self) -> Ids:
        """The ids of the subscriptions."""
        return self.subscriptions.ids

    def singular(self, limits: Limits) -> EventProgram:
        """The same for events without lists where ``[]`` asks for them; itself, if that is it."""
        with self._lock:  # so that one thread compiles it
            if self._singular is None:
                own = singular_subscriptions(self.subscriptions, limits)
                self._singular = self if own is None else EventProgram(own, self._engine)
            return self._singular

    def memory_usage(self) -> dict[str, int]:
        """Bytes: of the "program", and of the "work" that threads do not use now."""
        idle = [searcher for found in self._idle.values() for searcher in list(found)]
        work = sum(searcher.memory_usage() for searcher in idle)
        found = {"program": self._program.memory_usage(), "work": work}
        if self._singular not in (None, self):
            own = self._singular.memory_usage()
            found = {part: size + own[part] for part, size in found.items()}
        return found

    def match(self, batch: EventBatch, by: By) -> MatchSet:
        """The matches of events that are encoded for the names of the table."""
        searcher = self.take_searcher(by)
        matches = searcher.match(batch)
        self.put_back(searcher, by)  # one that raises is not used again
        return matches

    def take_searcher(self, by: By) -> Searcher:
        """A searcher for one thread."""
        try:
            return self._idle[by].pop()
        except IndexError:
            table = self.subscriptions.table
            if by not in self._owners:
                self._owners[by] = table.owners(by)
            if self._residue is None:
                return self._engine.searcher(self._program, self._owners[by], 1)
            owners = self._residue.indexed.owners("filter")
            every = self._engine.searcher(self._program, owners, 1)
            return ResidualSearcher(every, self._residue, self._owners[by])

    def put_back(self, searcher: Searcher, by: By) -> None:
        """Have a searcher used again."""
        self._idle[by].append(searcher)


class Segmented:
    """Segments whose events are encoded for the names of all of them.

    Args:
        names: of which each segment knows some, or all.
        version: of the live set.

    Attributes:
        ids: of the subscriptions, by their numbers among those of all segments.
    """

    def __init__(
        self, segments: Sequence[Segment[EventProgram]], names: Sequence[str], version: int
    ) -> None:
        self._segments, self._version = segments, version
        is_whole = len(segments) == 1 and segments[0].is_removed is None
        self.ids = segments[0].compiled.ids if is_whole else SnapshotIds(segments)
        self._names: list[Int32 | None] = []  # the number of each name in a segment, or -1
        for segment in segments:
            own = segment.compiled.subscriptions.table.names
            known = {name: number for number, name in enumerate(own)}
            numbers = np.array([known.get(name, -1) for name in names], np.int32)
            is_same = np.array_equal(numbers, np.arange(len(own)))
            self._names.append(None if is_same else numbers)
        self._listings: dict[By, Listing] = {}
        self._ones: list[OneLine] = []  # of threads that match none now

    @cached_property
    def interface_ids(self) -> Ids | SnapshotIds:
        """The ids of the interfaces, by their numbers among those of all segments."""
        return self.ids if self._interfaces is None else self._interfaces[0]

    @cached_property
    def _interfaces(self) -> tuple[Ids, list[Int32]] | None:
        """The ids of the interfaces, and of each segment their numbers; None: each has its own."""
        every = [segment.compiled.subscriptions for segment in self._segments]
        if all(one.interface_ids is one.ids for one in every):
            return None
        if len(every) == 1 and self._segments[0].is_removed is None:
            ids = every[0].interface_ids
            return ids, [np.arange(len(ids), dtype=np.int32)]
        numbers = InterfaceNumbers()
        found: list[Int32] = []
        for segment, one in zip(self._segments, every, strict=True):
            own, firsts = np.unique(one.table.interfaces[segment.left()], return_index=True)
            met = own[np.argsort(firsts)]
            own_numbers = np.full(one.table.interface_count, -1, np.int32)
            own_numbers[met] = numbers.of(one.interface_ids.take(met))
            found.append(own_numbers)
        return numbers.ids(), found

    def match(self, batch: EventBatch, by: By) -> tuple[Listing, list[MatchSet]]:
        """What each segment found, and how it is listed."""
        found = []
        for segment, numbers in zip(self._segments, self._names, strict=True):
            known = batch if numbers is None else _within(batch, numbers)
            found.append(segment.compiled.match(known, self._asked(segment, by)))
        return self.listing(by), found

    def match_one(self, event: Mapping[str, Any], encoder: Encoder) -> Int32 | None:
        """The subscriptions that match an event, if kernels alone can find them."""
        if any(numbers is not None for numbers in self._names):
            return None
        try:
            one = self._ones.pop()
        except IndexError:
            one = encoder.reader.one()
        found = None
        if one.take(event):
            every = [segment.compiled for segment in self._segments]
            taken = [program.take_searcher("subscription") for program in every]
            found = self.listing("subscription").list_one(taken, one)
            for program, searcher in zip(every, taken, strict=True):
                program.put_back(searcher, "subscription")
        self._ones.append(one)
        return found

    def listing(self, by: By) -> Listing:
        """How filters, subscriptions or interfaces of all segments are listed."""
        if by not in self._listings:
            self._listings[by] = self._listed(by)
        return self._listings[by]

    def _asked(self, segment: Segment[EventProgram], by: By) -> By:
        """What the matches of a segment are asked by: interfaces lose their subscriptions."""
        if by != "interface":
            return by
        is_own = self._interfaces is None or segment.is_removed is not None
        return "subscription" if is_own else "interface"

    def _listed(self, by: By) -> Listing:
        if by == "interface" and self._interfaces is not None:
            ids, numbers = self._interfaces
            owned = list(map(self._with_interfaces, self._segments, numbers))
            return Listing(owned, ids, len(ids), self._version)
        first, owned = 0, []
        for segment in self._segments:
            table, is_removed = segment.compiled.subscriptions.table, segment.is_removed
            if by == "filter" and is_removed is not None:
                is_removed = is_removed[table.subscriptions]
            owned.append(Subscribers().within(first, is_removed))
            first += table.filters if by == "filter" else len(segment.compiled.ids)
        return Listing(owned, None if by == "filter" else self.ids, first, self._version)

    def _with_interfaces(self, segment: Segment[EventProgram], numbers: Int32) -> Subscribers:
        """The interface of each subscription that is there, or just of each interface."""
        if segment.is_removed is None:
            return Subscribers(np.arange(len(numbers) + 1), numbers)
        interfaces = numbers[segment.compiled.subscriptions.table.interfaces]
        is_left = ~segment.is_removed
        return Subscribers(starts_of(is_left), interfaces[is_left])


def names_left(segment: Segment[Any]) -> Sequence[str]:
    """The names of attributes that subscriptions of a segment have which are there."""
    table: FilterTable = segment.compiled.subscriptions.table
    if segment.is_removed is None:
        return table.names
    is_left = np.ones(table.filters + table.conditions, np.bool_)
    is_left[: table.filters] = ~segment.is_removed[table.subscriptions]
    of_left = np.repeat(is_left, np.diff(table.starts))
    fields = table.values[of_left & (table.kinds == FIELD)]
    names = np.concatenate([table.constraint_names[of_left], fields])
    used = np.bincount(names, minlength=len(table.names))
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
