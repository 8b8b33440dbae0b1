"""All engines of documents that can run here, those of papers too."""

from __future__ import annotations

from tamis.language.xpath import parse
from tamis.matching import planner
from tamis.matching.engine import Engine, reason_of

ENGINES: list[Engine] = [
    engine
    for engine in map(planner.ENGINES.named, planner.ENGINES.names())
    if reason_of(engine, parse("//a")) is None  # one that needs a GPU refuses all without
]
