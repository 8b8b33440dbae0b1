"""The only place that chooses an engine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from tamis.documents.batch import EventBatch
from tamis.documents.demand import Demand
from tamis.documents.vocabulary import Vocabulary
from tamis.errors import EngineRefused
from tamis.language.model import Query
from tamis.language.printer import print_query
from tamis.matching import reference
from tamis.matching.matchset import MatchSet

log = logging.getLogger("tamis")


class Program(Protocol):
    """Compiled queries, immutable; the rest is the engine's own."""

    @property
    def demand(self) -> Demand:
        """What it reads of documents."""


class Engine(NamedTuple):
    """One algorithm. All engines that support a query give the same answer.

    Attributes:
        name: what ``engine=`` and ``--engine`` call it.
        refuses: why the engine cannot run a query, or None where it can.
        compile: queries → program. Names may be added to the vocabulary, now and not later. A
            query's number is its place.
        match: which queries are true of which documents of a batch. Takes the program, a batch
            that was parsed with at least its demand, and the fork of the vocabulary that it was
            parsed with.
    """

    name: str
    refuses: Callable[[Query], str | None]
    compile: Callable[[Sequence[Query], Vocabulary], Program]
    match: Callable[[Any, EventBatch, Vocabulary], MatchSet]


ENGINES: tuple[Engine, ...] = (
    Engine("reference", lambda query: None, reference.compile_queries, reference.match),
)
"""All engines, the one to try first in front."""


def choose(queries: Sequence[Query], engine: str = "auto") -> Engine:
    """The first engine that supports all queries, or the one that is named.

    Raises:
        EngineRefused: there is no such engine, or it cannot run one of the queries.

    >>> choose([], "warp")
    Traceback (most recent call last):
    tamis.errors.EngineRefused: there is no engine 'warp': choose one of auto, reference
    """
    names = ["auto", *(candidate.name for candidate in ENGINES)]
    if engine not in names:
        raise EngineRefused(f"there is no engine {engine!r}: choose one of {', '.join(names)}")
    reasons: list[str] = []
    for candidate in ENGINES:
        if engine not in ("auto", candidate.name):
            continue
        reason = _first_refusal(candidate, queries)
        if reason is None:
            why = "named by the caller" if engine == candidate.name else "supports all queries"
            log.info("engine %s: %s", candidate.name, "; ".join([*reasons, why]))
            return candidate
        reasons.append(f"{candidate.name} does not: {reason}")
    raise EngineRefused("; ".join(reasons))


def _first_refusal(engine: Engine, queries: Sequence[Query]) -> str | None:
    for query in queries:
        reason = engine.refuses(query)
        if reason is not None:
            return f"{print_query(query)}: {reason}"
    return None
