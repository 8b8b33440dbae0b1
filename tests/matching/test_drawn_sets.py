"""Filters and twigs drawn from DTDs, many at once: what nfa and stacks answer, as others do."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import tamis
from tamis.core.errors import UsageError
from tamis.language.xpath import parse
from tamis.matching.engine import Engine, reason_of
from tamis.matching.engines import nfa, stacks
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd
from tamis_workload.documents.grammar import DocumentOptions, Documents
from tamis_workload.draws import Values
from tamis_workload.queries.paths import QueryOptions, queries_from_dtd
from tamis_workload.queries.twigs import TwigOptions, twigs_from_dtd
from tests.support.strategies import NAMESPACES, documents, dtds, subscriptions

thorough = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


ENGINES = pytest.mark.parametrize("engine", [nfa.ENGINE, stacks.ENGINE], ids=["nfa", "stacks"])


def answers(expressions: list[str], texts: list[str], engine: str) -> list[list[int]]:
    subscriptions = tamis.Subscriptions(enumerate(expressions), namespaces=NAMESPACES)
    matcher = tamis.compile(subscriptions, engine=engine)
    return [list(match) for match in matcher.match_many(texts)]


@ENGINES
@thorough
@given(st.lists(subscriptions(), max_size=30), st.lists(documents(), min_size=1, max_size=6))
def test_many_at_once(engine: Engine, expressions: list[str], texts: list[str]) -> None:
    usable = [text for text in expressions if reason_of(engine, parse(text, NAMESPACES)) is None]
    note(str((usable, texts)))
    assert answers(usable, texts, engine.name) == answers(usable, texts, "reference")


@ENGINES
def test_it_takes_part(engine: Engine) -> None:
    """The canary: where every query is refused, no answers are compared."""
    counted: Counter[bool] = Counter()

    @settings(thorough, max_examples=200, database=None)
    @given(subscriptions())
    def count(subscription: str) -> None:
        counted[reason_of(engine, parse(subscription, NAMESPACES)) is None] += 1

    count()
    assert counted[True] > 30


@ENGINES
@thorough
@given(dtds(), st.sampled_from("abcdef"), st.integers(0, 1 << 32))
def test_of_drawn_dtds(engine: Engine, dtd: str, root: str, seed: int) -> None:
    note(dtd)
    graph = SchemaGraph.of(parse_dtd(dtd), [root])
    try:
        made = Documents(
            graph, options=DocumentOptions(values=Values(4)), depth=8, size=2_000, seed=seed
        )
        texts = [made.document(number).decode() for number in range(4)]
    except UsageError:  # there is no valid document, or none so small
        return
    options = QueryOptions(values=Values(4), wildcard=0.3, descendant=0.3, nested=1, depth=(1, 6))
    drawn = [*queries_from_dtd(graph, 30, options=replace(options, nested=0), seed=seed)]
    drawn += queries_from_dtd(graph, 20, options=options, seed=seed)
    with suppress(UsageError):  # no room
        drawn += twigs_from_dtd(graph, 10, options=TwigOptions(nodes=6, splits=2), seed=seed)
    usable = [text for text in drawn if reason_of(engine, parse(text)) is None]
    found = answers(usable, texts, engine.name)
    assert found == answers(usable, texts, "reference") == answers(usable, texts, "automaton")


@ENGINES
@pytest.mark.parametrize("wildcard", [0.0, 0.2, 0.6])
def test_linear_filters_of_a_recursive_dtd(engine: Engine, wildcard: float) -> None:
    """Thousands of filters, compiled in bulk."""
    graph = SchemaGraph.of(
        parse_dtd(
            "<!ELEMENT r (a | b)+> <!ELEMENT a (b, c?, a?)> <!ELEMENT b (a | c)*>"
            "<!ELEMENT c (d, b?)?> <!ELEMENT d EMPTY>"
        )
    )
    options = QueryOptions(wildcard=wildcard, descendant=0.3, depth=(1, 7))
    expressions = [*dict.fromkeys(queries_from_dtd(graph, 3_000, options=options, seed=1))]
    assert len(expressions) > 100
    made = Documents(graph, depth=12, size=3_000, seed=2)
    texts = [made.document(number).decode() for number in range(12)]
    found = answers(expressions, texts, engine.name)
    assert found == answers(expressions, texts, "automaton")
    assert {len(numbers) for numbers in found} != {0, len(expressions)}
