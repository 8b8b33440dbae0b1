"""``SignatureSearcher``: a program at work."""

from __future__ import annotations

from bisect import bisect
from functools import partial
from itertools import pairwise
from math import comb

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64, distinct, freeze
from tamis.core.index.matchset import MatchSet
from tamis.core.kernel.record import register
from tamis.core.threads import WorkerPool
from tamis.events.engines.signature.kernels.matching import match_events
from tamis.events.engines.signature.layout import (
    ABSENT,
    ALWAYS,
    ARE_INTERFACES,
    BLOOM_SHIFT,
    CANDIDATES,
    CELLS,
    END,
    ENUMERATED_KEYS_MAX,
    ENUMERATED_MAX,
    EVENT,
    EVENTS,
    FEW_KEYS,
    FOUND_COUNT,
    OWNERS,
    RANKS,
    REPORTED,
    SIZE_MAX,
    STATE_SIZE,
    TABLE_SHIFT,
    TESTS,
    TILE,
    WORK,
    Events,
    Reported,
    Work,
)
from tamis.events.engines.signature.program import SignatureProgram
from tamis.events.model import EventBatch, Owners

_FOUND_AT_FIRST, _FOUND_KEPT_MAX = 1 << 12, 1 << 22
_KEYS_AT_FIRST = 1 << 10
_NOTHING = np.zeros(0, np.int32)
freeze(_NOTHING)
_SHARE_MIN = 1 << 12
"""So many events at least are worth a thread of their own."""


