"""The message factory: writes the messages of a document, by a kernel that asks for what is rare.

What it asks for here: the template of a transformation that has none yet, the order of groups,
copies that are no slices of the document, numbers, and copied attributes.

Numbers, and how values become text, are those of XQuery 3.1 (W3C Recommendation of 21 March 2017,
sections 3.9.1 and 3.9.3: constructed elements and their attributes). One rule differs: what is no
number in XPath 1.0 is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain
from operator import is_not
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.errors import MessageError, MessageLimitError
from tamis.core.kernel.library import address_of
from tamis.core.kernel.state import State, bound, zeros
from tamis.documents.parser import Recorded
from tamis.documents.rewrite import IN_VALUE
from tamis.language.flwr import model
from tamis.language.values import xpath_number
from tamis.transform.constants import PairTable, Rows
from tamis.transform.fragments import Fragments
from tamis.transform.kernels import messages as at
from tamis.transform.layout import Groups
from tamis.transform.strategy import FoundOne, GroupReader
from tamis.transform.templates import Attributes, Templates

_BYTE_ESCAPES = [(bytes([code]), escape.encode()) for code, escape in IN_VALUE.items()]
_OUTPUT, _TOGETHER = 1 << 16, 1 << 10
"""So many bytes, or messages, are written together, at most."""
_BYTES_MAX = 1 << 62
_NOTHING = np.zeros(0, np.int64)
_OF_DOCUMENT: Any = ((at.DOCUMENT, at.Document), (at.ANSWERED, Groups), (at.INPUT, at.Input))
_POOL_MAX = 1 << 24
"""The bytes of replies, at most: copies of elements in each other may be much longer than these."""


class Made(NamedTuple):
    """Messages that were written together, from that of an answer on.

    Attributes:
        ends: where each ends in the content.
        errors: of those that cannot be made, by answer.
    """

    first: int
    content: bytes
    ends: list[int]
    errors: dict[int, MessageError]

    def message(self, answer: int) -> bytes:
        """The message of an answer, in UTF-8; or its ``MessageError``."""
        number = answer - self.first
        if self.errors and answer in self.errors:
            raise self.errors[answer]
        return self.content[self.ends[number - 1] if number else 0 : self.ends[number]]


class Writer:
    """The state of the kernel, for one thread at a time; and replies to what it asks for."""

    def __init__(self, templates: Templates, bytes_max: int) -> None:
        self._templates = templates
        work = zeros(at.Work, _TOGETHER, output=_OUTPUT)
        self._state = State(at.STATE_SIZE, at.WORK, work)
        self._state.words[at.BYTES_MAX] = min(bytes_max, _BYTES_MAX)
        self._state.register(at.TEMPLATES, templates.arrays())
        self._write_one = bound(at.write_one, self._state.words)
        self._write = bound(at.write, self._state.words)
        self._one: tuple[object, ...] = (None, None)
        self._order, self._ordered = np.zeros(0, np.int64), -1  # of which answer
        self._registered: tuple[object, ...] = (None,) * 4
        self._begin_pool()

    def write_one(self, recorded: Recorded, data: bytes, found: FoundOne) -> Made | None:
        """The messages of a small document without namespaces; None: not by the kernel alone.

        Args:
            data: the document, of which elements are slices.
        """
        state, words = self._state, self._state.words
        read = np.frombuffer(data, np.uint8)
        if self._one[0] is recorded and self._one[1] is found.lent:
            words[at.INPUT.data] = address_of(read)
        else:
            self._one = recorded, found.lent
            lent, places = found.lent
            places_read = recorded.places_in(at.DOCUMENT)
            state.register(at.INPUT, at.Input(read, recorded.state, places_read, lent, places))
            words[at.HAS_SLICES] = 1
        words[at.INPUT.data + 1] = len(data)
        while status := self._write_one():
            if status == at.ASKS_TEMPLATE:
                self._add_template(found.transformations)
            elif len(state.arrays.ends) < words[at.DOCUMENT.tags + 1]:
                state.reserve(int(words[at.DOCUMENT.tags + 1]), "ends")
            else:
                return None
        return self._made(len(found.transformations), {})

    def open(self, found: Groups, transformations: Int32, fragments: Fragments) -> None:
        """Have a document's messages written, from what a strategy found there."""
        state, batch = self._state, fragments.batch
        self._one = (None, None)
        state.words[at.HAS_ENDS] = state.words[at.IS_REPLIED] = 0
        self._ordered = -1
        self._begin_pool()
        data, offsets = fragments.plain_data
        fields = {name: getattr(batch, name) for name in at.Document._fields}
        state.register(at.DOCUMENT, at.Document(**{**fields, "offsets": offsets}))
        state.register(at.ANSWERED, found._replace(transformations=transformations))
        state.reserve(len(batch.tags), "ends")
        state.register(at.INPUT, at.Input(np.frombuffer(data, np.uint8), *[_NOTHING] * 4))
        state.words[at.HAS_SLICES] = not fragments.has_namespaces
        self._replies = _Replies(self._templates, GroupReader(found), transformations, fragments)

    def close(self) -> None:
        """Forget the document; another one may be opened."""
        del self._replies
        for fields, kind in _OF_DOCUMENT:
            self._state.register(fields, kind(*[_NOTHING] * len(fields)))
        self._state.words[at.HAS_ENDS] = 0
        if len(self._state.arrays.ends) > _OUTPUT:
            self._state.replace(ends=np.empty(_TOGETHER, np.int64))
        self._begin_pool()
        if len(self._state.arrays.output) > _OUTPUT:
            self._state.replace(output=np.empty(_OUTPUT, np.uint8))

    def write(self, answer: int, count: int) -> Made:
        """At most so many messages, from that of an answer on."""
        words = self._state.words
        words[at.ANSWERS] = answer + count
        words[at.ANSWER] = words[at.FIRST] = answer
        words[at.USED] = words[at.BEGUN] = 0
        words[at.IS_ORDERED] = self._ordered == answer
        words[at.GROUP] = -1
        errors: dict[int, MessageError] = {}
        while status := self._write():
            if status == at.ASKS_TEMPLATE:
                self._add_template(self._replies.transformations)
            elif status != at.FULL:
                try:
                    self._reply(status)
                except MessageError as error:
                    errors[int(words[at.ANSWER])] = error
                    self._pass_over()
            elif words[at.ANSWER] > answer:
                break
            else:
                size = max(2 * len(self._state.arrays.output), int(words[at.NEEDED]))
                self._state.replace(output=np.empty(size, np.uint8))
                self._begin_again()
        return self._made(int(words[at.ANSWER]) - answer, errors)

    def _made(self, count: int, errors: dict[int, MessageError]) -> Made:
        work, first = self._state.arrays, int(self._state.words[at.FIRST])
        ends = work.message_ends[:count].tolist()
        return Made(first, work.output[: ends[-1] if ends else 0].tobytes(), ends, errors)

    def _begin_again(self) -> None:
        words = self._state.words
        words[at.USED] = words[at.BEGUN]
        words[at.GROUP] = -1

    def _pass_over(self) -> None:
        """Leave out the present message."""
        words, ends = self._state.words, self._state.arrays.message_ends
        self._begin_again()
        ends[words[at.ANSWER] - words[at.FIRST]] = words[at.BEGUN]
        words[at.ANSWER] += 1
        words[at.IS_ORDERED] = words[at.IS_REPLIED] = 0

    # -- what the kernel asks for ------------------------------------------------------------------

    def _add_template(self, transformations: Int32) -> None:
        number = int(transformations[self._state.words[at.ANSWER]])
        self._state.register(at.TEMPLATES, self._templates.add(number))

    def _reply(self, status: int) -> None:
        """Reply to what the kernel asks for; or raise the error of the message."""
        words, replies = self._state.words, self._replies
        answer = int(words[at.ANSWER])
        if status == at.TOO_LONG:
            raise replies.fragments.too_long()
        if status == at.ASKS_ORDER:
            self._order, self._ordered = replies.order(answer), answer
            words[at.IS_ORDERED] = 1
        elif status == at.ASKS_ATTRIBUTES:
            part = self._templates.attributes[words[at.ASKED_PART]]
            if len(part.lists) == 1:
                number = int(words[at.ASKED]) - 1 >> at.KEY_BITS & 0xFFFFFFFF
                self._keep(replies.attributes([number], part))
            else:
                group = int(words[at.GROUP])
                if words[at.IS_ORDERED]:
                    group = int(self._order[group])
                numbers = [replies.reader.number(answer, index, group) for index in part.lists]
                reply = replies.attributes(numbers, part)
                words[at.REPLY_START], words[at.REPLY_END] = self._pooled(reply)
                words[at.IS_REPLIED] = 1
        else:
            asked = int(words[at.ASKED]) - 1
            tag, number = asked & (1 << at.KEY_BITS) - 1, asked >> at.KEY_BITS
            if status == at.ASKS_COPY:
                self._keep(replies.fragments.copy(number, tag == at.DEFAULT_KEY))
            else:
                self._keep(replies.number(number - 1, at.FUNCTIONS[tag - 1]))
        self._register_pool()

    def _keep(self, reply: bytes | None) -> None:
        """Keep the reply to what was asked."""
        place = (-1, -1) if reply is None else self._pooled(reply)
        self._table.setdefault(int(self._state.words[at.ASKED]), self._places.add(place))

    def _register_pool(self) -> None:
        """Have kernels know the pool, with its room, where it lies elsewhere now."""
        arrays = at.Pool(self._table.array, self._places.array, self._pool.array, self._order)
        if any(map(is_not, arrays, self._registered)):
            self._registered = tuple(arrays)
            self._state.register(at.POOL, arrays)

    def _begin_pool(self) -> None:
        self._table, self._places, self._pool = PairTable(), Rows(2, np.int64), Rows(1, np.uint8)
        self._register_pool()

    def _pooled(self, reply: bytes) -> tuple[int, int]:
        """Where a reply is in the pool."""
        if self._pool.count + len(reply) > _POOL_MAX:
            self._begin_pool()
        start = self._pool.extend(np.frombuffer(reply, np.uint8))
        return start, start + len(reply)


