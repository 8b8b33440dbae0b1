"""Queries → plain ones whose linear filters are pruned with a DTD."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from tamis.core.arrays import Int32, freeze
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
from tamis.language.queries import Queries
from tamis.matching.filters import Others
from tamis.schema.prune import Pruner


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
            pruned = [pruner.prune(filter, existence_only=True) for filter in filters]
            for codes in dict.fromkeys(chain.from_iterable(pruned)):
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
    result = PlainQueries(
        np.array(ends, np.int64),
        np.array(code, np.int32),
        tuple(numbers_of_tests),
        plain.string_starts,
        plain.string_bytes,
        plain.numbers,
    )
    freeze(result.starts, result.code)
    return result, np.array(numbers, np.int32), others
