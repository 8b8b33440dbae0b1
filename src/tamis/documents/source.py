"""Where documents come from: bytes, text, files and streams → bytes that a parser can read.

``read`` gives a whole document, ``open_stream`` one of any size while it is parsed. Gzip is told by
its first bytes, and decompressed.
"""

from __future__ import annotations

import codecs
import io
import mmap
import os
import select
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import IO, Any, NamedTuple

from tamis.core.errors import DocumentLimitError, MalformedDocument, UnreadableDocument, UsageError
from tamis.core.limits import Limits
from tamis.documents import encodings
from tamis.documents.encodings import HEAD_BYTES, DeclaredEncoding, check_text
from tamis.documents.files import Member, TarMember, ZipMember

_InMemory = bytes | bytearray | memoryview | mmap.mmap
Document = _InMemory | str | os.PathLike[str] | ZipMember | TarMember | IO[bytes] | IO[str]
"""What may be given as a document. A ``str`` is XML; a file is named by a :class:`pathlib.Path`.

Whatever begins as gzip does is decompressed.
"""

MAGIC = b"\x1f\x8b"
"""How gzip begins."""
CHUNK_BYTES = 1 << 18
"""What is read at a time."""
READ_BYTES = 1 << 20
"""The same, of a file whose size is not known."""
_PAUSE_MS = 1
_EBCDIC_DECLARATION = "<??>".encode("cp037")
_MAGIC_MAX = 6  # the size of the longest of the magic numbers that are looked for
# What goes in at a time is small, since what follows a member in it is copied; what comes out at a
# time is bounded, so that a bomb ends where the caller stops.
_PIECE_IN = 1 << 14
_PIECE_OUT = 1 << 20
_WITH_HEADER = 31  # zlib's window bits for gzip


class Source(NamedTuple):
    """The bytes of a document.

    Attributes:
        encoding: the encoding that overrules the document's declaration, or None.
        name: what messages call it: the path of the file or member, or "".
        base_offset: the size of the byte order mark that stood before the bytes, where they are the
            document's own.
    """

    data: bytes | memoryview | mmap.mmap
    encoding: str | None = None
    name: str = ""
    base_offset: int = 0


def read(document: Document, limits: Limits, declared: DeclaredEncoding = "check") -> Source:
    """The bytes of a document, transcoded to UTF-8 where libexpat would not know the encoding.

    Raises:
        UnreadableDocument: the file or stream cannot be read, or is damaged gzip.
        MalformedDocument: it is packed, and not with gzip.
        DocumentEncodingError: the bytes are not in the declared encoding, or nobody knows it.
        DocumentLimitError: it is larger than ``limits.document_bytes``, or its gzip is.
        UsageError: it is no document at all.

    >>> read("<a/>", Limits())
    Source(data=b'<a/>', encoding='utf-8', name='', base_offset=0)
    """
    if type(document) is bytes and declared == "check" and encodings.declares_nothing(document):
        _check_size(len(document), limits)
        return Source(document)  # the quick way
    data = _content(document, limits)
    if isinstance(data, str):
        check_text(data, declared)
        check_markup(data)
        encoded = b"".join(encodings.in_utf8_of_text([data]))
        _check_size(len(encoded), limits)
        return Source(encoded, "utf-8")
    _check_size(len(data), limits)
    if data[: len(MAGIC)] == MAGIC:
        data = b"".join(_limited(gunzipped([memoryview(data)]), limits))
    base_offset, codec, overrules = encodings.encoding_of(bytes(data[:HEAD_BYTES]), declared)
    if base_offset:
        data = data[base_offset:]
    if codec is not None:
        data = b"".join(encodings.in_utf8([memoryview(data)], codec))
        base_offset = 0
    return Source(data, overrules, name_of(document), base_offset)


def name_of(document: Document) -> str:
    """What messages call a document: the path of the file or member, or ""."""
    if type(document) in (bytes, str, memoryview):  # to find out about the others takes longer
        return ""
    return str(document) if isinstance(document, os.PathLike | Member) else ""


def file_size(document: object) -> int | None:
    """How large a file is, in bytes: 0 if that is not known, None if it is not a regular file."""
    if not isinstance(document, os.PathLike):
        return 0
    try:
        found = os.stat(document)
    except (OSError, ValueError):  # as its reader will find
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def raw_chunks(document: Document, size: int) -> Iterator[bytes | memoryview] | Iterator[str]:
    """What a document is made of, in chunks of at most ``size``; or ``UnreadableDocument``.

    An empty chunk stands where reading on may have to wait: for a pipe, or for another stream.
    """
    if isinstance(document, str):
        return _slices(document, size)
    if isinstance(document, _InMemory):
        return _slices(_view(document), size)
    if isinstance(document, os.PathLike):
        return _file_chunks(os.fspath(document), size)
    if isinstance(document, Member):
        return document.chunks(size)
    if hasattr(document, "read"):
        return _stream_chunks(document, size)
    known = "bytes, a memoryview, an mmap, a str of XML, a pathlib.Path or an open file"
    raise UsageError(f"a document is {known}, not {type(document).__name__}")


