"""The default engine: a trie of all steps, determinised while it matches; see README.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.matching.engine import Engine
from tamis.matching.engines.automaton.compile.queries import compile_queries, locates, refuses
from tamis.matching.engines.automaton.program import AutomatonProgram
from tamis.schema.prune import Heuristics

if TYPE_CHECKING:
    from tamis.matching.engines.automaton.execute import Automaton
    from tamis.matching.engines.automaton.layout import CacheArrays

__all__ = ["ENGINE", "compile_queries", "locates", "open_automaton", "refuses"]


def open_automaton(
    program: AutomatonProgram, bytes_max: int, cache: CacheArrays | None = None
) -> Automaton:
    """What matches with a program, for one thread at a time, perhaps with a warm cache."""
    from tamis.matching.engines.automaton.execute import Automaton  # noqa: PLC0415 - imports kernels

    return Automaton(program, bytes_max, cache)


ENGINE = Engine(
    name="automaton",
    refuses=refuses,
    compile=compile_queries,
    searcher=open_automaton,
    is_automatic=True,
    heuristics=Heuristics(wildcards="only-parent", descendants="single"),
    locates=locates,
)
