"""Records: each is what its element is in the whole document, however the stream arrives."""

from __future__ import annotations

import gzip
import io
import resource
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamis.core.errors import UsageError
from tamis.core.limits import Limits
from tamis.core.threads import Flush
from tamis.documents import record_batch
from tamis.documents.batch import DocumentBatch
from tamis.documents.expat_records import ExpatRecords
from tamis.documents.record_batch import RecordBatch, StreamPosition
from tamis.documents.record_reader import parse_records
from tamis.documents.source import open_stream
from tamis.documents.vocabulary import EVERYTHING, Projection, Vocabulary
from tests.documents.test_positions import JUNK
from tests.support.parsing import batch_of
from tests.support.strategies import documents

TAGS = ("a", "b", "p:a", "q:b", "{}a", "{urn:p}a", "{urn:q}a", "{urn:p}b")


def chunked(data: bytes, size: int) -> Iterator[bytes]:
    return (data[place : place + size] for place in range(0, len(data), size))


def found_in(
    document: object, tag: str, limits: Limits | None = None, projection: Projection = EVERYTHING
) -> list[RecordBatch]:
    stream = open_stream(document)
    found = parse_records(stream, tag, Vocabulary(), projection, limits or Limits())
    return [batch for batch in found if not isinstance(batch, Flush)]


def nodes(batch: DocumentBatch, vocabulary: Vocabulary, document: int) -> list[tuple[object, ...]]:
    """All that a batch has of one document, with names instead of numbers."""
    first, last = batch.document_starts[document : document + 2].tolist()
    found: list[tuple[object, ...]] = []
    for event in range(first - 1, last):
        if event >= first:
            tag = int(batch.tags[event])
            prefix = int(batch.prefixes[event])
            name = vocabulary.expanded(tag) if tag >= 0 else None
            found.append((name, vocabulary.prefix(prefix) if prefix >= 0 else None))
            for number in (batch.attribute_event == event).nonzero()[0].tolist():
                value = batch.attribute_values[batch.value_start[number] : batch.value_end[number]]
                name = vocabulary.expanded(int(batch.attribute_name[number]))
                found.append(("attribute", name, value.tobytes()))
        misc_first, misc_last = batch.misc_starts[document : document + 2].tolist()
        leaves = [
            (int(batch.misc_text[n]), 0, batch.misc_values[batch.misc_start[n] : batch.misc_end[n]])
            for n in range(misc_first, misc_last)
            if batch.misc_event[n] == event
        ]
        if event >= first:
            leaves += [
                (n, 1, batch.text_values[batch.text_start[n] : batch.text_end[n]])
                for n in (batch.text_event == event).nonzero()[0].tolist()
            ]
        found += [(kind, value.tobytes()) for _, kind, value in sorted(leaves, key=lambda x: x[:2])]
    return found


def records_of(batches: Iterable[RecordBatch], first: int = 0) -> list[object]:
    """The nodes of each record, or its error, in order; the numbers are checked."""
    found: list[object] = []
    for batch, errors, vocabulary, places, *_ in batches:
        assert places.first == first + len(found)
        assert batch.documents == len(places.starts) == len(places.ends) == len(places.context)
        for number in range(batch.documents):
            assert (batch.document_starts[number] == batch.document_starts[number + 1]) == (
                number in errors
            )
            found.append(
                str(errors[number]) if number in errors else nodes(batch, vocabulary, number)
            )
    return found


def elements_of(document: str, tag: str) -> list[object]:
    """The same, made of the whole document."""
    vocabulary = Vocabulary()
    batch, errors = batch_of(document, vocabulary=vocabulary)
    assert not errors
    found: list[object] = []
    depth = inside = 0
    for node in nodes(batch, vocabulary, 0):
        is_tag = len(node) == 2 and node[0] not in (0, 1)
        if is_tag and node[0] is not None:
            depth += 1
            prefix, (namespace, local) = node[1], node[0]
            written = f"{prefix}:{local}" if prefix else local
            if not inside and tag in (written, f"{{{namespace}}}{local}"):
                inside = depth
                found.append([])
        if inside:
            found[-1].append(node)
        if is_tag and node[0] is None:
            inside = 0 if depth == inside else inside
            depth -= 1
    return found


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents(), st.sampled_from(TAGS), st.integers(1, 40))
def test_records_are_elements_of_the_whole(document: str, tag: str, size: int) -> None:
    expected = elements_of(document, tag)
    data = document.encode()
    for chunks in ([data], chunked(data, size)):
        parser = ExpatRecords(tag, Vocabulary(), EVERYTHING, Limits())
        assert records_of(parser.parse(chunks)) == expected


