"""Which queries the automaton can run, and of which it knows the nodes that they select."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from tamis.core.arrays import Int64, distinct
from tamis.language import table as t
from tamis.language.queries import Queries
from tamis.language.table import QueryTable
from tamis.matching.engines.automaton.kernels.queries import COUNT_MAX

WORDS_MAX = 1 << 14
"""Words of a query; steps to descendants or to where they begin double what is in them."""
SEARCHED_MAX = 256
"""Bytes of what contains() asks for: each of them is a node of a trie."""
_TOO_LARGE = (
    f"it takes more than {WORDS_MAX} words, where each step that is descendant-or-self, or "
    "// before a position, doubles what is in it"
)
_CONTAINS = t.OPERATORS.index("contains")


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
    is_suspect |= (kinds == t.ASKS) & (payloads >> t.FUNCTION_SHIFT & functions != 0)
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
        elif kind == t.ASKS:
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
    of_step = t.KIND_MASK | (t.MAIN | t.ITSELF) << t.KIND_BITS
    step = t.STEP | t.MAIN << t.KIND_BITS
    steps = [word for word in words if word & t.KIND_MASK not in (t.END, t.ANY)]
    return bool(steps) and all(word & of_step == step for word in steps)
