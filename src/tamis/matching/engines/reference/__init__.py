"""The reference engine: XPath's semantics, a set of nodes at a time. See README.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tamis.core.lazy import importing
from tamis.matching.engine import Engine, locates_nothing

if TYPE_CHECKING:
    from tamis.language.model import Query
    from tamis.matching.engines.reference.compile import ReferenceProgram
    from tamis.matching.engines.reference.evaluate import Evaluator, ReferenceSearcher, match
    from tamis.matching.engines.reference.nodes import build_nodes
    from tamis.matching.engines.reference.sets import Rows

__all__ = [
    "ENGINE",
    "Evaluator",
    "Rows",
    "build_nodes",
    "compile_queries",
    "match",
    "open_reference",
]

__getattr__ = importing(
    __name__,
    {"Evaluator": "evaluate", "Rows": "sets", "build_nodes": "nodes", "match": "evaluate"},
)


def compile_queries(queries: Sequence[Query]) -> ReferenceProgram:
    """See :func:`tamis.matching.engines.reference.compile.compile_queries`."""
    from tamis.matching.engines.reference.compile import compile_queries  # noqa: PLC0415 - see planner

    return compile_queries(queries)


def open_reference(program: ReferenceProgram, _bytes_max: int) -> ReferenceSearcher:
    """What matches with a program."""
    from tamis.matching.engines.reference.evaluate import ReferenceSearcher  # noqa: PLC0415

    return ReferenceSearcher(program)


ENGINE = Engine(
    name="reference",
    refuses=lambda _: None,
    compile=compile_queries,
    searcher=open_reference,
    is_automatic=True,
    takes_plain=False,
    heuristics=None,
    locates=locates_nothing,
)
