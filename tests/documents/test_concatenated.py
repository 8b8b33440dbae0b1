"""Documents one after the other: each is what it is alone, as soon as it is complete."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Iterator

import pytest

import tamis
from tamis.core.errors import DocumentEncodingError, DocumentError, UsageError
from tamis.core.limits import Limits
from tamis.core.threads import Flush
from tamis.documents.concatenated import By, split

PLAIN = [
    b"<?xml version='1.0' encoding='latin1'?>\n<!DOCTYPE a [<!ENTITY e '<b>]>'> <!-- ' -->]>\n"
    b"<a>&e;\xe9</a>",
    b"<!DOCTYPE a SYSTEM 'a[.dtd'><a b='>' c=\"'/>\">\n<![CDATA[</a>]]><!-- </a> --><?x </a>?></a>",
    b"<c/>",
    b"<!-- <?xml --><?xml-x <d>?><a><a/><b></b ></a>",
]


def told(found: Iterator[object]) -> list[object]:
    return [str(item) if isinstance(item, DocumentError) else item for item in found]


class Pieces:
    """A stream that gives some bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self.pieces = [data[place : place + size] for place in range(0, len(data), size)]

    def read(self, _size: int = -1) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""


@pytest.mark.parametrize("size", [1, 5, 1 << 20])
@pytest.mark.parametrize("between", [b"", b"\n", b" \r\n\t"])
def test_each_is_what_it_is_alone(between: bytes, size: int) -> None:
    data = between.join([*PLAIN, b""])
    assert list(split(Pieces(data, size))) == PLAIN
    assert list(split(gzip.compress(data))) == PLAIN


def test_what_stands_between_belongs_to_the_next_one_or_to_none() -> None:
    data = (
        b" <!-- 1 --><a/><!-- 2 --><?x?>\n<?xml version='1.0'?><b/><!-- 3 --><c/><?y?><!-- 4 -->\n"
    )
    assert list(split(data)) == [b"<!-- 1 --><a/>", b"<?xml version='1.0'?><b/>", b"<!-- 3 --><c/>"]
    assert list(split("\ufeff<a/>\n<é>ü</é>")) == ["\ufeff<a/>", "<é>ü</é>"]
    assert list(split(b"")) == list(split(b"\n\n")) == []


@pytest.mark.parametrize("size", [1, 4, 1 << 20])
def test_a_byte_order_mark_belongs_to_the_declaration_behind_it(size: int) -> None:
    marked = "\ufeff<?xml version='1.0'?><a/>".encode()
    assert list(split(Pieces(marked + b"\n" + marked + marked, size))) == [marked] * 3
    lost = list(split(Pieces(b"<a></b>" + marked, size)))
    assert isinstance(lost[0], DocumentError)
    assert lost[1:] == [marked]


@pytest.mark.parametrize("by", ["xml", "lines", "nul"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_encodings_without_ascii_are_an_error(by: By, encoding: str) -> None:
    (error,) = split("<a/>\n<b/>".encode(encoding), by)
    assert isinstance(error, DocumentEncodingError)


def test_comments_without_an_end_are_read_once() -> None:
    (rest,) = split(b"<!-- " * 1_000_000)  # minutes, if each looked for its end
    assert len(rest) == 5_000_000  # type: ignore[arg-type]


def test_bounds_of_another_kind_are_refused() -> None:
    with pytest.raises(UsageError, match="limits is"):
        split(b"<a/>", limits=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_reading_goes_on_where_a_document_begins_for_certain(size: int) -> None:
    rest = "; what follows, up to the next XML declaration, was not read"
    data = (
        b"<a/><b><c></b><lost/><?xml version='1.0'?><d><e><?xml version='1.0'?><f/>"
        b"<g h='1<2'/><lost/><?xml version='1.0'?></i><?xml version='1.0'?><j/>k<l/><m>"
    )
    assert told(iter(split(Pieces(data, size)))) == [
        b"<a/>",
        f"line 1, column 9: mismatched tag: <c> is open{rest}",
        b"<?xml version='1.0'?><d><e>",
        b"<?xml version='1.0'?><f/>",
        f"line 1, column 8: not well-formed (invalid token){rest}",
        f"line 1, column 23: not well-formed (invalid token){rest}",
        b"<?xml version='1.0'?><j/>",
        b"k<l/>",
        b"<m>",
    ]


@pytest.mark.parametrize(("by", "end"), [("lines", b"\n"), ("nul", b"\0")])
def test_lines(by: By, end: bytes) -> None:
    documents = [b"<a/>", b"<b>", b"<?xml version='1.0'?><c/>"]
    for size in (1, 1 << 20):
        assert list(split(Pieces(end.join([b"", *documents, b" "]), size), by)) == documents
    large = b"<a>" + b"x" * 50 + b"</a>"
    found = split(Pieces(end.join([b"<a/>", large, b"<b/>"]), 7), by, Limits(document_bytes=20))
    assert told(iter(found)) == [b"<a/>", "larger than the limit document_bytes = 20", b"<b/>"]


def test_what_is_too_large_is_not_kept() -> None:
    text, token = b"<a><b/>" + b"x" * 500 + b"</a>", b"<!-- " + b"x" * 500 + b"--><a/>"
    found = split(Pieces(b"<c/>" + text + b"<d/>", 10), limits=Limits(document_bytes=50))
    assert told(iter(found)) == [b"<c/>", "larger than the limit document_bytes = 50", b"<d/>"]
    found = split(
        Pieces(token + b"<?xml version='1.0'?><d/>", 10), limits=Limits(document_bytes=50)
    )
    assert told(iter(found)) == [
        "larger than the limit document_bytes = 50"
        "; what follows, up to the next XML declaration, was not read",
        b"<?xml version='1.0'?><d/>",
    ]


def test_what_cannot_be_split() -> None:
    assert "ASCII" in told(iter(split("<a/>".encode("utf-16"))))[0]
    assert told(iter(split(gzip.compress(b"<a/>")[:-9]))) == [
        b"<a/>",
        "damaged gzip: it ends too early",
    ]
    with pytest.raises(UsageError, match="'xml', 'lines' or 'nul', not 'json'"):
        split(b"", "json")  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("by", ["xml", "lines"])
def test_a_pipe_that_pauses_is_answered(by: By, threads: int) -> None:
    source, sink = os.pipe()
    matcher = tamis.compile({"b": "//b"})
    with open(source, "rb") as stream:
        os.write(sink, b"<a/>\n<b/>\n<c")
        matches = matcher.match_many(split(stream, by), threads)
        assert [list(next(matches)) for _ in range(2)] == [[], ["b"]]
        os.write(sink, b"/>\n<b>\n")
        assert list(next(matches)) == []
        os.write(sink, b"</b>\n")
        os.close(sink)
        assert [match.error is None for match in matches] == (
            [True] if by == "xml" else [False, False]
        )
    assert not any(thread.name.startswith("tamis") for thread in threading.enumerate())


def test_flushes_are_only_for_those_who_ask() -> None:
    found = list(split(Pieces(b"<a/><b/>", 3)).items())
    assert Flush.FLUSH in found
    assert [item for item in found if item is not Flush.FLUSH] == [b"<a/>", b"<b/>"]
