"""Which engine answers a batch where nobody named one: decided while documents are matched.

The automaton costs a look-up or two an event where documents repeat themselves, and microseconds
for each new state, where it is among the slowest engines. An engine without a cache knows nothing
of that difference, but takes long to compile. What documents are like is known only once they are
there. So a :class:`SwitchedSearcher` begins with the automaton and measures seconds for each event,
apart for each *kind* of document (by the names of root elements):

* Where many states are new, the time that they take counts as lost; elsewhere a tenth of it does.
  Once so much is lost as it takes to compile an engine without a cache, that engine is compiled
  beside the matching, and tried on a few documents: what is in vain is a tenth of the time where
  documents repeat themselves.
* From then on the cheaper one answers. The other one gets a few documents whenever it has to be
  measured again: a share of the time (``PROBED``) is spent on that, less if it is much dearer. What
  the automaton learns of these documents is not lost.

An engine that is named is used.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tamis.core.arrays import Int32, Int64, starts_of
from tamis.core.errors import EngineRefused
from tamis.core.index.matchset import MatchSet, Which, joined
from tamis.documents.batch import DocumentBatch, part
from tamis.documents.parser import Recorded
from tamis.documents.vocabulary import Vocabulary
from tamis.matching.engine import OneSearcher, Program, Searcher, Sources

if TYPE_CHECKING:
    from tamis.matching.planner import CompiledAssignment

log = logging.getLogger("tamis")

PROBED = 0.06
"""The share of the time in which the engine that is not the cheapest is measured again, at most."""
TRIED = 0.1
"""The share of the automaton's time that counts as lost where few states are new."""
SAMPLE_EVENTS = 20_000
"""How many events are enough to measure an engine."""
LONG_EVENTS = 200_000
"""Longer documents are the automaton's: another engine can only be measured on whole ones."""
NEW_STATES = 0.002
"""States that are new, an event, from which on all of the automaton's time counts as lost."""
COMPILE_MIN = 0.02
"""Seconds that it takes to compile any queries."""
KINDS_MAX = 32
"""Kinds of documents that are measured apart; later ones are measured together."""
_WEIGHT = 0.3
"""Of the last measure in the mean of all."""


@dataclass
class Costs:
    """What documents of a kind cost, in seconds an event; None: not measured.

    Attributes:
        unspent: seconds that may be spent on measuring the other engine.
    """

    cached: float | None = None
    direct: float | None = None
    unspent: float = 0.0

    def add(self, name: str, seconds: float, events: int) -> None:
        """Add a measure of an engine."""
        cost, known = seconds / max(events, 1), getattr(self, name)
        setattr(self, name, cost if known is None else known + _WEIGHT * (cost - known))

    def choose(self, batch: DocumentBatch, sample: int) -> tuple[str, int]:
        """Which engine answers, and how many of the documents; a sample where it is measured."""
        best, other = "cached", "direct"
        if self.cached is None or (self.direct is not None and self.direct < self.cached):
            best, other = other, best
        cost, known = getattr(self, other), getattr(self, best)
        if known is None:
            return best, sample
        needed = 0.0 if cost is None else cost * int(batch.document_starts[sample])
        if self.unspent >= needed:
            self.unspent -= needed
            return other, sample
        share = PROBED if cost is None else PROBED * known / cost
        self.unspent += share * known * len(batch.tags)
        return best, batch.documents


def in_background(work: Callable[[], None]) -> None:
    """Do work that nobody waits for: to compile a million queries takes many seconds."""
    threading.Thread(target=work, name="tamis-compile", daemon=True).start()


class WithoutCache(NamedTuple):
    """An engine without a cache, which may answer some queries.

    Attributes:
        compile: compiles them; what the engine refuses is for another one.
        compile_seconds: how long that takes, about.
    """

    compile: Callable[[], Sequence[CompiledAssignment]]
    compile_seconds: float


class Switch:
    """The engine without a cache beside a program of the automaton, for all threads.

    Args:
        choose: which engine it is; asked once some time is lost.
        program: of the automaton.

    Attributes:
        is_open: whether the engine may still come to be compiled.
    """

    def __init__(self, choose: Callable[[], WithoutCache], program: Program) -> None:
        self.is_open = True
        self._choose = cache(choose)
        self._projection = program.projection
        self._costs: dict[object, Costs] = defaultdict(Costs)
        self._lost = 0.0
        self._direct: Sequence[CompiledAssignment] = ()
        self._lock = threading.Lock()

    def costs_of(self, kind: object) -> Costs:
        """What documents of a kind cost."""
        if len(self._costs) >= KINDS_MAX and kind not in self._costs:
            kind = None  # each batch may have root elements of its own
        return self._costs[kind]

    def add_lost(self, seconds: float) -> None:
        """Count seconds of the automaton in which another engine might have taken fewer."""
        self._lost += seconds
        self.direct()  # it begins to be compiled

    def direct(self) -> Sequence[CompiledAssignment]:
        """What is compiled for the engine without a cache; nothing where it is not worth it."""
        is_tried = self.is_open and self._lost >= COMPILE_MIN  # few documents: none is chosen yet
        if is_tried and self._lost > self._choose().compile_seconds:
            with self._lock:  # meanwhile all threads go on with the automaton
                is_mine, self.is_open = self.is_open, False
            if is_mine:
                in_background(self._compile)
        return self._direct

    def _compile(self) -> None:
        try:
            compiled = self._choose().compile()
        except EngineRefused as refused:
            log.info("no other engine beside the automaton: %s", refused)
            return
        for (engine, _, numbers), program in compiled:
            if self._projection | program.projection != self._projection:
                log.info("no other engine: %s reads more of documents", engine.name)
                return
            log.info("new states: %s may answer %d of the queries", engine.name, len(numbers))
        self._direct = compiled


