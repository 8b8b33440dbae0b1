"""Tamis: a fine sieve for streams of XML documents.

>>> import tamis
>>> subscriptions = tamis.Subscriptions({"s1": "//order[total > 100]//item"})
>>> matcher = tamis.compile(subscriptions)
>>> list(matcher.match("<order><total>250</total><item/></order>"))
['s1']
"""

import importlib
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.errors import (
        BadSubscriptions,
        DocumentError,
        SubscriptionError,
        SubscriptionSyntaxError,
        TamisError,
        UnsupportedExpression,
        UsageError,
    )
    from tamis.language.subscriptions import Subscriptions
    from tamis.limits import Limits
    from tamis.matching.index import Matcher
    from tamis.matching.matcher import CompiledMatcher, Match
    from tamis.matching.matcher import compile_subscriptions as compile

__version__ = "0.1.0"

logging.getLogger("tamis").addHandler(logging.NullHandler())  # silent unless asked to speak

__all__ = [
    "BadSubscriptions",
    "CompiledMatcher",
    "DocumentError",
    "Limits",
    "Match",
    "Matcher",
    "SubscriptionError",
    "SubscriptionSyntaxError",
    "Subscriptions",
    "TamisError",
    "UnsupportedExpression",
    "UsageError",
    "__version__",
    "compile",
]

_HOMES = {
    "CompiledMatcher": "matching.matcher",
    "Limits": "limits",
    "Match": "matching.matcher",
    "Matcher": "matching.index",
    "Subscriptions": "language.subscriptions",
    "compile": "matching.matcher",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, then: NumPy alone takes longer than a program may want to wait."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(f"{__name__}.{_HOMES.get(name, 'errors')}")
    value = getattr(home, "compile_subscriptions" if name == "compile" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
