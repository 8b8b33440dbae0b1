"""The fast path gives what expat gives: adversarial documents, their neighbours, sizes, limits."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tamis.core.arrays import freeze
from tamis.core.errors import DocumentError, MalformedDocument, UnreadableDocument
from tamis.core.limits import Limits
from tamis.documents import expat
from tamis.documents.parser import Tokenizer
from tamis.documents.source import Source, read
from tamis.documents.tokenizer import scanner
from tamis.documents.tokenizer.kernels import layout
from tamis.documents.vocabulary import Projection, Vocabulary
from tests.documents import adversarial_documents
from tests.documents.both_paths import ALL, PROJECTIONS, BothPaths, Difference, Parser, compare
from tests.documents.differences import by_itself, view

SOURCES = [Source(data) for data in adversarial_documents.DOCUMENTS if b"encoding" not in data[:50]]


def sources_of(documents: Sequence[bytes]) -> list[Source | DocumentError]:
    found: list[Source | DocumentError] = []
    for data in documents:
        try:
            found.append(read(data, Limits()))
        except DocumentError as error:
            found.append(error)
    return found


# -- documents -------------------------------------------------------------------------------------


def test_adversarial_documents() -> None:
    counts = compare(sources_of(adversarial_documents.DOCUMENTS))
    assert counts.documents == len(adversarial_documents.DOCUMENTS) > 350
    assert 150 < counts.accepted < 250


@pytest.mark.parametrize("encoding", [None, "utf-8", "us-ascii", "iso-8859-1"])
def test_encodings_that_overrule(encoding: str | None) -> None:
    compare([source._replace(encoding=encoding) for source in SOURCES], ["all"])


@pytest.mark.parametrize("kind", [bytes, memoryview])
def test_kinds_of_buffers(kind: type) -> None:
    compare([Source(kind(source.data)) for source in SOURCES], ["all"])


def test_slices_of_a_buffer() -> None:
    """Documents beside each other in memory, so that what follows one is the next."""
    whole = memoryview(b"".join(bytes(source.data) for source in SOURCES))
    sources, start = [], 0
    for source in SOURCES:
        sources.append(Source(whole[start : start + len(source.data)]))
        start += len(source.data)
    compare(sources, ["all", "nothing"])


# -- neighbours ------------------------------------------------------------------------------------


def test_alone_and_together() -> None:
    both = BothPaths(ALL).anew(SOURCES)
    together = [
        (view(both.fast[0], number, both.vocabulary), error and error.args)
        for number in range(len(SOURCES))
        for error in [both.fast[1].get(number)]
    ]
    alone = by_itself(SOURCES, BothPaths(ALL).anew)
    prefixes = ("prefixes", "attribute_prefixes")  # ids, which depend on what came before
    for (found, found_error), (expected, expected_error) in zip(together, alone, strict=True):
        assert found_error == expected_error
        assert {k: v for k, v in found.items() if k not in prefixes} == {
            k: v for k, v in expected.items() if k not in prefixes
        }


def test_orders() -> None:
    """Each document after each of several others, with one parser all along."""
    both = BothPaths(ALL)
    for step in (1, 7, 31, 61, 113, 151):  # none divides the number of documents
        assert np.gcd(step, len(SOURCES)) == 1
        order = [SOURCES[n * step % len(SOURCES)] for n in range(len(SOURCES))]
        both.compare(order)
        both.compare(order[::-1])


def test_unfinished_ones_beside_others() -> None:
    good = Source(b"<g xmlns:p='u' p:x='1'>t<!--c--><?p d?></g>")
    unfinished = [source for source in SOURCES if source.data]
    pairs = [some for source in unfinished for some in (source, good)]
    compare([good, *pairs], ["all", "nothing"])
    cut = [Source(s.data[:-1]) for s in unfinished if len(s.data) > 1]
    compare([some for source in cut for some in (source, good)], ["all", "text"])


def test_errors_given_instead_of_documents() -> None:
    error = UnreadableDocument("cannot read it")
    sources: list[Any] = [error, SOURCES[0], error, error, Source(b""), SOURCES[1], error]
    assert compare(sources).rejected == 5
    assert compare([error]).rejected == 1
    assert compare([]).documents == 0


# -- sizes -----------------------------------------------------------------------------------------

DENSE = {
    "elements": b"<a>" + b"<b/>" * 60_000 + b"</a>",
    "pairs of tags": b"<a>" + b"<b></b>" * 40_000 + b"</a>",
    "texts": b"<a>" + b"x<b/>" * 40_000 + b"</a>",
    "a text": b"<a>" + b"x" * 1_000_000 + b"</a>",
    "references": b"<a>" + b"&lt;" * 50_000 + b"</a>",
    "line ends": b"<a>" + b"\r\n" * 50_000 + b"\r" * 50_000 + b"</a>",
    "comments": b"<a>" + b"<!---->" * 40_000 + b"</a>",
    "PIs": b"<a>" + b"<?p?>" * 40_000 + b"</a>",
    "CDATA": b"<a>" + b"<![CDATA[]]>x" * 30_000 + b"</a>",
    "attributes": b"<a>" + b"<b x='' y=''/>" * 20_000 + b"</a>",
    "attributes of one": b"<a %s/>" % b" ".join(b"x%d=''" % n for n in range(9_000)),
    "namespaces": b"<a>" + b"<b xmlns:p='u' p:x=''/>" * 15_000 + b"</a>",
    "prefixes": b"<a %s/>" % b" ".join(b"xmlns:p%d='u%d'" % (n, n) for n in range(3_000)),
    "a value": b"<a x='" + b"v" * 1_000_000 + b"'/>",
    "a name": b"<" + b"n" * 300_000 + b"/>",
    "names": b"<a>" + b"".join(b"<n%d/>" % n for n in range(30_000)) + b"</a>",
    "like names": b"<a>" + b"".join(b"<%s/>" % (b"n" * n) for n in range(1, 400)) + b"</a>",
    "depth": b"<a>" * 1_000 + b"</a>" * 1_000,
    "depth with prefixes": b"".join(b"<p:a xmlns:p='%d'>" % n for n in range(900))
    + b"</p:a>" * 900,
    "spaces": b"<a" + b" " * 500_000 + b"/>" + b"\n" * 500_000,
    "a comment": b"<a><!--" + b"- " * 300_000 + b"--></a>",
    "two bytes": ("<a>" + "é" * 300_000 + "</a>").encode(),
    "four bytes": ("<a>" + "😀" * 100_000 + "</a>").encode(),
}


@pytest.mark.parametrize("name", DENSE)
def test_dense_documents(name: str) -> None:
    """Much of one thing, after little of it and before: whatever is guessed of sizes is wrong."""
    small = Source(b"<a x='1'>t</a>")
    sources = [small, Source(DENSE[name]), small]
    for projection in ("all", "nothing"):
        counts = BothPaths(PROJECTIONS[projection], fast_first=True).compare(sources)
        assert counts.accepted == 3
        assert counts.declined == 0


def test_a_parser_that_has_seen_much() -> None:
    both = BothPaths(ALL, fast_first=True)
    for data in DENSE.values():
        both.compare([Source(data), *SOURCES[:10]])


def test_the_same_documents_again() -> None:
    """What a batch leaves behind changes nothing in the next one."""
    both = BothPaths(ALL, fast_first=True)
    first = both.compare(SOURCES)
    for _ in range(4):
        assert both.compare(SOURCES) == first


@pytest.mark.parametrize("name", ["attributes of one", "prefixes", "names", "like names", "a text"])
def test_dense_documents_take_no_longer(name: str) -> None:
    """Not a measurement: work that grows with the square would take a hundred times as long."""
    sources = [Source(DENSE[name])]
    times = {}
    Parser(Vocabulary(), ALL, Limits()).parse(SOURCES[:5])  # so that the kernels are there
    for parse in (Parser(Vocabulary(), ALL, Limits()).parse, _by_expat):
        start = time.process_time()
        parse(sources)
        times[parse] = time.process_time() - start
    fast, trusted = times.values()
    assert fast < 20 * trusted + 1


def _by_expat(sources: list[Source]) -> object:
    return expat.parse(sources, Vocabulary(), ALL, Limits())


def test_collisions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all names have the same hash, their bytes still tell them apart."""
    zero = np.zeros(1, np.uint64)
    freeze(zero)
    monkeypatch.setattr(scanner, "_MULTIPLIER", zero)
    for projection in PROJECTIONS.values():
        BothPaths(projection, fast_first=True).compare(SOURCES)


