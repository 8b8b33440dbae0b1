"""Interned names: what turns the names of documents and subscriptions into small integers."""

from __future__ import annotations

from collections.abc import Iterator

UNKNOWN = -1
"""The id of a name that a vocabulary does not have."""


class Vocabulary:
    """Expanded names (namespace, local name) and prefixes, each with an id; it only grows.

    Ids are dense, from 0, and never change. Elements, attributes and processing instructions share
    one numbering. A matcher has one vocabulary for the names of its subscriptions, and each batch
    of documents a :meth:`fork` of it: a name in a query and in a document is then the same integer,
    and the names that only documents use are forgotten with their batch.

    >>> names = Vocabulary()
    >>> names.add("", "a"), names.add("urn:x", "a"), names.add("", "a")
    (0, 1, 0)
    >>> batch = names.fork()
    >>> batch.add("urn:x", "a"), batch.add("", "other"), names.find("", "other")
    (1, 2, -1)
    >>> batch.expanded(2)
    ('', 'other')
    """

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], int] = {}
        self._names: list[tuple[str, str]] = []
        self._prefix_ids: dict[str, int] = {}
        self._prefixes: list[str] = []

    def fork(self) -> Vocabulary:
        """A vocabulary with the same names, which may then grow by itself."""
        result = Vocabulary()
        result._ids = self._ids.copy()
        result._names = self._names.copy()
        result._prefix_ids = self._prefix_ids.copy()
        result._prefixes = self._prefixes.copy()
        return result

    def add(self, namespace: str, local: str) -> int:
        """The id of an expanded name; ``namespace`` is a URI, or ``""`` for none."""
        name = (namespace, local)
        id = self._ids.setdefault(name, len(self._names))
        if id == len(self._names):
            self._names.append(name)
        return id

    def find(self, namespace: str, local: str) -> int:
        """The id of an expanded name, or ``UNKNOWN``."""
        return self._ids.get((namespace, local), UNKNOWN)

    def expanded(self, name: int) -> tuple[str, str]:
        """The (namespace, local name) of an id."""
        return self._names[name]

    def add_prefix(self, prefix: str) -> int:
        """The id of a prefix."""
        id = self._prefix_ids.setdefault(prefix, len(self._prefixes))
        if id == len(self._prefixes):
            self._prefixes.append(prefix)
        return id

    def prefix(self, id: int) -> str:
        """The prefix of an id."""
        return self._prefixes[id]

    @property
    def size(self) -> int:
        """How many names and prefixes there are."""
        return len(self._names) + len(self._prefixes)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
