"""``Projection``: what a program reads of documents, so that parsers can skip the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

Name = tuple[str, str]
"""An expanded name: namespace URI or "", and local name."""


class Names:
    """A set of expanded names: none, some, or all that there are. Immutable.

    Attributes:
        some: the names, where they are listed, or None for all.

    >>> names = Names([("", "a")]) | Names([("urn:x", "b")])
    >>> ("", "a") in names, ("", "b") in names, ("", "b") in names | ALL_NAMES
    (True, False, True)
    >>> bool(NO_NAMES), bool(names), bool(ALL_NAMES)
    (False, True, True)
    """

    __slots__ = ("some",)

    some: frozenset[Name] | None

    def __init__(self, some: Iterable[Name] | None = ()) -> None:
        self.some = None if some is None else frozenset(some)

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
        return Projection(
            self.attributes | other.attributes,
            self.text | other.text,
            self.misc or other.misc,
            self.prefixes or other.prefixes,
            self.lines or other.lines,
            self.offsets or other.offsets,
        )


class Projections:
    """What many programs, or parts of one, read together: a sum that is cheap to add to.

    >>> projections = Projections()
    >>> projections.add(Projection(text=Names([("", "a")])))
    >>> projections.add(Projection(text=Names([("", "b")]), offsets=True))
    >>> projections.total.text, projections.total.offsets
    (Names([('', 'a'), ('', 'b')]), True)
    """

    def __init__(self, first: Projection | None = None) -> None:
        self._total: Projection | None = None
        self._rest = Projection()  # flags, and whether all names are asked for
        self._attributes: set[Name] = set()
        self._text: set[Name] = set()
        if first is not None:
            self.add(first)

    def add(self, projection: Projection) -> None:
        """Add what one reads."""
        self._total = None
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