BY_HAND = {
    "root": (b"<?p?><a><b/><a/></a><!--c-->", "a", [b"<a><b/><a/></a>"]),
    "nested": (b"<x><a><a/>1</a>2<y><a/></y></x>", "a", [b"<a><a/>1</a>", b"<a/>"]),
    "none": (b"<x><b/></x>", "a", []),
    "neighbours": (b"<x><a/><a></a><a>\r\n</a></x>", "a", [b"<a/>", b"<a></a>", b"<a>\r\n</a>"]),
    "spaces": (b"<x><a\n b='>'  /> <a >1</a\n></x>", "a", [b"<a\n b='>'  />", b"<a >1</a\n>"]),
    "misc": (b"<x><!--a--><a><!--b--></a><?c?></x>", "a", [b"<a><!--b--></a>"]),
    "cdata": (b"<x><![CDATA[<a/>]]><a><![CDATA[</a>]]></a></x>", "a", [b"<a><![CDATA[</a>]]></a>"]),
    "prefix": (b"<x xmlns:p='u'><p:a/><a/></x>", "a", [b"<a/>"]),
    "text after": (b"<x>1<a/>2<a/></x>", "a", [b"<a/>", b"<a/>"]),
    "letters": ("<x>é<a>é</a>é<é><a/></é></x>".encode(), "a", ["<a>é</a>".encode(), b"<a/>"]),
}


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("name", BY_HAND)
def test_places(name: str, size: int) -> None:
    data, tag, expected = BY_HAND[name]
    parser = ExpatRecords(tag, Vocabulary(), EVERYTHING, Limits())
    batches = list(parser.parse(chunked(data, size)))
    places = [
        (start, end)
        for found in batches
        for start, end in zip(found.offsets.starts, found.offsets.ends, strict=True)
    ]
    assert [data[start:end] for start, end in places] == expected
    alone = [found_in(record, tag) for record in expected]
    assert records_of(batches) == [record for found in alone for record in records_of(found)]


@pytest.mark.parametrize("size", [1, 3, 7, 64, 1 << 20])
def test_chunks_change_nothing(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batch, "BATCH_RECORDS", 3)
    records = "".join(
        f"<a n='{n}'>é{n}&lt;<!--{n}-->\r\n<b xmlns:p='v{n}'><p:c>{n}</p:c></b></a>\n"
        for n in range(20)
    )
    data = f"<!--é--><x xmlns='u'>\n{records}<y><a/></y></x>\n".encode()
    (whole, *_), found = (
        list(ExpatRecords("a", Vocabulary(), EVERYTHING, Limits()).parse(chunks))
        for chunks in ([data], chunked(data, size))
    )
    assert [each.offsets.first for each in found] == list(range(0, 21, 3))
    whole_again = list(ExpatRecords("a", Vocabulary(), EVERYTHING, Limits()).parse([data]))
    for one, other in zip(whole_again, found, strict=True):
        for left, right in zip(one.batch, other.batch, strict=True):
            assert left.tolist() == right.tolist()
        assert one.offsets.starts.tolist() == other.offsets.starts.tolist()
        assert one.offsets.ends.tolist() == other.offsets.ends.tolist()
        assert one.offsets.contexts == other.offsets.contexts
    assert whole.batch.lines[0] == 2


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1", "shift_jis", "cp037", "utf-32"],
)
@pytest.mark.parametrize("size", [1, 5, 1 << 20])
def test_encodings(encoding: str, size: int) -> None:
    letter = "漢" if encoding == "shift_jis" else "é"
    declared = "" if encoding.startswith("utf") else f'<?xml version="1.0" encoding="{encoding}"?>'
    text = f"{declared}<x>{letter}<a>{letter}</a>{letter}<a b='{letter}'/></x>"

    class Drops(io.RawIOBase):
        data = io.BytesIO(text.encode(encoding))

        def read(self, _size: int = -1) -> bytes:
            return self.data.read(size)

    expected = records_of(found_in(text.removeprefix(declared), "a"))
    assert len(expected) == 2
    for document in (text.encode(encoding), Drops(), gzip.compress(text.encode(encoding))):
        assert records_of(found_in(document, "a")) == expected
    assert records_of(found_in(io.StringIO(text.removeprefix(declared)), "a")) == expected


