"""Queries → the automaton's program: one trie of steps, and rules at its nodes.

All paths of all queries, those inside predicates included, are one trie: a step is the same node
wherever the steps before it are the same, whatever the predicates say. Predicates become rules at
the nodes: their formulas ask for facts, and equal parts of queries are equal facts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, pairwise

import numpy as np

from tamis.core.arrays import Int32, Int64, distinct, freeze, starts_of
from tamis.language import table as t
from tamis.language.model import Query
from tamis.language.queries import Queries
from tamis.language.table import QueryTable
from tamis.matching.engines.automaton.compile.builder import Builder
from tamis.matching.engines.automaton.compile.freeze import freeze_program
from tamis.matching.engines.automaton.kernels.queries import COUNT_MAX
from tamis.matching.engines.automaton.program import SEARCHED_MAX, AutomatonProgram
from tamis.schema.prune import Pruner

WORDS_MAX = 1 << 14
"""Words of a query; steps to descendants or to where they begin double what is in them."""
_TOO_LARGE = (
    f"it takes more than {WORDS_MAX} words, where each step that is descendant-or-self, or "
    "// before a position, doubles what is in it"
)
_CONTAINS = t.OPERATORS.index("contains")


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

    >>> from tamis.language.lower import lowered
    >>> from tamis.language.xpath import parse
    >>> from tamis.schema.graph import SchemaGraph
    >>> from tamis.schema.reader import parse_dtd
    >>> graph = SchemaGraph.of(parse_dtd("<!ELEMENT a (b, c)> <!ELEMENT b ANY> <!ELEMENT c ANY>"))
    >>> found, numbers = pruned(lowered([parse("//a[@b]"), parse("/a/*")]), Pruner(graph))
    >>> len(found), numbers
    (3, array([0, 1, 1], dtype=int32))
    """
    numbers_of_tests = {test: number for number, test in enumerate(table.tests)}

    @cache
    def word(step: int) -> int:
        test = (False, pruner.labels.test(step >> 1))
        number = numbers_of_tests.setdefault(test, len(numbers_of_tests))
        flags = number << t.TEST_SHIFT | t.MAIN | (t.DESCENDANT if step & 1 else 0)
        return t.STEP | flags << t.KIND_BITS

    codes: list[list[int]] = []
    numbers: list[int] = []
    for number, filters in enumerate(pruner.labels.each(table)):
        if filters is None:
            found = [table.words(number)]
        else:
            kept = (pruner.prune(filter, existence_only=True) for filter in filters)
            each = dict.fromkeys(chain.from_iterable(kept))
            found = [[*map(word, steps), *[t.END] * len(steps)] for steps in each]
        codes += found
        numbers += [number] * len(found)
    starts, code = starts_of([*map(len, codes)]), np.array([*chain.from_iterable(codes)], np.int32)
    freeze(starts, code)
    result = QueryTable(starts, code, tuple(numbers_of_tests), *table[3:])
    return result, np.array(numbers, np.int32)


# -- what the engine cannot run --------------------------------------------------------------------


def refuses(queries: Queries) -> dict[int, str]:
    """Which queries the engine cannot run, and why.

    >>> from tamis.language.xpath import parse
    >>> refuses(Queries.of([parse("//a[not(b)]"), parse("//a[name() = 'x']")]))
    {1: 'it calls name()'}
    """
    table = queries.table
    found: dict[int, str] = {}
    for number in _suspects(table).tolist():
        reason = next(_refusals(table.words(number), table), None)
        if reason is not None:
            found[number] = reason
    for number in np.flatnonzero(table.extents()[0] > WORDS_MAX).tolist():
        found.setdefault(number, _TOO_LARGE)
    return found


def _suspects(table: QueryTable) -> Int64:
    """The queries that have a word which may be refused; to ask that of each takes long."""
    kinds, payloads = table.kinds, table.payloads
    functions = t.NAME | t.LOCAL_NAME | t.COUNT
    is_suspect = (kinds == t.STEP) & (payloads & t.FIRST != 0)
    is_suspect |= (kinds == t.COMPARE) & (payloads >> t.FUNCTION_SHIFT & functions != 0)
    is_suspect |= (kinds == t.NTH) & (payloads > COUNT_MAX)
    lengths = np.append(np.diff(table.string_starts), 0)
    is_string = (kinds == t.LITERAL) & (payloads >= 0)
    is_suspect |= lengths[np.where(is_string, payloads, -1)] > SEARCHED_MAX
    places = np.flatnonzero(is_suspect)
    return distinct(np.searchsorted(table.starts, places, "right") - 1)


def _refusals(words: list[int], table: QueryTable) -> Iterator[str]:
    """Why the engine cannot run a query: each reason."""
    is_counted = [False]
    for word, behind in pairwise([*words, t.END]):
        kind, payload = word & t.KIND_MASK, word >> t.KIND_BITS
        if kind <= t.NOT:
            is_counted.append(kind == t.STEP and bool(payload & t.COUNTED))
        if kind == t.END:
            is_counted.pop()
        elif kind == t.STEP and payload & t.FIRST:
            yield "the first of several nodes is asked for, and they are not just children"
        elif kind == t.NTH and is_counted[-1]:
            yield "nodes at a position are counted"
        elif kind == t.NTH and payload > COUNT_MAX:
            yield f"a position is over {COUNT_MAX}"
        elif kind == t.COMPARE:
            yield from _refusals_of_asked(payload, table.literal(behind))


def _refusals_of_asked(payload: int, literal: bytes | float) -> Iterator[str]:
    functions, operator = payload >> t.FUNCTION_SHIFT, payload & (1 << t.FUNCTION_SHIFT) - 1
    if functions & (t.NAME | t.LOCAL_NAME):
        yield "it calls local-name()" if functions & t.LOCAL_NAME else "it calls name()"
    if isinstance(literal, float):
        if functions & t.COUNT and COUNT_MAX <= literal < math.inf:
            yield f"a count is compared with {COUNT_MAX} or more"
    elif operator == _CONTAINS and len(literal) > SEARCHED_MAX:
        yield f"a string of more than {SEARCHED_MAX} bytes is searched for"


def locates(words: Sequence[int]) -> bool:
    """Whether a query is among the answers of a state wherever it selects what reaches the state.

    Those are paths without predicates: of twigs only their truth is known, and ``boolean()`` of a
    path selects nothing.

    >>> from tamis.language.xpath import parse
    >>> paths = ("//a/@b | /c//text()", "//a[b]", "boolean(//a)")
    >>> [locates(Queries.of([parse(path)]).words(0)) for path in paths]
    [True, False, False]
    """
    of_step = t.KIND_MASK | (t.MAIN | t.SELF) << t.KIND_BITS
    step = t.STEP | t.MAIN << t.KIND_BITS
    steps = [word for word in words if word & t.KIND_MASK not in (t.END, t.ANY)]
    return bool(steps) and all(word & of_step == step for word in steps)
