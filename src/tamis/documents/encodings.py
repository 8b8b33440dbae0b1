"""Finds the encoding of a document, and transcodes to UTF-8 what libexpat cannot decode."""

from __future__ import annotations

import codecs
import mmap
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from typing import Literal, NamedTuple, get_args

from tamis.core import errors
from tamis.core.arguments import is_one_of
from tamis.core.errors import DocumentEncodingError, MalformedDocument
from tamis.core.lazy import lazy_pattern
from tamis.core.names import QNAME

# What libexpat decodes itself: Python's names → what to overrule the declaration with, since expat
# does not know all aliases.
_NATIVE = {"utf-8": "utf-8", "iso8859-1": "iso-8859-1", "ascii": "us-ascii"}
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
_TWO_MARKS = "a second byte order mark, where the document must begin: take it away"
# What packed files begin with, which nobody meant to be XML.
_PACKED = {b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"PK\3\4": "zip"}
# Names in XML's recommendation that Python does not know.
_UCS = {
    **dict.fromkeys(("iso-10646-ucs-2", "ucs-2"), "utf-16"),
    **dict.fromkeys(("iso-10646-ucs-4", "ucs-4"), "utf-32"),
}
# Text encodings of Python's that are no encodings of documents.
_NOT_FOR_DOCUMENTS = frozenset(
    "charmap idna palmos punycode raw-unicode-escape undefined unicode-escape utf-7".split()
)
_PATTERN = (
    r"""<\?xml(?:[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*(?P<number>"[\w.\-]*"|'[\w.\-]*'))?"""
    r"""(?:[ \t\r\n]+encoding[ \t\r\n]*=[ \t\r\n]*(["'])(?P<encoding>[A-Za-z][\w.\-]*)\2)?"""
    r"""(?:[ \t\r\n]+standalone[ \t\r\n]*=[ \t\r\n]*(["'])(?P<standalone>yes|no)\4)?"""
    r"""[ \t\r\n]*(?P<end>\?>)?"""
)
DECLARATION = lazy_pattern(_PATTERN.encode())
"""The XML declaration of a document, or the text declaration of another entity, which may leave the
version out. It is whole, and right, if it has its ``end`` and a ``number`` that is a version.
"""
VERSION = lazy_pattern("1\\.[0-9]+")
"""The versions that documents may have; all are read as 1.0."""
_DECLARATION = lazy_pattern(_PATTERN, re.ASCII)
HEAD_BYTES = 1024
"""The part of a document that says what its encoding is."""
DeclaredEncoding = Literal["check", "ignore"]
"""Whether the encoding that a document declares counts, and has to be right; or is left out."""
_DECLARED = get_args(DeclaredEncoding)


def checked_declared_encoding(value: object) -> DeclaredEncoding:
    """The value, or a ``UsageError`` if it is neither "check" nor "ignore"."""
    if is_one_of(value, _DECLARED):
        return value  # type: ignore[return-value]
    raise errors.UsageError(f'declared_encoding is "check" or "ignore", not {value!r}')


class Encoding(NamedTuple):
    """How to read the bytes of a document.

    Attributes:
        base_offset: the size of the byte order mark, which is no part of the document.
        codec: what to decode them with first, or None where libexpat is to decode them.
        overrules: what libexpat is to take for the encoding, whatever is declared; or None.
    """

    base_offset: int
    codec: codecs.CodecInfo | None
    overrules: str | None


def declares_nothing(head: bytes) -> bool:
    r"""Whether a document begins as nearly all do, and so is in UTF-8: the quick way to know.

    >>> [declares_nothing(head) for head in (b"<a/>", b"<?xml ", b"<\0a", b" <a/>", b"<")]
    [True, False, False, False, False]
    """
    return head[:1] == b"<" and head[1:2] not in b"?\0"


def encoding_of(head: bytes, declared: DeclaredEncoding = "check") -> Encoding:
    """The encoding that a document says it is in, by its first ``HEAD_BYTES``.

    With "ignore", it is what the first bytes say, or else UTF-8.

    Raises:
        DocumentEncodingError: it contradicts itself, or nobody knows the encoding.
        DocumentLimitError: its declaration is too long.
        MalformedDocument: it is packed in a way that is not unpacked here.

    >>> encoding_of(b"<?xml version='1.0' encoding='latin1'?><a/>").overrules
    'iso-8859-1'
    """
    if declared == "ignore":
        return _marked(head) or Encoding(0, None, "utf-8")
    if declares_nothing(head):
        return Encoding(0, None, None)
    end = head.find(b"?>") + 2 if head.startswith(b"<?xml") else 0
    return _encoding_of(head[:end]) if end > 2 else _encoding_of.__wrapped__(head)