# -- entities ----------------------------------------------------------------------------------

SUBSET = "<!DOCTYPE x [<!ENTITY e 'é<b/>'><!ATTLIST a d CDATA '1'>]>"


def test_entities_and_defaults() -> None:
    (found,) = found_in(f"{SUBSET}<x>&e;<a>&e;</a>&e;<a/>&e;</x>", "a")
    assert records_of([found]) == [
        *records_of(found_in("<a d='1'>é<b/></a>", "a")),
        [(("", "a"), None), ("attribute", ("", "d"), b"1"), (None, None)],
    ]
    assert found.offsets.contexts[0] == f"{SUBSET}<x>".encode()
    assert found.offsets.context.tolist() == [0, 0]


def test_external_entities_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    found = found_in("<!DOCTYPE x SYSTEM 'y'><x>&u;<a>1&u;2</a>&u;</x>", "a")
    assert records_of(found) == [[(("", "a"), None), (1, b"1"), (1, b"2"), (None, None)]]
    assert "3 times, first in line 1" in caplog.text


def test_a_bomb_ends_the_stream() -> None:
    entities = "<!ENTITY e0 'lol'>" + "".join(
        f"<!ENTITY e{n} '{f'&e{n - 1};' * 10}'>" for n in range(1, 8)
    )
    good, bad = records_of(found_in(f"<!DOCTYPE x [{entities}]><x><a>1</a><a>&e7;</a></x>", "a"))
    assert len(good) == 3
    assert "amplification" in bad
    assert bad.endswith("; the rest was not read")


def test_expansion_is_bounded_for_each_record_and_for_the_stream() -> None:
    entity = f"<!DOCTYPE x [<!ENTITY e '{'y' * 1000}'>]>"
    limits = Limits(entity_free_chars=10_000, entity_amplification=20)
    padding = "<!--" + "-+" * 1000 + "-->"
    answered = found_in(f"{entity}<x>{f'<a>&e;&e;</a>{padding}' * 50}</x>", "a", limits)
    assert all(isinstance(record, list) for record in records_of(answered))
    one_record = f"{entity}<x>{padding * 1000}<a>{'&e;' * 100}</a></x>"
    assert "entity_amplification" in records_of(found_in(one_record, "a", limits))[-1]
    many = f"{entity}<x>{'<a>&e;&e;&e;&e;</a>' * 100}</x>"
    assert "entity_amplification" in records_of(found_in(many, "a", limits))[-1]


# -- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    ("data", "answered", "error"),
    [
        (b"<x><a/>\n<a><b></a><a/></x>", 1, "line 2, column 9: mismatched tag: <b> is open"),
        (b"<x><a/>\n</y><a/>", 1, "line 2, column 3: mismatched tag: <x> is open"),
        (b"<x><a/><a/>\n <", 2, "line 2, column 2: the document ends inside <x>: unclosed token"),
        (b"<x><a/><a>1", 1, "line 1, column 12: the document ends inside <a>: no element found"),
        (b"<a/><b/>", 1, f"line 1, column 5: {JUNK}"),
        (b"<a/>", 1, None),
        (b"", 0, "line 1, column 1: no element found"),
        (b"<x>&u;<a/></x>", 0, "line 1, column 4: undefined entity"),
        (b"<x><p:a/></x>", 0, "line 1, column 4: unbound prefix"),
    ],
)
def test_what_is_not_well_formed_ends_the_stream(
    data: bytes, answered: int, error: str | None, size: int
) -> None:
    parser = ExpatRecords("a", Vocabulary(), EVERYTHING, Limits())
    *good, last = [*records_of(parser.parse(chunked(data, size))), None][: answered + 1]
    assert [type(record) for record in good] == [list] * answered
    if error is None:
        assert last is None
    else:
        assert last.removesuffix("; the rest was not read") == error


