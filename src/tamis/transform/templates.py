"""``Template``: what a transformation makes of its groups, as constant bytes and places to fill.

Made once for each transformation, so that a message is mostly the joining of bytes that are there.
Numbers, and how values become text, are those of XQuery 3.1 (W3C Recommendation of 21 March 2017,
sections 3.9.1 and 3.9.3: constructed elements and their attributes), but that what is no number in
XPath 1.0 is NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tamis.language.flwr.constructors import expanded_name
from tamis.language.flwr.model import (
    Aggregate,
    Constructor,
    Content,
    Enclosed,
    Flwr,
    Item,
    Markup,
    ReturnPath,
    Transformation,
)
from tamis.language.flwr.reader import is_of_attributes
from tamis.transform.plan import Task, task_of

_IN_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_IN_VALUE = str.maketrans(
    {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of the nodes of a list.

    Attributes:
        list: which of a group.
        has_default: a constructed element around declares a default namespace.
    """

    list: int
    has_default: bool


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
    """Copies of the attributes of some lists, in a tag.

    Attributes:
        lists: which of a group.
        names: those that the tag has without them: namespace and local name.
        prefixes: what is declared in the constructed elements around.
    """

    lists: tuple[int, ...]
    names: frozenset[tuple[str, str]]
    prefixes: tuple[tuple[str, str], ...]


Part = bytes | Copies | Number | Strings | Attributes


@dataclass(frozen=True, slots=True)
class Plain:
    """A body as a format.

    Attributes:
        body: with ``%b`` for each of the copies.
        whole: the message of one group: the same with head and tail.
        size: of the body without copies, in bytes.
        lists: those that are copied.
        has_default: of all copies.
    """

    body: bytes
    whole: bytes
    size: int
    lists: tuple[int, ...]
    has_default: bool


@dataclass(frozen=True, slots=True)
class Template:
    """A transformation, as its messages are made.

    Attributes:
        head, tail: what stands before the groups, and behind.
        body: what is made of each group.
        plain: where the body is constants and copies alone and the groups are in document order,
            as of nearly all: see ``Plain``.
        order: for each key the list that it reads.
        lists: how many a group has.
    """

    transformation: Transformation
    head: bytes
    body: tuple[Part, ...]
    tail: bytes
    plain: Plain | None
    order: tuple[int, ...]
    lists: int


def template_of(transformation: Transformation) -> Template:
    """The template of a transformation.

    >>> from tamis.language.flwr import parse_transformation
    >>> text = '<r>{ for $b in //b return <x n="{ $b/@n }">{ $b/t }!</x> }</r>'
    >>> template_of(parse_transformation(text)).body
    (b'<x n="', Strings(parts=(0,)), b'">', Copies(list=1, has_default=False), b'!</x>')
    """
    task = task_of(transformation)
    writer = _Writer(task)
    parts = _joined(writer.element(transformation.element, {}))
    middle = parts.index(_GROUPS)
    head, tail = (b"".join(part) for part in (parts[:middle], parts[middle + 1 :]))  # type: ignore[arg-type]
    body = writer.body
    order = tuple(task.paths.index(key.path) for key in transformation.flwr.order)
    plain = _plain(head, body, tail) if not order else None
    return Template(transformation, head, body, tail, plain, order, len(task.paths))


def _plain(head: bytes, body: tuple[Part, ...], tail: bytes) -> Plain | None:
    copies = [part for part in body if isinstance(part, Copies)]
    constants = [part for part in body if isinstance(part, bytes)]
    kinds = {part.has_default for part in copies}
    if len(copies) + len(constants) < len(body) or len(kinds) > 1:
        return None
    head, *written, tail = (
        part.replace(b"%", b"%%") if isinstance(part, bytes) else b"%b"
        for part in (head, *body, tail)
    )
    format = b"".join(written)
    lists = tuple(part.list for part in copies)
    size = sum(map(len, constants))
    return Plain(format, head + format + tail, size, lists, True in kinds)


_GROUPS = Strings(())
"""Stands where the groups do, while a template is made."""


class _Writer:
    """Writes constructors; ``declared`` are the namespaces of the constructed elements around."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.body: tuple[Part, ...] = ()

    def element(self, element: Constructor, declared: dict[str, str]) -> Iterator[Part]:
        declared = {**declared, **dict(element.namespaces)}
        yield f"<{element.name}".encode()
        for prefix, uri in element.namespaces:
            name = f"xmlns:{prefix}" if prefix else "xmlns"
            yield f' {name}="{uri.translate(_IN_VALUE)}"'.encode()
        for attribute in element.attributes:
            yield f' {attribute.name}="'.encode()
            for part in attribute.value:
                if isinstance(part, str):
                    yield part.translate(_IN_VALUE).encode()
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
                    yield item.translate(_IN_TEXT).encode()
                case Markup(text):
                    yield text.encode()
                case Constructor():
                    yield from self.element(item, declared)
                case ReturnPath(path):
                    yield Copies(self.task.paths.index(path), bool(declared.get("")))
                case Aggregate(function, path):
                    yield Number(self.task.paths.index(path), function)
                case Enclosed(items):
                    yield b""  # numbers of different braces have no space between
                    yield from self.content(items, declared)
                    yield b""
                case Flwr(result=result):
                    self.body = _joined(self.content(result, declared))
                    yield _GROUPS

    def string(self, item: Item) -> int | Number:
        match item:
            case ReturnPath(path):
                return self.task.paths.index(path)
            case Aggregate(function, path):
                return Number(self.task.paths.index(path), function)
        raise AssertionError("the reader refuses elements in attributes")


def _copied_attributes(
    content: tuple[Content, ...],
) -> tuple[list[ReturnPath], tuple[Content, ...]]:
    """The attributes that content begins with, and the rest; the reader sees to it that it does."""
    copied: list[ReturnPath] = []
    rest: list[Content] = []
    for part in content:
        if not isinstance(part, Enclosed):
            rest.append(part)
            continue
        others: list[Item] = []
        for item in part.items:
            if isinstance(item, ReturnPath) and is_of_attributes(item.path):
                copied.append(item)
            else:
                others.append(item)
        if others:
            rest.append(Enclosed(tuple(others)))
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