def test_limits_once_names_are_known() -> None:
    both = BothPaths(Projection(), Limits(attributes=2), fast_first=True)
    for data in (b'<a x="1"/>', b'<a y="1"/>', b'<a z="1"/>', b'<a x="1" y="1" z="1"/>'):
        both.compare([Source(data)])


@pytest.mark.parametrize("limit", [0, 10**12, 10**20])
def test_limits_beyond_what_there_is_room_for(limit: int) -> None:
    BothPaths(ALL, Limits(depth=limit, attributes=limit)).compare(SOURCES[:50])


def test_names_do_not_pile_up() -> None:
    """Through a parser that expat does all the work of, and one that meets long names."""
    parser = Parser(Vocabulary(), Projection(), Limits())
    for number in range(40):
        names_of_it = b"".join(b"<a%d-%d/>" % (number, i) for i in range(1000))
        parser.parse([Source(b"<!DOCTYPE a []><a>%b</a>" % names_of_it)])
    assert parser.is_full
    parser = Parser(Vocabulary(), Projection(), Limits())
    for number in range(5):
        parser.parse([Source(b"<a%d%b/>" % (number, b"n" * 1_000_000))])
    assert parser.is_full


def test_hashes_differ() -> None:
    """Names that differ anywhere in their bytes have slots of their own, mostly."""
    alike = [b"n" * at + b"%c" % letter + b"n" * 20 for at in range(16) for letter in b"abcdefghij"]
    table = Tokenizer(Vocabulary(), Projection(), Limits())
    table.read([Source(b"<a>%b</a>" % b"".join(b"<%b/>" % name for name in alike))], lent=False)
    rows = table.scanner.names.arrays.table.reshape(-1, layout.NAME_COLUMNS)
    used = np.flatnonzero(rows[:, layout.KEY])
    assert len(used) == len(alike) + 1
    assert (np.diff(used) > 1).mean() > 0.9


