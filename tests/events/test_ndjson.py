"""Lines of JSON → events: read many at once, as if each were read by itself."""

from __future__ import annotations

import gzip
import io
import json
import os
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tamis.core.errors import EventLimitError, MalformedEvent, UnreadableEvents, UsageError
from tamis.core.limits import Limits
from tamis.core.threads import Flush
from tamis.events.checks import Part
from tamis.events.encode import Encoder
from tamis.events.ndjson import chunks
from tests.events.decoding import canonical, decoded

LIMITS = Limits(event_bytes=200, event_attributes=4, event_string_bytes=60)

ASKED = ["a", "b", "c", "d", "b:c", "t", "f", "é", ""]
"""What filters name: not x, y and z."""

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
NESTED = [
    b'{"x": [1]}',
    b'{"a": 1, "x": {}, "b": 2}',
    b'{"x": {"a": 1, "a": 2}, "a": 3}',
    b'{"x": {"y": 1, "y": [2]}, "a": 3}',
    b'{"a": 1, "x": {"a": [2], "b": {"a": 3}}} ',
    b'{"x": ["]", "}{", "\\"]", "\\\\"], "a": 1}',
    b'{"x": {"y:z": ":"}, "a": ":"}',
    b'{"x": {"\\"": [{"}": "{"}]}, "a": "]"}',
    b'{"x": [12345678901234567890, 9e99], "a": 1}',
    b'\t{ "x" : [ [ ] , { } ] , "y" : { "z" : [ ] } }\r',
    b'{"x":' + b"[" * 25 + b"]" * 25 + b"}",
]
"""Lines that can be read together, as flat ones can."""
PASSED = [
    b'{"a": 1, "x": 9223372036854775808}',
    b'{"a": 1, "x": -9223372036854775809}',
    b'{"z": 123456789012345678901234567890}',
    b'{"x": {"y": 1, "y": [2]}, "z": 99999999999999999999, "a": 5}',
    b'{"z": 99999999999999999999, "x": ["\\"]", {"{": "\\\\"}], "a": "["}',
    b'{"x": "' + b"x" * 61 + b'", "a": 1}',
    b'{"x": "' + b"x" * 61 + b'", "y": [{"y": 1, "y": 1}]}',
    b'{"x":' + b"[" * 90 + b"]" * 90 + b"}",
    b'{"x": [1], "x": [1]}',
    b'{"x": {"x": 1}, "x": 2}',
    b'{"x": {"x": 1}, "y": 1, "\\u0078": 2}',
    b'{"x": [{"x": 1}], "x": 99999999999999999999}',
    b'{"x": 0e999, "y": [-0.0E+1234567890123456789012345], "a": 1}',
]
"""Lines with what is an error where it is asked for, or with numbers that look too large."""
UNFIT = [
    b'{"x": {"a": 1}, "a": [1]}',
    b'{"x": 99999999999999999999, "a": {"b": 1}}',
    b'{"a": [1]}',
    b'{"a": {"b": 1}}',
    b'{"a": {"b": 1, "b": 2}}',
    b'{"a": 9223372036854775808}',
    b'{"a": -9223372036854775809}',
    b'{"a": 18446744073709551616}',
    b'{"a": 1' + b"0" * 150 + b"}",
    b'{"a": "' + b"x" * 61 + b'"}',
    b'{"a": ' + b"[" * 90 + b"]" * 90 + b"}",
    b'{"a": 1, "a": 1}',
    b'{"a": 1, "\\u0061": 2}',
    b'{"a": 1, "a": 2, "a": [3]}',
]
"""Lines in error because of the value of an attribute that is asked for."""
BAD = [
    b'{"a": [1}',
    b'{"b": 2]}',
    b'{"x": [1}',
    b'{"x": 2]}',
    b'{"x": 1]',
    b'{"x": [1}]',
    b'{"x": {1]}',
    b'{"x": [1]',
    b'{"x": [}',
    b'{"a": 1}, {"b": 2}',
    b'{"x": [1,]}',
    b'{"x": [1] "a": 1}',
    b'{"x": {"y" 1}}',
    b'{"x": {1: 2}}',
    b'{"x": ["\\ud800"]}',
    b'{"x": [1e999]}',
    b'{"x": ["\xff"]}',
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
    b'{"a": "' + b"x" * 200 + b'"}',
    b'{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}',
]
BLANK = [b"", b" ", b"\t\r"]


