"""Ranges of records, each parsed alone: together they are the document."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest

import tamis
from tamis.core.limits import Limits
from tamis.documents import record_batch, record_reader
from tamis.documents.record_batch import RecordRange, StreamPosition
from tamis.documents.record_reader import record_ranges

RECORD = "<g xmlns:p='urn:{0}'>\n<r n='{0}'><p:a>{0}é</p:a></r>\n<!-- {0} --></g>\r\n"
DOCUMENT = ("<all xmlns='u'>" + "".join(map(RECORD.format, range(50))) + "</all>").encode()
MATCHER = tamis.compile(
    {"n": "/u:r[@n > 20]", "a": "//p:a", "e": "/u:r[contains(., 'é')]"},
    namespaces={"u": "u", "p": "urn:7"},
    limits=Limits(depth=3),
)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batch, "BATCH_RECORDS", 3)


Answer = tuple[int, list[int], object, object]


def whole(document: bytes) -> list[Answer]:
    return list(answers(document, None))


def by_ranges(document: bytes, ranges: list[RecordRange]) -> list[Answer]:
    parts = [(document[found.start.offset : found.end], found) for found in ranges]
    return [row for part in reversed(parts) for row in answers(*part)]


def answers(document: bytes, part: RecordRange | None) -> Iterator[Answer]:
    for matches, _, places in MATCHER.record_answers(document, "r", part=part):
        for number in range(matches.documents):
            error = matches.errors.get(number)
            found = [] if error else matches.numbers(number).tolist()
            said = error and (error.code, error.message, error.line, error.column, error.offset)
            yield places.first + number, found, said, int(places.starts[number])


def ranges_of(document: bytes, threads: int = 1) -> list[RecordRange]:
    return record_ranges(lambda: BytesIO(document), "r", 500, threads=threads)


def test_ranges_are_the_whole_document() -> None:
    ranges = ranges_of(DOCUMENT)
    assert len(ranges) > 5
    assert [found.start.record for found in ranges] == sorted(
        found.start.record for found in ranges
    )
    assert sorted(by_ranges(DOCUMENT, ranges)) == whole(DOCUMENT)
    assert len(whole(DOCUMENT)) == 50


@pytest.mark.parametrize(
    "spoilt",
    [
        DOCUMENT[:-3],
        DOCUMENT.replace(b"<r n='40'>", b"<r n='40>"),
        DOCUMENT.replace(b"<!-- 44 -->", b"<!-- 44 -- -->"),
        DOCUMENT.replace(b"<p:a>33", b"<a><b><c/></b></a><p:a>33"),  # a limit: one record alone
        b"<r/>",
        b"<all/>",
        b"",
    ],
)
def test_errors_are_where_they_are_in_the_whole_document(spoilt: bytes) -> None:
    expected = whole(spoilt)
    found = sorted(by_ranges(spoilt, ranges_of(spoilt)), key=lambda row: row[0])
    assert found == expected
    assert any(said for _, _, said, _ in expected) == (spoilt not in (b"<r/>", b"<all/>"))


@pytest.mark.parametrize(
    "document",
    [
        b"\xef\xbb\xbf" + DOCUMENT,
        DOCUMENT.decode().encode("utf-16"),
        b"<?xml version='1.0' encoding='latin-1'?>" + DOCUMENT,
        b"<!DOCTYPE all SYSTEM 'a>b' [<!ENTITY e 'x'>]>" + DOCUMENT,
    ],
)
def test_what_cannot_be_divided_is_one_range(document: bytes) -> None:
    (only,) = ranges_of(document)
    assert (only.start.offset, only.end) == (0, None)


def test_external_dtds_are_no_obstacle() -> None:
    document = b"<!DOCTYPE all SYSTEM 'a[b'>" + DOCUMENT
    ranges = ranges_of(document)
    assert len(ranges) > 5
    assert sorted(by_ranges(document, ranges)) == whole(document)


FLAT = b"<all xmlns='u'>" + b"".join(b"\n<r n='%d'>\xc3\xa9\r</r>\r\n" % n for n in range(300))
FLAT += b"</all>"


@pytest.mark.parametrize(
    "document",
    [
        FLAT,
        DOCUMENT,  # no other record has the context of the first one
        FLAT.replace(b"<r n='150'>", b"<r n='150'><r/>" + b"<r>x</r>" * 100),  # records in a record
        FLAT.replace(b"<r n='150'>", b"<!--" + b"<r>x</r>" * 100 + b"--><r n='150'>"),
        FLAT.replace(b"<r n='150'>", b"<g xmlns='v'>" + b"<r>x</r>" * 100 + b"</g><r n='150'>"),
        FLAT.replace(b"<r n='100'>", b"<r n='100>"),
        FLAT.replace(b"<r n='200'>", b"<r n='200' n=''>"),
        FLAT[:-3],
        FLAT.replace(b"r", b"s"),
    ],
)
def test_ranges_are_the_same_whoever_finds_them(document: bytes) -> None:
    expected = ranges_of(document)
    for threads in (2, 3, 4, 7, 20):
        found = ranges_of(document, threads)
        # Parts begin with a batch of their own, so ranges may be cut elsewhere.
        assert sorted(by_ranges(document, found)) == whole(document)
        assert abs(len(found) - len(expected)) <= threads


def test_parts_that_were_read_at_once_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[int, StreamPosition | None]] = []
    one = record_reader._Reader.read

    def noted(*given: Any) -> Any:
        steps, met = one(*given)
        read.append((given[1], met))
        return steps, met

    monkeypatch.setattr(record_reader._Reader, "read", noted)
    found = ranges_of(FLAT, 4)
    first, *others, last = sorted(read, key=lambda each: each[0])
    assert first[0] == 0
    assert [start for start, _ in [*others, last]] == [
        met.offset for _, met in [first, *others] if met
    ]
    assert last[1] is None
    for part in found:
        before = FLAT[: part.start.offset]
        lines = before.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n")
        assert (part.start.record, part.start.line) == (before.count(b"</r>"), 1 + lines)
