"""Every character, where it may and may not be, and every short sequence of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, product

import pytest

from tamis.documents.source import Source
from tests.documents.both_paths import PROJECTIONS, BothPaths, Counts

_BATCH = 2_000


def compare(documents: Iterator[bytes], projection: str) -> Counts:
    both = BothPaths(PROJECTIONS[projection])
    counts = Counts()
    while some := list(islice(documents, _BATCH)):
        counts = counts.plus(both.compare([Source(data) for data in some]))
    return counts


def encoded(code: int) -> bytes:
    return chr(code).encode("utf-8", "surrogatepass")


# Expat has the names of XML 1.0's fourth edition: nothing beyond U+FFFF, and gaps below it.
CODES = [*range(1, 0x10000), *range(0x10000, 0x110000, 0x3FF), 0x10FFFF]
PLACES: dict[str, Callable[[bytes], bytes]] = {
    "the first of a name": lambda c: b"<%s/>" % c,
    "in a name": lambda c: b"<a%s></a%s>" % (c, c),
    "text": lambda c: b"<a>%s</a>" % c,
}
OTHER_PLACES: dict[str, Callable[[bytes], bytes]] = {
    "an attribute's name": lambda c: b"<a %s='' a%s=''/>" % (c, c),
    "a prefix": lambda c: b"<%s:a xmlns:%s='u'/>" % (c, c),
    "a local name": lambda c: b"<p:%s xmlns:p='u'/>" % c,
    "a target": lambda c: b"<a><?%s d?><?a%s?></a>" % (c, c),
    "a PI": lambda c: b"<a><?p %s?></a>" % c,
    "a comment": lambda c: b"<a><!--%s--></a>" % c,
    "CDATA": lambda c: b"<a><![CDATA[%s]]></a>" % c,
    "a value": lambda c: b"<a x='%s'/>" % c,
    "between attributes": lambda c: b"<a x='1'%sy='2'/>" % c,
    "a DOCTYPE's name": lambda c: b"<!DOCTYPE a%s SYSTEM 'x'><a/>" % c,
    "a system identifier": lambda c: b"<!DOCTYPE a SYSTEM '%s'><a/>" % c,
    "a public identifier": lambda c: b"<!DOCTYPE a PUBLIC '%s' 'x'><a/>" % c,
    "an entity's name": lambda c: b"<!DOCTYPE a SYSTEM 'x'><a>&%s;</a>" % c,
    "the version": lambda c: b"<?xml version='1.%s'?><a/>" % c,
    "before the root": lambda c: b"%s<a/>" % c,
    "after the root": lambda c: b"<a/>%s" % c,
}


@pytest.mark.long("tamis/documents")
@pytest.mark.parametrize("place", PLACES)
def test_every_character(place: str) -> None:
    counts = compare((PLACES[place](encoded(code)) for code in CODES), "all")
    assert counts.accepted > 30_000
    assert counts.rejected > 2_000


@pytest.mark.parametrize("place", OTHER_PLACES)
def test_some_characters(place: str) -> None:
    """All of the first ones, and the borders of expat's tables, which are of 64, and others."""
    codes = [*range(0, 0x400), *range(0x400, 0x10000, 61), *range(0xFFF0, 0x10010), 0x10FFFF]
    counts = compare((OTHER_PLACES[place](encoded(code)) for code in codes), "all")
    assert counts.accepted
    assert counts.rejected


@pytest.mark.parametrize("form", ["&#%d;", "&#x%x;", "&#x00%X;"])
def test_every_reference(form: str) -> None:
    codes = [*range(0x300), *range(0x300, 0x110010, 97), *range(0xD7F0, 0xE010), 0x10FFFF]
    codes += [*range(0xFFF0, 0x10010), *(2**bits + 65 for bits in range(20, 130))]
    documents = (f"<a x='{form % code}'>{form % code}</a>".encode() for code in codes)
    assert compare(documents, "all").rejected > 2_000


def sequences() -> Iterator[bytes]:
    """All of two bytes, and those of three and four around what is UTF-8."""
    high = range(0x80, 0x100)
    yield from (bytes(pair) for pair in product(high, range(0x100)))
    edges = (0x3C, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBE, 0xBF, 0xC0)
    yield from (bytes(three) for three in product(range(0xE0, 0xF0), high, edges))
    yield from (bytes(four) for four in product(range(0xF0, 0x100), high, edges[::3], edges))


@pytest.mark.long("tamis/documents")
@pytest.mark.parametrize("place", ["<a>%s</a>", "<a x='%s'/>", "<a><!--%s--></a>"])
def test_sequences_of_bytes(place: str) -> None:
    before, after = place.encode().split(b"%s")
    step = 1 if place == "<a>%s</a>" else 3
    documents = (before + data + after for data in islice(sequences(), 0, None, step))
    counts = compare(documents, "all")
    assert counts.accepted > 1_000
    assert counts.rejected > 10_000
