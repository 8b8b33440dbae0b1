"""YFilter's engine: one NFA for all paths, run with a stack of active states; see README.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tamis.language.model import Query
from tamis.matching.engine import Engine, locates_nothing
from tamis.matching.engines.nfa.refusals import refuses
from tamis.schema.prune import Heuristics

if TYPE_CHECKING:
    from tamis.matching.engines.nfa.matching import NfaSearcher
    from tamis.matching.engines.nfa.program import NfaProgram
    from tamis.schema.prune import Pruner

__all__ = ["ENGINE", "compile_queries", "open_nfa", "refuses"]


def compile_queries(queries: Sequence[Query], pruner: Pruner | None = None) -> NfaProgram:
    """See :func:`tamis.matching.engines.nfa.program.compile_queries`."""
    from tamis.matching.engines.nfa.program import compile_queries  # noqa: PLC0415 - imports kernels

    return compile_queries(queries, pruner)


def open_nfa(program: NfaProgram, _bytes_max: int) -> NfaSearcher:
    """What matches with a program, for one thread at a time."""
    from tamis.matching.engines.nfa.matching import NfaSearcher  # noqa: PLC0415 - imports kernels

    return NfaSearcher(program)


ENGINE = Engine(
    name="nfa",
    refuses=refuses,
    compile=compile_queries,
    searcher=open_nfa,
    is_automatic=False,
    takes_plain=True,
    heuristics=Heuristics(filters_max=32, steps_max=256),
    locates=locates_nothing,
)