class FoundMessages:
    """The messages for what one strategy found in a document: written when they are asked for.

    Where they are asked for one after the other, more and more are written together. Threads share
    it.

    Args:
        found: what the strategy found.
        transformations: of each answer, by the numbers of the templates.
    """

    def __init__(
        self, templates: Templates, found: Groups, transformations: Int32, fragments: Fragments
    ) -> None:
        self._given = found, transformations, fragments
        self._templates = templates
        self._lock = Lock()
        self._writer: Writer | None = None
        self._made = Made(0, b"", [], {})

    def message(self, answer: int) -> bytes:
        """The message of an answer, in UTF-8; or its ``MessageError``."""
        with self._lock:
            made = self._made
            end = made.first + len(made.ends)
            if not made.first <= answer < end:
                count = 2 * len(made.ends) if answer == end else 0
                made = self._made = self._written(answer, min(max(count, 1), _TOGETHER))
        return made.message(answer)

    def _written(self, answer: int, count: int) -> Made:
        _, transformations, fragments = self._given
        writer = self._writer
        if writer is None:
            writer = taken_writer(self._templates, fragments.bytes_max)
            writer.open(*self._given)
            self._writer = writer
        made = writer.write(answer, min(count, len(transformations) - answer))
        if made.first + len(made.ends) == len(transformations):  # the last ones, as a rule
            self._writer = None
            writer.close()
            self._templates.writers.append(writer)
        return made


