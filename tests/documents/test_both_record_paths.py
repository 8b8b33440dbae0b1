"""Records through the tokenizer are what they are through libexpat, however the stream arrives."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamis.core.errors import DocumentError, UnreadableDocument
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.core.threads import Flush
from tamis.documents import record_batch
from tamis.documents.expat_records import ExpatRecords
from tamis.documents.record_batch import RecordBatch, RecordParser
from tamis.documents.record_reader import parse_records, record_ranges
from tamis.documents.source import open_stream
from tamis.documents.tokenizer import scanner
from tamis.documents.tokenizer import tokenized_records as tokenized
from tamis.documents.tokenizer.tokenized_records import TokenizedRecords
from tamis.documents.vocabulary import EVERYTHING, Vocabulary
from tests.documents.mutations import Mutator, taken_apart
from tests.documents.test_records import TAGS, chunked, nodes
from tests.support.strategies import documents

ALL = EVERYTHING._replace(lines=False)
MUTATIONS = int(os.environ.get("TAMIS_MUTATIONS", "3000"))
SIZES = (1, 2, 7, 64, 1000, 1 << 30)


def said(error: DocumentError) -> tuple[object, ...]:
    """What an error says. Whether there was a rest to read depends on the chunks."""
    message = error.message.removesuffix("; the rest was not read")
    return type(error), message, error.line, error.column


def told(batches: Iterable[RecordBatch | Flush]) -> list[tuple[object, ...]]:
    """All that is known of each record, in order."""
    found: list[tuple[object, ...]] = []
    stream_error = None
    for records in batches:
        if isinstance(records, Flush):
            continue
        batch, errors, vocabulary, places, stream_error, excerpt = records
        assert batch.documents == len(places.starts) == len(places.ends) == len(places.context)
        assert places.first == len(found)
        for number in range(batch.documents):
            what: object = nodes(batch, vocabulary, number)
            if len(offsets := batch.offsets[slice(*batch.document_starts[[number, number + 1]])]):
                assert excerpt is not None
                text = excerpt.text(int(offsets[0]), int(offsets[-1]))
                what = [what, offsets.tolist(), excerpt.lines(offsets).tolist(), text]
            if number in errors:
                what = said(errors[number])
            context = places.contexts[places.context[number]]
            found.append((int(places.starts[number]), int(places.ends[number]), context, what))
        assert stream_error is None or stream_error is errors[batch.documents - 1]
    if stream_error is not None and len(found) > 1 and found[-1][0] == found[-1][1]:
        # Where a record ended libexpat tells with what follows; of an error, where that was.
        found[-2] = found[-2][0], *found[-2][2:]
    return found


def by(
    kind: type[RecordParser],
    chunks: Iterable[bytes],
    tag: str,
    limits: Limits = DEFAULT_LIMITS,
    encoding: str | None = None,
) -> tuple[Any, ...]:
    parser = kind(tag, Vocabulary(), ALL, limits, encoding=encoding)
    found = told(parser.parse(chunks))
    if isinstance(parser, ExpatRecords):
        return found, parser.handlers.skipped, parser.handlers.first_skipped_line
    assert isinstance(parser, TokenizedRecords)
    own = parser.skipped, parser.first_skipped_line
    if parser.expat is None:
        return found, *own
    others = parser.expat.handlers
    return found, own[0] + others.skipped, own[1] or others.first_skipped_line


def compare(
    data: bytes,
    tag: str = "a",
    limits: Limits = DEFAULT_LIMITS,
    sizes: Iterable[int] = SIZES,
    encoding: str | None = None,
) -> list[tuple[object, ...]]:
    """The records of a document, having compared the paths."""
    expected = by(ExpatRecords, [data], tag, limits, encoding)
    if "fifth edition" in str(expected):  # of a name that libexpat does not read
        return list(expected[0])
    for size in sizes:
        found = by(TokenizedRecords, chunked(data, size), tag, limits, encoding)
        assert found == expected, (data, size, encoding)
    return list(expected[0])


def is_taken_over(data: bytes, tag: str = "a", limits: Limits = DEFAULT_LIMITS) -> bool:
    parser = TokenizedRecords(tag, Vocabulary(), ALL, limits)
    for _ in parser.parse([data]):
        pass
    return parser.expat is not None


DOCTYPE = "<!DOCTYPE x SYSTEM 'y'>"
GOOD = {
    "root": "<?p?><a><b/><a/></a><!--c-->",
    "nested": "<x><a><a/>1</a>2<y><a/></y></x>\n\n",
    "none": "<x><b/></x>",
    "spaces": "<x><a\n b='>'  /> <a >1</a\n></x>",
    "misc": "<x><!--a--><a><!--b--><?é u?>\r\n<?v?></a><?c?></x><!--d-->",
    "cdata": "<x><![CDATA[<a/>]]><a>1<![CDATA[</a>]]>2</a>]] ></x>",
    "prefix": "<x xmlns:p='u'><p:a/><a xmlns='v' p:b='1'/><y xmlns:p='w'><a><p:a/></a></y></x>",
    "letters": "<x>é<a>é漢𝒳</a>é<é><a é='漢'/></é></x>",
    "declaration": "<?xml version='1.0' encoding='utf-8'?>\n<x><a/></x>",
    "standalone": "<?xml version='1.0' standalone='yes'?><x><a/></x>",
    "doctype": f"<?xml version='1.0'?>\n<!--c-->{DOCTYPE}<!--d-->\n<x><a/></x>",
    "standalone doctype": f"<?xml version='1.0' standalone='yes'?>{DOCTYPE}<x><a/></x>",
    "entities": f"{DOCTYPE}<x>&u;\r\n<a>1&u;2\r\r\n&v;&lt;&#65;</a>&u;<a b='&u;'/></x>",
    "contexts": "<x>" + "".join(f"<y{n % 70}><a/></y{n % 70}>" for n in range(150)) + "</x>",
    "declared": "<x xmlns='u' xmlns:p='a&amp;&#10;b'><y xmlns=''><a/></y><p:y><a/></p:y><a/></x>",
    "long": f"<x>{'text ' * 500}<!--{'comment ' * 500}--><a>{'1' * 3000}</a>{'text ' * 500}</x>",
    "attributes": "<x>" + "".join(f"<a b{n}='é{n}' c='&lt;\t{n}'/>" for n in range(50)) + "</x>",
}


@pytest.mark.parametrize("name", GOOD)
def test_good_streams(name: str) -> None:
    data = GOOD[name].encode()
    assert bool(compare(data)) == (name != "none")
    assert not is_taken_over(data)


RECORD = "<a n='1'>é\r\n<b>2</b></a>\n"
TAKEN_OVER = {
    "subset": "<!DOCTYPE x [<!ENTITY e '1'>]><x><a>&e;</a></x>",
    "standalone subset": "<?xml version='1.0' standalone='yes'?><!DOCTYPE x SYSTEM 'y' "
    f"[<!ENTITY f '1'>]><x>{RECORD}&e;</x>",
    "entity": f"{DOCTYPE}\r\n<x>\r\n{RECORD}&u;{RECORD * 3}<a>&é;</a>{RECORD * 5}</x>",
    "entity outside": f"{DOCTYPE}<x>{RECORD}<y xmlns:p='u'>{RECORD}\r&é;{RECORD}</y>{RECORD}</x>",
    "undefined": f"<x>{RECORD * 5}<a>&e;</a>{RECORD}</x>",
    "mismatch": f"<x>{RECORD * 5}\n<a><b></a>{RECORD}</x>",
    "mismatch outside": f"<x><y>{RECORD * 5}\n</x>",
    "unbound": f"<x>{RECORD * 2}<p:a/>{RECORD}</x>",
    "cut off": f"<x>{RECORD * 2}<a>1",
    "cut off outside": f"<x>{RECORD * 2}<y>\n",
    "cut off comment": f"<x>{RECORD * 2}<!-- ",
    "cut off epilog": f"<x>{RECORD * 2}</x>\n<!-- ",
    "junk": f"<x>{RECORD * 2}</x>\n {RECORD}",
    "junk after a record": f"{RECORD}<b/>",
    "declaration again": f"<!--c--><?xml version='1.0'?><x>{RECORD}</x>",
    "declaration inside": f"<x>{RECORD}<?xml version='1.0'?></x>",
    "bad declaration": f"<?xml version='1.0' x='2'?><x>{RECORD}</x>",
    "encoding": f"<?xml version='1.0' encoding='utf-16'?><x>{RECORD}</x>",
    "nothing": "",
    "spaces": " \n ",
    "control": f"<x>{RECORD * 2}\r\n\r\x01{RECORD}</x>",
    "brackets": f"<x>{RECORD * 2}\n]]>{RECORD}</x>",
    "twice": f"<x>{RECORD * 2}<a n='1' n='2'/>{RECORD}</x>",
    "long tags": f"<x>{RECORD}<y b='{'1' * 200}\x01'><a/></y></x>",
    "long record": f"<x>{RECORD * 3}<a b='{'1' * 9000}\x01'/>{RECORD * 6}</x>",
    "long doctype": f"<!DOCTYPE x SYSTEM '{'y' * 200}\x01'><x>{RECORD}</x>",
    "carriage return": f"<x>{RECORD}\r\n\r\r\n</y></x>",
}


@pytest.mark.parametrize("name", TAKEN_OVER)
def test_libexpat_takes_over(name: str) -> None:
    data = TAKEN_OVER[name].encode()
    compare(data)
    assert is_taken_over(data)


NAMESPACES = {
    "prefixes": "<x xmlns:p='u'><p:a><a/></p:a><q:a xmlns:q='u' b='1'>2</q:a><a xmlns='u'/></x>",
    "others": "<x xmlns:p='v'><p:a><a xmlns='u'/></p:a><ba/><p:ba/><p:a b='1'/>"
    "<p:a xmlns:p='u'/><a/></x>",
    "root": "<p:a xmlns:p='u'>1<p:a/></p:a>",
    "other root": "<a>1<!--c--><p:a xmlns:p='u'/>2<?p?></a>",
    "empty": "<x xmlns='u'><a/><y xmlns=''><a>&lt;</a></y><a/></x>",
    "contexts": "".join(f"<y{n % 70} xmlns:p='u'><p:a/><a>" for n in range(99)) + "</a></y",
    "text": "<x>1<a>2</a>3<a xmlns='u'>4<a>5</a></a>6</x>",
}


@pytest.mark.parametrize("tag", ["{u}a", "{}a", "{v}a", "{v}ba"])
@pytest.mark.parametrize("name", [*NAMESPACES, *GOOD, *TAKEN_OVER])
def test_names_with_a_namespace(name: str, tag: str) -> None:
    text = {**GOOD, **TAKEN_OVER, **NAMESPACES}[name]
    compare(text.encode(), tag)
    if name in NAMESPACES and name != "contexts":
        assert not is_taken_over(text.encode(), tag)


def test_what_is_no_record_is_as_deep_as_other_elements() -> None:
    limits = Limits(depth=4)
    for count in range(8):
        data = "<p:a xmlns:p='v'>" * count + "<a xmlns='u'><a/></a>" + "</p:a>" * count
        compare(data.encode(), "{u}a", limits)
        compare(data.encode(), "{v}a", limits)


@pytest.mark.parametrize("encoding", ["us-ascii", "iso-8859-1"])
def test_ascii(encoding: str) -> None:
    declared = f"<?xml version='1.0' encoding='{encoding}'?>"
    for text in ("<x><a/>1<a/></x>", f"<x>{'<a/>1' * 300}é<a/></x>"):
        data = (declared + text).encode()
        compare(data, encoding=encoding)


def test_every_place_to_be_cut_off() -> None:
    data = "".join(text for text in GOOD.values() if len(text) < 300 and "\r" in text).encode()
    for document in (GOOD["entities"], GOOD["declared"], GOOD["misc"], GOOD["cdata"]):
        data = document.encode()
        for end in range(len(data)):
            compare(data[:end], sizes=(1 << 30,))
            halves = [data[:end], data[end:]]
            assert by(TokenizedRecords, halves, "a") == by(ExpatRecords, [data], "a")


LIMITS = Limits(document_bytes=100, depth=4, attributes=2)


def test_limits() -> None:
    large = f"<a>{'x' * 93}</a>"
    deep = "<b><b><b/></b></b>"
    parts = [large, large.replace("x", "xy", 1), "<a/>"]
    found = compare(f"<x><y>{''.join(parts)}</y></x>".encode(), limits=LIMITS)
    assert [isinstance(what, tuple) for *_, what in found] == [False, True, False]
    parts += [f"<a>{deep}</a>", f"<a><b>{deep}</b></a>", "<a b='' c=''/>", large]
    parts += ["<a b='' c='' d=''><a/></a>", "<a><b d='' c='' e=''/></a>", large]
    compare(f"<x><y>{''.join(parts)}</y></x>".encode(), limits=LIMITS)
    compare(b"<x>" * 20, limits=LIMITS)
    compare(b"<x a='' b='' c=''/>", limits=LIMITS)


def test_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records, tags and text that are larger than the window, or than what is read ahead."""
    monkeypatch.setattr(tokenized, "READ_BYTES", 100)
    monkeypatch.setattr(tokenized, "CHUNK_BYTES", 64)
    monkeypatch.setattr(tokenized, "READ_BYTES", 100)
    monkeypatch.setattr(tokenized, "LOOKAHEAD", 300)
    sizes = (7, 64, 1 << 30)
    for name, text in GOOD.items():
        compare(text.encode(), sizes=sizes)
        if name not in ("long", "doctype"):
            assert not is_taken_over(text.encode()), name
    for text in TAKEN_OVER.values():
        compare(text.encode(), sizes=sizes)
    for length in (90, 290, 1000, 5000):
        text = f"<x>{RECORD}<a>{'é' * length}<b c='{'1' * 250}'/>{'<b/>' * length}</a>{RECORD}</x>"
        compare(text.encode(), sizes=sizes)
        assert not is_taken_over(text.encode())
        compare(f"<x>{'1' * length}{RECORD}{' ' * length}</x>".encode(), sizes=sizes)
        compare(f"<x>{RECORD}<!--{'1' * length}-->{RECORD}</x>".encode(), sizes=sizes)
        compare(f"{' ' * length}<x>{RECORD}</x>{' ' * length}".encode(), sizes=sizes)


