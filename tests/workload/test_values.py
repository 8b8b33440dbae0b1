"""Values come with the probabilities that were asked for."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tamis.core.errors import UsageError
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd
from tamis_workload.documents.grammar import DocumentOptions, Documents
from tamis_workload.draws import Draws, Values

DRAWS = 40_000


def deviates(counts: Counter[int], values: Values) -> float:
    """The largest difference between a share and its probability, in standard deviations."""
    total = sum(counts.values())
    shares = np.array([counts[rank] / total for rank in range(1, values.count + 1)])
    expected = values.probabilities
    return float(np.max(np.abs(shares - expected) / np.sqrt(expected * (1 - expected) / total)))


@pytest.mark.parametrize("skew", [0, 0.5, 1, 1.7])
@pytest.mark.parametrize("count", [2, 30])
def test_drawn_by_their_probability(count: int, skew: float) -> None:
    """Both in queries (here) and in documents (the kernel)."""
    values = Values(count, skew)
    draws = Draws(1, "test")
    # Of 30 values some may be 4.5 deviations off in one test of some ten thousand.
    assert deviates(Counter(values.draw(draws) for _ in range(DRAWS)), values) < 4.5
    graph = SchemaGraph.of(parse_dtd("<!ELEMENT a (b*)> <!ELEMENT b (#PCDATA)>"))
    document = Documents(
        graph, options=DocumentOptions(values=values), records=DRAWS, size=1 << 30, seed=2
    ).document(0)
    drawn = Counter(int(text) for text in document.replace(b"</b>", b"<b>").split(b"<b>")[1:-1:2])
    assert sum(drawn.values()) == DRAWS
    assert deviates(drawn, values) < 4.5


@pytest.mark.parametrize("skew", [0, 0.25, 1, 2.5])
def test_zipf(skew: float) -> None:
    values = Values(1_000, skew)
    expected = np.arange(1, 1_001, dtype=float) ** -skew
    np.testing.assert_allclose(values.probabilities, expected / expected.sum(), rtol=1e-5)


def test_the_same_everywhere() -> None:
    """To the last bit: square roots and products are, powers and logarithms are not."""
    assert Values(5, 0.7).probabilities.tobytes().hex() == GOLDEN


GOLDEN = "f5f283b81501d73fdbeb249b5052cc3f27108267bf52c53f529e14c9176fc13f77ff788659d3bd3f"


def test_shares() -> None:
    values = Values(10)
    assert [values.rank_for(share) for share in (0, 0.04, 0.1, 0.34, 0.95, 1)] == [
        0,
        0,
        1,
        3,
        10,
        10,
    ]
    assert [round(values.share_to(rank), 9) for rank in (0, 1, 10)] == [0, 0.1, 1]


def test_words() -> None:
    values = Values(20_000, kind="words")
    assert len(set(values.texts())) == 20_000
    assert all(word.isalpha() and word.islower() for word in values.texts())


@pytest.mark.parametrize("arguments", [(0,), (10**9,), (10, -1), (10, 17)])
def test_refused(arguments: tuple[int, ...]) -> None:
    with pytest.raises(UsageError):
        Values(*arguments)
