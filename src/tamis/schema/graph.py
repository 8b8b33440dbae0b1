"""The graph schema of a DTD: which elements may stand inside which (Fernández and Suciu, 1998).

The elements that a DTD declares are the nodes. An edge leads from each to those that its content
model names; from one with ``ANY`` content, to all. The graph is looser than the DTD, since it knows
no order and no number: every path in a document that obeys the DTD is a path in the graph.
"""

from __future__ import annotations

import difflib
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from tamis.core.errors import UsageError
from tamis.language.filters import expanded_name
from tamis.schema.dtd import Child, ContentKind, Dtd, Occurs, Particle

Edges = Mapping[str, Collection[str]]


class _Graph:
    """What graphs by the names in a DTD, and by those in documents, have in common."""

    _children: Mapping[str, tuple[str, ...]]

    @cached_property
    def _reached(self) -> dict[str, frozenset[str]]:
        """What :meth:`reaches` has found out; all at once could be the square of a large DTD."""
        return {}

    def children(self, name: str) -> tuple[str, ...]:
        """The elements that may stand in this one, in the order of its content model.

        Of one with ``ANY`` content: all, in the order of their declarations.
        """
        return self._children[name]

    def reaches(self, name: str) -> frozenset[str]:
        """The elements that may stand in this one, at any depth; itself, if it is on a cycle."""
        found = self._reached.get(name)
        if found is None:
            found = self._reached[name] = frozenset(_reachable(self.children(name), self._children))
        return found