def test_the_rest_is_not_read_where_there_is_one() -> None:
    (bad,) = records_of(found_in(b"<x></y>" + b" " * 1_000_000, "a"))
    assert bad.endswith("; the rest was not read")
    (bad,) = records_of(found_in(b"<x><b>", "a"))
    assert not bad.endswith("; the rest was not read")


def test_damage_on_the_way_ends_the_stream() -> None:
    whole = b"<x>" + b"<a/>" * 100_000 + b"</x>"
    for broken in (gzip.compress(whole)[:-9], whole[:-2000].decode().encode("utf-16")[:-1]):
        found = found_in(broken, "a")
        records = records_of(found)
        assert len(records) > 90_000
        assert all(isinstance(record, list) for record in records[:-1])
        assert records[-1].endswith("; the rest was not read")
        assert found[-1].stream_error is not None


def test_limits_concern_one_record() -> None:
    limits = Limits(document_bytes=100, depth=4, attributes=2)
    large = f"<a>{'x' * 93}</a>"
    assert len(large) == 100
    deep = "<b><b><b/></b></b>"
    parts = [large, large.replace("x", "xy", 1), "<a/>", f"<a>{deep}</a>", f"<a><b>{deep}</b></a>"]
    parts += ["<a b='' c=''/>", "<a b='' c='' d=''><a/></a>", "<a><b d='' c='' e=''/></a>", large]
    data = f"<x><y>{''.join(parts)}</y></x>".encode()
    for size in (1, 13, 10_000):
        parser = ExpatRecords("a", Vocabulary(), EVERYTHING, limits)
        records = records_of(parser.parse(chunked(data, size)))
        errors = {n: record for n, record in enumerate(records) if isinstance(record, str)}
        assert list(errors) == [1, 4, 6, 7]
        assert errors[1] == "larger than the limit document_bytes = 100"
        assert "deeper than the limit depth = 4" in errors[4]
        assert "attributes = 2" in errors[6]
        assert len(records) == 9
        assert records[0] == records[8]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<x>" * 20, "deeper than the limit depth = 4"),
        (b"<x a='' b='' c=''/>", "attributes = 2"),
        (b"<x><!--" + b"-+" * 1000, "a tag, a comment or the like is larger than the limit"),
        (b"<!--+-->" * 1000 + b"<x/>", "what stands before the root element is larger"),
        (b"<x><a b='" + b"+" * 1000, "a tag, a comment or the like is larger than the limit"),
        (b"<x><a><b c='" + b"+" * 1000, "a tag, a comment or the like is larger than the limit"),
    ],
)
def test_limits_outside_of_records_end_the_stream(data: bytes, message: str) -> None:
    limits = Limits(document_bytes=100, depth=4, attributes=2)
    for size in (1, 90):
        parser = ExpatRecords("a", Vocabulary(), EVERYTHING, limits)
        (error,) = records_of(parser.parse(chunked(data, size)))
        assert message in error


def test_a_large_token_is_not_read_again_and_again() -> None:
    data = b"<x><a b='" + b"+" * (30 << 20) + b"'/></x>"
    (found,) = ExpatRecords("a", Vocabulary(), Projection(), Limits()).parse(chunked(data, 1000))
    assert found.offsets.ends.tolist() == [len(data) - 4]


@pytest.mark.parametrize(
    "tag",
    ["", " a", "a b", "<a>", "a:", ":a", "a:b:c", "a/b", "\ud800", "a\xd7", "{u}p:a", "u}a", "{u}"],
)
def test_what_is_no_tag(tag: str) -> None:
    with pytest.raises(UsageError, match="is no tag"):
        ExpatRecords(tag, Vocabulary(), Projection(), Limits())


