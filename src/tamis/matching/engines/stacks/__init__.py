"""Stacks: all twigs at once, a bit each; see README.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tamis.language.model import Query
from tamis.matching.engine import Engine, locates_nothing, refusal

if TYPE_CHECKING:
    from tamis.matching.engines.stacks.execute import StacksSearcher
    from tamis.matching.engines.stacks.program import StacksProgram

__all__ = ["ENGINE"]


def refuses(query: Query) -> str | None:
    """Why the engine cannot run a query, or None where it can.

    >>> from tamis.language.xpath import parse
    >>> refuses(parse("//a[not(b)]")), refuses(parse("//a[2]"))
    (None, 'it asks for a position')
    """
    from tamis.matching.engines.stacks import read  # noqa: PLC0415 - few choose this engine

    try:
        read.twig_of(query)
    except read.Refused as refused:
        return str(refused)
    return None


def compile_queries(queries: Sequence[Query]) -> StacksProgram:
    """The twigs of some queries, side by side.

    Raises:
        EngineRefused: the engine cannot run one of the queries.
    """
    from tamis.matching.engines.stacks import program, read  # noqa: PLC0415 - few choose this engine

    twigs: list[read.Twig] = []
    try:
        twigs.extend(read.twigs_of(queries))
    except read.Refused as refused:
        raise refusal("stacks", queries[len(twigs)], str(refused)) from None
    return program.program_of(twigs)


def _searcher(program: StacksProgram, _cache_bytes: int) -> StacksSearcher:
    from tamis.matching.engines.stacks.execute import StacksSearcher  # noqa: PLC0415 - kernels

    return StacksSearcher(program)


ENGINE = Engine(
    name="stacks",
    refuses=refuses,
    compile=compile_queries,
    searcher=_searcher,
    is_automatic=False,
    takes_plain=False,
    heuristics=None,
    locates=locates_nothing,
)
