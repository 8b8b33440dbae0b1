"""``Automaton``: matches batches of documents with a program and its cache."""

from __future__ import annotations

import logging
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64, freeze
from tamis.core.index.matchset import MatchSet, Occurrences, Which, only_used
from tamis.core.kernel.record import register
from tamis.core.kernel.state import State, bound, zeros
from tamis.documents.batch import DocumentBatch
from tamis.documents.parser import Recorded
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
from tamis.matching.engines.automaton.kernels.scan import match_one, scan
from tamis.matching.engines.automaton.layout import CacheArrays, Events, Progress
from tamis.matching.engines.automaton.program import AutomatonProgram
from tamis.matching.engines.automaton.retire import what_is_open

log = logging.getLogger("tamis")

_POSITION = [at.DOCUMENT, at.EVENT, at.ATTRIBUTE_AT, at.TEXT_AT, at.MISC_AT]
"""The numbers that say which event is matched."""
_BEGUN = [
    at.DOCUMENT, at.IS_OPEN, at.DEPTH, at.RESTORED, at.ATTRIBUTE_AT, at.TEXT_AT, at.FOUND_COUNT,
    at.OCCURRENCE_COUNT, at.NUMBER_BUFFER,
]  # fmt: skip
"""The numbers that are 0 when a batch begins."""
_OF_BATCH = attrgetter(*Events._fields[:-2])
_OCCURRENCES = {None: at.OCCURRENCES_NONE, "first": at.OCCURRENCES_FIRST, "all": at.OCCURRENCES_ALL}
_PAIRS = {at.FULL_CLOSES: "closes", at.FULL_MERGES: "merges", at.FULL_REACHED: "reached"}
_LISTS = {
    at.FULL_STATES: "states",
    at.FULL_PENDINGS: "pendings",
    at.FULL_FACTS: "facts",
    at.FULL_ANSWERS: "answers",
}
_TOGETHER = (
    ("outer_states", "outer_child_facts", "symbols", "outer_texts"),
    ("overlay_facts", "overlay_levels"),
    ("occurrence_answers", "occurrence_nodes"),
)
"""Arrays that are full at the same time."""


EVENTS_MIN = 1 << 14
"""No query retires in a document of fewer events."""
SHARE = 2
"""Queries retire where this many times as many were open as are now."""


