"""Documents of a buffer read together, as each of them by itself."""

import gzip
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.core.errors import DocumentError
from tamis.core.limits import Limits
from tamis.documents.column import PLAIN_BYTES, DocumentColumn, runs
from tamis.documents.encodings import DeclaredEncoding

DTD = '<!DOCTYPE a SYSTEM "a.dtd">'
TEXTS = [
    "<a/>",
    "<a><b x='é'>3</b></a>",
    "\n <a><b>4</b></a> ",
    "<?xml version='1.0'?><a><b>5</b></a>",
    "<?xml version='1.0' encoding='UTF-8'?>\n<a><b>6</b></a>",
    "<?xml version='1.0' encoding='utf8'?><a><b>6</b></a>",
    "<?xml version='1.0' encoding='ascii'?><a>é</a>",
    "<?xml version='1.0' encoding='UTF-16'?><a/>",
    "<?xml version='1.0' encoding='latin-1'?><a><b x='é'/></a>",
    "<?xml version='1.0' encoding='unknown'?><a/>",
    f"<?xml version='1.0' standalone='yes'?>{DTD}<a>&x;</a>",
    f"<?xml version='1.0'?>{DTD}<a>&x;</a>",
    f"{DTD}<a>&x;</a>",
    "<?xml version='1.1'?><a/>",
    "<?xml version='1.0'",
    "<?xml",
    "<?xml-stylesheet href='a'?><a/>",
    "<?p?><a><b/></a>",
    " <?xml version='1.0'?><a/>",
    "<a>\0</a>",
    "<a",
    "<",
    "",
    "a",
    "<a/><a/>",
    "<!-- ?> --><a/>",
    f"<?xml version='1.0' {' ' * 2000}?><a/>",
    f"<a><b>7</b>{' ' * PLAIN_BYTES}</a>",
    "\ufeff<a/>",
    "\ufeff<?xml version='1.0' encoding='utf-8'?><a/>",
]
BYTES = [text.encode() for text in TEXTS] + [
    b"<a>\xe9</a>",
    b"<?xml version='1.0' encoding='latin-1'?><a>\xe9<b/></a>",
    "<a><b>1</b></a>".encode("utf-16"),
    "<a><b>1</b></a>".encode("utf-16-le"),
    gzip.compress(b"<a><b>1</b></a>", mtime=0),
    b"\xef\xbb\xbf\xef\xbb\xbf<a/>",
]
SMALL = Limits(document_bytes=40)
MATCHERS = [
    tamis.compile({"a": "//a", "b": "//b", "x": "//b[@x]", "s": "//b[. > 4]"}, limits=limits)
    for limits in (Limits(), SMALL)
]


def answers(matcher: Any, documents: Any, declared: DeclaredEncoding) -> list[Any]:
    """What is said of each document."""
    found = []
    for answered in matcher.answers(documents, nodes="all", declared=declared):
        matches = answered.matches
        for number in range(matches.documents):
            error = matches.errors.get(number)
            if error is not None:
                found.append((type(error), str(error)))
            else:
                match = tamis.Match(matches, number, nodes=answered.nodes)
                found.append({id: list(match.nodes(id)) for id in match})
    return found


def column(documents: Sequence[bytes | None], is_text: bool, declared: Any, limits: Limits) -> Any:
    data = memoryview(b"".join(found or b"" for found in documents))
    bounds = np.cumsum([0, *(len(found or b"") for found in documents)])
    is_there = np.array([found is not None for found in documents], bool)
    return runs(data, bounds, is_there, limits, is_text=is_text, declared=declared)


@pytest.mark.parametrize("declared", ["check", "ignore"])
@pytest.mark.parametrize("matcher", MATCHERS)
@given(st.lists(st.tuples(st.sampled_from([1, 2, 20]), st.integers(0, len(BYTES))), max_size=4))
def test_bytes_are_answered_as_by_themselves(
    matcher: Any, declared: DeclaredEncoding, drawn: list[tuple[int, int]]
) -> None:
    pool: list[bytes | None] = [*BYTES, None]
    check(matcher, [pool[number] for times, number in drawn for _ in range(times)], False, declared)


@pytest.mark.parametrize("declared", ["check", "ignore"])
@pytest.mark.parametrize("is_text", [False, True])
def test_each_kind_of_document(declared: DeclaredEncoding, is_text: bool) -> None:
    """Many of each, so that they are read together if they ever are; and all mixed."""
    pool = BYTES[: len(TEXTS)] if is_text else BYTES
    for document in pool:
        check(MATCHERS[0], [document] * 20, is_text, declared)
        check(MATCHERS[0], [b"<a/>", document] * 20, is_text, declared)
    check(MATCHERS[0], pool * 2, is_text, declared)


def check(
    matcher: Any, documents: list[bytes | None], is_text: bool, declared: DeclaredEncoding
) -> None:
    null = DocumentError("null")
    alone: list[Any] = [
        null if found is None else found.decode() if is_text else found for found in documents
    ]
    together = [
        found if isinstance(found, DocumentColumn) else alone[found]
        for found in column(documents, is_text, declared, matcher.limits)
    ]
    assert answers(matcher, together, declared) == answers(matcher, alone, declared)


def test_most_documents_are_read_together() -> None:
    documents = [b"<?xml version='1.0' encoding='UTF-8'?><a/>", b"<a/>", b"\n<a/>"] * 1000
    (found,) = column(documents, False, "check", Limits())
    parts = [len(part) for part in column(documents * 2, False, "check", Limits())]
    assert sum(parts) == 6000
    assert len(parts) == 2
    assert [source.data for source in found] == documents
    assert [len(part) for part in found.groups(2000, 1 << 20)] == [2000, 1000]
    assert max(sum(len(one.data) for one in part) for part in found.groups(2000, 100)) <= 100
    assert len(next(found.groups(2000, 1))) == 1
