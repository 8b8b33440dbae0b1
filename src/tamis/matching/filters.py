"""``Filters``: distinct linear filters, and the queries that each of them answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.documents.batch import Int32, Int64, freeze
from tamis.documents.vocabulary import Vocabulary
from tamis.errors import EngineRefused
from tamis.language.filters import ANY, Codes, Labels, expanded_name
from tamis.language.model import Query
from tamis.language.plain import (
    ANCHOR,
    BELOW,
    END,
    KIND_BITS,
    NO_PLAIN_QUERIES,
    STEP,
    TEST_SHIFT,
    PlainQueries,
)
from tamis.language.printer import print_query
from tamis.language.queries import Queries
from tamis.schema.prune import Pruner


class Filters(NamedTuple):
    """Linear filters, each once, however many queries it was pruned from.

    Attributes:
        starts: int64[f + 1]; the steps of filter i are ``codes[starts[i]:starts[i + 1]]``.
        codes: int32[]; ``label << 1 | descends``.
        names: what the labels stand for; label 0 is ``*``.
        query_starts: int64[f + 1]; filter i answers the queries
            ``queries[query_starts[i]:query_starts[i + 1]]``, of which each is true where one of its
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


Others = dict[int, Query]
"""Queries that are more than linear filters, by number."""


def filters_of(queries: Sequence[Query], pruner: Pruner | None = None) -> tuple[Filters, Others]:
    """The filters that some queries are, pruned; and what queries are more than that, as they are.

    >>> from tamis.language.xpath import parse
    >>> filters, others = filters_of([parse("//a/b"), parse("//a[b]"), parse("/a | //a/b")])
    >>> filters.codes, filters.names
    (array([3, 4, 2], dtype=int32), ('*', 'a', 'b'))
    >>> filters.query_starts, filters.queries
    (array([0, 2, 3]), array([0, 2, 2], dtype=int32))
    >>> list(others)
    [1]
    """
    labels = Labels() if pruner is None else pruner.labels
    answers: dict[Codes, list[int]] = {}
    others: Others = {}
    for number, found in enumerate(labels.each(queries)):
        if found is None:
            others[number] = queries[number]
            continue
        pruned = found
        if pruner is not None:
            pruned = [codes for filter in found for codes in pruner.prune(filter)]
        for codes in dict.fromkeys(pruned) if len(pruned) > 1 else pruned:
            answers.setdefault(codes, []).append(number)
    return _frozen(answers, labels), others


def pruned_plain(queries: Sequence[Query], pruner: Pruner) -> tuple[PlainQueries, Int32, Others]:
    """The queries as plain ones, linear filters pruned, all others as they are.

    Returns:
        What is plain; int32[], the number of the query that each of these answers; and the queries
        that are not plain.

    >>> from tamis.language.xpath import parse
    >>> from tamis.schema.graph import SchemaGraph
    >>> from tamis.schema.reader import parse_dtd
    >>> graph = SchemaGraph.of(parse_dtd("<!ELEMENT a (b, c)> <!ELEMENT b ANY> <!ELEMENT c ANY>"))
    >>> plain, numbers, others = pruned_plain([parse("//a[b]"), parse("/a/*")], Pruner(graph))
    >>> len(plain), numbers, list(others)
    (2, array([1, 1], dtype=int32), [0])
    """
    plain = queries.plain if isinstance(queries, Queries) else NO_PLAIN_QUERIES
    numbers_of_tests = {test: number for number, test in enumerate(plain.tests)}
    code: list[int] = []
    ends: list[int] = [0]
    numbers: list[int] = []
    others: Others = {}

    def step(code: int) -> int:
        """The word of a step."""
        test = (False, pruner.labels.test(code >> 1))
        number = numbers_of_tests.setdefault(test, len(numbers_of_tests))
        flags = number << TEST_SHIFT | (BELOW if code & 1 else 0)
        return STEP | flags << KIND_BITS

    words: dict[int, int] = {}
    for number, filters in enumerate(pruner.labels.each(queries)):
        if filters is not None:
            for codes in {codes: None for filter in filters for codes in pruner.prune(filter)}:
                for of_step in codes:
                    if of_step not in words:
                        words[of_step] = step(of_step)
                code += [words[of_step] for of_step in codes]
                code[-1] |= ANCHOR << KIND_BITS
                code.append(END)
                ends.append(len(code))
                numbers.append(number)
        elif number < len(plain):
            code += plain.code[plain.starts[number] : plain.starts[number + 1]].tolist()
            ends.append(len(code))
            numbers.append(number)
        else:
            others[number] = queries[number]
    pruned = PlainQueries(
        np.array(ends, np.int64),
        np.array(code, np.int32),
        tuple(numbers_of_tests),
        plain.string_starts,
        plain.string_bytes,
        plain.numbers,
    )
    return pruned, np.array(numbers, np.int32), others


def _frozen(answers: dict[Codes, list[int]], labels: Labels) -> Filters:
    steps = [code for codes in answers for code in codes]
    queries = [number for numbers in answers.values() for number in numbers]
    filters = Filters(
        starts=np.cumsum([0, *map(len, answers)], dtype=np.int64),
        codes=np.array(steps, np.int32),
        names=tuple(labels.names),
        query_starts=np.cumsum([0, *map(len, answers.values())], dtype=np.int64),
        queries=np.array(queries, np.int32),
    )
    freeze(filters.starts, filters.codes, filters.query_starts, filters.queries)
    return filters


def refusal(engine: str, query: Query, reason: str) -> EngineRefused:
    """What says that an engine cannot run a query."""
    return EngineRefused(f"{engine} does not: {print_query(query)}: {reason}")


class ElementLabels:
    """The labels of the elements of documents, for names that come with the vocabulary.

    Args:
        names: what the labels stand for.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._labels = {name: label for label, name in enumerate(names) if label != ANY}
        self._vocabulary: Vocabulary | None = None
        self._own: list[int] = []
        self._of_namespace: list[int] = []

    def of(self, vocabulary: Vocabulary) -> tuple[Int32, Int32]:
        """By name of the vocabulary: its label, and the label of all of its namespace; or -1."""
        if vocabulary is not self._vocabulary:
            self._vocabulary = vocabulary
            self._own, self._of_namespace = [], []
        for name in range(len(self._own), len(vocabulary)):
            namespace, local = vocabulary.expanded(name)
            self._own.append(self._labels.get(expanded_name(namespace, local), -1))
            self._of_namespace.append(
                self._labels.get(expanded_name(namespace, None), -1) if namespace else -1
            )
        return np.array(self._own, np.int32), np.array(self._of_namespace, np.int32)
