"""The engine that hands documents to lxml, for XPath 1.0 outside the streamed fragment.

It exists so that a set with a few such expressions can be moved over whole
(``unsupported="slow"``). Each of them costs a full lxml evaluation a document.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tamis.documents.vocabulary import EVERYTHING
from tamis.language.model import Query
from tamis.matching.engine import Engine

if TYPE_CHECKING:
    from tamis.matching.engines.lxml.execute import LxmlProgram, LxmlSearcher

__all__ = ["ENGINE"]


def _compile(queries: Sequence[Query]) -> LxmlProgram:
    from tamis.matching.engines.lxml.execute import compile_queries  # noqa: PLC0415 - few need it

    return compile_queries(queries)


def _searcher(program: LxmlProgram, _cache_bytes: int) -> LxmlSearcher:
    from tamis.matching.engines.lxml.execute import LxmlSearcher  # noqa: PLC0415

    return LxmlSearcher(program)


ENGINE = Engine(
    name="lxml",
    refuses=lambda queries: dict.fromkeys(
        set(range(len(queries))).difference(queries.unstreamed.tolist()), "others are faster"
    ),
    compile=_compile,
    searcher=_searcher,
    is_automatic=True,
    heuristics=None,
    locates=lambda _: True,
    nodes_projection=EVERYTHING._replace(lines=False),  # nodes are found by counting all nodes
)
