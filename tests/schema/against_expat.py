"""What expat says of a DTD, in the form of a ``Dtd``: all of it, default values included."""

from __future__ import annotations

import re
from typing import Any
from xml.parsers import expat

from tamis.schema.dtd import (
    AttributeKind,
    AttributeType,
    Child,
    ContentKind,
    Dtd,
    ElementType,
    Group,
    Occurs,
    Particle,
    Presence,
)

Model = tuple[int, int, str | None, tuple[Any, ...]]

_EMPTY, _ANY, _MIXED, _NAME, _CHOICE, _SEQUENCE = range(1, 7)
_OCCURS = (Occurs.ONCE, Occurs.OPTIONAL, Occurs.ZERO_OR_MORE, Occurs.ONE_OR_MORE)


def read_with_expat(text: str) -> Dtd | None:
    """The DTD in a string, read as an external subset; None where expat refuses it.

    It must not refer to what is not in it: expat leaves out all that follows.
    """
    elements: dict[str, Model] = {}
    attributes: dict[str, dict[str, AttributeType]] = {}

    def attribute(element: str, name: str, type_: str, default: str | None, required: int) -> None:
        declared = _attribute(name, type_, default, bool(required))
        attributes.setdefault(element, {}).setdefault(name, declared)

    def external(context: str | None, *_: object) -> int:
        parser.ExternalEntityParserCreate(context).Parse(text.encode(), True)
        return 1

    parser = expat.ParserCreate("utf-8")
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_ALWAYS)
    parser.UseForeignDTD(True)
    parser.ElementDeclHandler = elements.setdefault
    parser.AttlistDeclHandler = attribute
    parser.ExternalEntityRefHandler = external
    try:
        parser.Parse(b"<a/>", True)
    except expat.ExpatError:
        return None
    return Dtd(
        {
            name: _element(name, model, tuple(attributes.get(name, {}).values()))
            for name, model in elements.items()
        }
    )


def _attribute(name: str, type_: str, default: str | None, required: bool) -> AttributeType:
    written = re.fullmatch(r"(NOTATION)?\((.*)\)", type_)
    values = tuple(dict.fromkeys(written[2].split("|"))) if written else ()
    kind = AttributeKind(type_ if not written else (written[1] or "enumeration"))
    if default is None:
        presence = Presence.REQUIRED if required else Presence.IMPLIED
    else:
        presence = Presence.FIXED if required else Presence.DEFAULT
    return AttributeType(name, kind, presence, values, default)


def _element(name: str, model: Model, attributes: tuple[AttributeType, ...]) -> ElementType:
    type_, _, _, parts = model
    if type_ in (_EMPTY, _ANY):
        return ElementType(
            name, ContentKind.EMPTY if type_ == _EMPTY else ContentKind.ANY, None, attributes
        )
    if type_ == _MIXED:
        names = tuple(map(Child, dict.fromkeys(part[2] for part in parts)))
        mixed = Group(names, True, Occurs.ZERO_OR_MORE) if names else None
        return ElementType(name, ContentKind.MIXED, mixed, attributes)
    return ElementType(name, ContentKind.CHILDREN, _particle(model), attributes)


def _particle(model: Model) -> Particle:
    type_, quantifier, name, parts = model
    occurs = _OCCURS[quantifier]
    if type_ == _NAME:
        assert name is not None
        return Child(name, occurs)
    return Group(tuple(map(_particle, parts)), type_ == _CHOICE, occurs)
