"""The engine of the schema paper: a backtracking automaton of Aho and Corasick; see README.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.core.lazy import importing
from tamis.matching.engine import Engine, locates_nothing
from tamis.schema.prune import Heuristics

if TYPE_CHECKING:
    from tamis.language.queries import Queries
    from tamis_papers.pma.execute import PmaSearcher
    from tamis_papers.pma.program import PmaOptions, PmaProgram

__all__ = ["ENGINE", "PmaOptions", "compile_queries", "open_pma", "refuses"]

__getattr__ = importing(__name__, {"PmaOptions": "program"})


def refuses(queries: Queries) -> dict[int, str]:
    """See :func:`tamis_papers.pma.compile.refuses`."""
    from tamis_papers.pma.compile import refuses  # noqa: PLC0415 - few name this engine

    return refuses(queries)


def compile_queries(*arguments: Any, **options: Any) -> PmaProgram:
    """See :func:`tamis_papers.pma.compile.compile_queries`."""
    from tamis_papers.pma.compile import compile_queries  # noqa: PLC0415

    return compile_queries(*arguments, **options)


def open_pma(program: PmaProgram, bytes_max: int) -> PmaSearcher:
    """What matches with a program, for one thread at a time. It learns nothing."""
    from tamis_papers.pma.execute import PmaSearcher  # noqa: PLC0415

    del bytes_max
    return PmaSearcher(program)


ENGINE = Engine(
    name="pma",
    refuses=refuses,
    compile=compile_queries,
    searcher=open_pma,
    is_automatic=False,
    heuristics=Heuristics(filters_max=1 << 14, steps_max=1 << 17),
    locates=locates_nothing,
)
