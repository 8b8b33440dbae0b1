"""Templates: constant bytes and what to fill in, so that a message is mostly a copying of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from tamis.core.arrays import Bytes, freeze
from tamis.documents.rewrite import IN_TEXT, IN_VALUE
from tamis.language.flwr import model
from tamis.language.flwr.constructors import expanded_name
from tamis.language.flwr.model import Aggregate, Content, Enclosed, Item, ReturnPath
from tamis.language.flwr.paths import is_of_attributes
from tamis.transform.constants import Rows
from tamis.transform.kernels import messages as at
from tamis.transform.shapes import Task, task_of


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of the nodes of a list."""

    list: int  # which of a group
    has_default: bool  # a constructed element around declares a default namespace


@dataclass(frozen=True, slots=True)
class Number:
    """An aggregate of a list."""

    list: int
    function: str


@dataclass(frozen=True, slots=True)
class Strings:
    """In an attribute: the strings of several lists and aggregates, with single spaces between."""

    parts: tuple[int | Number, ...]


@dataclass(frozen=True, slots=True)
class Attributes:
    """Copies of the attributes of some lists, in a tag."""

    lists: tuple[int, ...]  # which of a group
    names: frozenset[tuple[str, str]]  # namespaces and local names that the tag has without them
    prefixes: tuple[tuple[str, str], ...]  # what is declared in the constructed elements around


Part = bytes | Copies | Number | Strings | Attributes


@dataclass(frozen=True, slots=True)
class Template:
    """A transformation, as its messages are made: a body for each group, between head and tail."""

    transformation: model.Transformation
    head: bytes
    body: tuple[Part, ...]
    tail: bytes
    order: tuple[int, ...]  # for each key the list that it reads


def template_of(transformation: model.Transformation) -> Template:
    """The template of a transformation.

    >>> from tamis.language.flwr import parse_transformation
    >>> text = '<r>{ for $b in //b return <x n="{ $b/@n }">{ $b/t }!</x> }</r>'
    >>> template_of(parse_transformation(text)).body
    (b'<x n="', Strings(parts=(0,)), b'">', Copies(list=1, has_default=False), b'!</x>')
    """
    task = task_of(transformation)
    writer = _TemplateWriter(task)
    parts = _joined(writer.element(transformation.element, {}))
    middle = parts.index(_GROUPS)
    head, tail = (b"".join(part) for part in (parts[:middle], parts[middle + 1 :]))  # type: ignore[arg-type]
    order = tuple(task.paths.index(key.path) for key in transformation.flwr.order)
    return Template(transformation, head, writer.body, tail, order)


_GROUPS = Strings(())
"""Marks where the groups go, while a template is written."""