class Pairs(list[Any]):
    """The names and values of an object."""


def oracle(line: bytes) -> dict[str, Any] | None:
    """What the standard library makes of a line: what was asked for; None if it is in error."""
    try:
        found = json.loads(line.decode(), object_pairs_hook=Pairs)
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:  # also of lone surrogates, and of numbers that are infinite
        return None
    if len(line) > LIMITS.event_bytes or not isinstance(found, Pairs) or len(found) > 4:
        return None
    if any(
        count > 1 for name, count in Counter(name for name, _ in found).items() if name in ASKED
    ):
        return None
    attributes = dict(found)
    asked = {name: attributes[name] for name in ASKED if attributes.get(name) is not None}
    for value in asked.values():
        if isinstance(value, list):
            return None
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return None
        if isinstance(value, str) and len(value.encode()) > 60:
            return None
    (plain,) = canonical([asked])
    return dict(plain)


def read(data: bytes) -> list[tuple[int, Any]]:
    """The line and what was asked for, or the error, of each event."""
    batch, lines = Encoder(ASKED, LIMITS).ndjson(data)
    return list(zip(lines.tolist(), decoded(batch, ASKED), strict=True))


def read_singly(lines: list[bytes]) -> list[tuple[int, Any]]:
    """The same, each line being read by itself."""
    found = []
    for number, line in enumerate(lines, 1):
        for _, said in read(line + b"\n"):
            is_error = isinstance(said, str)
            found.append((number, said.replace("1", str(number), 1) if is_error else said))
    return found


LINES = st.lists(st.sampled_from([*FLAT, *NESTED, *PASSED, *UNFIT, *BAD, *BLANK]), max_size=8)


@given(LINES)
@example([b'{"a":1', b'"b":2}', b"{},{}"])
@example([b'{"a": "', b'"}'])
@example([b'{"a": "x\\', b'"b": 1}'])
@example([b'{"a": [1}', b'{"b": 2]}'])
@example([b'{"x": [1}', b'{"x": 2]}'])
@example([b'{"x": [', b"]}"])
@example([b'{"x": [{"y": 1}', b'{"z": 1}]}'])
@example([b"[", b"]"])
@example([b'{"a": 1}, {"b": 2}'])
@example([b'{"x": 1]', b'{"x": [2}'])
def test_many_are_read_as_each_by_itself(lines: list[bytes]) -> None:
    expected = read_singly(lines)
    assert read(b"".join(line + b"\n" for line in lines)) == expected
    if lines and lines[-1]:
        assert read(b"\n".join(lines)) == expected


def test_lines_need_no_second_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.events.reader.read_line", None)
    lines = [*FLAT, *NESTED, *PASSED[:-1], *UNFIT]
    for line, (_, found) in zip(lines, read(b"\n".join(lines)), strict=True):
        expected = oracle(line)
        assert isinstance(found, str) if expected is None else repr(found) == repr(expected)


PIECES = [b"{", b"}", b"[", b"]", b'"', b'"a"', b'"b"', b":", b",", b"\\", b" ", b"\r", b"1", b"\n"]


LARGER = [b'{"a":', b'{"a":1}', b'{"b":"x"}', b'{"x":[', b'{"x":{"a":', b'"x":', b"]}", b"}}"]


@given(st.lists(st.sampled_from([*PIECES, *LARGER]), max_size=24))
@example([b'{"x":[', b'{"x":[', b"]}", b"]}", b"\n", b'{"a":1}'])
def test_soup(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    lines = data.split(b"\n")
    found = read(data + b"\n")
    assert found == read_singly(lines)
    for line, said in found:
        assert (None if isinstance(said, str) else said) == oracle(lines[line - 1])


@pytest.mark.parametrize("line", [*FLAT, *NESTED, *PASSED, *UNFIT, *BAD])
def test_one_line_against_the_standard_library(line: bytes) -> None:
    ((_, found),) = read(line)
    expected = oracle(line)
    assert (expected is None) == (line in [*UNFIT, *BAD])
    assert found.startswith("line 1: ") if expected is None else repr(found) == repr(expected)


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
        (b'{"a":[1]}', "the attribute 'a' is of type list: write a[] for some element of it"),
        (b'{"a":{}}', "the attribute 'a' is of type dict: write a.field for what is in it"),
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
        (b'{"a":1,"b":1,"c":1,"d":1,"e":1}', "5 attributes, beyond the limit event_attributes = 4"),
    ],
)
def test_messages(line: bytes, message: str) -> None:
    found = Encoder(ASKED, LIMITS).ndjson(b'{"a": 1}\n\n' + line + b"\n", 8)
    error = found.batch.errors[1]
    assert error.message.startswith(message)
    assert error.line == found.lines[1] == 10
    assert isinstance(error, EventLimitError if "limit" in message else MalformedEvent)


