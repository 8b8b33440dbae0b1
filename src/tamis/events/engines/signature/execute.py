"""``SignatureSearcher`` matches batches of events with a program."""

from __future__ import annotations

from bisect import bisect
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64, distinct, freeze
from tamis.core.index.matchset import MatchSet
from tamis.core.kernel.state import State, bound, zeros
from tamis.events.engines.signature import program as at
from tamis.events.engines.signature.kernels.match import match_events, match_one
from tamis.events.engines.signature.program import Reported, SignatureProgram, Work
from tamis.events.kernels.values import Events
from tamis.events.model import EventBatch, Owners

if TYPE_CHECKING:  # the kernels are built without what reads events
    from tamis.events.reader import OneLine

_FOUND_AT_FIRST, _FOUND_KEPT_MAX = 1 << 12, 1 << 22
_KEYS_AT_FIRST = 1 << 10


class SignatureSearcher:
    """Matches batches, in one thread."""

    def __init__(self, program: SignatureProgram, owners: Owners, _threads: int) -> None:
        self._reported = reported = _reported(program, owners)
        self._sets = reported[:2]
        if owners.are_interfaces:  # they are reported themselves
            self._sets = np.arange(owners.total + 1), np.arange(owners.total, dtype=np.int32)
        freeze(*self._sets)
        self._state = state = State(at.STATE_SIZE, at.WORK, _new_work(program, owners))
        words = state.words
        words[at.ALWAYS] = program.always
        words[at.ARE_INTERFACES] = owners.are_interfaces
        words[at.OWNERS] = len(distinct(reported.numbers))  # of filters that can match
        words[at.TABLE_SHIFT] = 64 - (len(program.cells.table) - 1).bit_length()
        words[at.BLOOM_SHIFT] = 64 - (len(program.cells.bloom) - 1).bit_length()
        words[at.SIZE_MAX] = len(program.sizes) - 1
        state.register(at.RANKS, program.ranks)
        state.register(at.CELLS, program.cells)
        state.register(at.TESTS, program.tests)
        state.register(at.TEXTS, program.texts)
        words[at.TEXT_KEYS] = program.text_keys
        state.register(at.REPORTED, reported)
        self._match_one = bound(match_one, words)
        self._one: tuple[OneLine, Int64, int] | None = None  # what one event was matched with

    def match(self, batch: EventBatch) -> MatchSet:
        """The owners of filters that match each event."""
        starts, found = self._found(_events(batch))
        freeze(starts, found)
        return MatchSet(starts, found, *self._sets)

    def match_one(self, event: OneLine, listing: Int64, part: int) -> bool:
        """Have a part of a listing say what matches an event: whether it could.

        Args:
            listing: the state of ``tamis.core.index.kernels.list_one``.
            part: where its part begins.
        """
        one = self._one
        if one is None or one[0] is not event or one[1] is not listing or one[2] != part:
            if self._state.words[at.ARE_INTERFACES]:
                return False
            self._state.register(at.EVENTS, event.arrays)
            self._state.register(at.ONE, at.One(listing))
            self._state.words[at.PART] = part
            self._one = event, listing, part
        return not self._match_one()

    def _found(self, events: Events) -> tuple[Int64, Int32]:
        """The matches of all events: where those of each begin, and numbers."""
        state, words = self._state, self._state.words
        count = len(events.is_bad)
        if len(state.arrays.found_starts) <= count:  # for a single event, each call counts
            state.reserve(count + 1, "found_starts")
        most = 2 * len(events.names) + int(words[at.TEXT_KEYS])
        if len(state.arrays.tile_keys) < most:
            longest = 2 * int(np.diff(events.event_starts).max(initial=0))
            longest += int(words[at.TEXT_KEYS])
            state.reserve(longest, "tile_keys", "tile_ranks", "tile_attributes")
        words[at.EVENT], words[at.END], words[at.FOUND_COUNT] = 0, count, 0
        state.register(at.EVENTS, events)
        self._one = None
        state.run(match_events)
        starts = state.arrays.found_starts[: count + 1].copy()
        starts[0] = 0
        every = state.arrays.found
        found = every[: words[at.FOUND_COUNT]]
        if len(every) > _FOUND_KEPT_MAX:  # it is given away
            state.replace(found=np.zeros(_FOUND_AT_FIRST, np.int32))
            return starts, found
        return starts, found.copy()

    def memory_usage(self) -> int:
        """Bytes of the working memory."""
        return self._state.memory_usage() + sum(array.nbytes for array in self._reported)


def _new_work(program: SignatureProgram, owners: Owners) -> Work:
    size_max = len(program.sizes) - 1
    subsets = [
        min(sum(comb(keys, size) for size in range(min(keys, size_max) + 1)), 2 * at.ENUMERATED_MAX)
        for keys in range(at.ENUMERATED_KEYS_MAX)
    ]
    few_subsets, few_counts = _few_subsets(program, subsets)
    return zeros(
        Work,
        at.TILE + 1,
        found=_FOUND_AT_FIRST,
        ranks=np.full(len(program.ranks.modes), at.ABSENT, np.int32),
        tile_keys=_KEYS_AT_FIRST + program.text_keys,
        tile_ranks=_KEYS_AT_FIRST + program.text_keys,
        tile_attributes=_KEYS_AT_FIRST + program.text_keys,
        candidates=at.CANDIDATES + 1,
        found_cells=at.CANDIDATES,
        sums=1 << at.FEW_KEYS,
        chosen=at.ENUMERATED_KEYS_MAX + 1,
        few_subsets=few_subsets,
        few_counts=few_counts,
        own_ranks=max(size_max, 1),
        sizes=program.sizes.astype(np.uint8),
        subsets=np.array([*subsets, 2 * at.ENUMERATED_MAX], np.int64),
        reported_in=owners.total if owners.are_interfaces else 0,
        found_in=program.text_keys,
    )


def _few_subsets(program: SignatureProgram, subsets: list[int]) -> tuple[Bytes, Int64]:
    """``Work.few_subsets`` and ``few_counts``, from the number of subsets of so many keys."""
    masks = range(1, 1 << at.FEW_KEYS)
    own = [mask for mask in masks if program.sizes[mask.bit_count() :][:1].any()]
    counts = []
    for keys in range(at.FEW_KEYS + 1):
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