@dataclass(frozen=True, eq=False)
class SchemaGraph(_Graph):
    """The graph schema of a DTD, seen from its roots; made by :meth:`of`.

    Methods that take the name of an element raise ``KeyError`` where it is not declared. Documents
    begin with the ``roots``.

    >>> from tamis.schema.reader import parse_dtd
    >>> graph = SchemaGraph.of(parse_dtd('''
    ...     <!ELEMENT book (title, section*)>   <!ELEMENT title (#PCDATA)>
    ...     <!ELEMENT section (title, (section | para)*)>   <!ELEMENT para (#PCDATA)>'''))
    >>> graph, graph.children("section"), graph.parents("title")
    (SchemaGraph(roots=('book',)), ('title', 'section', 'para'), ('book', 'section'))
    >>> graph.cycles, graph.depth, graph.path_count(3)
    ((('section',),), None, 6)
    """

    dtd: Dtd = field(repr=False)
    roots: tuple[str, ...]

    @classmethod
    def of(cls, dtd: Dtd, roots: Sequence[str] = ()) -> SchemaGraph:
        """The graph of a DTD; a ``UsageError`` if a root is not declared.

        Without ``roots``, the root is the name in the DOCTYPE. Where there is none, or it is not
        declared, roots are guessed: those that no content model names, and those of cycles that are
        named in the cycle alone. That ``ANY`` content could hold them does not count.
        """
        for root in roots:
            if root not in dtd.elements:
                raise UsageError(_unknown(root, dtd))
        if not roots and dtd.root is not None and dtd.root in dtd.elements:
            roots = (dtd.root,)
        return cls(dtd, tuple(dict.fromkeys(roots)) or _guessed_roots(dtd))

    @cached_property
    def root(self) -> str:
        """Of several roots the one that reaches the most elements, the first of them."""
        if not self.roots:
            raise UsageError("the DTD declares no element that a document could begin with")
        return max(self.roots, key=lambda root: len(self.reaches(root)))

    def parents(self, name: str) -> tuple[str, ...]:
        """The elements that this one may stand in, in the order of their declarations."""
        return tuple(self._parents[name])

    @cached_property
    def reachable(self) -> tuple[str, ...]:
        """The elements that documents may have, in the order of their declarations."""
        found = _reachable(self.roots, self._children)
        return tuple(name for name in self.dtd.elements if name in found)

    @cached_property
    def undeclared(self) -> tuple[str, ...]:
        """What content models or the DOCTYPE name and the DTD does not declare.

        No document with such an element is valid, so they are not in the graph.
        """
        named = chain.from_iterable(element.children for element in self.dtd.elements.values())
        root = () if self.dtd.root is None else (self.dtd.root,)
        return tuple(dict.fromkeys(n for n in chain(root, named) if n not in self.dtd.elements))

    @cached_property
    def cycles(self) -> tuple[tuple[str, ...], ...]:
        """The reachable elements that may stand in themselves, at some depth.

        Each tuple is a strongly connected component; all is in the order of the declarations.
        """
        index_of = {name: index for index, name in enumerate(self.reachable)}
        found = [
            tuple(sorted(component, key=index_of.__getitem__))
            for component in self._components
            if len(component) > 1 or component[0] in self.children(component[0])
        ]
        return tuple(sorted(found, key=lambda cycle: index_of[cycle[0]]))

    @property
    def is_recursive(self) -> bool:
        """Whether documents may nest without end."""
        return bool(self.cycles)

    @cached_property
    def depth(self) -> int | None:
        """How deep elements may nest, the root being at 1; None where there is no end."""
        if self.is_recursive:
            return None
        levels: dict[str, int] = {}
        for (name,) in self._components:
            levels[name] = 1 + max((levels[child] for child in self.children(name)), default=0)
        return max((levels[root] for root in self.roots), default=0)

    def height(self, name: str) -> int | None:
        """The fewest levels that this element takes with all that it must contain; a leaf takes 1.

        None where it can never be completed, since it must contain itself or what is not declared.

        >>> from tamis.schema.reader import parse_dtd
        >>> graph = SchemaGraph.of(parse_dtd(
        ...     "<!ELEMENT a ((b | c), d?)> <!ELEMENT b (c)> <!ELEMENT c EMPTY> <!ELEMENT d (d)>"))
        >>> [graph.height(name) for name in "abcd"]
        [2, 2, 1, None]
        """
        return self._heights[name]

    def path_count(self, depth: int | None = None) -> int:
        """How many different paths there are from a root to an element, of at most so many steps.

        All of them, for which the graph may not be recursive, if ``depth`` is None.
        """
        if depth is None and self.is_recursive:
            raise UsageError("the DTD is recursive, so its paths have no end: give a depth")
        count = steps = 0
        level: Mapping[str, int] = dict.fromkeys(self.roots, 1)
        while level and steps != depth:
            count += sum(level.values())
            steps += 1
            below: dict[str, int] = defaultdict(int)
            for name, paths in level.items():
                for child in self.children(name):
                    below[child] += paths
            level = below
        return count

    def paths(self, depth: int | None, most: int) -> Iterator[tuple[str, ...]]:
        """The paths from a root to an element, short ones first; at most so many, and so deep.

        >>> from tamis.schema.reader import parse_dtd
        >>> graph = SchemaGraph.of(parse_dtd("<!ELEMENT a (b, a?)> <!ELEMENT b EMPTY>"))
        >>> ["/".join(path) for path in graph.paths(None, most=4)]
        ['a', 'a/b', 'a/a', 'a/a/b']
        """
        waiting: deque[tuple[str, ...]] = deque((root,) for root in self.roots)
        left = most
        while left > 0 and waiting and (depth is None or len(waiting[0]) <= depth):
            path = waiting.popleft()
            yield path
            left -= 1
            if len(waiting) < left:
                waiting.extend((*path, child) for child in self.children(path[-1]))

    @cached_property
    def _children(self) -> Mapping[str, tuple[str, ...]]:  # type: ignore[override]
        everything = tuple(self.dtd.elements)
        elements = self.dtd.elements.items()
        with_any = [name for name, element in elements if element.kind is ContentKind.ANY]
        return _named_children(self.dtd) | dict.fromkeys(with_any, everything)

    @cached_property
    def _parents(self) -> dict[str, list[str]]:
        return _turned(self._children)

    @cached_property
    def _components(self) -> list[list[str]]:
        return _components({name: self.children(name) for name in self.reachable})

    @cached_property
    def _heights(self) -> dict[str, int | None]:
        """Level by level: what can be completed with lower elements alone is one higher.

        An element is looked at again only when one that it may contain has been completed.
        """
        heights: dict[str, int | None] = {}
        candidates: Collection[str] = self.dtd.elements
        level = 0
        while candidates:
            level += 1
            done = [n for n in candidates if _is_possible(self.dtd.elements[n].model, heights)]
            heights.update(dict.fromkeys(done, level))
            above = chain.from_iterable(self._parents[name] for name in done)
            candidates = {name for name in above if name not in heights}
        return dict.fromkeys(self.dtd.elements) | heights


def _unknown(root: str, dtd: Dtd) -> str:
    close = difflib.get_close_matches(root, dtd.elements, 3)
    names = close or list(dtd.elements)[:8]
    more = "" if close or len(names) == len(dtd.elements) else ", …"
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(names)}{more}"
    return f"no element {root!r} is declared{': ' + hint if names else ''}"


def _guessed_roots(dtd: Dtd) -> tuple[str, ...]:
    """The elements that nothing outside their own cycle contains."""
    edges = _named_children(dtd)
    parents = _turned(edges)
    roots: set[str] = set()
    for component in _components(edges):
        if all(set(component).issuperset(parents[name]) for name in component):
            roots.update(component)
    return tuple(name for name in dtd.elements if name in roots)


