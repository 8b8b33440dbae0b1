"""Files and streams of any size → whole lines, some thousand at a time."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from itertools import chain
from typing import IO, Any, NamedTuple

from tamis.core.errors import (
    EventError,
    MalformedEvent,
    UnreadableDocument,
    UnreadableEvents,
    UsageError,
)
from tamis.core.limits import Limits
from tamis.core.threads import Flush
from tamis.documents.source import MAGIC, gunzipped, raw_chunks
from tamis.events.ndjson.reader import too_long

Source = bytes | bytearray | memoryview | os.PathLike[str] | IO[bytes]
"""What lines may be read from. Whatever begins as gzip does is decompressed."""

CHUNK_BYTES = 1 << 18
"""What is read at a time."""

_MARK = b"\xef\xbb\xbf"

_IS_PARQUET = "this is Parquet: name it *.parquet, or give it to match_arrow()"
_IS_ARRAY = (
    "an event is an object of names and values, and this is a list: write one object a line; "
    "jq -c '.[]' makes lines of an array"
)


class Chunk(NamedTuple):
    """Lines, or one that cannot be had.

    Attributes:
        data: whole lines, each with its newline, but perhaps the last one of all.
        line: the number of the first one, from 1.
        error: why that line cannot be had; then there is no data.
    """

    data: bytes
    line: int
    error: EventError | None = None


def chunks(source: Source, limits: Limits) -> Iterator[Chunk | Flush]:
    r"""Read lines: what there is each time, so that a slow pipe is answered while it goes on.

    A line that is too long is passed over without being kept. Where the source cannot be read any
    further, the last chunk has the error. ``FLUSH`` comes before what may last.

    Raises:
        UsageError: it is nothing that lines can be read from.

    >>> list(chunks(b'{"a": 1}\n{"a": 2}', Limits()))
    [Chunk(data=b'{"a": 1}\n', line=1, error=None), Chunk(data=b'{"a": 2}', line=2, error=None)]
    """
    if isinstance(source, str | io.TextIOBase):
        raise UsageError(
            "events are read from bytes, a pathlib.Path or a file that is open for bytes, not from "
            f"{type(source).__name__}"
        )
    if not isinstance(source, os.PathLike):
        yield from _recognised(_cut(_pieces(source), limits))
        return
    try:
        file = open(source, "rb", buffering=0)  # noqa: SIM115 - it is closed below
    except (OSError, ValueError) as error:  # a NUL in the path
        reason = getattr(error, "strerror", None) or error
        message = f"cannot read {os.fspath(source)}: {reason}"
        yield Chunk(b"", 1, UnreadableEvents(message, 1))
        return
    with file:
        yield from _recognised(_cut(_pieces(file), limits))


def _recognised(found: Iterator[Chunk | Flush]) -> Iterator[Chunk | Flush]:
    """Lines; where they are Parquet, or begin as an array does, the error says what to do."""
    for chunk in found:
        if isinstance(chunk, Flush) or chunk.line > 1:
            yield chunk
        elif chunk.data.startswith(b"PAR1"):
            yield Chunk(b"", 1, UnreadableEvents(_IS_PARQUET, 1))
            return
        elif chunk.data.startswith(b"["):
            yield Chunk(b"", 1, MalformedEvent(_IS_ARRAY, 1))
            _, _, others = chunk.data.partition(b"\n")
            if others:
                yield Chunk(others, 2)
        else:
            yield chunk


def _pieces(source: Any) -> Iterator[bytes]:
    """The bytes of a source, decompressed, without a byte order mark."""
    head, pieces = _with_head(map(_bytes, raw_chunks(source, CHUNK_BYTES)), MAGIC)
    if head == MAGIC:
        pieces = gunzipped(pieces)
    head, pieces = _with_head(pieces, _MARK)
    if head == _MARK:
        yield next(pieces)[len(_MARK) :]
    yield from pieces


def _bytes(piece: bytes | memoryview | str) -> bytes:
    if isinstance(piece, str):
        raise UnreadableDocument("cannot read the stream: it gives str, so open it for bytes")
    return bytes(piece)


def _with_head(pieces: Iterator[bytes], expected: bytes) -> tuple[bytes, Iterator[bytes]]:
    """What they begin with, as long as it is what is expected; and all of them."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= len(expected) or not expected.startswith(head):
            break
    return head[: len(expected)], chain([head] if head else [], pieces)


def _cut(pieces: Iterator[bytes], limits: Limits) -> Iterator[Chunk | Flush]:
    """Pieces that begin and end anywhere, as whole lines."""
    line = 1
    held = bytearray()  # of a line whose end was not read yet
    is_passing = False  # over what is left of a line that was too long
    while True:
        try:
            piece = next(pieces, None)
        except UnreadableDocument as error:
            yield Chunk(b"", line, UnreadableEvents(error.message, line))
            return
        if piece is None:
            break
        if not piece:
            yield Flush.FLUSH
        if is_passing:
            _, newline, piece = piece.partition(b"\n")
            if not newline:
                continue
            is_passing = False
            line += 1
        end = piece.rfind(b"\n") + 1
        if end:
            data = bytes(held) + piece[:end]
            yield Chunk(data, line)
            line += data.count(b"\n")
            held.clear()
        held += piece[end:]
        if len(held) > limits.event_bytes:
            yield Chunk(b"", line, too_long(limits, line))
            held.clear()
            is_passing = True
    if held:
        yield Chunk(bytes(held), line)
