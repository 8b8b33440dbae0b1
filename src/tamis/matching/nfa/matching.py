"""``NfaMatching``: a program at work, its workspace, and the path-tuples that it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.arrays import note
from tamis.documents.batch import EventBatch, Int32, Int64, freeze
from tamis.documents.vocabulary import Vocabulary
from tamis.errors import DocumentLimitError
from tamis.language.model import Query
from tamis.matching.filters import ElementLabels
from tamis.matching.matchset import MatchSet, Which
from tamis.matching.nfa import layout
from tamis.matching.nfa.conditions import DOCUMENT_STATE
from tamis.matching.nfa.evaluating import Evaluation, Occurrences
from tamis.matching.nfa.kernels.running import run
from tamis.matching.nfa.kernels.tuples import LAST, USED, list_tuples
from tamis.matching.nfa.layout import AT, DONE, ENTRY, LEVEL, OCCURRENCE, START, Arrays
from tamis.matching.nfa.program import NfaProgram

TUPLES_MAX = 1 << 20
"""Path-tuples of one filter in one document, unless the caller says how many."""
_ROOM = 1 << 10


class PathTuples(NamedTuple):
    """The matches of one filter, each as the nodes that it bound.

    Attributes:
        nodes: int64[k, steps]; for each step the start event of the element in the batch. The last
            column ascends; of the others nothing is said.
        documents: int64[k]; in which document each is.
    """

    nodes: Int64
    documents: Int64


class NfaMatching:
    """A program at work. It learns nothing; queries may be added while it runs.

    Args:
        program: which is not changed; queries that are added are in a copy.
    """

    def __init__(self, program: NfaProgram) -> None:
        self._program = program
        self._is_own = False
        self._element_labels = ElementLabels(program.labels.names)
        self._known_labels = len(program.labels.names)
        self._state = np.zeros(layout.STATE_SIZE, np.int64)
        self._arrays: dict[str, Any] = {
            "here": np.zeros(_ROOM * ENTRY, np.int32),
            "pending": np.zeros(_ROOM * ENTRY, np.int32),
            "levels": np.zeros(_ROOM * LEVEL, np.int64),
            "targets": np.zeros(_ROOM, np.int32),
            "probes": np.zeros(_ROOM, np.int32),
            "is_pending": np.zeros(0, np.uint8),
            "reached_in": np.zeros(0, np.int32),
            "tops": np.zeros(0, np.int64),
            "found": np.zeros(_ROOM, np.int32),
            "found_starts": np.zeros(1, np.int64),
            "occurrences": np.zeros(_ROOM * OCCURRENCE, np.int64),
        }

    @property
    def program(self) -> NfaProgram:
        """What is matched: the program that it was opened with, or a copy that grew."""
        return self._program

    def memory_usage(self) -> int:
        """The bytes of the workspace, and of a program of its own."""
        own = self._program.memory_usage() if self._is_own else 0
        workspace: int = sum(array.nbytes for array in self._arrays.values())
        return own + workspace

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
        self, batch: EventBatch, vocabulary: Vocabulary, _nodes: Which | None = None
    ) -> MatchSet:
        """Which queries are true of which documents."""
        rows = self._run(batch, vocabulary)
        program, state = self._program, self._state
        found = self._arrays["found"][: state[layout.FOUND_USED]].copy()
        starts = self._arrays["found_starts"].copy()
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

    def _true_twigs(self, evaluation: Evaluation, batch: EventBatch) -> tuple[Int64, Int32]:
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

    def _run(self, batch: EventBatch, vocabulary: Vocabulary) -> Int64:
        """Run the NFA over a batch; the nodes that reached watched states, by start event."""
        program, state = self._program, self._state
        if len(program.labels.names) > self._known_labels:
            self._known_labels = len(program.labels.names)
            self._element_labels = ElementLabels(program.labels.names)
        own, of_namespace = self._element_labels.of(vocabulary)
        self._arrays["found_starts"] = np.zeros(batch.documents + 1, np.int64)
        self._reserve("is_pending", len(program.nfa), 0)
        self._reserve("tops", len(program.nfa), -1)
        self._reserve("reached_in", len(program.nfa), 0)
        serial = int(state[layout.SERIAL])
        if serial + batch.documents > np.iinfo(np.int32).max:
            self._arrays["reached_in"][:] = serial = 0
        state[: AT.records] = 0
        state[layout.SERIAL] = serial
        state[layout.SETS] = program.nfa.sets
        state[layout.IS_WATCHING] = program.nfa.is_watching
        read: dict[str, Any] = {
            "records": program.nfa.records.reshape(-1),
            "table": program.nfa.table,
            "next_set": program.nfa.next_set,
            "document_starts": batch.document_starts,
            "tags": batch.tags,
            "labels": own,
            "namespace_labels": of_namespace,
        }
        note(state, AT.records, Arrays(**read, **self._arrays))
        while run(state) != DONE:
            self._make_room()
            note(state, AT.records, Arrays(**read, **self._arrays))
        used = int(state[layout.OCCURRENCES_USED])
        rows: Int64 = self._arrays["occurrences"][: used * OCCURRENCE].reshape(used, OCCURRENCE)
        return rows

    def _make_room(self) -> None:
        """Make room for what the next event may add to stacks and lists."""
        state = self._state
        needed = int(state[layout.NEEDED])
        self._reserve("here", (int(state[layout.HERE_USED]) + needed) * ENTRY, 0)
        self._reserve("pending", (int(state[layout.PENDING_USED]) + needed) * ENTRY, 0)
        self._reserve("targets", needed, 0)
        self._reserve("probes", needed, 0)
        self._reserve("levels", (int(state[layout.DEPTH]) + 2) * LEVEL, 0)
        self._reserve("found", int(state[layout.FOUND_USED] + state[layout.SETS]), 0)
        if state[layout.IS_WATCHING]:
            occurrences = int(state[layout.OCCURRENCES_USED]) + needed
            self._reserve("occurrences", occurrences * OCCURRENCE, 0)

    def _reserve(self, name: str, size: int, filled_with: int) -> None:
        """Make an array as long as asked, and half as long again, unless it is."""
        array = self._arrays[name]
        if size > len(array):
            wide = np.full(size + size // 2, filled_with, array.dtype)
            wide[: len(array)] = array
            self._arrays[name] = wide

    # -- path-tuples -------------------------------------------------------------------------------

    def path_tuples(
        self,
        batch: EventBatch,
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
        self, path: Sequence[int], batch: EventBatch, occurrences: Occurrences, tuples_max: int
    ) -> PathTuples:
        """The tuples of one filter; of a document with too many, one too many."""
        steps = len(path)
        lasts = occurrences.of(path[-1])
        events = occurrences.rows[lasts, START]
        documents = np.searchsorted(batch.document_starts, events, side="right") - 1
        descends = np.array([self._program.nfa.descends(state) for state in path], np.int64)
        at, fields = np.zeros(5, np.int64), np.zeros(steps, np.int64)
        tuples, of = np.zeros(0, np.int64), np.zeros(0, np.int64)
        rows = occurrences.rows.reshape(-1)
        done = False
        while not done:
            room = max(2 * len(of), len(lasts) - int(at[LAST]) + 16)
            tuples, of = np.resize(tuples, room * steps), np.resize(of, room)
            status = list_tuples(
                at, rows, lasts, documents, descends, tuples_max, fields, tuples, of
            )
            done = status == DONE
        used = int(at[USED])
        stream = PathTuples(tuples[: used * steps].reshape(-1, steps), of[:used])
        freeze(*stream)
        return stream


_NO_NUMBERS = np.zeros(0, np.int32)
freeze(_NO_NUMBERS)


def _without(stream: PathTuples, documents: Sequence[int]) -> PathTuples:
    """A stream without the tuples of some documents."""
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
