"""``OcmSearcher``: tables at work on the cores of a processor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tamis.core.arrays import Int32, Int64, distinct, freeze
from tamis.core.index.matchset import MatchSet
from tamis.core.kernel.record import register
from tamis.core.threads import WorkerPool, check_threads
from tamis.events.model import EventBatch, Owners
from tamis_papers.pcm.kernels.matching import match_events
from tamis_papers.pcm.layout import (
    ABORT,
    ARE_INTERFACES,
    ARRIVED,
    BASE_STEP,
    CHOSEN,
    EVENT,
    EVENT_END,
    EVENTS,
    EVENTS_BEFORE,
    FOUND_COUNT,
    FULL,
    IN_STEP,
    INPUT,
    LEFT,
    LINES,
    MEETING,
    MEETING_SIZE,
    NEED,
    OWNED,
    PART,
    PARTS,
    SHARE,
    STATE_SIZE,
    STOP,
    TABLE_COUNT,
    TABLES,
    WORK,
    Events,
    Input,
    Meeting,
    Owned,
    Work,
)
from tamis_papers.pcm.tables import PcmProgram

_SHARE = 16
"""Events that a thread takes at once, where threads share events."""


class OcmSearcher:
    """Matches batches with the tables of a program, in threads of its own.

    Attributes:
        program: what it matches with.
    """

    def __init__(self, program: PcmProgram, owners: Owners, threads: int) -> None:
        self.program = program
        self._owned = Owned(
            owner_of=owners.of[program.numbers], always=distinct(owners.of[program.empty])
        )
        self._singletons = singletons(owners.total)
        self._events_before = 0
        self._need = len(self._owned.owner_of) + len(self._owned.always)
        if owners.are_interfaces:
            self._need = owners.total
        self._meeting = Meeting(np.zeros(MEETING_SIZE, np.int64))
        self._in_step = program.options.parallel == "tables"
        shared = _new_work(program, owners)
        self._threads = [
            _Part(shared if self._in_step or number == 0 else _new_work(program, owners))
            for number in range(check_threads(threads))
        ]
        self._pool = WorkerPool(threads)
        for number, part in enumerate(self._threads):
            state = part.state
            state[IN_STEP] = self._in_step
            state[PART], state[PARTS] = (number, threads) if self._in_step else (0, 1)
            state[ARE_INTERFACES] = owners.are_interfaces
            state[TABLE_COUNT] = program.tables.total
            state[SHARE] = _SHARE
            state[BASE_STEP] = program.size_max + 1
            state[NEED] = self._need
            register(state, TABLES.vector_bits, program.tables)
            register(state, OWNED.owner_of, self._owned)
            register(state, MEETING.words, self._meeting)

    def match(self, batch: EventBatch) -> MatchSet:
        """The owners of filters that match each event."""
        events = events_of(batch)
        for part in self._threads:
            input = room_for_lines(batch)
            part.begin(events, input, self._events_before, self._need, self._in_step)
        words = self._meeting.words
        if words[ABORT]:  # what was marked for an event that was not done
            for part in self._threads:
                part.work.interface_words[:] = 0
        words[:] = 0
        words[STOP] = -1
        self._events_before += batch.events
        parts = self._threads
        while parts:
            calls = [partial(match_events, part.state) for part in parts]
            statuses = self._pool.run(calls, self._abort)
            is_full = FULL in statuses
            parts = [
                part
                for part, status in zip(parts, statuses, strict=True)
                if status == FULL or (is_full and self._in_step)
            ]
            for part in parts:
                part.make_room(self._need)
            words[ARRIVED], words[STOP] = 0, -1
        counts = np.array([part.work.found_counts for part in self._threads])
        found = [part.taken() for part in self._threads]
        starts, set_ids = joined(counts, found)
        matches = self._singletons._replace(document_starts=starts, set_ids=set_ids)
        freeze(*matches[:5])
        return matches

    def _abort(self) -> None:
        """Let no thread wait for others."""
        self._meeting.words[ABORT] = 1

    def memory_usage(self) -> int:
        """Bytes of the room for work."""
        arrays = {
            id(array): array.nbytes
            for part in self._threads
            for array in (*part.work, part.state)
            if array.base is None
        }
        own = (*self._owned, *self._singletons[:4], *self._meeting)
        return sum(arrays.values()) + sum(array.nbytes for array in own)


class _Part:
    """What one thread needs.

    Attributes:
        state: where the kernel finds it.
        work: room for work; that for what is found is made for each batch.
    """

    def __init__(self, work: Work) -> None:
        self.work = work
        self.state = np.zeros(STATE_SIZE, np.int64)

    def begin(
        self, events: Events, input: Input, events_before: int, need: int, in_step: bool
    ) -> None:
        """Prepare for a batch."""
        count = len(events.is_error)
        state = self.state
        state[EVENT] = state[FOUND_COUNT] = 0
        state[EVENT_END] = count if in_step else 0
        state[EVENTS_BEFORE] = events_before + 1  # the base of none is 0, as counters are at first
        self._registered = events, input
        self.work = self.work._replace(
            found=np.empty(3 * need + count, np.int32), found_counts=np.zeros(count, np.int32)
        )
        register(state, INPUT.attributes, input)
        register(state, EVENTS.event_starts, events)
        register(state, WORK.filters_count, self.work)

    def make_room(self, need: int) -> None:
        """Make the room for what is found larger, unless there is enough."""
        count, before = int(self.state[FOUND_COUNT]), self.work.found
        if count + 2 * need > len(before):
            found = np.empty(2 * len(before) + 2 * need, np.int32)
            found[:count] = before[:count]
            self.work = self.work._replace(found=found)
            register(self.state, WORK.filters_count, self.work)

    def taken(self) -> Int32:
        """What was found; the room for it goes, and the batch."""
        found = self.work.found[: int(self.state[FOUND_COUNT])].copy()
        none = np.zeros(0, np.int32)
        self.work = self.work._replace(found=none, found_counts=none)
        del self._registered
        return found


def joined(counts: Int32, found: Sequence[Int32]) -> tuple[Int64, Int32]:
    """What threads found, by events: where those of each event begin, and then all.

    Args:
        counts: int32[threads, events]; how many each thread found of each event.
        found: what each found, in the order of events.

    >>> joined(np.array([[1, 0], [1, 1]], np.int32), [np.array([7]), np.array([8, 9])])
    (array([0, 2, 3]), array([7, 8, 9], dtype=int32))
    """
    starts = np.zeros(counts.shape[1] + 1, np.int64)
    np.cumsum(counts.sum(axis=0, dtype=np.int64), out=starts[1:])
    if len(found) == 1:
        return starts, found[0]
    owners = np.empty(starts[-1], np.int32)
    at = starts[:-1].copy()
    for own_counts, own in zip(counts, found, strict=True):
        before = np.cumsum(own_counts, dtype=np.int64) - own_counts
        owners[np.arange(len(own)) + np.repeat(at - before, own_counts)] = own
        at += own_counts
    return starts, owners


def singletons(owners: int) -> MatchSet:
    """A set for each owner, which no event has yet."""
    return MatchSet(
        document_starts=np.zeros(1, np.int64),
        set_ids=np.zeros(0, np.int32),
        set_starts=np.arange(owners + 1, dtype=np.int64),
        members=np.arange(owners, dtype=np.int32),
        sliced=np.zeros(0, np.int32),
        subscribers=None,
        errors={},
    )


def events_of(batch: EventBatch) -> Events:
    """A batch as kernels read it."""
    is_error = np.zeros(batch.events, np.uint8)
    is_error[list(batch.errors)] = 1
    return Events(*batch[:6], is_error=is_error)


def room_for_lines(batch: EventBatch) -> Input:
    """Room for lines of ``Input``: those of any one table at least."""
    lines = max(int(np.diff(batch.event_starts).max(initial=0)), LINES)
    return Input(
        attributes=np.zeros(lines, np.int32),
        starts=np.zeros(lines, np.int32),
        ends=np.zeros(lines, np.int32),
        chosen=np.zeros(2 * CHOSEN, np.uint64),
        of_bit=np.zeros(64, np.int32),
        next_of_bit=np.zeros(lines, np.int32),
        left=np.zeros(LEFT, np.int32),
        left_of=np.zeros(LEFT, np.int32),
    )


def _new_work(program: PcmProgram, owners: Owners) -> Work:
    """Room for work. In step, all threads share the counters and interfaces."""
    words = np.zeros(2 * -(-owners.total // 8) if owners.are_interfaces else 0, np.uint64)
    none = np.zeros(0, np.int32)
    return Work(
        filters_count=np.zeros(len(program.tables.sizes), np.int64),
        interfaces=words.view(np.uint8),
        interface_words=words,
        found=none,
        found_counts=none,
    )
