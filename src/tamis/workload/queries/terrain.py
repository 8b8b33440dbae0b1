"""What generated queries walk over: the elements of a DTD that documents can have."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from tamis.errors import UsageError
from tamis.language.xpath import XML_NAMESPACE
from tamis.schema.dtd import AttributeKind, AttributeType, ContentKind, Presence
from tamis.schema.graph import SchemaGraph
from tamis.schema.namespaces import prefixes


class Terrain:
    """The elements and attributes that queries can name, and the ways between them.

    Left out are elements that no valid document has, and names with prefixes that the DTD declares
    no namespace for.

    Attributes:
        names: the elements, in the order of their declarations.
        roots: those that documents begin with.
        children: of each element those that may stand in it.
        namespaces: the URI of each prefix that names have.
    """

    def __init__(self, graph: SchemaGraph) -> None:
        self._elements = graph.dtd.elements
        self._declared = prefixes(graph.dtd)
        self.names = tuple(
            name
            for name in graph.reachable
            if graph.height(name) is not None and self._has_namespace(name)
        )
        known = frozenset(self.names)
        self.roots = tuple(root for root in graph.roots if root in known)
        self.children: Mapping[str, tuple[str, ...]] = {
            name: tuple(child for child in graph.children(name) if child in known)
            for name in self.names
        }
        if not self.roots:
            roots = ", ".join(f"<{root}>" for root in graph.roots)
            raise UsageError(f"no valid document begins with {roots or 'anything'}: name a root")

    @cached_property
    def namespaces(self) -> dict[str, str]:
        """The prefixes that queries may use, with their URIs."""
        used = {name.partition(":")[0] for name in self.names if ":" in name}
        for name in self.names:
            used.update(a.name.partition(":")[0] for a in self.attributes(name) if ":" in a.name)
        return {prefix: uri for prefix, uri in self._declared.items() if prefix in used}

    def _has_namespace(self, name: str) -> bool:
        prefix, colon, _ = name.partition(":")
        return not colon or prefix == "xml" or prefix in self._declared

    def attributes(self, element: str) -> list[AttributeType]:
        """The attributes whose values queries can compare: no namespaces, IDs or references."""
        return [
            attribute
            for attribute in self._elements[element].attributes
            if attribute.kind in _COMPARED
            and attribute.name != "xmlns"
            and not attribute.name.startswith("xmlns:")
            and self._has_namespace(attribute.name)
            and attribute.default != XML_NAMESPACE
        ]

    def has_text(self, element: str) -> bool:
        """Whether documents have a value of their own in the element, and nothing else."""
        declared = self._elements[element]
        return declared.kind is ContentKind.MIXED and declared.model is None

    @cached_property
    def levels(self) -> dict[str, int]:
        """How many levels of elements there can be, from each element on; ``ENDLESS`` if any."""
        found: dict[str, int] = {}
        waiting = list(self.names)
        for _ in range(len(self.names) + 1):
            again = []
            for name in waiting:
                below = [found.get(child, 0) for child in self.children[name]]
                if all(below):
                    found[name] = 1 + max(below, default=0)
                else:
                    again.append(name)
            if len(again) == len(waiting):
                break
            waiting = again
        return {name: found.get(name, ENDLESS) for name in self.names}


ENDLESS = 1 << 30
_COMPARED = (
    AttributeKind.CDATA,
    AttributeKind.NMTOKEN,
    AttributeKind.ENUMERATION,
)


def fixed_value(attribute: AttributeType) -> str | None:
    """The only value that an attribute can have, or None."""
    return attribute.default if attribute.presence is Presence.FIXED else None
