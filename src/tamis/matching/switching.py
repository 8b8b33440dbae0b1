"""Which engine answers a batch where nobody named one: decided while documents are matched.

The automaton is the fastest engine by far where documents repeat themselves, and among the slowest
where nearly every element brings a new state. Engines without a cache cost the same on all
documents. What documents are like is known only once they are there. So a :class:`SwitchedSearcher`
begins with the automaton and measures seconds for each event, apart for each *kind* of document
(by the names of root elements):

* Where many states are new, the time counts as lost. Once the lost time is what it takes to compile
  an engine without a cache, that engine is compiled, and tried on a few documents. So what is
  compiled in vain at most doubles the time.
* From then on the cheaper one answers. The other one gets a few documents whenever it has to be
  measured again: a share of the time (``PROBED``) is spent on that. What the automaton learns of
  these documents is not lost: once it is the cheaper one again, it answers.

When not to use this: an engine that is named is used.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import numpy as np

from tamis.core.errors import EngineRefused
from tamis.core.index.matchset import MatchSet, Which, joined
from tamis.documents.batch import DocumentBatch, part
from tamis.documents.vocabulary import Vocabulary
from tamis.language.queries import Queries
from tamis.matching.engine import Engine, Program, Searcher, Sources

log = logging.getLogger("tamis")

PROBED = 0.06
"""The share of the time in which the engine that is not the cheapest is measured again."""
SAMPLE_EVENTS = 20_000
"""How many events are enough to measure an engine."""
NEW_STATES = 0.02
"""States that are new, an event, from which on the automaton's time counts as lost."""
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


class Switch:
    """The engine without a cache beside a program of the automaton, for all threads.

    Args:
        program: of the automaton.
        least_cost: in seconds an event, the least that the engine may cost.

    Attributes:
        costs: by kind of document.
        is_open: whether the engine may still come to be compiled.
    """

    def __init__(
        self, engine: Engine, queries: Queries, program: Program, least_cost: float
    ) -> None:
        self.costs: dict[object, Costs] = defaultdict(Costs)
        self._engine, self._queries, self._least_cost = engine, queries, least_cost
        self._projection = program.projection
        self._lost = 0.0
        self._direct: tuple[Engine, Program] | None = None
        self.is_open = len(queries) > 0
        self._lock = threading.Lock()

    def add_lost(self, seconds: float, events: int) -> None:
        """Count time of the automaton that went into new states."""
        if seconds > self._least_cost * events:
            self._lost += seconds

    def direct(self) -> tuple[Engine, Program] | None:
        """The engine without a cache and its program, if it is worth it and there is one."""
        if self.is_open and self._lost > self._seconds_to_compile():
            with self._lock:
                if self.is_open:
                    self._direct = self._compiled()
                    self.is_open = False
        return self._direct

    def _seconds_to_compile(self) -> float:
        return 0.02 + 2.5e-6 * len(self._queries.plain.code) + 5e-5 * len(self._queries.others)

    def _compiled(self) -> tuple[Engine, Program] | None:
        engine = self._engine
        try:
            program = engine.compile(self._queries)
        except EngineRefused as refused:
            log.info("no %s beside the automaton: %s", engine.name, refused)
            return None
        if self._projection | program.projection != self._projection:
            return None  # documents are parsed for the automaton
        log.info("engine %s: compiled, since documents bring many new states", engine.name)
        return engine, program


class CachingSearcher(Searcher, Protocol):
    """A searcher that says how much it knows."""

    def entries(self) -> int:
        """States, and pairs of sets, that are in its cache."""


class SwitchedSearcher:
    """The automaton, or the engine without a cache, whichever costs less; for one thread."""

    def __init__(self, switch: Switch, cached: CachingSearcher, cache_bytes: int) -> None:
        self.cached = cached
        self._switch, self._cache_bytes = switch, cache_bytes
        self._searcher: Searcher | None = None

    def memory_usage(self) -> int:
        """The caches of both."""
        direct = 0 if self._searcher is None else self._searcher.memory_usage()
        return self.cached.memory_usage() + direct

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
        costs = self._switch.costs[_kind(batch, vocabulary)]
        found: MatchSet | None = None
        while batch.documents or found is None:
            name, events = self._next(costs, len(batch.tags))
            count = int(np.searchsorted(batch.document_starts, events))
            some, batch = batch, part(batch, batch.documents, batch.documents)
            if count < some.documents:
                some, batch = part(some, 0, count), part(some, count, some.documents)
            answered = self._measured(name, costs, some, vocabulary)
            found = answered if found is None else _behind(found, answered)
        return found

    def _next(self, costs: Costs, events: int) -> tuple[str, int]:
        """Which engine answers next, and how many events of those that there are."""
        direct = self._switch.direct()
        if direct is None:
            return "cached", SAMPLE_EVENTS if self._switch.is_open else events
        if self._searcher is None:
            engine, program = direct
            self._searcher = engine.searcher(program, self._cache_bytes)
        best, other = "cached", "direct"
        if costs.direct is not None and (costs.cached is None or costs.direct < costs.cached):
            best, other = other, best
        cost = getattr(costs, other)
        needed = 0.0 if cost is None else cost * min(events, SAMPLE_EVENTS)
        if costs.unspent >= needed:
            costs.unspent -= needed
            return other, SAMPLE_EVENTS
        costs.unspent += PROBED * getattr(costs, best) * events
        return best, events

    def _measured(
        self, name: str, costs: Costs, batch: DocumentBatch, vocabulary: Vocabulary
    ) -> MatchSet:
        """What an engine says; how long it takes is added to costs."""
        searcher = self.cached if name == "cached" else self._searcher
        assert searcher is not None
        entries, started = self.cached.entries(), perf_counter()
        found = searcher.match(batch, vocabulary)
        seconds, events = perf_counter() - started, len(batch.tags)
        costs.add(name, seconds, events)
        new = self.cached.entries() - entries
        if name == "cached" and not 0 <= new <= NEW_STATES * events:  # less: it was cleared
            self._switch.add_lost(seconds, events)
        return found


def _kind(batch: DocumentBatch, vocabulary: Vocabulary) -> object:
    """What tells batches apart: the names of root elements."""
    starts = batch.document_starts
    if batch.documents == 1 and starts[1] > starts[0]:
        return vocabulary.expanded(int(batch.tags[starts[0]]))
    roots = batch.tags[starts[:-1][starts[:-1] < starts[1:]]]
    return frozenset(vocabulary.expanded(root) for root in set(roots.tolist()))


def _behind(first: MatchSet, second: MatchSet) -> MatchSet:
    """The matches of some documents, and of those behind them."""
    before = np.zeros(first.documents, np.int64)
    behind = np.full(second.documents, first.document_starts[-1])
    padded = first._replace(document_starts=np.append(first.document_starts, behind))
    return joined(
        [
            (padded, None),
            (second._replace(document_starts=np.append(before, second.document_starts)), None),
        ]
    )
