"""Queries → the reference engine's program: what they read of documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tamis.documents.demand import Demand, Demands
from tamis.language.model import Query
from tamis.matching.demand import demand_of


class ReferenceProgram(NamedTuple):
    """Queries, as they were parsed.

    Attributes:
        demand: what they read of documents.
    """

    queries: tuple[Query, ...]
    demand: Demand

    def memory_usage(self) -> int:
        """0: it is nothing but the queries themselves."""
        return 0


def compile_queries(queries: Sequence[Query]) -> ReferenceProgram:
    """Names are looked up when a batch is matched.

    >>> from tamis.language.xpath import parse
    >>> compile_queries([parse("//a/@b")]).demand.attributes
    Names([('', 'b')])
    """
    demands = Demands()
    for query in queries:
        demands.add(demand_of(query.expression))
    return ReferenceProgram(tuple(queries), demands.total)