class _TemplateWriter:
    """Writes constructors; ``declared`` are the namespaces of the constructed elements around."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.body: tuple[Part, ...] = ()

    def element(self, element: model.Constructor, declared: dict[str, str]) -> Iterator[Part]:
        declared = {**declared, **dict(element.namespaces)}
        yield f"<{element.name}".encode()
        for prefix, uri in element.namespaces:
            name = f"xmlns:{prefix}" if prefix else "xmlns"
            yield f' {name}="{uri.translate(IN_VALUE)}"'.encode()
        for attribute in element.attributes:
            yield f' {attribute.name}="'.encode()
            for part in attribute.value:
                if isinstance(part, str):
                    yield part.translate(IN_VALUE).encode()
                else:
                    yield Strings(tuple(map(self.string, part.items)))
            yield b'"'
        copied, content = _copied_attributes(element.content)
        if copied:
            names = frozenset(expanded_name(each.name, declared) for each in element.attributes)
            lists = tuple(self.task.paths.index(each.path) for each in copied)
            yield Attributes(lists, names, tuple(sorted(declared.items())))
        if not content:
            yield b"/>"
            return
        yield b">"
        yield from self.content(content, declared)
        yield f"</{element.name}>".encode()

    def content(
        self, content: tuple[Content | Item, ...], declared: dict[str, str]
    ) -> Iterator[Part]:
        for item in content:
            match item:
                case str():
                    yield item.translate(IN_TEXT).encode()
                case model.Markup(text):
                    yield text.encode()
                case model.Constructor():
                    yield from self.element(item, declared)
                case ReturnPath(path):
                    yield Copies(self.task.paths.index(path), bool(declared.get("")))
                case Aggregate(function, path):
                    yield Number(self.task.paths.index(path), function)
                case Enclosed(items):
                    yield b""  # numbers of different braces have no space between
                    yield from self.content(items, declared)
                    yield b""
                case model.Flwr(result=result):
                    self.body = _joined(self.content(result, declared))
                    yield _GROUPS

    def string(self, item: Item) -> int | Number:
        assert isinstance(item, ReturnPath | Aggregate), "the reader refuses elements in attributes"
        number = self.task.paths.index(item.path)
        return Number(number, item.function) if isinstance(item, Aggregate) else number


def _copied_attributes(
    content: tuple[Content, ...],
) -> tuple[list[ReturnPath], tuple[Content, ...]]:
    """The attributes that content begins with, and the rest; the reader sees to it that it does."""
    items = [item for part in content if isinstance(part, Enclosed) for item in part.items]
    paths = [item for item in items if isinstance(item, ReturnPath)]
    copied = [item for item in paths if is_of_attributes(item.path)]
    rest: list[Content] = []
    for part in content:
        others = part
        if isinstance(part, Enclosed):
            others = Enclosed(tuple(item for item in part.items if item not in copied))
        if others != Enclosed(()):
            rest.append(others)
    return copied, tuple(rest)


def _joined(parts: Iterator[Part]) -> tuple[Part, ...]:
    """Parts, with constants that follow each other as one; empty ones stay beside a number."""
    joined: list[Part] = []
    for part in parts:
        if isinstance(part, bytes) and joined and isinstance(joined[-1], bytes):
            joined[-1] += part
        else:
            joined.append(part)
    has_numbers = any(isinstance(part, Number) for part in joined)
    return tuple(part for part in joined if part != b"" or has_numbers)


# -- as kernels read them --------------------------------------------------------------------------


def _escapes() -> Bytes:
    """See ``messages.ESCAPE``."""
    rows = np.zeros((2, 256, at.ESCAPE), np.uint8)
    for where, escapes in ((at.IN_TEXT, IN_TEXT), (at.IN_VALUE, IN_VALUE)):
        for code, escape in escapes.items():
            rows[where, code, : len(escape) + 1] = [len(escape), *escape.encode()]
    freeze(rows)
    return rows.reshape(-1)


_ESCAPES = _escapes()


class Templates:
    """The templates of numbered transformations, made when first asked for. Threads share them.

    Args:
        count: how many transformations there are.
        made: a transformation's template.

    Attributes:
        writers: of messages, which no thread uses now; they are for one limit.
        attributes: what is copied into tags, by number.
    """

    def __init__(self, count: int, made: Callable[[int], Template]) -> None:
        self._made = made
        self._lock = Lock()  # of additions: what is there stays where it is
        self._of = np.full(count, -1, np.int32)
        self._templates = Rows(at.TEMPLATE)
        self._parts = Rows(at.PART_SIZE)
        self._texts = Rows(1, np.uint8)
        self.writers: list[Any] = []
        self.attributes: list[Attributes] = []
        self._around: dict[tuple[object, object], int] = {}

    def arrays(self) -> at.Templates:
        """As they are now. Kernels ask for what was added since, by another thread too."""
        with self._lock:
            return self._arrays()

    def _arrays(self) -> at.Templates:
        rows = self._templates.view, self._parts.view, self._texts.view
        return at.Templates(self._of, *rows, _ESCAPES)

    def template(self, number: int) -> Template:
        """The template of a transformation."""
        return self._made(number)

    def add(self, number: int) -> at.Templates:
        """Have kernels know the template of a transformation: the arrays."""
        template = self._made(number)
        with self._lock:
            if self._of[number] < 0:
                rows = [row for part in template.body for row in self._rows(part)]
                first = self._parts.count
                for row in rows:
                    self._parts.add(row)
                ends = *self._text(template.head), *self._text(template.tail)
                record = first, len(rows), *ends, bool(template.order)
                self._of[number] = self._templates.add(record)
            return self._arrays()

    def _rows(self, part: Part) -> Iterator[tuple[int, ...]]:
        match part:
            case bytes():
                yield at.CONSTANT, *self._text(part)
            case Copies(list, has_default):
                yield at.COPIES, list, has_default
            case Number(list, function):
                yield at.NUMBER, list, at.FUNCTIONS.index(function)
            case Strings(parts):
                yield at.VALUE, 0, 0
                for each in parts:
                    if isinstance(each, Number):
                        yield at.VALUE_NUMBER, each.list, at.FUNCTIONS.index(each.function)
                    else:
                        yield at.STRINGS, each, 0
            case Attributes():
                self.attributes.append(part)
                around = self._around.setdefault((part.names, part.prefixes), len(self._around))
                only = part.lists[0] if len(part.lists) == 1 else -1
                yield at.ATTRIBUTES, len(self.attributes) - 1, around, only

    def _text(self, text: bytes) -> tuple[int, int]:
        start = self._texts.extend(np.frombuffer(text, np.uint8))
        return start, start + len(text)
