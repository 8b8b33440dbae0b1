"""Queries → the automaton's program: one trie of steps, and rules at its nodes.

All paths of all queries, those inside predicates included, are one trie: a step is the same node
wherever the steps before it are the same, whatever the predicates say. Predicates become rules at
the nodes: their formulas ask for facts, and equal parts of queries are equal facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain

import numpy as np

from tamis.core.arrays import Int32, freeze
from tamis.language import table as words
from tamis.language.model import Query
from tamis.language.queries import Queries
from tamis.language.table import QueryTable
from tamis.matching.engines.automaton.compile.builder import Builder
from tamis.matching.engines.automaton.compile.freeze import freeze_program
from tamis.matching.engines.automaton.program import AutomatonProgram
from tamis.schema.prune import Pruner


def compile_queries(queries: Sequence[Query], pruner: Pruner | None = None) -> AutomatonProgram:
    """Compile queries, none of which the engine refuses; their numbers are their places.

    With a pruner, linear filters are pruned: then fewer states are reached together.

    >>> from tamis.language.xpath import parse
    >>> queries = [parse("/a/b"), parse("/a/b[c]"), parse("/a/*")]
    >>> len(compile_queries(queries).arrays.tests)  # the document, a, b, c and *
    5
    """
    builder = Builder()
    table = Queries.of(queries).table
    answered = np.arange(len(table), dtype=np.int32)
    if pruner is not None:
        table, answered = pruned(table, pruner)
    if len(table):  # a set without any need not wait for kernels to be loaded
        builder.add(table, answered)
    return freeze_program(builder, len(queries))


def pruned(table: QueryTable, pruner: Pruner) -> tuple[QueryTable, Int32]:
    """The queries with linear filters pruned; and which query each answers.

    >>>     >>> from tamis.language.xpath import parse
    >>> from tamis.schema.graph import SchemaGraph
    >>> from tamis.schema.reader import parse_dtd
    >>> graph = SchemaGraph.of(parse_dtd("<!ELEMENT a (b, c)> <!ELEMENT b ANY> <!ELEMENT c ANY>"))
    >>> found, numbers = pruned(lowered([parse("//a[@b]"), parse("/a/*")]), Pruner(graph))
    >>> len(found), numbers
    (3, array([0, 1, 1], dtype=int32))
    """
    numbers_of_tests = {test: number for number, test in enumerate(table.tests)}
    code: list[int] = []
    ends: list[int] = [0]
    numbers: list[int] = []

    @cache
    def word(step: int) -> int:
        test = (False, pruner.labels.test(step >> 1))
        number = numbers_of_tests.setdefault(test, len(numbers_of_tests))
        flags = number << words.TEST_SHIFT | words.MAIN | (words.BELOW if step & 1 else 0)
        return words.STEP | flags << words.KIND_BITS

    for number, filters in enumerate(pruner.labels.each(table)):
        if filters is None:
            code += table.words(number)
            ends.append(len(code))
            numbers.append(number)
            continue
        found = [pruner.prune(filter, existence_only=True) for filter in filters]
        for steps in dict.fromkeys(chain.from_iterable(found)):
            code += map(word, steps)
            code += [words.END] * len(steps)
            ends.append(len(code))
            numbers.append(number)
    result = QueryTable(
        np.array(ends, np.int64), np.array(code, np.int32), tuple(numbers_of_tests), *table[3:]
    )
    freeze(result.starts, result.code)
    return result, np.array(numbers, np.int32)
