"""``OcmSearcher``: tables at work on the cores of a processor.

What CCM does on the processor: ``Input`` for the events of a batch, some at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tamis.core.arrays import Int32, Int64, distinct, freeze, starts_of
from tamis.core.index.matchset import MatchSet
from tamis.core.kernel.record import register
from tamis.core.kernel.state import State
from tamis.core.threads import WorkerPool, check_threads
from tamis.events.model import EventBatch, Owners
from tamis_papers.pcm import layout as at
from tamis_papers.pcm.kernels.match import match_events, prepare_events
from tamis_papers.pcm.program import PcmProgram, UInt64

# -- matching --------------------------------------------------------------------------------------


_SHARE = 16
"""Events that a thread takes at once, where threads share events."""


class OcmSearcher:
    """Matches batches with the tables of a program, in threads of its own.

    Attributes:
        program: what it matches with.
    """

    def __init__(self, program: PcmProgram, owners: Owners, threads: int) -> None:
        self.program = program
        self._owned = at.Owned(
            owner_of=owners.of[program.numbers], always=distinct(owners.of[program.empty])
        )
        self._singletons = singletons(owners.total)
        self._events_before = 0
        self._need = len(self._owned.owner_of) + len(self._owned.always)
        if owners.are_interfaces:
            self._need = owners.total
        self._meeting = at.Meeting(np.zeros(at.MEETING_SIZE, np.int64))
        self._in_step = program.options.parallel == "tables"
        shared = _new_work(program, owners)
        self._threads = [
            _Part(shared if self._in_step or number == 0 else _new_work(program, owners))
            for number in range(check_threads(threads))
        ]
        self._pool = WorkerPool(threads)
        for number, part in enumerate(self._threads):
            words = part.state.words
            words[at.IN_STEP] = self._in_step
            words[at.PART], words[at.PARTS] = (number, threads) if self._in_step else (0, 1)
            words[at.ARE_INTERFACES] = owners.are_interfaces
            words[at.TABLE_COUNT] = program.tables.total
            words[at.SHARE] = _SHARE
            words[at.BASE_STEP] = program.size_max + 1
            words[at.NEED] = self._need
            part.state.register(at.TABLES, program.tables)
            part.state.register(at.OWNED, self._owned)
            part.state.register(at.MEETING, self._meeting)

    def match(self, batch: EventBatch) -> MatchSet:
        """The owners of filters that match each event."""
        events = events_of(batch)
        for part in self._threads:
            input = room_for_lines(batch)
            part.begin(events, input, self._events_before, self._need, self._in_step)
        words = self._meeting.words
        if words[at.ABORT]:  # what was marked for an event that was not done
            for part in self._threads:
                part.state.arrays.interface_words[:] = 0
        words[:] = 0
        words[at.STOP] = -1
        self._events_before += batch.events
        parts = self._threads
        while parts:
            calls = [partial(match_events, part.state.words) for part in parts]
            statuses = self._pool.run(calls, self._abort)
            is_full = at.FULL in statuses
            parts = [
                part
                for part, status in zip(parts, statuses, strict=True)
                if status == at.FULL or (is_full and self._in_step)
            ]
            for part in parts:
                part.make_room(self._need)
            words[at.ARRIVED], words[at.STOP] = 0, -1
        counts = np.array([part.state.arrays.found_counts for part in self._threads])
        found = [part.taken() for part in self._threads]
        starts, set_ids = joined(counts, found)
        matches = self._singletons._replace(document_starts=starts, set_ids=set_ids)
        freeze(*matches[:5])
        return matches

    def _abort(self) -> None:
        """Let no thread wait for others."""
        self._meeting.words[at.ABORT] = 1

    def memory_usage(self) -> int:
        """Bytes of the room for work."""
        arrays = {
            id(array): array.nbytes
            for part in self._threads
            for array in (*part.state.arrays, part.state.words)
            if array.base is None
        }
        own = (*self._owned, *self._singletons[:4], *self._meeting)
        return sum(arrays.values()) + sum(array.nbytes for array in own)


class _Part:
    """The state of one thread; the arrays for what is found are made for each batch."""

    def __init__(self, work: at.Work) -> None:
        self.state = State(at.STATE_SIZE, at.WORK, work)

    def begin(
        self, events: at.Events, input: at.Input, events_before: int, need: int, in_step: bool
    ) -> None:
        """Prepare for a batch."""
        count = len(events.is_error)
        words = self.state.words
        words[at.EVENT] = words[at.FOUND_COUNT] = 0
        words[at.EVENT_END] = count if in_step else 0
        words[at.EVENTS_BEFORE] = events_before + 1  # the base of none is 0, as counters are first
        self.state.register(at.INPUT, input)
        self.state.register(at.EVENTS, events)
        self.state.replace(
            found=np.empty(3 * need + count, np.int32), found_counts=np.zeros(count, np.int32)
        )

    def make_room(self, need: int) -> None:
        """Make the room for what is found larger, unless there is enough."""
        while self.state.words[at.FOUND_COUNT] + 2 * need > len(self.state.arrays.found):
            self.state.grow("found")

    def taken(self) -> Int32:
        """What was found; the room for it goes."""
        found: Int32 = self.state.arrays.found[: self.state.words[at.FOUND_COUNT]].copy()
        none = np.zeros(0, np.int32)
        self.state.replace(found=none, found_counts=none)
        return found


def joined(counts: Int32, found: Sequence[Int32]) -> tuple[Int64, Int32]:
    """What threads found, by events: where those of each event begin, and then all.

    Args:
        counts: int32[threads, events]; how many each thread found of each event.
        found: what each found, in the order of events.

    >>> joined(np.array([[1, 0], [1, 1]], np.int32), [np.array([7]), np.array([8, 9])])
    (array([0, 2, 3]), array([7, 8, 9], dtype=int32))
    """
    starts = starts_of(counts.sum(axis=0, dtype=np.int64))
    if len(found) == 1:
        return starts, found[0]
    owners = np.empty(starts[-1], np.int32)
    position = starts[:-1].copy()
    for own_counts, own in zip(counts, found, strict=True):
        before = np.cumsum(own_counts, dtype=np.int64) - own_counts
        owners[np.arange(len(own)) + np.repeat(position - before, own_counts)] = own
        position += own_counts
    return starts, owners


def singletons(owners: int) -> MatchSet:
    """A set for each owner, which no event has yet."""
    return MatchSet(
        document_starts=np.zeros(1, np.int64),
        set_ids=np.zeros(0, np.int32),
        set_starts=np.arange(owners + 1, dtype=np.int64),
        members=np.arange(owners, dtype=np.int32),
    )


def events_of(batch: EventBatch) -> at.Events:
    """A batch as kernels read it."""
    is_error = np.zeros(batch.events, np.uint8)
    is_error[list(batch.errors)] = 1
    return at.Events(*batch[:6], is_error=is_error)


def room_for_lines(batch: EventBatch) -> at.Input:
    """Room for lines of ``Input``: those of any one table at least."""
    lines = max(int(np.diff(batch.event_starts).max(initial=0)), at.LINES)
    return at.Input(
        attributes=np.zeros(lines, np.int32),
        starts=np.zeros(lines, np.int32),
        ends=np.zeros(lines, np.int32),
        chosen=np.zeros(2 * at.CHOSEN, np.uint64),
        of_bit=np.zeros(64, np.int32),
        next_of_bit=np.zeros(lines, np.int32),
        left=np.zeros(at.LEFT, np.int32),
        left_of=np.zeros(at.LEFT, np.int32),
    )


def _new_work(program: PcmProgram, owners: Owners) -> at.Work:
    """Room for work. In step, all threads share the counters and interfaces."""
    words = np.zeros(2 * -(-owners.total // 8) if owners.are_interfaces else 0, np.uint64)
    none = np.zeros(0, np.int32)
    return at.Work(
        filters_count=np.zeros(len(program.tables.sizes), np.int64),
        interfaces=words.view(np.uint8),
        interface_words=words,
        found=none,
        found_counts=none,
    )


# -- CCM: events prepared for CUDA -----------------------------------------------------------------


class Preparation:
    """Prepares the events of one batch after the other.

    Args:
        program: its tables must stay alive, as arrays that kernels find by their addresses.
    """

    def __init__(self, program: PcmProgram) -> None:
        self._state = state = np.zeros(at.STATE_SIZE, np.int64)
        state[at.PARTS] = 1
        state[at.TABLE_COUNT] = program.tables.total
        register(state, at.TABLES.vector_bits, program.tables)

    def begin(self, batch: EventBatch) -> at.Events:
        """Begin with the first event of a batch."""
        self._events, self._input = events_of(batch), room_for_lines(batch)
        register(self._state, at.EVENTS.event_starts, self._events)
        register(self._state, at.INPUT.attributes, self._input)
        self._state[at.EVENT], self._state[at.EVENT_END] = 0, batch.events
        return self._events

    @property
    def event(self) -> int:
        """The next one; behind the last, how many there are."""
        return int(self._state[at.EVENT])

    @property
    def lines(self) -> int:
        """How many lines were prepared."""
        return int(self._state[at.PREPARED])

    @property
    def longest(self) -> int:
        """The most constraints that one of them asks about."""
        return int(self._state[at.LONGEST])

    def prepare(self, lines: Int64, blooms: UInt64) -> int:
        """Prepare the next events, as many as there is room for; how many: 0 if for none."""
        return int(prepare_events(self._state, lines, blooms))
