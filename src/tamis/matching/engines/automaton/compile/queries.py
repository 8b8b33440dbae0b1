"""Queries → the automaton's program: one trie of steps, and rules at its nodes.

All paths of all queries, those inside predicates included, are one trie: a step is the same node
wherever the steps before it are the same, whatever the predicates say. Predicates become rules at
the nodes: their formulas ask for facts, and equal parts of queries are equal facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain

import numpy as np

from tamis.core.arrays import Int32, freeze
from tamis.language import model as m
from tamis.language import table as words
from tamis.language.lower import lowered
from tamis.language.queries import Queries
from tamis.language.table import NO_QUERIES, QueryTable
from tamis.matching.engines.automaton.compile.builder import Builder
from tamis.matching.engines.automaton.compile.freeze import freeze_program
from tamis.matching.engines.automaton.program import AutomatonProgram
from tamis.matching.filters import Others
from tamis.schema.prune import Pruner


def compile_queries(queries: Sequence[m.Query], pruner: Pruner | None = None) -> AutomatonProgram:
    """Compile queries, none of which the engine refuses; their numbers are their places.

    With a pruner, linear filters are pruned: then fewer states are reached together.

    >>> from tamis.language.xpath import parse
    >>> queries = [parse("/a/b"), parse("/a/b[c]"), parse("/a/*")]
    >>> len(compile_queries(queries).arrays.tests)  # the document, a, b, c and *
    5
    """
    builder = Builder()
    for table, answered in _tables_of(queries, pruner):
        if len(table):  # small sets need not wait for kernels to be loaded
            builder.add(table, answered)
    return freeze_program(builder, len(queries))


def _tables_of(
    queries: Sequence[m.Query], pruner: Pruner | None
) -> Iterator[tuple[QueryTable, Int32]]:
    """All queries as tables, and which query each of a table answers."""
    others: Others
    if pruner is not None:
        plain, answered, others = pruned_plain(queries, pruner)
        yield plain, answered
    else:
        given = Queries.of(queries)
        first = len(given.plain)
        yield given.plain, np.arange(first, dtype=np.int32)
        others = dict(enumerate(given.others, start=first))
    yield lowered(others.values()), np.array(list(others), np.int32)


def pruned_plain(queries: Sequence[m.Query], pruner: Pruner) -> tuple[QueryTable, Int32, Others]:
    """The queries as plain ones, linear filters pruned; which query each answers; and the others.

    >>> from tamis.language.xpath import parse
    >>> from tamis.schema.graph import SchemaGraph
    >>> from tamis.schema.reader import parse_dtd
    >>> graph = SchemaGraph.of(parse_dtd("<!ELEMENT a (b, c)> <!ELEMENT b ANY> <!ELEMENT c ANY>"))
    >>> plain, numbers, others = pruned_plain([parse("//a[b]"), parse("/a/*")], Pruner(graph))
    >>> len(plain), numbers, list(others)
    (2, array([1, 1], dtype=int32), [0])
    """
    plain = queries.plain if isinstance(queries, Queries) else NO_QUERIES
    numbers_of_tests = {test: number for number, test in enumerate(plain.tests)}
    code: list[int] = []
    ends: list[int] = [0]
    numbers: list[int] = []
    others: Others = {}

    @cache
    def word(step: int) -> int:
        test = (False, pruner.labels.test(step >> 1))
        number = numbers_of_tests.setdefault(test, len(numbers_of_tests))
        flags = number << words.TEST_SHIFT | words.MAIN | (words.BELOW if step & 1 else 0)
        return words.STEP | flags << words.KIND_BITS

    for number, filters in enumerate(pruner.labels.each(queries)):
        if filters is not None:
            pruned = [pruner.prune(filter, existence_only=True) for filter in filters]
            for steps in dict.fromkeys(chain.from_iterable(pruned)):
                code += map(word, steps)
                code += [words.END] * len(steps)
                ends.append(len(code))
                numbers.append(number)
        elif number < len(plain):
            code += plain.code[plain.starts[number] : plain.starts[number + 1]].tolist()
            ends.append(len(code))
            numbers.append(number)
        else:
            others[number] = queries[number]
    result = QueryTable(
        np.array(ends, np.int64),
        np.array(code, np.int32),
        tuple(numbers_of_tests),
        plain.string_starts,
        plain.string_bytes,
        plain.numbers,
    )
    freeze(result.starts, result.code)
    return result, np.array(numbers, np.int32), others
