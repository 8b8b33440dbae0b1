"""The only place that chooses an engine."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arguments import is_one_of
from tamis.core.arrays import Int32
from tamis.core.errors import BadSubscriptions, EngineRefused
from tamis.core.index.engine import Choices
from tamis.language.model import Query
from tamis.language.queries import Queries
from tamis.language.subscriptions import Subscriptions
from tamis.matching.engine import Engine, Program, UnusableQueries, refusal
from tamis.matching.engines import automaton, lxml, reference

if TYPE_CHECKING:
    from tamis.matching.conformance import Schema, Violations

log = logging.getLogger("tamis")

ENGINES = Choices(
    "engine",
    "tamis.engines",
    {name: f"tamis.matching.engines.{name}:ENGINE" for name in ("automaton", "reference", "nfa")},
)
AUTOMATIC: tuple[Engine, ...] = (automaton.ENGINE, reference.ENGINE)
"""Those that are chosen where none is named: the last of them takes all queries that can be
streamed. The others go to lxml.
"""


class Assignment(NamedTuple):
    """The queries that one engine answers.

    Attributes:
        numbers: int32[]; which of all they are, ascending.
    """

    engine: Engine
    queries: Queries
    numbers: Int32


Indices = NDArray[np.int64]
CompiledAssignment = tuple[Assignment, Program]
"""What an engine answers, and with what."""


def compile_assignment(
    assignment: Assignment,
    subscriptions: Subscriptions,
    schema: Schema | None = None,
    violations: Violations | None = None,
) -> CompiledAssignment:
    """Compile what an engine answers; with a schema, if that engine gains by one.

    Raises:
        BadSubscriptions: the engine finds some wrong.
    """
    engine = assignment.engine
    if schema is not None and engine.heuristics is not None:
        from tamis.matching.conformance import with_schema  # noqa: PLC0415 - few have a DTD

        def fallback(queries: Sequence[Query]) -> tuple[Engine, Program]:
            try:
                return engine, engine.compile(queries)
            except EngineRefused as refused:
                other = _first_for(Queries.of(queries))
                log.info("documents that leave the DTD go to %s, since %s", other.name, refused)
                return other, other.compile(queries)

        assignment = assignment._replace(engine=with_schema(engine, schema, violations, fallback))
    try:
        program = assignment.engine.compile(assignment.queries)
    except UnusableQueries as unusable:
        errors = {assignment.numbers[number]: error for number, error in unusable.errors.items()}
        asking = np.flatnonzero(np.isin(subscriptions.query_numbers, list(errors))).tolist()
        raise BadSubscriptions(
            tuple(
                errors[subscriptions.query_numbers[number]].located(subscriptions.ids[number], None)
                for number in asking
            )
        ) from None
    if engine is lxml.ENGINE:
        count = np.isin(subscriptions.query_numbers, assignment.numbers).sum()
        log.warning("%d of %d subscriptions go through lxml", count, len(subscriptions))
    return assignment, program


def _first_for(queries: Queries) -> Engine:
    """The first of the automatic engines that takes all of some queries."""
    for engine in AUTOMATIC:
        asked = queries.others if engine.takes_plain else queries
        if all(engine.refuses(query) is None for query in asked):
            return engine
    raise AssertionError("the last engine takes all")


def plan(queries: Sequence[Query], engine: str = "auto") -> list[Assignment]:
    """Give each query to the first engine that supports it, or all to the one that is named.

    Queries outside the streamed fragment go to lxml, whatever engine is named.

    Raises:
        EngineRefused: there is no such engine, or it cannot run one of the queries.

    >>> from tamis.language.xpath import parse
    >>> queries = [parse("//a"), parse("//a[name() = 'x']"), parse("//b")]
    >>> [(assignment.engine.name, assignment.numbers) for assignment in plan(queries)]
    [('automaton', array([0, 2], dtype=int32)), ('reference', array([1], dtype=int32))]
    >>> plan([], "warp")
    Traceback (most recent call last):
    tamis.core.errors.EngineRefused: there is no engine 'warp': choose one of auto, automaton, \
reference, nfa, pma
    """
    given = Queries.of(queries)
    unstreamed = unstreamed_of(given)
    left = np.delete(np.arange(len(given.others)), unstreamed.numbers - len(given.plain))
    if is_one_of(engine, ("auto",)):
        assignments = [*_divided(given, left), unstreamed]
    else:
        assignments = [_named(ENGINES.named(engine), given, left), unstreamed]
    return [found for found in assignments if len(found.numbers)] or assignments[:1]


def unstreamed_of(queries: Queries) -> Assignment:
    """The queries outside the streamed fragment, which lxml evaluates."""
    others = np.array(queries.unstreamed(), np.int64) - len(queries.plain)
    return _assigned(lxml.ENGINE, queries, 0, others)


def _assigned(engine: Engine, queries: Queries, plain: int, others: Indices) -> Assignment:
    """All plain queries or none, and some others, counted from the first one."""
    numbers = np.concatenate([np.arange(plain), len(queries.plain) + others]).astype(np.int32)
    if len(numbers) == len(queries):
        return Assignment(engine, queries, numbers)
    return Assignment(engine, queries.part(plain > 0, others), numbers)


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


def _named(engine: Engine, queries: Queries, others: Indices) -> Assignment:
    """The plain queries and some others, for the engine that the caller named."""
    result = _assigned(engine, queries, len(queries.plain), others)
    asked = result.queries.others if engine.takes_plain else result.queries
    for query in asked if engine.is_automatic else ():
        if (reason := engine.refuses(query)) is not None:
            raise refusal(engine.name, query, reason)
    log.info("engine %s: named by the caller", engine.name)
    return result


def _divided(queries: Queries, left: Indices) -> Iterator[Assignment]:
    """The plain queries and some others, each for the first engine that takes it."""
    plain_left = len(queries.plain)
    for engine in AUTOMATIC:
        reasons = [engine.refuses(queries.others[number]) for number in left.tolist()]
        is_mine = np.array([reason is None for reason in reasons], np.bool_)
        mine, left = left[is_mine], left[~is_mine]
        plain = plain_left if engine.takes_plain else 0
        plain_left -= plain
        if plain or len(mine) or not queries:
            yield _assigned(engine, queries, plain, mine)
            log.info("engine %s: %d of %d queries", engine.name, plain + len(mine), len(queries))
        for reason, count in Counter(filter(None, reasons)).items():
            log.info("engine %s does not run %d of them: %s", engine.name, count, reason)
        if not plain_left and not len(left):
            break
    assert not plain_left, "some engine takes the plain ones"
    assert not len(left), "reference takes all that is streamed"
