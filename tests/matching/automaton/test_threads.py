"""Several threads on one matcher: each learns for itself, and all say the same."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

import tamis
from tamis.matching import batches
from tests.matching.automaton.comparison import supported
from tests.matching.automaton.trees import NAMESPACES, Shape, document, expression

SHAPE = Shape(
    names=4,
    depth=8,
    children=4,
    leaves=0.2,
    attributes=2,
    predicates=0.3,
    steps=3,
    positions=0.2,
    values=0.3,
)


@pytest.mark.parametrize("cache_bytes", [1, 60_000, 1 << 28])
def test_threads_change_nothing(cache_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = Random(5)
    queries = supported([expression(draw, SHAPE) for _ in range(80)], NAMESPACES)
    documents = [document(draw, SHAPE) for _ in range(200)]
    documents[7::50] = ["<broken>"] * 4

    def compiled(engine: str = "automaton") -> tamis.CompiledMatcher:
        return tamis.compile(
            {text: text for text in queries},
            namespaces=NAMESPACES,
            engine=engine,
            limits=tamis.Limits(cache_bytes=cache_bytes),
        )

    def said(match: tamis.Match) -> list[object] | str:
        return list(match) if match.error is None else match.error.code

    expected = [said(match) for match in compiled("reference").match_many(documents)]
    assert len(set(map(str, expected))) > 50
    monkeypatch.setattr(batches, "BATCH_DOCUMENTS", 16)
    matcher = compiled()
    for threads in (1, 2, 4):
        found = [said(match) for match in matcher.match_many(documents, threads=threads)]
        assert found == expected
    barrier = threading.Barrier(4)

    def ask(start: int) -> None:
        barrier.wait()
        for number in range(start, len(documents), 3):
            (match,) = matcher.match_many([documents[number]])
            assert said(match) == expected[number]

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(ask, start) for start in range(4)]:
            future.result()
    assert 1 <= len(matcher.programs.workers) <= 4
