"""Hypothesis draws documents and subscriptions: all answers are equal, however they are asked."""

from __future__ import annotations

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import tamis
from tamis.workload.observed.drawing import draw_from_documents
from tests.matching.replay import answers, command
from tests.strategies import NAMESPACES, documents, subscriptions

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
    assert len({answer for answer in found.values() if answer is not None}) == 1, found


@settings(thorough, max_examples=200)
@given(documents(), st.integers(0, 1 << 32))
def test_near_misses_equal_oracles(document: str, seed: int) -> None:
    """Subscriptions drawn from the document itself: deeper, and true of it more often."""
    drawn = draw_from_documents([document], 5, seed=seed)
    for subscription in drawn.subscriptions:
        question = command(subscription, document, drawn.namespaces)
        found = answers(subscription, document, drawn.namespaces)
        assert len({answer for answer in found.values() if answer is not None}) == 1, question


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
