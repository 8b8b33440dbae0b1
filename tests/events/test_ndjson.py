"""Lines of JSON → events: read many at once, as if each were read by itself."""

from __future__ import annotations

import gzip
import io
import json
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tamis.errors import EventLimitError, MalformedEvent, UnreadableEvents, UsageError
from tamis.events.encode import Encoder
from tamis.events.ndjson.kernels import join_lines
from tamis.events.ndjson.lines import Chunk, chunks
from tamis.events.ndjson.reader import read_lines
from tamis.limits import Limits
from tamis.matching.threads import Flush

LIMITS = Limits(event_bytes=200, event_attributes=4, event_string_bytes=60)

FLAT = [
    b"{}",
    b'{"a":1}',
    b' {"a" : 1 , "b": "x"}\t\r',
    b'{"a": "{\\"b\\": [1]}"}',
    b'{"a": "\\\\", "b:c": ":"}',
    b'{"a": "\\\\\\"", "b": "}"}',
    b'{"a": "\\u007b\\u0022"}',
    b'{"a": "\\ud83d\\ude00"}',
    '{"é": "né"}'.encode(),
    b'{"": null, "t": true, "f": false}',
    b'{"a": 9223372036854775807}',
    b'{"a": -9223372036854775808}',
    b'{"a": 1234567890123456789, "b": 0.1234567890123456789012345}',
    b'{"a": 1e30, "b": -0, "c": -0.0, "d": 1E+2}',
    b'{"a": 9223372036854775808.0, "b": 1e-999}',
    b'{"a": "12345678901234567890"}',
]
BAD = [
    b'{"a":1',
    b'"b":2}',
    b"{},{}",
    b"{}{}",
    b"{} {",
    b"},{",
    b"[]",
    b"[{}]",
    b"]",
    b"[",
    b"1",
    b"null",
    b"x",
    b'"x"',
    b'"',
    b'{"a": "',
    b'"}',
    b'{"a": "x\\',
    b'"b": 1}',
    b'{"a": "\\"}',
    b'{"a": "\t"}',
    b'{"a": "\x00"}',
    b"\x00",
    b"\x0c{}",
    b'{"a": NaN}',
    b'{"a": Infinity}',
    b'{"a": 1e999}',
    b'{"a": -1e999}',
    b'{"a": 01}',
    b'{"a": 1.}',
    b'{"a": +1}',
    b'{"a": 1,}',
    b'{"a": 1} // c',
    b"{'a': 1}",
    b"{a: 1}",
    b'{"a" 1}',
    b'{"a": 1: 2}',
    b'{"a": 1 "b": 2}',
    b'{"a": "\\ud800"}',
    b'{"\\udc00": 1}',
    b'{"a": "\xff"}',
    b'{"a": "\xed\xa0\x80"}',
    b'\xef\xbb\xbf{"a": 1}',
    b'{"a": 1, "a": 1}',
    b'{"a": 1, "\\u0061": 2}',
    b'{"a": 1, "a": 2, "a": [3]}',
    b'{"a": [1]}',
    b'{"a": {"b": 1}}',
    b'{"a": {"b": 1, "b": 2}}',
    b'{"a": 9223372036854775808}',
    b'{"a": -9223372036854775809}',
    b'{"a": 18446744073709551616}',
    b'{"a": 1' + b"0" * 150 + b"}",
    b'{"z": 123456789012345678901234567890}',
    b'{"a": "' + b"x" * 61 + b'"}',
    b'{"a": "' + b"x" * 200 + b'"}',
    b'{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}',
    b'{"a": ' + b"[" * 90 + b"]" * 90 + b"}",
]
BLANK = [b"", b" ", b"\t\r"]


def oracle(line: bytes) -> dict[str, Any] | None:
    """What the standard library makes of a line; None where it is in error."""
    try:
        found = json.loads(line.decode(), object_pairs_hook=list, parse_constant=lambda _: [])
    except (ValueError, RecursionError):
        return None
    if len(line) > LIMITS.event_bytes or not isinstance(found, list) or len(found) > 4:
        return None
    if found == [] and not line.strip().startswith(b"{"):
        return None
    if not all(isinstance(pair, tuple) for pair in found):
        return None
    attributes = dict(found)
    if len(attributes) < len(found):
        return None
    for value in [*attributes, *attributes.values()]:
        if isinstance(value, list) or value in (float("inf"), float("-inf")):
            return None
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return None
        if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
            return None
    if any(isinstance(v, str) and len(v.encode()) > 60 for v in attributes.values()):
        return None
    return attributes


