"""Nothing outside a document is ever read for it; what is left out is logged."""

from __future__ import annotations

import logging
import socket
from pathlib import Path

import pytest

import tamis
from tests.support.parsing import batch_of, texts, values

SECRET = "SECRET"

# {uri} names a file that exists, with SECRET in it as text, as a declaration, or as an element.
DOCUMENTS = {
    "general entity": '<!DOCTYPE a [<!ENTITY e SYSTEM "{uri}">]><a>x&e;y</a>',
    "public entity": '<!DOCTYPE a [<!ENTITY e PUBLIC "p" "{uri}">]><a>x&e;y</a>',
    "entity in an entity": '<!DOCTYPE a [<!ENTITY e SYSTEM "{uri}"><!ENTITY f "&e;">]><a>x&f;y</a>',
    "external subset": '<!DOCTYPE a SYSTEM "{uri}"><a>x&known;y</a>',
    "public external subset": '<!DOCTYPE a PUBLIC "p" "{uri}"><a>x&known;y</a>',
    "parameter entity": '<!DOCTYPE a [<!ENTITY % p SYSTEM "{uri}"> %p;]><a>x&known;y</a>',
    "entity declared by an entity": """<!DOCTYPE a SYSTEM "gone" [
        <!ENTITY % q "<!ENTITY e SYSTEM '{uri}'>"> %q;]><a>x&e;y</a>""",
    "notation": """<!DOCTYPE a [<!NOTATION n SYSTEM "{uri}">
        <!ENTITY e SYSTEM "{uri}" NDATA n>]><a>xy</a>""",
    "stylesheet": '<?xml-stylesheet href="{uri}"?><a>xy</a>',
    "XInclude": '<a>x<i:include xmlns:i="http://www.w3.org/2001/XInclude" href="{uri}"/>y</a>',
    "schema": """<a xmlns:s="http://www.w3.org/2001/XMLSchema-instance"
        s:noNamespaceSchemaLocation="{uri}">xy</a>""",
    "base": '<a xml:base="{uri}">xy</a>',
}


@pytest.fixture
def uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file that would show, and a network that cannot be used."""
    path = tmp_path / "external.xml"
    path.write_text(f'{SECRET}<!ENTITY known "{SECRET}"><!ATTLIST a z CDATA "{SECRET}">')

    def refuse(*_: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return str(path)


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize("template", DOCUMENTS.values(), ids=DOCUMENTS)
def test_nothing_is_read(template: str, scheme: str, uri: str) -> None:
    """However the document is given: as text, bytes, the path of a file beside it, or a stream."""
    document = template.replace("{uri}", scheme + uri)
    path = Path(uri).with_name("document.xml")
    path.write_text(document)
    with path.open("rb") as stream:
        batch, errors = batch_of(document, document.encode(), path, stream)
    assert not errors
    shown = [*texts(batch), *values(batch), batch.misc_values.tobytes().decode()]
    assert not any(SECRET in text for text in shown)
    assert "".join(texts(batch)).split() == ["xy" * 4]


@pytest.mark.parametrize("template", DOCUMENTS.values(), ids=DOCUMENTS)
def test_lxml_reads_nothing_external(template: str, uri: str) -> None:
    """lxml reads what Tamis reads, and never shows what is outside a document."""
    subscriptions = tamis.Subscriptions(
        {"x": f"contains(string(.), '{SECRET}')", "y": "//a[last()][@z]", "z": "//a[last()]"},
        unsupported="slow",
    )
    (match,) = tamis.compile(subscriptions).match_many([template.replace("{uri}", uri)])
    assert (match.error, list(match), match.failed) == (None, ["z"], {})


def test_what_is_left_out_is_logged_once_a_document(caplog: pytest.LogCaptureFixture) -> None:
    document = '<!DOCTYPE a [<!ENTITY e SYSTEM "gone">]>\n<a>\n&e;&e;<b/>&e;</a>'
    with caplog.at_level(logging.WARNING, "tamis"):
        batch_of(document, "<a/>", document)
    assert len(caplog.records) == 2
    assert all("3 times" in message and "line 3" in message for message in caplog.messages)


def test_an_unread_external_subset_alone_is_not_worth_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "tamis"):
        batch_of('<!DOCTYPE a SYSTEM "gone.dtd"><a>t</a>')
    assert caplog.records == []


@pytest.mark.parametrize(
    "document",
    [
        "<a>&gone;</a>",
        "<!DOCTYPE a []><a>&gone;</a>",
        "<?xml version='1.0' standalone='yes'?><!DOCTYPE a SYSTEM 'x'><a>&gone;</a>",
        "<a b='&gone;'/>",
        "<!DOCTYPE a [<!ENTITY e SYSTEM 'x'>]><a b='&e;'/>",
    ],
)
def test_references_that_no_external_subset_could_explain(document: str) -> None:
    _, errors = batch_of(document)
    assert errors[0].code == "document-malformed"
