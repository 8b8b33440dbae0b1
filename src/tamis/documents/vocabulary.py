"""Interned names: what turns the names of documents and subscriptions into small integers."""

from __future__ import annotations

import threading
from typing import TypeVar

from tamis.errors import DocumentLimitError
from tamis.limits import DEFAULT_LIMITS, Limits

K = TypeVar("K")


class Vocabulary:
    """Expanded names (namespace, local name) and single strings, each with an id; it only grows.

    One vocabulary serves a matcher's subscriptions and all of its documents, so that a name in a
    query and in a document is the same integer. Ids are dense, from 0, and never change. Elements,
    attributes and processing instructions share one numbering. Safe to share between threads.

    >>> vocabulary = Vocabulary()
    >>> vocabulary.name("", "a"), vocabulary.name("urn:x", "a"), vocabulary.name("", "a")
    (0, 1, 0)
    >>> vocabulary.expanded(1)
    ('urn:x', 'a')
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limit = limits.names
        self._lock = threading.Lock()
        self._ids: dict[tuple[str, str], int] = {}
        self._names: list[tuple[str, str]] = []
        self._string_ids: dict[str, int] = {}
        self._strings: list[str] = []

    def name(self, namespace: str, local: str) -> int:
        """The id of an expanded name; ``namespace`` is a URI, or ``""`` for none."""
        key = (namespace, local)
        found = self._ids.get(key)
        return self._new(key, self._ids, self._names) if found is None else found

    def string(self, text: str) -> int:
        """The id of a prefix."""
        found = self._string_ids.get(text)
        return self._new(text, self._string_ids, self._strings) if found is None else found

    def expanded(self, name: int) -> tuple[str, str]:
        """The (namespace, local name) of an id."""
        return self._names[name]

    def text(self, string: int) -> str:
        """The prefix of an id."""
        return self._strings[string]

    def __len__(self) -> int:
        return len(self._names)

    def _new(self, key: K, ids: dict[K, int], values: list[K]) -> int:
        with self._lock:
            if key in ids:
                return ids[key]
            if len(values) >= self._limit:
                raise DocumentLimitError(
                    f"more distinct names than the limit names = {self._limit:,}"
                )
            values.append(key)
            ids[key] = len(values) - 1
            return ids[key]