class Automaton:
    """Matches batches, and keeps in a cache what it computes. It belongs to one thread at a time.

    The cache is bounded: where it would take more than ``bytes_max``, it is cleared, but for what
    the open elements need. The bound is then at least twice what these take.

    Args:
        cache: a warm cache of the program, which is used unless it is larger; nobody else may have
            these arrays.

    Attributes:
        cache: to be saved before more is matched.
        cleared: how often the cache was cleared so far.
        retired: how often queries that were true of a document were left out of the rest of it.
        retire_after: so many events of a document are matched before; so long it has to be, and so
            large beside the program, that to find out what is left pays.
    """

    cache: CacheArrays

    def __init__(
        self, program: AutomatonProgram, bytes_max: int, cache: CacheArrays | None = None
    ) -> None:
        self.program = program
        self.bytes_max = self._bound = bytes_max
        self.cleared = self.retired = 0
        self._one: tuple[Any, ...] = (None,) * 5  # what one document was matched with last
        self._is_restoring = False
        self._cleared_at: list[int] = []
        self._elements = program.elements.numbers(pr.OTHER_ELEMENT)
        self._attributes = program.attributes.numbers(pr.OTHER_ATTRIBUTE)
        self._scratch = new_scratch(program.arrays, program.queries)
        progress = zeros(Progress, 64, text=256, number=1)
        self._state = State(at.STATE_SIZE, at.PROGRESS, progress, _TOGETHER)
        words = self._state.words
        words[at.WIDTH] = len(program.arrays.wildcards)
        words[at.QUERIES] = program.queries
        words[at.HAS_COUNTERS] = len(program.arrays.counter_limits) > 0
        self._whole: CacheArrays | None = None  # the cache, while some queries have retired
        self._open = np.zeros(0, np.bool_)  # the others
        sizes = map(len, (program.arrays.tests, program.arrays.formula_code, program.arrays.sliced))
        self.retire_after = max(EVENTS_MIN, sum(sizes) // 4)
        self._state.register(at.PROGRAM, program.arrays)
        self._state.register(at.SCRATCH, self._scratch)
        self._match_one = bound(match_one, words)
        if cache is not None and size_of(cache) > bytes_max:
            log.info("a warm cache is left out: it takes %d bytes", size_of(cache))
            cache = None
        self._use(cache or new_arrays(program.arrays, program.queries))

    def _use(self, cache: CacheArrays) -> None:
        self.cache = cache
        register(self._state.words, at.CACHE.states.starts, cache)

    def memory_usage(self) -> int:
        """Bytes of the cache, and of the room for work."""
        return size_of(self.cache) + sum(array.nbytes for array in self._scratch)

    def entries(self) -> int:
        """How much is known: states, and pairs of sets."""
        cache = self.cache
        pairs = int(cache.closes.counts[0]) + int(cache.merges.counts[0])
        return int(cache.states.counts[at.COUNT]) + pairs

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
        state, words = self._state, self._state.words
        symbols = self._elements.of(vocabulary), self._attributes.of(vocabulary)
        self._events = events = Events._make((*_OF_BATCH(batch), *symbols))
        state.register(at.EVENTS, events)
        self._one = (None,) * 5
        words[_BEGUN] = 0
        words[at.OCCURRENCES] = _OCCURRENCES[nodes]
        words[at.RETIRE_AFTER] = at.NEVER if nodes == "all" else self.retire_after
        self._cleared_at = []
        self._pieces: list[_Piece] = []
        state.reserve(batch.documents + 1, "found_starts", "occurrence_starts")
        state.reserve(64 + 4 * batch.documents, "found")
        while status := scan(words):
            if status == at.FULL_FOUND:
                self._grow_found()
            elif status == at.FULL_OVERLAY:
                self._make_room_on_overlay()
            elif status == at.FULL_TEXT:
                state.replace(text=np.zeros(2 * int(words[at.TEXT_NEEDED]), np.uint8))
            elif status == at.ASKS_NUMBER:
                self._answer_number()
            elif status == at.FULL_DEPTH:
                state.grow("outer_states")
            elif status == at.ASKS_OPEN:
                self._retire()
            elif status == at.ENDED:
                self._recall()
            else:
                self._make_room(status)
        return self._match_set(batch.documents)

    def match_one(
        self, recorded: Recorded, vocabulary: Vocabulary, listing: Int64, part: int
    ) -> bool:
        """See ``OneSearcher``."""
        state, words = self._state, self._state.words
        symbols = self._elements.of(vocabulary), self._attributes.of(vocabulary)
        one = self._one
        is_known = one[0] is recorded and one[1] is listing and one[2] == part
        if not (is_known and one[3] is symbols[0] and one[4] is symbols[1]):
            places = recorded.places_in(at.EVENTS)
            state.register(at.ONE, at.One(recorded.state, places, listing))
            register(words, at.EVENTS.elements, symbols)
            words[at.PART] = part
            self._one = recorded, listing, part, *symbols
        return not self._match_one()

    def _answer_number(self) -> None:
        """Tell the kernel a number that it cannot read exactly, of many digits."""
        words = self._state.words
        buffers = dict(zip(at.EVENTS, self._events, strict=True))
        values: Bytes = buffers[int(words[at.NUMBER_BUFFER])]
        start, end = words[[at.NUMBER_START, at.NUMBER_END]].tolist()
        self._state.arrays.number[0] = xpath_number(values[start:end].tobytes())

    # -- room --------------------------------------------------------------------------------------

    def _grow_found(self) -> None:
        state, words, progress = self._state, self._state.words, self._state.arrays
        answers = int(self.cache.answers.counts[at.COUNT])
        if words[at.FOUND_COUNT] + 3 > len(progress.found):
            state.grow("found")
        if answers + 3 > len(progress.seen):
            state.replace(seen=grown(progress.seen, 2 * answers + 3))
        if words[at.OCCURRENCE_COUNT] + 3 > len(progress.occurrence_answers):
            state.grow("occurrence_answers")

    def _make_room_on_overlay(self) -> None:
        """Drop what the overlay has twice; where that is less than half of it, let it grow."""
        words = self._state.words
        before = int(words[at.OVERLAID])
        compact_overlay(words)
        if 2 * words[at.OVERLAID] >= before:
            self._state.grow("overlay_facts")

    def _make_room(self, status: int) -> None:
        """Let the cache grow, or clear it.

        What open elements need stays, and the bound is at least twice that: so much is computed
        anew before the cache is cleared again.
        """
        words = self._state.words
        if self._is_restoring and words[at.RESTORED] == words[at.DEPTH]:
            self._is_restoring = False
            kept = size_of(self._whole) if self._whole else 0
            self._bound = max(self.bytes_max - kept, 2 * size_of(self.cache))
        self._grow(status)
        is_over = size_of(self.cache) > self._bound and not self._is_restoring
        # What one event alone needs more than there may be is granted, or it would never end.
        if is_over and self._cleared_at != words[_POSITION].tolist():
            self._clear()

    def _grow(self, status: int) -> None:
        cache = self.cache
        name = _PAIRS.get(status) or _LISTS[status]
        grow: Any = grown_pairs if status in _PAIRS else grown_lists
        changed: dict[str, Any] = {name: grow(getattr(cache, name))}
        cache = cache._replace(**changed)
        states, pendings = len(cache.states.hashes), len(cache.pendings.hashes)
        if len(cache.state_info) < states * at.STATE_COLUMNS:
            cache = cache._replace(
                state_info=grown(cache.state_info, states * at.STATE_COLUMNS),
                table=grown(cache.table, states * len(self.program.arrays.wildcards)),
            )
        if len(cache.pending_info) < pendings * at.PENDING_COLUMNS:
            info = grown(cache.pending_info, pendings * at.PENDING_COLUMNS)
            cache = cache._replace(pending_info=info)
        self._use(cache)

    def _clear(self) -> None:
        """Drop all that open elements do not need; the kernel then finds their states again."""
        self.cleared += 1
        log.info("an automaton cleared its cache, %d bytes, to stay in bounds", size_of(self.cache))
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Go on with an empty cache and what open elements need."""
        self._is_restoring = True
        old, words = self.cache, self._state.words
        self._cleared_at = words[_POSITION].tolist()
        self._set_aside()
        self._forget_place()
        self._use(new_arrays(self.program.arrays, self.program.queries))
        if words[at.IS_OPEN]:
            self._facts(old, at.EMPTY)  # is the first set of all
            child_facts = self._state.arrays.outer_child_facts
            for level in range(int(words[at.DEPTH])):
                child_facts[level] = self._facts(old, int(child_facts[level]))
            words[at.CHILD_FACTS] = self._facts(old, int(words[at.CHILD_FACTS]))
            words[at.CURRENT], words[at.RESTORED] = at.START, 0

    def _forget_place(self) -> None:
        """Forget what a cache has numbers for: pending nodes, and which answers were reported."""
        self._scratch.pending_bits[:] = 0
        self._scratch.needed[:] = 0
        self._state.words[at.TURNED_TO] = 0
        self._state.replace(seen=np.zeros(64, np.int64))

    def _facts(self, old: CacheArrays, number: int) -> int:
        """A set of facts of an old cache in the new one."""
        start, end = old.facts.starts[number : number + 2]
        places, words = old.facts.places[start:end], old.facts.words[start:end]
        while (found := known_facts(self._state.words, places, words)) < 0:
            self._grow(at.FULL_FACTS)
        return int(found)

    # -- retirement --------------------------------------------------------------------------------

    def _retire(self) -> None:
        """Go on without the queries that are true of the document, if these are half of them."""
        words, answers = self._state.words, self.cache.answers
        event, begun = words[at.EVENT], self._events.document_starts[words[at.DOCUMENT]]
        words[at.RETIRE_AT] = event + max(event - begun, words[at.RETIRE_AFTER])
        count, used = answers.counts.tolist()
        found = self._state.arrays.found[words[at.COUNTED_FROM] : words[at.FOUND_COUNT]]
        matches = MatchSet(
            np.array([0, len(found)]), found, answers.starts[: count + 1], answers.members[:used],
            self.program.arrays.sliced,
        )  # fmt: skip
        is_open = np.ones(self.program.queries, np.bool_)
        if words[at.HAS_RETIRED]:
            is_open = self._open.copy()
        before = np.count_nonzero(is_open)
        is_open[matches.numbers(0)] = False
        left = np.count_nonzero(is_open)
        if not left:
            words[at.IS_SETTLED] = 1
        elif SHARE * left <= before:
            if not words[at.HAS_RETIRED]:
                is_small = size_of(self.cache) <= self.bytes_max // 2
                arrays = self.program.arrays
                self._whole = self.cache if is_small else new_arrays(arrays, self.program.queries)
            words[at.HAS_RETIRED] = 1
            self._open = is_open
            self.retired += 1
            for name, bits in what_is_open(self.program.arrays, is_open)._asdict().items():
                getattr(self._scratch, f"open_{name}")[: len(bits)] = bits
            if len(self._scratch.consumed):
                self._scratch.consumed[:] |= ~self._scratch.open_facts
            self._begin_anew()

    def _recall(self) -> None:
        """Begin the next document with all queries, and what is known of them."""
        words = self._state.words
        self._set_aside()
        self._forget_place()
        words[[at.HAS_RETIRED, at.CONSUMED]] = 0
        scratch = self._scratch
        for bits in (scratch.open_queries, scratch.open_facts, scratch.open_nodes):
            bits.fill(~bits.dtype.type(0))
        scratch.open_sliced[:] = np.arange(len(scratch.open_sliced))
        scratch.consumed[:] = 0
        assert self._whole is not None
        self._use(self._whole)
        self._whole = None

    # -- results -----------------------------------------------------------------------------------

    def _set_aside(self) -> None:
        """Keep those of the answers that were found since the cache was cleared last."""
        words, progress, answers = self._state.words, self._state.arrays, self.cache.answers
        begin, occurrences_begin = self._pieces[-1][:2] if self._pieces else (0, 0)
        words[at.COUNTED_FROM] = words[at.FOUND_COUNT]
        words[at.TRUE_AT_MOST] = 0
        end, occurrences_end = words[[at.FOUND_COUNT, at.OCCURRENCE_COUNT]].tolist()
        found = progress.found[begin:end]
        listed = progress.occurrence_answers[occurrences_begin:occurrences_end]
        used = np.concatenate([found, listed])
        used, starts, members = only_used(used, answers.starts, answers.members)
        found[:], listed[:] = np.split(used, [len(found)])
        self._pieces.append(_Piece(end, occurrences_end, starts, members))

    def _match_set(self, documents: int) -> MatchSet:
        words, progress, answers = self._state.words, self._state.arrays, self.cache.answers
        end, occurrences_end = words[[at.FOUND_COUNT, at.OCCURRENCE_COUNT]].tolist()
        count, used = answers.counts.tolist()
        starts, members = answers.starts[: count + 1], answers.members[:used]
        found = progress.found[:end].copy()
        listed = progress.occurrence_answers[:occurrences_end].copy()
        if self._pieces:
            pieces = [*self._pieces, _Piece(end, occurrences_end, starts, members)]
            begin = occurrences_begin = sets = used = 0
            several = [starts[:1]]
            for piece in pieces:
                found[begin : piece.end] += sets
                listed[occurrences_begin : piece.occurrences_end] += sets
                several.append(piece.starts[1:] + used)
                begin, occurrences_begin = piece.end, piece.occurrences_end
                sets += len(piece.starts) - 1
                used += len(piece.members)
            starts = np.concatenate(several)
            members = np.concatenate([piece.members for piece in pieces])
            self._pieces = []
        occurrences = None
        if words[at.OCCURRENCES]:
            located = progress.occurrence_nodes[:occurrences_end].copy()
            begun = progress.occurrence_starts[: documents + 1].copy()
            occurrences = Occurrences(begun, listed, located)
            freeze(*occurrences[:3])
        matches = MatchSet(
            document_starts=progress.found_starts[: documents + 1].copy(),
            set_ids=found,
            set_starts=starts,
            members=members,
            sliced=self.program.arrays.sliced,
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
