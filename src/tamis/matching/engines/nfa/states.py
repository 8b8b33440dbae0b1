"""``Nfa``: the states of all paths, which grow as filters are added; ``NfaRun`` runs them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis.core.arrays import Int32, Int64, starts_of
from tamis.core.kernel.state import State, zeros
from tamis.core.kernel.table import copy_pairs
from tamis.documents.batch import DocumentBatch
from tamis.documents.parser import Recorded
from tamis.documents.vocabulary import Vocabulary
from tamis.matching.engines.nfa import layout as at
from tamis.matching.engines.nfa.kernels import (
    ADDED,
    PAIRS,
    STATES,
    add_filters,
    add_step,
    run,
    run_one,
)
from tamis.matching.filters import ElementLabels

_STATES, _ROOM = 64, 1 << 10
_SERIALS = np.iinfo(np.int32).max


class Nfa:
    """One automaton for all filters, in which equal beginnings are the same states.

    What it holds stays where it is when filters are added: an array that is full is copied to one
    of twice the size, so each of n filters costs its steps, and a constant share of the copying.

    >>> from tamis.language.filters import Labels
    >>> labels, nfa = Labels(), Nfa()
    >>> nfa.add([labels.read("/a/b"), labels.read("/a//c"), labels.read("/a/b")])
    array([2, 4, 2], dtype=int32)
    >>> len(nfa)  # the start, and state 3, which is what is below a
    5

    Attributes:
        table: the hash table of transitions.
        sets: how many sets of queries there are.
        next_set: for each set the next one that the same state answers, or -1; with room for more.
    """

    def __init__(self) -> None:
        self._counts = np.array([1, 0, 0], np.int64)
        self._records = np.zeros(_STATES * at.RECORD, np.int32)
        self._records[[at.STAR, at.BELOW, at.ACCEPTS, at.PARENT, at.CODE]] = -1
        self.table = np.zeros(4 * _STATES, np.int64)
        self.next_set = np.full(_STATES, -1, np.int32)
        self.sets = self._watches = 0

    def __len__(self) -> int:
        """How many states there are, ``//``-states included."""
        return int(self._counts[STATES])

    @property
    def transitions(self) -> int:
        """How many labels lead on, from all states together."""
        return int(self._counts[PAIRS])

    @property
    def records(self) -> Int32:
        """All states, a view: int32[n, RECORD]."""
        return self._records.reshape(-1, at.RECORD)[: len(self)]

    def memory_usage(self) -> int:
        """The bytes of its arrays."""
        return self._records.nbytes + self.table.nbytes + self.next_set.nbytes

    # -- paths -------------------------------------------------------------------------------------

    def add(self, filters: Sequence[Sequence[int]]) -> Int32:
        """Add some filters, and say to which state each leads."""
        starts = starts_of(list(map(len, filters)))
        return self.add_many(starts, np.array([c for codes in filters for c in codes], np.int32))

    def add_many(self, starts: Int64, codes: Int32) -> Int32:
        """Add filters as ``Filters`` has them, and say to which state each leads."""
        ends = np.zeros(len(starts) - 1, np.int32)
        self._counts[ADDED] = 0
        while not add_filters(self._counts, self._records, self.table, starts, codes, ends):
            number = self._counts[ADDED]
            self._make_room(int(starts[number + 1] - starts[number]))
        return ends

    def step(self, state: int, code: int) -> int:
        """The state that a step leads to from another one."""
        while (found := int(add_step(self._counts, self._records, self.table, state, code))) < 0:
            self._make_room(1)
        return found

    def _make_room(self, steps: int) -> None:
        """Make room for so many more steps, and for as many again as there are."""
        needed = (len(self) + 2 * steps) * at.RECORD
        if needed > len(self._records):
            self._records = self._widened(self._records, needed)
        pairs = self.transitions + steps
        if 4 * pairs > len(self.table):
            table = np.zeros(1 << (4 * pairs).bit_length(), np.int64)
            copy_pairs(self.table, table)
            self.table = table

    def _widened(self, array: Int32, needed: int) -> Int32:
        wide = np.full(2 * needed, -1, np.int32)
        wide[: len(array)] = array
        return wide

    # -- sets --------------------------------------------------------------------------------------

    def accept(self, ends: Int32) -> None:
        """Add as many sets of queries, each answered by a state; -1 for one that no state answers.

        The states are distinct. One that answers some already answers the new one too.
        """
        first, self.sets = self.sets, self.sets + len(ends)
        if self.sets > len(self.next_set):
            self.next_set = self._widened(self.next_set, self.sets)
        real = ends >= 0
        states, numbers = ends[real], np.arange(first, self.sets, dtype=np.int32)[real]
        self.next_set[numbers] = self.records[states, at.ACCEPTS]
        self.records[states, at.ACCEPTS] = numbers

    def watch(self, states: Sequence[int]) -> None:
        """Have the nodes that reach some states recorded as occurrences."""
        np.add.at(self.records[:, at.WATCHED], list(states), 1)
        self._watches += len(states)

    @property
    def is_watching(self) -> bool:
        """Whether any state is watched."""
        return self._watches > 0

    def descends(self, state: int) -> bool:
        """Whether the last step to a state is one to descendants."""
        return bool(self.records[state, at.CODE] & 1)


