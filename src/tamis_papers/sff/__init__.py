"""The sequential counting algorithm, with which the PCM paper compares its own; see README.md."""

from __future__ import annotations

from tamis.events.planner import Engine
from tamis_papers.sff.compile import compile_filters
from tamis_papers.sff.execute import SffSearcher
from tamis_papers.sff.program import SffProgram

__all__ = ["ENGINE", "SffProgram", "SffSearcher", "compile_filters"]

ENGINE = Engine("sff", compile_filters, SffSearcher)
