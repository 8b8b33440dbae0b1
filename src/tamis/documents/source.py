"""Where documents come from: bytes, text, files and streams → bytes that a parser can read."""

from __future__ import annotations

import codecs
import mmap
import os
import re
from pathlib import Path
from typing import IO, NamedTuple

from tamis.errors import (
    DocumentEncodingError,
    DocumentLimitError,
    MalformedDocument,
    UnreadableDocument,
    UsageError,
)
from tamis.limits import Limits

Document = bytes | bytearray | memoryview | mmap.mmap | str | os.PathLike[str] | IO[bytes] | IO[str]
"""What may be given as a document. A ``str`` is XML; a file is named by a :class:`pathlib.Path`."""


class Source(NamedTuple):
    """The bytes of a document.

    Attributes:
        data: the bytes.
        encoding: the encoding that overrules the document's declaration, or None.
        name: what messages call it: the file's path, or "".
    """

    data: bytes | memoryview | mmap.mmap
    encoding: str | None = None
    name: str = ""


# What libexpat decodes itself (and names it knows them by).
_NATIVE = frozenset(("utf-8", "utf-16", "iso8859-1", "ascii"))
# Text encodings of Python's that are no encodings of documents.
_NOT_FOR_DOCUMENTS = frozenset(
    ("unicode_escape", "raw_unicode_escape", "idna", "punycode", "undefined", "utf-7")
)
_DECLARATION = re.compile(
    r"<\?xml[ \t\r\n][^>]*?[ \t\r\n]encoding[ \t\r\n]*=[ \t\r\n]*"
    r"""["']([A-Za-z][A-Za-z0-9._\-]*)["']"""
)
_SNIFF_BYTES = 1024


def read(document: Document, limits: Limits) -> Source:
    """The bytes of a document, transcoded to UTF-8 where libexpat would not know the encoding.

    Raises:
        UnreadableDocument: the file or stream cannot be read.
        DocumentEncodingError: the bytes are not in the declared encoding, or nobody knows it.
        DocumentLimitError: it is larger than ``limits.document_bytes``.
        UsageError: it is no document at all.

    >>> read("<a/>", Limits())
    Source(data=b'<a/>', encoding='utf-8', name='')
    """
    name = str(document) if isinstance(document, os.PathLike) else ""
    if isinstance(document, str):
        return Source(_encoded(document, limits), "utf-8")
    data = _bytes(document, limits)
    if isinstance(data, str):
        return Source(_encoded(data, limits), "utf-8")
    _check_size(len(data), limits)
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
    if hasattr(document, "read"):
        try:
            data = document.read(limits.document_bytes + 1)
        except (OSError, ValueError) as error:
            raise UnreadableDocument(f"cannot read the stream: {error}") from None
        if isinstance(data, bytes | str):
            return data
    raise UsageError(
        "a document is bytes, a memoryview, an mmap, a str of XML, a pathlib.Path or an open file, "
        f"not {type(document).__name__}"
    )


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
    codec = _foreign_codec(bytes(data[:_SNIFF_BYTES]))
    if codec is None:
        return Source(data)
    try:
        text, _ = codec.decode(bytes(data), "strict")
    except UnicodeDecodeError as error:
        good, _ = codec.decode(bytes(data[: error.start]), "replace")
        line, column = _place(good)
        raise DocumentEncodingError(
            f"bytes that are not {codec.name}, as the document declares: {error.reason}",
            line,
            column,
        ) from None
    return Source(text.removeprefix("\ufeff").encode("utf-8", "replace"), "utf-8")


def _foreign_codec(head: bytes) -> codecs.CodecInfo | None:
    """Python's codec for the declared encoding, or None where libexpat knows it (or none is)."""
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff", b"\0\0\0<", b"<\0\0\0")):
        if head.startswith(b"<"):
            return codecs.lookup("utf-32-le")
        return codecs.lookup("utf-32-be" if head.startswith(b"\0\0\0<") else "utf-32")
    if head.startswith((b"\xff\xfe", b"\xfe\xff", b"\0<", b"<\0", b"\xef\xbb\xbf")):
        return None  # UTF-16 or UTF-8, by their own marks
    ebcdic = head.startswith(b"\x4c\x6f\xa7\x94")  # "<?xm" in every EBCDIC code page
    declared = _DECLARATION.match(head.decode("cp037" if ebcdic else "latin-1"))
    if declared is None:
        return codecs.lookup("cp037") if ebcdic else None
    line, column = _place(declared[0][: declared.start(1)])
    try:
        codec = codecs.lookup(declared[1])
    except (LookupError, UnicodeError):
        codec = None
    if codec is not None and codec.name in _NATIVE:
        return None
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
