"""``SffSearcher``: a program at work."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from tamis.core.arrays import Int32, Int64, distinct, freeze
from tamis.core.index.matchset import MatchSet
from tamis.core.kernel.state import State, zeros
from tamis.core.threads import WorkerPool
from tamis.events.model import EventBatch, Owners
from tamis_papers.sff import layout as at
from tamis_papers.sff.kernels import match_events
from tamis_papers.sff.program import SffProgram

_FOUND_AT_FIRST = 1 << 10


class SffSearcher:
    """Matches batches with the index of a program. It belongs to one thread at a time.

    Args:
        owners: those that are few have to be interfaces.
        threads: how many share the events of a batch; each has counters of its own.
    """

    def __init__(self, program: SffProgram, owners: Owners, threads: int) -> None:
        self.program = program
        reported = _reported(program, owners)
        self._workers = [_Worker(program, owners, reported) for _ in range(threads)]
        self._pool = WorkerPool(threads)
        # A set of each owner alone, and behind them one of all that are always found.
        self._set_starts = np.arange(owners.total + 2)
        self._set_starts[-1] += len(reported.always) - 1
        self._members = np.append(np.arange(owners.total, dtype=np.int32), reported.always)
        self._shared = (*reported, self._set_starts, self._members)
        freeze(*self._shared)

    def memory_usage(self) -> int:
        """Bytes of the room that all threads work in."""
        shared = sum(array.nbytes for array in self._shared)
        return shared + sum(worker.memory_usage() for worker in self._workers)

    def match(self, batch: EventBatch) -> MatchSet:
        """The owners of filters that match each event."""
        in_error = np.zeros(batch.events, np.uint8)
        in_error[list(batch.errors)] = 1
        events = at.Events(*batch[:6], in_error)
        starts, found = self._found(events)
        matches = MatchSet(
            document_starts=starts,
            set_ids=found,
            set_starts=self._set_starts,
            members=self._members,
        )
        freeze(*matches[:5])
        return matches

    def _found(self, events: at.Events) -> tuple[Int64, Int32]:
        """The sets that events found, and where those of each begin."""
        count = len(events.in_error)
        used = min(len(self._workers), count)
        if used <= 1:
            return self._workers[0].match(events, 0, count)
        bounds = [count * number // used for number in range(used + 1)]
        spans = list(pairwise(bounds))
        parts = self._pool.run(
            [
                partial(worker.match, events, first, end)
                for worker, (first, end) in zip(self._workers, spans, strict=False)
            ]
        )
        starts = np.zeros(count + 1, np.int64)
        before = 0
        for (first, end), (own_starts, own) in zip(spans, parts, strict=True):
            starts[first + 1 : end + 1] = own_starts[1:] + before
            before += len(own)
        return starts, np.concatenate([own for _, own in parts])


class _Worker:
    """Counters of one thread."""

    def __init__(self, program: SffProgram, owners: Owners, reported: at.Reported) -> None:
        places = len(program.filters)
        marked = owners.total if owners.are_interfaces else 0
        work = zeros(at.Work, _FOUND_AT_FIRST, counters=places, marked_in=marked, found_starts=1)
        self._state = State(at.STATE_SIZE, at.WORK, work)
        self.memory_usage = self._state.memory_usage
        words = self._state.words
        words[at.STEP] = program.size_max
        words[at.SHIFT] = program.shift
        words[at.PART_NODE] = program.part_node
        words[at.EXISTS_NODE] = program.exists_node
        words[at.PRUNES] = owners.are_interfaces
        words[at.OWNERS] = len(distinct(owners.of)) if owners.are_interfaces else 0
        words[at.ALWAYS] = owners.total if len(reported.always) else -1
        words[at.FOUND_MAX] = 1 + (owners.total if owners.are_interfaces else places)
        self._state.register(at.INDEX, program.constraints)
        self._state.register(at.REPORTED, reported)

    def match(self, events: at.Events, first: int, end: int) -> tuple[Int64, Int32]:
        """The sets that some events found, and where those of each begin."""
        state, words = self._state, self._state.words
        words[at.FIRST] = words[at.EVENT] = first
        words[at.END], words[at.FOUND_COUNT] = end, 0
        found_starts = np.zeros(end - first + 1, np.int64)
        state.replace(found_starts=found_starts)
        state.register(at.EVENTS, events)
        state.run(match_events)
        return found_starts, state.arrays.found[: words[at.FOUND_COUNT]].copy()


def _reported(program: SffProgram, owners: Owners) -> at.Reported:
    """The owners of filters by place."""
    of_places = owners.of[program.filters]
    of_blocks = np.zeros(0, np.int32)
    if owners.are_interfaces:
        of_blocks = of_places[:: 1 << program.shift].copy()
    return at.Reported(of_places, of_blocks, distinct(owners.of[program.always]))
