"""Linear filters: those that queries are, and the labels of elements that they test for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from tamis.core.arrays import Int32, Int64, freeze, starts_of
from tamis.documents.vocabulary import NameNumbers, Vocabulary
from tamis.language.filters import WILDCARD, Codes, Labels, expanded_name
from tamis.language.table import QueryTable
from tamis.schema.prune import Pruner


class Filters(NamedTuple):
    """Linear filters, each once, however many queries it was pruned from.

    Attributes:
        starts: int64[f + 1]; the steps of filter i are ``codes[starts[i]:starts[i + 1]]``.
        codes: int32[]; ``label << 1 | descends``.
        names: what the labels stand for; label 0 is ``*``.
        query_starts: int64[f + 1]; filter i answers the queries
            ``queries[query_starts[i]:query_starts[i + 1]]``. A query is true where one of its
            filters is: the paper's ``original_filters``.
        queries: int32[].
    """

    starts: Int64
    codes: Int32
    names: tuple[str, ...]
    query_starts: Int64
    queries: Int32

    def __len__(self) -> int:
        """How many filters there are."""
        return len(self.starts) - 1


def filters_of(table: QueryTable, pruner: Pruner | None = None) -> tuple[Filters, Int64]:
    """The filters that some queries are, pruned; and the numbers of the other queries.

    >>> from tamis.language.lower import lowered
    >>> from tamis.language.xpath import parse
    >>> filters, others = filters_of(lowered(map(parse, ["//a/b", "//a[b]/c", "/a | //a/b"])))
    >>> filters.codes, filters.names
    (array([3, 4, 2], dtype=int32), ('*', 'a', 'b', 'c'))
    >>> filters.query_starts, filters.queries
    (array([0, 2, 3]), array([0, 2, 2], dtype=int32))
    >>> others
    array([1])
    """
    labels = Labels() if pruner is None else pruner.labels
    answers: dict[Codes, list[int]] = {}
    others: list[int] = []
    for number, found in enumerate(labels.each(table)):
        if found is None:
            others.append(number)
            continue
        pruned = found
        if pruner is not None:
            pruned = [
                codes for filter in found for codes in pruner.prune(filter, existence_only=True)
            ]
        for codes in dict.fromkeys(pruned) if len(pruned) > 1 else pruned:
            answers.setdefault(codes, []).append(number)
    filters = Filters(
        starts=starts_of(list(map(len, answers))),
        codes=np.array([*chain.from_iterable(answers)], np.int32),
        names=tuple(labels.names),
        query_starts=starts_of(list(map(len, answers.values()))),
        queries=np.array([*chain.from_iterable(answers.values())], np.int32),
    )
    freeze(filters.starts, filters.codes, filters.query_starts, filters.queries)
    return filters, np.array(others, np.int64)


class ElementLabels:
    """The labels of the elements of documents, by the names of a vocabulary that grows."""

    def __init__(self, names: Sequence[str]) -> None:
        labels = {name: label for label, name in enumerate(names) if label != WILDCARD}

        def own(namespace: str, local: str) -> int:
            return labels.get(expanded_name(namespace, local), -1)

        def of_all(namespace: str, _: str) -> int:
            return labels.get(expanded_name(namespace, None), -1) if namespace else -1

        self._own, self._of_namespace = NameNumbers({}, own), NameNumbers({}, of_all)

    def of(self, vocabulary: Vocabulary) -> tuple[Int32, Int32]:
        """By name of the vocabulary: its label, and the label of all of its namespace; or -1."""
        return self._own.of(vocabulary), self._of_namespace.of(vocabulary)
