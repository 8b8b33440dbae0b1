"""The only place that chooses an engine."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.core.arguments import is_one_of
from tamis.core.arrays import Int32
from tamis.core.errors import BadSubscriptions, EngineRefused
from tamis.core.index import Choices
from tamis.language.model import Query
from tamis.language.queries import Queries
from tamis.language.subscriptions import Subscriptions
from tamis.matching.engine import Engine, Program, Searcher, UnusableQueries, reason_of, refusal
from tamis.matching.engines import automaton, lxml, reference

if TYPE_CHECKING:
    from tamis.matching.conformance import Schema, Violations
    from tamis.matching.switching import WithoutCache

log = logging.getLogger("tamis")

ENGINES = Choices(
    "engine",
    "tamis.engines",
    {
        **{
            name: f"tamis.matching.engines.{name}:ENGINE"
            for name in ("automaton", "reference", "nfa", "stacks")
        },
        "stacks-cuda": "tamis.matching.engines.stacks:CUDA",
    },
)
AUTOMATIC: tuple[Engine, ...] = (automaton.ENGINE, reference.ENGINE)
"""The engines that are chosen where none is named. The last one takes all queries that can be
streamed; lxml answers the others.
"""


class Assignment(NamedTuple):
    """The queries that one engine answers; ``numbers`` says which of all they are, ascending."""

    engine: Engine
    queries: Queries
    numbers: Int32


CompiledAssignment = tuple[Assignment, Program]


def compile_assignment(
    assignment: Assignment,
    subscriptions: Subscriptions,
    schema: Schema | None = None,
    violations: Violations | None = None,
) -> CompiledAssignment:
    """Compile the queries of an engine; with a schema, if that engine gains by one.

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
                given = Queries.of(queries)
                other = next(engine for engine in AUTOMATIC if not engine.refuses(given))
                log.info("documents that leave the DTD go to %s, since %s", other.name, refused)
                return other, other.compile(queries)

        assignment = assignment._replace(engine=with_schema(engine, schema, violations, fallback))
    try:
        program = assignment.engine.compile(assignment.queries)
    except UnusableQueries as unusable:
        errors = {assignment.numbers[number]: error for number, error in unusable.errors.items()}
        numbers = subscriptions.query_numbers
        asking = np.flatnonzero(np.isin(numbers, list(errors))).tolist()
        located = (errors[numbers[n]].located(subscriptions.ids[n], None) for n in asking)
        raise BadSubscriptions(tuple(located)) from None
    return assignment, program


def with_switch(assignment: Assignment, program: Program) -> Assignment:
    """The automaton's queries, for it or an engine without a cache, by what documents cost.

    Another engine's queries stay with that engine.
    """
    if assignment.engine.name != automaton.ENGINE.name:
        return assignment
    from tamis.matching.switching import Switch, SwitchedSearcher  # noqa: PLC0415 - imports kernels

    engine, queries = assignment.engine, assignment.queries
    switch = Switch(lambda: _without_cache(queries), program)

    def searcher(program: Any, cache_bytes: int) -> Searcher:
        cached: Any = engine.searcher(program, cache_bytes)
        return SwitchedSearcher(switch, cached, cache_bytes)

    return assignment._replace(engine=engine._replace(searcher=searcher))


_SECONDS_A_WORD = 1.8e-6
"""To compile words for stacks: measured were 1.3 to 1.6 with twigs, 2.7 with short filters."""

_WORDS = 20  # that a query is taken for, where they are not known


def _without_cache(queries: Queries) -> WithoutCache:
    """The engine without a cache, for some queries: stacks are the fastest of these engines."""
    from tamis.matching.switching import COMPILE_MIN, WithoutCache  # noqa: PLC0415 - kernels

    words = len(queries.table.code) if queries.is_lowered else _WORDS * len(queries)
    compile_seconds = COMPILE_MIN + words * _SECONDS_A_WORD
    return WithoutCache(lambda: _compiled_without_cache(queries), compile_seconds)


def _compiled_without_cache(queries: Queries) -> list[CompiledAssignment]:
    """Stacks for what they take, and the automaton for the rest.

    Raises:
        EngineRefused: stacks take nothing.
    """
    from tamis.matching.engines import stacks  # noqa: PLC0415 - few documents need it

    engine, every = stacks.ENGINE, np.arange(len(queries), dtype=np.int32)
    try:
        return [(Assignment(engine, queries, every), engine.compile(queries))]
    except EngineRefused:
        left = np.array(list(engine.refuses(queries)), np.int32)
        if len(left) == len(queries):
            raise
    taken = np.delete(every, left)
    parts = _assigned(engine, queries, taken), _assigned(automaton.ENGINE, queries, left)
    return [(part, part.engine.compile(part.queries)) for part in parts]


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
reference, nfa, stacks, stacks-cuda, pma, twigstacks, twigstacks-cuda
    """
    given = Queries.of(queries)
    unstreamed = unstreamed_of(given)
    left = np.delete(np.arange(len(given), dtype=np.int32), unstreamed.numbers)
    is_auto = is_one_of(engine, ("auto",))
    streamed = [*_divided(given, left)] if is_auto else [_named(ENGINES.named(engine), given, left)]
    return [*streamed, unstreamed] if len(unstreamed.numbers) else streamed


def unstreamed_of(queries: Queries) -> Assignment:
    """The queries outside the streamed fragment, which lxml evaluates."""
    return _assigned(lxml.ENGINE, queries, queries.unstreamed.astype(np.int32))


def _assigned(engine: Engine, queries: Queries, numbers: Int32) -> Assignment:
    """Some queries, by ascending numbers, for an engine."""
    if len(numbers) == len(queries):
        return Assignment(engine, queries, numbers)
    return Assignment(engine, queries.part(numbers), numbers)


def engine_of(query: Query) -> str:
    """Which engine answers a query, and why not those before it.

    >>> from tamis.language.xpath import parse
    >>> engine_of(parse("//a")), engine_of(parse("//a[name() = 'b']"))
    ('automaton', 'reference (not automaton: it calls name())')
    """
    refusals = []
    for engine in AUTOMATIC:
        if (reason := reason_of(engine, query)) is None:
            break
        refusals.append(f"not {engine.name}: {reason}")
    return f"{engine.name} ({'; '.join(refusals)})" if refusals else engine.name


def _named(engine: Engine, queries: Queries, numbers: Int32) -> Assignment:
    """Some queries for the engine that the caller named."""
    result = _assigned(engine, queries, numbers)
    if engine.is_automatic and (refused := engine.refuses(result.queries)):
        number = min(refused)
        raise refusal(engine.name, result.queries[number], refused[number])
    log.info("engine %s: named by the caller", engine.name)
    return result


def _divided(queries: Queries, left: Int32) -> Iterator[Assignment]:
    """Some queries, each for the first engine that takes it.

    There is an assignment though there are none: its engine compares documents with a DTD.
    """
    is_empty = not len(left)
    for engine in AUTOMATIC:
        part = _assigned(engine, queries, left)
        refused = engine.refuses(part.queries)
        is_mine = np.ones(len(left), np.bool_)
        is_mine[list(refused)] = False
        mine, left = left[is_mine], left[~is_mine]
        if len(mine) or is_empty:
            yield _assigned(engine, queries, mine)
            log.info("engine %s: %d of %d queries", engine.name, len(mine), len(queries))
        for reason, count in Counter(refused.values()).items():
            log.info("engine %s does not run %d of them: %s", engine.name, count, reason)
        if not len(left):
            break
    assert not len(left), "reference takes all that is streamed"
