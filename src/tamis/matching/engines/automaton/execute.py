"""``Automaton``: matches batches of documents with a program and its cache."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64, freeze
from tamis.core.index.matchset import MatchSet, Occurrences, Which, only_used
from tamis.core.kernel.record import register
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.language.values import xpath_number
from tamis.matching.engine import Sources
from tamis.matching.engines.automaton import layout as at
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.cache import (
    grown,
    grown_lists,
    grown_pairs,
    new_arrays,
    new_scratch,
    size_of,
)
from tamis.matching.engines.automaton.kernels.facts import known_facts
from tamis.matching.engines.automaton.kernels.overlay import compact_overlay
from tamis.matching.engines.automaton.kernels.scan import scan
from tamis.matching.engines.automaton.layout import CacheArrays, Events, FactSets, Lists, Progress
from tamis.matching.engines.automaton.program import AutomatonProgram

log = logging.getLogger("tamis")

L = TypeVar("L", Lists, FactSets)

_POSITION = [at.DOCUMENT, at.EVENT, at.ATTRIBUTE_AT, at.TEXT_AT, at.MISC_AT]
"""The numbers that say which event is matched."""

_OCCURRENCES = {None: at.OCCURRENCES_NONE, "first": at.OCCURRENCES_FIRST, "all": at.OCCURRENCES_ALL}

_LISTS = {
    at.FULL_STATES: "states",
    at.FULL_PENDINGS: "pendings",
    at.FULL_FACTS: "facts",
    at.FULL_ANSWERS: "answers",
}


class Automaton:
    """Matches batches, and keeps in a cache what it computes. It belongs to one thread at a time.

    The cache is bounded: where it would take more than ``bytes_max``, it is cleared, but for what
    the open elements need. The bound is then at least twice what these take.

    Args:
        program: the queries.
        bytes_max: the bound.
        cache: a warm cache of the program, which is used unless it is larger; nobody else may have
            these arrays.

    Attributes:
        cleared: how often the cache was cleared so far.
    """

    def __init__(
        self, program: AutomatonProgram, bytes_max: int, cache: CacheArrays | None = None
    ) -> None:
        self.program = program
        self.bytes_max = bytes_max
        self.cleared = 0
        self._bound = bytes_max
        self._is_restoring = False
        self._cleared_at: list[int] = []
        self._names = _NameSymbols(program)
        self._scratch = new_scratch(program.arrays, program.queries)
        self._stacks: list[NDArray[Any]] = [np.zeros(64, np.int32) for _ in range(3)]
        self._stacks.append(np.zeros(64, np.int64))
        self._text = np.zeros(256, np.uint8)
        self._number = np.zeros(1, np.float64)
        self._overlay = [np.zeros(64, np.int32) for _ in range(2)]
        self._state = np.zeros(at.STATE_SIZE, np.int64)
        self._state[at.WIDTH] = len(program.arrays.wildcards)
        self._state[at.QUERIES] = program.queries
        self._state[at.HAS_COUNTERS] = len(program.arrays.counter_limits) > 0
        register(self._state, at.PROGRAM.nodes, program.arrays)
        register(self._state, at.SCRATCH.nodes, self._scratch)
        self._start_empty()
        if cache is not None:
            self._use(cache)

    def _use(self, cache: CacheArrays) -> None:
        if size_of(cache) > self.bytes_max:
            log.info("a warm cache is left out: it takes %d bytes", size_of(cache))
            return
        self._cache = cache
        register(self._state, at.CACHE.states.starts, cache)

    @property
    def cache(self) -> CacheArrays:
        """The cache, to be saved before more is matched."""
        return self._cache

    def _start_empty(self) -> None:
        self._cache = new_arrays(self.program.arrays, self.program.queries)
        self._seen = np.zeros(64, np.int64)
        self._scratch.pending_bits[:] = 0
        self._scratch.needed[:] = 0
        self._state[at.TURNED_TO] = 0
        register(self._state, at.CACHE.states.starts, self._cache)

    def memory_usage(self) -> int:
        """Bytes of the cache, and of the room for work."""
        return size_of(self._cache) + sum(array.nbytes for array in self._scratch)

    def match(
        self,
        batch: DocumentBatch,
        vocabulary: Vocabulary,
        nodes: Which | None = None,
        _sources: Sources | None = None,
    ) -> MatchSet:
        """Which queries are true of which documents.

        Args:
            vocabulary: that the batch was parsed with.
            nodes: list the nodes that reach states with answers: for each answer the first one of
                a document, or all.
        """
        self._of_batch = events = self._events(batch, vocabulary)
        state = self._state
        state[at.NUMBER_BUFFER] = 0
        register(state, at.EVENTS.document_starts, events)
        state[
            [
                at.DOCUMENT,
                at.IS_OPEN,
                at.DEPTH,
                at.RESTORED,
                at.ATTRIBUTE_AT,
                at.TEXT_AT,
                at.FOUND_COUNT,
            ]
        ] = 0
        state[at.OCCURRENCE_COUNT], state[at.OCCURRENCES] = 0, _OCCURRENCES[nodes]
        state[at.HAS_LEAVES] = any(
            map(len, (events.attribute_event, events.text_event, events.misc_event))
        )
        self._cleared_at = []
        self._found_starts = np.zeros(batch.documents + 1, np.int64)
        self._found = np.empty(64 + 4 * batch.documents, np.int32)
        self._occurrence_starts = np.zeros(batch.documents + 1, np.int64)
        self._occurrence_answers = np.empty(64, np.int32)
        self._occurrence_nodes = np.empty(64, np.int64)
        self._pieces: list[_Piece] = []
        self._bind_progress()
        while status := scan(state):
            if status == at.FULL_FOUND:
                self._grow_found()
            elif status == at.FULL_OVERLAY:
                self._make_room_on_overlay()
            elif status == at.FULL_TEXT:
                self._text = np.zeros(2 * int(state[at.TEXT_NEEDED]), np.uint8)
            elif status == at.ASKS_NUMBER:
                self._answer_number()
                continue
            elif status == at.FULL_DEPTH:
                self._stacks = [grown(stack, 2 * len(stack)) for stack in self._stacks]
            else:
                self._make_room(status)
            self._bind_progress()
        matches = self._match_set()
        self._pieces = []
        return matches

    def _events(self, batch: DocumentBatch, vocabulary: Vocabulary) -> Events:
        elements, attributes = self._names.of(vocabulary)
        shared: dict[str, Any] = {
            name: getattr(batch, name) for name in Events._fields if name in batch._fields
        }
        return Events(**shared, elements=elements, attributes=attributes)

    def _bind_progress(self) -> None:
        states, child_facts, symbols, texts = self._stacks
        self._progress = Progress(
            states,
            child_facts,
            symbols,
            texts,
            self._text,
            self._number,
            self._found_starts,
            self._found,
            self._seen,
            self._overlay[0],
            self._overlay[1],
            self._occurrence_starts,
            self._occurrence_answers,
            self._occurrence_nodes,
        )
        register(self._state, at.PROGRESS.outer_states, self._progress)

    def _answer_number(self) -> None:
        """Tell the kernel a number that it cannot read exactly, of many digits."""
        buffers = dict(zip(at.EVENTS, self._of_batch, strict=True))
        values: Bytes = buffers[int(self._state[at.NUMBER_BUFFER])]
        start, end = self._state[[at.NUMBER_START, at.NUMBER_END]].tolist()
        self._number[0] = xpath_number(values[start:end].tobytes())

    # -- room --------------------------------------------------------------------------------------

    def _grow_found(self) -> None:
        if self._state[at.FOUND_COUNT] + 3 > len(self._found):
            self._found = grown(self._found, 2 * len(self._found))
        answers = int(self._cache.answers.counts[at.COUNT])
        if answers + 3 > len(self._seen):
            self._seen = grown(self._seen, 2 * answers + 3)
        size = 2 * len(self._occurrence_answers)
        if self._state[at.OCCURRENCE_COUNT] + 3 > len(self._occurrence_answers):
            self._occurrence_answers = grown(self._occurrence_answers, size)
            self._occurrence_nodes = grown(self._occurrence_nodes, size)

    def _make_room_on_overlay(self) -> None:
        """Drop what the overlay has twice; where that is less than half of it, let it grow."""
        before = int(self._state[at.OVERLAID])
        compact_overlay(self._state)
        if 2 * self._state[at.OVERLAID] >= before:
            self._overlay = [grown(part, 2 * len(part)) for part in self._overlay]

    def _make_room(self, status: int) -> None:
        """Let the cache grow, or clear it.

        What open elements need stays, and the bound is at least twice that: so much is computed
        anew before the cache is cleared again.
        """
        state = self._state
        if self._is_restoring and state[at.RESTORED] == state[at.DEPTH]:
            self._is_restoring = False
            self._bound = max(self.bytes_max, 2 * size_of(self._cache))
        self._grow(status)
        is_over = size_of(self._cache) > self._bound and not self._is_restoring
        # What one event alone needs more than there may be is granted, or it would never end.
        if is_over and self._cleared_at != state[_POSITION].tolist():
            self._clear()

    def _grow(self, status: int) -> None:
        cache = self._cache
        if status == at.FULL_CLOSES:
            cache = cache._replace(closes=grown_pairs(cache.closes))
        elif status == at.FULL_REACHED:
            cache = cache._replace(reached=grown_pairs(cache.reached))
        elif status == at.FULL_MERGES:
            cache = cache._replace(merges=grown_pairs(cache.merges))
        else:
            name = _LISTS[status]
            changed: dict[str, Any] = {name: grown_lists(getattr(cache, name))}
            cache = cache._replace(**changed)
            states, pendings = len(cache.states.hashes), len(cache.pendings.hashes)
            if len(cache.state_info) < states * at.STATE_COLUMNS:
                cache = cache._replace(
                    state_info=grown(cache.state_info, states * at.STATE_COLUMNS),
                    table=grown(cache.table, states * len(self.program.arrays.wildcards)),
                )
            if len(cache.pending_info) < pendings * at.PENDING_COLUMNS:
                cache = cache._replace(
                    pending_info=grown(cache.pending_info, pendings * at.PENDING_COLUMNS)
                )
        self._cache = cache
        register(self._state, at.CACHE.states.starts, cache)

    def _clear(self) -> None:
        """Drop all that open elements do not need; the kernel then finds their states again."""
        self.cleared += 1
        self._is_restoring = True
        old, state = self._cache, self._state
        log.info("an automaton cleared its cache, %d bytes, to stay in bounds", size_of(old))
        self._cleared_at = state[_POSITION].tolist()
        self._set_aside()
        self._start_empty()
        if state[at.IS_OPEN]:
            self._facts(old, at.EMPTY)  # is the first set of all
            child_facts = self._stacks[1]
            for level in range(int(state[at.DEPTH])):
                child_facts[level] = self._facts(old, int(child_facts[level]))
            state[at.CHILD_FACTS] = self._facts(old, int(state[at.CHILD_FACTS]))
            state[at.CURRENT], state[at.RESTORED] = at.START, 0

    def _facts(self, old: CacheArrays, number: int) -> int:
        """A set of facts of an old cache in the new one."""
        start, end = old.facts.starts[number : number + 2]
        places, words = old.facts.places[start:end], old.facts.words[start:end]
        while (found := known_facts(self._state, places, words)) < 0:
            self._grow(at.FULL_FACTS)
        return int(found)

    # -- results -----------------------------------------------------------------------------------

    def _set_aside(self) -> None:
        """Keep those of the answers that were found since the cache was cleared last."""
        begin, occurrences_begin = self._pieces[-1][:2] if self._pieces else (0, 0)
        self._state[at.COUNTED_FROM] = self._state[at.FOUND_COUNT]
        self._state[at.TRUE_AT_MOST] = 0
        end, occurrences_end = self._state[[at.FOUND_COUNT, at.OCCURRENCE_COUNT]].tolist()
        answers = self._cache.answers
        listed = self._occurrence_answers[occurrences_begin:occurrences_end]
        used = np.concatenate([self._found[begin:end], listed])
        used, starts, members = only_used(used, answers.starts, answers.members)
        self._found[begin:end], listed[:] = np.split(used, [end - begin])
        self._pieces.append(_Piece(end, occurrences_end, starts, members))

    def _match_set(self) -> MatchSet:
        answers = self._cache.answers
        end, occurrences_end = self._state[[at.FOUND_COUNT, at.OCCURRENCE_COUNT]].tolist()
        count, used = answers.counts.tolist()
        last = _Piece(end, occurrences_end, answers.starts[: count + 1], answers.members[:used])
        found, listed = self._found[:end], self._occurrence_answers[:occurrences_end]
        starts, members = last.starts, last.members
        if self._pieces:
            begin = occurrences_begin = sets = used = 0
            several = []
            for piece in [*self._pieces, last]:
                found[begin : piece.end] += sets
                listed[occurrences_begin : piece.occurrences_end] += sets
                several.append(piece.starts[1:] + used)
                begin, occurrences_begin = piece.end, piece.occurrences_end
                sets += len(piece.starts) - 1
                used += len(piece.members)
            starts = np.concatenate([last.starts[:1], *several])
            members = np.concatenate([piece.members for piece in [*self._pieces, last]])
        occurrences = None
        if self._state[at.OCCURRENCES]:
            occurrences = Occurrences(
                self._occurrence_starts, listed, self._occurrence_nodes[:occurrences_end]
            )
            freeze(*occurrences[:3])
        matches = MatchSet(
            document_starts=self._found_starts,
            set_ids=found,
            set_starts=starts,
            members=members,
            sliced=self.program.arrays.sliced,
            subscribers=None,
            errors={},
            occurrences=occurrences,
        )
        freeze(*matches[:5])
        return matches


class _Piece(NamedTuple):
    """Answers of a cache that was cleared; how many answers and occurrences there were by then."""

    end: int
    occurrences_end: int
    starts: Int64
    members: Int32


class _NameSymbols:
    """The symbols of names, as two arrays that grow with a vocabulary."""

    def __init__(self, program: AutomatonProgram) -> None:
        self._program = program
        self._vocabulary: Vocabulary | None = None
        self._known = 0
        self._elements = self._attributes = np.zeros(0, np.int32)

    def of(self, vocabulary: Vocabulary) -> tuple[Int32, Int32]:
        """The symbol of an element, and that of an attribute, by name."""
        if vocabulary is not self._vocabulary:
            self._vocabulary = vocabulary
            self._known = 0
            self._elements = self._attributes = np.zeros(0, np.int32)
        count = len(vocabulary)
        if count > len(self._elements):
            self._elements = grown(self._elements, 64 + 2 * count)
            self._attributes = grown(self._attributes, 64 + 2 * count)
        program = self._program
        for name in range(self._known, count):
            expanded = vocabulary.expanded(name)
            self._elements[name] = program.elements.of(*expanded, pr.OTHER_ELEMENT)
            self._attributes[name] = program.attributes.of(*expanded, pr.OTHER_ATTRIBUTE)
        self._known = count
        return self._elements, self._attributes
