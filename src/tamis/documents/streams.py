"""Documents of any size, as streams of UTF-8 that are read while they are parsed."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from tamis.documents.encodings import (
    HEAD_BYTES,
    DeclaredEncoding,
    check_text,
    encoding_of,
    in_utf8,
    in_utf8_of_text,
)
from tamis.documents.gzipped import MAGIC, gunzipped
from tamis.documents.source import Document, check_markup, name_of, raw_chunks

CHUNK_BYTES = 1 << 18
"""What is read at a time."""


class Stream(NamedTuple):
    """A document that is being read.

    Attributes:
        chunks: its bytes: UTF-8 without a byte order mark, or what libexpat will refuse. Iterating
            may raise ``UnreadableDocument`` and ``DocumentEncodingError``. A file is closed at the
            end, or where the chunks are closed. An empty chunk stands where reading on may have to
            wait.
        encoding: the encoding that overrules the document's declaration, or None.
        name: what messages call it: the path of the file or member, or "".
        mark: the size of the byte order mark that stood before them, where they are the document's
            own bytes.
        is_decoded: whether the bytes are others than those of the document: they were decompressed,
            or are of an encoding that cannot be read from the middle on.
    """

    chunks: Iterator[bytes | memoryview]
    encoding: str | None
    name: str
    mark: int = 0
    is_decoded: bool = False


def open_stream(document: Document, declared: DeclaredEncoding = "check") -> Stream:
    """Begin to read a document: gzip is decompressed, and other encodings are transcoded to UTF-8.

    Args:
        declared: whether the encoding that it declares counts.

    Raises:
        UnreadableDocument: the file or stream cannot be read, or is damaged gzip.
        MalformedDocument: it is packed, and not with gzip.
        DocumentEncodingError: nobody knows the declared encoding.
        DocumentLimitError: the XML declaration is too long.
        UsageError: it is no document at all.

    >>> stream = open_stream("<a/>".encode("utf-16"))
    >>> b"".join(stream.chunks), stream.encoding
    (b'<a/>', 'utf-8')
    """
    head, chunks = with_head(raw_chunks(document, CHUNK_BYTES))
    if isinstance(head, str):
        if isinstance(document, str):
            check_markup(document)
        check_text(head, declared)
        chunks = _without(int(head.startswith("\ufeff")), chunks)
        mark = len("\ufeff".encode()) if head.startswith("\ufeff") else 0
        return Stream(in_utf8_of_text(chunks), "utf-8", name_of(document), mark, True)
    is_compressed = head[: len(MAGIC)] == MAGIC
    if is_compressed:
        head, chunks = with_head(gunzipped(chunks))
    encoding = encoding_of(bytes(head[:HEAD_BYTES]), declared)
    overrules, codec = encoding.overrules, encoding.codec
    if overrules == "iso-8859-1":  # libexpat knows it, but then offsets would not be of UTF-8
        overrules, codec = "utf-8", codecs.lookup(overrules)
    chunks = _without(encoding.mark, chunks)
    if codec is not None:
        chunks = in_utf8(chunks, codec)
    is_decoded = is_compressed or overrules not in (None, "utf-8") or codec is not None
    return Stream(chunks, overrules, name_of(document), 0 if codec else encoding.mark, is_decoded)


def decompressed(document: Document) -> Iterator[Any]:
    """The bytes of a document, or its characters, in chunks; gzip is decompressed.

    Raises:
        UnreadableDocument: while iterating: it cannot be read, or is damaged gzip.
        UsageError: it is no document at all.
    """
    head, chunks = with_head(raw_chunks(document, CHUNK_BYTES))
    return gunzipped(chunks) if head[: len(MAGIC)] == MAGIC else chunks


def with_head(chunks: Iterator[Any]) -> tuple[Any, Iterator[Any]]:
    """The beginning of a stream, which tells the encoding; and all chunks.

    At least the first ``HEAD_BYTES``, if there are so many. A stream that pauses need not have
    them all: what came has to be enough.
    """
    pieces: list[Any] = []
    found = 0
    for chunk in chunks:
        pieces.append(chunk)
        found += len(chunk)
        if found >= HEAD_BYTES or (not chunk and _is_enough(_joined(pieces))):
            break
    head = pieces[0] if len(pieces) == 1 else _joined(pieces)
    return head, chain([head, head[:0]] if pieces and not pieces[-1] else [head], chunks)


def _joined(pieces: list[Any]) -> Any:
    return ("" if pieces and isinstance(pieces[0], str) else b"").join(pieces)


def _is_enough(head: bytes | str) -> bool:
    r"""Whether the beginning of a stream says how to read the rest, whatever that is.

    >>> [_is_enough(head) for head in (b"<a", b"<?xml version='1.0'?>", b"<?xml ", b"\xff\xfe<")]
    [True, True, False, False]
    """
    if isinstance(head, str):
        head = head.encode("utf-8", "replace")
    if head.startswith(MAGIC):
        return True
    plain = head.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xfe\xff")
    if plain[:2] == b"<?":
        return b"?>" in plain
    if plain[:2] == _EBCDIC_DECLARATION[:2]:
        return _EBCDIC_DECLARATION[2:] in plain
    return len(plain) >= (2 if plain[:1] == b"<" else _MAGIC_MAX)


_EBCDIC_DECLARATION = "<??>".encode("cp037")
_MAGIC_MAX = 6
"""The size of the longest of the magic numbers that are looked for."""


def _without(mark: int, chunks: Iterable[Any]) -> Iterator[Any]:
    for chunk in chunks:
        yield chunk[mark:]
        mark = 0