class SignatureSearcher:
    """Matches batches, in several threads where there are enough events."""

    def __init__(self, program: SignatureProgram, owners: Owners, threads: int) -> None:
        self.program = program
        self._owners = owners
        self._reported = _reported(program, owners)
        self._workers = [_Worker(program, owners, self._reported)]
        self._threads = threads
        self._pool = WorkerPool(threads)
        self._sets = self._reported[:2]
        if owners.are_interfaces:  # they are reported themselves
            self._sets = np.arange(owners.total + 1), np.arange(owners.total, dtype=np.int32)
        freeze(*self._sets)

    def match(self, batch: EventBatch) -> MatchSet:
        """The owners of filters that match each event."""
        given = _events(batch)
        shares = max(1, min(self._threads, batch.events // _SHARE_MIN))
        if shares == 1:  # perhaps a single event, for which each call of NumPy counts
            starts, found = self._workers[0].match(given, 0, batch.events)
        else:
            starts, found = self._match_in_threads(given, batch.events, shares)
        freeze(starts, found)
        return MatchSet(starts, found, *self._sets, _NOTHING, None, {})

    def _match_in_threads(self, given: Events, events: int, shares: int) -> tuple[Int64, Int32]:
        while len(self._workers) < shares:
            self._workers.append(_Worker(self.program, self._owners, self._reported))
        bounds = [events * share // shares for share in range(shares + 1)]
        parts = self._pool.run(
            [
                partial(worker.match, given, start, end)
                for worker, (start, end) in zip(self._workers, pairwise(bounds), strict=False)
            ]
        )
        starts = np.zeros(events + 1, np.int64)
        np.cumsum(np.concatenate([np.diff(starts) for starts, _ in parts]), out=starts[1:])
        return starts, np.concatenate([found for _, found in parts])

    def memory_usage(self) -> int:
        """Bytes of the room for work."""
        own = sum(worker.memory_usage() for worker in self._workers)
        return own + sum(array.nbytes for array in self._reported)


class _Worker:
    """The room that one thread works in."""

    def __init__(self, program: SignatureProgram, owners: Owners, reported: Reported) -> None:
        self._work = _new_work(program, owners)
        self._state = state = np.zeros(STATE_SIZE, np.int64)
        state[ALWAYS] = program.always
        state[ARE_INTERFACES] = owners.are_interfaces
        state[OWNERS] = len(distinct(reported.numbers))  # of filters that can match
        state[TABLE_SHIFT] = 64 - (len(program.cells.table) - 1).bit_length()
        state[BLOOM_SHIFT] = 64 - (len(program.cells.bloom) - 1).bit_length()
        state[SIZE_MAX] = len(program.sizes) - 1
        register(state, RANKS.key_of, program.ranks)
        register(state, CELLS.arena, program.cells)
        register(state, TESTS.filters, program.tests)
        register(state, REPORTED.starts, reported)
        register(state, WORK.found_starts, self._work)

    def match(self, events: Events, start: int, end: int) -> tuple[Int64, Int32]:
        """What some events match: where that of each begins, and numbers."""
        state = self._state
        self._make_room(events, end)
        state[EVENT], state[END], state[FOUND_COUNT] = start, end, 0
        register(state, EVENTS.event_starts, events)
        while match_events(state):
            found = np.empty(2 * len(self._work.found), np.int32)
            found[: state[FOUND_COUNT]] = self._work.found[: state[FOUND_COUNT]]
            self._replace(self._work._replace(found=found))
        starts = self._work.found_starts[start : end + 1].copy()
        starts[0] = 0
        found = self._work.found[: state[FOUND_COUNT]]
        if len(self._work.found) > _FOUND_KEPT_MAX:  # it is given away
            self._replace(self._work._replace(found=np.zeros(_FOUND_AT_FIRST, np.int32)))
            return starts, found
        return starts, found.copy()

    def _make_room(self, events: Events, end: int) -> None:
        work = self._work
        if len(work.found_starts) <= end:
            work = work._replace(found_starts=np.zeros(2 * end + 1, np.int64))
        if len(work.tile_keys) < 2 * len(events.names):
            longest = 2 * int(np.diff(events.event_starts).max(initial=0))
            if len(work.tile_keys) < longest:
                work = work._replace(
                    tile_keys=np.zeros(longest, np.int32),
                    tile_ranks=np.zeros(longest, np.int32),
                    tile_places=np.zeros(longest, np.int64),
                )
        if work is not self._work:
            self._replace(work)

    def _replace(self, work: Work) -> None:
        self._work = work
        register(self._state, WORK.found_starts, work)

    def memory_usage(self) -> int:
        return sum(array.nbytes for array in self._work)


def _new_work(program: SignatureProgram, owners: Owners) -> Work:
    size_max = len(program.sizes) - 1
    subsets = [
        min(sum(comb(keys, size) for size in range(min(keys, size_max) + 1)), 2 * ENUMERATED_MAX)
        for keys in range(ENUMERATED_KEYS_MAX)
    ]
    few_subsets, few_counts = _few_subsets(program, subsets)
    return Work(
        found_starts=np.zeros(1, np.int64),
        found=np.zeros(_FOUND_AT_FIRST, np.int32),
        ranks=np.full(len(program.ranks.modes), ABSENT, np.int32),
        tile_starts=np.zeros(TILE + 1, np.int64),
        tile_keys=np.zeros(_KEYS_AT_FIRST, np.int32),
        tile_ranks=np.zeros(_KEYS_AT_FIRST, np.int32),
        tile_places=np.zeros(_KEYS_AT_FIRST, np.int64),
        candidate_starts=np.zeros(TILE + 1, np.int64),
        candidates=np.zeros(CANDIDATES + 1, np.uint64),
        found_cells=np.zeros(CANDIDATES, np.int32),
        is_wide=np.zeros(TILE, np.uint8),
        sums=np.zeros(1 << FEW_KEYS, np.uint64),
        chosen=np.zeros(ENUMERATED_KEYS_MAX + 1, np.int32),
        few_subsets=few_subsets,
        few_counts=few_counts,
        own_ranks=np.zeros(max(size_max, 1), np.int32),
        sizes=program.sizes.astype(np.uint8),
        subsets=np.array([*subsets, 2 * ENUMERATED_MAX], np.int64),
        reported_in=np.zeros(owners.total if owners.are_interfaces else 0, np.int64),
    )


def _few_subsets(program: SignatureProgram, subsets: list[int]) -> tuple[Bytes, Int64]:
    """``Work.few_subsets`` and ``few_counts``, where there are so many subsets of so many keys."""
    masks = range(1, 1 << FEW_KEYS)
    own = [mask for mask in masks if program.sizes[mask.bit_count() :][:1].any()]
    counts = []
    for keys in range(FEW_KEYS + 1):
        count = bisect(own, (1 << keys) - 1)
        pays = 1 << keys <= 2 * subsets[keys]
        counts.append(count if pays or not count else -1)
    return np.array(own, np.uint8), np.array(counts, np.int64)


def _events(batch: EventBatch) -> Events:
    is_bad = np.zeros(batch.events, np.uint8)
    if batch.errors:
        is_bad[list(batch.errors)] = 1
    return Events(*batch[:6], is_bad)


def _reported(program: SignatureProgram, owners: Owners) -> Reported:
    """The owners of the filters that distinct filters stand for."""
    starts, numbers = program.member_starts, owners.of[program.members]
    if not owners.are_interfaces or not len(numbers):
        return Reported(starts, numbers, numbers[:0])
    least, greatest = (of.reduceat(numbers, starts[:-1]) for of in (np.minimum, np.maximum))
    only = np.where(least == greatest, least, -1).astype(np.int32)
    return Reported(starts, numbers, only)
