"""The engine of the GPU paper: push and pop stacks, a query node a thread; see README.md."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tamis.core.errors import EngineRefused, MissingExtra
from tamis.core.lazy import importing
from tamis.matching.engine import Engine, locates_nothing

if TYPE_CHECKING:
    from tamis.language.model import Query
    from tamis_papers.twigstacks.execute import TwigSearcher
    from tamis_papers.twigstacks.program import TwigOptions, TwigProgram

__all__ = ["CUDA", "ENGINE", "TwigOptions", "has_gpu", "twigstacks", "twigstacks_cuda"]

__getattr__ = importing(__name__, {"TwigOptions": "program"})


def refuses(query: Query) -> str | None:
    """See :func:`tamis_papers.twigstacks.compile.refuses`."""
    from tamis_papers.twigstacks.compile import refuses  # noqa: PLC0415 - few name this engine

    return refuses(query)


def has_gpu() -> bool:
    """Whether ``twigstacks-cuda`` can run here; the simulator counts."""
    try:
        return bool(_cuda().is_there())
    except MissingExtra:
        return False


def twigstacks(options: TwigOptions | None = None) -> Engine:
    """The engine ``twigstacks``, which runs the paper's kernel on a core of the processor."""
    return _engine("twigstacks", refuses, partial(_compile, options=options), _open)


def twigstacks_cuda(options: TwigOptions | None = None) -> Engine:
    """The engine ``twigstacks-cuda``, which runs the kernel on a GPU.

    It refuses all queries where there is no GPU. Its ``compile`` raises MissingExtra where what it
    needs for one is not installed.
    """
    compile = partial(_compile_for_gpu, options=options)
    return _engine("twigstacks-cuda", _refuses_on_gpu, compile, _open_on_gpu)


def _engine(name: str, refuses: Any, compile: Any, searcher: Any) -> Engine:
    return Engine(
        name=name,
        refuses=refuses,
        compile=compile,
        searcher=searcher,
        is_automatic=False,
        takes_plain=False,
        heuristics=None,
        locates=locates_nothing,
    )


_NO_GPU = (
    "the engine twigstacks-cuda needs a CUDA GPU and its driver, and there is none: twigstacks is "
    "the same algorithm on a core of the processor"
)


def _compile(queries: Sequence[Query], options: TwigOptions | None) -> TwigProgram:
    from tamis_papers.twigstacks.compile import compile_queries  # noqa: PLC0415 - few name it

    return compile_queries(queries) if options is None else compile_queries(queries, options)


def _open(program: TwigProgram, _cache_bytes: int) -> TwigSearcher:
    from tamis_papers.twigstacks.execute import TwigSearcher  # noqa: PLC0415 - kernels

    return TwigSearcher(program)


def _cuda() -> Any:
    if find_spec("numba_cuda") is None:
        raise MissingExtra("cuda", "numba-cuda")
    from tamis_papers.twigstacks import cuda  # noqa: PLC0415 - nothing else needs it

    return cuda


def _refuses_on_gpu(query: Query) -> str | None:
    return refuses(query) if has_gpu() else _NO_GPU


def _compile_for_gpu(queries: Sequence[Query], options: TwigOptions | None) -> TwigProgram:
    if not _cuda().is_there():
        raise EngineRefused(_NO_GPU)
    return _compile(queries, options)


def _open_on_gpu(program: TwigProgram, _cache_bytes: int) -> Any:
    return _cuda().CudaTwigSearcher(program)


ENGINE, CUDA = twigstacks(), twigstacks_cuda()
"""Both, as the paper lays them out."""
