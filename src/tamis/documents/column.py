"""Documents that lie one after the other in a buffer, as in a column of Arrow, read together.

For a small document, more time goes into Python's objects about it than into its bytes. The
documents of a ``DocumentColumn`` are three numbers each until somebody asks for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int64
from tamis.core.errors import DocumentError
from tamis.core.limits import Limits
from tamis.documents.encodings import HEAD_BYTES, DeclaredEncoding, check_text, encoding_of
from tamis.documents.source import Source
from tamis.documents.tokenizer.scanner import Declaration, declaration_of

PLAIN_BYTES = 1 << 16
"""So large a document is at most; where they are larger, little is won."""
_RUN_MIN = 16
"""So many are read together at least."""
_LOOKED_AT = 1 << 12
"""So many documents are looked at together, which takes memory for their declarations."""
_DECLARATIONS_MAX = 8
"""Documents with so many different declarations are looked for; few have others."""
_BEGINS = np.isin(np.arange(256), list(b"< \t\r\n"))
"""The bytes that a document in UTF-8 without a byte order mark begins with."""


@dataclass(frozen=True, slots=True, eq=False)
class DocumentColumn(Sequence[Source]):
    """Documents in a buffer, in UTF-8.

    Attributes:
        begins, bodies, ends: where each begins, where its declaration ends, and where it ends.
        are_standalone: whether its declaration says ``standalone="yes"``.
        are_declared: whether its ``Source`` has "utf-8" as its encoding, instead of None.
    """

    data: memoryview
    begins: Int64
    bodies: Int64
    ends: Int64
    are_standalone: NDArray[np.uint8]
    are_declared: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.begins)

    @overload
    def __getitem__(self, place: int) -> Source: ...
    @overload
    def __getitem__(self, place: slice) -> DocumentColumn: ...
    def __getitem__(self, place: int | slice) -> Source | DocumentColumn:
        if isinstance(place, slice):
            names = ("begins", "bodies", "ends", "are_standalone", "are_declared")
            return replace(self, **{name: getattr(self, name)[place] for name in names})
        found = self.data[self.begins[place] : self.ends[place]]
        return Source(found, "utf-8" if self.are_declared[place] else None)

    def groups(self, documents_max: int, bytes_max: int) -> Iterator[DocumentColumn]:
        """The same documents, in parts of at most so many; a part has one at least."""
        first = 0
        while first < len(self):
            fitting = np.searchsorted(self.ends, self.begins[first] + bytes_max, "right")
            end = min(first + documents_max, max(int(fitting), first + 1))
            yield self[first:end]
            first = end


def runs(
    data: memoryview,
    bounds: Int64,
    is_there: NDArray[np.bool_],
    limits: Limits,
    *,
    is_text: bool,
    declared: DeclaredEncoding,
) -> Iterator[DocumentColumn | int]:
    r"""What can be read together of the documents of a buffer, and the numbers of others, in order.

    Args:
        bounds: where documents end and the next begins; one more than there are documents.
        is_there: whether each is one.
        is_text: whether the bytes are text that is known to be in UTF-8.

    >>> found = runs(memoryview(b"<a/>" * 20 + b"\xef\xbb\xbf<a/>"), np.r_[0:81:4, 87],
    ...     np.ones(21, bool), Limits(), is_text=False, declared="check")
    >>> [each if isinstance(each, int) else len(each) for each in found]
    [20, 20]
    """
    column = DocumentColumn(
        data,
        bounds[:-1],
        bounds[:-1].copy(),
        bounds[1:],
        np.zeros(len(bounds) - 1, np.uint8),
        np.full(len(bounds) - 1, declared == "ignore"),
    )
    for start in range(0, len(column), _LOOKED_AT):
        part, there = column[start : start + _LOOKED_AT], is_there[start : start + _LOOKED_AT]
        is_plain = _read_declarations(part, there, limits, is_text, declared)
        changes = np.flatnonzero(np.diff(is_plain)) + 1
        first = 0
        for end in [*changes.tolist(), len(part)]:
            if end - first >= _RUN_MIN and is_plain[first]:
                yield part[first:end]
            else:
                yield from range(start + first, start + end)
            first = end


def _read_declarations(
    column: DocumentColumn,
    is_there: NDArray[np.bool_],
    limits: Limits,
    is_text: bool,
    declared: DeclaredEncoding,
) -> NDArray[np.bool_]:
    """Note where declarations end, and say which documents are in UTF-8 for certain."""
    body = np.frombuffer(column.data, np.uint8)
    begins, sizes = column.begins, column.ends - column.begins
    is_plain = is_there & (sizes > 1) & (sizes <= min(PLAIN_BYTES, limits.document_bytes))
    if not is_plain.any() or not body[begins[0] : column.ends[-1]].all():  # a NUL: of UTF-16?
        return is_there & False
    is_plain[is_plain] = _BEGINS[body[begins[is_plain]]]
    rows = np.flatnonzero(is_plain)
    rows = rows[body[begins[rows] + 1] == ord("?")]
    for _ in range(_DECLARATIONS_MAX):
        if not len(rows):
            break
        begin, size = int(begins[rows[0]]), int(sizes[rows[0]])
        head = bytes(column.data[begin : begin + min(size, HEAD_BYTES)])
        if (end := head.find(b"?>")) < 0:
            is_plain[rows[0]], rows = False, rows[1:]
            continue
        head = head[: end + 2]
        places = np.minimum(begins[rows, None] + np.arange(len(head)), len(body) - 1)
        is_same = (body[places] == np.frombuffer(head, np.uint8)).all(1) & (sizes[rows] > len(head))
        same, rows = rows[is_same], rows[~is_same]
        found = _declaration(head, is_text, declared)
        if found is None:
            is_plain[same] = False
        else:
            declaration, column.are_declared[same] = found
            column.are_standalone[same] = declaration.is_standalone
            column.bodies[same] += declaration.end
    is_plain[rows] = False
    return is_plain


@lru_cache(maxsize=256)
def _declaration(
    head: bytes, is_text: bool, declared: DeclaredEncoding
) -> tuple[Declaration, bool] | None:
    """A declaration of a document in UTF-8, and whether it overrules what is found; or None."""
    try:
        if is_text:
            check_text(head.decode(errors="ignore"), declared)
        encoding = encoding_of(head, declared)
    except DocumentError:
        return None
    is_utf_8 = encoding.overrules in (None, "utf-8") and encoding.codec is None
    if not is_utf_8 or encoding.base_offset:
        return None
    found = declaration_of(head, encoding.overrules)
    return None if found is None else (found, encoding.overrules is not None)
