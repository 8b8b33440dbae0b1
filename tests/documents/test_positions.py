"""Errors name their place: line and column, in characters, from 1."""

from __future__ import annotations

import pytest

from tests.support.parsing import error_of

JUNK = (
    "junk after document element: documents one after the other are what "
    "tamis.documents.concatenated.split() divides"
)
# ‸ marks the place of the error, and is taken out.
MALFORMED = [
    ("‸", "no element found"),
    ("‸hello", "no markup where it must begin: syntax error"),
    ("  \n\n‸x", "no markup where it must begin: syntax error"),
    ("<a>‸", "the document ends inside <a>: no element found"),
    ("<a>\n<b>x\n‸", "the document ends inside <b>: no element found"),
    ("<a><b></‸a>", "mismatched tag: <b> is open"),
    ("<a>\n  <b/>\n</‸b>", "mismatched tag: <a> is open"),
    ("<é>\n<ü></ü><名></‸é>", "mismatched tag: <名> is open"),
    ("<a>‸<", "the document ends inside <a>: unclosed token"),
    ("<a>‸<!-- x", "the document ends inside <a>: unclosed token"),
    ("<a><![CDATA[x‸", "the document ends inside <a>: unclosed CDATA section"),
    ("‸<a ", "unclosed token"),
    ("<a>x <‸ b</a>", "not well-formed (invalid token)"),
    ("<a>é€𝔛 &‸ b</a>", "not well-formed (invalid token)"),
    ("<a>\n𝔛𝔛‸&nope;</a>", "undefined entity"),
    ("<a>1\r\n2\r3\n4‸&nope;</a>", "undefined entity"),
    ("<a b='é' c='1' ‸b='2'/>", "duplicate attribute"),
    ("<a b='é'‸c='1'/>", "not well-formed (invalid token)"),
    ("<a b=‸1/>", "not well-formed (invalid token)"),
    ("<a b='1‸<'/>", "not well-formed (invalid token)"),
    ("‸<p:a/>", "unbound prefix"),
    ("<a>\n ‸<b p:c=''/></a>", "unbound prefix"),
    ("<a xmlns:p='u' xmlns:q='u'>\n‸<b p:x='' q:x=''/></a>", "duplicate attribute"),
    ("<a/>‸<b/>", JUNK),
    ("<a/>\n‸x", JUNK),
    (" ‸<?xml version='1.0'?><a/>", "XML or text declaration not at start of entity"),
    ("<a>x]]‸>y</a>", "not well-formed (invalid token)"),
    ("<a><!-- x --‸ y --></a>", "not well-formed (invalid token)"),
    ("<a>‸\x0b</a>", "not well-formed (invalid token)"),
    ("<a>‸&#0;</a>", "reference to invalid character number"),
    ("<a>é‸&#xD800;</a>", "reference to invalid character number"),
    ("<!DOCTYPE a [<!ENTITY e '&e;'>]>\n<a>‸&e;</a>", "recursive entity reference"),
    ("<!DOCTYPE a [<!ENTITY e '<b>'>]>\n<a>‸&e;</a>", "asynchronous entity"),
    ("<!DOCTYPE a [\n<!NONSENSE‸>]><a/>", "not well-formed (invalid token)"),
]


def place_of(text: str) -> tuple[int, int]:
    before = text[: text.index("‸")].replace("\r\n", "\n").replace("\r", "\n")
    return before.count("\n") + 1, len(before) - before.rfind("\n")


@pytest.mark.parametrize(("text", "message"), MALFORMED)
def test_place(text: str, message: str) -> None:
    """Of bytes, and of text and UTF-16 where the document begins as one."""
    document = text.replace("‸", "")
    errors = [error_of(document.encode())]
    if document.startswith("<"):
        errors += [error_of(document), error_of(document.encode("utf-16-le"))]
    for error in errors:
        assert error.code == "document-malformed"
        assert error.message == message
        assert (error.line, error.column) == place_of(text)
        assert str(error) == f"line {error.line}, column {error.column}: {message}"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_place_after_a_byte_order_mark(encoding: str) -> None:
    error = error_of("<a>&nope;</a>".encode(encoding))
    assert (error.line, error.column) == (1, 4)


def test_place_after_a_byte_order_mark_and_a_line() -> None:
    error = error_of("<a>\n&nope;</a>".encode("utf-8-sig"))
    assert (error.line, error.column) == (2, 1)


@pytest.mark.parametrize("encoding", ["shift_jis", "iso2022_jp", "koi8-r", "cp037", "utf-32"])
def test_place_in_documents_that_python_decodes(encoding: str) -> None:
    """Line and column are of characters, whatever bytes these were."""
    letters = "яя" if encoding != "cp037" else "éé"
    text = f"<?xml version='1.0' encoding='{encoding}'?><a>\n{letters}‸&nope;</a>"
    error = error_of(text.replace("‸", "").encode(encoding))
    assert (error.line, error.column) == place_of(text)
    assert error.message == "undefined entity"


@pytest.mark.parametrize(
    ("document", "place"),
    [
        (b"<?xml version='1.0' encoding='shift_jis'?><a>\n\x83\x5c\x81\x20</a>", (2, 2)),
        (b"<?xml version='1.0' encoding='windows-1252'?>\r\n<a>\x80\x81</a>", (2, 5)),
        (b"<?xml version='1.0'\n encoding='x-nonsense'?><a/>", (2, 12)),
        (b"<?xml version='1.0'\n encoding='utf-16'?><a/>", (2, 12)),
        ("<a>\n\u00e9\ud800</a>", (2, 2)),
        ("<?xml version='1.0' encoding='latin-1'?><a/>", (1, 1)),
        ("<a>\né".encode()[:-1], (2, 1)),
    ],
)
def test_place_of_wrong_encodings(document: bytes | str, place: tuple[int, int]) -> None:
    error = error_of(document)
    assert error.code == "document-encoding"
    assert (error.line, error.column) == place
