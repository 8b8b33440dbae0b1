"""Documents one after the other in one stream, as ``cat`` and some services give them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, get_args

from tamis.core.arguments import checked_limits
from tamis.core.errors import DocumentEncodingError, DocumentError, DocumentLimitError, UsageError
from tamis.core.lazy import OR_NOTHING, lazy_pattern
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.core.threads import Flush
from tamis.documents.offsets import CDATA, COMMENT, PI, QUOTED
from tamis.documents.source import Document, decompressed, read, too_large
from tamis.documents.vocabulary import Projection, Vocabulary

By = Literal["xml", "lines", "nul"]
"""Where a document ends: with its root element, with its line, or before a NUL byte."""

_DECLARATION = rb"<![A-Z](?:[^<>\"']|" + QUOTED + OR_NOTHING + rb")*+>"
_IN_SUBSET = b"|".join([rb"[^\]\"'<]++", QUOTED, COMMENT, PI, _DECLARATION])
_SUBSET = rb"\[(?:" + _IN_SUBSET + OR_NOTHING + rb")*+\][^<>]*+"
_TOKENS = (
    COMMENT,
    CDATA,
    rb"(?P<declaration><\?xml[ \t\r\n])",
    PI,
    rb"<!DOCTYPE(?:[^<>\[\"']|" + QUOTED + OR_NOTHING + rb")*+(?:" + _SUBSET + rb")?>",
    rb"</(?P<end>[^<>\s]*+)\s*+>",
    rb"<(?P<start>[^<>\s/!?\"']++)(?:[^<>\"'/]++|\"[^<\"]*+\"|'[^<']*+'|/(?!>)"
    + OR_NOTHING
    + rb")*+(?:(?P<empty>/>)|>)",
    rb"(?P<other><)",
)
_TOKEN = lazy_pattern(b"|".join(_TOKENS), re.DOTALL)
# What may become a token when more comes: in a tag that is well-formed stands no other "<".
_CUT_OFF = lazy_pattern(rb"<(?:!--|!\[CDATA\[|!DOCTYPE|\?)|<[^<]*+\Z", re.DOTALL)
_MISC = lazy_pattern(rb"(?:[ \t\r\n]++|" + COMMENT + b"|" + PI + OR_NOTHING + b")*+", re.DOTALL)
_SPACES = lazy_pattern(rb"[ \t\r\n]*+")
_DECLARED = b"<?xml "
_BOM = b"\xef\xbb\xbf"  # in front of a declaration, it belongs to the declaration's document
_REST = "; what follows, up to the next XML declaration, was not read"
_NO_ASCII = lazy_pattern(rb"\xff\xfe|\xfe\xff|.{0,3}\0|\x4c\x6f\xa7\x94", re.DOTALL)


class Documents:
    """The documents of a stream, each once, in their order: bytes, a str, or an error.

    Each is given as soon as it is complete. Made by :func:`split`; to be iterated over once.
    """

    def __init__(self, document: Document, by: By, limits: Limits) -> None:
        self._document = document
        self._by = by
        self._limits = limits

    def __iter__(self) -> Iterator[bytes | str | DocumentError]:
        return (item for item in self.items() if not isinstance(item, Flush))

    def items(self) -> Iterator[bytes | str | DocumentError | Flush]:
        """The same, with ``FLUSH`` where reading on may have to wait."""
        cutter = _Roots(self._limits) if self._by == "xml" else _Lines(self._limits, self._by)
        is_text = False

        def given(item: bytes | DocumentError) -> bytes | str | DocumentError:
            if is_text and isinstance(item, bytes):
                return item.decode("utf-8", "surrogatepass")
            return item

        try:
            for chunk in decompressed(self._document):
                is_text = isinstance(chunk, str)
                data = chunk.encode("utf-8", "surrogatepass") if isinstance(chunk, str) else chunk
                yield from map(given, cutter.feed(bytes(data)))
                if not data:
                    yield Flush.FLUSH
            yield from map(given, cutter.finish())
        except DocumentError as error:
            yield error


def split(document: Document, by: By = "xml", limits: Limits = DEFAULT_LIMITS) -> Documents:
    r"""Divide a stream into its documents, for :meth:`CompiledMatcher.match_many`.

    Args:
        document: the stream; what begins as gzip does is decompressed. UTF-8, or another encoding
            with ASCII in it. Each document may have a declaration and a DOCTYPE of its own.
        by: "xml": a document ends with its root element. White space between documents is skipped,
            comments and processing instructions there belong to the next one. After a document
            whose tags do not fit, reading goes on at the next XML declaration. "lines": one
            document a line. "nul": NUL bytes between documents.
        limits: a document that is larger than ``document_bytes`` is an error, and is not kept.

    >>> list(split(b"<?xml version='1.0'?><a/>\n<b>1</b><c/>"))
    [b"<?xml version='1.0'?><a/>", b'<b>1</b>', b'<c/>']
    >>> list(split("<a/>\n<b>\n<c/>", "lines"))
    ['<a/>', '<b>', '<c/>']
    """
    if by not in get_args(By):
        raise UsageError(f"documents end by 'xml', 'lines' or 'nul', not {by!r}")
    return Documents(document, by, checked_limits(limits))


class _Lines:
    """Cuts at each line end, or NUL byte; blank documents are skipped."""

    def __init__(self, limits: Limits, by: By) -> None:
        self.limits = limits
        self.end = b"\0" if by == "nul" else b"\n"
        self.held: list[bytes] = []  # of a document whose end was not read yet
        self.size = 0
        self.is_begin = True  # of the stream

    def feed(self, chunk: bytes) -> Iterator[bytes | DocumentError]:
        first, *others = chunk.split(self.end)
        for piece in others:
            self._hold(first)
            yield from self.finish()
            first = piece
        self._hold(first)

    def finish(self) -> Iterator[bytes | DocumentError]:
        found, is_large = b"".join(self.held), self.size > self.limits.document_bytes
        self.held, self.size = [], 0
        if is_large:
            yield DocumentLimitError(too_large(self.limits))
        elif found.strip():
            if self.is_begin:
                _check_encoding(found)
            self.is_begin = False
            yield found

    def _hold(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self.limits.document_bytes:
            self.held.clear()
        else:
            self.held.append(piece)


class _Roots:
    """Cuts behind each root element: finds tags, without checking more than that they fit."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.data = bytearray()  # of a document that is not complete
        self.offset = 0  # up to where it was looked at
        self.wanted = 0  # so much has to be there before a token that was cut off is read anew
        self.has_end = False  # of a token, in what came since
        self.open: list[bytes] = []  # the names of the open elements
        self.is_large = False  # the document is larger than the limit, and its begin was forgotten
        self.is_lost = False  # up to the next declaration
        self.is_begin = True  # of the stream

    def feed(self, chunk: bytes) -> Iterator[bytes | DocumentError]:
        self.data += chunk
        self.has_end = self.has_end or b">" in chunk
        if self.is_begin and (len(self.data) >= len(_DECLARED) or not chunk):
            self.is_begin = False
            _check_encoding(self.data)
        is_large = len(self.data) > self.limits.document_bytes
        if is_large or (self.has_end and (len(self.data) >= self.wanted or not chunk)):
            self.has_end = False
            yield from self._read()
        yield from self._bounded()

    def finish(self) -> Iterator[bytes | DocumentError]:
        yield from self._read()
        if not self.is_lost and not self._is_between(len(self.data)):
            yield self._cut(len(self.data))

    def _read(self) -> Iterator[bytes | DocumentError]:
        """The documents that are complete now."""
        while not self.is_lost or self._find_declaration():
            if not (self.offset or self.open or self.is_large):
                self._forget(_SPACES.match(self.data).end())  # type: ignore[union-attr]
            what, offset = self._scan()
            if what == "more":
                self.offset = offset
                self.wanted = 2 * len(self.data) - offset
                return
            if what == "declaration" and self._is_between(offset):
                self._forget(offset)
            elif what == "lost":
                yield self._lose(offset)
            else:  # no declaration may stand in a document: it is the next one's
                yield self._cut(offset)

    def _scan(self) -> tuple[Literal["end", "declaration", "lost", "more"], int]:
        """Go on to what ends a document, or to where more is needed: what, and its offset."""
        open = self.open
        for token in _TOKEN.finditer(self.data, self.offset):
            kind = token.lastgroup
            if kind == "start":
                open.append(token["start"])
            elif kind in ("end", "empty"):
                if kind == "end" and (not open or open.pop() != token["end"]):
                    return "lost", token.end()
                if not open:
                    return "end", token.end()
            elif kind == "declaration" and (begin := self._before_mark(token.start())):
                return "declaration", begin
            elif kind == "other":
                offset = token.start()
                if _CUT_OFF.match(self.data, offset):
                    return "more", offset
                return "lost", self.data.find(b">", offset) + 1 or len(self.data)
        return "more", len(self.data)

    def _is_between(self, end: int) -> bool:
        """Whether what is there, up to an offset, is of no document."""
        is_misc = _MISC.fullmatch(self.data, 0, end) is not None
        return is_misc and not (self.open or self.is_large)

    def _cut(self, end: int) -> bytes | DocumentError:
        """The document that ends at an offset."""
        found = bytes(self.data[:end])
        is_large = self.is_large or len(found) > self.limits.document_bytes
        self.is_large = False
        self.open.clear()
        self._forget(end)
        return DocumentLimitError(too_large(self.limits)) if is_large else found

    def _lose(self, end: int) -> bytes | DocumentError:
        """The document that is not well-formed at an offset, behind which nothing is certain."""
        found = self._cut(end)
        error = found if isinstance(found, DocumentError) else _error_of(found, self.limits)
        if error is None:
            return found
        self.is_lost = True
        return type(error)(error.message + _REST, error.line, error.column, error.offset)

    def _forget(self, end: int) -> None:
        del self.data[:end]
        self.offset = self.wanted = 0

    def _find_declaration(self) -> bool:
        """Go to where a document begins for certain, if that was read."""
        found = self.data.find(_DECLARED)
        self.is_lost = found < 0
        size = len(_BOM + _DECLARED)  # so much may become a declaration when more comes
        self._forget(max(0, len(self.data) - size) if self.is_lost else self._before_mark(found))
        return not self.is_lost

    def _before_mark(self, offset: int) -> int:
        """Where the document of a declaration begins: with a byte order mark, if there is one."""
        return offset - len(_BOM) * self.data.endswith(_BOM, 0, offset)

    def _bounded(self) -> Iterator[DocumentError]:
        """Keep no more of a document than is allowed."""
        if self.is_lost or len(self.data) <= self.limits.document_bytes:
            return
        if len(self.data) - self.offset > self.limits.document_bytes:  # of one token
            self._cut(len(self.data))
            self.is_lost = True
            yield DocumentLimitError(too_large(self.limits) + _REST)
        else:
            self.is_large = not self._is_between(self.offset)
            self._forget(self.offset)


def _check_encoding(begin: bytes | bytearray) -> None:
    if _NO_ASCII.match(begin):
        known = "in UTF-8, or another encoding that has ASCII in it"
        message = f"documents one after the other are read {known}: these are not"
        raise DocumentEncodingError(message, 1, 1)


def _error_of(document: bytes, limits: Limits) -> DocumentError | None:
    from tamis.documents.parser import parse  # noqa: PLC0415 - has kernels

    try:
        source = read(document, limits)
    except DocumentError as error:
        return error
    _, errors = parse([source], Vocabulary(), Projection(), limits)
    return errors.get(0)
