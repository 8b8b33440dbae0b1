"""Tamis: a fine sieve for streams of XML documents.

>>> import tamis
>>> subscriptions = tamis.Subscriptions({"s1": "//order[total > 100]//item"})
>>> matcher = tamis.compile(subscriptions)
>>> list(matcher.match("<order><total>250</total><item/></order>"))
['s1']
"""

import logging
from typing import TYPE_CHECKING

from tamis.core.lazy import importing

if TYPE_CHECKING:
    from tamis.core.errors import (
        BadSubscriptions,
        DocumentError,
        SubscriptionError,
        TamisError,
        UnsupportedExpression,
        UsageError,
    )
    from tamis.core.limits import Limits
    from tamis.events.live import EventMatcher
    from tamis.events.matcher import compile_events
    from tamis.language.subscriptions import Subscriptions
    from tamis.matching.live import Matcher
    from tamis.matching.match import Match
    from tamis.matching.matcher import CompiledMatcher
    from tamis.matching.matcher import compile_subscriptions as compile
    from tamis.matching.matcher import load_matcher as load
    from tamis.transform.transformer import Transformer

__version__ = "0.1.0"

logging.getLogger("tamis").addHandler(logging.NullHandler())  # silent unless asked to speak

__all__ = [
    "BadSubscriptions",
    "CompiledMatcher",
    "DocumentError",
    "EventMatcher",
    "Limits",
    "Match",
    "Matcher",
    "SubscriptionError",
    "Subscriptions",
    "TamisError",
    "Transformer",
    "UnsupportedExpression",
    "UsageError",
    "__version__",
    "compile",
    "compile_events",
    "load",
]

__getattr__ = importing(
    __name__,
    {
        "BadSubscriptions": "core.errors",
        "CompiledMatcher": "matching.matcher",
        "DocumentError": "core.errors",
        "EventMatcher": "events.live",
        "Limits": "core.limits",
        "Match": "matching.match",
        "Matcher": "matching.live",
        "SubscriptionError": "core.errors",
        "Subscriptions": "language.subscriptions",
        "TamisError": "core.errors",
        "Transformer": "transform.transformer",
        "UnsupportedExpression": "core.errors",
        "UsageError": "core.errors",
        "compile": "matching.matcher:compile_subscriptions",
        "compile_events": "events.matcher",
        "load": "matching.matcher:load_matcher",
    },
)


def __dir__() -> list[str]:
    return __all__
