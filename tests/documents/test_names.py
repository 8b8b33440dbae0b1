"""Names of XML 1.0's fifth edition, and versions of XML."""

from __future__ import annotations

import re
from itertools import islice
from xml.parsers import expat

import pytest

import tamis
from tamis.documents.vocabulary import EVERYTHING, Vocabulary
from tests.support.parsing import batch_of, error_of, texts, values

ALL = EVERYTHING._replace(lines=False)
# The character classes of the recommendation's fifth edition, [4] and [4a], without the colon.
START = [
    *((0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x2FF)),
    *((0x370, 0x37D), (0x37F, 0x1FFF), (0x200C, 0x200D), (0x2070, 0x218F), (0x2C00, 0x2FEF)),
    *((0x3001, 0xD7FF), (0xF900, 0xFDCF), (0xFDF0, 0xFFFD), (0x10000, 0xEFFFF)),
]
REST = [*START, (0x2D, 0x2E), (0x30, 0x39), (0xB7, 0xB7), (0x300, 0x36F), (0x203F, 0x2040)]
EDGES = sorted({c + d for a, b in REST for c in (a, b) for d in (-1, 0, 1)} - {0x2F, 0x3E, 0xD800})
"""What begins or ends a range, and its neighbours; without what ends a name anyhow."""
NEWER = "\u1780\U00010000"


def is_in(code: int, ranges: list[tuple[int, int]]) -> bool:
    return any(first <= code <= last for first, last in ranges)


@pytest.mark.parametrize("code", [code for code in EDGES if code > 0x7F])
def test_characters_of_names(code: int) -> None:
    character = chr(code)
    _, errors = batch_of(f"<{character}/>", f"<a{character}/>", projection=ALL)
    assert (0 not in errors) == is_in(code, START)
    assert (1 not in errors) == is_in(code, REST)


def test_names_everywhere() -> None:
    """Of elements, attributes, prefixes and targets, beside others, with anything in between."""
    vocabulary = Vocabulary()
    document = (
        f"<{NEWER} xmlns:{NEWER}='u&#49;' xmlns:é='v' xmlns:p='w' x='1' {NEWER}='2' {NEWER}:é='3' "
        f"xmlns='d'><{NEWER}:{NEWER}>t</{NEWER}:{NEWER}><?{NEWER} d?><é:b/><p:c/></{NEWER}>"
    )
    batch, errors = batch_of(document, projection=ALL, vocabulary=vocabulary)
    assert not errors
    elements = [vocabulary.expanded(tag) for tag in batch.tags.tolist() if tag >= 0]
    assert elements == [("d", NEWER), ("u1", NEWER), ("v", "b"), ("w", "c")]
    attributes = [vocabulary.expanded(name) for name in batch.attribute_name.tolist()]
    assert attributes == [("", "x"), ("", NEWER), ("u1", "é")]
    assert (values(batch), texts(batch)) == (["1", "2", "3"], ["t"])
    assert vocabulary.expanded(int(batch.misc_name[0])) == ("", NEWER)


@pytest.mark.parametrize(
    "document",
    [
        f"<a xmlns:{NEWER}='1' xmlns:{NEWER}='2'/>",
        f"<a xmlns:{NEWER}=''/>",
        f"<{NEWER}:a/>",
        f"<{NEWER} {NEWER}='1' {NEWER}='2'/>",
        f"<{NEWER}></{NEWER[::-1]}>",
        f"<!DOCTYPE a [<!ENTITY e ''>]><{NEWER}/>",
        f"<!DOCTYPE {NEWER}><{NEWER}/>",
        f"<!DOCTYPE a [<!ELEMENT {NEWER} ANY>]><a/>",
        f"<!DOCTYPE a SYSTEM 'x'><a>&{NEWER};</a>",
    ],
)
def test_errors_say_what_libexpat_does_not_read(document: str) -> None:
    error = error_of(document)
    assert error.code == "document-malformed"
    assert re.search(f"the name '(xmlns:)?{NEWER}", error.message)
    assert "is of XML 1.0's fifth edition" in error.message
    index = document.encode()[: error.offset].decode()
    assert error.column == len(index) + 1
    assert document[len(index)] in NEWER


@pytest.mark.parametrize("document", ["<a>\u1780<", "<a b=é/>", "<é\u0345é\ufffe/>", "<a\x80/>"])
def test_other_errors_stay_what_they_are(document: str) -> None:
    assert "fifth edition" not in error_of(document).message


def test_other_encodings_and_records() -> None:
    document = f"<?xml version='1.0' encoding='UTF-16'?><{NEWER}/>"
    matcher = tamis.compile({"x": f"//{NEWER}"})
    assert list(matcher.match(document.encode("utf-16"))) == ["x"]
    records = f"<l xmlns:{NEWER}='u'><{NEWER}/><r><{NEWER}/></r></l>"
    found = [list(match) for match in matcher.match_records(records, NEWER)]
    assert found == [["x"], ["x"]]
    *_, last = matcher.match_records(records.replace("</r>", "</q>"), "r")
    assert "fifth edition" in last.error.message
    with_subset = f"<!DOCTYPE l [<!ENTITY e ''>]>{records}"
    *_, last = matcher.match_records(with_subset, "r")
    assert "fifth edition" in last.error.message


def test_libexpat_still_has_the_fourth_edition() -> None:
    """Where it has the fifth, all of the above can go."""
    for character in islice(NEWER, 2):
        with pytest.raises(expat.ExpatError):
            expat.ParserCreate("utf-8").Parse(f"<{character}/>".encode(), True)


@pytest.mark.parametrize(
    "version", ["1.0", "1.1", "1.5", "1.10", "2.0", "1", "1.", "1.x", "", "10"]
)
@pytest.mark.parametrize("rest", ["<a/>", "<!DOCTYPE a [<!ENTITY e ''>]><a/>"])
def test_versions(version: str, rest: str) -> None:
    document = f"<?xml version='{version}'?>{rest}"
    _, errors = batch_of(document, projection=ALL)
    is_one = version in {"1.0", "1.1", "1.5", "1.10"}
    assert (not errors) == is_one
    matches = list(tamis.compile({"x": "/a"}).match_records(document, "a"))
    assert [match.error is None for match in matches] == [is_one]
    if version == "2.0":
        assert str(errors[0]) == (
            "line 1, column 1: the version of XML is declared as '2.0', and is 1.0, or 1.x at most"
        )
