"""The engines of the PCM paper: name vectors, Bloom filters, counting; see README.md."""

from __future__ import annotations

from functools import partial

from tamis.events.engine import Engine
from tamis.events.pcm.building import compile_filters
from tamis.events.pcm.matching import OcmMatching
from tamis.events.pcm.tables import PcmOptions, PcmProgram

__all__ = ["OCM", "OcmMatching", "PcmOptions", "PcmProgram", "compile_filters", "ocm"]


def ocm(options: PcmOptions) -> Engine:
    """The engine ``ocm``, in one of its variants."""
    return Engine("ocm", partial(compile_filters, options=options), OcmMatching)


OCM = Engine("ocm", compile_filters, OcmMatching)
"""The same, as it is fastest."""
