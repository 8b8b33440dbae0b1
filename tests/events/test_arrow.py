"""Columns of Arrow → ``EventBatch``: as if each row were a dict."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.core.errors import EventLimitError, MissingExtra, UnreadableEvents, UsageError
from tamis.core.limits import Limits
from tamis.events import arrow
from tamis.events.arrow import read_rows
from tamis.events.encode import Encoder, encode
from tamis.events.matcher import compile_events
from tamis.events.matches import EventMatch
from tests.events.decoding import decoded

TEXTS = st.sampled_from(["", "a", "né", "\U0001f41d", "x" * 13, "y" * 200])
INTEGERS = {
    pa.int8(): (-128, 127),
    pa.int16(): (-(2**15), 2**15 - 1),
    pa.int32(): (-(2**31), 2**31 - 1),
    pa.int64(): (-(2**63), 2**63 - 1),
    pa.uint8(): (0, 255),
    pa.uint16(): (0, 2**16 - 1),
    pa.uint32(): (0, 2**32 - 1),
    pa.uint64(): (0, 2**64 - 1),
}
TYPES: dict[Any, st.SearchStrategy[Any]] = {
    **{kind: st.integers(*bounds) for kind, bounds in INTEGERS.items()},
    pa.float16(): st.floats(width=16),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.string(): TEXTS,
    pa.large_string(): TEXTS,
    pa.string_view(): TEXTS,
    pa.null(): st.none(),
    pa.dictionary(pa.int8(), pa.string()): TEXTS,
    pa.dictionary(pa.uint64(), pa.large_string()): TEXTS,
    pa.dictionary(pa.int32(), pa.int64()): st.integers(-3, 3),
    pa.dictionary(pa.int16(), pa.float64()): st.sampled_from([0.5, math.inf]),
}
NAMES = ["a", "b", "", "né", "x.y", "z"]


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    """Record batches of all types with nulls, sliced, so that they begin anywhere."""
    rows = draw(st.integers(0, 12))
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=5))
    arrays = []
    for _ in names:
        kind = draw(st.sampled_from(list(TYPES)))
        values = st.lists(st.none() | TYPES[kind], min_size=rows, max_size=rows)
        arrays.append(pa.array(draw(values), kind))
    if not names:
        return pa.record_batch({})
    start = draw(st.integers(0, rows))
    return pa.record_batch(arrays, names).slice(start, draw(st.integers(0, rows)))


@given(batches(), st.lists(st.sampled_from(NAMES), unique=True), st.sampled_from([1, 3, 1 << 14]))
def test_as_rows_would_be(batch: pa.RecordBatch, names: list[str], rows: int) -> None:
    expected = decoded(encode(batch.to_pylist(), names), names)
    encoder = Encoder(names)
    assert repr(decoded(encoder.arrow(batch), names)) == repr(in_order_of(expected, batch))
    found: list[Any] = []
    for start in range(0, batch.num_rows, rows):
        found += decoded(encoder.arrow(batch.slice(start, rows)), names)
    assert repr(found) == repr(in_order_of(expected, batch))


def in_order_of(events: list[Any], batch: pa.RecordBatch) -> list[Any]:
    """Events with their attributes in the order of the columns."""
    return [
        event
        if isinstance(event, str)
        else {name: event[name] for name in batch.schema.names if name in event}
        for event in events
    ]


def one(array: Any, limits: Limits | None = None, names: list[str] | None = None) -> list[Any]:
    """The values of a column, or the messages of errors."""
    encoder = Encoder(["n"] if names is None else names, limits or Limits())
    found = decoded(encoder.arrow(pa.record_batch({"n": array})), ["n"])
    return [event if isinstance(event, str) else event.get("n") for event in found]


def test_integers_beyond_int64() -> None:
    array = pa.array([1, 2**63 - 1, 2**63, None, 2**64 - 1], pa.uint64())
    message = "the attribute 'n' is an oversized integer, beyond 64 bits: make it a float or a str"
    assert one(array) == [1, 2**63 - 1, message, None, message]
    assert one(array, names=[]) == [None] * 5
    coded = pa.array([1, 2**63, 1], pa.uint64()).dictionary_encode()
    assert one(coded) == [1, message, 1]


def bad_text(*texts: bytes | None, kind: Any = None) -> Any:
    """Strings that are not UTF-8, as files may have them."""
    found = pa.array(texts, pa.large_binary() if kind == pa.large_string() else pa.binary())
    return pa.Array.from_buffers(
        kind or pa.string(), len(texts), found.buffers(), found.null_count, found.offset
    )


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_strings_that_are_not_utf_8(kind: Any) -> None:
    array = bad_text(b"good", b"\xff", None, b"\xed\xa0\x80", "né".encode(), kind=kind)
    message = "the attribute 'n' is no UTF-8"
    assert one(array) == ["good", message, None, message, "né"]
    assert one(array[2:]) == [None, message, "né"]
    assert one(array, names=[]) == [None] * 5


def test_dictionaries_that_are_not_utf_8() -> None:
    words = bad_text(b"good", b"\xff", b"\xfe")
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.int8()), words)
    assert one(array) == ["good", "the attribute 'n' is no UTF-8", None, "good"]


def test_dictionaries_with_nulls_in_them_and_numbers_that_are_not() -> None:
    words = pa.array(["x", None])
    array = pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), words)
    assert one(array) == [None, "x", None]
    large = pa.DictionaryArray.from_arrays(pa.array([2]), pa.array(["x", "y", "z"]))
    assert one(large) == ["z"]
    damaged = pa.DictionaryArray.from_arrays(pa.array([0, 5]), words, safe=False)
    with pytest.raises(UsageError, match="the column 'n' is damaged: its dictionary is too small"):
        one(damaged)


def test_offsets_that_are_none() -> None:
    offsets = pa.py_buffer(np.array([0, 1_000_000_000, 2], np.int32))
    damaged = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ab")])
    with pytest.raises(UsageError, match="the column 'n' is damaged: "):
        one(damaged)


def test_null_columns_and_no_columns() -> None:
    assert one(pa.nulls(2)) == [None, None]
    assert one(pa.nulls(2, pa.string())) == [None, None]
    assert decoded(Encoder([]).arrow(pa.record_batch({"a": [1, 2]})), []) == [{}, {}]
    assert decoded(Encoder(["a"]).arrow(pa.record_batch({})), ["a"]) == []


def test_limits() -> None:
    limits = Limits(event_string_bytes=3, event_attributes=2)
    too_long = "the attribute 'n' is a string of 4 bytes, beyond the limit event_string_bytes = 3"
    for kind in (pa.string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        assert one(pa.array(["abc", "abcd", "éé"], kind), limits) == ["abc", too_long, too_long]
    batch = pa.record_batch({"a": [1, 1], "b": [1, 1], "c": [None, 1]})
    found = Encoder(["a"], limits).arrow(batch)
    assert decoded(found, ["a"]) == [
        {"a": 1},
        "3 attributes, beyond the limit event_attributes = 2",
    ]
    assert type(found.errors[1]) is EventLimitError


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (pa.array([[1]]), "list<item: int64>, which values cannot be: write n[] for"),
        (pa.array([[1]], pa.large_list(pa.int8())), "which values cannot be: write n"),
        (pa.array([[1]], pa.list_(pa.int8(), 1)), "which values cannot be: write n"),
        (pa.array([{"a": 1}]), "struct<a: int64>, which values cannot be: write n.field"),
        (pa.array([b"x"]), "binary, which values cannot be: cast it to a string"),
        (pa.array([b"x"], pa.large_binary()), "large_binary, which values cannot be: cast it to a"),
        (pa.array([b"x"], pa.binary(1)), "which values cannot be: cast it to a string"),
        (pa.array([1], pa.timestamp("us", "UTC")), "cast it to an integer or a string"),
        (pa.array([1], pa.date32()), "date32[day], which values cannot be: cast it to an integer"),
        (pa.array([1], pa.time64("us")), "time64[us], which values cannot be: cast it to an"),
        (pa.array([1], pa.duration("s")), "duration[s], which values cannot be: cast it to an"),
        (pa.array([1], pa.decimal128(5, 2)), "decimal128(5, 2), which values cannot be: cast it"),
        (pa.RunEndEncodedArray.from_arrays([1], [1]), "which values cannot be: decode it"),
        (pa.array([[(1, 2)]], pa.map_(pa.int8(), pa.int8())), "make it numbers, strings or"),
        (pa.array([b"x"]).dictionary_encode(), "binary, which values cannot be: cast it to a"),
    ],
)
def test_types_that_values_cannot_have(array: Any, message: str) -> None:
    assert one(array, names=[]) == [None]  # where nobody asks
    with pytest.raises(UsageError) as caught:
        one(array, names=["n"])
    assert str(caught.value).startswith("the column 'n' is of type ")
    assert message in str(caught.value)


def test_columns_of_one_name() -> None:
    batch = pa.record_batch([pa.array([1]), pa.array([2]), pa.array([3])], ["a", "b", "b"])
    with pytest.raises(UsageError, match="there are several columns 'b': rename all but one"):
        Encoder(["a"]).arrow(batch)


# ------------------------------------------------------------------------------- match_arrow

MATCHER = compile_events({"hot": "temp > 30", "a1": 'area = "a1"'})
TABLE = pa.table({
    "temp": pa.chunked_array([pa.array([35, None], pa.uint64()), pa.array([2**63], pa.uint64())]),
    "area": pa.chunked_array([["a1"], ["a1", "b"]]),
})  # fmt: skip
ANSWERS = [(1, ["hot", "a1"]), (2, ["a1"]), (3, "event-malformed")]


def said(matches: Iterator[EventMatch]) -> list[tuple[int | None, Any]]:
    return [(m.line, m.error.code if m.error else list(m)) for m in matches]


class Streamed:
    """Something else that offers Arrow's stream."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_from_everywhere(threads: int, tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    pa.parquet.write_table(TABLE, path)
    (whole,) = TABLE.combine_chunks().to_batches()
    for source in (
        TABLE,
        whole,
        TABLE.to_reader(),
        TABLE.to_batches(),
        iter(TABLE.to_batches()),
        pa.dataset.dataset(TABLE),
        pa.dataset.dataset(path),
        Streamed(),
        path,
    ):
        assert said(MATCHER.match_arrow(source, threads=threads)) == ANSWERS
    assert said(MATCHER.match_arrow(TABLE.slice(0, 0))) == []


