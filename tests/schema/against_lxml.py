"""What lxml (libxml2) says of a DTD, in the form of a ``Dtd``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from tamis.schema.dtd import Dtd

KINDS = {"element": "children"}


def names(content: etree._DTDElementContentDecl | None) -> Iterator[str]:
    """The names in a content model, in order, without their prefixes: lxml does not tell them."""
    if content is None:
        return
    if content.type == "element":
        assert content.name is not None
        yield content.name
    yield from names(content.left)
    yield from names(content.right)


def qualified(declared: etree._DTDElementDecl) -> str:
    return f"{declared.prefix}:{declared.name}" if declared.prefix else declared.name


def facts_of_lxml(dtd: etree.DTD) -> dict[str, object]:
    """Elements with kind, children and attributes, to be compared with :func:`facts`."""
    return {
        qualified(element): (
            KINDS.get(element.type, element.type),
            list(dict.fromkeys(names(element.content))),
            {
                qualified(a): (a.type, a.default, a.default_value, sorted(a.values()))
                for a in element.iterattributes()
            },
        )
        for element in dtd.iterelements()
    }


def facts(dtd: Dtd) -> dict[str, object]:
    """The same of our reader."""
    return {
        element.name: (
            element.kind.value.lower(),
            list(dict.fromkeys(name.split(":")[-1] for name in element.children)),
            {
                a.name: (
                    a.kind.value.lower(),
                    {"default": "none"}.get(a.presence.value, a.presence.value[1:].lower()),
                    a.default,
                    sorted(a.values),
                )
                for a in element.attributes
            },
        )
        for element in dtd.elements.values()
    }


def read_with_lxml(path: Path) -> dict[str, object] | None:
    """None where libxml2 refuses the DTD."""
    try:
        return facts_of_lxml(etree.DTD(str(path)))
    except etree.DTDParseError:
        return None
