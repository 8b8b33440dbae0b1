"""Attribute–value events, matched against disjunctions of filters.

:func:`tamis.compile_events` compiles :class:`EventSubscriptions`, or what makes these, and
:class:`EventMatcher` is a set of them that changes; docs/events.md teaches what they may say. Start
with ``model.py``: the filters and events that all engines read. ``checks.py`` says what an event
may be, ``derive.py`` looks into mappings, and ``encode.py`` makes arrays of them. ``ndjson.py``
divides sources into lines, which ``reader.py`` has kernels read, along the tree of ``asked.py``;
``arrow.py`` reads columns. Engines find filters by their constraints; ``residual.py`` tests what is
left of them: patterns, comparisons of attributes, and clauses for ``not`` and nested alternatives.
``convert.py`` reads rules of others.
"""

from typing import TYPE_CHECKING

from tamis.core.lazy import importing

if TYPE_CHECKING:
    from tamis.events.live import EventMatcher
    from tamis.events.matcher import CompiledEventMatcher
    from tamis.events.matches import EventMatch
    from tamis.events.subscriptions import EventSubscriptions

__all__ = ["CompiledEventMatcher", "EventMatch", "EventMatcher", "EventSubscriptions"]

__getattr__ = importing(
    __name__,
    {
        "CompiledEventMatcher": "matcher",
        "EventMatch": "matches",
        "EventMatcher": "live",
        "EventSubscriptions": "subscriptions",
    },
)


def __dir__() -> list[str]:
    return __all__
