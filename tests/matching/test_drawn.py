"""Hypothesis draws documents and subscriptions: all answers are equal, however they are asked."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from io import StringIO

from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st
from lxml import etree

import tamis
from tamis.core.errors import UsageError
from tamis.language.xpath import parse
from tamis.matching.engine import reason_of
from tamis.matching.engines.automaton import ENGINE
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd
from tamis_workload.documents.grammar import DocumentOptions, Documents
from tamis_workload.draws import Values
from tamis_workload.observed.generator import draw_from_documents
from tamis_workload.queries.paths import QueryOptions, queries_from_dtd
from tamis_workload.queries.twigs import TwigOptions, twigs_from_dtd
from tests.support.replay import answers, answers_for_each, command
from tests.support.strategies import NAMESPACES, documents, dtds, subscriptions

thorough = settings(
    max_examples=600,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@thorough
@given(subscriptions(), documents())
def test_engines_equal_oracles(subscription: str, document: str) -> None:
    note(command(subscription, document, NAMESPACES))
    found = answers(subscription, document, NAMESPACES)
    event("automaton refuses" if found["automaton"] is None else "automaton answers")
    assert found["reference"] is not None
    assert len({answer for answer in found.values() if answer is not None}) == 1, found


def test_the_automaton_takes_part() -> None:
    """The canary: where every query is refused, no answers of the automaton are compared."""
    counted: Counter[bool] = Counter()

    @settings(thorough, max_examples=200, database=None)
    @given(subscriptions())
    def count(subscription: str) -> None:
        counted[reason_of(ENGINE, parse(subscription, NAMESPACES)) is None] += 1

    count()
    assert counted[True] > 40


@settings(thorough, max_examples=200)
@given(documents(), st.integers(0, 1 << 32))
def test_near_misses_equal_oracles(document: str, seed: int) -> None:
    """Subscriptions drawn from the document itself: deeper, and true of it more often."""
    drawn = draw_from_documents([document], 5, seed=seed)
    for subscription in drawn.expressions:
        question = command(subscription, document, drawn.namespaces)
        found = answers(subscription, document, drawn.namespaces)
        assert len({answer for answer in found.values() if answer is not None}) == 1, question


@settings(thorough, max_examples=100)
@given(dtds(), st.sampled_from("abcdef"), st.integers(0, 1 << 32))
def test_workloads_equal_oracles(dtd: str, root: str, seed: int) -> None:
    """A DTD, documents of it, queries and twigs of it: the way that workloads are made."""
    note(dtd)
    graph = SchemaGraph.of(parse_dtd(dtd), [root])
    try:
        made = Documents(
            graph, options=DocumentOptions(values=Values(4)), depth=6, size=400, seed=seed
        )
        texts = [made.document(number).decode() for number in range(3)]
    except UsageError:  # there is no valid document, or none so small
        return
    options = QueryOptions(values=Values(4), wildcard=0.3, descendant=0.3, nested=1, depth=(1, 4))
    drawn = [*queries_from_dtd(graph, 6, options=options, seed=seed)]
    with suppress(UsageError):  # nothing to compare
        drawn += queries_from_dtd(graph, 6, options=replace(options, predicates=1), seed=seed)
    with suppress(UsageError):  # no room
        drawn += twigs_from_dtd(graph, 4, options=TwigOptions(nodes=5, splits=2), seed=seed)
    validator = etree.DTD(StringIO(dtd))
    for text in texts:
        assert validator.validate(etree.fromstring(text)), (text, validator.error_log)
    for query in drawn:
        for text, found in zip(texts, answers_for_each(query, texts, {}), strict=True):
            assert len({a for a in found.values() if a is not None}) == 1, command(query, text, {})


@settings(thorough, max_examples=100)
@given(
    st.lists(subscriptions(), min_size=1, max_size=12),
    st.lists(documents(), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
def test_neighbours_change_nothing(
    expressions: list[str], texts: list[str], random: st.Random
) -> None:
    """Other subscriptions, other documents, broken ones, another order: the same answers."""
    given = tamis.Subscriptions(enumerate(expressions), namespaces=NAMESPACES)
    together = tamis.compile(given)
    alone = [
        tamis.compile(tamis.Subscriptions({number: text}, namespaces=NAMESPACES))
        for number, text in enumerate(expressions)
    ]
    expected = {
        text: [number for number, matcher in enumerate(alone) if matcher.match(text)]
        for text in texts
    }
    shuffled = [*texts, *texts, "<broken>", "<"]
    random.shuffle(shuffled)
    for text, match in zip(shuffled, together.match_many(shuffled), strict=True):
        if text in expected:
            assert list(match) == expected[text], command(str(expressions), text, NAMESPACES)
        else:
            assert match.error is not None
