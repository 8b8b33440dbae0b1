"""Stacks: all twigs at once, a bit each; see README.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tamis.core import gpu
from tamis.language.model import Query
from tamis.language.queries import Queries
from tamis.matching.engine import Engine, Refused, locates_nothing

if TYPE_CHECKING:
    from tamis.matching.engines.stacks.cuda import CudaStacksSearcher
    from tamis.matching.engines.stacks.execute import StacksSearcher
    from tamis.matching.engines.stacks.program import StacksProgram

__all__ = ["CUDA", "ENGINE"]


def refuses(queries: Queries) -> dict[int, str]:
    """Which queries the engine cannot run, and why.

    >>> from tamis.language.xpath import parse
    >>> refuses(Queries.of([parse("//a[not(b)]"), parse("//a[name() = 'b']")]))
    {1: 'it calls name()'}
    """
    from tamis.matching.engines.stacks import read  # noqa: PLC0415 - few choose this engine

    twigs = enumerate(read.twigs_of(queries))
    return {number: str(twig) for number, twig in twigs if isinstance(twig, Refused)}


def compile_queries(queries: Sequence[Query]) -> StacksProgram:
    """The twigs of some queries, side by side.

    Raises:
        EngineRefused: the engine cannot run one of the queries.
    """
    from tamis.matching.engines.stacks import program, read  # noqa: PLC0415 - few choose this engine

    return program.program_of(read.checked_twigs("stacks", queries))


def _searcher(program: StacksProgram, _cache_bytes: int) -> StacksSearcher:
    from tamis.matching.engines.stacks.execute import StacksSearcher  # noqa: PLC0415 - kernels

    return StacksSearcher(program)


ENGINE = Engine(
    name="stacks",
    refuses=refuses,
    compile=compile_queries,
    searcher=_searcher,
    is_automatic=False,
    heuristics=None,
    locates=locates_nothing,
)

_CUDA = "stacks-cuda"


def _refuses_on_gpu(queries: Queries) -> dict[int, str]:
    if gpu.has_gpu():
        return refuses(queries)
    return dict.fromkeys(range(len(queries)), gpu.no_gpu(_CUDA, ENGINE.name))


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