def taken_writer(templates: Templates, bytes_max: int) -> Writer:
    """A writer for one thread, which gives it back to ``templates.writers``."""
    try:
        writer: Writer = templates.writers.pop()
    except IndexError:
        writer = Writer(templates, bytes_max)
    return writer


class _Replies(NamedTuple):
    """What the kernel does not know of a document's answers.

    Attributes:
        reader: of the groups.
        transformations: by answer.
    """

    templates: Templates
    reader: GroupReader
    transformations: Int32
    fragments: Fragments

    def number(self, number: int, function: str) -> bytes | None:
        """An aggregate of a list, or of nothing for -1."""
        nodes = self.reader.nodes(number) if number >= 0 else []
        text = aggregate(function, map(self.fragments.string, nodes))
        return None if text is None else text.encode()

    def attributes(self, lists: Iterable[int | None], part: Attributes) -> bytes:
        """Copies of attributes in a tag, with the declarations of their prefixes."""
        written = []
        seen = set(part.names)
        declared = dict(part.prefixes)
        nodes = (self.reader.nodes(number) for number in lists if number is not None)
        for node_ref in chain.from_iterable(nodes):
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
                    uri = _escaped(namespace.encode())
                    written.append(b' xmlns:%s="%s"' % (prefix.encode(), uri))
            value = _escaped(self.fragments.string(node_ref))
            written.append(b' %s="%s"' % (name.encode(), value))
        return b"".join(written)

    def order(self, answer: int) -> Int64:
        """The groups of an answer as ``order by`` has them; equal ones stay in their order."""
        template = self.templates.template(int(self.transformations[answer]))
        order = list(range(len(self.reader.bound(answer))))
        bytes_left = self.fragments.bytes_max
        keys = zip(template.order, template.transformation.flwr.order, strict=True)
        for index, key in reversed(list(keys)):
            values = []
            for nodes in self.reader.column(answer, index):
                values.append(_sort_key(key, nodes, self.fragments))
                bytes_left -= 0 if key.is_number else sum(map(len, values[-1][1:]))
                if bytes_left < 0:
                    raise MessageLimitError(
                        "the values that order the message are longer than the limit "
                        f"message_bytes = {self.fragments.bytes_max:,}"
                    )
            order.sort(key=values.__getitem__, reverse=key.is_descending)
        return np.array(order, np.int64)


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
