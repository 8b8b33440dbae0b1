"""What documents and events share: sets of matches (``matchset``), and how engines are named."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

from tamis.core.errors import EngineRefused, UsageError
from tamis.core.lazy import registered, registered_names


class MemoryUser(Protocol):
    """A program, or what searches with one."""

    def memory_usage(self) -> int:
        """Its size in bytes, as far as it is known."""


class Choices:
    """The engines, or strategies, that may be named: the built-in ones and the registered ones.

    Args:
        kind: what they are, for messages.
        group: the group of entry points that other packages register theirs in. It is read only for
            a name that is not built in.
        built_in: by name, the module and the attribute of each: it is imported when it is named.
        error: raised for a name that is none.
        others: names that the caller knows by itself, for messages.

    >>> choices = Choices("engine", "tamis.engines", {"nfa": "tamis.matching.engines.nfa:ENGINE"})
    >>> choices.named("nfa").name, "pma" in choices.names()
    ('nfa', True)
    >>> choices.named("warp")
    Traceback (most recent call last):
    tamis.core.errors.EngineRefused: there is no engine 'warp': choose one of auto, nfa, pma, \
twigstacks, twigstacks-cuda
    """

    def __init__(
        self,
        kind: str,
        group: str,
        built_in: Mapping[str, str],
        error: type[UsageError] = EngineRefused,
        others: tuple[str, ...] = ("auto",),
    ) -> None:
        self._kind, self._group, self._built_in, self._error = kind, group, built_in, error
        self._others = others

    def named(self, name: object) -> Any:
        """What has a name."""
        if isinstance(name, str) and name in self._built_in:
            module, _, attribute = self._built_in[name].partition(":")
            return getattr(import_module(module), attribute)
        found = registered(self._group, name) if isinstance(name, str) else None
        if found is None:
            choices = ", ".join([*self._others, *self.names()])
            raise self._error(f"there is no {self._kind} {name!r}: choose one of {choices}")
        return found

    def names(self) -> list[str]:
        """All names, the built-in ones first."""
        return [*self._built_in, *registered_names(self._group)]
