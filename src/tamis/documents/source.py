"""Where documents come from: bytes, text, files and streams → bytes that a parser can read."""

from __future__ import annotations

import codecs
import mmap
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from tamis.documents.archive import ZipMember
from tamis.documents.gzipped import MAGIC, gunzipped
from tamis.errors import (
    DocumentEncodingError,
    DocumentLimitError,
    MalformedDocument,
    UnreadableDocument,
    UsageError,
)
from tamis.limits import Limits

Document = (
    bytes
    | bytearray
    | memoryview
    | mmap.mmap
    | str
    | os.PathLike[str]
    | ZipMember
    | IO[bytes]
    | IO[str]
)
"""What may be given as a document. A ``str`` is XML; a file is named by a :class:`pathlib.Path`.

Whatever begins as gzip does is decompressed.
"""


class Source(NamedTuple):
    """The bytes of a document.

    Attributes:
        data: the bytes.
        encoding: the encoding that overrules the document's declaration, or None.
        name: what messages call it: the path of the file or member, or "".
    """

    data: bytes | memoryview | mmap.mmap
    encoding: str | None = None
    name: str = ""


# What libexpat decodes itself: Python's names → what to overrule the declaration with, since expat
# does not know all aliases. UTF-16 without its marks is left to expat to refuse.
_NATIVE = {"utf-8": "utf-8", "iso8859-1": "iso-8859-1", "ascii": "us-ascii", "utf-16": None}
# A document's own marks → how to decode what follows a byte order mark, or the whole, and how many
# bytes the mark takes.
_MARKS = (
    (b"\xff\xfe\0\0", "utf-32-le", 4),
    (b"\0\0\xfe\xff", "utf-32-be", 4),
    (b"<\0\0\0", "utf-32-le", 0),
    (b"\0\0\0<", "utf-32-be", 0),
    (b"\xef\xbb\xbf", "utf-8", 3),
    (b"\xff\xfe", "utf-16-le", 2),
    (b"\xfe\xff", "utf-16-be", 2),
    (b"<\0", "utf-16-le", 0),
    (b"\0<", "utf-16-be", 0),
)
# Names in XML's recommendation that Python does not know.
_UCS = {
    "iso-10646-ucs-2": "utf-16",
    "ucs-2": "utf-16",
    "iso-10646-ucs-4": "utf-32",
    "ucs-4": "utf-32",
}
# Text encodings of Python's that are no encodings of documents.
_NOT_FOR_DOCUMENTS = frozenset(
    "charmap idna palmos punycode raw-unicode-escape undefined unicode-escape utf-7".split()
)
_DECLARATION = re.compile(
    r"<\?xml[ \t\r\n](?:[^>]*?[ \t\r\n])?encoding[ \t\r\n]*=[ \t\r\n]*"
    r"""["']([A-Za-z][A-Za-z0-9._\-]*)["']"""
)
_SNIFF_BYTES = 1024


def read(document: Document, limits: Limits) -> Source:
    """The bytes of a document, transcoded to UTF-8 where libexpat would not know the encoding.

    Raises:
        UnreadableDocument: the file or stream cannot be read, or is damaged gzip.
        DocumentEncodingError: the bytes are not in the declared encoding, or nobody knows it.
        DocumentLimitError: it is larger than ``limits.document_bytes``, or its gzip is.
        UsageError: it is no document at all.

    >>> read("<a/>", Limits())
    Source(data=b'<a/>', encoding='utf-8', name='')
    """
    name = str(document) if isinstance(document, os.PathLike | ZipMember) else ""
    if isinstance(document, str):
        return Source(_encoded(document, limits), "utf-8")
    try:
        data = _bytes(document, limits)
        size = len(data)
    except ValueError as error:  # a closed mmap, a released memoryview
        raise UnreadableDocument(f"cannot read it: {error}") from None
    if isinstance(data, str):
        return Source(_encoded(data, limits), "utf-8")
    _check_size(size, limits)
    if data[: len(MAGIC)] == MAGIC:
        data = _decompressed(data, limits)
    return _transcoded(data)._replace(name=name)


def _bytes(document: object, limits: Limits) -> bytes | memoryview | mmap.mmap | str:
    if isinstance(document, bytes | mmap.mmap):
        return document
    if isinstance(document, bytearray):
        return bytes(document)
    if isinstance(document, memoryview):
        return document.cast("B") if document.c_contiguous else document.tobytes()
    if isinstance(document, os.PathLike):
        return _file_bytes(Path(document), limits)
    if isinstance(document, ZipMember):
        return document.read(limits.document_bytes + 1)
    if hasattr(document, "read"):
        return _stream_content(document, limits)
    raise UsageError(
        "a document is bytes, a memoryview, an mmap, a str of XML, a pathlib.Path or an open file, "
        f"not {type(document).__name__}"
    )


def _stream_content(stream: Any, limits: Limits) -> bytes | str:
    """All of a stream; raw ones give what they have, so it is asked until it has no more."""
    pieces: list[bytes | bytearray | str] = []
    size = 0
    while size <= limits.document_bytes:
        try:
            piece = stream.read(limits.document_bytes + 1 - size)
        except Exception as error:  # whatever the stream's own code raises, gzip's for instance
            raise UnreadableDocument(f"cannot read the stream: {error}") from None
        if not isinstance(piece, bytes | bytearray | str) or (
            pieces and isinstance(piece, str) != isinstance(pieces[0], str)
        ):
            raise UnreadableDocument(
                f"cannot read the stream: it gave {type(piece).__name__}, not always bytes or str"
            )
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
    if pieces and isinstance(pieces[0], str):
        return "".join(piece for piece in pieces if isinstance(piece, str))
    return b"".join(piece for piece in pieces if not isinstance(piece, str))


