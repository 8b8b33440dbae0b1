"""``NfaSearcher``: a program at work; ``NfaRun``: its workspace; and path-tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.core.arrays import Int32, Int64, freeze
from tamis.core.errors import DocumentLimitError
from tamis.core.index.matchset import MatchSet, Which
from tamis.core.kernel.state import State, zeros
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.language.model import Query
from tamis.matching.engine import Sources
from tamis.matching.engines.nfa import layout as at
from tamis.matching.engines.nfa.conditions import DOCUMENT_STATE
from tamis.matching.engines.nfa.evaluate import Evaluation, Occurrences
from tamis.matching.engines.nfa.kernels import LAST, USED, list_tuples, run
from tamis.matching.engines.nfa.states import Nfa
from tamis.matching.filters import ElementLabels

if TYPE_CHECKING:
    from tamis.matching.engines.nfa.compile import NfaProgram

_ROOM = 1 << 10
TUPLES_MAX = 1 << 20
"""Path-tuples of one filter in one document, unless the caller says how many."""
_NO_NUMBERS = np.zeros(0, np.int32)
freeze(_NO_NUMBERS)


class NfaRun:
    """Runs an NFA over batches, in one thread; the NFA may grow between two runs."""

    def __init__(self) -> None:
        self._element_labels = ElementLabels([])
        self._known_labels = -1
        work = zeros(
            at.Work,
            _ROOM,
            here=_ROOM * at.ENTRY,
            pending=_ROOM * at.ENTRY,
            levels=_ROOM * at.LEVEL,
            occurrences=_ROOM * at.OCCURRENCE,
            is_pending=0,
            reached_in=0,
            tops=0,
            found_starts=1,
        )
        self._state = State(at.STATE_SIZE, at.WORK, work, [("targets", "probes")])
        self.memory_usage = self._state.memory_usage

    def found(self) -> tuple[Int64, Int32]:
        """The sets found in the last run: ``found[starts[i]:starts[i + 1]]`` in document i.

        Both are the caller's.
        """
        work, used = self._state.arrays, self._state.words[at.FOUND_USED]
        return work.found_starts.copy(), work.found[:used].copy()

    def run(
        self, nfa: Nfa, names: Sequence[str], batch: DocumentBatch, vocabulary: Vocabulary
    ) -> Int64:
        """Run an NFA over a batch.

        Args:
            names: what the labels of the NFA stand for.
            vocabulary: that the batch was parsed with.

        Returns:
            int64[n, OCCURRENCE]; the nodes that reached watched states, by start event; until the
            next run.
        """
        state, words = self._state, self._state.words
        if len(names) != self._known_labels:
            self._known_labels = len(names)
            self._element_labels = ElementLabels(names)
        labels = self._element_labels.of(vocabulary)
        state.replace(found_starts=np.zeros(batch.documents + 1, np.int64))
        state.reserve(len(nfa), "is_pending", "reached_in")
        state.reserve(len(nfa), "tops", fill=-1)
        serial = int(words[at.SERIAL])
        if serial + batch.documents > np.iinfo(np.int32).max:
            state.arrays.reached_in[:] = serial = 0
        words[: at.NUMBERS] = 0
        words[at.SERIAL] = serial
        words[at.SETS] = nfa.sets
        words[at.IS_WATCHING] = nfa.is_watching
        records = nfa.records.reshape(-1)
        state.register(
            at.READ,
            at.Read(records, nfa.table, nfa.next_set, batch.document_starts, batch.tags, *labels),
        )
        state.run(run)
        used = int(words[at.OCCURRENCES_USED])
        return state.arrays.occurrences[: used * at.OCCURRENCE].reshape(used, at.OCCURRENCE)


class PathTuples(NamedTuple):
    """The matches of one filter, each as the nodes that it bound.

    Attributes:
        nodes: int64[k, steps]; for each step the start event of the element in the batch. The last
            column ascends; of the others nothing is said.
        documents: int64[k]; in which document each is.
    """

    nodes: Int64
    documents: Int64


class NfaSearcher:
    """A program at work. It learns nothing; queries may be added while it runs.

    Args:
        program: which is not changed; queries that are added are in a copy.
    """

    def __init__(self, program: NfaProgram) -> None:
        self._program = program
        self._is_own = False
        self._nfa_run = NfaRun()

    @property
    def program(self) -> NfaProgram:
        """What is matched: the program that it was opened with, or a copy that grew."""
        return self._program

    def memory_usage(self) -> int:
        """The bytes of the workspace, and of a program of its own."""
        own = self._program.memory_usage() if self._is_own else 0
        return own + self._nfa_run.memory_usage()

    def add(self, query: Query) -> int:
        """Add a query, of which all batches are asked from now on, and say its number.

        The first time the program is copied; then it costs the steps of the query.
        """
        self._own_program()
        return self._program.add(query)

    def _own_program(self) -> None:
        if not self._is_own:
            self._program = self._program.copy()
            self._is_own = True

    # -- matching ----------------------------------------------------------------------------------

    def match(
        self,
        batch: DocumentBatch,
        vocabulary: Vocabulary,
        _nodes: Which | None = None,
        _sources: Sources | None = None,
    ) -> MatchSet:
        """Which queries are true of which documents."""
        rows = self._run(batch, vocabulary)
        program = self._program
        starts, found = self._nfa_run.found()
        if program.twigs:
            evaluation = Evaluation(batch, vocabulary, Occurrences(rows), program.conditions)
            starts, found = _with_twigs(starts, found, *self._true_twigs(evaluation, batch))
        freeze(starts, found)
        return MatchSet(
            document_starts=starts,
            set_ids=found,
            set_starts=program.set_starts,
            members=program.members,
            sliced=_NO_NUMBERS,
            subscribers=None,
            errors={},
        )

    def _true_twigs(self, evaluation: Evaluation, batch: DocumentBatch) -> tuple[Int64, Int32]:
        """The documents, and the sets, of all twigs that are true."""
        answered = np.flatnonzero(np.diff(batch.document_starts))
        documents: list[Int64] = []
        sets: list[int] = []
        for set, condition in self._program.twigs:
            mask = evaluation.where(condition, DOCUMENT_STATE)
            if mask is not None:
                documents.append(answered[mask])
                sets.append(set)
        if not documents:
            return np.zeros(0, np.int64), _NO_NUMBERS
        counts = list(map(len, documents))
        return np.concatenate(documents), np.repeat(np.array(sets, np.int32), counts)

    def _run(self, batch: DocumentBatch, vocabulary: Vocabulary) -> Int64:
        program = self._program
        return self._nfa_run.run(program.nfa, program.labels.names, batch, vocabulary)

    # -- path-tuples -------------------------------------------------------------------------------

    def path_tuples(
        self,
        batch: DocumentBatch,
        vocabulary: Vocabulary,
        filters: Sequence[int],
        tuples_max: int = TUPLES_MAX,
    ) -> tuple[list[PathTuples], Mapping[int, DocumentLimitError]]:
        """All matches of some filters, as the nodes that they bound.

        Not of a program that was pruned: its filters have steps that nobody wrote.

        Args:
            filters: the sets that the ``MatchSet`` has for them.
            tuples_max: how many a filter may have in one document. A document with more is in
                error, and has none.
        """
        assert not self._program.is_pruned, "pruned filters bind other nodes"
        self._own_program()
        nfa = self._program.nfa
        ends = [nfa.end(filter) for filter in filters]
        assert min(ends, default=0) >= 0, "twigs have no tuples"
        paths = [nfa.path(end) for end in ends]
        watched = [state for path in paths for state in path]
        nfa.watch(watched)
        try:
            occurrences = Occurrences(self._run(batch, vocabulary))
        finally:
            nfa.watch(watched, by=-1)
        streams = [self._stream(path, batch, occurrences, tuples_max) for path in paths]
        errors: dict[int, DocumentLimitError] = {}
        for stream in streams:
            counts = np.bincount(stream.documents, minlength=batch.documents)
            for document in np.flatnonzero(counts > tuples_max).tolist():
                errors[document] = DocumentLimitError(f"more than {tuples_max} path-tuples")
        if errors:
            streams = [_without(stream, list(errors)) for stream in streams]
        return streams, errors

    def _stream(
        self, path: Sequence[int], batch: DocumentBatch, occurrences: Occurrences, tuples_max: int
    ) -> PathTuples:
        """The tuples of one filter; of a document with too many, one too many."""
        steps = len(path)
        lasts = occurrences.of(path[-1])
        events = occurrences.rows[lasts, at.START]
        documents = np.searchsorted(batch.document_starts, events, side="right") - 1
        descends = np.array([self._program.nfa.descends(state) for state in path], np.int64)
        progress, fields = np.zeros(5, np.int64), np.zeros(steps, np.int64)
        tuples, of = np.zeros(0, np.int64), np.zeros(0, np.int64)
        rows = occurrences.rows.reshape(-1)
        done = False
        while not done:
            room = max(2 * len(of), len(lasts) - int(progress[LAST]) + 16)
            tuples, of = np.resize(tuples, room * steps), np.resize(of, room)
            done = list_tuples(
                progress, rows, lasts, documents, descends, tuples_max, fields, tuples, of
            )
        used = int(progress[USED])
        stream = PathTuples(tuples[: used * steps].reshape(-1, steps), of[:used])
        freeze(*stream)
        return stream


def _without(stream: PathTuples, documents: Sequence[int]) -> PathTuples:
    kept = ~np.isin(stream.documents, documents)
    stream = PathTuples(stream.nodes[kept], stream.documents[kept])
    freeze(*stream)
    return stream


def _with_twigs(starts: Int64, found: Int32, documents: Int64, sets: Int32) -> tuple[Int64, Int32]:
    """The sets that were found, and those of twigs, document after document."""
    counts = np.diff(starts)
    together = np.concatenate([np.repeat(np.arange(len(counts)), counts), documents])
    order = np.argsort(together, kind="stable")
    counts = counts + np.bincount(documents, minlength=len(counts))
    all_starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return all_starts, np.concatenate([found, sets])[order]