class NfaRun:
    """Runs an NFA over batches, in one thread; the NFA may grow between two runs."""

    def __init__(self) -> None:
        self._element_labels = ElementLabels([])
        self._known_labels = -1
        sizes = dict.fromkeys(("is_pending", "reached_in", "tops"), 0)
        sizes |= dict.fromkeys(("here", "pending"), _ROOM * at.ENTRY)
        sizes |= {"levels": _ROOM * at.LEVEL, "occurrences": _ROOM * at.OCCURRENCE}
        work = zeros(at.Work, _ROOM, found_starts=1, **sizes)
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
        """Run an NFA over a batch that was parsed with a vocabulary.

        Args:
            names: what the labels of the NFA stand for.

        Returns:
            int64[n, OCCURRENCE]; the nodes that reached watched states, by start event; until the
            next run.
        """
        batched = batch.document_starts, batch.tags
        self._prepare(nfa, names, batched, vocabulary)
        state, words = self._state, self._state.words
        state.run(run)
        used = int(words[at.OCCURRENCES_USED])
        return state.arrays.occurrences[: used * at.OCCURRENCE].reshape(used, at.OCCURRENCE)

    def prepare_one(
        self, nfa: Nfa, names: Sequence[str], recorded: Recorded, vocabulary: Vocabulary
    ) -> Int64:
        """Have ``run_one`` run an NFA over each document that is recorded, until the next run.

        Returns the state, in which ``OCCURRENCES_USED`` of ``WORK.occurrences`` are what it finds.
        """
        nothing = np.zeros(2, np.int64), np.zeros(0, np.int32)
        self._prepare(nfa, names, nothing, vocabulary)
        one = at.One(recorded.state, recorded.places_in(at.READ))
        self._state.register(at.ONE, one)
        return self._state.words

    def run_one(self) -> bool:
        """Run the NFA that is prepared over what is recorded; False: it is to be prepared again."""
        if int(self._state.words[at.SERIAL]) >= _SERIALS:
            return False
        if run_one(self._state.words):
            self._state.run(run)  # from where it found an array full
        return True

    def _prepare(
        self, nfa: Nfa, names: Sequence[str], batched: tuple[Int64, Int32], vocabulary: Vocabulary
    ) -> None:
        state, words = self._state, self._state.words
        if len(names) != self._known_labels:
            self._known_labels = len(names)
            self._element_labels = ElementLabels(names)
        labels = self._element_labels.of(vocabulary)
        documents = len(batched[0]) - 1
        state.replace(found_starts=np.zeros(documents + 1, np.int64))
        state.reserve(len(nfa), "is_pending", "reached_in")
        state.reserve(len(nfa), "tops", fill=-1)
        serial = int(words[at.SERIAL])
        if serial + documents > _SERIALS:
            state.arrays.reached_in[:] = serial = 0
        words[: at.NUMBERS] = 0
        words[at.SERIAL] = serial
        words[at.SETS] = nfa.sets
        words[at.IS_WATCHING] = nfa.is_watching
        records = nfa.records.reshape(-1)
        state.register(at.READ, at.Read(records, nfa.table, nfa.next_set, *batched, *labels))