def _marked(head: bytes) -> Encoding | None:
    """The encoding that the first bytes say, or None; an error if they say that it is packed."""
    for mark, encoding, size in _MARKS:
        if head.startswith(mark):
            if head.startswith(mark, size) and size == len(mark):
                raise MalformedDocument(_TWO_MARKS, 1, 1)
            # Expat reads UTF-16 too, but takes halves of surrogate pairs for characters.
            codec = None if encoding == "utf-8" else codecs.lookup(encoding)
            return Encoding(size, codec, "utf-8")
    for mark, packer in _PACKED.items():
        if head.startswith(mark):
            message = f"packed with {packer}: unpack it, or pack it with gzip"
            raise MalformedDocument(message, 1, 1)
    if head[257:262] == b"ustar" and b"\0" in head[:257]:  # no XML in UTF-8 has a NUL
        raise MalformedDocument("a tar archive: give its members one by one", 1, 1)
    return None


@lru_cache(maxsize=256)
def _encoding_of(head: bytes) -> Encoding:
    """The encoding that the declaration or the first bytes name. Most streams have one only."""
    declared = DECLARATION.match(head)
    if declared and declared["encoding"] and declared["encoding"].lower() == b"utf-8":
        return Encoding(0, None, "utf-8")
    found = _marked(head)
    if found is not None:
        _check_agreement(head[found.base_offset :], found.codec.name if found.codec else "utf-8")
        return found
    codec = _declared_codec(head)
    if codec is not None and codec.name not in _NATIVE:
        return Encoding(0, codec, "utf-8")
    return Encoding(0, None, _NATIVE[codec.name] if codec is not None else None)


def in_utf8(chunks: Iterable[bytes | memoryview], codec: codecs.CodecInfo) -> Iterator[bytes]:
    r"""Transcode the chunks of a document; an empty one is passed on.

    Raises:
        DocumentEncodingError: with line and column; what is before them was yielded.

    >>> b"".join(in_utf8([b"<\0a", b"\0/\0>\0"], codecs.lookup("utf-16-le")))
    b'<a/>'
    """
    assert codec.incrementaldecoder is not None, codec.name
    decoder = codec.incrementaldecoder("strict")
    counter = LineCounter()
    is_first = True
    for chunk, is_last in chain(((bytes(chunk), False) for chunk in chunks), [(b"", True)]):
        state = decoder.getstate()
        error = None
        try:
            text = decoder.decode(chunk, is_last)
        except UnicodeDecodeError as found:
            error = found
            earlier = len(found.object) - len(chunk)
            decoder.setstate(state)
            text = decoder.decode(chunk[: max(0, found.start - earlier)], False)
        if is_first and text:
            text = text.removeprefix("\ufeff")
            is_first = False
        counter.pass_over(text)
        if text or not (chunk or is_last):
            yield text.encode("utf-8", "replace")
        if error is not None:
            message = f"bytes that are not {codec.name}, the document's encoding: {error.reason}"
            raise DocumentEncodingError(message, counter.line, counter.column)


def in_utf8_of_text(chunks: Iterable[str]) -> Iterator[bytes]:
    """The chunks of a document that is text, in UTF-8; an error at what is no character."""
    counter = LineCounter()
    for text in chunks:
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            counter.pass_over(text[: error.start])
            yield text[: error.start].encode()
            message = "a lone surrogate, which is no character"
            raise DocumentEncodingError(message, counter.line, counter.column) from None
        counter.pass_over(text)
        yield data


def check_text(head: str, declared: DeclaredEncoding = "check") -> None:
    """Refuse text that declares to be bytes of another encoding than UTF-8."""
    if head.startswith("\ufeff\ufeff"):
        raise MalformedDocument(_TWO_MARKS, 1, 1)
    found = _DECLARATION.match(head.removeprefix("\ufeff")[:HEAD_BYTES])
    name = (found and found["encoding"]) or "utf-8"
    if declared == "check" and name.lower().replace("_", "-") not in ("utf-8", "utf8"):
        instead = 'pass the bytes instead, or declared_encoding="ignore"'
        message = f"a str that declares the encoding {name!r}: {instead}"
        raise DocumentEncodingError(message, 1, 1)


def encoding_problem(data: bytes, encoding: str | None) -> str | None:
    r"""The message for data that begins with no character of a document's encoding; else None.

    The encoding is None where the document declares none.

    >>> encoding_problem(b"\xe9</a>", "utf-8").partition(":")[0]
    "the byte 0xE9 is not UTF-8, the document's encoding"
    """
    try:
        data.decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        if error.start == 0:
            why = "the document's encoding" if encoding else "and the document declares no encoding"
            return (
                f"the byte 0x{data[0]:02X} is not {(encoding or 'utf-8').upper()}, {why}: declare "
                "the one that it is in, such as iso-8859-1, or convert it"
            )
    return None


