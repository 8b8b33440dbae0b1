"""The message factory: groups and templates → messages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tamis.core.errors import MessageError, MessageLimitError
from tamis.language.flwr.model import OrderKey
from tamis.language.values import xpath_number
from tamis.transform.fragments import Fragments
from tamis.transform.groups import GroupReader
from tamis.transform.numbers import aggregate
from tamis.transform.templates import Attributes, Copies, Number, Part, Plain, Strings, Template

Lists = Sequence[Sequence[int]]
_IN_VALUE = {b"&": b"&amp;", b"<": b"&lt;", b'"': b"&quot;", b"\t": b"&#9;", b"\n": b"&#10;"}


def make_message(
    template: Template, reader: GroupReader, answer: int, fragments: Fragments
) -> bytes:
    """The message of a transformation, in UTF-8.

    Args:
        reader, answer: the groups, of one document.
        fragments: of the document.

    Raises:
        MessageError: two attributes of one element would have the same name.
        MessageLimitError: it would be longer.
    """
    if template.plain is not None:
        return _make_plain(template, template.plain, reader, answer, fragments)
    groups: Iterable[tuple[int, Lists]] = reader.read(answer, template.lists)
    if template.order:
        groups = _in_order(template, groups, fragments)
    message = _Message(fragments)
    message.add(template.head)
    for _, lists in groups:
        message.write(template.body, lists)
    message.add(template.tail)
    return b"".join(message.pieces)


def _make_plain(
    template: Template, plain: Plain, reader: GroupReader, answer: int, fragments: Fragments
) -> bytes:
    """A message of a plain template."""
    texts = fragments.texts(reader, plain.has_default)
    room = fragments.bytes_max - len(template.head) - len(template.tail)
    single = reader.single(template.lists)[answer]
    if single is not None:
        copies = [texts[single[number]] for number in plain.lists]
        if plain.size + sum(map(len, copies)) > room:
            raise fragments.too_long()
        return plain.whole % tuple(copies)
    body = plain.body
    paths = reader.paths(answer, template.lists)
    keys = [paths[number] << 32 for number in plain.lists]
    pieces = [template.head]
    for bound in reader.bound(answer):
        copies = [texts[key | bound] for key in keys]
        room -= plain.size + sum(map(len, copies))
        if room < 0:
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

    def copy(self, part: Copies, lists: Lists) -> None:
        for place in lists[part.list]:
            self.add(self.fragments.copies[part.has_default][place])

    def write(self, body: Sequence[Part], lists: Lists) -> None:
        """Any group."""
        for part in body:
            match part:
                case bytes():
                    self.add(part)
                    self.is_behind_number = False
                case Copies():
                    self.copy(part, lists)
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
        places = lists[part.list]
        if part.function == "count":
            return b"%d" % len(places)
        text = aggregate(part.function, map(self.fragments.string, places))
        return None if text is None else text.encode()

    def strings(self, parts: Sequence[int | Number], lists: Lists) -> Iterator[bytes]:
        for part in parts:
            if isinstance(part, Number):
                number = self.number(part, lists)
                if number is not None:
                    yield number
            else:
                for place in lists[part]:
                    yield self.fragments.string(place)

    def add_attributes(self, part: Attributes, lists: Lists) -> None:
        """Copies of attributes, with the declarations of their prefixes."""
        seen = set(part.names)
        declared = dict(part.prefixes)
        for index in part.lists:
            for place in lists[index]:
                namespace, local, prefix = self.fragments.attribute(place)
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
                        self.add(
                            b' xmlns:%s="%s"' % (prefix.encode(), _escaped(namespace.encode()))
                        )
                value = _escaped(self.fragments.string(place))
                self.add(b' %s="%s"' % (name.encode(), value))


def _free_prefix(prefix: str, namespace: str, declared: dict[str, str]) -> str:
    """A prefix like one, which is not declared for something else."""
    number, found = 0, prefix
    while declared.get(found, namespace) != namespace:
        number += 1
        found = f"{prefix}_{number}"
    return found


def _escaped(value: bytes) -> bytes:
    for character, reference in _IN_VALUE.items():
        value = value.replace(character, reference)
    return value.replace(b"\r", b"&#13;")


def _in_order(
    template: Template, groups: Iterable[tuple[int, Lists]], fragments: Fragments
) -> list[tuple[int, Lists]]:
    """Groups as ``order by`` has them; of equal ones, those that come first in the document."""
    found = list(groups)
    room = fragments.bytes_max
    keys = zip(template.order, template.transformation.flwr.order, strict=True)
    for index, key in reversed(list(keys)):
        values = []
        for _, lists in found:
            values.append(_sort_key(key, lists[index], fragments))
            room -= 0 if key.is_number else sum(map(len, values[-1][1:]))
            if room < 0:
                raise MessageLimitError(
                    "the values that order the message are longer than the limit "
                    f"message_bytes = {fragments.bytes_max:,}"
                )
        order = sorted(range(len(found)), key=values.__getitem__, reverse=key.is_descending)
        found = [found[number] for number in order]
    return found


def _sort_key(key: OrderKey, places: Sequence[int], fragments: Fragments) -> tuple[Any, ...]:
    """What a group is compared by: the first node's value, or that there is none.

    Strings are compared by code points, which is how their UTF-8 compares. As a number, nothing is
    NaN, which is below all numbers, or above them with ``empty greatest``.
    """
    value: bytes | float | None = fragments.string(int(places[0])) if len(places) else None
    if key.is_number and isinstance(value, bytes):
        number = xpath_number(value)
        value = None if math.isnan(number) else number
    if value is None:
        return (2,) if key.is_greatest else (0,)
    return 1, value
