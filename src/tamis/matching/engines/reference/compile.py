"""Queries → the reference engine's program: what they read of documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tamis.documents.vocabulary import Projection, Projections
from tamis.language.model import Query
from tamis.matching.projection import projection_of


class ReferenceProgram(NamedTuple):
    """Queries, as they were parsed.

    Attributes:
        projection: what they read of documents.
    """

    queries: tuple[Query, ...]
    projection: Projection

    def memory_usage(self) -> int:
        """0: it is nothing but the queries themselves."""
        return 0


def compile_queries(queries: Sequence[Query]) -> ReferenceProgram:
    """Names are looked up when a batch is matched.

    >>> from tamis.language.xpath import parse
    >>> compile_queries([parse("//a/@b")]).projection.attributes
    Names([('', 'b')])
    """
    projections = Projections()
    for query in queries:
        projections.add(projection_of(query.expression))
    return ReferenceProgram(tuple(queries), projections.total)
