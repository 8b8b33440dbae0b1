"""Imports what a package offers when it is asked for: NumPy and Numba take long to import."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


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
