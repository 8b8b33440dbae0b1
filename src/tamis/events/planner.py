"""Which engine answers: the only place that chooses one."""

from __future__ import annotations

import logging

from tamis.core.arguments import is_one_of
from tamis.core.index.planner import Choices
from tamis.events.engine import Engine

log = logging.getLogger("tamis.events.planner")

DEFAULT = "signature"
ENGINES = Choices(
    "engine",
    "tamis.event_engines",
    {name: f"tamis.events.engines.{name}:ENGINE" for name in (DEFAULT, "reference")},
)


def choose(name: str) -> Engine:
    """The engine of a name; ``auto`` is the default one.

    Raises:
        EngineRefused: there is none of that name.
    """
    chosen: Engine = ENGINES.named(DEFAULT if is_one_of(name, ("auto",)) else name)
    log.info("engine %s%s", chosen.name, ", the default" if name == "auto" else "")
    return chosen
