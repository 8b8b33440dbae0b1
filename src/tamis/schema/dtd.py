"""What a DTD says: the elements it declares, what they may contain, and their attributes.

:mod:`tamis.schema.reader` makes a :class:`Dtd` of files; nothing is ever fetched. DTDs know no
namespaces: all names here are as they are written, with their prefixes.

>>> from tamis.schema.reader import parse_dtd
>>> dtd = parse_dtd("<!ELEMENT book (title, (author+ | editor)?)> <!ELEMENT title (#PCDATA)>")
>>> book = dtd.elements["book"]
>>> str(book.model), book.children
('(title, (author+ | editor)?)', ('title', 'author', 'editor'))
>>> dtd.elements["title"].kind
<ContentKind.MIXED: 'mixed'>
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass


class ContentKind(enum.Enum):
    """The four kinds of content specification (XML 1.0, section 3.2)."""

    EMPTY = "EMPTY"
    ANY = "ANY"
    MIXED = "mixed"
    CHILDREN = "children"


class Occurs(enum.Enum):
    """How often a part of a content model may occur; the value is the mark in the DTD."""

    ONCE = ""
    OPTIONAL = "?"
    ZERO_OR_MORE = "*"
    ONE_OR_MORE = "+"


@dataclass(frozen=True, slots=True)
class Child:
    """A child element in a content model."""

    name: str
    occurs: Occurs = Occurs.ONCE

    def __str__(self) -> str:
        return self.name + self.occurs.value


@dataclass(frozen=True, slots=True)
class Group:
    """A sequence (``,``) or choice (``|``) of parts, in parentheses."""

    parts: tuple[Particle, ...]
    is_choice: bool
    occurs: Occurs = Occurs.ONCE

    def __str__(self) -> str:
        separator = " | " if self.is_choice else ", "
        return f"({separator.join(map(str, self.parts))}){self.occurs.value}"


Particle = Child | Group


class AttributeKind(enum.Enum):
    """The types of attributes (XML 1.0, section 3.3.1)."""

    CDATA = "CDATA"
    ID = "ID"
    IDREF = "IDREF"
    IDREFS = "IDREFS"
    ENTITY = "ENTITY"
    ENTITIES = "ENTITIES"
    NMTOKEN = "NMTOKEN"
    NMTOKENS = "NMTOKENS"
    NOTATION = "NOTATION"
    ENUMERATION = "enumeration"


class Presence(enum.Enum):
    """What a DTD says of an attribute that is not there (XML 1.0, section 3.3.2)."""

    REQUIRED = "#REQUIRED"
    IMPLIED = "#IMPLIED"
    FIXED = "#FIXED"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class AttributeType:
    """The declaration of one attribute of one element.

    ``values`` are those of an enumeration or NOTATION. ``default`` is of ``FIXED`` and ``DEFAULT``:
    entities are replaced and, but for CDATA, white space is normalised.
    """

    name: str
    kind: AttributeKind
    presence: Presence
    values: tuple[str, ...] = ()
    default: str | None = None


@dataclass(frozen=True, slots=True)
class ElementType:
    """The declaration of one element.

    ``model`` is of ``CHILDREN`` the content model; of ``MIXED`` a choice of the elements that may
    stand among the text, any times, or None for text alone; else None. ``attributes`` are in the
    order of their first declarations.
    """

    name: str
    kind: ContentKind
    model: Particle | None = None
    attributes: tuple[AttributeType, ...] = ()

    @property
    def children(self) -> tuple[str, ...]:
        """The names in the content model, each once, in order; ``ANY`` has none of its own."""
        return tuple(_counts(self.model))

    @property
    def occurrences(self) -> dict[str, Occurs]:
        """The children, each with how often it may occur in all.

        >>> from tamis.schema.reader import parse_dtd
        >>> dtd = parse_dtd("<!ELEMENT a ((b, c?) | (b, b, d*))>")
        >>> {name: occurs.value for name, occurs in dtd.elements["a"].occurrences.items()}
        {'b': '+', 'c': '?', 'd': '*'}
        """
        counts = _counts(self.model)
        return {name: _OCCURS[least, most > 1] for name, (least, most) in counts.items()}


_OCCURS = {  # whether something must be there, and whether it may be again
    (True, False): Occurs.ONCE,
    (False, False): Occurs.OPTIONAL,
    (True, True): Occurs.ONE_OR_MORE,
    (False, True): Occurs.ZERO_OR_MORE,
}


def _counts(particle: Particle | None) -> dict[str, tuple[bool, int]]:
    """Whether each child must be there, and how often it may be; 2 stands for more than once."""
    if particle is None:
        return {}
    if isinstance(particle, Child):
        counts = {particle.name: (True, 1)}
    else:
        found = defaultdict(list)  # of each name, the counts in those parts that have it
        for part in particle.parts:
            for name, count in _counts(part).items():
                found[name].append(count)
        counts = {}
        for name, each in found.items():
            least, most = zip(*each, strict=True)
            if particle.is_choice:
                counts[name] = len(each) == len(particle.parts) and all(least), max(most)
            else:
                counts[name] = any(least), sum(most)
    may_miss = particle.occurs in (Occurs.OPTIONAL, Occurs.ZERO_OR_MORE)
    may_repeat = particle.occurs in (Occurs.ONE_OR_MORE, Occurs.ZERO_OR_MORE)
    return {
        name: (least and not may_miss, 2 if may_repeat else min(2, most))
        for name, (least, most) in counts.items()
    }


@dataclass(frozen=True, slots=True)
class Dtd:
    """A whole DTD.

    Attributes:
        elements: the declared elements by name, in the order of their declarations. What content
            models name need not be declared.
        root: the name in the DOCTYPE that it was read from, or None.
        notations, unparsed_entities: what NOTATION and ENTITY attributes may name.
        missing: what it refers to and was not there: external parts (their system identifiers) and
            undeclared entities (``%name;``; ``&name;`` in the value of an attribute).
    """

    elements: Mapping[str, ElementType]
    root: str | None = None
    notations: tuple[str, ...] = ()
    unparsed_entities: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def declarations(self) -> str:
        """Declarations of the same elements and attributes.

        >>> from tamis.schema.reader import parse_dtd
        >>> text = parse_dtd("<!ENTITY % b 'b?'><!ELEMENT a (%b;)><!ATTLIST a n CDATA '&#34;'>")
        >>> print(text.declarations())
        <!ELEMENT a (b?)>
        <!ATTLIST a n CDATA "&#34;">
        """
        lines = [f'<!NOTATION {name} SYSTEM "">' for name in self.notations]
        for element in self.elements.values():
            lines.append(f"<!ELEMENT {element.name} {_content(element)}>")
            lines += [f"<!ATTLIST {element.name} {_declared(a)}>" for a in element.attributes]
        return "\n".join(lines)


def _content(element: ElementType) -> str:
    if element.kind is ContentKind.MIXED:
        names = ["#PCDATA", *element.children]
        return f"({' | '.join(names)}){'*' if element.children else ''}"
    if element.kind is not ContentKind.CHILDREN:
        return str(element.kind.value)
    return f"({element.model})" if isinstance(element.model, Child) else str(element.model)


def _declared(attribute: AttributeType) -> str:
    kind = "" if attribute.kind is AttributeKind.ENUMERATION else attribute.kind.value
    values = f" ({' | '.join(attribute.values)})" if attribute.values else ""
    presence = "" if attribute.presence is Presence.DEFAULT else f" {attribute.presence.value}"
    default = ""
    if attribute.default is not None:
        escaped = (f"&#{ord(c)};" if c in _ESCAPED else c for c in attribute.default)
        default = f' "{"".join(escaped)}"'
    return f"{attribute.name} {kind}{values}{presence}{default}"


_ESCAPED = '"&<%\t\n\r'
