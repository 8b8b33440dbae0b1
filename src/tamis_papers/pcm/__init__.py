"""The engines of the PCM paper: name vectors, Bloom filters, counting; see README.md."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any

from tamis.core.errors import EngineRefused, MissingExtra
from tamis.events.model import FilterTable, Owners
from tamis.events.planner import Engine
from tamis_papers.pcm.compile import compile_filters
from tamis_papers.pcm.execute import OcmSearcher
from tamis_papers.pcm.program import PcmOptions, PcmProgram

__all__ = [
    "CCM",
    "OCM",
    "OcmSearcher",
    "PcmOptions",
    "PcmProgram",
    "ccm",
    "compile_filters",
    "has_gpu",
    "ocm",
]


def ocm(options: PcmOptions) -> Engine:
    """The engine ``ocm``, in one of its variants."""
    return Engine("ocm", partial(compile_filters, options=options), OcmSearcher)


def ccm(options: PcmOptions) -> Engine:
    """The engine ``ccm``, in one of its variants.

    Its ``compile`` raises EngineRefused where there is no GPU, and MissingExtra where what it needs
    for one is not installed.
    """
    return Engine("ccm", partial(_compile_for_gpu, options=options), _open_on_gpu)


def has_gpu() -> bool:
    """Whether ``ccm`` can run here; the simulator counts."""
    try:
        return bool(_cuda().is_there())
    except MissingExtra:
        return False


def _cuda() -> Any:
    if find_spec("numba_cuda") is None:
        raise MissingExtra("cuda", "numba-cuda")
    from tamis_papers.pcm import cuda  # noqa: PLC0415 - nothing else needs it

    return cuda


def _compile_for_gpu(table: FilterTable, options: PcmOptions) -> PcmProgram:
    if not _cuda().is_there():
        raise EngineRefused(
            "the engine ccm needs a CUDA GPU and its driver, and there is none: ocm is the same "
            "algorithm on the cores of the processor"
        )
    return compile_filters(table, options)


def _open_on_gpu(program: PcmProgram, owners: Owners, threads: int) -> Any:
    return _cuda().CcmSearcher(program, owners, threads)


OCM, CCM = ocm(PcmOptions()), ccm(PcmOptions())
"""Both, as they are fastest."""
