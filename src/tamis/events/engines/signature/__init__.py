"""The default engine: filters grouped by exactly what they need of an event; see README.md."""

from __future__ import annotations

from tamis.events.engines.signature.compile import compile_filters
from tamis.events.engines.signature.execute import SignatureSearcher
from tamis.events.planner import Engine

ENGINE = Engine("signature", compile_filters, SignatureSearcher)
