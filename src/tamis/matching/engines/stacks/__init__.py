"""Stacks: all twigs at once, a bit each; see README.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tamis.core import gpu
from tamis.language.model import Query
from tamis.matching.engine import Engine, locates_nothing, refusal

if TYPE_CHECKING:
    from tamis.matching.engines.stacks.cuda import CudaStacksSearcher
    from tamis.matching.engines.stacks.execute import StacksSearcher
    from tamis.matching.engines.stacks.program import StacksProgram

__all__ = ["CUDA", "ENGINE"]


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

_CUDA = "stacks-cuda"


def _refuses_on_gpu(query: Query) -> str | None:
    return refuses(query) if gpu.has_gpu() else gpu.no_gpu(_CUDA, ENGINE.name)


def _compile_for_gpu(queries: Sequence[Query]) -> StacksProgram:
    gpu.require_gpu(_CUDA, ENGINE.name)
    return compile_queries(queries)


def _searcher_on_gpu(program: StacksProgram, _cache_bytes: int) -> CudaStacksSearcher:
    from tamis.matching.engines.stacks.cuda import CudaStacksSearcher  # noqa: PLC0415 - few name it

    return CudaStacksSearcher(program)


CUDA = ENGINE._replace(
    name=_CUDA, refuses=_refuses_on_gpu, compile=_compile_for_gpu, searcher=_searcher_on_gpu
)
"""The same on a GPU. It refuses all queries where there is none."""