def test_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"temp": list(range(100)), "area": ["a1", "b"] * 50})
    expected = said(MATCHER.match_arrow(table))
    assert [line for line, _ in expected] == list(range(1, 101))
    for name, size in (("ROWS", 7), ("_CELLS", 6)):
        monkeypatch.setattr(arrow, name, size)
        assert said(MATCHER.match_arrow(table, threads=2)) == expected
        assert max(part.data.num_rows for part in read_rows(table)) == (7 if name == "ROWS" else 3)


def test_errors_have_their_rows() -> None:
    *_, bad = MATCHER.match_arrow(TABLE)
    assert bad.error is not None
    assert bad.error.line == 3
    assert "oversized" in bad.error.message


def test_what_cannot_be_read(tmp_path: Path) -> None:
    missing, damaged = tmp_path / "none.parquet", tmp_path / "bad.parquet"
    damaged.write_bytes(b"PAR1 and no more")
    for source in (missing, damaged, tmp_path, Path("a\0b")):
        (match,) = MATCHER.match_arrow(source)
        assert isinstance(match.error, UnreadableEvents)
    (match,) = MATCHER.match_arrow(missing)
    assert match.error is not None
    assert match.error.message == f"cannot read {missing}: No such file or directory"
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    cut = pa.ipc.open_stream(sink.getvalue()[:-60])
    found = said(MATCHER.match_arrow(cut))
    assert found[0] == ANSWERS[0]
    assert found[-1][1] == "event-unreadable"