DEPTHS = [2, 62, 63, 64, 65, 500, 990, 1_023, 1_024]
TOO_DEEP = [1_025, 1_100, 5_000, 100_000]  # for the library


def deep(depth: int, others: str = "") -> list[bytes]:
    """Lines that are so deep in an attribute x."""
    inner = depth - 1
    values = ("[" * inner + "]" * inner, '{"y":' * inner + "1" + "}" * inner)
    return [f'{{"a": 7, "x": {value}{others}}}'.encode() for value in values]


@pytest.mark.parametrize("depth", [*DEPTHS, *TOO_DEEP])
@pytest.mark.parametrize("others", ["", ', "z": 99999999999999999999'])
def test_depth(depth: int, others: str) -> None:
    """Also where the standard library's recursion would not do."""
    data = b'{"a": 1}\n%b\n{"a": 2}\n%b' % tuple(deep(depth, others))
    expected = ["not JSON: depth"] if depth in TOO_DEEP else [{"a": 7}]
    found = decoded(Encoder(["a"]).ndjson(data).batch, ["a"])
    cut = [each.split(": ", 1)[1][:15] if isinstance(each, str) else each for each in found]
    assert cut == [{"a": 1}, *expected, {"a": 2}, *expected]


@pytest.mark.parametrize("depth", [*DEPTHS, *TOO_DEEP])
def test_depth_hides_no_error(depth: int) -> None:
    doubled, asked = b"\n".join(deep(depth, ', "b": 1, "b": 1')), b"\n".join(deep(depth))
    oversized = b"\n".join(deep(depth, ', "b": 99999999999999999999'))
    for data, message in (
        (doubled, "there are several attributes 'b'"),
        (asked, "the attribute 'x' is of type "),
        (oversized, "the attribute 'b' is an oversized integer"),
    ):
        names = ["x"] if data is asked else ["b"]
        errors = Encoder(names).ndjson(data).batch.errors
        assert list(errors) == [0, 1]
        for error in errors.values():
            assert type(error) is MalformedEvent
            assert error.message.startswith("not JSON" if depth in TOO_DEEP else message)


def test_where_there_are_several_errors_the_first_one_is_told() -> None:
    data = b'{"a": 1, "b": {"a": 1}, "c": [2], "a:": []}\n{"x": [], "c": 3}\n{"c": []}'
    found = Encoder(["c", "b"]).ndjson(data, 5).batch
    assert decoded(found, ["c", "b"]) == [
        "line 5: the attribute 'b' is of type dict: write b.field for what is in it",
        {"c": 3},
        "line 7: the attribute 'c' is of type list: write c[] for some element of it",
    ]


def test_what_is_in_error_whatever_is_asked_for() -> None:
    data = b"\n".join([*BAD, *UNFIT, *FLAT, *NESTED, *PASSED])
    some, none = (Encoder(names, LIMITS).ndjson(data).batch for names in (ASKED, []))
    assert sorted(some.errors) == list(range(len(BAD) + len(UNFIT)))
    assert sorted(none.errors) == list(range(len(BAD)))


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
            if isinstance(chunk, Part) and chunk.error is not None:
                assert chunk.error.message == too_long
                yield chunk.line, True
            elif isinstance(chunk, Part):
                found = Encoder(ASKED, LIMITS).ndjson(chunk.data, chunk.line)
                for error in found.batch.errors.values():
                    yield error.line, error.message == too_long

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
    (chunk,) = (c for c in chunks(Path("a\0b"), LIMITS) if isinstance(c, Part))
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
        os.write(writable, b"{}\n{")
        assert next(found) == Part(b"{}\n", 1)
        assert next(found) is Flush.FLUSH
        os.write(writable, b"}\n")
        assert next(found) == Part(b"{}\n", 2)
        os.close(writable)
        assert list(found) == []
