"""The contract of DocumentBatch: dtypes, flags, and arrays worked out by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tamis.documents.batch import BatchBuilder, DocumentBatch
from tamis.documents.vocabulary import (
    ALL_NAMES,
    EVERYTHING,
    NO_NAMES,
    Names,
    Projection,
    Vocabulary,
)
from tests.support.case_table import cases
from tests.support.parsing import batch_of, texts, values

DTYPES = {
    "document_starts": np.int64,
    "tags": np.int32,
    "attribute_event": np.int64,
    "attribute_name": np.int32,
    "value_start": np.int64,
    "value_end": np.int64,
    "attribute_values": np.uint8,
    "text_event": np.int64,
    "text_start": np.int64,
    "text_end": np.int64,
    "text_values": np.uint8,
    "misc_starts": np.int64,
    "misc_event": np.int64,
    "misc_text": np.int64,
    "misc_name": np.int32,
    "misc_start": np.int64,
    "misc_end": np.int64,
    "misc_values": np.uint8,
    "prefixes": np.int32,
    "attribute_prefixes": np.int32,
    "lines": np.int32,
    "offsets": np.int64,
}
# Which arrays each projection fills.
DEMANDED = {
    "attributes": "attribute_event attribute_name value_start value_end attribute_values",
    "text": "text_event text_start text_end text_values",
    "misc": "misc_event misc_text misc_name misc_start misc_end misc_values",
    "prefixes": "prefixes attribute_prefixes",
    "lines": "lines",
    "offsets": "offsets",
}
DOCUMENTS = list(dict.fromkeys(case.document for case in cases()))


def listed(batch: DocumentBatch) -> dict[str, list[int] | bytes]:
    """The arrays as lists, and the buffers as bytes."""
    return {
        name: array.tobytes() if array.dtype == np.uint8 else array.tolist()
        for name, array in batch._asdict().items()
    }


def test_by_hand() -> None:
    vocabulary = Vocabulary()
    batch, errors = batch_of(
        '<a x="1" y="é"><b>t</b>u<!--c--><?p d?>v</a>',
        "<a>",
        "<!--0--><p:a xmlns:p='urn:1' xmlns='urn:2' p:x='' z='2'>\n<q/>\n</p:a><?b?>",
        vocabulary=vocabulary,
    )
    assert list(errors) == [1]
    names = [vocabulary.expanded(name) for name in range(len(vocabulary))]
    assert names == [
        *[("", "a"), ("", "x"), ("", "y"), ("", "b"), ("", "p")],
        *[("urn:1", "a"), ("urn:1", "x"), ("", "z"), ("urn:2", "q")],
    ]
    assert vocabulary.prefix(0) == "p"
    assert listed(batch) == {
        "document_starts": [0, 4, 4, 8],
        "tags": [0, 3, -1, -1, 5, 8, -1, -1],
        "attribute_event": [0, 0, 4, 4],
        "attribute_name": [1, 2, 6, 7],
        "value_start": [0, 1, 3, 3],
        "value_end": [1, 3, 3, 4],
        "attribute_values": "1é2".encode(),
        "text_event": [1, 2, 2, 4, 6],
        "text_start": [0, 1, 2, 3, 4],
        "text_end": [1, 2, 3, 4, 5],
        "text_values": b"tuv\n\n",
        "misc_starts": [0, 2, 2, 4],
        "misc_event": [2, 2, 3, 7],
        "misc_text": [2, 2, 3, 5],
        "misc_name": [-1, 4, -1, 3],
        "misc_start": [0, 1, 2, 3],
        "misc_end": [1, 2, 3, 3],
        "misc_values": b"cd0",
        "prefixes": [-1, -1, -1, -1, 0, -1, -1, -1],
        "attribute_prefixes": [-1, -1, 0, -1],
        "lines": [1, 1, 1, 1, 1, 2, 2, 3],
        "offsets": [0, 16, 24, 45, 8, 57, 61, 68],
    }


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("<a/>", []),
        ("<a></a>", []),
        ("<a> </a>", [(0, " ")]),
        ("<a>x<b/>y</a>", [(0, "x"), (2, "y")]),
        ("<a><b>x</b></a>", [(1, "x")]),
        ("<a>x<!--c-->y</a>", [(0, "x"), (0, "y")]),
        ("<a><!--c-->y<?p?></a>", [(0, "y")]),
        ("<a>x<![CDATA[<y>]]>z</a>", [(0, "x<y>z")]),
        ("<a><![CDATA[]]></a>", []),
        ("<a>&lt;&#x1D4B3;&amp;</a>", [(0, "<\U0001d4b3&")]),
        ("<a>1\r\n2\r3</a>", [(0, "1\n2\n3")]),
        ("<!DOCTYPE a [<!ENTITY e 'x<b/>y'>]><a>1&e;2</a>", [(0, "1x"), (2, "y2")]),
        ("<!DOCTYPE a [<!ENTITY e ''>]><a>1&e;2</a>", [(0, "12")]),
        ("<!DOCTYPE a SYSTEM 'x'><a>1&e;2</a>", [(0, "1"), (0, "2")]),
        ("<!DOCTYPE a [<!ENTITY e SYSTEM 'x'>]><a>1&e;2</a>", [(0, "1"), (0, "2")]),
        ("\n<!--c-->\n<a/>\n", []),
        ("<a>" + "x" * 200_000 + "</a>", [(0, "x" * 200_000)]),
        ("<a>" + "é\n" * 100_000 + "</a>", [(0, "é\n" * 100_000)]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_text_boundaries(document: str, expected: list[tuple[int, str]]) -> None:
    """Text nodes, each with the event before it; asking for comments too changes none of them."""
    for projection in (Projection(text=ALL_NAMES), EVERYTHING):
        batch, errors = batch_of(document, projection=projection)
        assert not errors
        assert list(zip(batch.text_event.tolist(), texts(batch), strict=True)) == expected


def test_types_flags_and_lengths() -> None:
    """Of any batch: none, empty documents, documents in error, all documents of the table."""
    for documents in ([], [b""], [b"<a>", b"<a/>", b"<b"], DOCUMENTS):
        batch, _ = batch_of(*documents)
        assert batch.documents == len(documents)
        assert {name: array.dtype for name, array in batch._asdict().items()} == DTYPES
        for name, array in batch._asdict().items():
            assert array.ndim == 1, name
            assert array.flags.c_contiguous, name
            assert array.flags.owndata or not array.flags.writeable, name
            assert not array.flags.writeable, name
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 0


def test_arrays_agree_with_each_other() -> None:
    batch, errors = batch_of(*DOCUMENTS)
    starts, tags = batch.document_starts, batch.tags
    assert starts[0] == 0
    assert starts[-1] == len(tags) == len(batch.prefixes) == len(batch.lines)
    assert batch.misc_starts[-1] == len(batch.misc_event)
    for number in range(batch.documents):
        depths = np.cumsum(np.where(tags[starts[number] : starts[number + 1]] < 0, -1, 1))
        assert (len(depths) == 0) == (number in errors)
        if len(depths):
            assert depths[-1] == 0
            assert depths[:-1].min(initial=1) == 1
    assert np.all(tags[batch.attribute_event] >= 0)
    assert np.all(np.diff(batch.attribute_event) >= 0)
    assert np.all(np.diff(batch.text_event) >= 0)
    for start, end, buffer in (
        (batch.value_start, batch.value_end, batch.attribute_values),
        (batch.text_start, batch.text_end, batch.text_values),
        (batch.misc_start, batch.misc_end, batch.misc_values),
    ):
        assert start[0] == 0
        assert end[-1] == len(buffer)
        assert np.array_equal(start[1:], end[:-1])
    assert np.all(batch.text_start < batch.text_end), "a text node is never empty"
    buffers = (batch.text_values, batch.attribute_values, batch.misc_values)
    assert all(buffer.tobytes().decode() for buffer in buffers), "all of it is UTF-8"


@pytest.mark.parametrize("number", range(32))
def test_projection(number: int) -> None:
    """What is not asked for is empty; nothing else changes, nor do errors."""
    asked = [bool(number >> place & 1) for place in range(5)]
    names = [ALL_NAMES if all_names else NO_NAMES for all_names in asked[:2]]
    flags = Projection(*names, *asked[2:])
    broken = [b"", b"<a x='1'>t<!--c-->", b"<a>" * 20_000, b"<a>&b;</a>", b"<a><?p d?></b>"]
    documents = [document for pair in zip(DOCUMENTS, itertools.cycle(broken)) for document in pair]
    vocabulary = Vocabulary()
    everything, all_errors = batch_of(*documents, vocabulary=vocabulary)
    batch, errors = batch_of(*documents, projection=flags, vocabulary=vocabulary)
    assert {n: str(e) for n, e in errors.items()} == {n: str(e) for n, e in all_errors.items()}
    expected = listed(everything)
    for flag, asked in flags._asdict().items():
        for name in [] if asked else DEMANDED[flag].split():
            expected[name] = type(expected[name])()
    if not flags.attributes:
        expected["attribute_prefixes"] = []
    if not flags.misc:
        expected["misc_starts"] = [0] * (batch.documents + 1)
    if not flags.text:
        expected["misc_text"] = [0] * len(batch.misc_text)
    assert listed(batch) == expected


@pytest.mark.parametrize("misc", [False, True])
@pytest.mark.parametrize("names", [["a"], ["b"], ["x", "c"], ["p", "a", "y"]])
def test_projection_by_names(names: list[str], misc: bool) -> None:
    """Attributes of these names are recorded, and text inside elements of these names."""
    spaces = ["", "urn:p", "urn:x", "http://www.w3.org/XML/1998/namespace"]
    some = Names((space, name) for space in spaces for name in names)
    more = [b"<a>1<b>2<a>3</a>4<!--c-->5</b>6<c/>7<b/></a>", b"<b>1<a>2<b x='1' y='2'/></a>3</b>"]
    documents = [document for pair in zip(DOCUMENTS, itertools.cycle(more)) for document in pair]
    vocabulary = Vocabulary()
    everything, _ = batch_of(*documents, vocabulary=vocabulary)
    batch, _ = batch_of(
        *documents,
        projection=Projection(some, some, misc=misc, prefixes=True, lines=True),
        vocabulary=vocabulary,
    )
    assert batch.tags.tolist() == everything.tags.tolist()

    projected = [vocabulary.expanded(name) in some for name in everything.attribute_name.tolist()]
    assert 0 < sum(projected) < len(projected)
    for name in ("attribute_event", "attribute_name", "attribute_prefixes"):
        assert getattr(batch, name).tolist() == getattr(everything, name)[projected].tolist()
    assert values(batch) == list(itertools.compress(values(everything), projected))

    inside = np.array(text_is_inside(everything, vocabulary, some))
    assert 0 < sum(inside) < len(inside)
    assert batch.text_event.tolist() == everything.text_event[inside].tolist()
    assert texts(batch) == list(itertools.compress(texts(everything), inside))
    if misc:
        before = np.append(0, np.cumsum(inside))
        assert batch.misc_event.tolist() == everything.misc_event.tolist()
        assert batch.misc_text.tolist() == before[everything.misc_text].tolist()


def text_is_inside(batch: DocumentBatch, vocabulary: Vocabulary, names: Names) -> list[bool]:
    """For each text node whether an element of one of the names is around it."""
    around: list[list[bool]] = []
    open_elements: list[bool] = []
    for tag in batch.tags.tolist():
        if tag < 0:
            open_elements.pop()
        else:
            open_elements.append(vocabulary.expanded(tag) in names)
        around.append(list(open_elements))
    return [any(around[event]) for event in batch.text_event.tolist()]


def test_projected_text_of_documents_with_entities() -> None:
    document = (
        "<!DOCTYPE a [<!ENTITY e '1<b>2<c>3</c>4</b>5'><!ENTITY f '6'>]><a>&e;<b>&f;</b>&f;&e;</a>"
    )
    batch, _ = batch_of(document, projection=Projection(text=Names([("", "b")])))
    assert texts(batch) == ["2", "3", "4", "6", "2", "3", "4"]
    assert batch.text_event.tolist() == [1, 2, 3, 5, 7, 8, 9]


def test_documents_in_error_leave_nothing_behind() -> None:
    good = ["<a x='1'>t<!--c--></a>", "<?p d?><b>u</b>"]
    bad = "<!--z--><c y='2'>v<d w='3'>x<!--y--></c>"
    vocabulary = Vocabulary()
    alone, _ = batch_of(*good, vocabulary=vocabulary)
    batch, errors = batch_of(bad, good[0], bad, bad, good[1], bad, vocabulary=vocabulary)
    assert list(errors) == [0, 2, 3, 5]
    expected = listed(alone)
    expected["document_starts"] = [0, 0, 2, 2, 2, 4, 4]
    expected["misc_starts"] = [0, 0, 1, 1, 1, 2, 2]
    assert listed(batch) == expected


def test_builder_keeps_what_was_before_the_mark() -> None:
    builder = BatchBuilder()
    builder.tags.extend([0, -1])
    builder.text_values += b"kept"
    builder.text_end.append(4)
    builder.end_document()
    lengths = builder.lengths()
    builder.tags.append(1)
    builder.text_values += b"gone"
    builder.text_end.extend([8, 8])
    builder.drop_document(lengths)
    batch = builder.freeze()
    assert batch.document_starts.tolist() == [0, 2, 2]
    assert batch.text_end.tolist() == [4]
    assert batch.text_values.tobytes() == b"kept"


def test_attribute_values() -> None:
    document = "<a b='&lt;&#10;' c='x\r\n\ty'><d e=''/><f/></a>"
    batch, _ = batch_of(document)
    assert values(batch) == ["<\n", "x  y", ""]
    assert batch.attribute_event.tolist() == [0, 0, 1]


def test_lines() -> None:
    batch, _ = batch_of("<?xml version='1.0'?>\n\n<a\nb='\n'><c>\r\n\r</c\n></a\n>")
    assert batch.lines.tolist() == [3, 5, 7, 8]
