"""``PmaSearcher``: a program at work."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import freeze
from tamis.core.index.matchset import MatchSet, Which
from tamis.core.kernel.record import register
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.matching.filters import ElementLabels
from tamis_papers.pma.kernels.matching import match_documents
from tamis_papers.pma.kernels.multi import begin_all
from tamis_papers.pma.layout import (
    DOCUMENT,
    EVENTS,
    FILTERS,
    FOUND_COUNT,
    FULL_FOUND,
    HAS_MULTI,
    HAS_SINGLE,
    INSTANCES,
    IS_DYNAMIC,
    MOVES,
    MULTI,
    NO_INSTANCE,
    SINGLE,
    STATE_SIZE,
    WORK,
    Events,
    Work,
)
from tamis_papers.pma.program import PmaProgram

_DEPTH_AT_FIRST = 64


class PmaSearcher:
    """Matches batches with the automata of a program. It belongs to one thread at a time."""

    def __init__(self, program: PmaProgram) -> None:
        self.program = program
        self._labels = ElementLabels(program.filters.names)
        self._work = _new_work(program)
        self._state = state = np.zeros(STATE_SIZE, np.int64)
        state[FILTERS] = len(program.filters)
        state[HAS_SINGLE] = len(program.single.output) > 0
        state[HAS_MULTI] = len(program.multi.output) > 0
        state[IS_DYNAMIC] = program.options.outputs == "dynamic"
        register(state, SINGLE.full_goto, program.single)
        register(state, MULTI.full_goto, program.multi)
        register(state, INSTANCES.filter, program.instances)
        register(state, WORK.stack, self._work)
        if not state[HAS_SINGLE]:  # in two passes, only the candidates of a document take part
            begin_all(state)

    @property
    def moves(self) -> int:
        """How many edges and fail links were gone over so far, in all documents.

        With a full goto, as many as elements, in each pass.
        """
        return int(self._state[MOVES])

    def memory_usage(self) -> int:
        """Bytes of the room for work."""
        return sum(array.nbytes for array in self._work)

    def match(
        self, batch: DocumentBatch, vocabulary: Vocabulary, nodes: Which | None = None
    ) -> MatchSet:
        """Which queries are true of which documents; where they matched is not noted."""
        del nodes
        own, _ = self._labels.of(vocabulary)
        symbols = np.maximum(own, 0)  # those of no label share the one of "*", which filters lack
        events = Events(batch.document_starts, batch.tags, symbols)
        state = self._state
        state[DOCUMENT] = state[FOUND_COUNT] = 0
        filters = self.program.filters
        self._work = self._work._replace(
            found_starts=np.zeros(batch.documents + 1, np.int64),
            found=np.empty(len(filters) + 4 * batch.documents, np.int32),
        )
        register(state, EVENTS.document_starts, events)
        register(state, WORK.stack, self._work)
        while status := match_documents(state):
            self._make_room(status)
        count = int(state[FOUND_COUNT])
        matches = MatchSet(
            document_starts=self._work.found_starts,
            set_ids=self._work.found[:count].copy(),
            set_starts=filters.query_starts,
            members=filters.queries,
            sliced=np.zeros(0, np.int32),
            subscribers=None,
            errors={},
        )
        self._work = self._work._replace(
            found_starts=np.zeros(1, np.int64), found=np.zeros(0, np.int32)
        )
        freeze(*matches[:5])
        return matches

    def _make_room(self, status: int) -> None:
        work = self._work
        if status == FULL_FOUND:
            found = np.empty(2 * len(work.found) + len(self.program.filters), np.int32)
            found[: len(work.found)] = work.found
            self._work = work._replace(found=found)
        else:
            deep = 2 * len(work.stack)
            self._work = work._replace(
                stack=np.zeros(deep, np.int32), marks=np.zeros(deep, np.int32)
            )
        register(self._state, WORK.stack, self._work)


def _new_work(program: PmaProgram) -> Work:
    """Room for work, with all filters waiting for nothing."""
    filters, instances = len(program.instances.number), len(program.instances.filter)
    none = np.zeros(0, np.int32)
    return Work(
        stack=np.zeros(_DEPTH_AT_FIRST, np.int32),
        marks=np.zeros(_DEPTH_AT_FIRST, np.int32),
        found_starts=np.zeros(1, np.int64),
        found=none,
        scanned_in=np.zeros(len(program.single.fail), np.int64),
        seen_in=np.zeros(filters, np.int64),
        seen=np.zeros(filters, np.int32),
        candidates=np.zeros(filters, np.int32),
        frontier=np.full(filters, NO_INSTANCE, np.int32),
        advanced_at=np.zeros(filters, np.int32),
        log_filter=np.zeros(instances - filters, np.int32),
        log_advanced_at=np.zeros(instances - filters, np.int32),
        matched=np.zeros(filters, np.int32),
        head=np.full(len(program.multi.fail), NO_INSTANCE, np.int32),
        next=np.zeros(instances, np.int32),
        previous=np.zeros(instances, np.int32),
    )
