"""Documents as light trees that expressions are drawn from.

>>> (tree,) = read_trees(["<a><b n='1'>x</b><!-- --><b>y<c/></b></a>"])
>>> [(e.name[1], e.position, e.string(9), e.attributes) for e in tree.elements]
[('a', 1, 'xy', []), ('b', 1, 'x', [(('', 'n'), '1')]), ('b', 2, 'y', []), ('c', 1, '', [])]
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from tamis.core.errors import DocumentError, UsageError
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.documents.batch import DocumentBatch
from tamis.documents.parser import parse
from tamis.documents.source import Document, Source, read
from tamis.documents.vocabulary import ALL_NAMES, Projection, Vocabulary

Name = tuple[str, str]
"""An expanded name: namespace URI or "", and local name."""

_DEMAND = Projection(ALL_NAMES, ALL_NAMES, misc=True, prefixes=True)


class Element:
    """One element, with what has to be known at once to draw at it: nothing here is searched for.

    Attributes:
        tree: the document.
        parent: None for the root element.
        name: the expanded name; ``prefix`` is how the document wrote it, "" where it wrote none.
        attributes: expanded names and values, in the order of the document.
        children: the child elements.
        nodes: the number of child nodes of all kinds, comments and PIs included.
        texts: where each text node directly inside starts and stops in ``tree.text``.
        alike: the parent's children of the same name, of which this is one.
        position: the place among them, from 1; ``number`` is that among all child elements.
        index: the place in ``tree.elements``; the descendants are those up to ``end``.
        start, stop: the string value is ``tree.text[start:stop]``.
    """

    __slots__ = (
        "alike",
        "attributes",
        "children",
        "end",
        "index",
        "name",
        "nodes",
        "number",
        "parent",
        "position",
        "prefix",
        "start",
        "stop",
        "texts",
        "tree",
    )

    def __init__(
        self, tree: Tree, parent: Element | None, name: Name, prefix: str, alike: list[Element]
    ) -> None:
        alike.append(self)
        self.tree = tree
        self.parent = parent
        self.name = name
        self.prefix = prefix
        self.attributes: list[tuple[Name, str]] = []
        self.children: list[Element] = []
        self.nodes = 0
        self.texts: list[tuple[int, int]] = []
        self.alike = alike
        self.position = len(alike)
        self.number = 1
        self.index = self.end = len(tree.elements)
        self.start = self.stop = 0

    def string(self, most: int) -> str:
        """The beginning of the string value, ``most`` characters of it."""
        return self.tree.text[self.start : min(self.stop, self.start + most)]

    def has_descendant(self, name: Name) -> bool:
        """Whether an element of this name is below."""
        places = self.tree.places.get(name, [])
        after = bisect_right(places, self.index)
        return after < len(places) and places[after] < self.end

    @property
    def path(self) -> list[Element]:
        """The elements from the root to this one."""
        found = []
        element: Element | None = self
        while element is not None:
            found.append(element)
            element = element.parent
        return found[::-1]

    @property
    def qualified_name(self) -> str:
        """What ``name()`` says."""
        return f"{self.prefix}:{self.name[1]}" if self.prefix else self.name[1]


class Tree:
    """One document.

    Attributes:
        source: what it was read from.
        text: the string value of the document; all others are parts of it.
        elements: in document order.
        places: the places in ``elements`` of each name.
    """

    __slots__ = ("elements", "places", "source", "text")

    def __init__(self, source: Source, text: str) -> None:
        self.source = source
        self.text = text
        self.elements: list[Element] = []
        self.places: dict[Name, list[int]] = {}


def read_trees(documents: Iterable[Document], limits: Limits = DEFAULT_LIMITS) -> list[Tree]:
    """Read documents, all of which must be good.

    Raises:
        DocumentError: the error of the first that is not, with its name.
        UsageError: ``documents`` is itself a document.

    >>> read_trees(["<a/>", "<a>"])
    Traceback (most recent call last):
    tamis.core.errors.MalformedDocument: line 1, column 4: document 2: the document ends \