class CachingSearcher(OneSearcher, Protocol):
    """A searcher that says how much it knows."""

    def entries(self) -> int:
        """States, and pairs of sets, that are in its cache."""


class SwitchedSearcher:
    """The automaton, or the engine without a cache, whichever costs less; for one thread."""

    def __init__(self, switch: Switch, cached: CachingSearcher, cache_bytes: int) -> None:
        self.cached = cached
        self._switch, self._cache_bytes = switch, cache_bytes
        self._direct: Sequence[tuple[Searcher, Int32 | None]] = ()
        self._entries = cached.entries()

    def memory_usage(self) -> int:
        """The caches of both."""
        direct = (searcher.memory_usage() for searcher, _ in self._direct)
        return self.cached.memory_usage() + sum(direct)

    def match(
        self,
        batch: DocumentBatch,
        vocabulary: Vocabulary,
        nodes: Which | None = None,
        sources: Sources | None = None,
    ) -> MatchSet:
        """Which queries are true of which documents."""
        if nodes is not None:
            return self.cached.match(batch, vocabulary, nodes, sources)
        costs: Costs | None = None
        found: list[MatchSet] = []
        are_new = True
        while True:
            count, sample = batch.documents, _sample(batch)
            if batch.document_starts[sample] > LONG_EVENTS:
                count = sample
                found.append(self.cached.match(part(batch, 0, count), vocabulary))
            elif self._switch.direct():
                costs = costs or self._switch.costs_of(_kind(batch, vocabulary))
                name, count = costs.choose(batch, sample)
                found.append(self._measured(name, costs, part(batch, 0, count), vocabulary))
            elif self._switch.is_open:
                # Where states are new, a few documents at a time: the rest is for the other engine.
                count = sample if are_new else count
                matches, are_new = self._counted(part(batch, 0, count), vocabulary)
                found.append(matches)
            else:
                found.append(self.cached.match(batch, vocabulary))
            if count == batch.documents:
                return _in_order(found)
            batch = part(batch, count, batch.documents)

    def match_one(
        self, recorded: Recorded, vocabulary: Vocabulary, listing: Int64, part: int
    ) -> bool:
        """As ``OneSearcher`` does, as long as the automaton answers."""
        if self._switch.direct():
            return False
        started = perf_counter()
        is_done = self.cached.match_one(recorded, vocabulary, listing, part)
        if is_done and self._switch.is_open:
            before, self._entries = self._entries, self.cached.entries()
            share = TRIED if self._entries == before else 1.0
            self._switch.add_lost(share * (perf_counter() - started))
        return is_done

    def _counted(self, batch: DocumentBatch, vocabulary: Vocabulary) -> tuple[MatchSet, bool]:
        """What the automaton says; the time that it lost, and whether many states were new."""
        started = perf_counter()
        found = self.cached.match(batch, vocabulary)
        seconds, events = perf_counter() - started, len(batch.tags)
        before, self._entries = self._entries, self.cached.entries()
        # Fewer entries than before: the cache was cleared.
        are_new = not 0 <= self._entries - before <= NEW_STATES * events
        if are_new:
            self._switch.costs_of(_kind(batch, vocabulary)).add("cached", seconds, events)
        self._switch.add_lost(seconds if are_new else TRIED * seconds)
        return found, are_new

    def _measured(
        self, name: str, costs: Costs, batch: DocumentBatch, vocabulary: Vocabulary
    ) -> MatchSet:
        """What an engine says; how long it takes is added to costs."""
        if not self._direct:
            direct = self._switch.direct()
            self._direct = [
                (engine.searcher(program, self._cache_bytes), numbers if len(direct) > 1 else None)
                for (engine, _, numbers), program in direct
            ]
        started = perf_counter()
        if name == "cached":
            found = self.cached.match(batch, vocabulary)
        else:
            parts = ((some.match(batch, vocabulary), numbers) for some, numbers in self._direct)
            found = joined([*parts])
        costs.add(name, perf_counter() - started, len(batch.tags))
        return found


def _sample(batch: DocumentBatch) -> int:
    """How many of the documents are enough to measure an engine."""
    if len(batch.tags) <= SAMPLE_EVENTS:
        return batch.documents
    return int(np.searchsorted(batch.document_starts, SAMPLE_EVENTS))


def _kind(batch: DocumentBatch, vocabulary: Vocabulary) -> object:
    """What tells batches apart: the names of root elements."""
    starts = batch.document_starts
    if batch.documents == 1 and starts[1] > starts[0]:
        return vocabulary.expanded(int(batch.tags[starts[0]]))
    roots = batch.tags[starts[:-1][starts[:-1] < starts[1:]]]
    return frozenset(vocabulary.expanded(root) for root in set(roots.tolist()))


def _in_order(parts: Sequence[MatchSet]) -> MatchSet:
    """The matches of some documents, of those behind them, and so on."""
    if len(parts) == 1:
        return parts[0]
    counts = [np.diff(each.document_starts) for each in parts]
    padded = []
    for number, each in enumerate(parts):
        own = [count if i == number else np.zeros_like(count) for i, count in enumerate(counts)]
        padded.append((each._replace(document_starts=starts_of(np.concatenate(own))), None))
    return joined(padded)
