"""The names of a DTD that generated documents and queries use, and where prefixes are declared.

DTDs know no namespaces, but they can declare the attributes ``xmlns:p`` that bind prefixes.
Documents have to have them above whatever uses a prefix, and without need on nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from tamis.core.errors import UsageError
from tamis.core.names import XML_NAMESPACE, is_ncname
from tamis.schema.dtd import AttributeKind, AttributeType, ContentKind, Dtd, Presence
from tamis.schema.graph import SchemaGraph


def prefixes(dtd: Dtd) -> dict[str, str]:
    """The URI of each prefix that the DTD has attributes ``xmlns:…`` for (the first, if several).

    >>> from tamis.schema.reader import parse_dtd
    >>> prefixes(parse_dtd("<!ELEMENT a ANY><!ATTLIST a xmlns:p CDATA #FIXED 'urn:p'>"))
    {'p': 'urn:p'}
    """
    found: dict[str, str] = {}
    for element in dtd.elements.values():
        for prefix, uri in _declared(dtd, element.name).items():
            found.setdefault(prefix, uri)
    return found


def _declared(dtd: Dtd, element: str) -> dict[str, str]:
    """The prefixes that an element may declare; a URI is made up where the DTD leaves it open."""
    found = {}
    for attribute in dtd.elements[element].attributes:
        start, _, prefix = attribute.name.partition(":")
        uri = attribute.default
        if uri is None:
            uri = attribute.values[0] if attribute.values else f"urn:{prefix}"
        if start == "xmlns" and is_ncname(prefix) and uri not in _NOT_FOR_PREFIXES:
            found[prefix] = uri
    return found


_NOT_FOR_PREFIXES = ("", XML_NAMESPACE, "http://www.w3.org/2000/xmlns/")


def _required(dtd: Dtd, element: str) -> set[str]:
    """The prefixes that an element has to declare, used or not; "" is the default namespace."""
    return {
        attribute.name.partition(":")[2]
        for attribute in dtd.elements[element].attributes
        if attribute.presence is Presence.REQUIRED
        and (attribute.name == "xmlns" or attribute.name.startswith("xmlns:"))
    }


def _prefix(name: str) -> str:
    return name.partition(":")[0] if ":" in name else ""


def _is_qualified(name: str) -> bool:
    """Whether a name has the form that namespaces demand: one colon at most, between names."""
    return all(map(is_ncname, name.split(":", 1)))


class Bindings:
    """Which prefixes are bound in an element, on every way from the root to it.

    Each element that may declare a prefix does so, unless it is bound above it on every way, or
    nothing in the element uses it.

    Attributes:
        uris: the URI of each prefix.
    """

    def __init__(self, graph: SchemaGraph) -> None:
        dtd = graph.dtd
        self._declared = {name: _declared(dtd, name) for name in dtd.elements}
        self._required = {name: _required(dtd, name) for name in dtd.elements}
        self.uris = prefixes(dtd)
        self._used = _used(graph)
        every = frozenset(self.uris)
        # What is bound above an element: at first all, then less and less until it is consistent.
        self._above = dict.fromkeys(dtd.elements, every)
        self._above[graph.root] = frozenset()
        waiting = dict.fromkeys(dtd.elements)
        while waiting:
            name = next(iter(waiting))
            del waiting[name]
            bound = self._bound(name)
            for child in graph.children(name):
                if not self._above[child] <= bound:
                    self._above[child] &= bound
                    waiting[child] = None

    def _bound(self, element: str) -> frozenset[str]:
        written = (prefix for prefix, _ in self.written_on(element))
        return self._above[element].union(written)

    def written_on(self, element: str) -> list[tuple[str, str]]:
        """The prefixes with their URIs that an element declares; "" is the default namespace.

        Where that has to be declared, it is none: names without a prefix stay what they are.
        """
        required, used, above = (self._required[element], self._used[element], self._above[element])
        found = [
            (prefix, uri)
            for prefix, uri in self._declared[element].items()
            if prefix in required or (prefix in used and prefix not in above)
        ]
        return [*found, ("", "")] if "" in required else found

    def is_bound(self, element: str, name: str) -> bool:
        """Whether an element can have this name, or an attribute of this name."""
        prefix = _prefix(name)
        return _is_qualified(name) and (prefix in ("", "xml") or prefix in self._bound(element))

    def expanded(self, name: str) -> tuple[str, str]:
        """The namespace and local name of an attribute."""
        prefix = _prefix(name)
        return self.uris.get(prefix, prefix), name.removeprefix(f"{prefix}:")


def _used(graph: SchemaGraph) -> dict[str, set[str]]:
    """The prefixes that elements use, or what can be inside them."""
    used = {
        element.name: {
            _prefix(name)
            for name in (element.name, *(attribute.name for attribute in element.attributes))
        }
        - {"", "xml", "xmlns"}
        for element in graph.dtd.elements.values()
    }
    waiting = dict.fromkeys(name for name, found in used.items() if found)
    while waiting:
        name = next(iter(waiting))
        del waiting[name]
        for parent in graph.parents(name):
            if not used[name] <= used[parent]:
                used[parent] |= used[name]
                waiting[parent] = None
    return used


ENDLESS = 1 << 30
_COMPARED = (AttributeKind.CDATA, AttributeKind.NMTOKEN, AttributeKind.ENUMERATION)


class QueryNames:
    """The elements and attributes that queries can name, and the ways between them.

    Left out are elements that no valid document has, and names whose prefix is not bound: those
    that :class:`tamis_workload.documents.grammar.Documents` leaves out too.

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