def _named_children(dtd: Dtd) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(child for child in element.children if child in dtd.elements)
        for name, element in dtd.elements.items()
    }


def _turned(edges: Edges) -> dict[str, list[str]]:
    turned: dict[str, list[str]] = {name: [] for name in edges}
    for name, others in edges.items():
        for other in others:
            turned[other].append(name)
    return turned


def _reachable(starts: Iterable[str], edges: Edges) -> set[str]:
    found = set(starts)
    waiting = list(found)
    while waiting:
        new = [name for name in edges[waiting.pop()] if name not in found]
        found.update(new)
        waiting += new
    return found


def _components(edges: Edges) -> list[list[str]]:
    """The strongly connected components, each after all that it reaches.

    This is Tarjan's algorithm with a stack of its own, for DTDs with longer chains than Python has
    stack frames.
    """
    components: list[list[str]] = []
    order: dict[str, int] = {}  # when a name was met
    lowest: dict[str, int] = {}  # the earliest name on the path that it is known to reach
    path: list[str] = []  # met, and not yet in a component
    closed: set[str] = set()

    def enter(name: str) -> tuple[str, Iterator[str]]:
        order[name] = lowest[name] = len(order)
        path.append(name)
        return name, iter(edges[name])

    for start in edges:
        active = [enter(start)] if start not in order else []
        while active:
            name, rest = active[-1]
            for child in rest:
                if child not in order:
                    active.append(enter(child))
                    break
                if child not in closed:
                    lowest[name] = min(lowest[name], order[child])
            else:
                active.pop()
                if active:
                    above, _ = active[-1]
                    lowest[above] = min(lowest[above], lowest[name])
                if lowest[name] == order[name]:
                    component = [path.pop()]
                    while component[-1] != name:
                        component.append(path.pop())
                    components.append(component)
                    closed.update(component)
    return components


def _is_possible(particle: Particle | None, complete: Collection[str]) -> bool:
    """Whether a content model can be satisfied with these elements."""
    if particle is None or particle.occurs in (Occurs.OPTIONAL, Occurs.ZERO_OR_MORE):
        return True
    if isinstance(particle, Child):
        return particle.name in complete
    enough = any if particle.is_choice else all
    return enough(_is_possible(part, complete) for part in particle.parts)


# -- names of documents ----------------------------------------------------------------------------


class ExpandedGraph(_Graph):
    """A graph by the names that documents have: DTDs know no namespaces, documents do.

    A DTD says which namespaces its names are in by default values of the attributes ``xmlns`` and
    ``xmlns:…``. Where it leaves that open, or says several things, a name stays as it is written,
    which no document has: documents with such an element violate the DTD. Elements are named as
    ``Labels`` names them. Documents begin with the ``roots`` and have the ``reachable`` ones.

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
        below: dict[str, dict[str, None]] = {name: {} for name in self.reachable}
        for name in graph.reachable:
            below[names[name]].update((names[child], None) for child in graph.children(name))
        self._children = {name: tuple(children) for name, children in below.items()}

    def __contains__(self, name: str) -> bool:
        return name in self._children


def _expanded_names(graph: SchemaGraph) -> dict[str, str]:
    """The name that documents have, of each element that they may have."""
    by_prefix: dict[str, set[str]] = defaultdict(set)
    changed: dict[str, str] = {}  # the default namespaces that elements declare
    for name in graph.reachable:
        for attribute in graph.dtd.elements[name].attributes:
            start, _, prefix = attribute.name.partition(":")
            if start == "xmlns" and attribute.default is not None:
                by_prefix[prefix].add(attribute.default)
                if not prefix:
                    changed[name] = attribute.default
    defaults = _defaults(graph, changed)
    found = {}
    for name in graph.reachable:
        prefix, colon, local = name.rpartition(":")
        namespaces = sorted(by_prefix.get(prefix, set()) if colon else defaults[name])
        found[name] = expanded_name(namespaces[0], local) if len(namespaces) == 1 else f"{name}:"
    return found


def _defaults(graph: SchemaGraph, changed: Mapping[str, str]) -> dict[str, set[str]]:
    """The default namespaces that may hold at each element, "" for none."""
    found: dict[str, set[str]] = {name: set() for name in graph.reachable}
    waiting = [(root, "") for root in graph.roots]
    while waiting:
        name, above = waiting.pop()
        here = changed.get(name, above)
        if here not in found[name]:
            found[name].add(here)
            waiting += [(child, here) for child in graph.children(name)]
    return found
