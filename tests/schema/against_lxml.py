"""What lxml (libxml2) says of a DTD, in the form of a ``Dtd``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from tamis.schema.dtd import Child, ContentKind, Dtd, Group, Occurs, Particle

KINDS = {"element": "children"}
OCCURS = {
    "once": Occurs.ONCE,
    "opt": Occurs.OPTIONAL,
    "mult": Occurs.ZERO_OR_MORE,
    "plus": Occurs.ONE_OR_MORE,
}


def names(content: etree._DTDElementContentDecl | None) -> Iterator[str]:
    """The names in a content model, in order, without their prefixes: lxml does not tell them."""
    if content is None:
        return
    if content.type == "element":
        assert content.name is not None
        yield content.name
    yield from names(content.left)
    yield from names(content.right)


def local(name: str) -> str:
    prefix, _, rest = name.partition(":")
    return rest if prefix and rest else name


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
            list(dict.fromkeys(local(name) for name in element.children)),
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


# -- content models ----------------------------------------------------------------------------


def models_of_lxml(dtd: etree.DTD) -> dict[str, str]:
    """The content models, as canonical text."""
    return {
        qualified(element): str(canonical(_particle(element.content)))
        for element in dtd.iterelements()
        if element.type == "element" and element.content is not None
    }


def models(dtd: Dtd) -> dict[str, str]:
    """The same of our reader."""
    return {
        element.name: str(canonical(_local(element.model)))
        for element in dtd.elements.values()
        if element.kind is ContentKind.CHILDREN and element.model is not None
    }


def canonical(particle: Particle) -> Particle:
    """One of the models that allow the same: libxml2 simplifies groups.

    Groups of one part are that part; groups inside such that join their parts in the same way are
    dissolved; under ``*`` and ``+`` the marks of a choice's own parts mean nothing more.
    """
    if isinstance(particle, Child):
        return particle
    parts = [canonical(part) for part in particle.parts]
    if len(parts) == 1:
        (part,) = parts
        occurs = _both(part.occurs, particle.occurs)
        if isinstance(part, Child):
            return Child(part.name, occurs)
        return _simplified(list(part.parts), part.is_choice, occurs)
    return _simplified(parts, particle.is_choice, particle.occurs)


def _local(particle: Particle) -> Particle:
    if isinstance(particle, Child):
        return Child(local(particle.name), particle.occurs)
    return Group(tuple(map(_local, particle.parts)), particle.is_choice, particle.occurs)


def _simplified(parts: list[Particle], is_choice: bool, occurs: Occurs) -> Group:
    if is_choice and occurs in (Occurs.ZERO_OR_MORE, Occurs.ONE_OR_MORE):
        if any(part.occurs in (Occurs.OPTIONAL, Occurs.ZERO_OR_MORE) for part in parts):
            occurs = Occurs.ZERO_OR_MORE
        parts = [
            Child(part.name) if isinstance(part, Child) else Group(part.parts, part.is_choice)
            for part in parts
        ]
    dissolved: list[Particle] = []
    for part in parts:
        if isinstance(part, Group) and (part.is_choice, part.occurs) == (is_choice, Occurs.ONCE):
            dissolved += part.parts
        else:
            dissolved.append(part)
    if dissolved != parts:
        return _simplified(dissolved, is_choice, occurs)
    return Group(tuple(parts), is_choice, occurs)


def _both(inner: Occurs, outer: Occurs) -> Occurs:
    """The mark of ``(x inner) outer``."""
    if Occurs.ONCE in (inner, outer) or inner is outer:
        return inner if outer is Occurs.ONCE else outer
    return Occurs.ZERO_OR_MORE


def _particle(content: etree._DTDElementContentDecl) -> Particle:
    occurs = OCCURS[content.occur]
    if content.type == "element":
        assert content.name is not None
        return Child(content.name, occurs)
    assert content.left is not None
    assert content.right is not None
    parts = (_particle(content.left), _particle(content.right))
    return Group(parts, content.type == "or", occurs)