# -- limits ----------------------------------------------------------------------------------------

LIMITS = Limits(depth=3, attributes=2)


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_limits(projection: str) -> None:
    documents = [
        b"<a><b><c/></b></a>",
        b"<a><b><c><d/></c></b></a>",
        b"<a><b><c><d></c></b></a>",
        b"<a x='1' y='2'/>",
        b"<a x='1' y='2' z='3'/>",
        b"<a x='1' y='2' xmlns:p='u' xmlns='v'/>",  # declarations are not counted
        b"<a x='1' y='2' x='3'/>",
        b"<a x='1' y='2' z='<'/>",
        b"<a x='1' y='2' z='3'><b></a>",
        b"<a><b/><b/><b/><b/><b><c/><c/></b></a>",
    ]
    both = BothPaths(PROJECTIONS[projection], LIMITS)
    counts = both.compare([Source(data) for data in documents])
    assert counts.accepted == 4
    assert sum(number for text, number in both.messages.items() if "the limit" in text) == 4


# -- what is logged --------------------------------------------------------------------------------


def test_entities_left_out_are_logged_alike(caplog: pytest.LogCaptureFixture) -> None:
    documents = [
        b"<!DOCTYPE a SYSTEM 'x'><a>&u;</a>",
        b"<!DOCTYPE a SYSTEM 'x'>\n<a>\r\n\r\n&u;<b/>&v;\n&u;</a>",
        b"<!DOCTYPE a SYSTEM 'x'><a x='&u;'/>",
        b"<!DOCTYPE a SYSTEM 'x'><a>&u;</b>",
        b"<!DOCTYPE a SYSTEM 'x'><a>\r&lt;\r\n<!--\n-->\n&u;</a>",
        b"<!DOCTYPE a\nSYSTEM 'x'>\n\n<a\n\n>&u;</a>",
    ]
    sources = [Source(data, None, f"name {n}") for n, data in enumerate(documents)]
    for projection in PROJECTIONS.values():
        logged = []
        for parser in (None, Parser(Vocabulary(), projection, Limits())):
            caplog.clear()
            with caplog.at_level(logging.WARNING, "tamis"):
                if parser:
                    parser.parse(sources)
                else:
                    expat.parse(sources, Vocabulary(), projection, Limits())
            logged.append([record.getMessage() for record in caplog.records])
        assert logged[0] == logged[1]
        assert len(logged[0]) == 4
        assert "3 times, first in line 4" in logged[0][1]


