"""Names of documents: ``Vocabulary`` numbers them, ``Projection`` says which are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tamis.core.arrays import Int32

UNKNOWN = -1
"""The id of a name that a vocabulary does not have."""


class Vocabulary:
    """Expanded names (namespace, local name) and prefixes, each with an id; it only grows.

    Ids are dense, from 0, and never change. Elements, attributes and processing instructions share
    one numbering. A parser has a vocabulary for the names of its documents, most of which come
    again; :class:`NameNumbers` has what they are to a program.

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
        vars(result).update((name, value.copy()) for name, value in vars(self).items())
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
        return self._prefixes[id]

    @property
    def size(self) -> int:
        """How many names and prefixes there are."""
        return len(self._names) + len(self._prefixes)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


Name = tuple[str, str]
"""An expanded name: namespace URI or "", and local name."""


class NameNumbers:
    """What names are to a program, by their ids in a vocabulary that grows; for one thread.

    Args:
        known: the numbers of some names.
        other: the number of all others, or what gives it.

    >>> names = Vocabulary()
    >>> names.add("", "a"), names.add("", "b")
    (0, 1)
    >>> NameNumbers({("", "b"): 7}, -1).of(names)
    array([-1,  7], dtype=int32)
    """

    def __init__(self, known: Mapping[Name, int], other: int | Callable[[str, str], int]) -> None:
        self._known, self._other = known, other
        self._vocabulary: Vocabulary | None = None
        self._numbers = np.zeros(0, np.int32)

    def of(self, vocabulary: Vocabulary) -> Int32:
        """By id: the number of each name."""
        if vocabulary is not self._vocabulary:
            self._vocabulary, self._numbers = vocabulary, np.zeros(0, np.int32)
        first = len(self._numbers)
        if len(vocabulary) > first:
            self._numbers = np.append(self._numbers, self._new(vocabulary, first))
        return self._numbers

    def _new(self, vocabulary: Vocabulary, first: int) -> Int32:
        known, other = self._known, self._other
        new = np.full(len(vocabulary) - first, -1 if callable(other) else other, np.int32)
        if not callable(other) and len(known) < len(new):  # as after one subscription is added
            for name, number in known.items():
                if (id := vocabulary.find(*name)) >= first:
                    new[id - first] = number
            return new
        for index in range(len(new)):
            name = vocabulary.expanded(first + index)
            if (found := known.get(name)) is not None:
                new[index] = found
            elif callable(other):
                new[index] = other(*name)
        return new


class Names:
    """A set of expanded names: none, some, or all that there are (None). Immutable.

    >>> names = Names([("", "a")]) | Names([("urn:x", "b")])
    >>> ("", "a") in names, ("", "b") in names, ("", "b") in names | ALL_NAMES
    (True, False, True)
    >>> bool(NO_NAMES), bool(names), bool(ALL_NAMES)
    (False, True, True)
    """

    __slots__ = ("some",)

    def __init__(self, some: Iterable[Name] | None = ()) -> None:
        self.some: frozenset[Name] | None = None if some is None else frozenset(some)

    def __or__(self, other: Names) -> Names:
        if self.some is None or other.some is None:
            return ALL_NAMES
        return Names(self.some | other.some)

    def __contains__(self, name: object) -> bool:
        return self.some is None or name in self.some

    def __bool__(self) -> bool:
        return self.some is None or bool(self.some)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Names) and self.some == other.some

    def __hash__(self) -> int:
        return hash(self.some)

    def __repr__(self) -> str:
        if self.some is None:
            return "ALL_NAMES"
        return f"Names({sorted(self.some)})" if self.some else "NO_NAMES"


NO_NAMES = Names()
ALL_NAMES = Names(None)


class Projection(NamedTuple):
    """What a program reads of documents; the parser skips the rest, still checking that it is XML.

    Attributes:
        attributes: the names of the attributes to record.
        text: the names of the elements whose string values are read: each text node inside one of
            them, at any depth, is recorded, and so the string value is one slice.
        misc: comments and processing instructions (needed by ``node()``).
        prefixes: the prefixes that names were written with (needed by ``name()``).
        lines: the line of each event (needed by ``explain``).
        offsets: where each event stands (needed to say where the selected nodes are).

    >>> Projection(text=Names([("", "a")])) | Projection(attributes=ALL_NAMES, misc=True)
    Projection(attributes=ALL_NAMES, text=Names([('', 'a')]), misc=True, prefixes=False, \
lines=False, offsets=False)
    """

    attributes: Names = NO_NAMES
    text: Names = NO_NAMES
    misc: bool = False
    prefixes: bool = False
    lines: bool = False
    offsets: bool = False

    def __or__(self, other: Projection) -> Projection:
        both: Iterable[Any] = zip(self, other, strict=True)
        return Projection(*(one | two for one, two in both))


class Projections:
    """What many programs, or parts of one, read together: a sum that is cheap to add to.

    >>> projections = Projections()
    >>> projections.add(Projection(text=Names([("", "a")])))
    >>> projections.add(Projection(text=Names([("", "b")]), offsets=True))
    >>> projections.total.text, projections.total.offsets
    (Names([('', 'a'), ('', 'b')]), True)
    """

    def __init__(self, first: Projection = Projection()) -> None:  # noqa: B008 - it is immutable
        self._rest = Projection()  # flags, and whether all names are asked for
        self._attributes: set[Name] = set()
        self._text: set[Name] = set()
        self.add(first)

    def add(self, projection: Projection) -> None:
        """Add what one reads."""
        self._total: Projection | None = None
        attributes, text = projection.attributes.some, projection.text.some
        self._attributes.update(attributes or ())
        self._text.update(text or ())
        self._rest |= projection._replace(
            attributes=ALL_NAMES if attributes is None else NO_NAMES,
            text=ALL_NAMES if text is None else NO_NAMES,
        )

    @property
    def total(self) -> Projection:
        """What all of them read; the same object until more is added."""
        if self._total is None:
            names = Projection(attributes=Names(self._attributes), text=Names(self._text))
            self._total = self._rest | names
        return self._total


EVERYTHING = Projection(ALL_NAMES, ALL_NAMES, True, True, True, True)
