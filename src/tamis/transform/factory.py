"""The message factory: a template for each transformation, and messages made with templates.

A template is constant bytes and what to fill in, so that a message is mostly the joining of bytes
that are there. Numbers, and how values become text, are those of XQuery 3.1 (W3C Recommendation of
21 March 2017, sections 3.9.1 and 3.9.3: constructed elements and their attributes). One rule
differs: what is no number in XPath 1.0 is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tamis.core.errors import MessageError, MessageLimitError
from tamis.documents.rewrite import IN_TEXT, IN_VALUE
from tamis.language.flwr import model
from tamis.language.flwr.constructors import expanded_name
from tamis.language.flwr.model import Aggregate, Content, Enclosed, Item, ReturnPath
from tamis.language.flwr.paths import is_of_attributes
from tamis.language.values import xpath_number
from tamis.transform.fragments import Fragments
from tamis.transform.shapes import Task, task_of
from tamis.transform.strategy import GroupReader

_BYTE_ESCAPES = [(bytes([code]), escape.encode()) for code, escape in IN_VALUE.items()]

Lists = Sequence[Sequence[int]]
"""The lists of a group: node references."""


# -- templates -------------------------------------------------------------------------------------


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
class Plain:
    """A body as a format string."""

    body: bytes  # with ``%b`` for each of the copies
    whole: bytes  # the message of one group: the same with head and tail
    size: int  # of the body without copies, in bytes
    lists: tuple[int, ...]  # those that are copied
    has_default: bool  # of all copies


@dataclass(frozen=True, slots=True)
class Template:
    """A transformation, as its messages are made: ``body`` for each group, between head and tail.

    Attributes:
        plain: for a body of constants and copies alone, with groups in document order. Nearly all
            transformations are like this.
    """

    transformation: model.Transformation
    head: bytes
    body: tuple[Part, ...]
    tail: bytes
    plain: Plain | None
    order: tuple[int, ...]  # for each key the list that it reads
    lists: int  # how many a group has


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
    plain = _plain(head, writer.body, tail) if not order else None
    return Template(transformation, head, writer.body, tail, plain, order, len(task.paths))


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


# -- messages --------------------------------------------------------------------------------------


def make_message(
    template: Template, reader: GroupReader, answer: int, fragments: Fragments
) -> bytes:
    """The message of a transformation in one document, in UTF-8.

    Raises ``MessageError`` where two attributes of one element would have the same name, and
    ``MessageLimitError`` where the message would be longer than is allowed.
    """
    if template.plain is not None:
        return _make_plain(template, template.plain, reader, answer, fragments)
    groups: Iterable[Lists] = (lists for _, lists in reader.read(answer, template.lists))
    if template.order:
        groups = _in_order(template, groups, fragments)
    message = _Message(fragments)
    message.add(template.head)
    for lists in groups:
        message.add_group(template.body, lists)
    message.add(template.tail)
    return b"".join(message.pieces)


def _make_plain(
    template: Template, plain: Plain, reader: GroupReader, answer: int, fragments: Fragments
) -> bytes:
    texts = fragments.texts(reader, plain.has_default)
    bytes_left = fragments.bytes_max - len(template.head) - len(template.tail)
    single = reader.single(template.lists)[answer]
    if single is not None:
        copies = [texts[single[number]] for number in plain.lists]
        if plain.size + sum(map(len, copies)) > bytes_left:
            raise fragments.too_long()
        return plain.whole % tuple(copies)
    body = plain.body
    paths = reader.paths(answer, template.lists)
    keys = [paths[number] << 32 for number in plain.lists]
    pieces = [template.head]
    for bound in reader.bound(answer):
        copies = [texts[key | bound] for key in keys]
        bytes_left -= plain.size + sum(map(len, copies))
        if bytes_left < 0:
            raise fragments.too_long()
        pieces.append(body % tuple(copies))
    pieces.append(template.tail)
    return b"".join(pieces)


class _Message:
    """A message that is being written."""

    def __init__(self, fragments: Fragments) -> None:
        self.fragments = fragments
        self.pieces: list[bytes] = []
        self.size = 0
        self.is_behind_number = False

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self.fragments.bytes_max:
            raise self.fragments.too_long()
        self.pieces.append(piece)

    def add_group(self, body: Sequence[Part], lists: Lists) -> None:
        for part in body:
            match part:
                case bytes():
                    self.add(part)
                    self.is_behind_number = False
                case Copies():
                    for node_ref in lists[part.list]:
                        self.add(self.fragments.copies[part.has_default][node_ref])
                    self.is_behind_number &= not len(lists[part.list])
                case Number():
                    number = self.number(part, lists)
                    if number is not None:
                        self.add(b" " + number if self.is_behind_number else number)
                        self.is_behind_number = True
                case Strings(parts):
                    space = b""
                    for string in self.strings(parts, lists):
                        self.add(space + _escaped(string))
                        space = b" "
                case Attributes():
                    self.add_attributes(part, lists)

    def number(self, part: Number, lists: Lists) -> bytes | None:
        nodes = lists[part.list]
        if part.function == "count":
            return b"%d" % len(nodes)
        text = aggregate(part.function, map(self.fragments.string, nodes))
        return None if text is None else text.encode()

    def strings(self, parts: Sequence[int | Number], lists: Lists) -> Iterator[bytes]:
        for part in parts:
            if isinstance(part, Number):
                number = self.number(part, lists)
                if number is not None:
                    yield number
            else:
                yield from map(self.fragments.string, lists[part])

    def add_attributes(self, part: Attributes, lists: Lists) -> None:
        """Add copies of attributes, with the declarations of their prefixes."""
        seen = set(part.names)
        declared = dict(part.prefixes)
        for node_ref in (node_ref for index in part.lists for node_ref in lists[index]):
            namespace, local, prefix = self.fragments.attribute(node_ref)
            if (namespace, local) in seen:
                again = "one, too" if (namespace, local) in part.names else "several"
                raise MessageError(
                    f"an element of the message would have two attributes {local!r}: "
                    f"what is copied into it has {again}"
                )
            seen.add((namespace, local))
            name = local
            if prefix == "xml":
                name = f"xml:{local}"
            elif namespace:
                prefix = _free_prefix(prefix or "ns", namespace, declared)
                name = f"{prefix}:{local}"
                if declared.get(prefix) != namespace:
                    declared[prefix] = namespace
                    self.add(b' xmlns:%s="%s"' % (prefix.encode(), _escaped(namespace.encode())))
            self.add(b' %s="%s"' % (name.encode(), _escaped(self.fragments.string(node_ref))))


def _free_prefix(prefix: str, namespace: str, declared: dict[str, str]) -> str:
    """A prefix like one, which is not declared for something else."""
    number, found = 0, prefix
    while declared.get(found, namespace) != namespace:
        number += 1
        found = f"{prefix}_{number}"
    return found


def _escaped(value: bytes) -> bytes:
    for character, escape in _BYTE_ESCAPES:
        value = value.replace(character, escape)
    return value


def _in_order(template: Template, groups: Iterable[Lists], fragments: Fragments) -> list[Lists]:
    """Groups as ``order by`` has them; of equal ones, those that come first in the document."""
    found = list(groups)
    bytes_left = fragments.bytes_max
    keys = zip(template.order, template.transformation.flwr.order, strict=True)
    for index, key in reversed(list(keys)):
        values = []
        for lists in found:
            values.append(_sort_key(key, lists[index], fragments))
            bytes_left -= 0 if key.is_number else sum(map(len, values[-1][1:]))
            if bytes_left < 0:
                raise MessageLimitError(
                    "the values that order the message are longer than the limit "
                    f"message_bytes = {fragments.bytes_max:,}"
                )
        order = sorted(range(len(found)), key=values.__getitem__, reverse=key.is_descending)
        found = [found[number] for number in order]
    return found


def _sort_key(key: model.OrderKey, nodes: Sequence[int], fragments: Fragments) -> tuple[Any, ...]:
    """What a group is compared by: the first node's value, or that there is none.

    Strings are compared by code points, which is how their UTF-8 compares. As a number, nothing is
    NaN, which is below all numbers, or above them with ``empty greatest``.
    """
    value: bytes | float | None = fragments.string(int(nodes[0])) if len(nodes) else None
    if key.is_number and isinstance(value, bytes):
        number = xpath_number(value)
        value = None if math.isnan(number) else number
    if value is None:
        return (2,) if key.is_greatest else (0,)
    return 1, value


# -- numbers ---------------------------------------------------------------------------------------


def aggregate(function: str, values: Iterable[bytes]) -> str | None:
    """``sum``, ``min``, ``max`` or ``avg`` of the numbers that strings are.

    None where it is nothing: of no values there is neither a least nor a mean one.

    >>> aggregate("sum", [b"65.95", b" 2 "]), aggregate("sum", []), aggregate("max", [])
    ('67.95', '0', None)
    >>> aggregate("avg", [b"x"])
    'NaN'
    """
    numbers = [xpath_number(value) for value in values]
    total = 0.0
    for number in numbers:  # one after the other, as XQuery does: Python's sum() rounds once
        total += number
    if function == "sum":
        return number_text(total)
    if not numbers:
        return None
    if function == "avg":
        return number_text(total / len(numbers))
    if any(map(math.isnan, numbers)):
        return "NaN"
    return number_text(min(numbers) if function == "min" else max(numbers))


def number_text(number: float) -> str:
    """A number as XQuery 3.1 writes an ``xs:double`` (*Functions and Operators*, section 19.1.2.2).

    >>> [number_text(x) for x in (3.0, -0.5, 1e6, 1.5e-7, float("inf"), 0.1 + 0.2, -0.0)]
    ['3', '-0.5', '1.0E6', '1.5E-7', 'INF', '0.30000000000000004', '-0']
    """
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "INF" if number > 0 else "-INF"
    if number == 0:
        return "-0" if math.copysign(1, number) < 0 else "0"
    if 1e-6 <= abs(number) < 1e6:
        text = format(Decimal(repr(number)), "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    assert isinstance(exponent, int)
    written = "".join(map(str, digits)).rstrip("0") or "0"
    scale = exponent + len(digits) - 1
    return f"{'-' if sign else ''}{written[0]}.{written[1:] or '0'}E{scale}"
