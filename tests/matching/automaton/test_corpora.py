"""The automaton on real documents: what is drawn from them is answered as the reference does."""

from __future__ import annotations

import pytest

from tamis_workload.observed.generator import draw_from_documents
from tests.matching.automaton.comparison import Comparison, Way, supported
from tests.support.corpora import CORPORA, corpus
from tests.support.oracles import read

pytestmark = pytest.mark.corpora

DRAWN = 400
BYTES = 1_500_000  # of a corpus; its first document is larger, perhaps


@pytest.mark.parametrize("name", CORPORA)
def test_real_documents(name: str) -> None:
    documents: list[bytes] = []
    for path in sorted(corpus(name), key=lambda path: (path.stat().st_size, path.name)):
        data = read(path)
        if data is not None and (not documents or sum(map(len, documents)) + len(data) < BYTES):
            documents.append(data)
    drawn = draw_from_documents(documents, DRAWN, seed=11)
    queries = supported(list(drawn), drawn.namespaces)
    assert len(queries) > DRAWN / 8
    numbers = tuple(range(len(documents)))
    comparison = Comparison()
    several = [
        Way("all at once", 1 << 28, numbers, is_lean=True),
        Way("backwards, forgetting", 1, numbers[::-1], tuple(numbers[::7])),
        Way("in batches", 1_000_000, numbers, tuple(numbers[::5])),
    ]
    assert comparison.difference(list(queries.values()), documents, several) is None
    assert comparison.true > len(documents)
    assert comparison.cleared > 0
