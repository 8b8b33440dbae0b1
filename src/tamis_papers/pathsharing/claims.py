"""What can be known of path-tuples before there are any: duplicates, order, superfluous ``//``.

The claims of Diao and Franklin (*Query Processing for High-Volume XML Message Brokering*, VLDB
2003, section 4), and the canonical form of section 5.1. They are about the stream of tuples of a
path: a tuple has a field for each step, and the last field ascends. Two elements are *on the same
loop* if each may be inside the other, in the element graph of the DTD; one is on a loop if it may
be inside itself.

The paper's steps have names. Behind ``//``, ``*`` may stand for elements that are inside each other
without any loop, so the claims about loops say nothing there.
"""

from __future__ import annotations

from collections.abc import Sequence

from tamis.language.filters import Codes, Labels, is_open
from tamis.schema.graph import ExpandedGraph

NO_CLAIM = 0
"""Nothing is known."""


class Claims:
    """What is known of the tuples of paths.

    Args:
        labels: what steps test for.
        graph: of the DTD that documents keep to, or None.

    >>> labels = Labels()
    >>> claims = Claims(labels, None)
    >>> claims.without_duplicates(labels.read("/a//b")), claims.in_order(labels.read("/a//b"), 1)
    (1, 4)
    >>> claims.without_duplicates(labels.read("//a//b"))
    0
    >>> from tamis.schema.graph import SchemaGraph
    >>> from tamis.schema.reader import parse_dtd
    >>> dtd = parse_dtd("<!ELEMENT r (a*)> <!ELEMENT a (b*)> <!ELEMENT b (b*)>")
    >>> claims = Claims(labels, ExpandedGraph(SchemaGraph.of(dtd)))
    >>> claims.without_duplicates(labels.read("//a//b")), claims.in_order(labels.read("//a//b"), 1)
    (2, 5)
    >>> labels.written(claims.canonical(labels.read("//a//b")))
    '/r/a//b'
    """

    def __init__(self, labels: Labels, graph: ExpandedGraph | None) -> None:
        self._labels = labels
        self._graph = graph

    def name(self, code: int) -> str:
        """The element that a step tests for."""
        return self._labels.names[code >> 1]

    def without_duplicates(self, codes: Codes) -> int:
        """Which claim says that no two tuples of a path end with the same node: 1, 2 or none.

        Claim 1: there is at most one ``//``. Claim 2: there are more, and the elements behind all
        of them but the last are on no loop.
        """
        descending = [code for code in codes if code & 1]
        if len(descending) <= 1:
            return 1
        if self._graph is not None and all(map(self._is_on_no_loop, descending[:-1])):
            return 2
        return NO_CLAIM

    def without_duplicate_pairs(self, codes: Codes, step: int) -> int:
        """Whether claim 3 says that no two tuples have the same nodes at a step and at the end.

        There are none if there are none of the path up to the step, and none of what is left.

        Args:
            step: from 1, before the last.
        """
        parts = codes[:step], codes[step:]
        return 3 if all(map(self.without_duplicates, parts)) else NO_CLAIM

    def in_order(self, codes: Codes, step: int) -> int:
        """Which claim says that the nodes at a step never descend: 4, 5 or none.

        Claim 4: there is no ``//`` up to the step. Claim 5: there are some, and the elements behind
        them are not on the same loop as the step's.

        Args:
            step: from 1.
        """
        before = [code for code in codes[:step] if code & 1]
        if not before:
            return 4
        last = codes[step - 1]
        if self._graph is not None and not any(self._share_a_loop(code, last) for code in before):
            return 5
        return NO_CLAIM

    def canonical(self, codes: Codes, start: str | None = None) -> Codes:
        """The same path without superfluous ``//``: where the DTD has one way, its steps.

        Args:
            start: the element that the path begins at; None for the document.
        """
        if self._graph is None:
            return codes
        found: list[int] = []
        at = start
        is_known = True  # which element the step begins at
        for code in codes:
            name = self._labels.names[code >> 1]
            way = self._only_way(at, name) if code & 1 and is_known else None
            found += [code] if way is None else [self._labels.of(each) << 1 for each in way]
            at, is_known = name, not is_open(name)
        return tuple(found)

    def _only_way(self, start: str | None, end: str) -> Sequence[str] | None:
        """The elements from one down to another, if there is one way; without the first."""
        graph = self._graph
        assert graph is not None
        if end not in graph or end in graph.reaches(end) or is_open(end):
            return None
        way: list[str] = []
        while True:
            if start is None:
                below: Sequence[str] = graph.roots
            elif start in graph:
                below = graph.children(start)
            else:
                return None
            towards = [name for name in below if name == end or end in graph.reaches(name)]
            if len(towards) != 1 or towards[0] in way:
                return None
            way.append(towards[0])
            if towards[0] == end:
                return way
            start = towards[0]

    def _is_on_no_loop(self, code: int) -> bool:
        """Whether the element of a step is known to be never inside itself."""
        name, graph = self._labels.names[code >> 1], self._graph
        assert graph is not None
        return not is_open(name) and (name not in graph or name not in graph.reaches(name))

    def _share_a_loop(self, one: int, other: int) -> bool:
        """Whether the elements of two steps may be inside each other."""
        names, graph = self._labels.names, self._graph
        assert graph is not None
        first, second = names[one >> 1], names[other >> 1]
        if is_open(first) or is_open(second):
            return True
        if first not in graph or second not in graph:
            return False
        return second in graph.reaches(first) and first in graph.reaches(second)
