"""Events as lines of JSON: a source is cut into parts of whole lines, which are read at once."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Container, Iterator, Sequence
from contextlib import nullcontext
from itertools import chain
from typing import IO, Any

import numpy as np
import orjson

from tamis.core.arrays import Int32, Int64, freeze
from tamis.core.errors import (
    EventError,
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
from tamis.events.checks import Part, checked, duplicate
from tamis.events.kernels.values import BLANK, ODD, join_lines

Source = bytes | bytearray | memoryview | os.PathLike[str] | IO[bytes]
"""What lines may be read from. Sources that begin as gzip does are decompressed."""

CHUNK_BYTES = 1 << 18
"""The bytes that are read at a time."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_IS_PARQUET = "this is Parquet: name it *.parquet, or give it to match_arrow()"
_IS_ARRAY = (
    "an event is an object of names and values, and this is a list: write one object a line; "
    "jq -c '.[]' makes lines of an array"
)
_KINDS = {list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
_STRING_OR_BRACKET = lazy_pattern(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[][{}]')


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
                line += data.count(b"\n")
                held.clear()
            held += rest[end:]
            if len(held) > limits.event_bytes:
                yield Part(b"", line, _too_long(limits, line))
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


def _too_long(limits: Limits, line: int | None = None) -> EventLimitError:
    return EventLimitError(f"longer than the limit event_bytes = {limits.event_bytes:,}", line)


# -- lines → events ----------------------------------------------------------------------------


def read_lines(
    data: bytes, first_line: int, names: Container[str], limits: Limits, inside: bool = False
) -> tuple[list[dict[str, Any]], Int64, dict[int, EventError]]:
    r"""Read lines, each an object; blank ones are skipped, and the last one may lack its newline.

    Returns the attributes of each event, none of those in error; the line of each; and errors by
    event number. Values of the wanted ``names`` are plain, or lists and dicts, which the caller has
    to refuse. Other attributes may have any value, or be missing; but lists and dicts are read, if
    they are looked into (``inside``).

    >>> data = b'{"a": 1, "b": [{}]}\n\n{"b": 1, "b": 2}\n{"a": [1]}'
    >>> events, lines, errors = read_lines(data, 1, ["a"], Limits())
    >>> events, lines
    ([{'a': 1, 'b': [{}]}, {}, {'a': [1]}], array([1, 3, 4]))
    >>> print(errors[1])
    line 3: there are several attributes 'b': give each name once
    """
    total = data.count(b"\n") + (data[-1:] not in (b"", b"\n"))
    starts, counts = np.empty(total + 1, np.int64), np.empty(total, np.int32)
    joined = np.empty(len(data) + 2, np.uint8)
    line_max = min(limits.event_bytes, limits.event_string_bytes)
    size = join_lines(
        np.frombuffer(data, np.uint8), line_max, limits.event_attributes, starts, counts, joined
    )
    present = np.flatnonzero(counts != BLANK)
    starts, ends, counts = starts[present], starts[present + 1], counts[present]
    events, suspects = _read_joined(joined[:size].data, counts)
    errors: dict[int, EventError] = {}
    for number in suspects:
        line = data[starts[number] : ends[number]].removesuffix(b"\n")
        try:
            events[number] = read_line(line, int(counts[number]), names, limits, inside)
        except EventError as error:
            events[number] = {}
            errors[number] = type(error)(error.message, first_line + int(present[number]))
    lines = present + first_line
    freeze(lines)
    return events, lines, errors


def _read_joined(joined: memoryview, counts: Int32) -> tuple[list[dict[str, Any]], Sequence[int]]:
    """The events of lines, and the numbers of those that have to be read by themselves."""
    try:
        found = orjson.loads(joined)
    except orjson.JSONDecodeError:
        return [{}] * len(counts), range(len(counts))
    is_odd = counts == ODD
    if is_odd.any():
        others = iter(found)
        found = [{} if odd else next(others) for odd in is_odd.tolist()]
    sizes = np.fromiter(map(len, found), np.int64, len(found))
    return found, np.flatnonzero(sizes != counts).tolist()


def read_line(
    line: bytes, count: int, names: Container[str], limits: Limits, inside: bool = False
) -> dict[str, Any]:
    """One event, as ``read_lines`` returns it.

    ``count`` is the number of names that the line has if it is an object, or ODD. Raises an
    ``EventError`` for a line that is no event, or is beyond a limit.
    """
    if len(line) > limits.event_bytes:
        raise _too_long(limits)
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _malformed(line, error) from None
    if not isinstance(found, dict):
        kind = _KINDS.get(type(found), "a number")
        raise MalformedEvent(f"an event is an object of names and values, and this is {kind}")
    if len(found) == count:
        return found
    # orjson keeps one of two equal names, and makes floats of large integers.
    plain = json.loads(_emptied(line), object_pairs_hook=_object, parse_int=_integer)
    if inside:
        plain |= {name: value for name, value in found.items() if type(value) in (dict, list)}
    return checked(plain, names, limits)


def _emptied(line: bytes) -> bytes:
    """An object of JSON without the contents of its lists and objects, however deep they are.

    >>> _emptied(b'{"a": [1, {"b": 2}], "c": {"}": 1}, "d": "[1]"}')
    b'{"a": [], "c": {}, "d": "[1]"}'
    """
    pieces = []
    depth = copied = 0
    for found in _STRING_OR_BRACKET.finditer(line):
        bracket = found[0]
        if bracket in (b"{", b"["):
            depth += 1
            if depth == 2:
                pieces.append(line[copied : found.end()])
        elif bracket in (b"}", b"]"):
            if depth == 2:
                copied = found.start()
            depth -= 1
    return b"".join([*pieces, line[copied:]])


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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise duplicate(name)
        found[name] = value
    return found


def _integer(digits: str) -> int:
    """An integer; if it has very many digits, another one that is beyond 64 bits too."""
    return int(digits[:40])
