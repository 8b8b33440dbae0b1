"""Real documents: the answers of the reference, for twigs drawn from their DTDs."""

from __future__ import annotations

import pytest

from tamis.core.limits import DEFAULT_LIMITS
from tamis.documents.parser import parse as parse_documents
from tamis.documents.source import Source
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.language.xpath import parse
from tamis.matching.engine import Engine
from tamis.matching.engines.reference import ENGINE as REFERENCE
from tamis_papers.twigstacks import ENGINE
from tamis_workload.queries.twigs import TwigOptions, twigs_from_dtd
from tests.matching.test_schema_conscious import DTDS, documents_of, graph_of

pytestmark = pytest.mark.corpora

SIZES = ((3, 1), (5, 1), (10, 3))


@pytest.mark.parametrize("name", DTDS)
def test_twigs_of_the_dtd(name: str) -> None:
    graph = graph_of(name)
    drawn = [
        (twig, found.namespaces)
        for nodes, splits in SIZES
        for found in [twigs_from_dtd(graph, 40, options=_options(nodes, splits), seed=nodes)]
        for twig in found
    ]
    queries = [parse(twig, namespaces) for twig, namespaces in drawn]
    sources = [Source(document) for document in documents_of(name)]
    vocabulary = Vocabulary()
    batch, _ = parse_documents(sources, vocabulary, Projection(), DEFAULT_LIMITS)

    def answers(engine: Engine) -> list[list[int]]:
        searcher = engine.searcher(engine.compile(queries), 1 << 24)
        matches = searcher.match(batch, vocabulary)
        return [sorted(matches.numbers(d).tolist()) for d in range(batch.documents)]

    found = answers(ENGINE)
    assert found == answers(REFERENCE)
    assert any(found)


def _options(nodes: int, splits: int) -> TwigOptions:
    return TwigOptions(nodes=nodes, splits=splits, wildcard=0.5, descendant=0.5)
