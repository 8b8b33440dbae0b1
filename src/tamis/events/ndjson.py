"""Events as lines of JSON: a source is cut into parts of whole lines, which are read at once."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain
from typing import IO, Any

import orjson

from tamis.core.errors import (
    EventLimitError,
    MalformedEvent,
    UnreadableDocument,
    UnreadableEvents,
    UsageError,
)
from tamis.core.lazy import lazy_pattern
from tamis.core.limits import Limits
from tamis.core.threads import Flush
from tamis.documents.source import MAGIC, gunzipped, raw_chunks
from tamis.events.batches import line_count
from tamis.events.checks import Part

Source = bytes | bytearray | memoryview | os.PathLike[str] | IO[bytes]
"""What lines may be read from. Sources that begin as gzip does are decompressed."""

CHUNK_BYTES = 1 << 19
"""The bytes that are read at a time."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_IS_PARQUET = "this is Parquet: name it *.parquet, or give it to match_arrow()"
_IS_ARRAY = (
    "an event is an object of names and values, and this is a list: write one object a line; "
    "jq -c '.[]' makes lines of an array"
)
_KINDS = {list: "a list", str: "a string", bool: "a boolean", type(None): "null"}


def chunks(source: Source, limits: Limits) -> Iterator[Part | Flush]:
    r"""Read lines, as many as there are each time, so that a slow pipe is answered at once.

    Lines that are too long are passed over and not kept. Where the source cannot be read any
    further, the last part has the error. ``FLUSH`` comes before a read that may wait. Raises
    ``UsageError`` where lines cannot be read from such a source.

    >>> list(chunks(b'{"a": 1}\n{"a": 2}', Limits()))
    [Part(data=b'{"a": 1}\n', line=1, error=None), Part(data=b'{"a": 2}', line=2, error=None)]
    """
    if isinstance(source, str | io.TextIOBase):
        raise UsageError(
            "events are read from bytes, a pathlib.Path or a file that is open for bytes, not from "
            f"{type(source).__name__}"
        )
    file: Any = nullcontext(source)
    if isinstance(source, os.PathLike):
        try:
            file = open(source, "rb", buffering=0)  # noqa: SIM115 - it is closed below
        except (OSError, ValueError) as error:  # a NUL in the path
            reason = getattr(error, "strerror", None) or error
            message = f"cannot read {os.fspath(source)}: {reason}"
            yield Part(b"", 1, UnreadableEvents(message, 1))
            return
    with file as opened:
        yield from _recognised(_whole_lines(_pieces(opened), limits))


def _recognised(found: Iterator[Part | Flush]) -> Iterator[Part | Flush]:
    """Lines; where they are Parquet, or begin as an array does, the error says what to do."""
    for part in found:
        if isinstance(part, Flush) or part.line > 1:
            yield part
        elif part.data.startswith(b"PAR1"):
            yield Part(b"", 1, UnreadableEvents(_IS_PARQUET, 1))
            return
        elif part.data.startswith(b"["):
            yield Part(b"", 1, MalformedEvent(_IS_ARRAY, 1))
            _, _, others = part.data.partition(b"\n")
            if others:
                yield Part(others, 2)
        else:
            yield part


def _pieces(source: Any) -> Iterator[bytes]:
    """The bytes of a source, decompressed, without a byte order mark."""
    head, pieces = _with_head(map(_bytes, raw_chunks(source, CHUNK_BYTES)), MAGIC)
    if head == MAGIC:
        pieces = gunzipped(pieces)
    head, pieces = _with_head(pieces, _BYTE_ORDER_MARK)
    if head == _BYTE_ORDER_MARK:
        yield next(pieces)[len(_BYTE_ORDER_MARK) :]
    yield from pieces


def _bytes(piece: bytes | memoryview | str) -> bytes:
    if isinstance(piece, str):
        raise UnreadableDocument("cannot read the stream: it gives str, so open it for bytes")
    return bytes(piece)


def _with_head(pieces: Iterator[bytes], expected: bytes) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes of pieces, as many as are expected; and all pieces."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= len(expected) or not expected.startswith(head):
            break
    return head[: len(expected)], chain([head] if head else [], pieces)


def _whole_lines(pieces: Iterator[bytes], limits: Limits) -> Iterator[Part | Flush]:
    """Pieces that begin and end anywhere, as whole lines."""
    line = 1
    held = bytearray()  # of a line whose end was not read yet
    is_passing = False  # over the rest of a line that was too long
    try:
        for piece in pieces:
            if not piece:
                yield Flush.FLUSH
            rest = piece
            if is_passing:
                _, newline, rest = piece.partition(b"\n")
                if not newline:
                    continue
                is_passing = False
                line += 1
            end = rest.rfind(b"\n") + 1
            if end:
                data = bytes(held) + rest[:end]
                yield Part(data, line)
                line += line_count(data)
                held.clear()
            held += rest[end:]
            if len(held) > limits.event_bytes:
                yield Part(b"", line, too_long(limits, line))
                held.clear()
                is_passing = True
    except UnreadableDocument as error:
        yield Part(b"", line, UnreadableEvents(error.message, line))
        return
    if held:
        yield Part(bytes(held), line)


_SAID = {
    ".": "a number begins with a digit, as in 0.5",
    "+": "a number has no +",
    "'": "names and strings are written in double quotes",
    "N": "there is no NaN: write null, or leave the name out",
    "I": "there is no Infinity: write null, or leave the name out",
}
"""What is wrong, by the character at which JSON ends."""
_OF_SEVERAL = lazy_pattern(rb'\s*(?:[{}],?|"(?:[^"\\]|\\.)*"\s*:.*)\s*')
_ONE_LINE = ": each event is one line; jq -c . writes pretty-printed ones so"


def too_long(limits: Limits, line: int | None = None) -> EventLimitError:
    """The error of an event that has too many bytes."""
    return EventLimitError(f"longer than the limit event_bytes = {limits.event_bytes:,}", line)


# -- what is wrong with a line ------------------------------------------------------------------


def read_line(line: bytes, limits: Limits) -> dict[str, Any]:
    """The event of a line, read by the JSON library; raises an ``EventError`` where it is none.

    >>> read_line(b'{"a": [1]}', Limits())
    {'a': [1]}
    """
    if len(line) > limits.event_bytes:
        raise too_long(limits)
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _malformed(line, error) from None
    if not isinstance(found, dict):
        kind = _KINDS.get(type(found), "a number")
        raise MalformedEvent(f"an event is an object of names and values, and this is {kind}")
    return found


def _malformed(line: bytes, error: orjson.JSONDecodeError) -> MalformedEvent:
    try:
        line.decode()
    except UnicodeDecodeError as not_text:
        return MalformedEvent(f"not UTF-8, at byte {not_text.start + 1}{_utf_16(line)}")
    message = _SAID.get(line.decode()[error.pos : error.pos + 1], error.msg)
    advice = _utf_16(line) or (_ONE_LINE if _OF_SEVERAL.fullmatch(line) else "")
    return MalformedEvent(f"not JSON: {message}, at character {error.pos + 1}{advice}")


def _utf_16(line: bytes) -> str:
    """What to do about a line of UTF-16, of which every other byte is NUL as a rule."""
    if line[:2] in (b"\xff\xfe", b"\xfe\xff") or 3 * line.count(0) > len(line):
        return ": it looks like UTF-16; convert it: iconv -f UTF-16 -t UTF-8"
    return ""
