"""Which engine answers: the only place that chooses one."""

from __future__ import annotations

import logging

from tamis.errors import EngineRefused
from tamis.events.engine import Engine

log = logging.getLogger("tamis.events.planner")

DEFAULT = "signature"


def engines() -> dict[str, Engine]:
    """All engines, by their names."""
    from tamis.events import pcm, reference  # noqa: PLC0415 - imports Numba

    return {engine.name: engine for engine in (reference.ENGINE, pcm.OCM)}


def choose(name: str) -> Engine:
    """The engine of a name; ``auto`` is the default one.

    Raises:
        EngineRefused: there is none of that name.
    """
    found = engines()
    chosen = found.get(DEFAULT if name == "auto" else name)
    if chosen is None:
        raise EngineRefused(f"there is no engine {name!r}: choose from {', '.join(found)}")
    log.info("engine %s%s", chosen.name, ", the default" if name == "auto" else "")
    return chosen
