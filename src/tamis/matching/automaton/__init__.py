"""The default engine: a trie of all steps, determinised while it matches; see README.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.matching.automaton.compile import compile_queries, refuses
from tamis.matching.automaton.locating import locates
from tamis.matching.automaton.program import AutomatonProgram

if TYPE_CHECKING:
    from tamis.matching.automaton.automaton import Automaton
    from tamis.matching.automaton.memo import MemoArrays

__all__ = ["compile_queries", "locates", "open_automaton", "refuses"]


def open_automaton(
    program: AutomatonProgram, bytes_max: int, memo: MemoArrays | None = None
) -> Automaton:
    """What matches with a program, for one thread at a time, perhaps from what was learned."""
    from tamis.matching.automaton.automaton import Automaton  # noqa: PLC0415 - imports kernels

    return Automaton(program, bytes_max, memo)