def test_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batch, "BATCH_RECORDS", 3)
    for text in (*GOOD.values(), *TAKEN_OVER.values(), f"<x>{RECORD * 20}</x>"):
        compare(text.encode(), sizes=(50, 1 << 30))
    parser = TokenizedRecords("a", Vocabulary(), ALL, Limits())
    batches = list(parser.parse([f"<x>{RECORD * 20}</x>".encode()]))
    assert [found.batch.documents for found in batches] == [3] * 6 + [2]


def test_many_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "NAMES_MAX", 64)
    monkeypatch.setattr(scanner, "SCOPES_MAX", 16)
    records = "".join(
        f"<a><n{n}/><m{n} xmlns:p='{n % 30}'><p:é/></m{n}></a>{DOCTYPE[:0]}\n" for n in range(300)
    )
    data = f"{DOCTYPE}<x xmlns='u'>\n<y xmlns:q='w'>{records}</y></x>".encode()
    compare(data, sizes=(1000, 1 << 30))
    assert not is_taken_over(data)
    parser = TokenizedRecords("a", base := Vocabulary(), ALL, Limits())
    sizes = {len(found.vocabulary) for found in parser.parse(chunked(data, 100))}
    assert max(sizes) < 100
    assert len(base) == 0
    names = "".join(f"<n{n}/>" for n in range(200))
    compare(f"<x><a/><a>{names}</a>{records}</x>".encode(), sizes=(1 << 30,))