inside <a>: ...
    """
    if isinstance(documents, str | bytes | bytearray | memoryview | os.PathLike):
        raise UsageError("many documents are needed: put a single one into a list")
    vocabulary = Vocabulary()
    return [
        _read_tree(document, number, vocabulary, limits)
        for number, document in enumerate(documents, start=1)
    ]


def _read_tree(document: Document, number: int, vocabulary: Vocabulary, limits: Limits) -> Tree:
    name = str(document) if isinstance(document, os.PathLike) else f"document {number}"
    try:
        source = read(document, limits)
        batch, errors = parse([source], vocabulary, _DEMAND, limits)
        if errors:
            raise errors[0]
    except DocumentError as error:
        if name in error.message:
            raise
        named = f"{name}: {error.message}"
        raise type(error)(named, error.line, error.column) from None
    return _Building(source, batch, vocabulary).tree


class _Building:
    """One walk over the events of a document."""

    def __init__(self, source: Source, batch: DocumentBatch, vocabulary: Vocabulary) -> None:
        values = batch.text_values.tobytes()
        ends = batch.text_end.tolist()
        starts = batch.text_start.tolist()
        pieces = [values[start:end].decode() for start, end in zip(starts, ends, strict=True)]
        self.tree = Tree(source, "".join(pieces))
        self.vocabulary = vocabulary
        self.lengths = iter([len(piece) for piece in pieces])
        self.read = 0  # characters of text
        # Events that texts, comments and attributes belong to; -2 is never reached.
        self.text_event = [*batch.text_event.tolist(), -2]
        self.next_text = 0
        self.misc_event = [event for event in batch.misc_event.tolist() if event >= 0] + [-2]
        self.next_misc = 0
        self.attribute_event = [*batch.attribute_event.tolist(), -2]
        self.attributes = self.all_attributes(batch)
        self.next_attribute = 0
        self.walk(batch)

    def all_attributes(self, batch: DocumentBatch) -> Iterator[tuple[Name, str]]:
        values = batch.attribute_values.tobytes()
        starts, ends = batch.value_start.tolist(), batch.value_end.tolist()
        for name, start, end in zip(batch.attribute_name.tolist(), starts, ends, strict=True):
            yield self.vocabulary.expanded(name), values[start:end].decode()

    def walk(self, batch: DocumentBatch) -> None:
        tree = self.tree
        expanded = self.vocabulary.expanded
        open_elements: list[Element] = []
        open_names: list[dict[Name, list[Element]]] = [{}]  # the children so far, by name
        for event, (tag, prefix) in enumerate(
            zip(batch.tags.tolist(), batch.prefixes.tolist(), strict=True)
        ):
            if tag >= 0:
                name = expanded(tag)
                parent = open_elements[-1] if open_elements else None
                alike = open_names[-1].setdefault(name, [])
                written = self.vocabulary.prefix(prefix) if prefix >= 0 else ""
                element = Element(tree, parent, name, written, alike)
                if parent is not None:
                    parent.children.append(element)
                    parent.nodes += 1
                    element.number = len(parent.children)
                tree.places.setdefault(name, []).append(len(tree.elements))
                tree.elements.append(element)
                element.start = self.read
                self.give_attributes(element, event)
                open_elements.append(element)
                open_names.append({})
            else:
                element = open_elements.pop()
                open_names.pop()
                element.end = len(tree.elements)
                element.stop = self.read
            if open_elements:
                self.give_leaves(open_elements[-1], event)

    def give_attributes(self, element: Element, event: int) -> None:
        while self.attribute_event[self.next_attribute] == event:
            element.attributes.append(next(self.attributes))
            self.next_attribute += 1

    def give_leaves(self, element: Element, event: int) -> None:
        """The text nodes, comments and PIs that follow an event directly, in no order."""
        while self.text_event[self.next_text] == event:
            start = self.read
            self.read += next(self.lengths)
            element.texts.append((start, self.read))
            element.nodes += 1
            self.next_text += 1
        while self.misc_event[self.next_misc] == event:
            element.nodes += 1
            self.next_misc += 1
