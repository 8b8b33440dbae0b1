"""``PmaSearcher``: a program at work."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import freeze
from tamis.core.index.matchset import MatchSet, Which
from tamis.core.kernel.state import State, zeros
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.matching.engine import Sources
from tamis.matching.filters import ElementLabels
from tamis_papers.pma import layout as at
from tamis_papers.pma.kernels import begin_all, match_documents
from tamis_papers.pma.program import PmaProgram

_DEPTH_AT_FIRST = 64


class PmaSearcher:
    """Matches batches with the automata of a program. It belongs to one thread at a time."""

    def __init__(self, program: PmaProgram) -> None:
        self.program = program
        self._labels = ElementLabels(program.filters.names)
        self._state = State(at.STATE_SIZE, at.WORK, _new_work(program), [("stack", "marks")])
        words = self._state.words
        words[at.FILTERS] = len(program.filters)
        words[at.HAS_SINGLE] = len(program.single.output) > 0
        words[at.HAS_MULTI] = len(program.multi.output) > 0
        words[at.IS_DYNAMIC] = program.options.outputs == "dynamic"
        self._state.register(at.SINGLE, program.single)
        self._state.register(at.MULTI, program.multi)
        self._state.register(at.INSTANCES, program.instances)
        self.memory_usage = self._state.memory_usage
        if not words[at.HAS_SINGLE]:  # in two passes, only the candidates of a document take part
            begin_all(words)

    @property
    def moves(self) -> int:
        """How many edges and fail links were gone over so far, in all documents.

        With a full goto, as many as elements, in each pass.
        """
        return int(self._state.words[at.MOVES])

    def match(
        self,
        batch: DocumentBatch,
        vocabulary: Vocabulary,
        _nodes: Which | None = None,
        _sources: Sources | None = None,
    ) -> MatchSet:
        """Which queries are true of which documents; where they matched is not noted."""
        own, _ = self._labels.of(vocabulary)
        symbols = np.maximum(own, 0)  # those of no label share the one of "*", which filters lack
        events = at.Events(batch.document_starts, batch.tags, symbols)
        state, filters = self._state, self.program.filters
        state.words[at.DOCUMENT] = state.words[at.FOUND_COUNT] = 0
        state.register(at.EVENTS, events)
        state.replace(
            found_starts=np.zeros(batch.documents + 1, np.int64),
            found=np.empty(len(filters) + 4 * batch.documents, np.int32),
        )
        state.run(match_documents)
        matches = MatchSet(
            document_starts=state.arrays.found_starts,
            set_ids=state.arrays.found[: state.words[at.FOUND_COUNT]].copy(),
            set_starts=filters.query_starts,
            members=filters.queries,
        )
        state.replace(found_starts=np.zeros(1, np.int64), found=np.zeros(0, np.int32))
        freeze(*matches[:5])
        return matches


def _new_work(program: PmaProgram) -> at.Work:
    filters, instances = len(program.instances.number), len(program.instances.filter)
    return zeros(
        at.Work,
        filters,
        stack=_DEPTH_AT_FIRST,
        marks=_DEPTH_AT_FIRST,
        found_starts=1,
        found=0,
        scanned_in=len(program.single.fail),
        frontier=np.full(filters, at.NO_INSTANCE, np.int32),
        log_filter=instances - filters,
        log_advanced_at=instances - filters,
        head=np.full(len(program.multi.fail), at.NO_INSTANCE, np.int32),
        next=instances,
        previous=instances,
    )