_NAME_BYTES = 1 << 10
_NAME_BEGIN = lazy_pattern(rb"[-.:\w\x80-\xff]*")
_NAME_END = lazy_pattern(rb"(?:^|[</?&%|,( \t\r\n])([-.:\w\x80-\xff]*)$")
_NEWER_NAME = (
    "the name {!r} is of XML 1.0's fifth edition: such names are read where a document has no "
    "internal DTD subset, no such name in its DOCTYPE or of an entity, and no other fault"
)


def newer_name_problem(data: bytes | memoryview | mmap.mmap, index: int) -> str | None:
    """The message for a character that names have since XML 1.0's fifth edition; else None.

    Libexpat has the names of the fourth edition.
    """
    if not 0 <= index < len(data) or data[index] < 0x80:
        return None
    from xml.parsers import expat  # noqa: PLC0415 - errors are few

    before = _NAME_END.search(bytes(data[max(0, index - _NAME_BYTES) : index]))
    after = _NAME_BEGIN.match(bytes(data[index : index + _NAME_BYTES]))
    if before is None or after is None:
        return None
    with suppress(UnicodeDecodeError):
        name, rest = (before[1] + after[0]).decode(), after[0].decode()
        start = "" if before[1][-1:] in (b"", b":") else "a"
        try:
            expat.ParserCreate("utf-8").Parse(f"<{start}{rest[0]}/>".encode(), True)
        except expat.ExpatError:
            return _NEWER_NAME.format(name) if QNAME.fullmatch(name) else None
    return None


class LineCounter:
    r"""Line and column, from 1, of the character after the text that was passed over.

    >>> counter = LineCounter()
    >>> counter.pass_over("a\n\r")
    >>> counter.pass_over("\nbc")
    >>> counter.line, counter.column
    (3, 3)
    """

    def __init__(self, line: int = 1, column: int = 1) -> None:
        self.line = line
        self.column = column
        self._is_after_return = False

    def pass_over(self, text: str) -> None:
        """Go on by a piece of text, which may begin or end inside a line end."""
        if not text:
            return
        if self._is_after_return:
            text = text.removeprefix("\n")
        self._is_after_return = text.endswith("\r")
        lines = text.replace("\r\n", "\n").replace("\r", "\n")
        self.line += lines.count("\n")
        start = lines.rfind("\n")
        self.column = len(lines) - start if start >= 0 else self.column + len(lines)


def _check_agreement(head: bytes, encoding: str) -> None:
    declared = _DECLARATION.match(head.decode(encoding, "ignore"))
    if declared is None or declared["encoding"] is None:
        return
    said = declared["encoding"]
    name = _UCS.get(said.lower(), said)
    with suppress(LookupError, UnicodeError):
        name = codecs.lookup(name).name
    if not name.startswith(encoding[:6].rstrip("-")):
        what = f"the encoding is declared as {said!r}, but the first bytes say {encoding}"
        message = f'{what}: correct it, or pass declared_encoding="ignore"'
        raise DocumentEncodingError(message, *_position(declared[0][: declared.start("encoding")]))


def _declared_codec(head: bytes) -> codecs.CodecInfo | None:
    """Python's codec for the encoding that a document declares, or None where it declares none."""
    ebcdic = head.startswith(b"\x4c\x6f\xa7\x94")  # "<?xm" in every EBCDIC code page
    text = head.decode("cp037" if ebcdic else "latin-1")
    declared = _DECLARATION.match(text)
    if declared is None or declared["encoding"] is None:
        if re.match(r"<\?xml[ \t\r\n]", text) and "?>" not in text and len(head) == HEAD_BYTES:
            message = f"the XML declaration is longer than {HEAD_BYTES:,} bytes"
            raise errors.DocumentLimitError(message, 1, 1)
        return codecs.lookup("cp037") if ebcdic else None
    name = declared["encoding"]
    position = _position(text[: declared.start("encoding")])
    try:
        codec = codecs.lookup(name)
    except (LookupError, UnicodeError):
        codec = None
    if codec is not None and codec.name in _NATIVE:
        return codec
    if codec is None or not codec._is_text_encoding or codec.name in _NOT_FOR_DOCUMENTS:
        raise DocumentEncodingError(f"unknown encoding {name!r}", *position)
    end = declared.end("encoding")
    with suppress(UnicodeError):
        if codec.decode(head[:end], "strict")[0] == text[:end]:
            return codec
    message = f"the encoding is declared as {name!r}, which these bytes are not"
    raise DocumentEncodingError(message, *position)


def _position(text: str) -> tuple[int, int]:
    counter = LineCounter()
    counter.pass_over(text)
    return counter.line, counter.column
