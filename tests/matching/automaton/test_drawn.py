"""The automaton gives the reference engine's answers: drawn anew by Hypothesis, and from seeds."""

from __future__ import annotations

import os
import time
from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

from tests.matching.automaton import comparison as comparison_module
from tests.matching.automaton.compare import compare, drawn, shrunk
from tests.matching.automaton.comparison import Comparison, supported, ways
from tests.support.strategies import NAMESPACES, documents, subscriptions

ROUNDS = 200
ASKING = Comparison()


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(
    st.lists(subscriptions(), min_size=1, max_size=15),
    st.lists(documents(), min_size=1, max_size=6),
    st.integers(0, 1 << 32),
)
def test_many_subscriptions_at_once(expressions: list[str], texts: list[str], seed: int) -> None:
    queries = supported(expressions, NAMESPACES)
    assume(queries)
    note(str([list(queries), texts]))
    several = ways(len(texts), Random(seed))
    assert ASKING.difference(list(queries.values()), texts, several) is None


def test_seeded() -> None:
    """On CI the same rounds each time; else others."""
    seed = 1 if os.environ.get("CI") else time.time_ns()
    comparison = Comparison()
    assert compare(seed, 0, ROUNDS, comparison) is None
    assert comparison.comparisons > 50_000
    assert comparison.true > comparison.comparisons / 200
    assert comparison.cleared > 100
    assert comparison.retired > 100
    assert comparison.plain > 50
    assert comparison.sliced > 5
    assert comparison.sparse > 5


def test_a_wrong_answer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The canary: an automaton that does not know its second query is found out, and told of."""

    compiled = comparison_module.compile_queries

    def wrong(queries):
        program = compiled(queries)
        accepts = program.arrays.accepts.copy()
        accepts[accepts == 1] = 0
        return program._replace(arrays=program.arrays._replace(accepts=accepts))

    monkeypatch.setattr(comparison_module, "compile_queries", wrong)
    text = compare(7, 0, 200, Comparison())
    assert text is not None
    first, *lines = text.splitlines()
    number = int(first.split(" --first ")[1].split()[0])
    assert [line.split(": ")[0] for line in lines if line.startswith("document")] == ["document 0"]
    assert len([line for line in lines if line.startswith("subscription")]) <= 3
    asked = drawn(7, number)
    found = Comparison().difference(list(asked.queries.values()), asked.documents, asked.ways)
    assert found is not None
    smaller, _ = shrunk(asked, found)
    assert len(smaller.documents) == 1
