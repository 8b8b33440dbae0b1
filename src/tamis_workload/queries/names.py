"""What generated queries can name: the elements and attributes that documents of a DTD have."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from tamis.core.errors import UsageError
from tamis.schema.dtd import AttributeKind, AttributeType, ContentKind
from tamis.schema.graph import SchemaGraph
from tamis_workload.namespaces import Bindings

ENDLESS = 1 << 30
_COMPARED = (AttributeKind.CDATA, AttributeKind.NMTOKEN, AttributeKind.ENUMERATION)


class QueryNames:
    """The elements and attributes that queries can name, and the ways between them.

    Left out are elements that no valid document has, and names whose prefix is not bound: those
    that :class:`tamis_workload.documents.generator.Documents` leaves out too.

    Attributes:
        root: the element that documents begin with.
        elements: the elements, in the order of their declarations.
        children: of each element those that may stand in it.
    """

    def __init__(self, graph: SchemaGraph) -> None:
        self._graph = graph
        self._bindings = Bindings(graph)
        self.root = graph.root
        reached = {self.root} | graph.reaches(self.root)
        usable = {
            name
            for name in reached
            if graph.height(name) is not None and self._bindings.is_bound(name, name)
        }
        if self.root not in usable:
            raise UsageError(f"no valid document begins with <{self.root}>: name another root")
        self.elements = tuple(name for name in graph.dtd.elements if name in usable)
        self.children: Mapping[str, tuple[str, ...]] = {
            name: tuple(child for child in graph.children(name) if child in usable)
            for name in self.elements
        }

    @cached_property
    def namespaces(self) -> dict[str, str]:
        """The prefixes that queries may use, with their URIs."""
        used = {name.partition(":")[0] for name in self.elements if ":" in name}
        for name in self.elements:
            used.update(a.name.partition(":")[0] for a in self.attributes(name) if ":" in a.name)
        return {prefix: uri for prefix, uri in self._bindings.uris.items() if prefix in used}

    def attributes(self, element: str) -> list[AttributeType]:
        """The attributes whose values queries can compare: no namespaces, IDs or references."""
        return [
            attribute
            for attribute in self._graph.dtd.elements[element].attributes
            if attribute.kind in _COMPARED
            and attribute.name != "xmlns"
            and not attribute.name.startswith("xmlns:")
            and self._bindings.is_bound(element, attribute.name)
        ]

    def has_text(self, element: str) -> bool:
        """Whether documents have a value of their own in the element, and nothing else."""
        declared = self._graph.dtd.elements[element]
        return declared.kind is ContentKind.MIXED and declared.model is None

    @cached_property
    def levels(self) -> dict[str, int]:
        """How many levels of elements there can be, from each element on; ``ENDLESS`` if any."""
        unknown = {name: len(children) for name, children in self.children.items()}
        found = dict.fromkeys(self.elements, ENDLESS)
        waiting = [name for name in self.elements if not unknown[name]]
        for name in waiting:  # it grows by those whose children are all known
            found[name] = 1 + max((found[child] for child in self.children[name]), default=0)
            for parent in self._graph.parents(name):
                if parent not in unknown:
                    continue
                unknown[parent] -= 1
                if not unknown[parent]:
                    waiting.append(parent)
        return found
