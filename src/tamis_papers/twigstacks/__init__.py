"""The engine of the GPU paper: push and pop stacks, a query node a thread; see README.md."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tamis.core import gpu
from tamis.core.lazy import importing
from tamis.matching.engine import Engine, locates_nothing

if TYPE_CHECKING:
    from tamis.language.model import Query
    from tamis.language.queries import Queries
    from tamis_papers.twigstacks.execute import TwigSearcher
    from tamis_papers.twigstacks.program import TwigOptions, TwigProgram

__all__ = ["CUDA", "ENGINE", "TwigOptions", "twigstacks", "twigstacks_cuda"]

__getattr__ = importing(__name__, {"TwigOptions": "program"})


def refuses(queries: Queries) -> dict[int, str]:
    """See :func:`tamis_papers.twigstacks.compile.refuses`."""
    from tamis_papers.twigstacks.compile import refuses  # noqa: PLC0415 - few name this engine

    return refuses(queries)


def twigstacks(options: TwigOptions | None = None) -> Engine:
    """The engine ``twigstacks``, which runs the paper's kernel on a core of the processor."""
    return _engine(_OTHER, refuses, partial(_compile, options=options), _open)


def twigstacks_cuda(options: TwigOptions | None = None) -> Engine:
    """The engine ``twigstacks-cuda``, which runs the kernel on a GPU.

    It refuses all queries where there is no GPU. Its ``compile`` raises MissingExtra where what it
    needs for one is not installed.
    """
    compile = partial(_compile_for_gpu, options=options)
    return _engine(_CUDA, _refuses_on_gpu, compile, _open_on_gpu)


def _engine(name: str, refuses: Any, compile: Any, searcher: Any) -> Engine:
    return Engine(
        name=name,
        refuses=refuses,
        compile=compile,
        searcher=searcher,
        is_automatic=False,
        heuristics=None,
        locates=locates_nothing,
    )


_CUDA, _OTHER = "twigstacks-cuda", "twigstacks"


def _compile(queries: Sequence[Query], options: TwigOptions | None) -> TwigProgram:
    from tamis_papers.twigstacks.compile import compile_queries  # noqa: PLC0415 - few name it

    return compile_queries(queries) if options is None else compile_queries(queries, options)


def _open(program: TwigProgram, _cache_bytes: int) -> TwigSearcher:
    from tamis_papers.twigstacks.execute import TwigSearcher  # noqa: PLC0415 - kernels

    return TwigSearcher(program)


def _refuses_on_gpu(queries: Queries) -> dict[int, str]:
    if gpu.has_gpu():
        return refuses(queries)
    return dict.fromkeys(range(len(queries)), gpu.no_gpu(_CUDA, _OTHER))


def _compile_for_gpu(queries: Sequence[Query], options: TwigOptions | None) -> TwigProgram:
    gpu.require_gpu(_CUDA, _OTHER)
    return _compile(queries, options)


def _open_on_gpu(program: TwigProgram, _cache_bytes: int) -> Any:
    from tamis_papers.twigstacks.cuda import CudaTwigSearcher  # noqa: PLC0415 - few name it

    return CudaTwigSearcher(program)


ENGINE, CUDA = twigstacks(), twigstacks_cuda()
"""Both, as the paper lays them out."""
