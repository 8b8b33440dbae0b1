"""Attribute–value events, matched against disjunctions of filters.

:func:`tamis.compile_events` compiles :class:`EventSubscriptions`, or what makes these, and
:class:`EventMatcher` is a set of them that changes; docs/events.md teaches what they may say. Start
with ``model.py``: the filters and events that all engines read. ``checks.py`` says what an event
may be, ``ndjson.py`` and ``arrow.py`` read events, ``derive.py`` looks into them, and ``encode.py``
makes arrays of them. Engines find filters by their constraints; ``clauses.py`` keeps those whose
clauses, for ``not`` and nested alternatives, are true. ``convert.py`` reads rules of others.
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
