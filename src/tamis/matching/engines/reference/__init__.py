"""The reference engine: XPath's semantics, a set of nodes at a time. See README.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tamis.documents.vocabulary import Projection
from tamis.language.model import Query
from tamis.language.queries import Queries
from tamis.matching.engine import Engine, locates_nothing
from tamis.matching.projection import projection_of

if TYPE_CHECKING:
    from tamis.matching.engines.reference.execute import ReferenceSearcher

__all__ = ["ENGINE", "compile_queries"]


class ReferenceProgram(NamedTuple):
    """Queries, as they were parsed, and what they read of documents."""

    queries: tuple[Query, ...]
    projection: Projection

    def memory_usage(self) -> int:
        """0: it is nothing but the queries themselves."""
        return 0


def compile_queries(queries: Sequence[Query]) -> ReferenceProgram:
    """Names are looked up when a batch is matched.

    >>> from tamis.language.xpath import parse
    >>> compile_queries([parse("//a/@b")]).projection.attributes
    Names([('', 'b')])
    """
    return ReferenceProgram(tuple(queries), projection_of(Queries.of(queries).table))


def _searcher(program: ReferenceProgram, _cache_bytes: int) -> ReferenceSearcher:
    from tamis.matching.engines.reference.execute import ReferenceSearcher  # noqa: PLC0415 - lazy

    return ReferenceSearcher(program)


ENGINE = Engine(
    name="reference",
    refuses=lambda _: {},
    compile=compile_queries,
    searcher=_searcher,
    is_automatic=True,
    heuristics=None,
    locates=locates_nothing,
)
