"""Queries → the reference engine's program: the distinct ones, and what they read of documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.documents.batch import Int32
from tamis.documents.demand import Demand
from tamis.documents.vocabulary import Vocabulary
from tamis.language.model import Query
from tamis.matching.demand import demand_of


class ReferenceProgram(NamedTuple):
    """Compiled queries.

    Attributes:
        queries: the distinct ones.
        distinct: int32[subscriptions]; which of them each subscription is.
        demand: what they read of documents.
    """

    queries: tuple[Query, ...]
    distinct: Int32
    demand: Demand


def compile_queries(queries: Sequence[Query], _vocabulary: Vocabulary) -> ReferenceProgram:
    """Equal queries are evaluated once; names are looked up when a batch is matched.

    >>> from tamis.language.xpath import parse
    >>> program = compile_queries([parse("//a"), parse("/b"), parse("//a")], Vocabulary())
    >>> program.distinct
    array([0, 1, 0], dtype=int32)
    """
    numbers: dict[Query, int] = {}
    distinct = [numbers.setdefault(query, len(numbers)) for query in queries]
    demand = Demand()
    for query in numbers:
        demand |= demand_of(query.expression)
    return ReferenceProgram(tuple(numbers), np.array(distinct, dtype=np.int32), demand)