def _content(document: Document, limits: Limits) -> bytes | memoryview | mmap.mmap | str:
    """All of a document; of one that is too large, a little more than is allowed."""
    if type(document) is bytes or isinstance(document, str | bytes):
        return document
    if isinstance(document, mmap.mmap):
        _view(document).release()  # it may be closed
        return document
    if isinstance(document, memoryview):
        return _view(document)
    if isinstance(document, os.PathLike):
        return _file_content(os.fspath(document), limits)
    pieces: list[Any] = []
    size = 0
    for piece in raw_chunks(document, limits.document_bytes + 1):
        pieces.append(piece)
        size += len(piece)
        if size > limits.document_bytes:
            break
    return _joined(pieces)


def _view(data: _InMemory) -> memoryview:
    """The bytes of what is in memory, unless it was closed or released."""
    try:
        view = memoryview(data)
        return view.cast("B") if view.c_contiguous else memoryview(view.tobytes())
    except ValueError as error:
        raise UnreadableDocument(f"cannot read it: {error}") from None


def _slices(data: Any, size: int) -> Iterator[Any]:
    return (data[start : start + size] for start in range(0, len(data), size))


@contextmanager
def _opened(path: str) -> Iterator[int]:
    """A file's descriptor: of small files, most of the time goes into Python's own objects."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UnreadableDocument(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:  # a NUL in the path
        raise UnreadableDocument(f"cannot read {path!r}: {error}") from None


def _file_content(path: str, limits: Limits) -> bytes:
    """All of a file, or a little more than is allowed."""
    with _opened(path) as file:
        size = os.fstat(file).st_size
        _check_size(size, limits)
        data = os.read(file, size + 1)
        if size and len(data) == size:
            return data
        pieces = [data]  # a pipe, or a file that is being written
        while pieces[-1] and (size := sum(map(len, pieces))) <= limits.document_bytes:
            pieces.append(os.read(file, min(READ_BYTES, limits.document_bytes + 1 - size)))
        return b"".join(pieces)


def _file_chunks(path: str, size: int) -> Iterator[bytes]:
    with _opened(path) as file:
        is_ready = _readiness(file)
        while chunk := os.read(file, size):  # what there is, of a pipe
            yield chunk
            if not is_ready(len(chunk) == size):
                yield b""


def _readiness(stream: Any) -> Callable[[bool], bool]:
    """A function that says whether more, or the end, can be read within a millisecond.

    A program at the other end of a pipe takes less to write what comes next, if it has that.
    Its argument is whether the last chunk was as large as it could be, which decides for streams
    that are no files.
    """
    if isinstance(stream, io.BytesIO | io.StringIO):
        return lambda _was_full: True
    try:
        poll = select.poll()
        poll.register(stream, select.POLLIN)
    except (AttributeError, OSError, TypeError, ValueError):  # no file, or closed, or no POSIX
        return lambda was_full: was_full
    return lambda _was_full: bool(poll.poll(_PAUSE_MS))


def _stream_chunks(stream: Any, size: int) -> Iterator[Any]:
    """All of a stream, in what it has each time: a slow pipe is answered while it goes on."""
    kind: type | None = None
    read = getattr(stream, "read1", None) or stream.read
    is_ready = _readiness(stream)
    while True:
        try:
            chunk = read(size)
        except Exception as error:  # whatever the stream's own code raises
            raise UnreadableDocument(f"cannot read the stream: {error}") from None
        if isinstance(chunk, bytearray):
            chunk = bytes(chunk)
        if not isinstance(chunk, bytes | str) or type(chunk) is not (kind or type(chunk)):
            what = f"it gave {type(chunk).__name__}, not always bytes or str"
            raise UnreadableDocument(f"cannot read the stream: {what}")
        if not chunk:
            return
        kind = type(chunk)
        yield chunk
        if not is_ready(len(chunk) == size):
            yield kind()


def _limited(pieces: Iterator[bytes], limits: Limits) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        _check_size(size, limits)
        yield piece


def too_large(limits: Limits) -> str:
    """The message for a document, or a record, that is too large."""
    return f"larger than the limit document_bytes = {limits.document_bytes:,}"


def _check_size(size: int, limits: Limits) -> None:
    if size > limits.document_bytes:
        raise DocumentLimitError(f"{too_large(limits)}: read it as records, with match_records()")


def check_markup(text: str) -> None:
    """Refuse a str without any markup."""
    if "<" not in text and text.strip():
        raise MalformedDocument(
            "a str is XML, and this has no markup: a file is named by a pathlib.Path", 1, 1
        )


class Stream(NamedTuple):
    """A document that is being read; ``encoding``, ``name`` and ``base_offset`` as in ``Source``.

    Attributes:
        chunks: its bytes: UTF-8 without a byte order mark, or what libexpat will refuse. Iterating
            may raise ``UnreadableDocument`` and ``DocumentEncodingError``. A file is closed at the
            end, or where the chunks are closed. An empty chunk stands where reading on may have to
            wait.
        is_decoded: whether the bytes are others than those of the document: they were decompressed,
            or are of an encoding that cannot be read from the middle on.
    """

    chunks: Iterator[bytes | memoryview]
    encoding: str | None
    name: str
    base_offset: int = 0
    is_decoded: bool = False


def open_stream(document: Document, declared: DeclaredEncoding = "check") -> Stream:
    """Begin to read a document: gzip is decompressed, and other encodings are transcoded to UTF-8.

    For the argument and the errors see :func:`read`.

    >>> stream = open_stream("<a/>".encode("utf-16"))
    >>> b"".join(stream.chunks), stream.encoding
    (b'<a/>', 'utf-8')
    """
    head, chunks = with_head(raw_chunks(document, CHUNK_BYTES))
    if isinstance(head, str):
        if isinstance(document, str):
            check_markup(document)
        check_text(head, declared)
        mark = "\ufeff" if head.startswith("\ufeff") else ""
        chunks = encodings.in_utf8_of_text(_without(len(mark), chunks))
        return Stream(chunks, "utf-8", name_of(document), len(mark.encode()), True)
    is_compressed = head[: len(MAGIC)] == MAGIC
    if is_compressed:
        head, chunks = with_head(gunzipped(chunks))
    base_offset, codec, overrules = encodings.encoding_of(bytes(head[:HEAD_BYTES]), declared)
    if overrules == "iso-8859-1":  # libexpat knows it, but then offsets would not be of UTF-8
        overrules, codec = "utf-8", codecs.lookup(overrules)
    chunks = _without(base_offset, chunks)
    if codec is not None:
        chunks, base_offset = encodings.in_utf8(chunks, codec), 0
    is_decoded = is_compressed or overrules not in (None, "utf-8") or codec is not None
    return Stream(chunks, overrules, name_of(document), base_offset, is_decoded)


def decompressed(document: Document) -> Iterator[Any]:
    """The bytes of a document, or its characters, in chunks; gzip is decompressed."""
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
    head: Any = _joined(pieces)
    return head, chain([head, head[:0]] if pieces and not pieces[-1] else [head], chunks)


def _joined(pieces: list[Any]) -> bytes | str:
    empty: Any = "" if pieces and isinstance(pieces[0], str) else b""
    joined: bytes | str = empty.join(pieces)
    return joined


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


def _without(count: int, chunks: Iterable[Any]) -> Iterator[Any]:
    for chunk in chunks:
        yield chunk[count:]
        count = 0


def gunzipped(chunks: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    r"""Decompress gzip, given in chunks of any size, to pieces of at most 1 MiB.

    An empty piece comes for each empty chunk. Zeros after a member are padding, as on tapes.

    Raises:
        UnreadableDocument: it is damaged, or ends too early.

    >>> import gzip
    >>> b"".join(gunzipped([gzip.compress(b"<a>"), gzip.compress(b"</a>") + b"\0\0"]))
    b'<a></a>'
    """
    member = zlib.decompressobj(_WITH_HEADER)
    is_between = False
    for chunk in chunks:
        if not chunk:
            yield b""
        for start in range(0, len(chunk), _PIECE_IN):
            given = bytes(chunk[start : start + _PIECE_IN])
            while given := given.lstrip(b"\0") if is_between else given:
                if is_between:
                    member = zlib.decompressobj(_WITH_HEADER)
                yield from _member(member, given)
                is_between = member.eof
                given = member.unused_data
    if not is_between:
        raise UnreadableDocument("damaged gzip: it ends too early")


def _member(member: zlib._Decompress, given: bytes) -> Iterator[bytes]:
    """What a member makes of ``given``; it may end before that does."""
    while not member.eof:
        try:
            piece = member.decompress(given, _PIECE_OUT)
        except zlib.error as error:
            reason = str(error).rpartition(": ")[2]
            raise UnreadableDocument(f"damaged gzip: {reason}") from None
        if piece:
            yield piece
        given = member.unconsumed_tail
        if not given and len(piece) < _PIECE_OUT:
            return
