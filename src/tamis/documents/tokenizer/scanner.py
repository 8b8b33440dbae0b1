"""The kernels with their buffers, and the names and scopes that they have met."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import NamedTuple
from xml.parsers import expat

import numpy as np

from tamis.core.arrays import Bytes, freeze
from tamis.core.kernel.record import register
from tamis.core.lazy import lazy_pattern
from tamis.core.limits import Limits
from tamis.core.names import QNAME, XML_NAMESPACE
from tamis.documents.batch import ROWS, BatchBuilder, DocumentBatch
from tamis.documents.encodings import DECLARATION, HEAD_BYTES, VERSION
from tamis.documents.record_batch import NO_RECORD, RecordTag
from tamis.documents.tokenizer.kernels import layout as at
from tamis.documents.tokenizer.kernels.lookup import INDEX_SIZE
from tamis.documents.tokenizer.kernels.scan import scan
from tamis.documents.vocabulary import Projection, Vocabulary

PADDING = bytes(at.PADDING)

DEPTH_MAX = 1 << 16
ATTRIBUTES_MAX = 1 << 20
"""What is deeper, or has more attributes, is left to libexpat, if the limits permit it at all."""

LENT_MAX = 1 << 18
"""Buffers for so many bytes of documents are used again."""

ENCODINGS = (None, "utf-8", "iso-8859-1", "us-ascii")  # in the last two, ASCII is UTF-8 too

# By the first of the arrays that grow together: how many rows they have, what says that they are
# full, and how many bytes of a document come on each row that they get at first.
_GROUPS = {
    "tags": (at.EVENTS, at.FULL_EVENTS, 4),
    "attribute_event": (at.ATTRIBUTES, at.FULL_ATTRIBUTES, 16),
    "attribute_values": (at.VALUE_BYTES, at.FULL_VALUES, 1),
    "text_event": (at.TEXTS, at.FULL_TEXTS, 16),
    "text_values": (at.TEXT_BYTES, at.FULL_TEXT_VALUES, 1),
    "misc_event": (at.MISC, at.FULL_MISC, 64),
    "misc_values": (at.MISC_BYTES, at.FULL_MISC_VALUES, 1),
}
_FULL = {full: ROWS[group] for group, (_, full, _) in _GROUPS.items()}
_EMPTY = BatchBuilder().freeze()
# Of each array of a batch but the first ones of documents: its group, and the type of its items.
_COLUMNS = {name: (group, getattr(_EMPTY, name).dtype) for group in _GROUPS for name in ROWS[group]}
del _COLUMNS["lines"]  # which libexpat counts
_OF_DOCUMENTS = dict.fromkeys(("document_starts", "misc_starts"), at.DOCUMENTS)
_COUNTED = {name: _GROUPS[group][0] for name, (group, _) in _COLUMNS.items()} | _OF_DOCUMENTS
_COUNTS = [(name, _COUNTED.get(name, at.EVENTS) - at.EVENTS) for name in DocumentBatch._fields]
"""Of each array of a batch, which of the counts from ``EVENTS`` on says how long it is."""
PLACES = np.array(
    [
        (place, getattr(at.OUT, name), at.EVENTS + count, name in _OF_DOCUMENTS)
        for place, (name, count) in enumerate(_COUNTS)
        if name in at.Output._fields
    ],
    np.int64,
)
"""See ``Recorded`` in ``tamis.documents.parser``."""


class Scanner:
    """Runs the kernels over bytes, and answers what they ask; ``names`` takes the names.

    ``state`` and ``work`` are the kernels', ``output`` is what was recorded since :meth:`provide`.
    """

    def __init__(self, names: NameTable, projection: Projection, limits: Limits) -> None:
        self.names = names
        depth_max = min(max(limits.depth, 0), DEPTH_MAX)
        stack = np.zeros(2 * depth_max + 8, np.int64)
        self.work = at.Work(stack, np.zeros(INDEX_SIZE, np.int64))
        self.state = np.zeros(at.STATES, np.int64)
        self.state[at.IS_FINAL] = 1
        self.state[at.WITH_PREFIXES] = projection.prefixes
        self.state[at.WITH_OFFSETS] = projection.offsets
        self.state[at.WITH_MISC] = projection.misc
        self.state[at.DEPTH_MAX] = depth_max
        self.state[at.ATTRIBUTES_MAX] = min(max(limits.attributes, 0), ATTRIBUTES_MAX)
        register(self.state, at.WORK.stack, self.work)
        self._bound: at.Names | None = None  # the arrays of names that the kernels know
        self.output: at.Output
        self._room, self._is_lent = 0, False  # of ``output``; whether it may be used again
        # Around records there may be as many elements as inside.
        contexts = at.CONTEXTS_MAX * (depth_max + at.CONTEXT_STACK)
        self._contexts = np.zeros(contexts, np.int64)
        is_projected = {
            **dict.fromkeys(("attribute_event", "attribute_values"), bool(projection.attributes)),
            **dict.fromkeys(("text_event", "text_values"), bool(projection.text)),
            **dict.fromkeys(("misc_event", "misc_values"), projection.misc),
            **dict.fromkeys(("prefixes", "attribute_prefixes"), projection.prefixes),
            "offsets": projection.offsets,
        }
        # For each array of the output how many bytes come on a row, 0 if it is not projected.
        self._columns = [
            (name, dtype, _GROUPS[group][2])
            if is_projected.get(group, True) and is_projected.get(name, True)
            else (name, dtype, 0)
            for name, (group, dtype) in _COLUMNS.items()
        ]

    def provide(self, size: int, documents: int) -> None:
        """Forget what was recorded, and provide room for so many bytes, of documents or records.

        Memory that nobody writes to costs nothing.
        """
        self.state[at.EVENTS : at.DOCUMENTS + 1] = 0
        if self._is_lent and size <= self._room and documents <= len(self.output.declined):
            output = self.output
            output.declined[:documents] = output.skipped[:documents] = 0
            return
        self._room, self._is_lent = size, False
        arrays = {
            name: np.empty(size // per_row if per_row else 0, dtype)
            for name, dtype, per_row in self._columns
        }
        self.output = at.Output(
            **arrays,
            document_starts=np.zeros(documents + 1, np.int64),
            misc_starts=np.zeros(documents + 1, np.int64),
            record_starts=np.empty(documents, np.int64),
            record_ends=np.empty(documents, np.int64),
            record_contexts=np.empty(documents, np.int32),
            contexts=self._contexts,
            declined=np.zeros(documents, np.uint8),
            skipped=np.zeros(documents, np.int64),
            first_skipped=np.zeros(documents, np.int64),
        )
        register(self.state, at.OUT.tags, self.output)

    @property
    def is_ready(self) -> bool:
        """Whether what is recorded may be overwritten, and kernels know all names."""
        return self._is_lent and self._bound is self.names.arrays

    def lend(self) -> None:
        """Have what is recorded next overwrite what was; nobody may have a batch of it."""
        self._is_lent = True
        self._bind_names()

    def _bind_names(self) -> None:
        names = self.names.arrays
        if self._bound is not names:
            self._bound = names
            self.state[at.MULTIPLIER] = names.multiplier.view(np.int64)[0]
            register(self.state, at.NAMES.table, names)

    def run(self, data: Bytes) -> int:
        """Read on until the kernels stop for something that is not answered here: the status.

        ``data`` is that of the text that the kernels were told of.
        """
        while True:
            self._bind_names()
            status = int(scan(self.state))
            if status in _FULL:
                self._grow(status)
            elif status not in (at.NEW_NAME, at.NEW_SCOPE):
                return status
            elif not self._answer(status, data):
                self.state[at.IS_REFUSED] = 1

    def _answer(self, status: int, data: Bytes) -> bool:
        state = self.state
        start = int(state[at.ASKED_AT])
        length, slot = int(state[at.ASKED_LENGTH]), int(state[at.ASKED_SLOT])
        if status == at.NEW_NAME:
            name = data[start : start + length].tobytes()
            kind, scope = int(state[at.ASKED_KIND]), int(state[at.ASKED_SCOPE])
            return self.names.add_name(name, kind, scope, slot)
        declarations = self.names.arrays.declarations[:length].tobytes()
        return self.names.add_scope(declarations, int(state[at.ASKED_SCOPE]), slot)

    def _grow(self, status: int) -> None:
        larger = {}
        for name in _FULL[status]:
            values = getattr(self.output, name, _EMPTY.lines)
            if len(values):  # it is projected
                larger[name] = np.empty(max(64, 2 * len(values)), values.dtype)
                larger[name][: len(values)] = values
        self.output = self.output._replace(**larger)
        register(self.state, at.OUT.tags, self.output)

    def batch(self, *, lent: bool = False) -> DocumentBatch:
        """What was recorded, read-only; what is lent may be used until more is provided."""
        self._is_lent = lent and self._room <= LENT_MAX
        output, counts = self.output, self.state[at.EVENTS : at.DOCUMENTS + 1].tolist()
        counts[at.DOCUMENTS - at.EVENTS] += 1  # of starts
        batch = DocumentBatch._make(
            [getattr(output, name, _EMPTY.lines)[: counts[count]] for name, count in _COUNTS]
        )
        freeze(*batch)
        return batch


class Declaration(NamedTuple):
    """Where the XML declaration of a document ends, and whether it says ``standalone="yes"``."""

    end: int = 0
    is_standalone: bool = False


def declaration_of(data: bytes | memoryview, encoding: str | None) -> Declaration | None:
    """The XML declaration of a document, or None if it is not to be read here.

    ``encoding`` overrules what is declared. If it is not UTF-8, the bytes have to be ASCII.
    """
    if encoding not in ENCODINGS:
        return None
    head = bytes(data[:HEAD_BYTES])
    if head[:5] != b"<?xml" or head[5:6] not in (b" ", b"\t", b"\r", b"\n"):
        return _NOTHING
    end = head.find(b"?>") + 2
    if end > 2:
        return _declared(head[:end], encoding)
    return _declared.__wrapped__(bytes(data), encoding)


_NOTHING = Declaration()


@lru_cache(maxsize=256)
def _declared(data: bytes, encoding: str | None) -> Declaration | None:
    """What a declaration says: most streams have one, which is not read again and again."""
    found = DECLARATION.match(data)
    if found is None or found["number"] is None or found["end"] is None:
        return None
    if not VERSION.fullmatch(found["number"].strip(b"\"'").decode()):
        return None
    if encoding is None and (found["encoding"] or b"utf-8").lower() != b"utf-8":
        return None
    return Declaration(found.end(), found["standalone"] == b"yes")


NAMES_MAX = 1 << at.SLOT_BITS - 1  # counted in each scope that they are met in; half of the table
SCOPES_MAX = 1 << 10
SPELLED_MAX = 1 << 22  # bytes of long names and declarations

# Of the hash. Random once a process: whoever writes documents cannot know which names collide.
_MULTIPLIER = np.frombuffer(os.urandom(8), np.uint64) | np.uint64(1)
freeze(_MULTIPLIER)

_ASCII_NAME = lazy_pattern(rb"(?:([A-Za-z_][A-Za-z0-9._-]*):)?([A-Za-z_][A-Za-z0-9._-]*)")
_PREFIX = lazy_pattern(
    rb"""xmlns(?::([^ \t\r\n="']*))?([ \t\r\n]*=[ \t\r\n]*(?:"[^"]*"|'[^']*'))"""
)


class NameTable:
    """The hash tables of the kernels, and what they stand for; ``record`` is the tag of records.

    ``parents`` has the scope that each scope is in; ``declared`` what the start tag that made the
    scope declares: namespaces by their prefixes, ``""`` for the default, in its order.
    """

    def __init__(
        self, vocabulary: Vocabulary, projection: Projection, record: RecordTag = NO_RECORD
    ) -> None:
        self.vocabulary = vocabulary
        self.record = record
        self.projection = projection
        self.count = 0
        self.parents = [0]
        self.declared: list[dict[str, str]] = [{}]
        self.spelled = 0
        padded = np.frombuffer(record.name.encode() + bytes(8), np.uint8)
        freeze(padded)
        self.arrays = at.Names(
            table=np.zeros(at.NAME_COLUMNS << at.SLOT_BITS, np.uint64),
            offsets=np.zeros(1 << at.SLOT_BITS, np.int64),
            prefixes=np.zeros(1 << at.SLOT_BITS, np.int32),
            spelled=np.zeros(1 << 12, np.uint8),
            scopes=np.zeros(2 * SCOPES_MAX * at.SCOPE_COLUMNS, np.int64),
            stamps=np.zeros(len(vocabulary) + 64, np.int64),
            declarations=np.zeros(1 << 20, np.uint8),
            record=padded,
            multiplier=_MULTIPLIER,
        )

    @property
    def is_full(self) -> bool:
        """Whether so much was met that it is better to begin anew."""
        return (
            self.count > NAMES_MAX // 2
            or len(self.parents) > SCOPES_MAX // 2
            or self.spelled > SPELLED_MAX
        )

    def add_name(self, name: bytes, kind: int, scope: int, slot: int) -> bool:
        """Add a name, as it is written, to a slot; False if it is none, or there is no room."""
        parts = _split(name)
        if parts is None or self.count == NAMES_MAX:
            return False
        prefix, local = parts
        namespace: str | None = ""
        if kind != at.TARGET:
            namespace = self._namespace(prefix, kind, scope)
        elif prefix or local.lower() == "xml":
            return False
        if namespace is None:
            return False
        id, flags = self.vocabulary.add(namespace, local), 0
        if kind == at.ELEMENT and (namespace, local) in self.projection.text:
            flags = at.READ_TEXT
        if kind == at.ELEMENT and self.record.namespace in (None, namespace):
            flags |= at.IS_RECORD
        if kind == at.ATTRIBUTE and (namespace, local) in self.projection.attributes:
            flags = at.READ_VALUE
        prefix_id = self.vocabulary.add_prefix(prefix) if prefix else -1
        self._put(name, kind, scope, slot, id | flags << 32, prefix_id)
        return True

    def add_scope(self, declarations: bytes, parent: int, slot: int) -> bool:
        """Add the scope that declarations make in another, to a slot of the scopes."""
        if len(self.parents) == SCOPES_MAX:
            return False
        declared = _namespaces_of(declarations)
        if declared is None:
            return False
        start = self._spell(declarations)
        row = parent, start, self.spelled, len(self.parents)
        self.arrays.scopes.reshape(-1, at.SCOPE_COLUMNS)[slot] = row
        self.parents.append(parent)
        self.declared.append(declared)
        return True

    def name(self, slot: int) -> bytes:
        """The name in a slot, as it is written."""
        arrays = self.arrays
        row = arrays.table[slot * at.NAME_COLUMNS :][: at.NAME_COLUMNS]
        length = int(row[at.KEY]) & at.NAME_MAX
        if length > 16:
            start = int(arrays.offsets[slot])
            return arrays.spelled[start : start + length].tobytes()
        return row[: at.KEY].tobytes()[:length]

    def _namespace(self, prefix: str, kind: int, scope: int) -> str | None:
        """The namespace of a prefix, ``""`` for none, or None where it is not declared."""
        if not prefix and kind == at.ATTRIBUTE:
            return ""
        while scope:
            if prefix in self.declared[scope]:
                return self.declared[scope][prefix]
            scope = self.parents[scope]
        return {"": "", "xml": XML_NAMESPACE}.get(prefix)

    def _put(self, name: bytes, kind: int, scope: int, slot: int, answer: int, prefix: int) -> None:
        arrays = self.arrays
        head, neck = np.frombuffer(name[:16].ljust(16, b"\0"), "<u8")
        key = len(name) | kind << 24 | scope << 32
        arrays.table.reshape(-1, at.NAME_COLUMNS)[slot] = head, neck, key, answer
        arrays.prefixes[slot] = prefix
        if len(name) > 16:
            arrays.offsets[slot] = self._spell(name)
        if len(self.vocabulary) > len(arrays.stamps):
            self.arrays = arrays._replace(stamps=_grown(arrays.stamps, len(self.vocabulary)))
        self.count += 1

    def _spell(self, text: bytes) -> int:
        """Keep bytes, with 8 more behind them, and return where."""
        start, self.spelled = self.spelled, self.spelled + len(text)
        spelled = self.arrays.spelled
        if self.spelled + 8 > len(spelled):
            spelled = _grown(spelled, self.spelled + 8)
            self.arrays = self.arrays._replace(spelled=spelled)
        spelled[start : self.spelled] = np.frombuffer(text, np.uint8)
        return start


def _grown(values: np.ndarray, size: int) -> np.ndarray:
    grown = np.zeros(2 * size, values.dtype)
    grown[: len(values)] = values
    return grown


def _split(name: bytes) -> tuple[str, str] | None:
    """The prefix (``""`` for none) and local part of a name, or None if it is none."""
    if match := _ASCII_NAME.fullmatch(name):
        return (match[1] or b"").decode(), match[2].decode()
    try:
        found = None if name.isascii() else QNAME.fullmatch(name.decode())
    except UnicodeDecodeError:
        return None
    return (found[1] or "", found[2]) if found else None


def _namespaces_of(declarations: bytes) -> dict[str, str] | None:
    """The prefixes and namespaces of ``xmlns`` attributes; None where they are wrong.

    Libexpat reads all but prefixes beyond ASCII, since it knows older editions of XML.
    """
    found: dict[str, str] = {}
    prefix = ""

    def declare(ascii: str | None, uri: str | None) -> None:
        found[prefix or ascii or ""] = uri or ""

    def declare_alone(match: re.Match[bytes]) -> bytes:
        nonlocal prefix
        if (match[1] or b"").isascii():
            return match[0]
        parts = _split(match[1])
        if parts is None or parts[0] or parts[1] in found:
            raise ValueError
        prefix = parts[1]
        read(b"xmlns:p" + match[2])
        prefix = ""
        return b""

    def read(attributes: bytes) -> None:
        parser = expat.ParserCreate("utf-8", "\f")
        parser.StartNamespaceDeclHandler = declare
        parser.Parse(b"<x %b/>" % attributes, True)

    try:
        read(_PREFIX.sub(declare_alone, declarations))
    except (expat.ExpatError, ValueError):
        return None
    return found