# -- canaries --------------------------------------------------------------------------------------


class Wrong:
    """A fast path that is not one: expat, and what subclasses do to its results."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.declined = 0

    def parse(self, sources: Any) -> Any:
        sources = list(sources)
        batch, errors = expat.parse(sources, *self.arguments)
        self.declined += sum(isinstance(sources[number], Source) for number in errors)
        return self.spoilt(batch, errors)

    def spoilt(self, batch: Any, errors: Any) -> Any:
        return batch, errors


CANARY = [
    Source(b"<a/>"),
    Source(b"<p:a xmlns:p='u' xmlns:q='v' q:x='1' y='2'>t<!--c-->u<?p d?></p:a>"),
    Source(b"<a>"),
]
FIELDS = [name for name in type(BothPaths().anew([]).fast[0])._fields if name != "lines"]


@pytest.mark.parametrize("field", FIELDS)
def test_a_wrong_array_is_reported(field: str) -> None:
    class Spoilt(Wrong):
        def spoilt(self, batch: Any, errors: Any) -> Any:
            array = getattr(batch, field).copy()
            if len(array) > 1:
                array[-2 if field.endswith("_starts") else -1] += 1
            array.flags.writeable = False
            return batch._replace(**{field: array}), errors

    with pytest.raises(Difference) as caught:
        BothPaths(fast=Spoilt).compare(CANARY, "this")
    assert "document 1 of 3: " in str(caught.value)
    assert "Source(b\"<p:a xmlns:p='u'" in str(caught.value)
    assert "again: this" in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (lambda batch, errors: (batch, {}), "error None, for expat MalformedDocument"),
        (
            lambda batch, errors: (batch, {2: MalformedDocument("other", 1, 4)}),
            "error MalformedDocument('other'",
        ),
        (lambda batch, errors: (batch, {**errors, 0: errors[2]}), "document 0 of 3: error Malf"),
        (lambda batch, errors: (batch._replace(tags=batch.tags.copy()), errors), "tags is int32"),
        (
            lambda batch, errors: (batch._replace(tags=batch.tags.astype(np.int64)), errors),
            "tags is int64",
        ),
        (lambda batch, errors: 1 / 0, "the fast path raises ZeroDivisionError"),
    ],
)
def test_a_wrong_result_is_reported(fault: Any, text: str) -> None:
    class Faulty(Wrong):
        def spoilt(self, batch: Any, errors: Any) -> Any:
            return fault(batch, errors) if len(errors) else (batch, errors)

    with pytest.raises(Difference) as caught:
        BothPaths(fast=Faulty).compare(CANARY)
    assert text in str(caught.value)


def test_the_smallest_document_is_reported() -> None:
    class Blind(Wrong):
        """Takes ``]]>`` in text for text."""

        def parse(self, sources: Any) -> Any:
            seen = [s._replace(data=bytes(s.data).replace(b"]]>", b"]]&gt;")) for s in sources]
            return super().parse(seen)

    with pytest.raises(Difference) as caught:
        BothPaths(fast=Blind).compare([*CANARY, Source(b"<a y='1'><b>xyz]]>z</b><c/></a>")])
    assert "document 3 of 4: error None, for expat Malformed" in str(caught.value)
    assert "Source(b\"<a y=''><b>]]></b></a>\", None, '')" in str(caught.value)


def test_the_fast_path_is_there() -> None:
    counts = BothPaths(ALL).compare([Source(b"<a/>")] * 10)
    assert counts.declined == 0
