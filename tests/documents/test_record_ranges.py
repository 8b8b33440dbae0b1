"""Ranges of records, each parsed alone: together they are the document."""

from collections.abc import Iterator

import pytest

import tamis
from tamis.documents import record_batch
from tamis.documents.record_ranges import RecordRange, record_ranges
from tamis.limits import Limits

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


def test_ranges_are_the_whole_document() -> None:
    ranges = record_ranges(DOCUMENT, "r", 500)
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
    found = sorted(by_ranges(spoilt, record_ranges(spoilt, "r", 500)), key=lambda row: row[0])
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
    (only,) = record_ranges(document, "r", 500)
    assert (only.start.offset, only.end) == (0, None)


def test_external_dtds_are_no_obstacle() -> None:
    document = b"<!DOCTYPE all SYSTEM 'a[b'>" + DOCUMENT
    ranges = record_ranges(document, "r", 500)
    assert len(ranges) > 5
    assert sorted(by_ranges(document, ranges)) == whole(document)
