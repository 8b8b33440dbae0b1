"""What an engine of events is: the contract that all keep, and that the planner chooses by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from tamis.core.index.matchset import MatchSet
from tamis.events.model import EventBatch, FilterTable, Owners


class Program(Protocol):
    """Compiled filters, immutable, shared by threads; the rest is the engine's own."""

    def memory_usage(self) -> int:
        """Its size in bytes."""


class Searcher(Protocol):
    """A program at work; it belongs to one thread at a time, and may use several of its own."""

    def match(self, batch: EventBatch) -> MatchSet:
        """The owners of filters that match each event.

        Document n of the result is event n of the batch, and members of sets are numbers of owners;
        ``subscribers`` is None, and ``errors`` empty: errors are the batch's.
        """

    def memory_usage(self) -> int:
        """The size in bytes of the room that it works in."""


class Engine(NamedTuple):
    """One algorithm. All engines give the same answers, and take all filters.

    Attributes:
        name: what ``engine=`` and ``--engine`` call it.
        compile: filters → program.
        searcher: what matches with a program and reports these owners, with so many threads at
            most.
    """

    name: str
    compile: Callable[[FilterTable], Program]
    searcher: Callable[[Any, Owners, int], Searcher]