def _file_bytes(path: Path, limits: Limits) -> bytes:
    try:
        with path.open("rb") as file:
            _check_size(os.fstat(file.fileno()).st_size, limits)
            data = file.read(limits.document_bytes + 1)
    except OSError as error:
        raise UnreadableDocument(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:  # a NUL in the path
        raise UnreadableDocument(f"cannot read {str(path)!r}: {error}") from None
    return data


def _decompressed(data: bytes | memoryview | mmap.mmap, limits: Limits) -> bytes:
    pieces = []
    size = 0
    for piece in gunzipped([memoryview(data)]):
        size += len(piece)
        _check_size(size, limits)
        pieces.append(piece)
    return b"".join(pieces)


def _check_size(size: int, limits: Limits) -> None:
    if size > limits.document_bytes:
        raise DocumentLimitError(
            f"larger than the limit document_bytes = {limits.document_bytes:,}"
        )


def _encoded(text: str, limits: Limits) -> bytes:
    declared = _DECLARATION.match(text.removeprefix("\ufeff")[:_SNIFF_BYTES])
    if declared and declared[1].lower().replace("_", "-") not in ("utf-8", "utf8"):
        raise DocumentEncodingError(
            f"a str that declares the encoding {declared[1]!r}: pass the bytes instead", 1, 1
        )
    if "<" not in text and text.strip():
        raise MalformedDocument(
            "a str is XML, and this has no markup: a file is named by a pathlib.Path", 1, 1
        )
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        line, column = _place(text[: error.start])
        raise DocumentEncodingError(
            "a lone surrogate, which is no character", line, column
        ) from None
    _check_size(len(data), limits)
    return data


def _transcoded(data: bytes | memoryview | mmap.mmap) -> Source:
    head = bytes(data[:_SNIFF_BYTES])
    for mark, encoding, size in _MARKS:
        if head.startswith(mark):
            _check_agreement(head[size:], encoding)
            data = data[size:]
            if encoding == "utf-8":
                return Source(data, encoding)
            # Expat reads UTF-16 too, but takes halves of surrogate pairs for characters.
            return Source(_in_utf8(data, codecs.lookup(encoding)), "utf-8")
    codec = _declared_codec(head)
    if codec is None:
        return Source(data)
    if codec.name in _NATIVE:
        return Source(data, _NATIVE[codec.name])
    return Source(_in_utf8(data, codec), "utf-8")


def _check_agreement(head: bytes, encoding: str) -> None:
    """Refuse a declaration that the document's own marks contradict."""
    declared = _DECLARATION.match(head.decode(encoding, "ignore"))
    if declared is None:
        return
    name = _UCS.get(declared[1].lower(), declared[1])
    with suppress(LookupError, UnicodeError):
        name = codecs.lookup(name).name
    if not name.startswith(encoding[:6].rstrip("-")):
        line, column = _place(declared[0][: declared.start(1) - declared.start()])
        raise DocumentEncodingError(
            f"the encoding is declared as {declared[1]!r}, but the first bytes say {encoding}",
            line,
            column,
        )


def _in_utf8(data: bytes | memoryview | mmap.mmap, codec: codecs.CodecInfo) -> bytes:
    try:
        text, _ = codec.decode(bytes(data), "strict")
    except UnicodeDecodeError as error:
        good, _ = codec.decode(bytes(data[: error.start]), "replace")
        line, column = _place(good)
        raise DocumentEncodingError(
            f"bytes that are not {codec.name}, the document's encoding: {error.reason}",
            line,
            column,
        ) from None
    return text.removeprefix("\ufeff").encode("utf-8", "replace")


def _declared_codec(head: bytes) -> codecs.CodecInfo | None:
    """Python's codec for the encoding that a document declares, or None where it declares none."""
    ebcdic = head.startswith(b"\x4c\x6f\xa7\x94")  # "<?xm" in every EBCDIC code page
    text = head.decode("cp037" if ebcdic else "latin-1")
    declared = _DECLARATION.match(text)
    if declared is None:
        if re.match(r"<\?xml[ \t\r\n]", text) and "?>" not in text and len(head) == _SNIFF_BYTES:
            raise DocumentLimitError(
                f"the XML declaration is longer than {_SNIFF_BYTES:,} bytes", 1, 1
            )
        return codecs.lookup("cp037") if ebcdic else None
    line, column = _place(declared[0][: declared.start(1)])
    try:
        codec = codecs.lookup(declared[1])
    except (LookupError, UnicodeError):
        codec = None
    if codec is not None and codec.name in _NATIVE:
        return codec
    if codec is None or not codec._is_text_encoding or codec.name in _NOT_FOR_DOCUMENTS:
        raise DocumentEncodingError(f"unknown encoding {declared[1]!r}", line, column)
    try:
        agrees = codec.decode(head[: declared.end()], "strict")[0] == declared[0]
    except UnicodeError:
        agrees = False
    if not agrees:
        raise DocumentEncodingError(
            f"the encoding is declared as {declared[1]!r}, which these bytes are not", line, column
        )
    return codec


def _place(text: str) -> tuple[int, int]:
    """Line and column, from 1, of the character after ``text``."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return lines.count("\n") + 1, len(lines) - (lines.rfind("\n") + 1) + 1