def test_damage_comes_after_what_was_read_before() -> None:
    def chunks() -> Iterator[bytes]:
        yield b"<x><a/>\n<a/>\n<a>"
        raise UnreadableDocument("broken")

    expected = by(ExpatRecords, chunks(), "a")
    assert by(TokenizedRecords, chunks(), "a") == expected
    assert len(expected[0]) == 3


def test_warnings(caplog: pytest.LogCaptureFixture) -> None:
    data = f"{DOCTYPE}<x>\n&u;<a/>\n&u;<a>&é;&u;</a></x>"
    for projection in (ALL, EVERYTHING):
        caplog.clear()
        assert list(parse_records(open_stream(data), "a", Vocabulary(), projection, Limits()))
        assert "4 times, first in line 2" in caplog.text


# The encoding is found wrong before the ranges are read.
@pytest.mark.parametrize("name", [name for name in (*GOOD, *TAKEN_OVER) if name != "encoding"])
def test_ranges(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batch, "BATCH_RECORDS", 1)
    text = {**GOOD, **TAKEN_OVER}[name]
    data = text.encode() if isinstance(text, str) else text
    ranges = record_ranges(lambda: BytesIO(data), "a", 1)

    def batches() -> Iterator[RecordBatch | Flush]:
        for part in ranges:
            stream = open_stream(data[part.start.offset : part.end])
            yield from parse_records(stream, "a", Vocabulary(), ALL, Limits(), part)

    assert told(batches()) == by(ExpatRecords, [data], "a")[0]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents(), st.sampled_from(TAGS), st.integers(1, 40))
def test_any_document(document: str, tag: str, size: int) -> None:
    compare(document.encode(), tag, sizes=(size, 1 << 30))


def test_mutations() -> None:
    good, bad = (
        [taken_apart(text.encode()) for text in texts.values() if len(text) < 1000]
        for texts in (GOOD, TAKEN_OVER)
    )
    mutator = Mutator(good, bad, "records")
    count = 0
    for _ in range(MUTATIONS):
        try:
            stream = open_stream(mutator.document())
            data = b"".join(stream.chunks)
        except DocumentError:  # of the encoding
            continue
        compare(data, sizes=(mutator.one_of(SIZES),), encoding=stream.encoding)
        count += not is_taken_over(data)
    assert count > MUTATIONS / 4
