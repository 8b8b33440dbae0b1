"""The engines of the PCM paper: name vectors, Bloom filters, counting; see README.md."""

from __future__ import annotations

from functools import partial
from typing import Any

from tamis.core import gpu
from tamis.events.model import FilterTable, Owners
from tamis.events.planner import Engine
from tamis_papers.pcm.compile import compile_filters
from tamis_papers.pcm.execute import OcmSearcher
from tamis_papers.pcm.program import PcmOptions, PcmProgram

__all__ = ["CCM", "OCM", "OcmSearcher", "PcmOptions", "PcmProgram", "ccm", "compile_filters", "ocm"]


def ocm(options: PcmOptions) -> Engine:
    """The engine ``ocm``, in one of its variants."""
    return Engine("ocm", partial(compile_filters, options=options), OcmSearcher)


def ccm(options: PcmOptions) -> Engine:
    """The engine ``ccm``, in one of its variants.

    Its ``compile`` raises EngineRefused where there is no GPU, and MissingExtra where what it needs
    for one is not installed.
    """
    return Engine("ccm", partial(_compile_for_gpu, options=options), _open_on_gpu)


def _compile_for_gpu(table: FilterTable, options: PcmOptions) -> PcmProgram:
    gpu.require_gpu("ccm", "ocm")
    return compile_filters(table, options)


def _open_on_gpu(program: PcmProgram, owners: Owners, threads: int) -> Any:
    from tamis_papers.pcm.cuda import CcmSearcher  # noqa: PLC0415 - few name it

    return CcmSearcher(program, owners, threads)


OCM, CCM = ocm(PcmOptions()), ccm(PcmOptions())
"""Both, as they are fastest."""
