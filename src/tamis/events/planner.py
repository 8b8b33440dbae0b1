"""Which engine answers: the only place that chooses one."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import NamedTuple

from tamis.checks import is_one_of
from tamis.errors import EngineRefused
from tamis.events.engine import Engine, Matching, Program
from tamis.events.model import FilterTable, Owners

log = logging.getLogger("tamis.events.planner")

DEFAULT = "signature"

SEQUENTIAL_BELOW = 1_000
"""The engine ``pcm`` matches fewer filters by ``sff``.

About here the paper's Figure 8 has sequential matching ahead. A guess: how many constraints filters
have decides more, and with one or two, ``sff`` is ahead with far more filters
(``benchmarks/records/events-figures.json``).
"""

GPU_FROM = 1_000_000
"""So many by ``ccm``, where there is a GPU, each launch of which takes microseconds at least.

A guess too, until one was measured.
"""


_HOMES = {
    "signature": "signature:ENGINE",
    "reference": "reference:ENGINE",
    "sff": "sff:ENGINE",
    "ocm": "pcm:OCM",
    "ccm": "pcm:CCM",
    "pcm": "planner:PCM",
}
"""Where each engine is: its module is imported when the engine is chosen."""


def engine_named(name: str) -> Engine:
    """The engine of a name that is one."""
    module, _, attribute = _HOMES[name].partition(":")
    engine: Engine = getattr(import_module(f"tamis.events.{module}"), attribute)
    return engine


def engines() -> dict[str, Engine]:
    """All engines, by their names."""
    return {name: engine_named(name) for name in _HOMES}


def runnable() -> list[Engine]:
    """Those that run on this machine."""
    from tamis.events import pcm  # noqa: PLC0415 - imports kernels

    return [engine for engine in engines().values() if engine is not pcm.CCM or pcm.has_gpu()]


def choose(name: str) -> Engine:
    """The engine of a name; ``auto`` is the default one.

    Raises:
        EngineRefused: there is none of that name.
    """
    if not is_one_of(name, ("auto", *_HOMES)):
        raise EngineRefused(f"there is no engine {name!r}: choose from {', '.join(_HOMES)}")
    chosen = engine_named(DEFAULT if name == "auto" else name)
    log.info("engine %s%s", chosen.name, ", the default" if name == "auto" else "")
    return chosen


def pcm_choice(filters: int, has_gpu: bool) -> str:
    """The engine for so many filters, as the paper's translator (Section 4.3) would switch.

    >>> pcm_choice(100, True), pcm_choice(250_000, True), pcm_choice(5_000_000, True)
    ('sff', 'ocm', 'ccm')
    """
    if filters < SEQUENTIAL_BELOW:
        return "sff"
    return "ccm" if has_gpu and filters >= GPU_FROM else "ocm"


class _Chosen(NamedTuple):
    """Filters, compiled by an engine that was chosen for them."""

    engine: Engine
    program: Program

    def memory_usage(self) -> int:
        return self.program.memory_usage()


def _compile_chosen(table: FilterTable) -> _Chosen:
    from tamis.events import pcm  # noqa: PLC0415 - imports kernels

    is_large = table.filters >= GPU_FROM
    name = pcm_choice(table.filters, is_large and pcm.has_gpu())
    engine = engine_named(name)
    log.info("engine pcm: %s, for %d filters", engine.name, table.filters)
    return _Chosen(engine, engine.compile(table))


def _open_chosen(chosen: _Chosen, owners: Owners, threads: int) -> Matching:
    return chosen.engine.open(chosen.program, owners, threads)


PCM = Engine("pcm", _compile_chosen, _open_chosen)
"""PCM's automatic switch."""
