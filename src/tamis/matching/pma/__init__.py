"""The engine of the schema paper: a backtracking automaton of Aho and Corasick; see README.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.matching.pma.compile import compile_queries, refuses
from tamis.matching.pma.program import PmaOptions, PmaProgram

if TYPE_CHECKING:
    from tamis.matching.pma.matching import PmaMatching

__all__ = ["PmaOptions", "compile_queries", "open_pma", "refuses"]


def open_pma(program: PmaProgram, bytes_max: int) -> PmaMatching:
    """What matches with a program, for one thread at a time. It learns nothing."""
    from tamis.matching.pma.matching import PmaMatching  # noqa: PLC0415 - imports Numba

    del bytes_max
    return PmaMatching(program)
