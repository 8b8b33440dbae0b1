"""What lxml selects, and where expat says that it stands: told without any code of Tamis.

Where a token of the document ends expat does not tell, but where the next one begins: so all of
them are listed. Attributes have no place of their own there: what is said to be one has to be
read back as one of the right element, with its value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple
from xml.parsers import expat

from lxml import etree

from tamis.documents.source import Source
from tamis.language.xpath import absolute_xpath
from tamis.matching.engines.lxml.execute import lxml_tree
from tamis.matching.selection import Node

Key = tuple[object, ...]
"""A kind of node, and which of them it is."""
_TEXT = ("text", "open cdata", "close cdata")


class Token(NamedTuple):
    kind: str
    start: int


def tokens(data: bytes, encoding: str | None) -> list[Token]:
    """The tokens of a document, the last of them its end."""
    parser = expat.ParserCreate(encoding)
    found: list[Token] = []

    def noting(kind: str) -> Any:
        return lambda *_: found.append(Token(kind, parser.CurrentByteIndex))

    parser.StartElementHandler = noting("start")
    parser.EndElementHandler = noting("end")
    parser.CharacterDataHandler = noting("text")
    parser.StartCdataSectionHandler = noting("open cdata")
    parser.EndCdataSectionHandler = noting("close cdata")
    parser.CommentHandler = parser.ProcessingInstructionHandler = noting("misc")
    parser.StartDoctypeDeclHandler = noting("other")
    parser.DefaultHandlerExpand = noting("other")
    parser.Parse(data, True)
    return [*found, Token("other", len(data))]


def ranges(data: bytes, encoding: str | None) -> dict[tuple[int, int], Key]:
    """The nodes of a document but for attributes, by where they stand."""
    found: dict[tuple[int, int], Key] = {}
    counts = {"element": 0, "text": 0, "misc": 0}
    open_elements: list[tuple[int, int]] = []
    text_start = -1

    def note(kind: str, start: int, end: int) -> None:
        found[start, end] = (kind, counts[kind])
        counts[kind] += 1

    for token, following in pairwise(tokens(data, encoding)):
        if token.kind in _TEXT:
            text_start = token.start if text_start < 0 else text_start
            if following.kind not in _TEXT:
                note("text", text_start, following.start)
                text_start = -1
        elif token.kind == "start":
            open_elements.append((token.start, counts["element"]))
            counts["element"] += 1
        elif token.kind == "end":
            start, number = open_elements.pop()
            found[start, following.start] = ("element", number)
        elif token.kind == "misc":
            note("misc", token.start, following.start)
    return found


class Oracle:
    """One document, which lxml and expat have read.

    Args:
        data: in UTF-8, without anything that lxml reads in another way, and with something before
            or behind its root element.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.ranges = ranges(data, None)
        self.tree = lxml_tree(Source(data))
        self.elements = list(self.tree.iter(etree.Element))
        self.keys: dict[Key, Key] = {}
        for kind, asked in (
            ("text", "//text()"),
            ("misc", "//comment() | //processing-instruction()"),
        ):
            for number, node in enumerate(self.tree.xpath(asked)):
                self.keys[self._identity(node)] = (kind, number)
        for number, element in enumerate(self.elements):
            self.keys[self._identity(element)] = ("element", number)

    def expected(self, expression: str, namespaces: Mapping[str, str]) -> list[Key]:
        """The nodes that lxml selects, in any order."""
        absolute = absolute_xpath(expression, namespaces)
        selected = self.tree.xpath(absolute, namespaces=dict(namespaces) or None)
        keys = [self.keys.get(self._identity(node)) or self._attribute(node) for node in selected]
        # lxml leaves the document node out of what it returns, but counts it.
        if self.tree.xpath(f"count({absolute})", namespaces=dict(namespaces) or None) > len(keys):
            keys.append(("document",))
        return keys

    def found(self, nodes: list[Node], line_ends: str = "\n") -> list[Key]:
        """The nodes that are said to stand somewhere; their lines are checked."""
        for node in nodes:
            before = self.data[: node.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            assert node.line == before.count(line_ends.encode()) + 1
        return [self._key(node) for node in nodes]

    def value(self, key: Key) -> str:
        """The string value of a node, as lxml gives it."""
        kind, *place = key
        if kind == "document":
            return str(self.tree.xpath("string(/*)"))  # string(/) has a DTD's entities before
        if kind == "attribute":
            number, name = place
            return str(self.elements[int(str(number))].attrib[name])
        return self._values[key]

    @cached_property
    def _values(self) -> dict[Key, str]:
        asked = {
            "element": "//*",
            "text": "//text()",
            "misc": "//comment() | //processing-instruction()",
        }
        return {
            (kind, number): str(node if kind == "text" else node.xpath("string()"))
            for kind, expression in asked.items()
            for number, node in enumerate(self.tree.xpath(expression))
        }

    def _key(self, node: Node) -> Key:
        place = (node.start, node.end)
        if place == (0, len(self.data)):  # no element: the test sees to that
            return ("document",)
        return self.ranges.get(place) or self._read_back(node)

    def _read_back(self, node: Node) -> Key:
        starts = [s for (s, _), key in self.ranges.items() if key[0] == "element"]
        start = max(s for s in starts if s < node.start)
        number = next(
            key[1] for (s, _), key in self.ranges.items() if s == start and key[0] == "element"
        )
        element = self.elements[int(str(number))]
        written = self.data[node.start : node.end].decode()
        name = re.split(r"[ \t\r\n]*=", written)[0]
        declared = "".join(
            f" xmlns{':' + prefix if prefix else ''}='{uri}'"
            for prefix, uri in element.nsmap.items()
            if prefix is not None
        )
        (clark,) = etree.fromstring(f"<x{declared} {written}/>").attrib.items()
        assert dict(element.attrib)[clark[0]] == clark[1], (written, name)
        return ("attribute", number, clark[0])

    def _attribute(self, node: Any) -> Key:
        return ("attribute", self.keys[self._identity(node.getparent())][1], node.attrname)

    def _identity(self, node: Any) -> Key:
        if isinstance(node, etree._Element):
            return ("node", id(self._kept(node)))
        parent = self._kept(node.getparent())
        return ("string", id(parent), node.is_text, node.is_tail, node.attrname)

    def _kept(self, node: Any) -> Any:
        """lxml makes another object each time, unless one is kept."""
        self._alive: list[Any]
        if not hasattr(self, "_alive"):
            self._alive = list(self.tree.iter())
            root = self.tree.getroot()
            self._alive += [*root.itersiblings(preceding=True), *root.itersiblings()]
        return node
