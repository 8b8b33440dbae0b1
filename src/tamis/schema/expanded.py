"""A graph schema by the names that documents have: DTDs know no namespaces, documents do.

A DTD says which namespaces its names are in by default values of the attributes ``xmlns`` and
``xmlns:…``. Where it leaves that open, or says several things, a name stays as it is written, which
no document has: those that have such an element then leave the DTD.
"""

from __future__ import annotations

from collections.abc import Mapping

from tamis.language.filters import expanded_name
from tamis.schema.graph import SchemaGraph


class ExpandedGraph:
    """The graph of a DTD, its elements named as ``Labels`` names them.

    Attributes:
        roots: the elements that documents begin with.
        reachable: the elements that documents may have.

    >>> from tamis.schema.reader import parse_dtd
    >>> ExpandedGraph(SchemaGraph.of(parse_dtd('''<!ELEMENT a (m:b, c)> <!ELEMENT m:b (c)>
    ...     <!ELEMENT c EMPTY> <!ATTLIST a xmlns CDATA #FIXED "urn:a" xmlns:m CDATA "urn:m">'''))
    ...     ).reachable
    ('{urn:a}a', '{urn:m}b', '{urn:a}c')
    """

    def __init__(self, graph: SchemaGraph) -> None:
        names = _expanded_names(graph)
        self.roots = tuple(dict.fromkeys(names[root] for root in graph.roots))
        self.reachable = tuple(dict.fromkeys(names[name] for name in graph.reachable))
        self._children: dict[str, dict[str, None]] = {name: {} for name in self.reachable}
        for name in graph.reachable:
            self._children[names[name]].update(
                (names[child], None) for child in graph.children(name)
            )
        self._reached: dict[str, frozenset[str]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._children

    def children(self, name: str) -> tuple[str, ...]:
        """The elements that may stand in this one."""
        return tuple(self._children[name])

    def reaches(self, name: str) -> frozenset[str]:
        """The elements that may stand in this one, at any depth; itself, if it is on a cycle."""
        found = self._reached.get(name)
        if found is None:
            seen = dict.fromkeys(self._children[name])
            waiting = list(seen)
            while waiting:
                for child in self._children[waiting.pop()]:
                    if child not in seen:
                        seen[child] = None
                        waiting.append(child)
            found = self._reached[name] = frozenset(seen)
        return found


def _expanded_names(graph: SchemaGraph) -> dict[str, str]:
    """The name that documents have, of each element that they may have."""
    uris = {name: _declared(graph, name) for name in graph.reachable}
    by_prefix: dict[str, set[str]] = {}
    for declared in uris.values():
        for prefix, uri in declared.items():
            by_prefix.setdefault(prefix, set()).add(uri)
    defaults = _defaults(graph, uris)
    found = {}
    for name in graph.reachable:
        prefix, colon, local = name.rpartition(":")
        namespaces = sorted(by_prefix.get(prefix, set()) if colon else defaults[name])
        found[name] = expanded_name(namespaces[0], local) if len(namespaces) == 1 else f"{name}:"
    return found


def _declared(graph: SchemaGraph, name: str) -> dict[str, str]:
    """What an element binds by default: URIs by prefix; "" is the default namespace."""
    found = {}
    for attribute in graph.dtd.elements[name].attributes:
        start, _, prefix = attribute.name.partition(":")
        if start == "xmlns" and attribute.default is not None:
            found[prefix] = attribute.default
    return found


def _defaults(graph: SchemaGraph, uris: Mapping[str, Mapping[str, str]]) -> dict[str, set[str]]:
    """The default namespaces that may hold at each element, "" for none."""
    found: dict[str, set[str]] = {name: set() for name in graph.reachable}
    waiting = [(root, "") for root in graph.roots]
    while waiting:
        name, above = waiting.pop()
        here = uris[name].get("", above)
        if here not in found[name]:
            found[name].add(here)
            waiting += [(child, here) for child in graph.children(name)]
    return found