PAUSING = {
    "plain": "<all>\n<a n='1'/><a><b>é</b>text</a>\n<!-- > --><c/><a><a/></a >\n</all>",
    "a declaration": "<?xml version='1.0' encoding='utf-8'?>\n<x><a>1</a>\n<a/><b/><a>2</a></x>",
    "entities": "<!DOCTYPE x [<!ENTITY e 'ü<b/>'>]><x><a>&e;</a>\n<a/><a>&e;</a></x>",
    "the root": "<a>\n<a/></a>\n",
}


@pytest.mark.parametrize(
    "projection", [Projection(), EVERYTHING, Projection(offsets=True, text=EVERYTHING.text)]
)
@pytest.mark.parametrize("name", PAUSING)
@pytest.mark.parametrize("size", [1, 7, 25])
def test_what_has_come_is_answered_before_more_is_waited_for(
    name: str, projection: Projection, size: int
) -> None:
    """Each record is there as soon as its last byte is."""
    data = PAUSING[name].encode()
    expected = found_in(data, "a", projection=projection)
    ends = [end for batch in expected for end in batch.offsets.ends.tolist()]
    given = 0

    def pausing() -> Iterator[bytes]:
        nonlocal given
        for start in range(0, len(data), size):
            given = min(start + size, len(data))
            yield data[start:given]
            yield b""

    batches = []
    found: list[int] = []
    stream = open_stream(data)._replace(chunks=pausing())
    for batch in parse_records(stream, "a", Vocabulary(), projection, Limits()):
        if isinstance(batch, Flush):
            assert found == [end for end in ends if end <= given]
        else:
            batches.append(batch)
            found += batch.offsets.ends.tolist()
    assert found == ends
    if projection is EVERYTHING:
        assert records_of(batches) == records_of(expected)
    assert batches[0].offsets.start == expected[0].offsets.start


def test_memory_is_bounded() -> None:
    record = b"<a n='1'><b>" + b"text " * 200 + b"</b></a>\n"

    def chunks() -> Iterator[bytes]:
        yield b"<x>"
        for _ in range(100):
            yield record * 1000
        yield b"</x>"

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    records = 0
    for found in ExpatRecords("a", Vocabulary(), EVERYTHING, Limits()).parse(chunks()):
        assert found.batch.documents <= record_batch.BATCH_RECORDS
        records += found.batch.documents
    assert records == 100_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_names_are_forgotten_with_their_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batch, "BATCH_RECORDS", 10)
    data = b"<x>" + b"".join(b"<a><n%d/></a>" % n for n in range(100)) + b"</x>"
    base = Vocabulary()
    found = list(ExpatRecords("a", base, EVERYTHING, Limits()).parse([data]))
    assert len(base) == 0
    assert [len(each.vocabulary) for each in found] == [11] * 10


# -- taking over, and the index ----------------------------------------------------------------


def test_the_rest_of_a_stream() -> None:
    begin = "<x xmlns='u'>\n <a/>é"
    rest = "<a/>\n<b><a>2</a>\n<a c='1' c=''/></b></x>"
    (whole,) = found_in(begin + rest, "a")
    start = StreamPosition(1, len(begin.encode()), 2, len(" <a/>é") + 1)
    context = b"<!DOCTYPE x SYSTEM\n'y'>\n<x xmlns='u'>"
    parser = ExpatRecords("a", Vocabulary(), EVERYTHING, Limits(), context=context, start=start)
    (found,) = parser.parse(chunked(rest.encode(), 3))
    assert found.offsets.first == 1
    assert found.offsets.starts.tolist() == whole.offsets.starts.tolist()[1:]
    assert found.offsets.ends.tolist() == whole.offsets.ends.tolist()[1:]
    assert str(found.errors[2]) == str(whole.errors[3])
    assert str(found.errors[2]).startswith("line 4, column 10: duplicate attribute")
    assert found.batch.lines.tolist() == whole.batch.lines.tolist()[2:]
    assert nodes(found.batch, found.vocabulary, 0) == nodes(whole.batch, whole.vocabulary, 1)
