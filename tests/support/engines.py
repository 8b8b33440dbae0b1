"""All engines of documents, those of papers too."""

from __future__ import annotations

from tamis.matching import planner
from tamis.matching.engine import Engine

ENGINES: list[Engine] = [planner.ENGINES.named(name) for name in planner.ENGINES.names()]