@pytest.mark.parametrize("source", [7, None, "events.parquet", [{"temp": 1}], b"x"])
def test_what_is_no_source(source: Any) -> None:
    with pytest.raises(UsageError, match="events are record batches"):
        list(MATCHER.match_arrow(source))


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tamis\[arrow\]'"):
        list(MATCHER.match_arrow(Path("events.parquet")))


def test_damaged_dictionaries_that_are_larger_than_the_rows() -> None:
    matcher = compile_events({"s": 'n = "x1"', "e": "n exists"})
    for second in (2_000_000_000, 5, -1):
        offsets = pa.py_buffer(np.array([0, second, 3], np.int32))
        words = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"xxx")])
        column = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), words)
        with pytest.raises(UsageError, match="the column 'n' is damaged"):
            list(matcher.match_arrow(pa.table({"n": column})))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_dictionaries_that_are_larger_than_the_rows(kind: pa.DataType) -> None:
    matcher = compile_events({"s": 'n = "x1"', "e": "n exists"})
    words = pa.array(["x0", "x1", None, "x3", "é"], kind)
    column = pa.DictionaryArray.from_arrays(pa.array([1, None, 2], pa.int8()), words)
    for part in (column, column.slice(0, 1), pa.DictionaryArray.from_arrays(
        pa.array([0], pa.int8()), words.slice(1)
    )):  # fmt: skip
        found = [list(match) for match in matcher.match_arrow(pa.table({"n": part}))]
        assert found == [["s", "e"], [], []][: len(part)]
    nulls = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.nulls(2))
    limits = Limits(event_attributes=1)
    few = compile_events({"e": "m exists"}, limits=limits)
    table = pa.table({"n": nulls, "m": [1]})
    assert [list(match) for match in few.match_arrow(table)] == [["e"]]
    assert [list(match) for match in matcher.match_arrow(table)] == [[]]


def test_errors_say_their_row() -> None:
    limits = tamis.Limits(event_string_bytes=3)
    matcher = tamis.compile_events({"s": "a = 'x'"}, limits=limits)
    rows = pa.record_batch({"a": ["x", "long"]})
    assert str([*matcher.match_arrow(rows)][1].error).startswith("row 2: ")
