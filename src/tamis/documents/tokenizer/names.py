"""What the tokenizer has met: names in their scopes, and the scopes that declarations make."""

from __future__ import annotations

import os
import re
from xml.parsers import expat

import numpy as np

from tamis.core.arrays import freeze
from tamis.core.lazy import lazy_pattern
from tamis.core.names import QNAME, XML_NAMESPACE
from tamis.documents.projection import Projection
from tamis.documents.tokenizer.kernels import layout
from tamis.documents.vocabulary import Vocabulary

NAMES_MAX = 1 << layout.SLOT_BITS - 1
"""Names, counted in each scope that they are met in; half of the table."""
SCOPES_MAX = 1 << 10
SPELLED_MAX = 1 << 22
"""Bytes of long names and declarations, after which it is better to begin anew."""

# Of the hash. Random once a process: whoever writes documents cannot know which names collide.
_MULTIPLIER = np.frombuffer(os.urandom(8), np.uint64) | np.uint64(1)
freeze(_MULTIPLIER)

_ASCII_NAME = lazy_pattern(rb"(?:([A-Za-z_][A-Za-z0-9._-]*):)?([A-Za-z_][A-Za-z0-9._-]*)")
_PREFIX = lazy_pattern(
    rb"""xmlns(?::([^ \t\r\n="']*))?([ \t\r\n]*=[ \t\r\n]*(?:"[^"]*"|'[^']*'))"""
)


class NameTable:
    """The hash tables of the kernels, and what they stand for.

    Args:
        vocabulary: takes the names that documents have.
        projection: which values are read.
        record: the tag of records, or ``b""``.

    Attributes:
        parents: the scope that each scope is in.
        declared: what the start tag that made the scope declares: namespaces by their prefixes,
            ``""`` for the default, in its order.
    """

    def __init__(self, vocabulary: Vocabulary, projection: Projection, record: bytes = b"") -> None:
        self.vocabulary = vocabulary
        self.projection = projection
        self.count = 0
        self.parents = [0]
        self.declared: list[dict[str, str]] = [{}]
        self.spelled = 0
        padded = np.frombuffer(record + bytes(8), np.uint8)
        freeze(padded)
        self.arrays = layout.Names(
            table=np.zeros(layout.NAME_COLUMNS << layout.SLOT_BITS, np.uint64),
            offsets=np.zeros(1 << layout.SLOT_BITS, np.int64),
            prefixes=np.zeros(1 << layout.SLOT_BITS, np.int32),
            spelled=np.zeros(1 << 12, np.uint8),
            scopes=np.zeros(2 * SCOPES_MAX * layout.SCOPE_COLUMNS, np.int64),
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
        id, flags, prefix_id = 0, 0, -1
        if kind == layout.TARGET:
            if prefix or local.lower() == "xml":
                return False
            id = self.vocabulary.add("", local)
        else:
            namespace = self._namespace(prefix, kind, scope)
            if namespace is None:
                return False
            id = self.vocabulary.add(namespace, local)
            if kind == layout.ELEMENT and (namespace, local) in self.projection.text:
                flags = layout.READ_TEXT
            if kind == layout.ATTRIBUTE and (namespace, local) in self.projection.attributes:
                flags = layout.READ_VALUE
            prefix_id = self.vocabulary.add_prefix(prefix) if prefix else -1
        self._put(name, kind, scope, slot, id | flags << 32, prefix_id)
        return True

    def add_scope(self, declarations: bytes, parent: int, slot: int) -> bool:
        """Add the scope that declarations make in another, to a slot of the scopes."""
        if len(self.parents) == SCOPES_MAX:
            return False
        declared = _declared(declarations)
        if declared is None:
            return False
        start = self._spell(declarations)
        row = slot * layout.SCOPE_COLUMNS
        made = parent, start, self.spelled, len(self.parents)
        self.arrays.scopes[row : row + layout.SCOPE_COLUMNS] = made
        self.parents.append(parent)
        self.declared.append(declared)
        return True

    def name(self, slot: int) -> bytes:
        """The name in a slot, as it is written."""
        arrays = self.arrays
        row = slot * layout.NAME_COLUMNS
        length = int(arrays.table[row + layout.KEY]) & layout.NAME_MAX
        if length > 16:
            start = int(arrays.offsets[slot])
            return arrays.spelled[start : start + length].tobytes()
        return arrays.table[row : row + layout.KEY].tobytes()[:length]

    def _namespace(self, prefix: str, kind: int, scope: int) -> str | None:
        """The namespace of a prefix, ``""`` for none, or None where it is not declared."""
        if not prefix and kind == layout.ATTRIBUTE:
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
        row = slot * layout.NAME_COLUMNS
        arrays.table[row : row + layout.NAME_COLUMNS] = head, neck, key, answer
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


def _declared(declarations: bytes) -> dict[str, str] | None:
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
