"""Which queries the automaton can run, and of which it knows the nodes that they select."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from tamis.language import table as t
from tamis.language.lower import lowered
from tamis.language.model import Query
from tamis.language.table import QueryTable
from tamis.matching.engines.automaton.compile.builder import extents
from tamis.matching.engines.automaton.kernels.queries import COUNT_MAX

WORDS_MAX = 1 << 14
"""Words of a query; steps to descendants or to where they begin double what is in them."""
SEARCHED_MAX = 256
"""Bytes of what contains() asks for: each of them is a node of a trie."""
_CONTAINS = t.OPERATORS.index("contains")


def refuses(query: Query) -> str | None:
    """Why the engine cannot run a query, or None where it can.

    >>> from tamis.language.xpath import parse
    >>> refuses(parse("//a[not(b)]")), refuses(parse("//a[name() = 'x']"))
    (None, 'it calls name()')
    """
    table = lowered([query])
    words = table.words(0)
    reason = next(_refusals(words, table), None)
    if reason is not None:
        return reason
    if extents(table)[0][0] > WORDS_MAX:
        return (
            f"it takes more than {WORDS_MAX} words, where each step that is descendant-or-self, or "
            "// before a position, doubles what is in it"
        )
    return None


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


def locates(query: Query) -> bool:
    """Whether a query is among the answers of a state wherever it selects what reaches the state.

    Those are paths without predicates: of twigs only their truth is known, and ``boolean()`` of a
    path selects nothing.

    >>> from tamis.language.xpath import parse
    >>> [locates(parse(text)) for text in ("//a/@b | /c//text()", "//a[b]", "boolean(//a)")]
    [True, False, False]
    """
    if not query.selects:
        return False
    main = t.MAIN << t.KIND_BITS
    words = lowered([query]).words(0)
    begun = [word for word in words if word & t.KIND_MASK != t.END]
    paths = begun[1:] if begun[:1] == [t.ANY] else begun
    is_plain = all(word & t.KIND_MASK == t.STEP and word & main for word in paths)
    return is_plain and not any(word >> t.KIND_BITS & t.ITSELF for word in paths)
