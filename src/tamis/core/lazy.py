"""Objects that are made at their first use, so that a process that uses few of them starts fast.

They are the names of packages (``importing``), regular expressions (``lazy_pattern``), and the
entry points of other packages (``registered``). A module that only some calls need is imported
inside the function that needs it, with ``# noqa: PLC0415``.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, AnyStr, cast


def importing(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package.

    Args:
        homes: by the names that it offers, the modules inside of it that they are from; behind a
            colon, what they are called there, if it is something else.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, _, called = homes[name].partition(":")
        value = getattr(importlib.import_module(f"{package}.{home}"), called or name)
        setattr(sys.modules[package], name, value)
        return value

    return get


def registered(group: str, name: str) -> Any:
    """What an installed package registers under a name, as an entry point, or None.

    >>> registered("tamis.engines", "warp") is None
    True
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - takes 20 ms

    return next((point.load() for point in entry_points(group=group, name=name)), None)


def registered_names(group: str) -> list[str]:
    """The names that installed packages register in a group of entry points."""
    from importlib.metadata import entry_points  # noqa: PLC0415

    return sorted({point.name for point in entry_points(group=group)})


OR_NOTHING = rb"|(?!)"
"""The last alternative of a group that is repeated possessively; it never matches.

Without it, CPython before 3.11.5 goes on behind the group from where the last alternative had come
before it failed (gh-106052): there, ``(?:a|/(?!>))*+/>`` does not match ``/>``.
"""


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """A regular expression that is compiled when it is first used.

    >>> lazy_pattern("[a-z]+").match("abc1")[0]
    'abc'
    """
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))


class _LazyPattern:
    def __init__(self, pattern: Any, flags: int) -> None:
        self._given = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked for by tools that inspect modules
            raise AttributeError(name)
        value = getattr(re.compile(*self._given), name)
        setattr(self, name, value)  # it is asked for once
        return value