def read(data: bytes) -> list[tuple[int, Any]]:
    """The line and the attributes, or the error, of each event."""
    found = read_lines(data, 1, LIMITS)
    assert all(found.events[number] == {} for number in found.errors)
    return [
        (line, str(found.errors[number]) if number in found.errors else repr(attributes))
        for number, (line, attributes) in enumerate(
            zip(found.lines.tolist(), found.events, strict=True)
        )
    ]


def read_singly(lines: list[bytes]) -> list[tuple[int, Any]]:
    """The same, each line being read by itself."""
    found = []
    for number, line in enumerate(lines, 1):
        for _, said in read(line + b"\n"):
            found.append((number, said.replace("line 1: ", f"line {number}: ", 1)))
    return found


LINES = st.lists(st.sampled_from([*FLAT, *BAD, *BLANK]), max_size=8)


@given(LINES)
@example([b'{"a":1', b'"b":2}', b"{},{}"])
@example([b'{"a": "', b'"}'])
@example([b'{"a": "x\\', b'"b": 1}'])
def test_many_are_read_as_each_by_itself(lines: list[bytes]) -> None:
    expected = read_singly(lines)
    assert read(b"".join(line + b"\n" for line in lines)) == expected
    if lines and lines[-1]:
        assert read(b"\n".join(lines)) == expected


@given(st.lists(st.sampled_from([*FLAT, *BLANK]), min_size=1, max_size=20))
def test_flat_objects_need_no_second_reading(lines: list[bytes]) -> None:
    found = read_lines(b"\n".join(lines) + b"\n", 1, LIMITS)
    assert not found.errors
    assert found.events == [json.loads(line) for line in lines if line.strip()]


PIECES = [b"{", b"}", b"[", b"]", b'"', b'"a"', b'"b"', b":", b",", b"\\", b" ", b"\r", b"1", b"\n"]


@given(st.lists(st.sampled_from([*PIECES, b'{"a":', b'{"a":1}', b'{"b":"x"}']), max_size=24))
def test_soup(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    lines = data.split(b"\n")
    assert read(data + b"\n") == read_singly(lines)


@pytest.mark.parametrize("line", [*FLAT, *BAD])
def test_one_line_against_the_standard_library(line: bytes) -> None:
    ((_, found),) = read(line)
    expected = oracle(line)
    assert (found == repr(expected)) if line in FLAT else (expected is None)
    assert found.startswith("line 1: ") == (line in BAD)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"a":1', "not JSON: unexpected end of data, at character 7"),
        (b"[]", "an event is an object of names and values, and this is a list"),
        (b"1", "an event is an object of names and values, and this is a number"),
        (b'"x"', "an event is an object of names and values, and this is a string"),
        (b"true", "an event is an object of names and values, and this is a boolean"),
        (b"null", "an event is an object of names and values, and this is null"),
        (b'{"a":1,"a":2}', "there are several attributes 'a': give each name once"),
        (
            b'{"a":[1]}',
            "the attribute 'a' is of type list: make what is in it attributes of their own",
        ),
        (
            b'{"a":{}}',
            "the attribute 'a' is of type dict: make what is in it attributes of their own",
        ),
        (
            b'{"a":1' + b"0" * 99 + b"}",
            "the attribute 'a' is an oversized integer, beyond 64 bits: make it a float or a str",
        ),
        (b'{"a":1e999}', "not JSON: number is infinity when parsed as double, at character 6"),
        (b'{"a":"\xff"}', "not UTF-8, at byte 7"),
        (b" " * 201 + b"{}", "longer than the limit event_bytes = 200"),
        (
            b'{"a":"' + b"x" * 61 + b'"}',
            "the attribute 'a' is a string of 61 bytes, beyond the limit event_string_bytes = 60",
        ),
        (
            b'{"a":1,"b":1,"c":1,"d":1,"e":1}',
            "5 attributes, beyond the limit event_attributes = 4",
        ),
    ],
)
def test_messages(line: bytes, message: str) -> None:
    found = read_lines(b'{"a": 1}\n\n' + line + b"\n", 8, LIMITS)
    error = found.errors[1]
    assert error.message.startswith(message)
    assert error.line == found.lines[1] == 10
    assert isinstance(error, EventLimitError if "limit" in message else MalformedEvent)


def test_deep_nesting() -> None:
    for depth in (500, 990, 1_020, 5_000, 100_000):
        for line in (b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth):
            found = read_lines(b'{"a":' + line + b"}", 1, Limits())
            assert type(found.errors[0]) is MalformedEvent
            doubled = read_lines(b'{"a":' + line + b',"a":1}', 1, Limits())
            assert type(doubled.errors[0]) is MalformedEvent


def test_demand_does_not_change_what_is_in_error() -> None:
    data = b"\n".join([*FLAT, *BAD])
    some, none = (Encoder(names, LIMITS).ndjson(data) for names in (["a", "b"], []))
    assert list(some.batch.errors) == list(none.batch.errors)
    assert len(some.batch.errors) == len(BAD)


