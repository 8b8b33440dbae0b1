"""The contract that all engines of events keep, and the only place that chooses one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from tamis.core.arguments import is_one_of
from tamis.core.index import Choices, MemoryUser
from tamis.core.index.matchset import MatchSet
from tamis.events.model import EventBatch, FilterTable, Owners

log = logging.getLogger("tamis.events.planner")


class Searcher(MemoryUser, Protocol):
    """Matches with a program. It belongs to one thread, and may use several of its own."""

    def match(self, batch: EventBatch) -> MatchSet:
        """The owners of filters that match each event.

        Document n of the result is event n of the batch, and members of sets are numbers of owners.
        Errors are the batch's.
        """


class Engine(NamedTuple):
    """One algorithm. All engines give the same answers, and take all filters.

    Attributes:
        compile: filters → program, immutable, shared by threads; the rest is the engine's own.
        searcher: makes a searcher of a program, of the owners to report, and of the most threads
            that it may use.
        is_whole: whether it takes clauses and residual constraints too; for others,
            ``events.residual`` looks at these.
    """

    name: str
    compile: Callable[[FilterTable], MemoryUser]
    searcher: Callable[[Any, Owners, int], Searcher]
    is_whole: bool = False


DEFAULT = "signature"
ENGINES = Choices(
    "engine",
    "tamis.event_engines",
    {name: f"tamis.events.engines.{name}:ENGINE" for name in (DEFAULT, "reference")},
)


def choose(name: str) -> Engine:
    """The engine of a name; ``auto`` is the default one. Raises ``EngineRefused`` for others."""
    chosen: Engine = ENGINES.named(DEFAULT if is_one_of(name, ("auto",)) else name)
    log.info("engine %s%s", chosen.name, ", the default" if name == "auto" else "")
    return chosen
