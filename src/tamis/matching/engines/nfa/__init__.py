"""YFilter's engine: one NFA for all paths, run with a stack of active states; see README.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tamis.language.model import Query
from tamis.language.queries import Queries
from tamis.matching.engine import Engine, locates_nothing
from tamis.schema.prune import Heuristics

if TYPE_CHECKING:
    from tamis.matching.engines.nfa.compile import NfaProgram
    from tamis.matching.engines.nfa.execute import NfaSearcher
    from tamis.schema.prune import Pruner

__all__ = ["ENGINE", "compile_queries", "open_nfa", "refuses"]


def compile_queries(queries: Sequence[Query], pruner: Pruner | None = None) -> NfaProgram:
    """The NFA of all paths of some queries."""
    from tamis.matching.engines.nfa.compile import NfaProgram  # noqa: PLC0415 - imports kernels

    return NfaProgram(queries, pruner)


def open_nfa(program: NfaProgram, _cache_bytes: int) -> NfaSearcher:
    """What matches with a program, for one thread at a time."""
    from tamis.matching.engines.nfa.execute import NfaSearcher  # noqa: PLC0415 - imports kernels

    return NfaSearcher(program)


def refuses(queries: Queries) -> dict[int, str]:
    """Which queries the engine cannot run, and why.

    >>> from tamis.language.xpath import parse
    >>> refuses(Queries.of([parse("//a[not(b)]"), parse("//a[count(b) = 2]")]))
    {1: 'it calls count()'}
    """
    from tamis.matching.engines.nfa.compile import reasons  # noqa: PLC0415 - imports kernels

    return reasons(queries.table)


ENGINE = Engine(
    name="nfa",
    refuses=refuses,
    compile=compile_queries,
    searcher=open_nfa,
    is_automatic=False,
    heuristics=Heuristics(filters_max=32, steps_max=256),
    locates=locates_nothing,
)
