"""All variants of the engine, asked the same."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from tamis.core.limits import Limits
from tamis.documents.batch import DocumentBatch
from tamis.documents.parser import parse as parse_documents
from tamis.documents.source import Source
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.language.model import Query
from tamis.language.xpath import parse
from tamis.schema.prune import Pruner
from tamis_papers.pma import PmaOptions, compile_queries, open_pma
from tamis_papers.pma.execute import PmaSearcher

OPTIONS = [
    PmaOptions(*options)
    for options in itertools.product(("static", "dynamic"), (1, 2), (True, False))
]
LIMITS = Limits(depth=1 << 20)


def parsed(documents: Sequence[str]) -> tuple[DocumentBatch, Vocabulary]:
    vocabulary = Vocabulary()
    sources = [Source(document.encode()) for document in documents]
    return parse_documents(sources, vocabulary, Projection(), LIMITS)[0], vocabulary


def queries_of(filters: Sequence[str]) -> list[Query]:
    return [parse(filter) for filter in filters]


def matchings(queries: Sequence[Query], pruner: Pruner | None = None) -> Iterator[PmaSearcher]:
    """One for each variant, of which each prunes with all of the budget."""
    for options in OPTIONS:
        own = None if pruner is None else Pruner(pruner.graph, pruner.heuristics)
        yield open_pma(compile_queries(queries, own, options), 0)


def answers(
    filters: Sequence[str], documents: Sequence[str], pruner: Pruner | None = None
) -> list[set[str]]:
    """The filters that are true of each document, if all variants agree, twice."""
    batch, vocabulary = parsed(documents)
    found: list[list[set[str]]] = []
    for matching in matchings(queries_of(filters), pruner):
        for _ in range(2):  # nothing is left of the documents before
            matches = matching.match(batch, vocabulary)
            assert not np.diff(matches.document_starts).min(initial=0) < 0
            by_document = [matches.numbers(d).tolist() for d in range(batch.documents)]
            found.append([{filters[number] for number in numbers} for numbers in by_document])
    assert all(other == found[0] for other in found), found
    return found[0]
