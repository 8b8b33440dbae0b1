"""The only place that chooses an engine."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.core.arguments import is_one_of
from tamis.core.arrays import Int32
from tamis.core.errors import EngineRefused
from tamis.core.index.planner import Choices
from tamis.language.model import Query
from tamis.language.queries import Queries
from tamis.matching.engine import Engine, Program, Searcher, locates_nothing
from tamis.matching.engines import automaton, reference
from tamis.matching.filters import refusal
from tamis.schema.prune import Pruner

if TYPE_CHECKING:
    from tamis.matching.conformance import Schema

log = logging.getLogger("tamis")


ENGINES = Choices(
    "engine",
    "tamis.engines",
    {name: f"tamis.matching.engines.{name}:ENGINE" for name in ("automaton", "reference", "nfa")},
)
AUTOMATIC: tuple[Engine, ...] = (automaton.ENGINE, reference.ENGINE)
"""Those that are chosen where none is named: the last of them takes all queries."""


class Assignment(NamedTuple):
    """The queries that one engine answers.

    Attributes:
        numbers: int32[]; which of all they are, ascending.
    """

    engine: Engine
    queries: Queries
    numbers: Int32


CompiledAssignment = tuple[Assignment, Program]
"""What an engine answers, and with what."""


def compile_assignment(share: Assignment, schema: Schema | None = None) -> CompiledAssignment:
    """What an engine answers, compiled; with a schema, if that engine gains by one."""
    engine = share.engine
    if schema is None or engine.heuristics is None:
        return share, engine.compile(share.queries)
    from tamis.matching.conformance import SchemaFallback  # noqa: PLC0415 - few have a DTD

    pruner = Pruner(schema.expanded, schema.heuristics or engine.heuristics)
    program = engine.compile(share.queries, pruner)
    pruned = engine._replace(locates=locates_nothing)  # pruned queries are true, of other nodes
    if schema.is_trusted:
        return share._replace(engine=pruned), program

    def without() -> tuple[Program, Callable[[Program, int], Searcher]]:
        try:
            return engine.compile(share.queries), engine.searcher
        except EngineRefused as refused:
            other = _first_for(share.queries)
            log.info("documents that leave the DTD go to %s, since %s", other.name, refused)
            return other.compile(share.queries), other.searcher

    promised = SchemaFallback(schema.edges, program, engine.searcher, without)
    return share._replace(engine=pruned._replace(searcher=SchemaFallback.open)), promised


def _first_for(queries: Queries) -> Engine:
    """The first of the automatic engines that takes all of some queries."""
    for engine in AUTOMATIC:
        asked = queries.others if engine.takes_plain else queries
        if all(engine.refuses(query) is None for query in asked):
            return engine
    raise AssertionError("the last engine takes all")


def plan(queries: Sequence[Query], engine: str = "auto") -> list[Assignment]:
    """Give each query to the first engine that supports it, or all to the one that is named.

    Raises:
        EngineRefused: there is no such engine, or it cannot run one of the queries.

    >>> from tamis.language.xpath import parse
    >>> queries = [parse("//a"), parse("//a[name() = 'x']"), parse("//b")]
    >>> [(share.engine.name, share.numbers) for share in plan(queries)]
    [('automaton', array([0, 2], dtype=int32)), ('reference', array([1], dtype=int32))]
    >>> plan([], "warp")
    Traceback (most recent call last):
    tamis.core.errors.EngineRefused: there is no engine 'warp': choose one of auto, automaton, \
reference, nfa, pma
    """
    given = Queries.of(queries)
    if not is_one_of(engine, ("auto",)):
        named: Engine = ENGINES.named(engine)
        asked = given.others if named.takes_plain else given
        for query in asked if named.is_automatic else ():
            if (reason := named.refuses(query)) is not None:
                raise refusal(named.name, query, reason)
        log.info("engine %s: named by the caller", named.name)
        return [Assignment(named, given, np.arange(len(given), dtype=np.int32))]
    return _divided(given)


def reason_of(query: Query) -> str:
    """Which engine answers a query, and why not those before it.

    >>> from tamis.language.xpath import parse
    >>> reason_of(parse("//a")), reason_of(parse("//a[name() = 'b']"))
    ('automaton', 'reference (not automaton: it calls name())')
    """
    refusals = []
    for engine in AUTOMATIC:
        reason = engine.refuses(query)
        if reason is None:
            break
        refusals.append(f"not {engine.name}: {reason}")
    return f"{engine.name} ({'; '.join(refusals)})" if refusals else engine.name


def _divided(queries: Queries) -> list[Assignment]:
    first = len(queries.plain)  # of the others, each of which is looked at
    plain_left, left = first, np.arange(len(queries.others))
    shares: list[Assignment] = []
    for engine in AUTOMATIC:
        reasons = [engine.refuses(queries.others[number]) for number in left.tolist()]
        is_mine = np.array([reason is None for reason in reasons], np.bool_)
        mine, left = left[is_mine], left[~is_mine]
        plain = plain_left if engine.takes_plain else 0
        plain_left -= plain
        if plain or len(mine) or not queries:
            numbers = np.concatenate([np.arange(plain), first + mine]).astype(np.int32)
            shares.append(Assignment(engine, queries.part(plain > 0, mine), numbers))
            log.info("engine %s: %d of %d queries", engine.name, len(numbers), len(queries))
        for reason, count in Counter(filter(None, reasons)).items():
            log.info("engine %s does not run %d of them: %s", engine.name, count, reason)
        if not plain_left and not len(left):
            break
    assert not plain_left, "some engine takes the plain ones"
    assert not len(left), "reference takes all"
    return shares
