"""The only place that chooses an engine."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from tamis.documents.batch import EventBatch, Int32
from tamis.documents.demand import Demand
from tamis.documents.vocabulary import Vocabulary
from tamis.errors import EngineRefused
from tamis.language.model import Query
from tamis.language.queries import Queries
from tamis.matching import automaton, nfa, reference
from tamis.matching.filters import refusal
from tamis.matching.matchset import MatchSet, Which

log = logging.getLogger("tamis")


class Program(Protocol):
    """Compiled queries, immutable; the rest is the engine's own."""

    @property
    def demand(self) -> Demand:
        """What it reads of documents."""

    def memory_usage(self) -> int:
        """Its size in bytes, as far as it is known."""


class Matching(Protocol):
    """A program at work, with all that it learns on the way; it belongs to one thread at a time."""

    def match(
        self, batch: EventBatch, vocabulary: Vocabulary, nodes: Which | None = None
    ) -> MatchSet:
        """Which queries are true of which documents.

        Args:
            batch: parsed with at least the program's demand.
            vocabulary: the fork of the program's that it was parsed with.
            nodes: which occurrences to note, by an engine that can: at least these.
        """

    def memory_usage(self) -> int:
        """The size in bytes of what it has learned."""


class Engine(NamedTuple):
    """One algorithm. All engines that support a query give the same answer.

    Attributes:
        name: what ``engine=`` and ``--engine`` call it.
        refuses: why the engine cannot run a query, or None where it can.
        compile: queries → program. A query's number is its place. Of an engine that prunes, it takes
            a ``Pruner`` too, or None, and itself refuses what it cannot run, by ``EngineRefused``.
        open: what matches with a program, learning at most so many bytes (see ``Limits``).
        takes_plain: whether it runs all queries that are plain.
        prunes: whether a DTD changes what it compiles; documents that break it are then answered
            without it.
        locates: whether the ``Occurrences`` of a query are the nodes that it selects.
    """

    name: str
    refuses: Callable[[Query], str | None]
    compile: Callable[..., Program]
    open: Callable[[Any, int], Matching]
    takes_plain: bool
    prunes: bool
    locates: Callable[[Query], bool]


ENGINES: tuple[Engine, ...] = (
    Engine(
        name="automaton",
        refuses=automaton.refuses,
        compile=automaton.compile_queries,
        open=automaton.open_automaton,
        takes_plain=True,
        prunes=False,
        locates=automaton.locates,
    ),
    Engine(
        name="reference",
        refuses=lambda _: None,
        compile=reference.compile_queries,
        open=reference.open_reference,
        takes_plain=False,
        prunes=False,
        locates=lambda _: False,
    ),
    Engine(
        name="nfa",
        refuses=nfa.refuses,
        compile=nfa.compile_queries,
        open=nfa.open_nfa,
        takes_plain=True,
        prunes=True,
        locates=lambda _: False,
    ),
)
"""All engines, the one to try first in front; those behind ``reference``, which runs everything,
are used where they are named."""


class Share(NamedTuple):
    """The queries that one engine answers.

    Attributes:
        numbers: int32[]; which of all they are, ascending.
    """

    engine: Engine
    queries: Queries
    numbers: Int32


Lane = tuple[Share, Program]
"""What an engine answers, and with what."""


def plan(queries: Sequence[Query], engine: str = "auto") -> list[Share]:
    """Give each query to the first engine that supports it, or all to the one that is named.

    Raises:
        EngineRefused: there is no such engine, or it cannot run one of the queries.

    >>> from tamis.language.xpath import parse
    >>> queries = [parse("//a"), parse("//a[name() = 'x']"), parse("//b")]
    >>> [(share.engine.name, share.numbers) for share in plan(queries)]
    [('automaton', array([0, 2], dtype=int32)), ('reference', array([1], dtype=int32))]
    >>> plan([], "warp")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tamis.errors.EngineRefused: there is no engine 'warp': choose one of auto, automaton, ...
    """
    names = ["auto", *(candidate.name for candidate in ENGINES)]
    if engine not in names:
        raise EngineRefused(f"there is no engine {engine!r}: choose one of {', '.join(names)}")
    given = Queries.of(queries)
    if engine != "auto":
        (named,) = (candidate for candidate in ENGINES if candidate.name == engine)
        asked = () if named.prunes else given.others if named.takes_plain else given
        for query in asked:
            if (reason := named.refuses(query)) is not None:
                raise refusal(named.name, query, reason)
        log.info("engine %s: named by the caller", named.name)
        return [Share(named, given, np.arange(len(given), dtype=np.int32))]
    return _divided(given)


def reason_of(query: Query) -> str:
    """Which engine answers a query, and why not those before it.

    >>> from tamis.language.xpath import parse
    >>> reason_of(parse("//a")), reason_of(parse("//a[name() = 'b']"))
    ('automaton', 'reference (not automaton: it calls name())')
    """
    refusals = []
    for engine in ENGINES:
        reason = engine.refuses(query)
        if reason is None:
            break
        refusals.append(f"not {engine.name}: {reason}")
    return f"{engine.name} ({'; '.join(refusals)})" if refusals else engine.name


def _divided(queries: Queries) -> list[Share]:
    first = len(queries.plain)  # of the others, each of which is looked at
    plain_left, left = first, np.arange(len(queries.others))
    shares: list[Share] = []
    for engine in ENGINES:
        reasons = [engine.refuses(queries.others[number]) for number in left.tolist()]
        is_mine = np.array([reason is None for reason in reasons], np.bool_)
        mine, left = left[is_mine], left[~is_mine]
        plain = plain_left if engine.takes_plain else 0
        plain_left -= plain
        if plain or len(mine) or not queries:
            numbers = np.concatenate([np.arange(plain), first + mine]).astype(np.int32)
            shares.append(Share(engine, queries.part(plain > 0, mine), numbers))
            log.info("engine %s: %d of %d queries", engine.name, len(numbers), len(queries))
        for reason, count in Counter(filter(None, reasons)).items():
            log.info("engine %s does not run %d of them: %s", engine.name, count, reason)
        if not plain_left and not len(left):
            break
    assert not plain_left, "some engine takes the plain ones"
    assert not len(left), "the reference engine takes all"
    return shares
