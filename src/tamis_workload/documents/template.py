"""A template: a grammar of texts as flat arrays, which ``kernels.write`` expands at random.

ToXgene's idea (Barbosa et al., SIGMOD 2002) that a document is written from a template with
distributions, and the IBM XML Generator's that a DTD is one. A DTD becomes a template in
:mod:`tamis_workload.documents.grammar`; :mod:`tamis_workload.documents.dblp` has one made by hand.

The parts of a template are nodes, known by number:

=========  ==================================================================================
TEXT       bytes as they are
VALUE      one of a table of values, by their probabilities
ID         a number that no other ID in the document has
REFERENCE  the number of some ID in the document
SEQUENCE   parts, one after the other
CHOICE     one of its parts, each as likely; a part that is listed twice is twice as likely
LOOP       its part, ``low`` to ``high`` times, each number as likely; ``least`` at the least
OPTIONAL   its part, with a probability
ELEMENT    its part, one level deeper
=========  ==================================================================================
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.errors import UsageError
from tamis_workload.documents import kernels
from tamis_workload.documents.kernels import Template
from tamis_workload.draws import Values


class Kind(enum.IntEnum):
    """What a node is; the leaves come first."""

    TEXT = kernels.TEXT
    VALUE = kernels.VALUE
    ID = kernels.ID
    REFERENCE = kernels.REFERENCE
    SEQUENCE = kernels.SEQUENCE
    CHOICE = kernels.CHOICE
    LOOP = kernels.LOOP
    OPTIONAL = kernels.OPTIONAL
    ELEMENT = kernels.ELEMENT


class _Node(NamedTuple):
    kind: Kind
    parts: tuple[int, ...] = ()
    text: bytes = b""
    table: int = 0
    least: int = 0
    low: int = 0
    high: int = 0
    grows: bool = False


class TemplateBuilder:
    """Makes a template of nodes; each method returns the number of a new node.

    >>> builder = TemplateBuilder()
    >>> digit = builder.value(Values(9))
    >>> root = builder.element(builder.sequence(
    ...     builder.text("<a>"), builder.loop(digit, 1, 3), builder.text("</a>")))
    >>> template = builder.build(root)
    >>> bytes(template.texts)
    b'<a></a>123456789'
    """

    def __init__(self) -> None:
        self._nodes: list[_Node] = []
        self._tables: list[Values] = []

    def _add(self, node: _Node) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1

    def text(self, text: str) -> int:
        """These characters."""
        return self._add(_Node(Kind.TEXT, text=text.encode()))

    def value(self, values: Values) -> int:
        """One of these values."""
        if values not in self._tables:
            self._tables.append(values)
        return self._add(_Node(Kind.VALUE, table=self._tables.index(values)))

    def id(self) -> int:
        """A new ID."""
        return self._add(_Node(Kind.ID))

    def reference(self) -> int:
        """Some ID of the document."""
        return self._add(_Node(Kind.REFERENCE))

    def sequence(self, *parts: int) -> int:
        """These parts in order."""
        return parts[0] if len(parts) == 1 else self._add(_Node(Kind.SEQUENCE, parts))

    def choice(self, *parts: int) -> int:
        """One of these parts; there must be one."""
        return parts[0] if len(parts) == 1 else self._add(_Node(Kind.CHOICE, parts))

    def loop(
        self, part: int, low: int, high: int, *, least: int | None = None, grows: bool = False
    ) -> int:
        """A part, again and again.

        Args:
            part: a node.
            low: how often, from this…
            high: …to this, where there is room.
            least: how often in any case; without it, that is ``low``.
            grows: whether a document may be filled with it.
        """
        least = low if least is None else least
        return self._add(_Node(Kind.LOOP, (part,), b"", 0, least, low, high, grows))

    def optional(self, part: int, probability: float) -> int:
        """A part, or nothing."""
        return self._add(_Node(Kind.OPTIONAL, (part,), low=int(probability * 2**32)))

    def element(self, part: int = -1) -> int:
        """A part that is one level deeper; name it later if elements are inside each other."""
        return self._add(_Node(Kind.ELEMENT, (part,)))

    def set_element(self, element: int, part: int) -> None:
        """Name the part of an element."""
        self._nodes[element] = self._nodes[element]._replace(parts=(part,))

    def build(self, root: int) -> Template:
        """The arrays."""
        grows = self._growing()
        texts = bytearray()
        nodes: list[tuple[int, ...]] = []
        parts: list[tuple[int, int]] = []
        for node in self._nodes:
            start, end = len(parts), len(parts) + len(node.parts)
            if node.kind is Kind.TEXT:
                start, end = len(texts), len(texts) + len(node.text)
            elif node.kind is Kind.VALUE:
                start = end = node.table
            nodes.append((start, end, node.kind, node.least, node.low, node.high, node.grows))
            texts += node.text
            shares = list(accumulate((part in grows for part in reversed(node.parts)), initial=1))
            parts += zip(node.parts, reversed(shares[:-1]), strict=True)
        values, tables = _tables(self._tables, texts)
        return Template(
            nodes=_frozen(nodes, kernels.NODE_COLUMNS),
            parts=_frozen(parts, kernels.PART_COLUMNS),
            values=values,
            tables=_frozen(tables, kernels.TABLE_COLUMNS),
            texts=np.frombuffer(bytes(texts), np.uint8),
            root=root,
            nesting=self._nesting(),
        )

    def _growing(self) -> set[int]:
        """The nodes that a growing loop is in."""
        whole: list[list[int]] = [[] for _ in self._nodes]
        for number, node in enumerate(self._nodes):
            for part in node.parts:
                whole[part].append(number)
        found = {number for number, node in enumerate(self._nodes) if node.grows}
        waiting = list(found)
        while waiting:
            above = [number for number in whole[waiting.pop()] if number not in found]
            found.update(above)
            waiting += above
        return found

    def _nesting(self) -> int:
        """The longest chain of nodes from a part of an element to what is in it or to a leaf."""
        depth = [1] * len(self._nodes)
        for number, node in enumerate(self._nodes):  # parts are made before what they are part of
            if node.kind is not Kind.ELEMENT:
                depth[number] = 1 + max((depth[part] for part in node.parts), default=0)
        return max(depth)


def _tables(
    tables: Sequence[Values], texts: bytearray
) -> tuple[NDArray[np.int64], list[tuple[int, int, int]]]:
    """The rows of values and of tables; the texts of the values are added to ``texts``."""
    rows = [np.empty((0, kernels.VALUE_COLUMNS), np.int64)]
    ranges = []
    first = 0
    for values in tables:
        encoded = [text.encode() for text in values.texts()]
        ends = np.cumsum([len(text) for text in encoded]) + len(texts)
        starts = np.concatenate([[len(texts)], ends[:-1]])
        texts += b"".join(encoded)
        rows.append(np.column_stack([starts, ends, *values.alias_table()]))
        ranges.append((first, first + len(encoded), first + int(np.argmin(ends - starts))))
        first += len(encoded)
    return _frozen(np.concatenate(rows), kernels.VALUE_COLUMNS), ranges


def _frozen(rows: object, columns: int) -> NDArray[np.int64]:
    array = np.array(rows, np.int64).reshape(-1, columns)
    array.flags.writeable = False
    return array


SIZE_MAX = 1 << 40
_BUFFER_BYTES = 1 << 20
_ATTEMPTS = 20


class Bounds(NamedTuple):
    """What one document may be.

    Attributes:
        depth: levels of elements, at most.
        size: bytes, at most.
        records: how often the outermost loops go round; 0 leaves that to chance.
        fill: let the outermost loops go round until the size is reached.
    """

    depth: int
    size: int
    records: int = 0
    fill: bool = False


class Expansion:
    """Expands one template within bounds, again and again."""

    def __init__(self, template: Template, bounds: Bounds) -> None:
        if bounds.size > SIZE_MAX:
            raise UsageError(f"a document has {SIZE_MAX:,} bytes at most, not {bounds.size:,}")
        self._template = template
        self._bounds = bounds
        # Each takes this many bytes and its markup, so there are never more of them than numbers.
        self._id_digits = len(str(bounds.size // 8))
        self._frame_count = (bounds.depth + 2) * (template.nesting + 1)
        leaves = np.concatenate([template.of_kind(Kind.TEXT)[:, :2], template.values[:, :2]])
        self._longest = max(self._id_digits, int((leaves[:, 1] - leaves[:, 0]).max(initial=0)))
        self._elements = len(template.of_kind(Kind.ELEMENT))
        self._references = len(template.of_kind(Kind.REFERENCE)) > 0
        self._has_ids = len(template.of_kind(Kind.ID)) > 0
        self._costs = self._fewest_bytes(without_references=False)
        self._check()

    def _fewest_bytes(self, without_references: bool) -> NDArray[np.int64]:
        # The rows stop changing after at most as many levels as there are elements.
        rows = min(self._bounds.depth, self._elements) + 1
        table = np.empty((rows, len(self._template.nodes)), np.int64)
        rows = kernels.costs(self._template, self._id_digits, without_references, table)
        return table[:rows]

    @cached_property
    def _costs_without_references(self) -> NDArray[np.int64]:
        return self._fewest_bytes(without_references=True)

    def _check(self) -> None:
        depth, size = self._bounds.depth, self._bounds.size
        fewest = int(self._costs[min(depth, len(self._costs) - 1), self._template.root])
        if fewest >= kernels.IMPOSSIBLE:
            raise UsageError(
                f"there is no document of {depth} levels: each has to go deeper, or has to have "
                "what is not declared or cannot be written"
            )
        if fewest > size:
            raise UsageError(
                f"the smallest document of {depth} levels has {fewest:,} bytes: "
                f"ask for a size of that at least, not {size:,}"
            )

    def document(self, seed: int, number: int) -> bytes:
        """One document."""
        return b"".join(self.pieces(seed, number))

    def pieces(self, seed: int, number: int) -> Iterator[bytes]:
        """One document, in pieces of some mebibyte: it never has to fit into memory."""
        if not self._references:
            yield from self._expand(_random(seed, number, 0), 0, self._costs)
            return
        for attempt in range(_ATTEMPTS if self._has_ids else 0):
            # References go to IDs before and after them: how many there are is known in the end.
            random = _random(seed, number, attempt)
            ids, references = self._count(random.copy(), self._costs)
            if ids or not references:
                yield from self._expand(random, ids, self._costs)
                return
        costs = self._costs_without_references
        if costs[min(self._bounds.depth, len(costs) - 1), self._template.root] > self._bounds.size:
            raise UsageError(
                "an IDREF is required, and no document was found that has an ID for it: ask for "
                f"more levels than {self._bounds.depth}, or more bytes than {self._bounds.size:,}"
            )
        yield from self._expand(_random(seed, number, _ATTEMPTS), 0, costs)

    def _count(self, random: NDArray[np.uint64], costs: NDArray[np.int64]) -> tuple[int, int]:
        """How many IDs and references a document has."""
        state = np.zeros(kernels.STATES, np.int64)
        for _ in self._filled(random, 0, costs, state):
            pass
        return int(state[kernels.IDS]), int(state[kernels.REFERENCES])

    def _expand(
        self, random: NDArray[np.uint64], ids: int, costs: NDArray[np.int64]
    ) -> Iterator[bytes]:
        state = np.zeros(kernels.STATES, np.int64)
        for piece in self._filled(random, ids, costs, state):
            yield piece.tobytes()

    def _filled(
        self,
        random: NDArray[np.uint64],
        ids: int,
        costs: NDArray[np.int64],
        state: NDArray[np.int64],
    ) -> Iterator[NDArray[np.uint8]]:
        """The part of the buffer that was written, each time that it is full, and in the end."""
        depth, size, records, fill = self._bounds
        options = kernels.Options(ids, self._id_digits, records, fill)
        frames = np.empty((self._frame_count, kernels.COLUMNS), np.int64)
        buffer = np.empty(min(size, _BUFFER_BYTES) + self._longest, np.uint8)
        slack = size - int(costs[min(depth, len(costs) - 1), self._template.root])
        written = kernels.start(
            self._template, costs, frames, depth, slack, options, random, state, buffer
        )
        yield buffer[:written]
        status = kernels.FULL
        while status == kernels.FULL:
            before = state[kernels.WRITTEN]
            status = kernels.write(
                self._template, costs, frames, options, self._longest, random, state, buffer
            )
            yield buffer[: state[kernels.WRITTEN] - before]


def _random(seed: int, number: int, attempt: int) -> NDArray[np.uint64]:
    digest = hashlib.sha256(f"{seed} {number} {attempt}".encode()).digest()
    return np.frombuffer(digest[:8], "<u8").astype(np.uint64)