def test_one_specialisation() -> None:
    read_lines(b"{}", 1, LIMITS)
    read_lines(b"{}\n" * 3, 7, Limits(event_bytes=0))
    assert len(join_lines.signatures) == 1


# ------------------------------------------------------------------------- files and streams


def joined(source: Any, limits: Limits = LIMITS) -> list[tuple[int, str]]:
    """All that is read of a source: line numbers, and lines or errors."""
    found: list[tuple[int, str]] = []
    for chunk in chunks(source, limits):
        if isinstance(chunk, Flush):
            continue
        if chunk.error is not None:
            assert chunk.error.line == chunk.line
            found.append((chunk.line, str(chunk.error)))
        else:
            lines = chunk.data.decode().splitlines(keepends=True)
            found += list(enumerate(lines, chunk.line))
    return found


class Dripping(io.RawIOBase):
    """A stream that gives so many bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self.data, self.size = data, size

    def read(self, size: int = -1) -> bytes:
        piece, self.data = self.data[: self.size], self.data[self.size :]
        return piece


TEXT = b"first\nsecond\r\n\n\nfifth\nlast"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_pieces_of_any_size(size: int, mark: bytes, pack: Any, tmp_path: Path) -> None:
    expected = list(enumerate(TEXT.decode().splitlines(keepends=True), 1))
    data = pack(mark + TEXT)
    path = tmp_path / "x"
    path.write_bytes(data)
    sources = [data, bytearray(data), memoryview(data), path, io.BytesIO(data)]
    for source in [*sources, Dripping(data, size)]:
        assert joined(source) == expected
    with path.open("rb") as file:
        assert joined(file) == expected


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_lines_that_are_too_long(size: int) -> None:
    lines = [b"a" * 200, b"b" * 201, b"", b"c" * 5_000, b"d" * 201]
    too_long = "longer than the limit event_bytes = 200"

    def answers(data: bytes) -> Iterator[tuple[int, bool]]:
        for chunk in chunks(Dripping(data, size), LIMITS):
            if isinstance(chunk, Chunk) and chunk.error is not None:
                assert chunk.error.message == too_long
                yield chunk.line, True
            elif isinstance(chunk, Chunk):
                found = read_lines(chunk.data, chunk.line, LIMITS)
                for number, error in found.errors.items():
                    yield int(found.lines[number]), error.message == too_long

    for end in (b"", b"\n"):
        expected = [(1, False), (2, True), (4, True), (5, True)]
        assert list(answers(b"\n".join(lines) + end)) == expected


def test_what_is_too_long_is_not_kept() -> None:
    class Endless(io.RawIOBase):
        left = 400

        def read(self, size: int = -1) -> bytes:
            self.left -= 1
            return b"x" * size if self.left else b""

    tracemalloc.start()
    found = joined(Endless(), Limits(event_bytes=1 << 20))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == [(1, "line 1: longer than the limit event_bytes = 1,048,576")]
    assert peak < 8 << 20


def test_gzip_that_ends_too_early() -> None:
    data = gzip.compress(b"first\nsecond\nthird")[:-12]
    found = joined(data)
    assert found[-1][1].endswith("damaged gzip: it ends too early")
    assert found[:-1] == [(1, "first\n"), (2, "second\n")]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    ((line, message),) = joined(tmp_path / "none")
    assert (line, message) == (1, f"line 1: cannot read {tmp_path}/none: No such file or directory")
    ((_, message),) = joined(tmp_path)
    assert "Is a directory" in message
    (chunk,) = (c for c in chunks(Path("a\0b"), LIMITS) if isinstance(c, Chunk))
    assert isinstance(chunk.error, UnreadableEvents)


@pytest.mark.parametrize("source", ["events.ndjson", io.StringIO("{}"), 7, None])
def test_what_is_no_source(source: Any) -> None:
    with pytest.raises(UsageError):
        list(chunks(source, LIMITS))


def test_text_streams_say_so() -> None:
    class Text:
        def read(self, size: int) -> str:
            return "{}"

    ((_, message),) = joined(Text())
    assert "bytes" in message


def test_a_pipe_that_pauses() -> None:
    """What it has is given at once, and FLUSH comes before what lasts."""
    readable, writable = os.pipe()
    with open(readable, "rb") as source:
        found = chunks(source, LIMITS)
        assert next(found) is Flush.FLUSH
        os.write(writable, b"{}\n{")
        assert next(found) == Chunk(b"{}\n", 1)
        assert next(found) is Flush.FLUSH
        os.write(writable, b"}\n")
        assert next(found) == Chunk(b"{}\n", 2)
        os.close(writable)
        assert list(found) == []
